//! Llama 4: experts whose gates and up projections are one tensor, beside one that all tokens share, or an MLP by layer.

use super::fields::{Fields, HEADS, KV_HEADS, RMS, SIZES, one, plain};
use super::names::{DECODER, Names, PRE_NORMS};
use super::{Architecture, Arrangement, Layout, Part, Source, Split};
use Source::{Fixed, IsNot, Key};

const FIELDS: &Fields = &[
    ("intermediate_size", Key(&["expert_feed_forward_length"])),
    ("intermediate_size_mlp", Key(&["feed_forward_length"])),
    ("num_local_experts", Key(&["expert_count"])),
    ("num_experts_per_tok", Key(&["expert_used_count"])),
    ("interleave_moe_layer_step", Key(&["interleave_moe_layer_step"])),
    // As llama.cpp's graph has it for every file, Maverick's 128 experts apart.
    ("use_qk_norm", IsNot("expert_count", 128)),
    ("attention_chunk_size", Fixed("8192")),
    ("no_rope_layer_interval", Fixed("4")),
    ("attn_temperature_tuning", Fixed("true")),
    ("floor_scale", Fixed("8192")),
    ("attn_scale", Fixed("0.1")),
];

const NAMES: &Names = &[
    ("blk.{}.ffn_gate", "model.layers.{}.feed_forward.gate_proj"),
    ("blk.{}.ffn_up", "model.layers.{}.feed_forward.up_proj"),
    ("blk.{}.ffn_down", "model.layers.{}.feed_forward.down_proj"),
    ("blk.{}.ffn_gate_inp", "model.layers.{}.feed_forward.router"),
    ("blk.{}.ffn_gate_shexp", "model.layers.{}.feed_forward.shared_expert.gate_proj"),
    ("blk.{}.ffn_up_shexp", "model.layers.{}.feed_forward.shared_expert.up_proj"),
    ("blk.{}.ffn_down_shexp", "model.layers.{}.feed_forward.shared_expert.down_proj"),
];

/// Gates come first, and matrices lie the other way.
const EXPERTS: &[Split] = &[
    Split {
        name: "model.layers.{}.feed_forward.experts.gate_up_proj",
        parts: &[Part::of("blk.{}.ffn_gate_exps.weight"), Part::of("blk.{}.ffn_up_exps.weight")],
        rows: Arrangement::Behind,
        layout: Layout::Turned,
    },
    Split {
        name: "model.layers.{}.feed_forward.experts.down_proj",
        parts: &[Part::of("blk.{}.ffn_down_exps.weight")],
        rows: Arrangement::Behind,
        layout: Layout::Turned,
    },
];

pub const ALL: &[Architecture] = &[Architecture {
    splits: EXPERTS,
    ..plain(
        "llama4",
        &[one("llama4_text", "Llama4ForCausalLM")],
        &[SIZES, KV_HEADS, HEADS, RMS, FIELDS],
        &[DECODER, PRE_NORMS, NAMES],
    )
}];
