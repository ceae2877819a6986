//! MiniMax-Text-01: lightning attention, which is linear, and softmax attention, by layer.

use super::fields::{Fields, HEADS, INTERMEDIATE, KV_HEADS, RMS, SIZES, one, plain};
use super::names::{DECODER, MIXTRAL, Names, PRE_NORMS};
use super::{Architecture, Source};
use Source::{Key, LayerKinds, Or};

const FIELDS: &Fields = &[
    (
        "layer_types",
        LayerKinds(&[("attn_norm_2.weight", "linear_attention"), ("attn_norm.weight", "full_attention")]),
    ),
    ("num_local_experts", Key(&["expert_count"])),
    ("num_experts_per_tok", Key(&["expert_used_count"])),
    // Files have one factor for all residuals, and none for what is added to them.
    ("full_attn_alpha_factor", Or("residual_scale", "1.0")),
    ("linear_attn_alpha_factor", Or("residual_scale", "1.0")),
    ("mlp_alpha_factor", Or("residual_scale", "1.0")),
];

const NAMES: &Names = &[
    ("blk.{}.attn_norm_2", "model.layers.{}.self_attn.norm"),
    ("blk.{}.attn_gate", "model.layers.{}.self_attn.output_gate"),
    ("blk.{}.attn_output with attn_norm_2.weight", "model.layers.{}.self_attn.out_proj"),
];

pub const ALL: &[Architecture] = &[plain(
    "minimax-01",
    &[one("minimax", "MiniMaxForCausalLM")],
    &[SIZES, INTERMEDIATE, KV_HEADS, HEADS, RMS, FIELDS],
    &[DECODER, PRE_NORMS, MIXTRAL, NAMES],
)];
