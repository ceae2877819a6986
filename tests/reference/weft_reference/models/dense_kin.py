"""Hiera, ViTPose, Prompt Depth Anything and V-JEPA 2."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers
from transformers import PreTrainedConfig

from weft_reference import stores
from weft_reference.backbones import backbone
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.tasks import Call
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.depth import depth
from weft_reference.vision_tasks.made import poses

MODELS = ("hiera", "vitpose_backbone", "vitpose", "prompt_depth_anything", "vjepa2")
ROOTS = MODELS
LABELS = ("warp", "weft", "loom", "shuttle")
HIERA: dict[str, Any] = {
    "embed_dim": 8,
    "image_size": [32, 48],
    "patch_size": [3, 3],
    "patch_stride": [2, 2],
    "patch_padding": [1, 1],
    "mlp_ratio": 2.0,
    "depths": [1, 2, 1],
    "num_heads": [1, 2, 4],
    "num_query_pool": 2,
    "masked_unit_size": [4, 4],
    "masked_unit_attention": [True, False, False],
}
POSE: dict[str, Any] = {"image_size": [32, 24], "patch_size": [8, 8], "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "mlp_ratio": 2}
VIDEO: dict[str, Any] = {
    "patch_size": 4,
    "crop_size": 12,
    "frames_per_clip": 4,
    "hidden_size": 24,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "mlp_ratio": 2.0,
    "num_pooler_layers": 2,
    "pred_hidden_size": 28,
    "pred_num_attention_heads": 2,
    "pred_num_hidden_layers": 2,
    "pred_num_mask_tokens": 3,
    "pred_mlp_ratio": 1.5,
}


def goldens() -> Iterator[Case | VisionTaskCase]:
    yield from hiera()
    yield from vitpose()
    yield from prompt_depth_anything()
    yield from vjepa2()


def pixels(size: tuple[int, int]) -> dict[str, Any]:
    return {"pixel_values": floats("pixels", (2, 3, *size), -2.0, 2.0)}


def hiera() -> Iterator[Case | VisionTaskCase]:
    def one(name: str, head: str, notes: str, store: Store | None = None, **changes: Any) -> Case:
        config = transformers.HieraConfig(**(HIERA | changes))
        size = (config.image_size[0], config.image_size[1])
        return Case(f"hiera/{name}", f"Hiera{head}", config, pixels(size), notes, store)

    classes = "ForImageClassification"
    yield one("base", "Model", "Images that are no squares; attention within mask units in the first stage and while it is pooled.")
    units = {"masked_unit_attention": [True, True, False], "num_query_pool": 1, "hidden_act": "relu", "layer_norm_eps": 1e-2}
    yield one("units", "Model", "Two stages within mask units, one of which pools.", **units)
    yield one("image-classification", classes, "Three classes; stages of other heads and widths.", num_labels=3, embed_dim_multiplier=1.5, num_heads=[2, 3, 3])
    yield one("file", classes, "model.safetensors as save_pretrained writes it.", stores.whole, num_labels=3, image_size=[32, 32])
    yield from backbone("hiera", "Hiera", HIERA, (32, 48))
    named = {"id2label": dict(enumerate(LABELS)), "label2id": {name: index for index, name in enumerate(LABELS)}}
    yield VisionTaskCase(
        "hiera/tasks/image-classification",
        "image-classification",
        f"Hiera{classes}",
        transformers.HieraConfig(**HIERA, **named),
        transformers.BitImageProcessorPil(size={"shortest_edge": 50}, crop_size={"height": 32, "width": 48}),
        (Call("rgb.png"), Call(["tall.png", "wide.png"], {"top_k": 2})),
        "One picture and several.",
    )


def vitpose() -> Iterator[Case | VisionTaskCase]:
    yield from backbone("vitpose_backbone", "VitPose", POSE, (32, 24), config_class="VitPoseBackboneConfig")

    def one(name: str, notes: str, store: Store | None = None, layout: dict[str, Any] | None = None, **changes: Any) -> Case:
        backbone = transformers.VitPoseBackboneConfig(**(POSE | {"out_indices": [3]} | (layout or {})))
        config = transformers.VitPoseConfig(backbone_config=backbone, num_labels=5, **changes)
        return Case(f"vitpose/{name}", "VitPoseForPoseEstimation", config, pixels((32, 24)), notes, store)

    yield one("simple", "Maps made larger by interpolation, of an earlier layer.", layout={"out_indices": [2], "qkv_bias": False})
    yield one("classic", "Two transposed convolutions.", use_simple_decoder=False)
    yield one("file", "model.safetensors as save_pretrained writes it.", stores.whole, scale_factor=2)
    body = transformers.VitPoseConfig(backbone_config=transformers.VitPoseBackboneConfig(**(POSE | {"out_indices": [3]})), num_labels=5)
    body.edges = [[0, 1], [1, 2], [2, 4]]
    processor = transformers.VitPoseImageProcessorPil(size={"height": 32, "width": 24})
    yield poses("vitpose", "VitPoseForPoseEstimation", body, processor, 0.0)


def prompt_depth_anything() -> Iterator[Case | VisionTaskCase]:
    def config(layout: dict[str, Any] | None = None, **changes: Any) -> PreTrainedConfig:
        vit = {"hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 2, "image_size": 28, "patch_size": 7}
        made = transformers.Dinov2Config(**(vit | {"out_indices": [1, 2, 3, 4], "reshape_hidden_states": False} | (layout or {})))
        sizes = {"neck_hidden_sizes": [6, 8, 10, 12], "fusion_hidden_size": 8, "patch_size": 7, "reassemble_hidden_size": 16, "head_hidden_size": 6}
        return transformers.PromptDepthAnythingConfig(backbone_config=made, **(sizes | changes))

    def one(name: str, notes: str, size: tuple[int, int], prompt: tuple[int, int] | None, store: Store | None = None, **changes: Any) -> Case:
        inputs = pixels(size)
        if prompt:
            inputs["prompt_depth"] = floats("depth", (2, 1, *prompt), 0.5, 4.0)
        return Case(f"prompt_depth_anything/{name}", "PromptDepthAnythingForDepthEstimation", config(**changes), inputs, notes, store)

    yield one("prompted", "A depth map of another size.", (28, 28), (6, 8))
    yield one("wide", "Pictures of other and odd rows and columns; metres.", (23, 50), (30, 70), depth_estimation_type="metric")
    yield one("unprompted", "No depth map.", (28, 35), None)
    yield one("file", "model.safetensors as save_pretrained writes it.", (28, 28), (4, 4), stores.whole)
    processor = transformers.DPTImageProcessorPil(size={"height": 28, "width": 28}, keep_aspect_ratio=True, ensure_multiple_of=7)
    yield depth("prompt_depth_anything", "PromptDepthAnythingForDepthEstimation", config(), processor)


def vjepa2() -> Iterator[Case]:
    def one(name: str, head: str, notes: str, store: Store | None = None, **changes: Any) -> Case:
        made = transformers.VJEPA2Config(**(VIDEO | changes))
        shape = (2, made.frames_per_clip, made.in_chans, made.crop_size, made.crop_size)
        return Case(f"vjepa2/{name}", f"VJEPA2{head}", made, {"pixel_values_videos": floats("video", shape, -2.0, 2.0)}, notes, store)

    yield one("base", "Model", "Two videos; heads that turn as a whole, and but for two elements in the predictor.")
    other = {"qkv_bias": False, "hidden_act": "relu", "layer_norm_eps": 1e-2, "tubelet_size": 1, "pred_num_mask_tokens": 1}
    yield one("single-frames", "Model", "Tubelets of one frame, one mask token.", frames_per_clip=3, **other)
    yield one("video-classification", "ForVideoClassification", "Three classes.", num_labels=3)
    yield one("file", "ForVideoClassification", "model.safetensors as save_pretrained writes it.", stores.whole, num_labels=3)
