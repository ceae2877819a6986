"""Decoders that no table describes: what varies in one follows from the fields of its configuration."""

from __future__ import annotations

from dataclasses import MISSING, fields

import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from weft_reference import specs
from weft_reference.models.decoders.family import LAYERS, WIDE_HEADS, WINDOW, Decoder
from weft_reference.models.decoders.ropes import Changes

LANGUAGE = "ForCausalLM"
# Sizes of mixtures of experts, where the configuration has them: more experts than any token is given to.
EXPERTS: Changes = {
    "num_experts": 5,
    "num_local_experts": 5,
    "moe_num_experts": 5,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "moe_k": 2,
    "moe_intermediate_size": 24,
    "shared_expert_intermediate_size": 40,
    "shared_intermediate_size": 40,
    "n_shared_experts": 2,
    "moe_num_shared_experts": 2,
    "num_shared_experts": 2,
    "n_group": 4,
    "topk_group": 2,
    "routed_scaling_factor": 1.5,
    "first_k_dense_replace": 1,
}
# What decides which layers have experts, and between which experts a token chooses.
MIXED: dict[str, tuple[str, Changes]] = {
    "mlp_only_layers": ("dense-first", {"mlp_only_layers": [0]}),
    "mlp_layer_types": ("mlp-layer-types", {"mlp_layer_types": ["sparse", "dense"]}),
    "decoder_sparse_step": ("every-other", {"decoder_sparse_step": 2}),
    "first_k_dense_replace": ("all-sparse", {"first_k_dense_replace": 0}),
    "moe_layer_start_index": ("all-sparse", {"moe_layer_start_index": 0}),
    "moe_layer_interval": ("every-other", {"moe_layer_start_index": 0, "moe_layer_interval": 2}),
    "shared_intermediate_size": ("none-shared", {"shared_intermediate_size": 0}),
    "moe_num_shared_experts": ("none-shared", {"moe_num_shared_experts": 0}),
    "n_group": ("one-group", {"n_group": 1, "topk_group": 1}),
    "use_sliding_window": ("windows", {"use_sliding_window": True}),
    "use_qk_norm": ("normalised-heads", {"use_qk_norm": True}),
    "clip_qkv": ("clipped", {"clip_qkv": 0.5}),
}


def relatives(known: set[str]) -> tuple[Decoder, ...]:
    """The models with a spec that extends one of the known and that the reference has under the same name."""
    found = specs.relatives(known, specs.parents())
    return tuple(relative(model) for model in found if model in CONFIG_MAPPING_NAMES)


def relative(model: str) -> Decoder:
    """A window where there is one, and a case for each field that turns something on or off."""
    language = MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(model, "")
    if not language.endswith(LANGUAGE):
        raise ValueError(f"the reference's {model} has no class that ends in {LANGUAGE}: describe it in a table")
    config_class = getattr(transformers, CONFIG_MAPPING_NAMES[model])
    defaults = {field.name: field.default for field in fields(config_class) if field.default is not MISSING}
    cases: dict[str, Changes] = {}
    if "sliding_window" in defaults and "None" in str(config_class.__annotations__["sliding_window"]):
        cases["full"] = {"sliding_window": None}
    if "layer_types" in defaults:
        cases["layer-types"] = LAYERS | ({"use_sliding_window": True} if "use_sliding_window" in defaults else {})
    if "head_dim" in defaults:
        cases["wide-heads"] = WIDE_HEADS
    if "norm_topk_prob" in defaults:
        normalised = not defaults["norm_topk_prob"]
        cases["normalised" if normalised else "not-normalised"] = {"norm_topk_prob": normalised}
    cases |= dict(case for field, case in MIXED.items() if field in defaults)
    tied = bool(defaults.get("tie_word_embeddings"))
    cases["untied" if tied else "tied"] = {"tie_word_embeddings": not tied}
    biases = {name: not value for name, value in defaults.items() if name.endswith("_bias") and isinstance(value, bool)}
    if biases:
        cases["biases"] = biases
    sizes = {name: size for name, size in EXPERTS.items() if name in defaults}
    if "n_group" in sizes and "num_experts" in sizes:
        sizes["num_experts"] = 8  # Groups of the same size.
    window = WINDOW if "sliding_window" in defaults else {}
    return Decoder(
        model,
        language.removesuffix(LANGUAGE),
        window | sizes,
        cases,
        config=config_class.__name__.removesuffix("Config"),
    )
