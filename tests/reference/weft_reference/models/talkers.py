"""Decoders of Qwen3-Omni's talker, which read embeddings: of text and codes, and of the codes of a frame."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import transformers

from weft_reference import stores
from weft_reference.cases import Case
from weft_reference.inputs import floats

Changes = dict[str, Any]
TEXT, CODES = "qwen3_omni_moe_talker_text", "qwen3_omni_moe_talker_code_predictor"
MODELS = ROOTS = (TEXT, CODES)
CONFIGS = {TEXT: "Qwen3OmniMoeTalkerTextConfig", CODES: "Qwen3OmniMoeTalkerCodePredictorConfig"}
BASE = {TEXT: "Qwen3OmniMoeTalkerModel", CODES: "Qwen3OmniMoeTalkerCodePredictorModel"}
HEADED = "Qwen3OmniMoeTalkerCodePredictorModelForConditionalGeneration"
TINY: Changes = {
    "vocab_size": 61,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
OWN: dict[str, Changes] = {
    TEXT: {
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 12,
        "shared_expert_intermediate_size": 10,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1000.0, "mrope_section": [2, 1, 1]},
    },
    CODES: {"intermediate_size": 24, "head_dim": 6, "num_code_groups": 5},
}


def case(
    model: str,
    name: str,
    notes: str,
    length: int = 9,
    padding: str = "right",
    head: str | None = None,
    store: Any = None,
    path: str | None = None,
    **changes: Any,
) -> Case:
    config = getattr(transformers, CONFIGS[model])(**(TINY | OWN[model] | changes))
    embeds = floats(f"embeds.{name}", (2, length, config.hidden_size), -1.0, 1.0)
    mask = np.ones((2, length), np.int64)
    if padding == "right":
        mask[1, length - 3 :] = 0
    elif padding == "left":
        mask[1, :3] = 0
    inputs = {"inputs_embeds": embeds, "attention_mask": mask}
    without = ("generation_steps", "router_logits")
    return Case(path or f"{model}/{name}", head or BASE[model], config, inputs, notes, store, without=without)


def goldens() -> Iterator[Case]:
    for model in MODELS:
        yield case(model, "base", "Two sequences, the second padded on the right.")
        yield case(model, "left-padding", "The second sequence is padded on the left.", padding="left")
        yield case(model, "bias", "Biases of attention.", attention_bias=True, num_key_value_heads=4)
    yield case(TEXT, "normalised", "Routing weights that sum to 1.", norm_topk_prob=True, num_experts_per_tok=3)
    yield case(TEXT, "file", "model.safetensors as save_pretrained writes it.", store=stores.whole)
    for length in (2, 5):
        notes = f"The head of the codebook after {length - 1} others."
        yield case(CODES, f"codebook-{length - 1}", notes, length, "none", HEADED)
    yield case(CODES, "file", "model.safetensors as save_pretrained writes it.", 3, "none", HEADED, stores.whole)


def random_case(model: str, rng: Random, path: str) -> Case:
    heads, groups = rng.choice((2, 4)), rng.choice((1, 2))
    changes: Changes = {
        "hidden_size": heads * 8,
        "num_attention_heads": heads,
        "num_key_value_heads": heads // groups,
        "num_hidden_layers": rng.randint(1, 4),
        "attention_bias": rng.random() < 0.3,
    }
    if model == TEXT:
        changes |= {"num_experts": rng.randint(3, 7), "norm_topk_prob": rng.random() < 0.5}
        length, head = rng.randint(4, 12), BASE[TEXT]
    else:
        changes |= {"num_code_groups": rng.randint(3, 9)}
        length, head = rng.randint(2, changes["num_code_groups"]), HEADED
    padding = rng.choice(("left", "right")) if length > 4 else "none"
    return case(model, "random", "Drawn at random.", length, padding, head, stores.whole, path, **changes)


DRAWN = {model: lambda rng, path, model=model: random_case(model, rng, path) for model in MODELS}
