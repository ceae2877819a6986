//! Mixtures of experts in which most layers attend within a window; in K-EXAONE and Trinity these alone have rotary position
//! embeddings, in Mellum and MiMo-V2-Flash other ones.

use super::fields::{Fields, HEADS, INTERMEDIATE, KV_HEADS, LAYER_TYPES, RMS, SIZES, WINDOW, one, plain};
use super::mixtures::EXPERT_COUNTS;
use super::names::{DECODER, EXPERTS, GATED_MLP, Names, PRE_NORMS, ROUTER_BIAS, SHARED_EXPERTS};
use super::{Architecture, Rope, Source};
use Source::{Fixed, Has, Key, LayerKinds, LeadingDense, OfSliding, Or, OrNull};

/// Of K-EXAONE's router.
const EXAONE: &Names = &[("blk.{}.exp_probs_b.bias", "model.layers.{}.mlp.e_score_correction_bias")];

/// Of Trinity's gated attention, norms and router.
const AFMOE: &Names = &[
    ("blk.{}.attn_norm", "model.layers.{}.input_layernorm"),
    ("blk.{}.post_attention_norm", "model.layers.{}.post_attention_layernorm"),
    ("blk.{}.ffn_norm", "model.layers.{}.pre_mlp_layernorm"),
    ("blk.{}.post_ffw_norm", "model.layers.{}.post_mlp_layernorm"),
    ("blk.{}.attn_gate", "model.layers.{}.self_attn.gate_proj"),
    ("blk.{}.ffn_gate_inp", "model.layers.{}.mlp.router.gate"),
    ("blk.{}.exp_probs_b.bias", "model.layers.{}.mlp.expert_bias"),
];

/// Of the sinks of MiMo-V2-Flash's windows.
const SINKS: &Names = &[("blk.{}.attn_sinks.weight", "model.layers.{}.self_attn.attention_sink_bias")];

const SHARED: &Fields = &[("num_shared_experts", Key(&["expert_shared_count"]))];

pub const ALL: &[Architecture] = &[
    plain(
        "exaone-moe",
        &[one("exaone_moe", "ExaoneMoeForCausalLM")],
        &[
            SIZES,
            INTERMEDIATE,
            KV_HEADS,
            HEADS,
            RMS,
            WINDOW,
            LAYER_TYPES,
            EXPERT_COUNTS,
            SHARED,
            &[
                ("mlp_layer_types", LeadingDense),
                ("routed_scaling_factor", Or("expert_weights_scale", "1.0")),
                ("norm_topk_prob", Or("expert_weights_norm", "false")),
                ("n_group", Or("expert_group_count", "1")),
                ("topk_group", Or("expert_group_used_count", "1")),
            ],
        ],
        &[DECODER, PRE_NORMS, GATED_MLP, EXPERTS, SHARED_EXPERTS, EXAONE],
    ),
    plain(
        "afmoe",
        &[one("afmoe", "AfmoeForCausalLM")],
        &[
            SIZES,
            INTERMEDIATE,
            KV_HEADS,
            HEADS,
            RMS,
            WINDOW,
            EXPERT_COUNTS,
            SHARED,
            &[
                ("num_dense_layers", Key(&["leading_dense_block_count"])),
                ("route_scale", Or("expert_weights_scale", "1.0")),
                // As llama.cpp's graph has it for every file.
                ("global_attn_every_n_layers", Fixed("4")),
                ("mup_enabled", Fixed("true")),
            ],
        ],
        &[DECODER, GATED_MLP, EXPERTS, SHARED_EXPERTS, AFMOE],
    ),
    Architecture {
        rope: Rope::ByLayers(10_000.0),
        ..plain(
            "mellum",
            &[one("mellum", "MellumForCausalLM")],
            &[
                SIZES,
                INTERMEDIATE,
                KV_HEADS,
                HEADS,
                RMS,
                WINDOW,
                LAYER_TYPES,
                EXPERT_COUNTS,
                // As llama.cpp's graph has it for every file.
                &[("norm_topk_prob", Fixed("true")), ("attention_bias", Has("blk.0.attn_q.bias"))],
            ],
            &[DECODER, PRE_NORMS, EXPERTS],
        )
    },
    Architecture {
        rope: Rope::ByLayers(10_000.0),
        ..plain(
            "mimo2",
            &[one("mimo_v2_flash", "MiMoV2FlashForCausalLM")],
            &[
                SIZES,
                INTERMEDIATE,
                HEADS,
                RMS,
                WINDOW,
                LAYER_TYPES,
                &[
                    // Layers with a window have twice as many.
                    ("num_key_value_heads", OfSliding("attention.head_count_kv", false)),
                    ("v_head_dim", Key(&["attention.value_length"])),
                    ("attention_value_scale", OrNull(&["attention.value_scale"])),
                    ("attention_bias", Has("blk.0.attn_q.bias")),
                    (
                        "mlp_layer_types",
                        LayerKinds(&[("ffn_gate_inp.weight", "sparse"), ("ffn_gate.weight", "dense")]),
                    ),
                    ("n_routed_experts", Key(&["expert_count"])),
                    ("num_experts_per_tok", Key(&["expert_used_count"])),
                    ("moe_intermediate_size", Key(&["expert_feed_forward_length"])),
                    ("routed_scaling_factor", Or("expert_weights_scale", "1.0")),
                    // As llama.cpp's graph has it for every file.
                    ("norm_topk_prob", Fixed("true")),
                    ("n_group", Fixed("1")),
                    ("topk_group", Fixed("1")),
                ],
            ],
            &[DECODER, PRE_NORMS, GATED_MLP, EXPERTS, ROUTER_BIAS, SINKS],
        )
    },
];
