"""Convolutional networks and those with attention between: BiT, HGNet V2, MobileViT, CvT, PVT, SwiftFormer, DINOv3's ConvNeXt."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import transformers

from weft_reference import stores
from weft_reference.backbones import backbone
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.models.dinov3_vit import Processor, features
from weft_reference.tasks import Call
from weft_reference.vision_tasks import VisionTaskCase

CLASSES = "ForImageClassification"
KIN = {
    "bit": "Bit",
    "hgnet_v2": "HGNetV2",
    "mobilevit": "MobileViT",
    "mobilevitv2": "MobileViTV2",
    "cvt": "Cvt",
    "pvt": "Pvt",
    "swiftformer": "SwiftFormer",
    "dinov3_convnext": "DINOv3ConvNext",
}
MODELS = tuple(KIN)
ROOTS = MODELS
TINY: dict[str, dict[str, Any]] = {
    "bit": {"embedding_size": 8, "hidden_sizes": [16, 32, 32], "depths": [1, 2, 1], "num_groups": 4},
    "hgnet_v2": {
        "stem_channels": [3, 4, 6],
        "stage_in_channels": [6, 8, 12],
        "stage_mid_channels": [4, 6, 6],
        "stage_out_channels": [8, 12, 16],
        "stage_num_blocks": [1, 2, 1],
        "stage_downsample": [False, True, True],
        "stage_downsample_strides": [2, 2, 2],
        "stage_light_block": [False, True, False],
        "stage_kernel_size": [3, 5, 3],
        "stage_numb_of_layers": [2, 3, 1],
        "depths": [1, 2, 1],
        "hidden_sizes": [8, 12, 16],
        "embedding_size": 6,
    },
    "mobilevit": {"hidden_sizes": [8, 12, 16], "neck_hidden_sizes": [4, 6, 8, 10, 12, 14, 20], "num_attention_heads": 2, "expand_ratio": 2.0},
    "mobilevitv2": {"base_attn_unit_dims": [16, 24, 32], "width_multiplier": 0.3, "n_attn_blocks": [1, 2, 1]},
    "cvt": {"embed_dim": [6, 8, 12], "num_heads": [1, 2, 3], "depth": [1, 2, 3], "mlp_ratio": [2.0, 1.5, 2.0]},
    "pvt": {
        "image_size": 32,
        "num_encoder_blocks": 3,
        "depths": [1, 2, 1],
        "sequence_reduction_ratios": [4, 2, 1],
        "hidden_sizes": [8, 12, 16],
        "patch_sizes": [4, 2, 2],
        "strides": [4, 2, 2],
        "num_attention_heads": [1, 2, 4],
        "mlp_ratios": [2, 2, 3],
    },
    "swiftformer": {"depths": [2, 1, 3], "embed_dims": [8, 12, 16], "mlp_ratio": 2, "downsamples": [True, True, True]},
    "dinov3_convnext": {"hidden_sizes": [8, 12, 16], "depths": [1, 2, 1]},
}
WITHOUT = {"hgnet_v2": "Model", "dinov3_convnext": CLASSES}
BACKBONES = ("bit", "hgnet_v2", "dinov3_convnext")


class Larger(Processor):
    """Images of more than one position after all stages."""

    size = {"height": 32, "width": 64}


def case(
    model: str, name: str, head: str, notes: str, size: tuple[int, int], store: Store | None = None, **changes: Any
) -> Case:
    config = getattr(transformers, f"{KIN[model]}Config")(**(TINY[model] | changes))
    pixels = {"pixel_values": floats("pixels", (2, config.num_channels, *size), -2.0, 2.0)}
    return Case(f"{model}/{name}", KIN[model] + head, config, pixels, notes, store)


def goldens() -> Iterator[Case | VisionTaskCase]:
    for model, prefix in KIN.items():
        odd, even = ((32, 32), (32, 32)) if model == "pvt" else ((45, 70), (64, 64))
        if WITHOUT.get(model) != "Model":
            yield case(model, "base", "Model", "Two images.", even)
            yield case(model, "wide", "Model", "Images that are no squares, of odd rows and columns.", odd)
            if model != "mobilevitv2":
                yield case(model, "model-file", "Model", "As save_pretrained writes it.", even, stores.whole)
        if WITHOUT.get(model) != CLASSES:
            yield case(model, "image-classification", CLASSES, "Three classes.", odd, num_labels=3)
            yield case(model, "file", CLASSES, "model.safetensors as save_pretrained writes it.", even, stores.whole)
        if model in BACKBONES:
            yield from backbone(model, prefix, TINY[model], odd)
        yield from options(model)
        yield tasks(model, prefix)


def options(model: str) -> Iterator[Case]:
    odd = (45, 70)
    if model == "bit":
        bottleneck = {"layer_type": "bottleneck", "hidden_act": "gelu"}
        yield case(model, "bottleneck", "Model", "Norms behind layers; padding behind the first pool.", odd, embedding_dynamic_padding=True, **bottleneck)
        yield case(model, "same", "Model", "Padding as TensorFlow has it; stages that dilate.", odd, global_padding="same", output_stride=8, **bottleneck)
        yield case(model, "dilated", "Model", "Stages that dilate twice, padded by half windows.", odd, output_stride=4, depths=[1, 2, 3], **bottleneck)
        yield case(model, "half", "Model", "Images of one channel, of odd rows and columns.", (91, 101), num_channels=1)
    if model == "hgnet_v2":
        lab = {"use_learnable_affine_block": True, "hidden_act": "gelu", "stage_downsample_strides": [2, 1, 2]}
        yield case(model, "affine", CLASSES, "Activations are scaled and shifted; another function in the stem.", odd, **lab)
    if model == "mobilevit":
        yield case(model, "dilated", "Model", "Stages that dilate, larger patches and windows.", odd, output_stride=8, patch_size=3, conv_kernel_size=5)
        yield case(model, "stride-16", CLASSES, "The last stage dilates; no biases.", odd, output_stride=16, qkv_bias=False, hidden_act="relu", layer_norm_eps=1e-2)
    if model == "mobilevitv2":
        yield case(model, "dilated", "Model", "Stages that dilate, larger patches and windows.", odd, output_stride=8, patch_size=3, conv_kernel_size=5)
        yield case(model, "stride-16", CLASSES, "The last stage dilates.", odd, output_stride=16, hidden_act="relu", ffn_multiplier=3, layer_norm_eps=1e-2)
    if model == "cvt":
        classes = {"cls_token": [False, False, False], "qkv_bias": [False, True, False]}
        yield case(model, "no-class-token", "Model", "No class token, other windows and strides.", odd, kernel_qkv=[3, 5, 3], padding_kv=[1, 2, 1], padding_q=[1, 2, 1], stride_kv=[2, 1, 2], **classes)
    if model == "pvt":
        yield case(model, "no-bias", "Model", "No biases of queries, keys and values; another function; an edge that patches do not divide.", (30, 30), image_size=30, qkv_bias=False, hidden_act="relu", layer_norm_eps=1e-2)
    if model == "swiftformer":
        yield case(model, "unscaled", "Model", "No layer scale; a stage that keeps its size.", odd, use_layer_scale=False, downsamples=[False, True, True], embed_dims=[8, 8, 12], hidden_act="relu", batch_norm_eps=1e-2)
    if model == "dinov3_convnext":
        yield case(model, "relu", "Model", "Another function, epsilon and number of channels.", odd, hidden_act="relu", layer_norm_eps=1e-2, num_channels=1)


def tasks(model: str, prefix: str) -> VisionTaskCase:
    labels = ["warp", "weft", "loom", "shuttle"]
    if model == "dinov3_convnext":
        return VisionTaskCase(
            "dinov3_convnext/tasks/image-feature-extraction",
            "image-feature-extraction",
            "DINOv3ConvNextModel",
            transformers.DINOv3ConvNextConfig(**TINY[model]),
            Larger(),
            (Call("rgb.png"), Call("grey.png", {"pool": True})),
            "Pictures that are resized without rounding.",
            answers=partial(features, processor=Larger()),
        )
    config = getattr(transformers, f"{prefix}Config")(**TINY[model], num_labels=4, id2label=dict(enumerate(labels)))
    config.label2id = {name: index for index, name in enumerate(labels)}
    square = {"height": 48, "width": 48} if model.startswith("mobile") else {"height": 32, "width": 32}
    shortest = {"size": {"shortest_edge": 52 if model.startswith("mobile") else 36}, "crop_size": square}
    processor = {
        "bit": lambda: transformers.BitImageProcessorPil(**shortest),
        "mobilevit": lambda: transformers.MobileViTImageProcessorPil(**shortest),
        "mobilevitv2": lambda: transformers.MobileViTImageProcessorPil(**shortest, do_flip_channel_order=False),
        "cvt": lambda: transformers.ConvNextImageProcessorPil(size={"shortest_edge": 32}, crop_pct=0.875),
        "pvt": lambda: transformers.PvtImageProcessorPil(size=square),
    }.get(model, lambda: transformers.ViTImageProcessorPil(size=square))
    return VisionTaskCase(
        f"{model}/tasks/image-classification",
        "image-classification",
        f"{prefix}{CLASSES}",
        config,
        processor(),
        (Call("rgb.png"), Call(["tall.png", "wide.png"], {"top_k": 2})),
        "One picture and several.",
    )
