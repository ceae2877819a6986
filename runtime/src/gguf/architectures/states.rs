//! Models with states of a fixed size: state spaces and short convolutions.

use super::fields::{Fields, GRANITE, HEADS, KV_HEADS, RMS, SIZES, one, plain};
use super::mixtures::EXPERT_COUNTS;
use super::names::{
    DECODER, DELTA_RULE, EXPERTS, GRANITE_DENSE, GRANITE_MOE, LFM2, LFM2_EXPERTS, MAMBA, MAMBA2,
    MAMBA2_MIXER, MAMBAS, POST_ATTENTION_NORM, PRE_NORMS, SHARED_EXPERT,
};
use super::splits::{DELTA_RULE_KEYS, GRANITE_EXPERTS};
use super::{Architecture, Change, Model, Rope, Source, When};
use Source::{Choice, Fixed, Has, InLayers, Key, KeyHeadLayers, Lacks, Maybe, Or, Quotient, Rows};

/// What the configurations of both Mambas have.
const STATES: &Fields = &[
    ("vocab_size", Rows("token_embd.weight")),
    ("hidden_size", Key(&["embedding_length"])),
    ("num_hidden_layers", Key(&["block_count"])),
    ("state_size", Key(&["ssm.state_size"])),
    ("conv_kernel", Key(&["ssm.conv_kernel"])),
    ("layer_norm_epsilon", Key(&["attention.layer_norm_rms_epsilon"])),
    ("expand", Quotient("ssm.inner_size", "embedding_length")),
    ("use_bias", Has("blk.0.ssm_in.bias")),
    ("use_conv_bias", Has("blk.0.ssm_conv1d.bias")),
    ("tie_word_embeddings", Lacks("output.weight")),
];

/// LFM2's fields.
const SHORT_CONVOLUTIONS: &Fields = &[
    ("norm_eps", Key(&["attention.layer_norm_rms_epsilon"])),
    ("num_key_value_heads", Source::MostKeyHeads),
    ("intermediate_size", Key(&["feed_forward_length"])),
    ("conv_L_cache", Key(&["shortconv.l_cache"])),
    ("conv_bias", InLayers("shortconv.conv.bias")),
    ("layer_types", KeyHeadLayers("conv")),
];

