"""Decoders."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from weft_reference.gguf_converters.changes import PLUS_ONE, ROTARY, SPLIT, TERNARY, TRANSPOSED, Array, head_groups
from weft_reference.gguf_converters.converter import (
    GRANITE,
    GROUPED,
    HEAD,
    LLAMA,
    MLP,
    NORM,
    RMS,
    SIZES,
    WINDOW,
    Converter,
)
from weft_reference.gguf_converters.splits import GEMMA3N_SPLITS, GEMMA4_ASSISTANT_SPLITS, GEMMA4_SPLITS


def _pattern(config: Any) -> dict[str, Any]:
    return {"attention.sliding_window_pattern": [kind == "sliding_attention" for kind in config.layer_types]}


def _divisors(c: Any) -> dict[str, Array]:
    """What Llama 3.1's scaling divides frequencies by."""
    scaling = c.rope_parameters
    if scaling.get("rope_type") != "llama3":
        return {}
    width = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
    plain = scaling["rope_theta"] ** (-np.arange(0, width, 2) / width)
    scaled, _ = ROPE_INIT_FUNCTIONS["llama3"](c, "cpu")
    return {"rope_freqs.weight": (plain / scaled.numpy()).astype(np.float32)}


def _gemma3n(c: Any) -> dict[str, Any]:
    """How many deviations the sparse gates of each layer lie above their mean."""
    quantile = torch.distributions.Normal(0, 1).icdf
    scales = [quantile(torch.tensor(share)).item() for share in c.activation_sparsity_pattern]
    return {"activation_sparsity_scale": scales} | _pattern(c)


def _of_layers(c: Any, kind: str, field: str) -> Any:
    """A field of Gemma 4's layers of a kind."""
    return getattr(c.per_layer_config[c.layer_types.index(f"{kind}_attention")], field)


def _gemma4(c: Any) -> dict[str, Any]:
    """Heads, their widths and those of MLPs, by layer where these differ."""
    sliding, full = (_of_layers(c, kind, "head_dim") for kind in ("sliding", "full"))
    key_heads = [_of_layers(c, kind.removesuffix("_attention"), "num_key_value_heads") for kind in c.layer_types]
    rope = c.rope_parameters
    made: dict[str, Any] = {
        "attention.head_count_kv": key_heads if c.attention_k_eq_v else key_heads[0],
        "feed_forward_length": c.intermediate_size,
        "embedding_length_per_layer_input": getattr(c, "hidden_size_per_layer_input", None) or 0,
        "rope.freq_base": float(rope["full_attention"]["rope_theta"]),
        "rope.freq_base_swa": float(rope["sliding_attention"]["rope_theta"]),
        "rope.dimension_count": full,
        "rope.dimension_count_swa": sliding,
    }
    made |= {f"attention.{part}_length": full for part in ("key", "value")}
    made |= {f"attention.{part}_length_swa": sliding for part in ("key", "value")}
    if c.use_double_wide_mlp:
        first = c.num_hidden_layers - c.num_kv_shared_layers
        made["feed_forward_length"] = [c.intermediate_size * (1 + (layer >= first)) for layer in range(c.num_hidden_layers)]
    return made | _pattern(c)


def _drafter(c: Any) -> dict[str, Any]:
    """All layers of one predict tokens ahead, and read keys and values of another model."""
    layers = c.num_hidden_layers
    return _gemma4(c) | {"nextn_predict_layers": layers, "attention.shared_kv_layers": layers}


