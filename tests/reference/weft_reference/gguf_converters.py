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


def _rotary(heads: Callable[[Any], int]) -> Change:
    def there(w: Array, c: Any) -> Array:
        return w.reshape(heads(c), 2, w.shape[0] // heads(c) // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)

    def back(w: Array, c: Any) -> Array:
        return w.reshape(heads(c), w.shape[0] // heads(c) // 2, 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)

    return Change(there, back)


def _split(w: Array, c: Any) -> Array:
    n = c.num_attention_heads
    return w.reshape(n, 3, w.shape[0] // n // 3, *w.shape[1:]).swapaxes(0, 1).reshape(w.shape)


def _interleave(w: Array, c: Any) -> Array:
    n = c.num_attention_heads
    return w.reshape(3, n, w.shape[0] // n // 3, *w.shape[1:]).swapaxes(0, 1).reshape(w.shape)


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
COLUMN = {r"mixer\.D$": Change(lambda w, _: w[:, None], lambda w, _: w[:, 0])}
GROUPED_NORM = {
    r"mixer\.norm\.weight$": Change(lambda w, c: w.reshape(c.n_groups, -1), lambda w, _: w.reshape(-1))
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
STATES = {
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "ssm.conv_kernel": "conv_kernel",
    "ssm.state_size": "state_size",
    "attention.layer_norm_rms_epsilon": "layer_norm_epsilon",
}
# Written because llama.cpp asks for them.
UNUSED = {"context_length": 2**20, "feed_forward_length": 0, "attention.head_count": 0}
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
    "granite": Converter(
        "granite",
        LLAMA
        | {
            "embedding_scale": "embedding_multiplier",
            "residual_scale": "residual_multiplier",
            "attention.scale": "attention_multiplier",
            "logit_scale": "logits_scaling",
        },
        ROTARY,
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
        {**SIZES, "attention.layer_norm_rms_epsilon": "norm_eps", "shortconv.l_cache": "conv_L_cache"},
        SQUEEZED,
        made=lambda c: {
            "feed_forward_length": _adjusted(c),
            "attention.head_count_kv": [c.num_key_value_heads * (t == "full_attention") for t in c.layer_types],
        },
    ),
}
# What converters call other than the checkpoint does, before they look names up.
RENAMED = {"e_score_correction_bias": "e_score_correction.bias", "mixer.dt_bias": "mixer.dt_proj.bias"}
# Kept in single precision, whatever the rest is.
SINGLE = ("ssm_conv1d", "ssm_a", "ssm_d", "ssm_norm", "shortconv.conv", "exp_probs_b")
