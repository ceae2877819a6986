//! Tokens that must come or must not, and scores that are no numbers.

use super::{IMPOSSIBLE, Processor, Row};
use crate::generation::distribution::log_softmax;

/// One of these tokens comes at this length.
/// Reference: `ForcedBOSTokenLogitsProcessor`, `ForcedEOSTokenLogitsProcessor`.
pub(super) struct Forced {
    pub(super) length: usize,
    pub(super) tokens: Vec<i64>,
}

impl Processor for Forced {
    fn process(&self, row: Row<'_>, scores: &mut [f32]) {
        if row.ids.len() == self.length {
            scores.fill(IMPOSSIBLE);
            for token in &self.tokens {
                if let Some(score) = scores.get_mut(*token as usize) {
                    *score = 0.0;
                }
            }
        }
    }
}

/// None of these tokens comes: at this length, or ever.
/// Reference: `SuppressTokensLogitsProcessor`, `SuppressTokensAtBeginLogitsProcessor`.
pub(super) struct Suppress {
    pub(super) tokens: Vec<i64>,
    pub(super) length: Option<usize>,
}

impl Processor for Suppress {
    fn process(&self, row: Row<'_>, scores: &mut [f32]) {
        if self.length.is_none_or(|length| length == row.ids.len()) {
            for token in &self.tokens {
                if let Some(score) = usize::try_from(*token).ok().and_then(|token| scores.get_mut(token)) {
                    *score = IMPOSSIBLE;
                }
            }
        }
    }
}

/// Numbers for infinities and what is no number. Reference: `InfNanRemoveLogitsProcessor`.
pub(super) struct RemoveInvalid;

impl Processor for RemoveInvalid {
    fn process(&self, _: Row<'_>, scores: &mut [f32]) {
        for score in scores {
            *score = if score.is_nan() { 0.0 } else { score.clamp(f32::MIN, f32::MAX) };
        }
    }
}

/// Logarithms of probabilities. Reference: `LogitNormalization`.
pub(super) struct Normalise;

impl Processor for Normalise {
    fn process(&self, _: Row<'_>, scores: &mut [f32]) {
        log_softmax(scores);
    }
}
