"""Mixtures of experts in which more varies than the fields of their configuration tell."""

from __future__ import annotations

from weft_reference.models.decoders.family import BIAS, HEADS, LAYERS, SPECIAL, TIED, TINY, UNTIED, WIDE_HEADS, WINDOW, Decoder
from weft_reference.models.decoders.latent import SPARSE_FIRST, YARN
from weft_reference.models.decoders.ropes import LONG, SHORT, Changes, rope


def longrope(original: int) -> Changes:
    """Phi-3.5-MoE's, which says itself what cosines and sines are multiplied by.

    No text here is longer than the original: there the reference keeps the short factors, which nothing was trained with.
    """
    kind = {"rope_type": "longrope", "rope_theta": 10000.0, "short_factor": SHORT, "long_factor": LONG}
    return {"rope_parameters": kind | {
        "short_mscale": 1.2, "long_mscale": 1.3, "original_max_position_embeddings": original, "factor": 4.0,
    }}


ROUTED: Changes = {"num_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "head_dim": 8}
HALF_ROTARY = rope("default", partial_rotary_factor=0.5)


def ropes(full: Changes, sliding: Changes) -> Changes:
    """Rotary positions by the kind of layer."""
    plain = {"rope_type": "default"}
    return {"rope_parameters": {"full_attention": plain | full, "sliding_attention": plain | sliding}}


DBRX: Changes = {"vocab_size": 61, "d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 64} | SPECIAL


def dbrx(ffn: Changes | None = None, **attention: float) -> Changes:
    """DBRX's two nested configurations."""
    return {
        "ffn_config": {"ffn_hidden_size": 24, "moe_num_experts": 5, "moe_top_k": 2} | (ffn or {}),
        "attn_config": {"kv_n_heads": 2, "rope_theta": 10000.0, "clip_qkv": 8.0} | attention,
    }


DECODERS: tuple[Decoder, ...] = (
    Decoder(
        "llama4_text",
        "Llama4",
        {"num_hidden_layers": 4, "head_dim": 8, "intermediate_size": 24, "intermediate_size_mlp": 40, "num_local_experts": 4}
        | {"num_experts_per_tok": 1, "interleave_moe_layer_step": 2, "attention_chunk_size": 5, "floor_scale": 4},
        {
            "every-layer": {"interleave_moe_layer_step": 1, "num_experts_per_tok": 2},
            "listed": {"moe_layers": [0, 3]},
            "layer-types": {"layer_types": ["full_attention", "chunked_attention"] * 2, "no_rope_layers": [0, 1, 1, 0]},
            "plain-heads": {"use_qk_norm": False, "attn_temperature_tuning": False},
            "bias": BIAS,
            "tied": TIED,
        },
        HEADS | {"base": "TextModel"},
        config="Llama4Text",
    ),
    Decoder(
        "phimoe",
        "Phimoe",
        {"num_local_experts": 5, "num_experts_per_tok": 2},
        {
            "windows": WINDOW,
            "bias": BIAS | {"lm_head_bias": True},
            "wider": {"router_jitter_noise": 0.05},
            "longrope": longrope(16),
        },
    ),
    Decoder(
        "gpt_oss",
        "GptOss",
        {"num_local_experts": 5, "num_experts_per_tok": 2, "head_dim": 8} | WINDOW,
        {
            "layer-types": {"layer_types": ["full_attention", "sliding_attention"]},
            "wide-heads": WIDE_HEADS,
            "tight": {"swiglu_limit": 0.7, "swiglu_alpha": 1.2},
            "unbiased": {"attention_bias": False},
            "yarn": YARN,
        },
    ),
    Decoder(
        "flint",
        "Flint",
        ROUTED | {"shared_expert_intermediate_size": 40, "num_hidden_layers": 4} | WINDOW,
        {
            "layer-types": LAYERS | {"num_hidden_layers": 2, "mlp_only_layers": [1]},
            "every-other": {"mlp_only_layers": [], "decoder_sparse_step": 2, "num_hidden_layers": 3},
            "wide-heads": WIDE_HEADS,
            "not-normalised": {"norm_topk_prob": False},
            "bias": BIAS,
            "tied": TIED,
        },
    ),
    Decoder(
        "minimax_m2",
        "MiniMaxM2",
        {"num_local_experts": 5, "num_experts_per_tok": 2, "head_dim": 8},
        {
            "partial": HALF_ROTARY,
            # As published files have it.
            "rotary-dim": HALF_ROTARY | {
                "written": {"rope_parameters": None, "rope_theta": 10000.0, "rotary_dim": 4},
            },
            "wide-heads": WIDE_HEADS,
            "tied": TIED,
        },
    ),
    Decoder(
        "hunyuan_v1_moe",
        "HunYuanMoEV1",
        {"num_experts": 5, "moe_topk": 2, "head_dim": 8},
        {
            # As published files have it.
            "by-layer": {"moe_topk": [3, 2]},
            "wide-heads": WIDE_HEADS,
            "alpha": rope("dynamic", alpha=50.0, factor=1.0),
            "bias": BIAS,
            "tied": TIED,
        },
    ),
    Decoder(
        "mellum",
        "Mellum",
        {name: value for name, value in ROUTED.items() if name != "num_experts"} | {"num_local_experts": 5} | WINDOW,
        {
            "layer-types": LAYERS,
            "ropes": LAYERS | ropes({"rope_theta": 500.0, "rope_type": "linear", "factor": 4.0}, {"rope_theta": 50.0}),
            "mlp-layer-types": {"mlp_layer_types": ["dense", "sparse"]},
            "wide-heads": WIDE_HEADS,
            "not-normalised": {"norm_topk_prob": False},
            "bias": BIAS,
            "tied": TIED,
        },
    ),
    Decoder(
        "kolibri1",
        "Kolibri1",
        ROUTED | {"shared_expert_intermediate_size": 40} | WINDOW,
        {
            "layer-types": LAYERS,
            # Without `layer_types`, which `save_pretrained` writes.
            "pattern": {"written": {"layer_types": None}},
            "wide-heads": WIDE_HEADS,
            "normalised": {"norm_topk_prob": True},
            "tied": TIED,
        },
    ),
    Decoder(
        "granitemoe_swa",
        "GraniteMoeSWA",
        {
            "num_hidden_layers": 4,
            "num_local_experts": 5,
            "num_experts_per_tok": 2,
            "shared_intermediate_size": 40,
            "embedding_multiplier": 3.0,
            "logits_scaling": 2.0,
            "residual_multiplier": 0.5,
            "attention_multiplier": 0.25,
        }
        | WINDOW,
        {"none-shared": {"shared_intermediate_size": 0}, "tied": TIED, "bias": BIAS},
    ),
    Decoder(
        "afmoe",
        "Afmoe",
        ROUTED | {"num_shared_experts": 2, "route_scale": 1.5, "num_hidden_layers": 4} | WINDOW,
        {
            "scaled-embeddings": {"mup_enabled": True},
            "all-sparse": {"num_dense_layers": 0, "num_hidden_layers": 2},
            # Without `layer_types`, which `save_pretrained` writes.
            "every-other": {
                "global_attn_every_n_layers": 2, "num_hidden_layers": 3, "num_experts": 2, "written": {"layer_types": None}
            },
            "layer-types": LAYERS | {"num_hidden_layers": 2},
            "wide-heads": WIDE_HEADS | {"num_hidden_layers": 2},
            "bias": BIAS | {"num_hidden_layers": 2},
            "tied": TIED | {"num_hidden_layers": 2},
        },
    ),
    Decoder(
        "beam",
        "Beam",
        ROUTED
        | {
            "num_experts": 8,
            "n_group": 4,
            "topk_group": 2,
            "routed_scaling_factor": 1.5,
            "mlp_layer_types": ["dense", "sparse"],
        }
        | LAYERS
        | WINDOW,
        {
            "default-layers": {
                "layer_types": None,
                "mlp_layer_types": None,
                "written": {"layer_types": None, "mlp_layer_types": None},
            },
            "not-normalised": {"norm_topk_prob": False, "n_group": 1, "topk_group": 1},
            "not-capped": {"final_logit_softcapping": None},
            "wide-heads": WIDE_HEADS,
            "bias": BIAS,
            "tied": TIED,
        },
    ),
    Decoder(
        "laguna",
        "Laguna",
        ROUTED
        | {"shared_expert_intermediate_size": 20, "moe_routed_scaling_factor": 1.5, "num_attention_heads_per_layer": [4, 6]}
        | LAYERS
        | WINDOW,
        {
            "dense-last": {"mlp_layer_types": ["sparse", "dense"], "num_attention_heads_per_layer": None},
            "soft-capped": {"moe_router_logit_softcapping": 0.5},
            "rope-by-type": ropes({"rope_theta": 500.0, "partial_rotary_factor": 0.5}, {"rope_theta": 100.0}),
            "wide-heads": WIDE_HEADS,
            "bias": BIAS,
            "tied": TIED,
        },
    ),
    Decoder(
        "cohere2_moe",
        "Cohere2Moe",
        {"num_experts": 5, "num_experts_per_tok": 2, "head_dim": 8, "num_shared_experts": 2} | LAYERS | WINDOW,
        {
            "sigmoid": {"expert_selection_fn": "sigmoid"},
            "sigmoid-not-normalised": {"expert_selection_fn": "sigmoid", "norm_topk_prob": False},
            "summed": {"shared_expert_combination_strategy": "sum"},
            "none-shared": {"num_shared_experts": 0},
            "dense-first": {
                "layer_types": ["full_attention", "full_attention"],
                "mlp_layer_types": ["dense", "sparse"],
                "prefix_dense_intermediate_size": 40,
            },
            # As published files have it.
            "dense-prefix": {
                "num_hidden_layers": 3,
                "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
                "mlp_layer_types": ["dense", "dense", "sparse"],
                "sliding_window_pattern": 2,
                "prefix_dense_sliding_window_pattern": 2,
                "written": {"layer_types": None, "mlp_layer_types": None, "first_k_dense_replace": 2},
            },
            "rms-norms": {"rms_norm_eps": 1e-5},
            "wide-heads": WIDE_HEADS,
            "bias": BIAS,
            "untied": UNTIED,
        },
    ),
    Decoder(
        "dbrx",
        "Dbrx",
        dbrx(),
        {
            "tight": dbrx(clip_qkv=0.5),
            "not-normalised": dbrx({"moe_normalize_expert_weights": None}),
            "gelu": dbrx({"ffn_act_fn": {"name": "gelu"}}),
        },
        base=DBRX,
    ),
    Decoder(
        "jetmoe",
        "JetMoe",
        {"num_local_experts": 5, "num_experts_per_tok": 2, "kv_channels": 8},
        {"wide-heads": {"kv_channels": 12}, "epsilon": {"rms_norm_eps": 0.1}, "three": {"num_experts_per_tok": 3}, "untied": UNTIED},
        base={name: value for name, value in TINY.items() if name != "num_attention_heads"},
    ),
    Decoder(
        "mimo_v2_flash",
        "MiMoV2Flash",
        {
            "layer_types": ["full_attention", "sliding_attention"],
            "head_dim": 12,
            "v_head_dim": 6,
            "sliding_window": 4,
            "n_routed_experts": 5,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 24,
            "rms_norm_eps": 1.0,
        }
        | ropes({"rope_theta": 1000.0, "partial_rotary_factor": 0.34}, {"rope_theta": 10000.0, "partial_rotary_factor": 0.5}),
        {
            "sparse-first": SPARSE_FIRST | {"norm_topk_prob": False},
            "plain-values": {"attention_value_scale": None, "routed_scaling_factor": 1.5},
            "window-size": {"sliding_window_size": 2},
            "bias": BIAS,
        },
    ),
)
