//! Tokens that were there already become less likely, or more.

use std::collections::BTreeSet;

use super::{Processor, Row};
use crate::generation::prompt::Prompt;

/// Penalises the tokens of the text so far, without the padding before it.
/// Reference: `RepetitionPenaltyLogitsProcessor`.
pub(super) struct Repetition {
    penalty: f32,
    /// The padding before each prompt.
    starts: Vec<usize>,
}

impl Repetition {
    pub(super) fn new(penalty: f64, prompt: &Prompt) -> Self {
        Self { penalty: penalty as f32, starts: prompt.starts() }
    }
}

impl Processor for Repetition {
    fn process(&self, row: Row<'_>, scores: &mut [f32]) {
        let start = self.starts.get(row.prompt).copied().unwrap_or(0);
        penalise(&row.ids[start.min(row.ids.len())..], self.penalty, scores);
    }
}

/// Favours the tokens of the encoder's text; of the prompt where there is no encoder.
/// Reference: `EncoderRepetitionPenaltyLogitsProcessor`.
pub(super) struct Encoder {
    penalty: f32,
    ids: Vec<Vec<i64>>,
}

impl Encoder {
    pub(super) fn new(penalty: f64, prompt: &Prompt) -> Self {
        Self { penalty: (1.0 / penalty) as f32, ids: prompt.encoder_rows() }
    }
}

impl Processor for Encoder {
    fn process(&self, row: Row<'_>, scores: &mut [f32]) {
        penalise(&self.ids[row.prompt], self.penalty, scores);
    }
}

fn penalise(ids: &[i64], penalty: f32, scores: &mut [f32]) {
    for id in ids.iter().collect::<BTreeSet<_>>() {
        if let Some(score) = usize::try_from(*id).ok().and_then(|id| scores.get_mut(id)) {
            *score = if *score < 0.0 { *score * penalty } else { *score / penalty };
        }
    }
}
