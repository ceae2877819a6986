"""SLANet and SLANeXt: the structure of tables, token by token."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers
from transformers import PreTrainedConfig

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats

MODELS = ("slanet", "slanext")


def slanet(**changes: Any) -> PreTrainedConfig:
    blocks = [
        [[3, 8, 12, 2, False]],
        [[3, 12, 12, 1, False]],
        [[3, 12, 16, 2, False]],
        [[5, 16, 20, 2, True]],
        [[5, 20, 24, 2, True]],
    ]
    kept = {"out_features": ["stage2", "stage3", "stage4", "stage5"]}
    backbone = transformers.PPLCNetConfig(block_configs=blocks, stem_channels=8, divisor=4, reduction=2, **kept)
    # Fewer or more tokens have ends at once, behind which the reference gives nothing.
    sizes = {"post_conv_out_channels": 12, "out_channels": 11, "hidden_size": 10, "max_text_length": 6}
    return transformers.SLANetConfig(**({"backbone_config": backbone, "csp_kernel_size": 3} | sizes | changes))


def slanext(vision: dict[str, Any] | None = None, **changes: Any) -> PreTrainedConfig:
    tower: dict[str, Any] = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2, "mlp_dim": 20}
    tower |= {"image_size": 32, "patch_size": 4, "window_size": 3, "global_attn_indexes": [1], "output_channels": 8}
    made = transformers.models.slanext.SLANeXtVisionConfig(**(tower | (vision or {})))
    sizes = {"post_conv_in_channels": 8, "post_conv_out_channels": 12, "out_channels": 9}
    sizes |= {"hidden_size": 10, "max_text_length": 6}
    return transformers.SLANeXtConfig(**({"vision_config": made} | sizes | changes))


def case(
    name: str, head: str, made: PreTrainedConfig, size: tuple[int, int], notes: str, store: Store | None = None
) -> Case:
    pixels = {"pixel_values": floats("tables", (2, 3, *size), -2.0, 2.0)}
    return Case(name, f"{head}ForTableRecognition", made, pixels, notes, store)


def goldens() -> Iterator[Case]:
    stored = "model.safetensors as save_pretrained writes it."
    yield case("slanet/base", "SLANet", slanet(), (64, 96), "Two tables, seven steps.")
    other = slanet(csp_num_blocks=2, csp_kernel_size=5, hidden_act="relu", max_text_length=3)
    yield case("slanet/blocks", "SLANet", other, (72, 50), "Two layers a stage; maps of odd sizes; four steps.")
    yield case("slanet/file", "SLANet", slanet(), (64, 64), stored, stores.whole)
    yield case("slanext/base", "SLANeXt", slanext(), (32, 32), "Two tables, seven steps; windows that need padding.")
    tower = {"use_rel_pos": False, "use_abs_pos": False, "qkv_bias": False, "hidden_act": "relu"}
    plain = slanext(tower, max_text_length=3)
    yield case("slanext/plain", "SLANeXt", plain, (32, 32), "No positions, no biases; four steps.")
    yield case("slanext/file", "SLANeXt", slanext(), (32, 32), stored, stores.whole)
