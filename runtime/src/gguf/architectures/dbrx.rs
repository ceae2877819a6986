//! DBRX, whose fields are in objects and whose experts are rows of three tensors.

use super::fields::{Fields, SIZES, one, plain};
use super::names::Names;
use super::{Architecture, Arrangement, Layout, Part, Source, Split};
use Source::{Fixed, Key, Maybe};

const FIELDS: &Fields = &[
    ("attn_config", Fixed("{}")),
    ("attn_config.kv_n_heads", Key(&["attention.head_count_kv"])),
    ("attn_config.clip_qkv", Maybe(&["attention.clamp_kqv"])),
    ("ffn_config", Fixed("{}")),
    ("ffn_config.ffn_hidden_size", Key(&["feed_forward_length"])),
    ("ffn_config.moe_num_experts", Key(&["expert_count"])),
    ("ffn_config.moe_top_k", Key(&["expert_used_count"])),
    // As llama.cpp's graph has it for every file.
    ("ffn_config.moe_normalize_expert_weights", Fixed("1.0")),
];

const NAMES: &Names = &[
    ("token_embd", "transformer.wte"),
    ("output_norm", "transformer.norm_f"),
    ("output", "lm_head"),
    ("blk.{}.attn_norm", "transformer.blocks.{}.norm_attn_norm.norm_1"),
    ("blk.{}.attn_qkv", "transformer.blocks.{}.norm_attn_norm.attn.Wqkv"),
    ("blk.{}.attn_output", "transformer.blocks.{}.norm_attn_norm.attn.out_proj"),
    ("blk.{}.attn_output_norm", "transformer.blocks.{}.norm_attn_norm.norm_2"),
    ("blk.{}.ffn_gate_inp", "transformer.blocks.{}.ffn.router.layer"),
];

/// Down projections lie the other way.
const EXPERTS: &[Split] = &[
    Split {
        name: "transformer.blocks.{}.ffn.experts.mlp.w1",
        parts: &[Part::of("blk.{}.ffn_gate_exps.weight")],
        rows: Arrangement::Behind,
        layout: Layout::Flat,
    },
    Split {
        name: "transformer.blocks.{}.ffn.experts.mlp.v1",
        parts: &[Part::of("blk.{}.ffn_up_exps.weight")],
        rows: Arrangement::Behind,
        layout: Layout::Flat,
    },
    Split {
        name: "transformer.blocks.{}.ffn.experts.mlp.w2",
        parts: &[Part { name: "blk.{}.ffn_down_exps.weight", turned: true }],
        rows: Arrangement::Behind,
        layout: Layout::Flat,
    },
];

pub const ALL: &[Architecture] = &[Architecture {
    splits: EXPERTS,
    ..plain("dbrx", &[one("dbrx", "DbrxForCausalLM")], &[SIZES, FIELDS], &[NAMES])
}];
