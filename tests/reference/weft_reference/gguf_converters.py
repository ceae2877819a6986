"""How llama.cpp's `convert_hf_to_gguf.py` converts each architecture: metadata by fields of the configuration, and what it does to tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray


class Change(NamedTuple):
    """What the converter does to a tensor, and its inverse."""

    there: Callable[[Array, Any], Array]
    back: Callable[[Array, Any], Array]


class Split(NamedTuple):
    """What the converter makes of one tensor: others, by their names in files, in which `{}` is the number of a layer; and its inverse."""

    names: tuple[str, ...]
    there: Callable[[Array, Any], list[Array]]
    back: Callable[[list[Array], Any], Array]


def _rotary(heads: Callable[[Any], int]) -> Change:
    def there(w: Array, c: Any) -> Array:
        return w.reshape(heads(c), 2, w.shape[0] // heads(c) // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)

    def back(w: Array, c: Any) -> Array:
        return w.reshape(heads(c), w.shape[0] // heads(c) // 2, 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)

    return Change(there, back)


def _groups(c: Any) -> tuple[int, int]:
    """How many key heads there are, and how many query heads share one."""
    heads, kv = c.num_attention_heads, c.num_attention_heads
    if c.model_type == "falcon":
        kv = c.num_kv_heads if c.new_decoder_architecture else 1 if c.multi_query else kv
    return kv, heads // kv


def _split(w: Array, c: Any) -> Array:
    kv, queries = _groups(c)
    grouped = w.reshape(kv, queries + 2, -1, *w.shape[1:])
    parts = (grouped[:, :queries], grouped[:, queries:-1], grouped[:, -1:])
    return np.concatenate([part.reshape(-1, *w.shape[1:]) for part in parts])


def _interleave(w: Array, c: Any) -> Array:
    kv, queries = _groups(c)
    width = w.shape[0] // kv // (queries + 2)
    parts = np.split(w, [kv * queries * width, kv * (queries + 1) * width])
    grouped = [part.reshape(kv, -1, width, *w.shape[1:]) for part in parts]
    return np.concatenate(grouped, 1).reshape(w.shape)


def _turned(w: Array) -> Array:
    return w.swapaxes(-1, -2)


def _halves(w: Array, _config: Any) -> list[Array]:
    return np.split(w, 2, axis=-2)


def _joined(parts: list[Array], _config: Any) -> Array:
    return np.concatenate(parts, axis=-2)


def _alternating(parts: list[Array]) -> Array:
    return np.stack(parts, -1).reshape(*parts[0].shape[:-1], -1)


def _keys_values(w: Array, c: Any) -> list[Array]:
    by_head = w.reshape(c.num_attention_heads, -1, c.kv_lora_rank)
    return [_turned(by_head[:, : c.qk_nope_head_dim]), by_head[:, c.qk_nope_head_dim :]]


def _latent(parts: list[Array], c: Any) -> Array:
    return np.concatenate([_turned(parts[0]), parts[1]], 1).reshape(-1, c.kv_lora_rank)


def _same(name: str) -> Split:
    return Split((name,), lambda w, _: [w], lambda parts, _: parts[0])


GATE_UP = tuple(f"blk.{{}}.ffn_{part}_exps" for part in ("gate", "up"))
GATE_UP_WEIGHT = tuple(f"{name}.weight" for name in GATE_UP)
ROTARY = {
    r"q_proj\.(weight|bias)$": _rotary(lambda c: c.num_attention_heads),
    r"k_proj\.(weight|bias)$": _rotary(lambda c: c.num_key_value_heads),
}
PLUS_ONE = {r"norm\.weight$": Change(lambda w, _: w + 1, lambda w, _: w - 1)}
TRANSPOSED = {r"(c_attn|c_fc|c_proj)\.weight$": Change(lambda w, _: w.T, lambda w, _: w.T)}
SPLIT = {r"query_key_value\.(weight|bias)$": Change(_split, _interleave)}
FLAT = {r"shared_expert_gate\.weight$": Change(lambda w, _: w[0], lambda w, _: w[None])}
SQUEEZED = {r"conv(1d)?\.weight$": Change(lambda w, _: w[:, 0], lambda w, _: w[:, None])}
DECAY = {r"A_log$": Change(lambda w, _: -np.exp(w), lambda w, _: np.log(-w))}
DECAY_COLUMN = {r"A_log$": Change(lambda w, _: -np.exp(w)[:, None], lambda w, _: np.log(-w)[:, 0])}
COLUMN = {r"(mixer|mamba)\.D$": Change(lambda w, _: w[:, None], lambda w, _: w[:, 0])}
GROUPED_NORM = {
    r"(mixer|mamba)\.norm\.weight$": Change(
        lambda w, c: w.reshape(getattr(c, "mamba_n_groups", 0) or c.n_groups, -1), lambda w, _: w.reshape(-1)
    )
}

GPT_OSS_SPLITS = {
    r"experts\.gate_up_proj$": Split(
        GATE_UP_WEIGHT,
        lambda w, _: [_turned(w[..., part::2]) for part in (0, 1)],
        lambda parts, _: _alternating([_turned(part) for part in parts]),
    ),
    r"experts\.gate_up_proj_bias$": Split(
        tuple(f"{name}.bias" for name in GATE_UP),
        lambda w, _: [w[..., part::2] for part in (0, 1)],
        lambda parts, _: _alternating(parts),
    ),
    r"experts\.down_proj$": Split(
        ("blk.{}.ffn_down_exps.weight",), lambda w, _: [_turned(w)], lambda parts, _: _turned(parts[0])
    ),
    r"experts\.down_proj_bias$": _same("blk.{}.ffn_down_exps.bias"),
    r"self_attn\.sinks$": _same("blk.{}.attn_sinks.weight"),
}
GRANITE_SPLITS = {
    r"block_sparse_moe\.input_linear\.weight$": Split(GATE_UP_WEIGHT, _halves, _joined),
    r"shared_mlp\.input_linear\.weight$": Split(
        ("blk.{}.ffn_gate_shexp.weight", "blk.{}.ffn_up_shexp.weight"), _halves, _joined
    ),
}
LATENT_SPLITS = {
    r"kv_b_proj\.weight$": Split(("blk.{}.attn_k_b.weight", "blk.{}.attn_v_b.weight"), _keys_values, _latent)
}


def _hybrid_splits(c: Any) -> dict[str, Split]:
    """Granite's; without experts, the shared one is the MLP."""
    if c.num_local_experts:
        return GRANITE_SPLITS
    names = ("blk.{}.ffn_gate.weight", "blk.{}.ffn_up.weight")
    return {
        r"shared_mlp\.input_linear\.weight$": Split(names, _halves, _joined),
        r"shared_mlp\.output_linear\.weight$": _same("blk.{}.ffn_down.weight"),
    }