pub const ALL: &[Architecture] = &[
    Architecture {
        rope: Rope::Absent,
        changes: &[("ssm_conv1d.weight", Change::Squeezed), ("ssm_a", Change::NegativeExp)],
        ..plain(
            "mamba",
            &[
                Model {
                    model_type: "falcon_mamba",
                    class: "FalconMambaForCausalLM",
                    when: When::Holds("ssm.dt_b_c_rms"),
                },
                one("mamba", "MambaForCausalLM"),
            ],
            &[
                STATES,
                &[
                    ("intermediate_size", Key(&["ssm.inner_size"])),
                    ("time_step_rank", Key(&["ssm.time_step_rank"])),
                    // As llama.cpp's graph has it.
                    ("mixer_rms_eps", Key(&["attention.layer_norm_rms_epsilon"])),
                ],
            ],
            &[MAMBAS, MAMBA],
        )
    },
    Architecture {
        rope: Rope::Absent,
        changes: &[
            ("ssm_conv1d.weight", Change::Squeezed),
            ("ssm_a", Change::NegativeExpColumn),
            ("ssm_d", Change::Shaped),
            ("ssm_norm.weight", Change::Shaped),
        ],
        ..plain(
            "mamba2",
            &[one("mamba2", "Mamba2ForCausalLM")],
            &[
                STATES,
                &[
                    ("num_heads", Key(&["ssm.time_step_rank"])),
                    ("head_dim", Quotient("ssm.inner_size", "ssm.time_step_rank")),
                    ("n_groups", Key(&["ssm.group_count"])),
                ],
            ],
            &[MAMBAS, MAMBA2],
        )
    },
    Architecture {
        changes: &[("shortconv.conv.weight", Change::Squeezed)],
        ..plain(
            "lfm2",
            &[one("lfm2", "Lfm2ForCausalLM")],
            &[SIZES, SHORT_CONVOLUTIONS, &[("block_auto_adjust_ff_dim", Fixed("false"))]],
            &[DECODER, LFM2],
        )
    },
    Architecture {
        changes: &[("shortconv.conv.weight", Change::Squeezed)],
        ..plain(
            "lfm2moe",
            &[one("lfm2_moe", "Lfm2MoeForCausalLM")],
            &[
                SIZES,
                SHORT_CONVOLUTIONS,
                EXPERT_COUNTS,
                &[
                    ("num_dense_layers", Key(&["leading_dense_block_count"])),
                    ("use_expert_bias", InLayers("exp_probs_b.bias")),
                    // As llama.cpp's graph has it for every file.
                    ("norm_topk_prob", Fixed("true")),
                    ("routed_scaling_factor", Fixed("1.0")),
                ],
            ],
            &[DECODER, LFM2, LFM2_EXPERTS],
        )
    },
    Architecture {
        changes: &[
            ("attn_q.weight", Change::RotaryQueries),
            ("attn_k.weight", Change::RotaryKeys),
            ("ssm_conv1d.weight", Change::Squeezed),
            ("ssm_a", Change::NegativeExpColumn),
            ("ssm_d", Change::Shaped),
            ("ssm_norm.weight", Change::Shaped),
        ],
        splits: GRANITE_EXPERTS,
        ..plain(
            "granitehybrid",
            // Bamba's files have none of Granite's factors.
            &[Model {
                model_type: "granitemoehybrid",
                class: "GraniteMoeHybridForCausalLM",
                when: When::Has("embedding_scale"),
            }],
            &[
                SIZES,
                RMS,
                GRANITE,
                &[
                    ("intermediate_size", Key(&["feed_forward_length"])),
                    (
                        "shared_intermediate_size",
                        Key(&["expert_shared_feed_forward_length", "feed_forward_length"]),
                    ),
                    ("num_key_value_heads", Source::MostKeyHeads),
                    ("layer_types", KeyHeadLayers("linear_attention")),
                    ("attention_bias", InLayers("attn_q.bias")),
                    ("position_embedding_type", Choice("rope.scaling.finetuned", ["\"rope\"", "\"nope\""])),
                    ("num_local_experts", Or("expert_count", "0")),
                    ("num_experts_per_tok", Maybe(&["expert_used_count"])),
                    ("mamba_n_heads", Key(&["ssm.time_step_rank"])),
                    ("mamba_d_head", Quotient("ssm.inner_size", "ssm.time_step_rank")),
                    ("mamba_n_groups", Key(&["ssm.group_count"])),
                    ("mamba_d_state", Key(&["ssm.state_size"])),
                    ("mamba_d_conv", Key(&["ssm.conv_kernel"])),
                    ("mamba_expand", Quotient("ssm.inner_size", "embedding_length")),
                    ("mamba_conv_bias", InLayers("ssm_conv1d.bias")),
                    ("mamba_proj_bias", InLayers("ssm_in.bias")),
                ],
            ],
            &[DECODER, PRE_NORMS, GRANITE_MOE, MAMBA2_MIXER, GRANITE_DENSE],
        )
    },
    Architecture {
        changes: &[
            ("attn_norm.weight", Change::PlusOne),
            ("post_attention_norm.weight", Change::PlusOne),
            ("attn_q_norm.weight", Change::PlusOne),
            ("attn_k_norm.weight", Change::PlusOne),
            ("output_norm.weight", Change::PlusOne),
            ("ssm_conv1d.weight", Change::Squeezed),
            ("ssm_a", Change::NegativeExp),
            ("ffn_gate_inp_shexp.weight", Change::Flattened),
        ],
        splits: DELTA_RULE_KEYS,
        ..plain(
            "qwen3next",
            &[one("qwen3_next", "Qwen3NextForCausalLM")],
            &[
                SIZES,
                KV_HEADS,
                HEADS,
                RMS,
                EXPERT_COUNTS,
                &[
                    ("intermediate_size", Maybe(&["feed_forward_length"])),
                    ("shared_expert_intermediate_size", Key(&["expert_shared_feed_forward_length"])),
                    // As llama.cpp's graph has it for every file.
                    ("norm_topk_prob", Fixed("true")),
                    ("attention_bias", InLayers("attn_q.bias")),
                    ("full_attention_interval", Or("full_attention_interval", "4")),
                    ("linear_num_key_heads", Key(&["ssm.group_count"])),
                    ("linear_num_value_heads", Key(&["ssm.time_step_rank"])),
                    ("linear_key_head_dim", Key(&["ssm.state_size"])),
                    ("linear_value_head_dim", Quotient("ssm.inner_size", "ssm.time_step_rank")),
                    ("linear_conv_kernel_dim", Key(&["ssm.conv_kernel"])),
                ],
            ],
            &[DECODER, POST_ATTENTION_NORM, EXPERTS, SHARED_EXPERT, DELTA_RULE],
        )
    },
];
