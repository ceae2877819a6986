//! Mixtures of experts.

use super::fields::{Fields, GRANITE, HEADS, INTERMEDIATE, KV_HEADS, RMS, ROTARY, SIZES, one, plain};
use super::names::{
    DECODER, ERNIE_BIAS, EXPERTS, GATED_MLP, GPT_OSS, GRANITE_MOE, HUNYUAN_GATE, HUNYUAN_NORMS, LATENT,
    MIXTRAL, POST_ATTENTION_NORM, PRE_NORMS, ROUTER_BIAS, SHARED_EXPERT, SHARED_EXPERTS, SHARED_MLP,
};
use super::splits::{GPT_OSS_EXPERTS, GRANITE_EXPERTS, LATENT_KEYS};
use super::{Architecture, Change, Model, Rope, Source, When};
use Source::{Difference, Fixed, Has, Key, LayerKinds, Maybe, Or, OrNull, Quotient, Times};

pub(super) const EXPERT_COUNTS: &Fields = &[
    ("num_experts", Key(&["expert_count"])),
    ("num_experts_per_tok", Key(&["expert_used_count"])),
    ("moe_intermediate_size", Key(&["expert_feed_forward_length"])),
];

/// DeepSeek's fields: dense layers come first, and some experts take all tokens.
const ROUTED: &Fields = &[
    ("n_routed_experts", Key(&["expert_count"])),
    ("num_experts_per_tok", Key(&["expert_used_count"])),
    ("moe_intermediate_size", Key(&["expert_feed_forward_length"])),
    ("n_shared_experts", Key(&["expert_shared_count"])),
    ("first_k_dense_replace", Key(&["leading_dense_block_count"])),
    ("routed_scaling_factor", Key(&["expert_weights_scale"])),
    ("norm_topk_prob", Key(&["expert_weights_norm"])),
    ("n_group", Fixed("1")),
    ("topk_group", Fixed("1")),
];

/// Those of multi-head latent attention. Files of newer converters have what one shared key head would take under the keys of
/// all others, and the widths of heads under keys of their own.
pub(super) const LATENT_SIZES: &Fields = &[
    ("num_key_value_heads", Key(&["attention.head_count"])),
    ("q_lora_rank", OrNull(&["attention.q_lora_rank"])),
    ("kv_lora_rank", Key(&["attention.kv_lora_rank"])),
    ("qk_rope_head_dim", Key(&["rope.dimension_count"])),
    (
        "qk_nope_head_dim",
        Difference(&["attention.key_length_mla", "attention.key_length"], "rope.dimension_count"),
    ),
    ("v_head_dim", Key(&["attention.value_length_mla", "attention.value_length"])),
    ("attention_bias", Has("blk.0.attn_kv_a_mqa.bias")),
    // A tenth of it is stored; files have no other for sines and cosines.
    ("rope_parameters.mscale_all_dim", Times("rope.scaling.yarn_log_multiplier", 10.0)),
    ("rope_parameters.mscale", Times("rope.scaling.yarn_log_multiplier", 10.0)),
];

/// DeepSeek's experts, in groups where the file has some.
pub(super) const DEEPSEEK: &Fields = &[
    ("n_routed_experts", Key(&["expert_count"])),
    ("num_experts_per_tok", Key(&["expert_used_count"])),
    ("moe_intermediate_size", Key(&["expert_feed_forward_length"])),
    ("n_shared_experts", Key(&["expert_shared_count"])),
    ("first_k_dense_replace", Key(&["leading_dense_block_count"])),
    ("mlp_layer_types", Source::LeadingDense),
    ("routed_scaling_factor", Or("expert_weights_scale", "1.0")),
    ("norm_topk_prob", Or("expert_weights_norm", "false")),
    ("n_group", Or("expert_group_count", "1")),
    ("topk_group", Or("expert_group_used_count", "1")),
];