def _by_kind(w: Array, c: Any) -> list[Array]:
    """Queries, keys and values of all heads, and their gates, of those by key head."""
    key, heads = c.linear_key_head_dim, c.linear_num_key_heads
    grouped = w.reshape(heads, -1, w.shape[-1])
    shared = (grouped.shape[1] - 2 * key) // 2
    bounds = (0, key, 2 * key, 2 * key + shared, 2 * (key + shared))
    kinds = [grouped[:, first:last].reshape(-1, w.shape[-1]) for first, last in zip(bounds, bounds[1:], strict=False)]
    return [np.concatenate(kinds[:3]), kinds[3]]


def _by_key_head(parts: list[Array], c: Any) -> Array:
    keys = c.linear_key_head_dim * c.linear_num_key_heads
    kinds = [*np.split(parts[0], [keys, 2 * keys]), parts[1]]
    grouped = [kind.reshape(c.linear_num_key_heads, -1, kind.shape[-1]) for kind in kinds]
    return np.concatenate(grouped, 1).reshape(-1, parts[0].shape[-1])


DELTA_SPLITS = {
    r"in_proj_qkvz\.weight$": Split(("blk.{}.attn_qkv.weight", "blk.{}.attn_gate.weight"), _by_kind, _by_key_head)
}

SIZES = {
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "attention.head_count": "num_attention_heads",
}
MLP = {"feed_forward_length": "intermediate_size"}
GROUPED = {"attention.head_count_kv": "num_key_value_heads"}
RMS = {"attention.layer_norm_rms_epsilon": "rms_norm_eps"}
NORM = {"attention.layer_norm_epsilon": "layer_norm_eps"}
HEAD = {"attention.key_length": "head_dim", "attention.value_length": "head_dim"}
LLAMA = SIZES | MLP | GROUPED | RMS
EXPERTS = {
    "expert_count": "num_experts",
    "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
}


