//! Answers that are not too short, and that come to an end.

use super::{IMPOSSIBLE, Processor, Row};

/// No end before a length. Reference: `MinLengthLogitsProcessor`, `MinNewTokensLengthLogitsProcessor`.
pub(super) struct AtLeast {
    pub(super) length: usize,
    pub(super) ends: Vec<i64>,
}

impl Processor for AtLeast {
    fn process(&self, row: Row<'_>, scores: &mut [f32]) {
        if row.ids.len() < self.length {
            for end in &self.ends {
                if let Some(score) = scores.get_mut(*end as usize) {
                    *score = IMPOSSIBLE;
                }
            }
        }
    }
}

/// An end that becomes likelier with every token. Reference: `ExponentialDecayLengthPenalty`.
pub(super) struct Decay {
    pub(super) start: usize,
    pub(super) factor: f64,
    pub(super) ends: Vec<i64>,
}

impl Processor for Decay {
    fn process(&self, row: Row<'_>, scores: &mut [f32]) {
        if row.ids.len() <= self.start {
            return;
        }
        let factor = (self.factor.powf((row.ids.len() - self.start) as f64) - 1.0) as f32;
        for end in &self.ends {
            if let Some(score) = scores.get_mut(*end as usize).filter(|score| score.is_finite()) {
                *score += score.abs() * factor;
            }
        }
    }
}
