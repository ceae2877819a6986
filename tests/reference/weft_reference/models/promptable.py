"""Segmentation of what points, boxes and masks stand for: SAM, SAM-HQ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import transformers
from transformers import PreTrainedConfig

from weft_reference import stores
from weft_reference.cases import Case, Inputs, Store
from weft_reference.inputs import floats
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.masks import prompted

MODELS = ("sam", "sam_hq")
# Of two images, each with three prompts of two points: on the object, beside it, none, padding.
LABELS = np.array([[[1, 0], [1, 1], [0, -1]], [[1, -10], [0, 0], [-1, -10]]], np.int64)


def config(prefix: str, vision: dict[str, Any] | None = None, decoder: dict[str, Any] | None = None, size: int = 48) -> PreTrainedConfig:
    """Tiny: six by six patches, whose windows of four need padding."""
    sizes = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 2, "image_size": size, "patch_size": 8}
    windows = {"window_size": 4, "global_attn_indexes": [1], "output_channels": 16, "num_pos_feats": 8}
    prompts = {"hidden_size": 16, "image_size": size, "patch_size": 8, "mask_input_channels": 8}
    masks = {"hidden_size": 16, "mlp_dim": 20, "num_attention_heads": 2, "iou_head_hidden_dim": 12}
    masks |= {"vit_dim": (vision or {}).get("hidden_size", 24)} if prefix == "SamHQ" else {}
    return getattr(transformers, f"{prefix}Config")(
        vision_config=sizes | windows | (vision or {}),
        prompt_encoder_config=prompts,
        mask_decoder_config=masks | (decoder or {}),
    )


def points(size: int = 48) -> Inputs:
    return {"input_points": floats("points", (2, 3, 2, 2), 0.0, size), "input_labels": LABELS}


def boxes(size: int = 48) -> Inputs:
    return {"input_boxes": floats("boxes", (2, 3, 4), 0.0, size)}


def pixels(size: int = 48) -> Inputs:
    return {"pixel_values": floats("pixels", (2, 3, size, size), -2.0, 2.0)}


def goldens() -> Iterator[Case | VisionTaskCase]:
    for model, prefix in (("sam", "Sam"), ("sam_hq", "SamHQ")):
        yield from family(model, prefix)


def family(model: str, prefix: str) -> Iterator[Case | VisionTaskCase]:
    def one(name: str, notes: str, prompts: Inputs, store: Store | None = None, **changes: Any) -> Case:
        made = config(prefix, **changes)
        size = made.vision_config.image_size
        return Case(f"{model}/{name}", f"{prefix}Model", made, {**pixels(size), **prompts}, notes, store)

    masks = {"input_masks": floats("masks", (2, 1, 24, 24), -8.0, 8.0)}
    unlabelled = {"input_points": floats("one", (2, 1, 3, 2), 0.0, 48.0)}
    yield one("points", "Points on the object and beside it, none and padding; three prompts of each image.", points())
    yield one("boxes", "A box for each prompt; larger attention, all positions given.", boxes())
    yield one("points-boxes", "Points and a box for each prompt.", {**points(), **boxes()})
    yield one("masks", "A mask, and points without labels.", {**masks, **unlabelled})
    yield one("nothing", "No prompt: the decoder's own tokens alone.", {})
    plain = {"use_rel_pos": False, "use_abs_pos": False, "qkv_bias": False, "mlp_dim": 30, "hidden_act": "relu"}
    yield one("plain", "No position embeddings, no biases; all layers global.", boxes(), vision=plain | {"window_size": 0})
    deep = {"num_hidden_layers": 1, "iou_head_depth": 4, "num_multimask_outputs": 2, "attention_downsample_rate": 1, "hidden_act": "gelu"}
    yield one("other-decoder", "Two masks of one layer; windows of whole numbers, none global.", points(32), size=32, vision={"window_size": 2, "global_attn_indexes": []}, decoder=deep)
    yield one("file", "model.safetensors as save_pretrained writes it.", {**points(), **boxes()}, stores.whole)
    processor = transformers.SamImageProcessorPil(size={"longest_edge": 48}, pad_size={"height": 48, "width": 48})
    thresholds = (0.0, 0.05, -0.02, 0.08) if prefix == "SamHQ" else (-0.1, 0.05, 0.05, 0.07)
    yield prompted(model, f"{prefix}Model", config(prefix), processor, thresholds)
