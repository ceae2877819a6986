"""PE Video: the Perception Encoder of timm frame by frame, a transformer over frames, and ModernBERT."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import transformers
from transformers import PreTrainedConfig

from weft_reference import stores, timm_networks
from weft_reference.cases import Case, Inputs, Store
from weft_reference.inputs import floats, text_batch

MODELS = ("pe_video",)
EDGE = 16


def video(arguments: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Four by four patches, pooled by two heads."""
    timm_networks.load()
    network = {"embed_dim": 16, "depth": 2, "num_heads": 2, "patch_size": 4, "img_size": [EDGE, EDGE], "ref_feat_shape": [6, 6]}
    network |= {"mlp_ratio": 1.5, "attn_pool_num_heads": 2, "attn_pool_mlp_ratio": 2.0}
    vision = {"architecture": "vit_pe_core_large_patch14_336", "model_args": network | (arguments or {})}
    sizes = {"hidden_size": 24, "intermediate_size": 36, "num_hidden_layers": 2, "num_attention_heads": 3, "head_dim": 8}
    return sizes | {"vision_config": vision} | changes


def config(text: dict[str, Any] | None = None, arguments: dict[str, Any] | None = None, **changes: Any) -> PreTrainedConfig:
    small = {"vocab_size": 99, "hidden_size": 16, "intermediate_size": 20, "num_hidden_layers": 4, "num_attention_heads": 2}
    small |= {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2, "local_attention": 4}
    return transformers.PeVideoConfig(
        text_config={"model_type": "modernbert", **small, **(text or {})}, video_config=video(arguments, **changes)
    )


def videos(key: str, frames: int = 4, padded: bool = True, count: int = 2) -> Inputs:
    """The last video has one frame less."""
    given = {"pixel_values_videos": floats(f"videos.{key}", (count, frames, 3, EDGE, EDGE), -2.0, 2.0)}
    if padded:
        given["padding_mask_videos"] = np.ones((count, frames), np.int64)
        given["padding_mask_videos"][-1, frames - 1 :] = 0
    return given


def goldens() -> Iterator[Case]:
    def one(name: str, notes: str, given: Inputs, store: Store | None = None, lengths: tuple[int, int] = (7, 5), **changes: Any) -> Case:
        texts = text_batch(99, lengths, "right", key=name)
        del texts["token_type_ids"]
        return Case(f"pe_video/{name}", "PeVideoModel", config(**changes), {**texts, **given}, notes, store)

    yield one("base", "Two videos, the second shorter, and two texts, the second padded.", videos("base"))
    yield one("whole", "No padding of videos.", videos("whole", 3, padded=False), lengths=(6, 6))
    other = {"num_key_value_heads": 1, "num_attention_heads": 2, "attention_bias": True, "hidden_act": "gelu", "rms_norm_eps": 0.01}
    other |= {"rope_parameters": {"rope_type": "default", "rope_theta": 100.0}}
    network = {"init_values": 0.1, "attn_pool_num_heads": 4, "ref_feat_shape": [4, 4]}
    yield one("other", "Shared keys and values, biases; scaled layers.", videos("other"), arguments=network, **other)
    yield one("file", "model.safetensors as save_pretrained writes it.", videos("file"), stores.whole)
