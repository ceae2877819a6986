//! What followed the last tokens where they stood before (`PromptLookupCandidateGenerator`).
//!
//! Source: Saxena, "Prompt Lookup Decoding", 2023 (github.com/apoorvumang/prompt-lookup-decoding).

use super::{CandidateGenerator, NextToken};
use crate::generation::{Decoder, GenerationConfig};
use crate::{Error, Result};

/// The longest n-gram that is looked for (`max_matching_ngram_size`).
const NGRAM: usize = 2;

/// Candidates from the row itself (`PromptLookupCandidateGenerator`): what followed the first place that has its last n-gram.
pub(crate) struct PromptLookup {
    count: usize,
    ngram: usize,
    ends: Vec<i64>,
}

impl PromptLookup {
    /// What a configuration asks for; none where it does not.
    pub(crate) fn of(config: &GenerationConfig) -> Result<Option<Self>> {
        let Some(count) = config.prompt_lookup_num_tokens else { return Ok(None) };
        let ngram = config.max_matching_ngram_size.unwrap_or(NGRAM);
        if count == 0 || ngram == 0 {
            let problem = "must be at least 1, as must `max_matching_ngram_size`";
            return Err(Error::input("prompt_lookup_num_tokens", problem, "leave both out"));
        }
        Ok(Some(Self { count, ngram, ends: config.eos_token_ids().to_vec() }))
    }

    fn found(&self, ids: &[i64], most: usize) -> Vec<i64> {
        let ngrams = (1..=self.ngram.min(ids.len().saturating_sub(1))).rev();
        let mut places = ngrams.flat_map(|size| {
            let last = &ids[ids.len() - size..];
            ids.windows(size)
                .enumerate()
                .filter(move |(_, window)| *window == last)
                .map(move |(at, _)| at + size)
        });
        let Some(start) = places.find(|start| *start < ids.len()) else { return vec![] };
        let found = &ids[start..ids.len().min(start + self.count.min(most))];
        found.iter().copied().take_while(|id| !self.ends.contains(id)).collect()
    }
}

impl CandidateGenerator for PromptLookup {
    fn candidates(
        &mut self,
        ids: &[i64],
        most: usize,
        _: &mut dyn Decoder,
        _: &NextToken<'_>,
    ) -> Result<Vec<i64>> {
        Ok(self.found(ids, most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_place_of_the_longest_ngram_is_continued() {
        let of = |count, ngram, ends: &[i64]| PromptLookup { count, ngram, ends: ends.to_vec() };
        let ids = [1, 2, 3, 4, 2, 5, 6, 1, 2];
        assert_eq!(of(3, 2, &[]).found(&ids, 9), [3, 4, 2]);
        assert_eq!(of(3, 1, &[]).found(&ids, 2), [3, 4]);
        assert_eq!(of(9, 1, &[4]).found(&ids, 9), [3]);
        // The shorter n-gram where the longer one stood nowhere, and nothing of a new token.
        assert_eq!(of(2, 3, &[]).found(&[7, 8, 9, 8], 9), [9, 8]);
        assert_eq!(of(2, 2, &[]).found(&[7, 8, 9], 9), [0; 0]);
        assert_eq!(of(2, 2, &[]).found(&[7], 9), [0; 0]);
    }

    #[test]
    fn nothing_is_not_to_be_looked_for() {
        let config = |count, ngram| GenerationConfig {
            prompt_lookup_num_tokens: count,
            max_matching_ngram_size: ngram,
            ..Default::default()
        };
        assert!(PromptLookup::of(&config(None, Some(0))).unwrap().is_none());
        assert!(PromptLookup::of(&config(Some(4), Some(0))).is_err());
        assert!(PromptLookup::of(&config(Some(0), None)).is_err());
    }
}
