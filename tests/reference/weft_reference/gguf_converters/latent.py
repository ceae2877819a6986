"""Decoders with multi-head latent attention: beside delta attention, to the keys that an indexer selects, or with scaled queries."""

from __future__ import annotations

from typing import Any

from weft_reference.gguf_converters.changes import DECAY, Change
from weft_reference.gguf_converters.converter import MLP, RMS, ROUTED, SIZES, Converter
from weft_reference.gguf_converters.mixtures import LATENT, latent_sizes
from weft_reference.gguf_converters.splits import BATCHED_SPLITS, LATENT_SPLITS

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
    "youtu": Converter(
        "deepseek2",
        SIZES | MLP | RMS | {"attention.q_lora_rank": "q_lora_rank", "attention.kv_lora_rank": "kv_lora_rank"},
        made=_youtu,
        splits=lambda _: LATENT_SPLITS,
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
