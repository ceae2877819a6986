"""Decoders with multi-head latent attention: beside delta attention, to the keys that an indexer selects, or with scaled queries."""

from __future__ import annotations

from typing import Any

from weft_reference.gguf_converters.changes import DECAY, GROWTH_COLUMN, Change
from weft_reference.gguf_converters.converter import MLP, RMS, ROUTED, SIZES, Converter
from weft_reference.gguf_converters.mixtures import LATENT, latent_sizes
from weft_reference.gguf_converters.splits import BATCHED_SPLITS, GATE_UP_SPLITS, LATENT_SPLITS, Split, same

# Kernels of Kimi's convolutions, of which an axis of one is put first.
FOUR_AXES = {r"_conv1d\.weight$": Change(lambda w, _: w[None, :, 0, None], lambda w, _: w.reshape(-1, 1, w.shape[-1]))}


def _kimi(c: Any) -> dict[str, Any]:
    """Heads of delta attention are as many as those of the other, which layers with delta attention have none of."""
    return latent_sizes(c) | {
        "attention.head_count_kv": [int(kind == "full_attention") for kind in c.layer_types],
        "rope.dimension_count": c.qk_rope_head_dim,
        "leading_dense_block_count": c.mlp_layer_types.count("dense"),
    }


def _mistral4(c: Any) -> dict[str, Any]:
    """Queries are scaled by the logarithm of their position, in steps of so many positions."""
    return latent_sizes(c) | {
        "attention.temperature_scale": c.rope_parameters["llama_4_scaling_beta"],
        "attention.temperature_length": c.rope_parameters["original_max_position_embeddings"],
    }


def _sparse(c: Any) -> dict[str, Any]:
    """Where layers share what others select, which have an indexer of their own."""
    types = getattr(c, "indexer_types", None)
    return latent_sizes(c) | {
        "rope.dimension_count": c.qk_rope_head_dim,
        "leading_dense_block_count": c.mlp_layer_types.count("dense"),
        **({"attention.indexer.types": [kind == "full" for kind in types]} if types else {}),
    }


def _youtu(c: Any) -> dict[str, Any]:
    """As if all layers came before those with experts."""
    return latent_sizes(c) | {
        "rope.dimension_count": c.qk_rope_head_dim,
        "leading_dense_block_count": c.num_hidden_layers,
        "expert_feed_forward_length": c.intermediate_size,
        "expert_shared_count": 0,
    }


def _hy_v4(c: Any) -> dict[str, Any]:
    """The bound of experts' gates and up projections, by layer."""
    return _sparse(c) | {"swiglu_clamp_exp": [float(c.swiglu_limit)] * c.num_hidden_layers}


def _bailing(c: Any) -> dict[str, Any]:
    """As Kimi Linear's; heads of delta attention have a width of their own."""
    return _kimi(c) | {
        "expert_count": c.num_local_experts,
        "expert_shared_feed_forward_length": c.moe_intermediate_size * c.n_shared_experts,
    }


def _bailing_gates(c: Any) -> dict[str, Split]:
    """Gates are those of heads in latent attention, and of all dimensions in delta attention."""
    names = {"full_attention": "attn_gate", "linear_attention": "ssm_g_a"}
    gates = {
        rf"layers\.{layer}\.attention\.g_proj\.weight$": same(f"blk.{layer}.{names[kind]}.weight")
        for layer, kind in enumerate(c.layer_types)
    }
    return LATENT_SPLITS | gates | {r"f_proj\.weight$": same("blk.{}.ssm_f_a.weight")}


HY_V4_SPLITS: dict[str, Split] = {
    rf"{layer}_layer\.hc_{part}$": same(f"blk.{{}}.hc_{name}_{part}.weight")
    for layer, name in (("attn", "attn"), ("mlp", "ffn"))
    for part in ("fn", "base", "scale")
}
HY_V4_SPLITS |= {rf"hc_head_{part}$": same(f"output_hc_{part}.weight") for part in ("fn", "base", "scale")}
HY_V4_SPLITS |= {
    r"learnable_sink_param$": same("blk.{}.attn_sinks.weight"),
    r"self_attn\.linear_gate\.weight$": same("blk.{}.attn_gate.weight"),
}


INDEXER = {
    "attention.indexer.head_count": "index_n_heads",
    "attention.indexer.key_length": "index_head_dim",
    "attention.indexer.top_k": "index_topk",
}


CONVERTERS = {
    "mistral4": Converter(
        "mistral4",
        LATENT,
        made=_mistral4,
        splits=lambda _: LATENT_SPLITS | BATCHED_SPLITS,
    ),
    "glm_moe_dsa": Converter(
        "glm-dsa", LATENT | INDEXER, fixed={"expert_gating_func": 2}, made=_sparse, splits=lambda _: LATENT_SPLITS
    ),
    "deepseek_v32": Converter(
        "deepseek32",
        LATENT | INDEXER,
        fixed={"expert_gating_func": 2},
        made=_sparse,
        splits=lambda _: LATENT_SPLITS,
        names="glm-dsa",
    ),
    "hy_v4": Converter(
        "hy_v4",
        {key: field for key, field in (LATENT | INDEXER).items() if not key.startswith("expert_group")}
        | {
            "hyper_connection.count": "hc_mult",
            "hyper_connection.epsilon": "hc_eps",
            "hyper_connection.magnitude": "hc_magnitude",
        },
        fixed={"expert_gating_func": 2},
        made=_hy_v4,
        renamed={r"\.linear_gate": ".gate_proj"},
        splits=lambda _: LATENT_SPLITS | GATE_UP_SPLITS | HY_V4_SPLITS,
        names="glm-dsa",
    ),
    "youtu": Converter(
        "deepseek2",
        SIZES | MLP | RMS | {"attention.q_lora_rank": "q_lora_rank", "attention.kv_lora_rank": "kv_lora_rank"},
        made=_youtu,
        splits=lambda _: LATENT_SPLITS,
    ),
    "bailing_hybrid": Converter(
        "bailingmoe3",
        {key: field for key, field in LATENT.items() if key != "expert_count"}
        | {
            "vocab_size": "vocab_size",
            "ssm.conv_kernel": "linear_conv_kernel_dim",
            "kda.head_dim": "linear_head_dim",
            "kda.safe_gate": "kda_safe_gate",
            "kda.gate_lower_bound": "kda_lower_bound",
        },
        FOUR_AXES | GROWTH_COLUMN,
        fixed={"expert_gating_func": 2},
        made=_bailing,
        renamed={r"\.attention\.dense": ".self_attn.o_proj", r"\.attention\.": ".self_attn."},
        splits=_bailing_gates,
        names="kimi-linear",
    ),
    "kimi_linear": Converter(
        "kimi-linear",
        {key: field for key, field in (SIZES | MLP | RMS | ROUTED).items() if key != "expert_weights_norm"}
        | {
            "vocab_size": "vocab_size",
            "expert_count": "num_local_experts",
            "attention.q_lora_rank": "q_lora_rank",
            "attention.kv_lora_rank": "kv_lora_rank",
            "ssm.conv_kernel": "linear_conv_kernel_dim",
            "kda.head_dim": "linear_head_dim",
        },
        FOUR_AXES | DECAY,
        rope=False,
        fixed={"expert_gating_func": 2},
        made=_kimi,
        renamed={r"block_sparse_moe\.(gate|up|down)_proj": r"mlp.\1_proj"},
        splits=lambda _: LATENT_SPLITS,
    ),
}
