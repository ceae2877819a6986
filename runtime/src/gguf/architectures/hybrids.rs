//! Decoders whose layers are of several kinds, or have attention and a state space side by side.

use super::fields::{BIASES, Changes, Fields, HEADS, INTERMEDIATE, KV_HEADS, RMS, SIZES, one, plain};
use super::names::{DECODER, MAMBA2_MIXER, Names};
use super::{Architecture, Change, Model, Rope, Source, When};
use Source::{
    Fixed, Has, InLayers, Key, LayerKinds, LayersWith, Maybe, Most, OffsetOf, Or, PeriodOf, Quotient,
};

/// The fields of Mamba 2 that Falcon-H1 and Bamba share.
const MAMBA2: &Fields = &[
    ("mamba_n_heads", Key(&["ssm.time_step_rank"])),
    ("mamba_d_head", Quotient("ssm.inner_size", "ssm.time_step_rank")),
    ("mamba_n_groups", Key(&["ssm.group_count"])),
    ("mamba_d_state", Key(&["ssm.state_size"])),
    ("mamba_d_conv", Key(&["ssm.conv_kernel"])),
    ("mamba_conv_bias", InLayers("ssm_conv1d.bias")),
    ("mamba_proj_bias", InLayers("ssm_in.bias")),
];

/// Nemotron-H's fields, by its own names.
const NEMOTRON: &Fields = &[
    ("layer_norm_epsilon", Key(&["attention.layer_norm_rms_epsilon"])),
    ("num_key_value_heads", Source::MostKeyHeads),
    (
        "layers_block_type",
        LayerKinds(&[
            ("ssm_in.weight", "linear_attention"),
            ("attn_q.weight", "full_attention"),
            ("ffn_gate_inp.weight", "moe"),
            ("ffn_up.weight", "mlp"),
        ]),
    ),
    ("mamba_num_heads", Key(&["ssm.time_step_rank"])),
    ("mamba_head_dim", Quotient("ssm.inner_size", "ssm.time_step_rank")),
    ("n_groups", Key(&["ssm.group_count"])),
    ("ssm_state_size", Key(&["ssm.state_size"])),
    ("conv_kernel", Key(&["ssm.conv_kernel"])),
    ("use_conv_bias", InLayers("ssm_conv1d.bias")),
    ("use_bias", InLayers("ssm_in.bias")),
    ("mlp_bias", InLayers("ffn_up.bias")),
];

/// Those of its experts.
const NEMOTRON_EXPERTS: &Fields = &[
    ("n_routed_experts", Key(&["expert_count"])),
    ("num_experts_per_tok", Key(&["expert_used_count"])),
    ("moe_intermediate_size", Key(&["expert_feed_forward_length"])),
    ("moe_shared_expert_intermediate_size", Key(&["expert_shared_feed_forward_length"])),
    ("norm_topk_prob", Or("expert_weights_norm", "true")),
    ("routed_scaling_factor", Or("expert_weights_scale", "1.0")),
    ("n_group", Or("expert_group_count", "1")),
    ("moe_latent_size", Maybe(&["moe_latent_size"])),
];

/// Of layers with a mixer, attention or both, and a gated MLP. Falcon-H1's files have no ending at a norm.
const HYBRID: &Names = &[
    ("output_norm", "model.final_layernorm"),
    ("blk.{}.attn_norm", "model.layers.{}.input_layernorm"),
    ("blk.{}.ffn_norm", "model.layers.{}.pre_ff_layernorm.weight"),
    ("blk.{}.ffn_norm.weight", "model.layers.{}.pre_ff_layernorm.weight"),
    ("blk.{}.ffn_gate", "model.layers.{}.feed_forward.gate_proj"),
    ("blk.{}.ffn_up", "model.layers.{}.feed_forward.up_proj"),
    ("blk.{}.ffn_down", "model.layers.{}.feed_forward.down_proj"),
];

