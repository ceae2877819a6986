//! What decoders call their inputs.

use super::LOGITS_TO_KEEP;
use crate::graph::{Input, InputDefault};

/// What the decoder calls its inputs; none for those that it does not take.
pub(super) struct Names {
    pub(super) ids: &'static str,
    pub(super) mask: Option<&'static str>,
    /// With the number that positions count from.
    pub(super) positions: Option<(&'static str, usize)>,
    /// Whether it takes `logits_to_keep`.
    pub(super) logits_to_keep: bool,
}

impl Names {
    pub(super) fn of(inputs: &[Input]) -> Self {
        let find = |names: [&'static str; 2]| {
            names.into_iter().find(|name| inputs.iter().any(|input| input.name == *name))
        };
        let decoder = inputs.iter().any(|input| input.name == "decoder_input_ids");
        // Positions that the model counts by its own rule are left to it.
        let positions = ["decoder_position_ids", "position_ids"].into_iter().find_map(|name| {
            let input = inputs.iter().find(|input| input.name == name)?;
            match input.default {
                Some(InputDefault::Positions) | None => Some((name, 0)),
                Some(InputDefault::PositionsFrom(first)) => Some((name, first)),
                Some(_) => None,
            }
        });
        Self {
            ids: if decoder { "decoder_input_ids" } else { "input_ids" },
            // Of a model in one piece, `attention_mask` is the encoder's.
            mask: find(["decoder_attention_mask", "attention_mask"])
                .filter(|name| !decoder || *name == "decoder_attention_mask"),
            positions,
            logits_to_keep: takes(inputs, LOGITS_TO_KEEP),
        }
    }
}

pub(super) fn takes(inputs: &[Input], name: &str) -> bool {
    inputs.iter().any(|input| input.name == name)
}
