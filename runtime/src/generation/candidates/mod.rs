//! Candidates of assisted decoding (`transformers.generation.candidate_generator`): tokens that may come next, which the model
//! checks in one run.

mod assistant;
mod dflash;
mod multi_token;
mod prompt_lookup;

pub use assistant::AssistantModel;
pub use dflash::DFlashAssistant;
pub use multi_token::MultiTokenAssistant;
pub(super) use prompt_lookup::PromptLookup;

use serde_json::Value as Json;

use super::{Decoder, GenerationConfig};
use crate::{AnyModel, Error, Result};

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

/// Whether a model drafts from what it reads of another, and not from tokens alone.
pub(crate) fn reads_target(model: &dyn AnyModel) -> bool {
    model.inputs().iter().any(|input| [multi_token::INPUT, dflash::INPUT].contains(&input.name.as_str()))
}

/// The generator of a drafter that reads the model it drafts for.
///
/// # Errors
/// As [`MultiTokenAssistant::new`] and [`DFlashAssistant::new`].
pub(crate) fn reading<'a>(
    model: &'a dyn AnyModel,
    target: &dyn AnyModel,
    config: &GenerationConfig,
) -> Result<Box<dyn CandidateGenerator + 'a>> {
    match model.inputs().iter().any(|input| input.name == dflash::INPUT) {
        true => Ok(Box::new(DFlashAssistant::new(model, target)?)),
        false => Ok(Box::new(MultiTokenAssistant::new(model, target, config)?)),
    }
}

/// The configuration of a model's text.
fn text_config(model: &dyn AnyModel) -> &Json {
    let config = model.raw_config();
    if config["text_config"].is_object() { &config["text_config"] } else { config }
}

/// Refuses a drafter for models of another hidden size.
fn same_width(wanted: &Json, target: &dyn AnyModel) -> Result<()> {
    let found = &text_config(target)["hidden_size"];
    if wanted == found {
        return Ok(());
    }
    let problem = format!("drafts for a model of hidden size {wanted}, not {found}");
    Err(Error::input("assistant_model", problem, "choose the assistant of this model"))
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
