"""Decoders whose layers hand on more than hidden states, run in cycles, or score keys by their values."""

from __future__ import annotations

from weft_reference.models.decoders.family import BIAS, TIED, TINY, UNTIED, WIDE_HEADS, WINDOW, Changes, Decoder
from weft_reference.models.decoders.latent import SPARSE, YARN

ZAYA_BASE: Changes = {name: value for name, value in TINY.items() if name != "intermediate_size"}
ZAYA_ROPE: Changes = {
    "hybrid": {"rope_type": "default", "rope_theta": 1000.0, "partial_rotary_factor": 0.5},
    "hybrid_sliding": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 1.0},
}
NO_GROUPS: Changes = {name: value for name, value in SPARSE.items() if name not in ("n_group", "topk_group")}

DECODERS: tuple[Decoder, ...] = (
    Decoder(
        "axk2",
        "AXK2",
        {name: value for name, value in NO_GROUPS.items() if name != "first_k_dense_replace"} | {"gated_norm_rank": 3},
        {
            "groups": {"n_group": 2, "topk_group": 1},
            "mlp-layer-types": {"mlp_layer_types": ["sparse", "dense"]},
            "not-normalised": {"norm_topk_prob": False},
            "all-keys": {"index_topk": 30},
            "bias": BIAS,
            "yarn": YARN,
            # As published files have it.
            "dense-first": {
                "num_hidden_layers": 4,
                "mlp_layer_types": ["dense", "dense", "sparse", "dense"],
                "written": {"mlp_layer_types": None, "first_k_dense_replace": 1, "moe_layer_freq": 2},
            },
        },
    ),
    Decoder(
        "hy_v4",
        "HYV4",
        {name: value for name, value in NO_GROUPS.items() if name != "first_k_dense_replace"}
        | {"hc_mult": 3, "num_hidden_layers": 3, "indexer_types": ["full", "shared", "full"], "swiglu_limit": 0.3},
        {
            "default-layers": {"indexer_types": None, "mlp_layer_types": None, "written": {"indexer_types": None, "mlp_layer_types": None}},
            "magnitude": {"hc_magnitude": 0.7, "hc_eps": 0.1, "num_hidden_layers": 2, "indexer_types": ["full", "full"]},
            "all-keys": {"index_topk": 30, "swiglu_limit": 10.0},
            "bias": BIAS,
            "yarn": YARN,
        },
    ),
    Decoder(
        "zaya",
        "Zaya",
        {"head_dim": 8, "moe_intermediate_size": 24, "num_experts": 4, "router_hidden_size": 10, "num_hidden_layers": 3,
         "num_experts_per_tok": 1},
        {
            "windows": {"layer_types": ["hybrid", "hybrid_sliding", "hybrid"], "rope_parameters": ZAYA_ROPE} | WINDOW,
            "kernels": {"cca_time0": 4, "cca_time1": 3},
            "bias": BIAS | {"lm_head_bias": True},
            "untied": UNTIED,
        },
        base=ZAYA_BASE,
    ),
    Decoder(
        "doge",
        "Doge",
        {"keep_window_size": 4},
        {
            "all-keys": {"keep_window_size": 40, "num_key_value_heads": None},
            "window": WINDOW | {"keep_window_size": 3},
            "wide-heads": WIDE_HEADS,
            "bias": BIAS | {"mlp_bias": True},
            "tied": TIED,
        },
    ),
    Decoder(
        "hrm_text",
        "HrmText",
        {"head_dim": 12, "H_cycles": 2, "L_cycles": 2},
        {
            "cycles": {"H_cycles": 3, "L_cycles": 1, "num_hidden_layers": 1, "embedding_scale": 2.5, "head_dim": 8},
            "bias": BIAS | {"mlp_bias": True},
            "causal": {"prefix_lm": False, "initializer_range": 0.5},
            "tied": TIED,
            # As published files have it.
            "per-stack": {"written": {"num_hidden_layers": 2, "num_layers_per_stack": None}},
        },
        base={name: value for name, value in TINY.items() if name != "num_key_value_heads"},
    ),
)
