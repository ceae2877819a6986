"""EoMT: universal segmentation by a vision transformer that takes queries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import EomtImageProcessorPil, PreTrainedConfig, PreTrainedModel

from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.segmentation import universal

MODELS = ("eomt", "eomt_dinov3")


def masking(*probabilities: float) -> Store:
    """`model.safetensors` with these probabilities of masked attention; below 1 the reference draws."""

    def store(model: PreTrainedModel, folder: Path) -> None:
        model.attn_mask_probs.copy_(torch.tensor(probabilities))
        model.save_pretrained(folder)

    return store


def config(prefix: str, **changes: Any) -> PreTrainedConfig:
    sizes = {"hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 2, "image_size": 32, "patch_size": 8}
    queries = {"num_blocks": 2, "num_queries": 5, "num_register_tokens": 2, "num_labels": 3}
    own = {"intermediate_size": 24} if prefix == "EomtDinov3" else {"mlp_ratio": 2}
    return getattr(transformers, f"{prefix}Config")(**(sizes | queries | own | changes))


def goldens() -> Iterator[Case | VisionTaskCase]:
    for model, prefix in (("eomt", "Eomt"), ("eomt_dinov3", "EomtDinov3")):
        yield from family(model, prefix)
        processor = EomtImageProcessorPil(size={"shortest_edge": 32, "longest_edge": 32}, do_pad=True)
        some = {"threshold": 0.02, "mask_threshold": 0.3, "overlap_mask_area_threshold": 0.1}
        yield universal(model, f"{prefix}ForUniversalSegmentation", config(prefix), processor, some, 0.01, store=masking(0.0, 0.0))


def family(model: str, prefix: str) -> Iterator[Case]:
    def one(name: str, notes: str, *probabilities: float, **changes: Any) -> Case:
        made = config(prefix, **changes)
        pixels = {"pixel_values": floats("pixels", (2, 3, made.image_size, made.image_size), -2.0, 2.0)}
        return Case(f"{model}/{name}", f"{prefix}ForUniversalSegmentation", made, pixels, notes, masking(*probabilities))

    yield one("masked", "Queries attend within their masks, in both blocks.", 1.0, 1.0)
    yield one("annealed", "As published: masks are for training.", 0.0, 0.0)
    yield one("kept", "What the first block masks holds in the second and third.", 1.0, 0.0, 0.0, num_blocks=3)
    gated = {"use_gated_mlp": True, "mlp_bias": False, "key_bias": True} if prefix == "EomtDinov3" else {"use_swiglu_ffn": True}
    yield one("gated", "Gated MLPs, one upsampling, a block for each layer.", 1.0, 1.0, 0.0, 1.0, num_blocks=4, num_upscale_blocks=1, hidden_act="relu", **gated)
