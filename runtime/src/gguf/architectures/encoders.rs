//! Encoders.

use super::fields::{HEADS, INTERMEDIATE, KV_HEADS, LAYER_NORM, RMS, SIZES, one, plain};
use super::names::{BERT, DECODER, GATED_MLP, NOMIC, PRE_NORMS};
use super::{Architecture, Rope, Source};
use Source::Rows;

pub const ALL: &[Architecture] = &[
    plain(
        "eurobert",
        &[one("eurobert", "EuroBertModel")],
        &[SIZES, INTERMEDIATE, KV_HEADS, HEADS, RMS],
        &[DECODER, PRE_NORMS, GATED_MLP],
    ),
    Architecture {
        rope: Rope::Absent,
        ..plain(
            "bert",
            &[one("bert", "BertModel")],
            &[SIZES, INTERMEDIATE, LAYER_NORM, &[("type_vocab_size", Rows("token_types.weight"))]],
            &[BERT],
        )
    },
    plain(
        "nomic-bert",
        &[one("nomic_bert", "NomicBertModel")],
        &[SIZES, INTERMEDIATE, LAYER_NORM, &[("type_vocab_size", Rows("token_types.weight"))]],
        &[NOMIC],
    ),
];
