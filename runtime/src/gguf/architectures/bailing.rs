//! Ling 3.0 (Bailing Hybrid): delta attention with bounded decays, and latent attention whose heads are gated, by layer.

use super::fields::{Fields, INTERMEDIATE, RMS, SIZES, one, plain};
use super::kimi::DELTA;
use super::mixtures::LATENT_SIZES;
use super::names::{DECODER, EXPERTS, GATED_MLP, LATENT, Names, PRE_NORMS, ROUTER_BIAS, SHARED_EXPERTS};
use super::splits::LATENT_KEYS;
use super::{Architecture, Change, Rope, Source};
use Source::{Key, KeyHeadLayers, LeadingDense, Or};

const FIELDS: &Fields = &[
    ("model_max_length", Key(&["context_length"])),
    ("layer_types", KeyHeadLayers("linear_attention")),
    ("head_dim", Key(&["kda.head_dim"])),
    ("short_conv_kernel_size", Key(&["ssm.conv_kernel"])),
    ("kda_safe_gate", Or("kda.safe_gate", "true")),
    ("kda_lower_bound", Key(&["kda.gate_lower_bound"])),
    ("first_k_dense_replace", Key(&["leading_dense_block_count"])),
    ("mlp_layer_types", LeadingDense),
    ("num_experts", Key(&["expert_count"])),
    ("num_experts_per_token", Key(&["expert_used_count"])),
    ("num_shared_experts", Key(&["expert_shared_count"])),
    ("moe_intermediate_size", Key(&["expert_feed_forward_length"])),
    ("routed_scaling_factor", Or("expert_weights_scale", "1.0")),
    ("moe_renormalize", Or("expert_weights_norm", "false")),
    ("num_expert_group", Or("expert_group_count", "1")),
    ("topk_group", Or("expert_group_used_count", "1")),
];

/// Both kinds of layers have a gate, under a name each.
const NAMES: &Names = &[
    ("blk.{}.attn_gate", "model.layers.{}.self_attn.g_proj"),
    ("blk.{}.ssm_g_a", "model.layers.{}.self_attn.g_proj"),
    ("blk.{}.ssm_f_a", "model.layers.{}.self_attn.f_proj"),
];

pub const ALL: &[Architecture] = &[Architecture {
    rope: Rope::Part,
    changes: &[
        ("ssm_conv1d_q.weight", Change::Squeezed),
        ("ssm_conv1d_k.weight", Change::Squeezed),
        ("ssm_conv1d_v.weight", Change::Squeezed),
        ("ssm_a", Change::ExpColumn),
    ],
    splits: LATENT_KEYS,
    ..plain(
        "bailingmoe3",
        &[one("bailing_hybrid", "BailingHybridForCausalLM")],
        &[SIZES, INTERMEDIATE, RMS, LATENT_SIZES, FIELDS],
        &[DECODER, PRE_NORMS, GATED_MLP, EXPERTS, SHARED_EXPERTS, ROUTER_BIAS, LATENT, DELTA, NAMES],
    )
}];