def _proportional(c: Any) -> dict[str, Array]:
    """What frequencies of full attention are divided by: all behind the share that turns by so much that they do not."""
    width = _of_layers(c, "full", "head_dim")
    turned = int(width * c.rope_parameters["full_attention"]["partial_rotary_factor"] / 2)
    return {"rope_freqs.weight": np.repeat([1.0, 1e30], [turned, width // 2 - turned]).astype(np.float32)}


GEMMA4_ASSISTANT = Converter(
    "gemma4-assistant",
    {key: f"text_config.{name}" for key, name in (SIZES | RMS | WINDOW).items()}
    | {"embedding_length_out": "backbone_hidden_size"},
    rope=False,
    made=lambda c: _drafter(c.text_config),
    extra=lambda c: _proportional(c.text_config),
    splits=lambda _: GEMMA4_ASSISTANT_SPLITS,
    names="gemma4",
)


CONVERTERS = {
    "llama": Converter("llama", LLAMA | {"vocab_size": "vocab_size"} | HEAD, ROTARY),
    "mistral": Converter("llama", LLAMA | {"vocab_size": "vocab_size"} | HEAD, ROTARY),
    "smollm3": Converter("smollm3", LLAMA | {"vocab_size": "vocab_size"} | HEAD, ROTARY),
    "arcee": Converter("arcee", LLAMA | {"vocab_size": "vocab_size"} | HEAD, ROTARY),
    "qwen2": Converter("qwen2", LLAMA),
    "qwen3": Converter("qwen3", LLAMA | HEAD),
    "bitnet": Converter(
        "bitnet",
        LLAMA | {"hidden_act": "hidden_act"},
        TERNARY,
        fixed={"rope.scaling.type": "linear", "rope.scaling.factor": 1.0},
        renamed={"attn_sub_norm": "inner_attn_ln", "ffn_sub_norm": "ffn_layernorm"},
    ),
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
    "gemma3n_text": Converter(
        "gemma3n",
        LLAMA
        | HEAD
        | WINDOW
        | {
            "altup.active_idx": "altup_active_idx",
            "altup.num_inputs": "altup_num_inputs",
            "embedding_length_per_layer_input": "hidden_size_per_layer_input",
            "attention.shared_kv_layers": "num_kv_shared_layers",
            "final_logit_softcapping": "final_logit_softcapping",
        },
        made=_gemma3n,
        splits=lambda _: GEMMA3N_SPLITS,
    ),
    "gemma4_text": Converter(
        "gemma4",
        SIZES
        | RMS
        | WINDOW
        | {
            "final_logit_softcapping": "final_logit_softcapping",
            "attention.shared_kv_layers": "num_kv_shared_layers",
            "expert_count": "num_experts",
            "expert_used_count": "top_k_experts",
            "expert_feed_forward_length": "moe_intermediate_size",
        },
        rope=False,
        made=_gemma4,
        extra=_proportional,
        splits=lambda _: GEMMA4_SPLITS,
    ),
    "gemma4_assistant": GEMMA4_ASSISTANT,
    "gemma4_unified_assistant": GEMMA4_ASSISTANT,
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
    "falcon": Converter(
        "falcon",
        {name: key for name, key in SIZES.items() if name != "context_length"}
        | {"attention.layer_norm_epsilon": "layer_norm_epsilon"},
        SPLIT,
        rope=False,
        fixed={"context_length": 2048, "tensor_data_layout": "jploski"},
        made=lambda c: {"attention.head_count_kv": head_groups(c)[0], "feed_forward_length": 4 * c.hidden_size},
    ),
    "nemotron": Converter("nemotron", SIZES | MLP | GROUPED | {"attention.layer_norm_epsilon": "norm_eps"}, PLUS_ONE),
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
    "apertus": Converter(
        "apertus",
        LLAMA | HEAD | {"vocab_size": "vocab_size"},
        numbers={f"xielu.{name}": rf"act_fn\.{name}$" for name in ("alpha_n", "alpha_p", "beta", "eps")},
        extra=_divisors,
    ),
    "glm": Converter("chatglm", LLAMA | HEAD),
    "minicpm3": Converter(
        "minicpm3",
        LLAMA
        | {
            "vocab_size": "vocab_size",
            "attention.q_lora_rank": "q_lora_rank",
            "attention.kv_lora_rank": "kv_lora_rank",
        },
        rope=False,
        made=lambda c: {
            "attention.key_length": c.qk_nope_head_dim + c.qk_rope_head_dim,
            "rope.dimension_count": c.qk_rope_head_dim,
        },
    ),
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
}