pub const ALL: &[Architecture] = &[
    Architecture {
        splits: GPT_OSS_EXPERTS,
        ..plain(
            "gpt-oss",
            &[one("gpt_oss", "GptOssForCausalLM")],
            &[
                SIZES,
                INTERMEDIATE,
                KV_HEADS,
                HEADS,
                RMS,
                &[
                    ("num_local_experts", Key(&["expert_count"])),
                    ("num_experts_per_tok", Key(&["expert_used_count"])),
                    ("sliding_window", Key(&["attention.sliding_window"])),
                    ("attention_bias", Has("blk.0.attn_q.bias")),
                    // Not stored, and so in every published checkpoint.
                    ("rope_parameters.truncate", Fixed("false")),
                ],
            ],
            &[DECODER, POST_ATTENTION_NORM, GPT_OSS],
        )
    },
    Architecture {
        changes: ROTARY,
        splits: GRANITE_EXPERTS,
        ..plain(
            "granitemoe",
            &[
                Model {
                    model_type: "granitemoeshared",
                    class: "GraniteMoeSharedForCausalLM",
                    when: When::Has("expert_shared_feed_forward_length"),
                },
                one("granitemoe", "GraniteMoeForCausalLM"),
            ],
            &[
                SIZES,
                INTERMEDIATE,
                KV_HEADS,
                RMS,
                GRANITE,
                &[
                    ("num_local_experts", Key(&["expert_count"])),
                    ("num_experts_per_tok", Key(&["expert_used_count"])),
                    ("shared_intermediate_size", Maybe(&["expert_shared_feed_forward_length"])),
                    ("attention_bias", Has("blk.0.attn_q.bias")),
                ],
            ],
            &[DECODER, PRE_NORMS, GRANITE_MOE],
        )
    },
    // DeepSeek-V3's experts are gated by sigmoids.
    Architecture {
        rope: Rope::Part,
        splits: LATENT_KEYS,
        ..plain(
            "deepseek2",
            &[
                Model {
                    model_type: "deepseek_v3",
                    class: "DeepseekV3ForCausalLM",
                    when: When::Is("expert_gating_func", 2),
                },
                Model {
                    model_type: "glm4_moe_lite",
                    class: "Glm4MoeLiteForCausalLM",
                    when: When::Is("expert_gating_func", 2),
                },
            ],
            &[SIZES, INTERMEDIATE, RMS, LATENT_SIZES, DEEPSEEK],
            &[DECODER, PRE_NORMS, GATED_MLP, EXPERTS, SHARED_EXPERTS, ROUTER_BIAS, LATENT],
        )
    },
    Architecture {
        rope: Rope::Part,
        splits: LATENT_KEYS,
        ..plain(
            "deepseek2",
            &[one("deepseek_v2", "DeepseekV2ForCausalLM")],
            &[
                SIZES,
                INTERMEDIATE,
                RMS,
                LATENT_SIZES,
                DEEPSEEK,
                // Of one group, it is `greedy`.
                &[("topk_method", Fixed("\"group_limited_greedy\""))],
            ],
            &[DECODER, PRE_NORMS, GATED_MLP, EXPERTS, SHARED_EXPERTS, LATENT],
        )
    },
    Architecture {
        changes: &[("ffn_gate_inp_shexp.weight", Change::Flattened)],
        ..plain(
            "qwen2moe",
            &[one("qwen2_moe", "Qwen2MoeForCausalLM")],
            &[
                SIZES,
                INTERMEDIATE,
                KV_HEADS,
                RMS,
                EXPERT_COUNTS,
                &[
                    ("shared_expert_intermediate_size", Key(&["expert_shared_feed_forward_length"])),
                    ("qkv_bias", Has("blk.0.attn_q.bias")),
                ],
            ],
            &[DECODER, PRE_NORMS, GATED_MLP, EXPERTS, SHARED_EXPERT],
        )
    },
    plain(
        "qwen3moe",
        &[one("qwen3_moe", "Qwen3MoeForCausalLM")],
        &[
            SIZES,
            INTERMEDIATE,
            KV_HEADS,
            HEADS,
            RMS,
            EXPERT_COUNTS,
            // As llama.cpp's graph has it for every file.
            &[("norm_topk_prob", Fixed("true")), ("attention_bias", Has("blk.0.attn_q.bias"))],
        ],
        &[DECODER, PRE_NORMS, GATED_MLP, EXPERTS],
    ),
    plain(
        "olmoe",
        &[one("olmoe", "OlmoeForCausalLM")],
        &[
            SIZES,
            INTERMEDIATE,
            KV_HEADS,
            RMS,
            &[
                ("num_experts", Key(&["expert_count"])),
                ("num_experts_per_tok", Key(&["expert_used_count"])),
                ("clip_qkv", Maybe(&["attention.clamp_kqv"])),
                // As llama.cpp's graph has it for every file.
                ("norm_topk_prob", Fixed("false")),
            ],
        ],
        &[DECODER, PRE_NORMS, EXPERTS],
    ),
    plain(
        "phimoe",
        &[one("phimoe", "PhimoeForCausalLM")],
        &[
            SIZES,
            INTERMEDIATE,
            KV_HEADS,
            RMS,
            &[
                ("num_local_experts", Key(&["expert_count"])),
                ("num_experts_per_tok", Key(&["expert_used_count"])),
                ("attention_bias", Has("blk.0.attn_q.bias")),
                ("lm_head_bias", Has("output.bias")),
            ],
        ],
        &[DECODER, PRE_NORMS, MIXTRAL],
    ),
    Architecture {
        changes: &[("exp_probs_b.bias", Change::Flattened)],
        ..plain(
            "ernie4_5-moe",
            &[one("ernie4_5_moe", "Ernie4_5_MoeForCausalLM")],
            &[
                SIZES,
                INTERMEDIATE,
                KV_HEADS,
                HEADS,
                RMS,
                &[
                    ("moe_num_experts", Key(&["expert_count"])),
                    ("moe_k", Key(&["expert_used_count"])),
                    ("moe_intermediate_size", Key(&["expert_feed_forward_length"])),
                    ("moe_num_shared_experts", Key(&["expert_shared_count"])),
                    ("moe_layer_start_index", Key(&["leading_dense_block_count"])),
                    ("moe_layer_interval", Key(&["interleave_moe_layer_step"])),
                    ("use_bias", Has("blk.0.attn_q.bias")),
                ],
            ],
            &[DECODER, PRE_NORMS, GATED_MLP, EXPERTS, SHARED_EXPERTS, ERNIE_BIAS],
        )
    },
    plain(
        "hunyuan-moe",
        &[one("hunyuan_v1_moe", "HunYuanMoEV1ForCausalLM")],
        &[
            SIZES,
            KV_HEADS,
            HEADS,
            RMS,
            &[
                ("intermediate_size", Key(&["expert_feed_forward_length"])),
                ("num_experts", Key(&["expert_count"])),
                ("moe_topk", Key(&["expert_used_count"])),
            ],
        ],
        &[DECODER, HUNYUAN_NORMS, PRE_NORMS, EXPERTS, HUNYUAN_GATE, SHARED_MLP],
    ),
    // Upstage's files have its name, but for how texts are split.
    plain(
        "glm4moe",
        &[Model {
            model_type: "solar_open",
            class: "SolarOpenForCausalLM",
            when: When::TextSplit("solar-open"),
        }],
        &[SIZES, KV_HEADS, HEADS, RMS, ROUTED, &[("attention_bias", Has("blk.0.attn_q.bias"))]],
        &[DECODER, POST_ATTENTION_NORM, EXPERTS, SHARED_EXPERTS, ROUTER_BIAS],
    ),
    plain(
        "glm4moe",
        &[one("glm4_moe", "Glm4MoeForCausalLM")],
        &[
            SIZES,
            INTERMEDIATE,
            KV_HEADS,
            HEADS,
            RMS,
            ROUTED,
            &[("attention_bias", Has("blk.0.attn_q.bias")), ("use_qk_norm", Has("blk.0.attn_q_norm.weight"))],
        ],
        &[DECODER, POST_ATTENTION_NORM, GATED_MLP, EXPERTS, SHARED_EXPERTS, ROUTER_BIAS],
    ),
    plain(
        "dots1",
        &[one("dots1", "Dots1ForCausalLM")],
        &[SIZES, INTERMEDIATE, KV_HEADS, HEADS, RMS, ROUTED, &[("attention_bias", Has("blk.0.attn_q.bias"))]],
        &[DECODER, PRE_NORMS, GATED_MLP, EXPERTS, SHARED_EXPERTS, ROUTER_BIAS],
    ),
    plain(
        "hy_v3",
        &[one("hy_v3", "HYV3ForCausalLM")],
        &[
            SIZES,
            INTERMEDIATE,
            KV_HEADS,
            HEADS,
            RMS,
            EXPERT_COUNTS,
            &[
                (
                    "num_shared_experts",
                    Quotient("expert_shared_feed_forward_length", "expert_feed_forward_length"),
                ),
                ("router_scaling_factor", Or("expert_weights_scale", "1.0")),
                (
                    "mlp_layer_types",
                    LayerKinds(&[("ffn_gate_inp.weight", "sparse"), ("ffn_gate.weight", "dense")]),
                ),
                ("attention_bias", Has("blk.0.attn_q.bias")),
            ],
        ],
        &[
            DECODER,
            PRE_NORMS,
            GATED_MLP,
            EXPERTS,
            SHARED_EXPERTS,
            // Files have it without an ending.
            &[("blk.{}.exp_probs_b", "model.layers.{}.mlp.e_score_correction_bias")],
        ],
    ),
    plain(
        "minimax-m2",
        &[one("minimax_m2", "MiniMaxM2ForCausalLM")],
        &[
            SIZES,
            KV_HEADS,
            HEADS,
            RMS,
            &[
                ("intermediate_size", Key(&["expert_feed_forward_length"])),
                ("num_local_experts", Key(&["expert_count"])),
                ("num_experts_per_tok", Key(&["expert_used_count"])),
            ],
        ],
        &[
            DECODER,
            PRE_NORMS,
            MIXTRAL,
            &[("blk.{}.exp_probs_b.bias", "model.layers.{}.block_sparse_moe.e_score_correction_bias")],
        ],
    ),
];