@dataclass(frozen=True)
class Converter:
    """How the models of an architecture are converted: `keys` of the metadata by fields of the configuration."""

    name: str
    keys: Mapping[str, str]
    changes: Mapping[str, Change] = field(default_factory=dict)
    rope: bool = True
    fixed: Mapping[str, Any] = field(default_factory=dict)
    made: Callable[[Any], dict[str, Any]] = lambda _config: {}
    """What the converter computes of the configuration."""
    prefix: str = ""
    """What it takes off names before it looks them up."""
    dropped: tuple[str, ...] = ()
    """The tensors that it leaves out."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """What pieces of names it calls otherwise, before it looks them up."""
    splits: Callable[[Any], Mapping[str, Split]] = lambda _config: {}
    """What of a configuration's tensors becomes several, or has a name that llama.cpp's tables lack."""

    def metadata(self, config: Any) -> dict[str, Any]:
        """The metadata of a configuration, by keys without the architecture's name."""
        found = {key: getattr(config, name, None) for key, name in self.keys.items()}
        found = {key: value for key, value in found.items() if value is not None}
        found |= dict(self.fixed) | self.made(config)
        if self.rope:
            rope = config.rope_parameters
            full = rope.get("full_attention", rope)
            found["rope.freq_base"] = float(full["rope_theta"])
            width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
            found["rope.dimension_count"] = int(width * (full.get("partial_rotary_factor") or 1.0))
            if full.get("rope_type") == "yarn":
                found["rope.scaling.type"] = "yarn"
                found["rope.scaling.factor"] = float(full["factor"])
                found["rope.scaling.original_context_length"] = full["original_max_position_embeddings"]
                for name in ("beta_fast", "beta_slow"):
                    if full.get(name):
                        found[f"rope.scaling.yarn_{name}"] = float(full[name])
            if "sliding_attention" in rope:
                found["rope.freq_base_swa"] = float(rope["sliding_attention"]["rope_theta"])
        return found


def _pattern(config: Any) -> dict[str, Any]:
    return {"attention.sliding_window_pattern": [kind == "sliding_attention" for kind in config.layer_types]}


