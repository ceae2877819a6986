"""SAM 2: Hiera, a feature pyramid on it, and masks of what points, boxes and masks stand for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers
from transformers import PreTrainedConfig

from weft_reference import stores
from weft_reference.cases import Case, Inputs, Store
from weft_reference.inputs import floats
from weft_reference.models.promptable import boxes, points

MODELS = ("sam2_hiera_det_model", "sam2_vision_model", "sam2")


def hiera(**changes: Any) -> PreTrainedConfig:
    """Four stages of 24, 12, 6 and 3 rows and columns, whose windows need padding."""
    widths = {"hidden_size": 8, "image_size": [96, 96], "window_positional_embedding_background_size": [5, 7], "mlp_ratio": 2.0}
    stages = {"blocks_per_stage": [1, 2, 2, 1], "embed_dim_per_stage": [8, 12, 16, 24], "num_attention_heads_per_stage": [1, 2, 2, 4]}
    windows = {"window_size_per_stage": [8, 4, 4, 2], "global_attention_blocks": [4]}
    return transformers.Sam2HieraDetConfig(**(widths | stages | windows | changes))


def pixels(config: PreTrainedConfig) -> Inputs:
    return {"pixel_values": floats("pixels", (2, 3, *config.image_size), -2.0, 2.0)}


def goldens() -> Iterator[Case]:
    def one(name: str, notes: str, store: Store | None = None, **changes: Any) -> Case:
        config = hiera(**changes)
        return Case(f"sam2_hiera_det_model/{name}", "Sam2HieraDetModel", config, pixels(config), notes, store)

    yield one("base", "Four stages, of which three pool; a global block.")
    other = {"num_query_pool_stages": 1, "hidden_act": "relu", "layer_norm_eps": 0.01, "window_size_per_stage": [4, 6, 4, 4]}
    yield one("one-pool", "One stage pools; images wider than high.", image_size=[64, 96], patch_kernel_size=[4, 4], patch_padding=[0, 0], **other)
    yield one("file", "model.safetensors as save_pretrained writes it.", stores.whole)
    yield from vision()


def encoder(backbone: PreTrainedConfig, **changes: Any) -> PreTrainedConfig:
    maps = {"fpn_hidden_size": 16, "backbone_channel_list": [24, 16, 12, 8], "backbone_feature_sizes": [[24, 24], [12, 12], [6, 6]]}
    return transformers.Sam2VisionConfig(backbone_config=backbone, **(maps | changes))


def vision() -> Iterator[Case]:
    def one(name: str, notes: str, store: Store | None = None, **changes: Any) -> Case:
        config = encoder(hiera(), **changes)
        return Case(f"sam2_vision_model/{name}", "Sam2VisionModel", config, pixels(config.backbone_config), notes, store)

    yield one("base", "Three of four maps, the second of which has one added.")
    other = {"fpn_top_down_levels": [0, 1, 2], "num_feature_levels": 4, "fpn_kernel_size": 3, "fpn_padding": 1}
    yield one("all-levels", "All maps, each with the one above it; larger windows.", **other)
    yield one("file", "model.safetensors as save_pretrained writes it.", stores.whole)
    yield from segmentation()


def prompted(prefix: str, vision: PreTrainedConfig, size: int, patch: int, decoder: dict[str, Any] | None = None) -> PreTrainedConfig:
    """Prompts and a mask decoder on an image encoder whose maps have 16 channels."""
    prompts = {"hidden_size": 16, "image_size": size, "patch_size": patch, "mask_input_channels": 8}
    masks = {"hidden_size": 16, "mlp_dim": 20, "num_attention_heads": 2, "iou_head_hidden_dim": 12}
    return getattr(transformers, f"{prefix}Config")(
        vision_config=vision, prompt_encoder_config=prompts, mask_decoder_config=masks | (decoder or {})
    )


def prompt_cases(model: str, prefix: str, make: Any, size: int, patch: int) -> Iterator[Case]:
    """Each kind of prompt; `make` gives a configuration with changes of its decoder."""

    def one(name: str, notes: str, given: Inputs, store: Store | None = None, **decoder: Any) -> Case:
        image = {"pixel_values": floats("pixels", (2, 3, size, size), -2.0, 2.0)}
        return Case(f"{model}/{name}", f"{prefix}Model", make(**decoder), {**image, **given}, notes, store)

    edge = 4 * size // patch
    masks = {"input_masks": floats("masks", (2, 1, edge, edge), -8.0, 8.0)}
    unlabelled = {"input_points": floats("one", (2, 1, 3, 2), 0.0, size)}
    yield one("points", "Points on the object and beside it, none and padding; three prompts of each image.", points(size))
    yield one("boxes", "A box for each prompt.", boxes(size))
    yield one("points-boxes", "Points and a box for each prompt.", {**points(size), **boxes(size)})
    yield one("masks", "A mask, and points without labels.", {**masks, **unlabelled})
    yield one("nothing", "No prompt: a point that is none.", {})
    deep = {"iou_head_depth": 4, "num_multimask_outputs": 2, "attention_downsample_rate": 1}
    yield one("other-decoder", "Two masks; attention between tokens and image as wide as they.", points(size), **deep)
    yield one("file", "model.safetensors as save_pretrained writes it.", {**points(size), **boxes(size)}, stores.whole)


def segmentation() -> Iterator[Case]:
    def make(**decoder: Any) -> PreTrainedConfig:
        return prompted("Sam2", encoder(hiera(), backbone_feature_sizes=[[24, 24], [12, 12], [6, 6]]), 96, 16, decoder)

    yield from prompt_cases("sam2", "Sam2", make, 96, 16)
