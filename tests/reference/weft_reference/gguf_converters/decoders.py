"""Decoders."""

from __future__ import annotations

from typing import Any

from weft_reference.gguf_converters.changes import PLUS_ONE, ROTARY, SPLIT, TRANSPOSED, head_groups
from weft_reference.gguf_converters.converter import GRANITE, GROUPED, HEAD, LLAMA, MLP, NORM, SIZES, WINDOW, Converter


def _pattern(config: Any) -> dict[str, Any]:
    return {"attention.sliding_window_pattern": [kind == "sliding_attention" for kind in config.layer_types]}


CONVERTERS = {
    "llama": Converter("llama", LLAMA | {"vocab_size": "vocab_size"} | HEAD, ROTARY),
    "mistral": Converter("llama", LLAMA | {"vocab_size": "vocab_size"} | HEAD, ROTARY),
    "smollm3": Converter("smollm3", LLAMA | {"vocab_size": "vocab_size"} | HEAD, ROTARY),
    "arcee": Converter("arcee", LLAMA | {"vocab_size": "vocab_size"} | HEAD, ROTARY),
    "qwen2": Converter("qwen2", LLAMA),
    "qwen3": Converter("qwen3", LLAMA | HEAD),
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
