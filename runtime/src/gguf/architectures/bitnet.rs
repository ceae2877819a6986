//! BitNet, whose matrices have three values each.

use super::fields::{INTERMEDIATE, KV_HEADS, RMS, SIZES, one, plain};
use super::names::{DECODER, GATED_MLP, Names, PRE_NORMS};
use super::{Architecture, Source};
use Source::{Has, Or};

/// Of norms before the output projections.
const NORMS: &Names = &[
    ("blk.{}.attn_sub_norm", "model.layers.{}.self_attn.attn_sub_norm"),
    ("blk.{}.ffn_sub_norm", "model.layers.{}.mlp.ffn_sub_norm"),
];

pub const ALL: &[Architecture] = &[plain(
    "bitnet",
    &[one("bitnet", "BitNetForCausalLM")],
    &[
        SIZES,
        INTERMEDIATE,
        KV_HEADS,
        RMS,
        &[
            // As llama.cpp's graph has it for files without the key, which are of the first published models.
            ("hidden_act", Or("hidden_act", "\"silu\"")),
            ("attention_bias", Has("blk.0.attn_q.bias")),
        ],
    ],
    &[DECODER, PRE_NORMS, GATED_MLP, NORMS],
)];
