//! Kimi Linear: delta attention, and multi-head latent attention without positions, by layer.

use super::fields::{Fields, INTERMEDIATE, RMS, SIZES, one, plain};
use super::mixtures::LATENT_SIZES;
use super::names::{DECODER, GATED_MLP, LATENT, MIXTRAL, Names, PRE_NORMS};
use super::splits::LATENT_KEYS;
use super::{Architecture, Change, Rope, Source};
use Source::{Fixed, Key, KeyHeadLayers, LeadingDense, Or};

const FIELDS: &Fields = &[
    ("layer_types", KeyHeadLayers("linear_attention")),
    // Both kinds of layers have as many heads.
    ("linear_num_heads", Key(&["attention.head_count"])),
    ("linear_head_dim", Key(&["kda.head_dim"])),
    ("linear_conv_kernel_dim", Key(&["ssm.conv_kernel"])),
    ("mlp_layer_types", LeadingDense),
    ("num_experts", Key(&["expert_count"])),
    ("num_experts_per_token", Key(&["expert_used_count"])),
    ("num_shared_experts", Key(&["expert_shared_count"])),
    ("moe_intermediate_size", Key(&["expert_feed_forward_length"])),
    ("routed_scaling_factor", Or("expert_weights_scale", "1.0")),
    // As llama.cpp's graph has it for every file.
    ("moe_renormalize", Fixed("true")),
    ("num_expert_group", Fixed("1")),
    ("topk_group", Fixed("1")),
];

/// Of delta attention (Kimi Delta Attention): convolutions, decays and the norm.
pub const DELTA: &Names = &[
    ("blk.{}.ssm_conv1d_q", "model.layers.{}.self_attn.q_conv1d"),
    ("blk.{}.ssm_conv1d_k", "model.layers.{}.self_attn.k_conv1d"),
    ("blk.{}.ssm_conv1d_v", "model.layers.{}.self_attn.v_conv1d"),
    ("blk.{}.ssm_beta", "model.layers.{}.self_attn.b_proj"),
    ("blk.{}.ssm_a", "model.layers.{}.self_attn.A_log"),
    ("blk.{}.ssm_dt.bias", "model.layers.{}.self_attn.dt_bias"),
    ("blk.{}.ssm_norm", "model.layers.{}.self_attn.o_norm"),
];

const NAMES: &Names = &[
    ("blk.{}.ssm_f_a", "model.layers.{}.self_attn.f_a_proj"),
    ("blk.{}.ssm_f_b", "model.layers.{}.self_attn.f_b_proj"),
    ("blk.{}.ssm_g_a", "model.layers.{}.self_attn.g_a_proj"),
    ("blk.{}.ssm_g_b", "model.layers.{}.self_attn.g_b_proj"),
    ("blk.{}.exp_probs_b.bias", "model.layers.{}.block_sparse_moe.gate.e_score_correction_bias"),
    ("blk.{}.ffn_gate_shexp", "model.layers.{}.block_sparse_moe.shared_experts.gate_proj"),
    ("blk.{}.ffn_up_shexp", "model.layers.{}.block_sparse_moe.shared_experts.up_proj"),
    ("blk.{}.ffn_down_shexp", "model.layers.{}.block_sparse_moe.shared_experts.down_proj"),
];

pub const ALL: &[Architecture] = &[Architecture {
    rope: Rope::Absent,
    changes: &[
        ("ssm_conv1d_q.weight", Change::Squeezed),
        ("ssm_conv1d_k.weight", Change::Squeezed),
        ("ssm_conv1d_v.weight", Change::Squeezed),
        ("ssm_a", Change::NegativeExpHeads),
    ],
    splits: LATENT_KEYS,
    ..plain(
        "kimi-linear",
        &[one("kimi_linear", "KimiLinearForCausalLM")],
        &[SIZES, INTERMEDIATE, RMS, LATENT_SIZES, FIELDS],
        &[DECODER, PRE_NORMS, GATED_MLP, LATENT, MIXTRAL, DELTA, NAMES],
    )
}];
