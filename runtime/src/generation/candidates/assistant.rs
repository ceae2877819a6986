//! A smaller model of the same vocabulary that writes ahead (`AssistedCandidateGenerator`).
//!
//! Source: Leviathan, Kalman and Matias, "Fast Inference from Transformers via Speculative Decoding", 2023 (arxiv.org/abs/2211.17192).

use super::{CandidateGenerator, NextToken, Schedule};
use crate::Result;
use crate::generation::distribution::softmax;
use crate::generation::{Decoder, GenerationConfig, Prompt};

/// The assistant's least probability of a token to go on after it (`assistant_confidence_threshold`).
const CONFIDENCE: f64 = 0.4;

/// A smaller model as [`CandidateGenerator`] (`AssistedCandidateGenerator`): it continues the row by up to `num_assistant_tokens`
/// tokens, and stops where it is unsure or a text ends.
///
/// Its vocabulary must be the target's. It chooses as the target does, with the same processors and the same draws.
pub struct AssistantModel<'a> {
    decoder: Box<dyn Decoder + 'a>,
    /// The tokens that it has run.
    seen: Vec<i64>,
    schedule: Schedule,
    confidence: f32,
    ends: Vec<i64>,
    /// The most tokens that it can run.
    positions: Option<usize>,
}

impl<'a> AssistantModel<'a> {
    /// Of a decoder that has not run, with what a configuration says of assistants and of the tokens that end texts.
    pub fn new(decoder: impl Decoder + 'a, config: &GenerationConfig) -> Self {
        Self {
            decoder: Box::new(decoder),
            seen: vec![],
            schedule: Schedule::of(config),
            confidence: config.assistant_confidence_threshold.unwrap_or(CONFIDENCE) as f32,
            ends: config.eos_token_ids().to_vec(),
            positions: None,
        }
    }

    /// The most tokens of a row that it can run, where it has fewer positions than the target.
    #[must_use]
    pub fn positions(mut self, positions: Option<usize>) -> Self {
        self.positions = positions;
        self
    }

    /// Runs what it has not seen of a row, after taking back what is no part of it; the scores of the next token.
    fn catch_up(&mut self, ids: &[i64]) -> Result<Vec<f32>> {
        if self.seen.is_empty() {
            self.seen = ids.to_vec();
            // What comes with a prompt, such as a mask of its images' tokens, is as long as that: without the target's first token.
            let (prompt, new) = ids.split_at(ids.len().saturating_sub(1));
            let begun = if prompt.is_empty() { new } else { prompt };
            let mut scores = self.decoder.prefill(&Prompt::new(&[begun.to_vec()], None)?)?;
            if !prompt.is_empty() {
                scores = self.decoder.decode_many(new)?;
            }
            return Ok(scores.row(0).to_vec());
        }
        let same = self.seen.iter().zip(ids).take_while(|(a, b)| a == b).count();
        // At least one token is run, for its scores.
        let same = same.min(ids.len().saturating_sub(1));
        self.decoder.crop(self.seen.len() - same)?;
        let scores = self.decoder.decode_many(&ids[same..])?;
        self.seen = ids.to_vec();
        Ok(scores.row(scores.nrows() - 1).to_vec())
    }
}

impl CandidateGenerator for AssistantModel<'_> {
    fn candidates(
        &mut self,
        ids: &[i64],
        most: usize,
        _: &mut dyn Decoder,
        next: &NextToken<'_>,
    ) -> Result<Vec<i64>> {
        let room = self.positions.map_or(usize::MAX, |positions| (positions + 1).saturating_sub(ids.len()));
        let most = most.min(self.schedule.count).min(room);
        if most == 0 {
            return Ok(vec![]);
        }
        let mut scores = self.catch_up(ids)?;
        let mut row = ids.to_vec();
        loop {
            let token = next(&row, &mut scores)?;
            row.push(token);
            let sure = softmax(&scores).get(token as usize).is_some_and(|p| *p >= self.confidence);
            if !sure || row.len() - ids.len() == most || self.ends.contains(&token) {
                return Ok(row.split_off(ids.len()));
            }
            scores = self.decoder.decode_many(&[token])?.row(0).to_vec();
            self.seen.push(token);
        }
    }

    fn update(&mut self, accepted: usize) {
        self.schedule.update(accepted);
    }
}
