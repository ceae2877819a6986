"""Nemotron-H Omni: RADIO over images of any size as one list of patches, before Nemotron-H."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
import transformers
from transformers import PreTrainedConfig

from weft_reference import stores
from weft_reference.cases import Case
from weft_reference.inputs import floats
from weft_reference.models.llava import IMAGE
from weft_reference.models.vision_language.family import TEXT, Changes, Family, Images

GRIDS = ([2, 4], [6, 2], [4, 4], [2, 2])
TOWER: Changes = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "mlp_ratio": 1.5,
    "patch_size": 4,
    "max_img_size": 12,
    "num_cls_tokens": 2,
    "num_registers": 1,
    "summary_idxs": [0],
    "video_temporal_patch_size": 2,
}
HYBRID: Changes = {
    "model_type": "nemotron_h",
    "num_hidden_layers": 4,
    "layers_block_type": ["linear_attention", "moe", "full_attention", "mlp"],
    "head_dim": 6,
    "mamba_num_heads": 4,
    "mamba_head_dim": 5,
    "ssm_state_size": 6,
    "n_groups": 2,
    "chunk_size": 8,
    "n_routed_experts": 5,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 24,
    "moe_shared_expert_intermediate_size": 20,
}


def patched(config: PreTrainedConfig, counts: list[int], key: str) -> Images:
    """Patches of images of several grids, row after row."""
    grids = np.array([GRIDS[image % len(GRIDS)] for image in range(sum(counts))], np.int64)
    vision = config.vision_config
    values = vision.num_channels * vision.patch_size**2
    pixels = floats(f"pixels.{key}", (int(grids.prod(1).sum()), values), -2.0, 2.0)
    return Images({"pixel_values": pixels, "image_grid_hw": grids}, [int(grid.prod()) // 4 for grid in grids])


def vary(rng: Random, config: PreTrainedConfig) -> Changes:
    width = config.vision_config.hidden_size
    vision = {
        "use_swiglu_ffn": rng.random() < 0.5,
        "qkv_bias": rng.random() < 0.5,
        "num_registers": rng.randint(0, 3),
        "max_img_size": 4 * rng.randint(1, 6),
    }
    return {"vision": vision, "vision_hidden_size": width, "projector_hidden_size": rng.randint(9, 40)}


@dataclass(frozen=True)
class Omni(Family):
    """Its configuration has a name of another form, and its files hold queries, keys and values of the vision model as one tensor."""

    def config(self, text: Changes | None = None, vision: Changes | None = None, **changes: Any) -> PreTrainedConfig:
        return getattr(transformers, f"{self.prefix}_Config")(
            text_config=TEXT | self.text | (text or {}),
            vision_config=self.vision | (vision or {}),
            **(self.changes | changes),
        )

    def goldens(self) -> Iterator[Case]:
        for case in super().goldens():
            yield replace(case, store=stores.whole)


RADIO = (
    Omni(
        "nemotron_h_omni",
        "NemotronH_Omni_Reasoning_V3",
        HYBRID,
        TOWER,
        {"image_token_id": IMAGE, "audio_token_id": 72, "vision_hidden_size": 16, "projector_hidden_size": 14, "audio_config": None},
        patched,
        {
            "gated": ("The vision model has gated MLPs and no biases of queries.", {"vision": {"use_swiglu_ffn": True, "qkv_bias": False}}),
            "large": ("As many positions as no image has.", {"vision": {"max_img_size": 36}}),
        },
        vary=vary,
        heads=("",),
    ),
)
