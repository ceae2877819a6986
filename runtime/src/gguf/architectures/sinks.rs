//! Granite whose layers have attention sinks, and windows in most; its experts are one tensor as published.

use super::fields::{
    BIASES, Fields, GRANITE, INTERMEDIATE, KV_HEADS, LAYER_TYPES, RMS, ROTARY, SIZES, WINDOW, plain,
};
use super::names::{DECODER, GATED_MLP, Names, PRE_NORMS};
use super::splits::GRANITE_STACKED;
use super::{Architecture, Model, Source, When};
use Source::{Has, Key, LayerBases, Or};

/// Some layers may have no positions.
const POSITIONS: &Fields = &[("layer_rope_theta", LayerBases("attention.rope_pattern"))];

const SINKS: &Names = &[("blk.{}.attn_sinks.weight", "model.layers.{}.self_attn.sinks")];

/// What all tokens share has its gate and first projection in one tensor.
const SHARED: &Names = &[
    ("blk.{}.ffn_gate_inp", "model.layers.{}.block_sparse_moe.router"),
    ("blk.{}.ffn_up_shexp", "model.layers.{}.shared_mlp.input_linear"),
    ("blk.{}.ffn_down_shexp", "model.layers.{}.shared_mlp.output_linear"),
];

pub const ALL: &[Architecture] = &[
    Architecture {
        changes: ROTARY,
        ..plain(
            "granite_swa",
            &[Model {
                model_type: "granite_swa",
                class: "GraniteSWAForCausalLM",
                when: When::LacksTensor("blk.0.ffn_gate_inp.weight"),
            }],
            &[SIZES, INTERMEDIATE, KV_HEADS, RMS, GRANITE, WINDOW, LAYER_TYPES, POSITIONS, BIASES],
            &[DECODER, PRE_NORMS, GATED_MLP, SINKS],
        )
    },
    Architecture {
        changes: ROTARY,
        splits: GRANITE_STACKED,
        ..plain(
            "granite_swa",
            &[Model {
                model_type: "granitemoe_swa",
                class: "GraniteMoeSWAForCausalLM",
                when: When::HasTensor("blk.0.ffn_gate_inp.weight"),
            }],
            &[
                SIZES,
                INTERMEDIATE,
                KV_HEADS,
                RMS,
                GRANITE,
                WINDOW,
                LAYER_TYPES,
                POSITIONS,
                &[
                    ("num_local_experts", Key(&["expert_count"])),
                    ("num_experts_per_tok", Key(&["expert_used_count"])),
                    ("shared_intermediate_size", Or("expert_shared_feed_forward_length", "0")),
                    ("attention_bias", Has("blk.0.attn_q.bias")),
                ],
            ],
            &[DECODER, PRE_NORMS, SINKS, SHARED],
        )
    },
];