/// Of Jamba's mixers and experts, over these.
const JAMBA: &Names = &[
    ("blk.{}.ssm_in", "model.layers.{}.mamba.in_proj"),
    ("blk.{}.ssm_conv1d", "model.layers.{}.mamba.conv1d"),
    ("blk.{}.ssm_x", "model.layers.{}.mamba.x_proj"),
    ("blk.{}.ssm_dt", "model.layers.{}.mamba.dt_proj"),
    ("blk.{}.ssm_dt_norm", "model.layers.{}.mamba.dt_layernorm"),
    ("blk.{}.ssm_b_norm", "model.layers.{}.mamba.b_layernorm"),
    ("blk.{}.ssm_c_norm", "model.layers.{}.mamba.c_layernorm"),
    ("blk.{}.ssm_a", "model.layers.{}.mamba.A_log"),
    ("blk.{}.ssm_d", "model.layers.{}.mamba.D"),
    ("blk.{}.ssm_out", "model.layers.{}.mamba.out_proj"),
    ("blk.{}.ffn_gate_inp", "model.layers.{}.feed_forward.router"),
    ("blk.{}.ffn_gate_exps", "model.layers.{}.feed_forward.experts.{}.gate_proj"),
    ("blk.{}.ffn_up_exps", "model.layers.{}.feed_forward.experts.{}.up_proj"),
    ("blk.{}.ffn_down_exps", "model.layers.{}.feed_forward.experts.{}.down_proj"),
];

/// Of Nemotron-H.
const NEMOTRON_NAMES: &Names = &[
    ("token_embd", "backbone.embeddings"),
    ("output_norm", "backbone.norm_f"),
    ("output", "lm_head"),
    ("blk.{}.attn_norm", "backbone.layers.{}.norm"),
    ("blk.{}.attn_q", "backbone.layers.{}.mixer.q_proj"),
    ("blk.{}.attn_k", "backbone.layers.{}.mixer.k_proj"),
    ("blk.{}.attn_v", "backbone.layers.{}.mixer.v_proj"),
    ("blk.{}.attn_output", "backbone.layers.{}.mixer.o_proj"),
    ("blk.{}.ssm_in", "backbone.layers.{}.mixer.in_proj"),
    ("blk.{}.ssm_conv1d", "backbone.layers.{}.mixer.conv1d"),
    ("blk.{}.ssm_dt.bias", "backbone.layers.{}.mixer.dt_bias"),
    ("blk.{}.ssm_a", "backbone.layers.{}.mixer.A_log"),
    ("blk.{}.ssm_d", "backbone.layers.{}.mixer.D"),
    ("blk.{}.ssm_norm", "backbone.layers.{}.mixer.norm"),
    ("blk.{}.ssm_out", "backbone.layers.{}.mixer.out_proj"),
    ("blk.{}.ffn_up", "backbone.layers.{}.mixer.up_proj"),
    ("blk.{}.ffn_down", "backbone.layers.{}.mixer.down_proj"),
    ("blk.{}.ffn_gate_inp", "backbone.layers.{}.mixer.gate"),
    ("blk.{}.exp_probs_b.bias", "backbone.layers.{}.mixer.gate.e_score_correction_bias"),
    ("blk.{}.ffn_up_exps", "backbone.layers.{}.mixer.experts.{}.up_proj"),
    ("blk.{}.ffn_down_exps", "backbone.layers.{}.mixer.experts.{}.down_proj"),
    ("blk.{}.ffn_up_shexp", "backbone.layers.{}.mixer.shared_experts.up_proj"),
    ("blk.{}.ffn_down_shexp", "backbone.layers.{}.mixer.shared_experts.down_proj"),
    ("blk.{}.ffn_latent_down", "backbone.layers.{}.mixer.fc1_latent_proj"),
    ("blk.{}.ffn_latent_up", "backbone.layers.{}.mixer.fc2_latent_proj"),
];

