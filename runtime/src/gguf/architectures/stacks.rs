//! Two stacks of layers that run in cycles (HRM-Text); files have the layers of the fast one, then those of the slow one.

use super::fields::{HEADS, INTERMEDIATE, RMS, SIZES, one, plain};
use super::names::Names;
use super::{Architecture, Source};
use Source::{Key, Or};

const NAMES: &Names = &[
    ("token_embd", "model.embed_tokens"),
    ("output", "lm_head"),
    ("hrm.z_l_init", "model.z_L_init"),
    ("blk.{}.attn_gate", "model.{stack}_module.layers.{}.self_attn.gate_proj"),
    ("blk.{}.attn_q", "model.{stack}_module.layers.{}.self_attn.q_proj"),
    ("blk.{}.attn_k", "model.{stack}_module.layers.{}.self_attn.k_proj"),
    ("blk.{}.attn_v", "model.{stack}_module.layers.{}.self_attn.v_proj"),
    ("blk.{}.attn_output", "model.{stack}_module.layers.{}.self_attn.o_proj"),
    ("blk.{}.ffn_gate", "model.{stack}_module.layers.{}.mlp.gate_proj"),
    ("blk.{}.ffn_up", "model.{stack}_module.layers.{}.mlp.up_proj"),
    ("blk.{}.ffn_down", "model.{stack}_module.layers.{}.mlp.down_proj"),
];

pub const ALL: &[Architecture] = &[plain(
    "hrm_text",
    &[one("hrm_text", "HrmTextForCausalLM")],
    &[
        SIZES,
        INTERMEDIATE,
        HEADS,
        RMS,
        &[
            ("num_layers_per_stack", Key(&["hrm.layers_per_stack"])),
            ("H_cycles", Key(&["hrm.h_cycles"])),
            ("L_cycles", Key(&["hrm.l_cycles"])),
            ("embedding_scale", Or("embedding_scale", "1.0")),
            ("prefix_lm", Or("hrm.prefix_lm", "false")),
        ],
    ],
    &[NAMES],
)];
