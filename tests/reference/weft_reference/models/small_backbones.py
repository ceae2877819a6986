"""Backbones of detectors and text recognisers: PP-LCNet of three versions, TextNet, RT-DETR's ResNet; MLCD."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers

from weft_reference import stores
from weft_reference.backbones import backbone
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.tasks import Call
from weft_reference.vision_tasks import VisionTaskCase

CLASSES = "ForImageClassification"
KIN = {
    "pp_lcnet": "PPLCNet",
    "pp_lcnet_v3": "PPLCNetV3",
    "pp_lcnet_v4": "PPLCNetV4",
    "textnet": "TextNet",
    "rt_detr_resnet": "RTDetrResNet",
    "mlcd": "MLCDVision",
}
MODELS = tuple(KIN)
ROOTS = MODELS
FIVE = [
    [[3, 8, 8, 1, False]],
    [[3, 8, 12, 2, True]],
    [[5, 12, 12, 1, False]],
    [[3, 12, 16, 2, False], [5, 16, 16, 1, True]],
    [[5, 16, 16, [2, 1], True]],
]
TINY: dict[str, dict[str, Any]] = {
    "pp_lcnet": {"block_configs": FIVE, "stem_channels": 8, "divisor": 4, "scale": 0.9, "class_expand": 20, "reduction": 2},
    "pp_lcnet_v3": {"block_configs": FIVE, "stem_channels": 8, "divisor": 4, "conv_symmetric_num": 2, "reduction": 2},
    "pp_lcnet_v4": {
        "block_configs": [[[3, 6, 6, 1, True]], [[3, 6, 6, 1, False], [5, 6, 8, 1, False]], [[3, 8, 12, [2, 1], True]], [[3, 12, 12, 2, True]]],
        "stem_channels": [3, 4, 6],
        "reduction": 2,
    },
    "textnet": {
        "stem_out_channels": 6,
        "hidden_sizes": [6, 6, 8, 10, 12],
        "conv_layer_kernel_sizes": [[[3, 3], [3, 3]], [[1, 3], [3, 1]], [[5, 3]], [[3, 3], [1, 1]]],
        "conv_layer_strides": [[1, 2], [2, 1], [2], [1, 1]],
    },
    "rt_detr_resnet": {"embedding_size": 4, "hidden_sizes": [4, 8, 10, 12], "depths": [1, 2, 1, 1], "layer_type": "basic"},
    "mlcd": {"hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 12, "patch_size": 4},
}
ODD = (45, 70)


def case(
    model: str, name: str, head: str, notes: str, size: tuple[int, int] = ODD, store: Store | None = None, **changes: Any
) -> Case:
    config = getattr(transformers, f"{KIN[model]}Config")(**(TINY[model] | changes))
    pixels = {"pixel_values": floats("pixels", (2, getattr(config, "num_channels", 3), *size), -2.0, 2.0)}
    return Case(f"{model}/{name}", KIN[model] + head, config, pixels, notes, store)


def goldens() -> Iterator[Case | VisionTaskCase]:
    for model, prefix in KIN.items():
        if model == "mlcd":
            yield case(model, "base", "Model", "Images that are no squares.", (12, 20))
            yield case(model, "file", "Model", "As save_pretrained writes it.", (16, 12), stores.whole, num_attention_heads=4)
            continue
        yield from backbone(model, prefix, TINY[model], ODD)
    stored = "model.safetensors as save_pretrained writes it."
    yield case("pp_lcnet", "image-classification", CLASSES, "Three classes.", num_labels=3)
    yield case("pp_lcnet", "file", CLASSES, stored, (32, 48), stores.whole, num_labels=3, hidden_act="relu", stem_stride=1)
    yield case("pp_lcnet_v3", "relu", "Backbone", "Another function, one branch of each size.", hidden_act="relu", conv_symmetric_num=1, scale=1.3)
    yield case("pp_lcnet_v4", "small-stem", "Backbone", "A stem of two convolutions.", stem_type="small")
    yield case("pp_lcnet_v4", "affine", "Backbone", "A stem whose activations are scaled and shifted.", use_learnable_affine_block=True, hidden_act="gelu")
    yield case("textnet", "base", "Model", "Two images.")
    yield case("textnet", "image-classification", CLASSES, "Three classes.", (32, 64), num_labels=3)
    yield case("textnet", "file", CLASSES, stored, (32, 64), stores.whole, num_labels=3, stem_act_func="gelu", batch_norm_eps=1e-2)
    bottleneck = {"layer_type": "bottleneck", "hidden_sizes": [8, 12, 16, 20], "downsample_in_first_stage": True, "downsample_in_bottleneck": True}
    yield case("rt_detr_resnet", "bottleneck", "Backbone", "Three convolutions a layer, the first of which downsamples.", **bottleneck, out_indices=[0, 1, 4])
    labels = {index: name for index, name in enumerate(("warp", "weft", "loom", "shuttle"))}
    yield VisionTaskCase(
        "textnet/tasks/image-classification",
        "image-classification",
        f"TextNet{CLASSES}",
        transformers.TextNetConfig(**TINY["textnet"], id2label=labels, label2id={name: index for index, name in labels.items()}),
        transformers.TextNetImageProcessorPil(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}),
        (Call("rgb.png"), Call(["tall.png", "wide.png"], {"top_k": 2})),
        "One picture and several.",
    )
