//! What the converter split: experts whose gates and up projections are one tensor in the checkpoint, and the keys and values
//! that multi-head latent attention makes of its latent vectors.

use super::{Arrangement, Layout, Part, Split};

/// Of gpt-oss: gates and up projections alternate, and matrices lie the other way.
pub const GPT_OSS_EXPERTS: &[Split] = &[
    Split {
        name: "model.layers.{}.mlp.experts.gate_up_proj",
        parts: &[Part::of("blk.{}.ffn_gate_exps.weight"), Part::of("blk.{}.ffn_up_exps.weight")],
        rows: Arrangement::InTurn,
        layout: Layout::Turned,
    },
    Split {
        name: "model.layers.{}.mlp.experts.gate_up_proj_bias",
        parts: &[Part::of("blk.{}.ffn_gate_exps.bias"), Part::of("blk.{}.ffn_up_exps.bias")],
        rows: Arrangement::InTurn,
        layout: Layout::Stacked,
    },
    Split {
        name: "model.layers.{}.mlp.experts.down_proj",
        parts: &[Part::of("blk.{}.ffn_down_exps.weight")],
        rows: Arrangement::Behind,
        layout: Layout::Turned,
    },
];

/// Of Granite MoE: gates come first, in all experts and in what all tokens share.
pub const GRANITE_EXPERTS: &[Split] = &[
    Split {
        name: "model.layers.{}.block_sparse_moe.input_linear.weight",
        parts: &[Part::of("blk.{}.ffn_gate_exps.weight"), Part::of("blk.{}.ffn_up_exps.weight")],
        rows: Arrangement::Behind,
        layout: Layout::Stacked,
    },
    Split {
        name: "model.layers.{}.block_sparse_moe.output_linear.weight",
        parts: &[Part::of("blk.{}.ffn_down_exps.weight")],
        rows: Arrangement::Behind,
        layout: Layout::Stacked,
    },
    Split {
        name: "model.layers.{}.shared_mlp.input_linear.weight",
        parts: &[Part::of("blk.{}.ffn_gate_shexp.weight"), Part::of("blk.{}.ffn_up_shexp.weight")],
        rows: Arrangement::Behind,
        layout: Layout::Rows,
    },
    // Of layers without experts.
    Split {
        name: "model.layers.{}.shared_mlp.input_linear.weight",
        parts: &[Part::of("blk.{}.ffn_gate.weight"), Part::of("blk.{}.ffn_up.weight")],
        rows: Arrangement::Behind,
        layout: Layout::Rows,
    },
];

/// Of multi-head latent attention: a head's keys lie the other way, before its values.
pub const LATENT_KEYS: &[Split] = &[LATENT_KEY];

const LATENT_KEY: Split = Split {
    name: "model.layers.{}.self_attn.kv_b_proj.weight",
    parts: &[Part { name: "blk.{}.attn_k_b.weight", turned: true }, Part::of("blk.{}.attn_v_b.weight")],
    rows: Arrangement::Behind,
    layout: Layout::Flat,
};

/// Of Mistral 4: these, and experts whose gates come first, in one tensor or two.
pub const LATENT_EXPERTS: &[Split] = &[
    LATENT_KEY,
    stacked("model.layers.{}.mlp.experts.gate_up_proj", &[Part::of("blk.{}.ffn_gate_up_exps.weight")]),
    stacked("model.layers.{}.mlp.experts.gate_up_proj", GATES),
    stacked("model.layers.{}.mlp.experts.down_proj", DOWN),
];

/// Of Granite with windows: such experts, under its own names.
pub const GRANITE_STACKED: &[Split] = &[
    stacked(
        "model.layers.{}.block_sparse_moe.experts.gate_up_proj",
        &[Part::of("blk.{}.ffn_gate_up_exps.weight")],
    ),
    stacked("model.layers.{}.block_sparse_moe.experts.gate_up_proj", GATES),
    stacked("model.layers.{}.block_sparse_moe.experts.down_proj", DOWN),
];

const GATES: &[Part] = &[Part::of("blk.{}.ffn_gate_exps.weight"), Part::of("blk.{}.ffn_up_exps.weight")];
const DOWN: &[Part] = &[Part::of("blk.{}.ffn_down_exps.weight")];

const fn stacked(name: &'static str, parts: &'static [Part]) -> Split {
    Split { name, parts, rows: Arrangement::Behind, layout: Layout::Stacked }
}

/// Of a gated delta rule's projections.
pub const DELTA_RULE_KEYS: &[Split] = &[Split {
    name: "model.layers.{}.linear_attn.in_proj_qkvz.weight",
    parts: &[Part::of("blk.{}.attn_qkv.weight"), Part::of("blk.{}.attn_gate.weight")],
    rows: Arrangement::KeyHeads,
    layout: Layout::Rows,
}];
