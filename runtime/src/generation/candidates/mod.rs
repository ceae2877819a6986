//! Candidates of assisted decoding (`transformers.generation.candidate_generator`): tokens that may come next, which the model
//! checks in one run.

mod assistant;
mod multi_token;
mod prompt_lookup;

pub use assistant::AssistantModel;
pub use multi_token::MultiTokenAssistant;
pub(super) use prompt_lookup::PromptLookup;

use super::{Decoder, GenerationConfig};
use crate::Result;

/// Chooses the next token of a row that has these tokens, by the scores `[vocab_size]` of it: as the target chooses, with its
/// processors and draws. Processes the scores in place.
pub type NextToken<'a> = dyn Fn(&[i64], &mut [f32]) -> Result<i64> + 'a;

/// What proposes tokens (`CandidateGenerator`).
///
/// Whatever it proposes, the tokens that are generated are those of the target alone; the better it guesses, the fewer runs the target takes.
pub trait CandidateGenerator {
    /// Tokens that may follow the row `ids`, `most` at most; none where it has no guess.
    ///
    /// `target` has run all of them but the last.
    ///
    /// # Errors
    /// When it cannot run.
    fn candidates(
        &mut self,
        ids: &[i64],
        most: usize,
        target: &mut dyn Decoder,
        next: &NextToken<'_>,
    ) -> Result<Vec<i64>>;

    /// Is told how many of the candidates it gave last were accepted (`update_candidate_strategy`).
    fn update(&mut self, accepted: usize) {
        let _ = accepted;
    }
}

/// How many candidates there are at most, and how that changes (`num_assistant_tokens_schedule`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Schedule {
    pub(super) count: usize,
    heuristic: bool,
}

impl Schedule {
    pub(super) fn of(config: &GenerationConfig) -> Self {
        let heuristic = matches!(
            config.num_assistant_tokens_schedule.as_deref(),
            Some("heuristic" | "heuristic_transient")
        );
        Self { count: config.num_assistant_tokens.unwrap_or(20), heuristic }
    }

    /// Two more where all were right, one fewer where not.
    pub(super) fn update(&mut self, accepted: usize) {
        if self.heuristic {
            self.count =
                if accepted == self.count { self.count + 2 } else { self.count.saturating_sub(1).max(1) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heuristic_schedule_follows_what_is_accepted() {
        let config = GenerationConfig {
            num_assistant_tokens: Some(3),
            num_assistant_tokens_schedule: Some("heuristic".to_owned()),
            ..Default::default()
        };
        let mut schedule = Schedule::of(&config);
        let mut counts = vec![];
        for accepted in [3, 4, 0, 0, 0, 0] {
            schedule.update(accepted);
            counts.push(schedule.count);
        }
        assert_eq!(counts, [5, 4, 3, 2, 1, 1]);
        let mut constant = Schedule::of(&GenerationConfig::default());
        constant.update(0);
        assert_eq!(constant.count, 20);
    }
}
