"""PP-OCR: text detection and text recognition of two generations on PP-LCNet and HGNet V2."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import PreTrainedConfig, PreTrainedModel

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.text_images import detection, recognition

DETECTORS = {
    "pp_ocrv5_mobile_det": "PPOCRV5MobileDet",
    "pp_ocrv5_server_det": "PPOCRV5ServerDet",
    "pp_ocrv6_small_det": "PPOCRV6SmallDet",
    "pp_ocrv6_medium_det": "PPOCRV6MediumDet",
}
RECOGNISERS = {
    "pp_ocrv5_mobile_rec": "PPOCRV5MobileRec",
    "pp_ocrv5_server_rec": "PPOCRV5ServerRec",
    "pp_ocrv6_small_rec": "PPOCRV6SmallRec",
    "pp_ocrv6_tiny_rec": "PPOCRV6TinyRec",
}
KIN = DETECTORS | RECOGNISERS
MODELS = tuple(KIN)
ROOTS = MODELS
STAGES = ["stage1", "stage2", "stage3", "stage4"]
WINDOWS = {
    f"{kind}_{size}ratio": value(kernel)
    for size, kernel in (("long", 7), ("mid", 5), ("short", 3))
    for kind, value in (
        ("vertical_long_to_small_conv", lambda k: [[k, 1], [1, 1], [k // 2, 0]]),
        ("horizontal_small_to_long_conv", lambda k: [[1, k], [1, 1], [0, k // 2]]),
        ("symmetric_conv_long", lambda k: [[k, k], [1, 1], [k // 2, k // 2]]),
    )
}


def v3(strides: list[Any], **changes: Any) -> PreTrainedConfig:
    """PP-LCNetV3 of five stages with these strides."""
    widths = [8, 8, 12, 12, 16, 16]
    blocks = [[[3 + 2 * (stage % 2), widths[stage], widths[stage + 1], stride, stage % 2 == 1]] for stage, stride in enumerate(strides)]
    return transformers.PPLCNetV3Config(block_configs=blocks, stem_channels=8, divisor=4, reduction=2, conv_symmetric_num=2, **changes)


def v4(strides: list[Any], **changes: Any) -> PreTrainedConfig:
    """PP-LCNetV4 of four stages with these strides."""
    widths = [6, 6, 8, 10, 12]
    blocks = [[[3, widths[stage], widths[stage + 1], stride, stage % 2 == 1]] for stage, stride in enumerate(strides)]
    return transformers.PPLCNetV4Config(block_configs=blocks, stem_channels=[3, 4, 6], reduction=2, **changes)


def hgnet(**changes: Any) -> PreTrainedConfig:
    return transformers.HGNetV2Config(
        stem_channels=[3, 4, 6],
        stage_in_channels=[6, 8, 10, 12],
        stage_mid_channels=[4, 6, 6, 8],
        stage_out_channels=[8, 10, 12, 16],
        stage_num_blocks=[1, 1, 1, 1],
        stage_light_block=[False, True, False, True],
        stage_kernel_size=[3, 5, 3, 3],
        stage_numb_of_layers=[2, 1, 1, 2],
        depths=[1, 1, 1, 1],
        hidden_sizes=[8, 10, 12, 16],
        embedding_size=6,
        **({"out_features": STAGES} | changes),
    )


def backbone(model: str) -> PreTrainedConfig:
    match model:
        case "pp_ocrv5_mobile_det":
            return v3([1, 2, 2, 2, 2], out_features=["stage2", "stage3", "stage4", "stage5"])
        case "pp_ocrv5_mobile_rec":
            return v3([1, [2, 1], [2, 1], [1, 2], [2, 1]])
        case "pp_ocrv5_server_det":
            return hgnet()
        case "pp_ocrv5_server_rec":
            strides = [[2, 1], [1, 2], [2, 1], [2, 1]]
            return hgnet(stem_strides=[2, 1, 1, 1, 1], stage_downsample=[True] * 4, stage_downsample_strides=strides)
        case "pp_ocrv6_small_det" | "pp_ocrv6_medium_det":
            return v4([1, 2, 2, 2], out_features=STAGES)
        case _:
            return v4([1, 1, [2, 1], [2, 1]])


def config(model: str, **changes: Any) -> PreTrainedConfig:
    if model in RECOGNISERS:
        made: dict[str, Any] = {"hidden_size": 12, "head_out_channels": 7}
        if model != "pp_ocrv6_tiny_rec":
            made |= {"num_attention_heads": 3, "depth": 2}
    elif model in ("pp_ocrv5_mobile_det", "pp_ocrv6_small_det"):
        widths = [4, 6, 8, 10] if model == "pp_ocrv5_mobile_det" else [6, 8, 10, 12]
        made = {"reduction": 2, "neck_out_channels": 16, "layer_list_out_channels": widths}
        made |= {"dilated_kernel_size": 5} if model == "pp_ocrv6_small_det" else {}
    else:
        blocks = WINDOWS | {"reduce_channel": [1, 1, 0], "return_channel": [1, 1, 0]}
        made = {"neck_out_channels": 16, "intraclass_block_config": blocks, "scale_factor_list": [1, 2, 4, 8], "kernel_list": [3, 2, 2]}
    return getattr(transformers, f"{KIN[model]}Config")(**({"backbone_config": backbone(model)} | made | changes))


def case(model: str, name: str, notes: str, size: tuple[int, int], store: Store | None = None, **changes: Any) -> Case:
    head = "ForTextRecognition" if model in RECOGNISERS else "ForObjectDetection"
    pixels = {"pixel_values": floats("pixels", (2, 3, *size), -2.0, 2.0)}
    return Case(f"{model}/{name}", KIN[model] + head, config(model, **changes), pixels, notes, store)


def scaled(share: float) -> Store:
    """As save_pretrained writes it, with logits of the last convolution that a sigmoid tells apart."""

    def store(model: PreTrainedModel, folder: Path) -> None:
        head = getattr(model.head, "binarize_head", model.head)
        with torch.no_grad():
            head.conv_final.weight.mul_(share)
        model.save_pretrained(folder)

    return store


calmed = scaled(1e-4)


def goldens() -> Iterator[Case | VisionTaskCase]:
    # Rectangles around random maps hang on last bits more often than not; those of this one do not.
    small, options = "pp_ocrv6_small_det", {"threshold": 0.5436, "box_threshold": 0.5486, "min_size": 2}
    yield detection(small, f"{KIN[small]}ForObjectDetection", config(small), options, scaled(1e-2))
    for model in RECOGNISERS:
        yield recognition(model, f"{KIN[model]}ForTextRecognition", config(model), "v6" in model)
    stored = "model.safetensors as save_pretrained writes it."
    for model in DETECTORS:
        yield case(model, "file", f"Two images; {stored}", (64, 96), calmed)
        yield case(model, "bilinear", "Maps are made larger by bilinear interpolation.", (32, 64), calmed, interpolate_mode="bilinear")
    for model in RECOGNISERS:
        yield case(model, "base", "Two lines.", (48, 80))
        if model != "pp_ocrv6_tiny_rec":
            plain = {"qkv_bias": False, "hidden_act": "gelu", "mlp_ratio": 1.5, "conv_kernel_size": [1, 5], "layer_norm_eps": 1e-2}
            yield case(model, "no-bias", "No biases of queries, keys and values; another function.", (48, 68), **plain)
        yield case(model, "file", stored, (48, 64), stores.whole)