def _adjusted(config: Any) -> int:
    """The width of LFM2's MLPs."""
    width = config.intermediate_size
    if config.block_auto_adjust_ff_dim:
        width = int(config.block_ffn_dim_multiplier * int(2 * width / 3))
        width = -(-width // config.block_multiple_of) * config.block_multiple_of
    return width


WINDOW = {"attention.sliding_window": "sliding_window"}
USED = {"expert_used_count": "num_experts_per_tok"}
ROUTED = USED | {
    "expert_count": "n_routed_experts",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_count": "n_shared_experts",
    "leading_dense_block_count": "first_k_dense_replace",
    "expert_weights_scale": "routed_scaling_factor",
    "expert_weights_norm": "norm_topk_prob",
}
LATENT = (
    SIZES
    | MLP
    | RMS
    | ROUTED
    | {
        "attention.q_lora_rank": "q_lora_rank",
        "attention.kv_lora_rank": "kv_lora_rank",
        "expert_group_count": "n_group",
        "expert_group_used_count": "topk_group",
    }
)
GRANITE = {
    "embedding_scale": "embedding_multiplier",
    "residual_scale": "residual_multiplier",
    "attention.scale": "attention_multiplier",
    "logit_scale": "logits_scaling",
}


def _latent_sizes(c: Any) -> dict[str, Any]:
    """Keys and values as one head of the latent vectors, and the heads' own widths under keys of their own."""
    sizes: dict[str, Any] = {
        "attention.head_count_kv": 1,
        "attention.key_length": c.kv_lora_rank + c.qk_rope_head_dim,
        "attention.value_length": c.kv_lora_rank,
        "attention.key_length_mla": c.qk_nope_head_dim + c.qk_rope_head_dim,
        "attention.value_length_mla": c.v_head_dim,
    }
    if all_dim := c.rope_parameters.get("mscale_all_dim"):
        sizes["rope.scaling.yarn_log_multiplier"] = 0.1 * all_dim
    return sizes


STATES = {
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "ssm.conv_kernel": "conv_kernel",
    "ssm.state_size": "state_size",
    "attention.layer_norm_rms_epsilon": "layer_norm_epsilon",
}
# Written because llama.cpp asks for them.
UNUSED = {"context_length": 2**20, "feed_forward_length": 0, "attention.head_count": 0}
SHORT_CONVOLUTIONS = SIZES | {"attention.layer_norm_rms_epsilon": "norm_eps", "shortconv.l_cache": "conv_L_cache"}


def _key_heads(c: Any) -> dict[str, Any]:
    """By layer; those without attention have none."""
    return {"attention.head_count_kv": [c.num_key_value_heads * (kind == "full_attention") for kind in c.layer_types]}


def _granite_hybrid(c: Any) -> dict[str, Any]:
    made = _key_heads(c) | {
        "ssm.inner_size": c.mamba_n_heads * c.mamba_d_head,
        "rope.scaling.finetuned": c.position_embedding_type == "rope",
    }
    if c.num_local_experts:
        made |= {"expert_count": c.num_local_experts, "expert_used_count": c.num_experts_per_tok}
    return made


MAMBA = Converter(
    "mamba",
    STATES | {"ssm.inner_size": "intermediate_size", "ssm.time_step_rank": "time_step_rank"},
    SQUEEZED | DECAY,
    rope=False,
    fixed=UNUSED,
    made=lambda c: {"ssm.dt_b_c_rms": c.model_type == "falcon_mamba"},
)

CONVERTERS = {
    "llama": Converter("llama", LLAMA | {"vocab_size": "vocab_size"} | HEAD, ROTARY),
    "mistral": Converter("llama", LLAMA | {"vocab_size": "vocab_size"} | HEAD, ROTARY),
    "mixtral": Converter(
        "llama",
        LLAMA | {"expert_count": "num_local_experts", "expert_used_count": "num_experts_per_tok"},
        ROTARY,
    ),
    "smollm3": Converter("smollm3", LLAMA | {"vocab_size": "vocab_size"} | HEAD, ROTARY),
    "arcee": Converter("arcee", LLAMA | {"vocab_size": "vocab_size"} | HEAD, ROTARY),
    "qwen2": Converter("qwen2", LLAMA),
    "qwen3": Converter("qwen3", LLAMA | HEAD),
    "qwen2_moe": Converter(
        "qwen2moe",
        LLAMA | EXPERTS | {"expert_shared_feed_forward_length": "shared_expert_intermediate_size"},
        FLAT,
    ),
    "qwen3_moe": Converter("qwen3moe", LLAMA | HEAD | EXPERTS),
    "gemma": Converter("gemma", LLAMA | HEAD, PLUS_ONE),
    "gemma2": Converter(
        "gemma2",
        LLAMA
        | HEAD
        | {
            "attention.sliding_window": "sliding_window",
            "attn_logit_softcapping": "attn_logit_softcapping",
            "final_logit_softcapping": "final_logit_softcapping",
        },
        PLUS_ONE,
    ),
    "gemma3_text": Converter("gemma3", LLAMA | HEAD | {"attention.sliding_window": "sliding_window"}, PLUS_ONE),
    "phi": Converter("phi2", SIZES | MLP | GROUPED | NORM),
    "phi3": Converter("phi3", LLAMA),
    "starcoder2": Converter("starcoder2", SIZES | MLP | GROUPED | {"attention.layer_norm_epsilon": "norm_epsilon"}),
    "gpt2": Converter(
        "gpt2",
        SIZES | {"attention.layer_norm_epsilon": "layer_norm_epsilon"},
        TRANSPOSED,
        rope=False,
        made=lambda c: {"feed_forward_length": 4 * c.n_embd},
    ),
    "gpt_neox": Converter("gptneox", SIZES | MLP | NORM | {"use_parallel_residual": "use_parallel_residual"}, SPLIT),
    "bloom": Converter(
        "bloom",
        {name: key for name, key in SIZES.items() if name != "context_length"}
        | {"attention.layer_norm_epsilon": "layer_norm_epsilon"},
        SPLIT,
        rope=False,
        fixed={"context_length": 64},
        made=lambda c: {"feed_forward_length": 4 * c.hidden_size},
        prefix="transformer.",
    ),
    "mpt": Converter(
        "mpt",
        {
            "context_length": "max_seq_len",
            "embedding_length": "d_model",
            "block_count": "n_layers",
            "attention.head_count": "n_heads",
        },
        rope=False,
        fixed={"attention.layer_norm_epsilon": 1e-5, "attention.max_alibi_bias": 8.0},
        made=lambda c: {"feed_forward_length": c.expansion_ratio * c.d_model},
    ),
    "stablelm": Converter(
        "stablelm", SIZES | MLP | GROUPED | NORM | {"use_parallel_residual": "use_parallel_residual"}
    ),
    "cohere": Converter("command-r", SIZES | MLP | GROUPED | NORM | {"logit_scale": "logit_scale"}),
    "olmo": Converter("olmo", SIZES | MLP | GROUPED, ROTARY, fixed={"attention.layer_norm_epsilon": 1e-5}),
    "olmo2": Converter("olmo2", LLAMA),
    "granite": Converter("granite", LLAMA | GRANITE, ROTARY),
    "granitemoe": Converter(
        "granitemoe",
        LLAMA | GRANITE | USED | {"expert_count": "num_local_experts"},
        ROTARY,
        splits=lambda _: GRANITE_SPLITS,
    ),
    "granitemoeshared": Converter(
        "granitemoe",
        LLAMA
        | GRANITE
        | USED
        | {"expert_count": "num_local_experts", "expert_shared_feed_forward_length": "shared_intermediate_size"},
        ROTARY,
        splits=lambda _: GRANITE_SPLITS,
    ),
    "gpt_oss": Converter(
        "gpt-oss",
        LLAMA
        | HEAD
        | WINDOW
        | USED
        | {"expert_count": "num_local_experts", "expert_feed_forward_length": "intermediate_size"},
        splits=lambda _: GPT_OSS_SPLITS,
    ),
    "deepseek_v2": Converter(
        "deepseek2", LATENT, fixed={"expert_gating_func": 1}, made=_latent_sizes, splits=lambda _: LATENT_SPLITS
    ),
    "deepseek_v3": Converter(
        "deepseek2", LATENT, fixed={"expert_gating_func": 2}, made=_latent_sizes, splits=lambda _: LATENT_SPLITS
    ),
    "glm4_moe_lite": Converter(
        "deepseek2",
        LATENT,
        fixed={"expert_gating_func": 2},
        made=lambda c: _latent_sizes(c) | {"leading_dense_block_count": c.mlp_layer_types.count("dense")},
        splits=lambda _: LATENT_SPLITS,
    ),
    "falcon": Converter(
        "falcon",
        {name: key for name, key in SIZES.items() if name != "context_length"}
        | {"attention.layer_norm_epsilon": "layer_norm_epsilon"},
        SPLIT,
        rope=False,
        fixed={"context_length": 2048, "tensor_data_layout": "jploski"},
        made=lambda c: {"attention.head_count_kv": _groups(c)[0], "feed_forward_length": 4 * c.hidden_size},
    ),
    "nemotron": Converter(
        "nemotron", SIZES | MLP | GROUPED | {"attention.layer_norm_epsilon": "norm_eps"}, PLUS_ONE
    ),
    "bert": Converter(
        "bert",
        SIZES | MLP | NORM,
        rope=False,
        fixed={"attention.causal": False},
        prefix="bert.",
        dropped=("pooler.dense",),
    ),
    "nomic_bert": Converter("nomic-bert", SIZES | MLP | NORM, fixed={"attention.causal": False}, prefix="nomic_bert."),
    "ministral3": Converter(
        "mistral3",
        LLAMA | HEAD | {"vocab_size": "vocab_size"},
        ROTARY,
        made=lambda c: {
            "rope.scaling.yarn_log_multiplier": c.rope_parameters["mscale_all_dim"],
            "attention.temperature_scale": c.rope_parameters["llama_4_scaling_beta"],
        },
    ),
    "cohere2": Converter("cohere2", SIZES | MLP | GROUPED | NORM | WINDOW | {"logit_scale": "logit_scale"}),
    "exaone4": Converter("exaone4", LLAMA | HEAD | WINDOW, made=_pattern),
    "olmo3": Converter("olmo2", LLAMA | WINDOW, made=_pattern),
    "glm4": Converter("glm4", LLAMA | HEAD),
    "ernie4_5": Converter("ernie4_5", LLAMA | HEAD),
    "hunyuan_v1_dense": Converter("hunyuan-dense", LLAMA | HEAD),
    "seed_oss": Converter("seed_oss", LLAMA | HEAD),
    "jais2": Converter("jais2", SIZES | MLP | GROUPED | NORM | HEAD),
    "gpt_bigcode": Converter(
        "starcoder",
        SIZES | {"attention.layer_norm_epsilon": "layer_norm_epsilon"},
        rope=False,
        fixed={"attention.head_count_kv": 1},
        made=lambda c: {"feed_forward_length": c.n_inner},
    ),
    "eurobert": Converter("eurobert", LLAMA | HEAD, fixed={"attention.causal": False}),
    "olmoe": Converter("olmoe", LLAMA | USED | {"expert_count": "num_experts"}),
    "phimoe": Converter("phimoe", LLAMA | USED | {"expert_count": "num_local_experts"}),
    "ernie4_5_moe": Converter(
        "ernie4_5-moe",
        LLAMA
        | HEAD
        | {
            "expert_count": "moe_num_experts",
            "expert_used_count": "moe_k",
            "expert_feed_forward_length": "moe_intermediate_size",
            "expert_shared_count": "moe_num_shared_experts",
            "leading_dense_block_count": "moe_layer_start_index",
            "interleave_moe_layer_step": "moe_layer_interval",
        },
        made=lambda c: {"expert_shared_feed_forward_length": c.intermediate_size // c.num_key_value_heads},
    ),
    "hunyuan_v1_moe": Converter(
        "hunyuan-moe",
        LLAMA | HEAD | {"expert_count": "num_experts", "expert_feed_forward_length": "intermediate_size"},
        made=lambda c: {"expert_used_count": c.moe_topk, "expert_shared_count": 1},
    ),
    "glm4_moe": Converter("glm4moe", LLAMA | HEAD | ROUTED, fixed={"expert_gating_func": 2}),
    "dots1": Converter("dots1", LLAMA | HEAD | ROUTED, fixed={"expert_gating_func": 2}),
    "minimax_m2": Converter(
        "minimax-m2",
        LLAMA
        | HEAD
        | USED
        | {"expert_count": "num_local_experts", "expert_feed_forward_length": "intermediate_size"},
        fixed={"expert_gating_func": 2},
    ),
    "mamba": MAMBA,
    "falcon_mamba": MAMBA,
    "mamba2": Converter(
        "mamba2",
        STATES | {"ssm.time_step_rank": "num_heads", "ssm.group_count": "n_groups"},
        SQUEEZED | DECAY_COLUMN | COLUMN | GROUPED_NORM,
        rope=False,
        fixed=UNUSED,
        made=lambda c: {"ssm.inner_size": int(c.expand * c.hidden_size)},
    ),
    "lfm2": Converter(
        "lfm2",
        SHORT_CONVOLUTIONS,
        SQUEEZED,
        made=lambda c: {"feed_forward_length": _adjusted(c)} | _key_heads(c),
    ),
    "lfm2_moe": Converter(
        "lfm2moe",
        SHORT_CONVOLUTIONS | MLP | EXPERTS | {"leading_dense_block_count": "num_dense_layers"},
        SQUEEZED,
        fixed={"expert_gating_func": 2},
        made=_key_heads,
        renamed={"experts.w1": "experts.gate_proj", "experts.w3": "experts.up_proj", "experts.w2": "experts.down_proj"},
    ),
    "granitemoehybrid": Converter(
        "granitehybrid",
        SIZES
        | MLP
        | RMS
        | GRANITE
        | {
            "ssm.conv_kernel": "mamba_d_conv",
            "ssm.state_size": "mamba_d_state",
            "ssm.group_count": "mamba_n_groups",
            "ssm.time_step_rank": "mamba_n_heads",
            "expert_shared_feed_forward_length": "shared_intermediate_size",
        },
        ROTARY | SQUEEZED | DECAY_COLUMN | COLUMN | GROUPED_NORM,
        made=_granite_hybrid,
        splits=_hybrid_splits,
    ),
    "qwen3_next": Converter(
        "qwen3next",
        LLAMA
        | HEAD
        | EXPERTS
        | {
            "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
            "ssm.conv_kernel": "linear_conv_kernel_dim",
            "ssm.state_size": "linear_key_head_dim",
            "ssm.group_count": "linear_num_key_heads",
            "ssm.time_step_rank": "linear_num_value_heads",
        },
        {r"(?<!linear_attn\.)norm\.weight$": PLUS_ONE[r"norm\.weight$"]} | FLAT | SQUEEZED | DECAY,
        made=lambda c: {
            "ssm.inner_size": c.linear_value_head_dim * c.linear_num_value_heads,
            "full_attention_interval": c.layer_types.index("full_attention") + 1,
        },
        splits=lambda _: DELTA_SPLITS,
    ),
}
# What converters call other than the checkpoint does, before they look names up.
RENAMED = {
    "e_score_correction_bias": "e_score_correction.bias",
    ".dt_bias": ".dt_proj.bias",
    "expert_bias": "expert_bias.bias",
}
# Kept in single precision, whatever the rest is.
SINGLE = ("ssm_conv1d", "ssm_a", "ssm_d", "ssm_norm", "shortconv.conv", "exp_probs_b")
