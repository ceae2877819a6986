//! Mixtures of experts.

use super::decoders::{Fields, HEADS, INTERMEDIATE, KV_HEADS, RMS, SIZES, one, plain};
use super::names::{
    DECODER, ERNIE_BIAS, EXPERTS, GATED_MLP, HUNYUAN_GATE, HUNYUAN_NORMS, MIXTRAL, POST_ATTENTION_NORM,
    PRE_NORMS, ROUTER_BIAS, SHARED_EXPERT, SHARED_EXPERTS, SHARED_MLP,
};
use super::{Architecture, Change, Source};
use Source::{Fixed, Has, Key, Maybe};

const EXPERT_COUNTS: &Fields = &[
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

pub const ALL: &[Architecture] = &[
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