/// What was done to Mamba 2's tensors.
const MIXER: &Changes = &[
    ("ssm_conv1d.weight", Change::Squeezed),
    ("ssm_a", Change::NegativeExpColumn),
    ("ssm_d", Change::Shaped),
    ("ssm_norm.weight", Change::Shaped),
];

pub const ALL: &[Architecture] = &[
    Architecture {
        rope: Rope::Absent,
        changes: &[("ssm_conv1d.weight", Change::Squeezed), ("ssm_a", Change::NegativeExp)],
        ..plain(
            "jamba",
            &[one("jamba", "JambaForCausalLM")],
            &[
                SIZES,
                INTERMEDIATE,
                RMS,
                &[
                    ("num_key_value_heads", Source::MostKeyHeads),
                    ("attn_layer_period", PeriodOf("attn_q.weight")),
                    ("attn_layer_offset", OffsetOf("attn_q.weight")),
                    ("expert_layer_period", PeriodOf("ffn_gate_inp.weight")),
                    ("expert_layer_offset", OffsetOf("ffn_gate_inp.weight")),
                    ("num_experts", Or("expert_count", "1")),
                    ("num_experts_per_tok", Or("expert_used_count", "1")),
                    ("mamba_d_state", Key(&["ssm.state_size"])),
                    ("mamba_d_conv", Key(&["ssm.conv_kernel"])),
                    ("mamba_expand", Quotient("ssm.inner_size", "embedding_length")),
                    ("mamba_dt_rank", Key(&["ssm.time_step_rank"])),
                    ("mamba_conv_bias", InLayers("ssm_conv1d.bias")),
                    ("mamba_proj_bias", InLayers("ssm_in.bias")),
                ],
            ],
            &[DECODER, HYBRID, JAMBA],
        )
    },
    Architecture {
        changes: MIXER,
        ..plain(
            "falcon-h1",
            // Its multipliers are in the weights.
            &[one("falcon_h1", "FalconH1ForCausalLM")],
            &[
                SIZES,
                INTERMEDIATE,
                KV_HEADS,
                HEADS,
                RMS,
                BIASES,
                MAMBA2,
                &[
                    ("mamba_d_ssm", Key(&["ssm.inner_size"])),
                    ("mamba_rms_norm", Has("blk.0.ssm_norm.weight")),
                    // As llama.cpp's graph has it for every file.
                    ("mamba_norm_before_gate", Fixed("false")),
                    ("projectors_bias", Has("blk.0.ssm_out.bias")),
                ],
            ],
            &[DECODER, HYBRID, MAMBA2_MIXER],
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
        ..plain(
            "granitehybrid",
            // Granite's own files have its factors.
            &[Model { model_type: "bamba", class: "BambaForCausalLM", when: When::Lacks("embedding_scale") }],
            &[
                SIZES,
                INTERMEDIATE,
                RMS,
                MAMBA2,
                &[
                    ("num_key_value_heads", Source::MostKeyHeads),
                    ("attn_layer_indices", LayersWith("attn_q.weight")),
                    ("mamba_expand", Quotient("ssm.inner_size", "embedding_length")),
                    ("attention_bias", InLayers("attn_q.bias")),
                    ("mlp_bias", InLayers("ffn_down.bias")),
                ],
            ],
            &[DECODER, HYBRID, MAMBA2_MIXER],
        )
    },
    Architecture {
        rope: Rope::Absent,
        changes: MIXER,
        ..plain(
            "nemotron_h",
            &[one("nemotron_h", "NemotronHForCausalLM")],
            &[SIZES, HEADS, NEMOTRON, &[("intermediate_size", Most("feed_forward_length"))]],
            &[NEMOTRON_NAMES],
        )
    },
    Architecture {
        rope: Rope::Absent,
        changes: MIXER,
        ..plain(
            "nemotron_h_moe",
            &[one("nemotron_h", "NemotronHForCausalLM")],
            &[SIZES, HEADS, NEMOTRON, NEMOTRON_EXPERTS],
            &[NEMOTRON_NAMES],
        )
    },
];
