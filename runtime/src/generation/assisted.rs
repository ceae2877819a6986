//! Assisted decoding, also called speculative decoding (`GenerationMixin._assisted_decoding`): candidates are checked in one run
//! of the target, which keeps those that it would have chosen itself.
//!
//! At each position the target's own token is chosen, drawn ones too, with the draw that belongs to the position: the tokens are
//! those of the target alone. The reference compares so where tokens are not drawn; where they are, it takes candidates by chance
//! (`_speculative_sampling`), which gives other texts of the same distribution.
//!
//! Reference: `GenerationMixin._assisted_decoding`.

use super::candidates::CandidateGenerator;
use super::rows::choose;
use super::{Acceptance, Decoding, Generated, Stop, Watch};
use crate::generation::decoder::Decoder;
use crate::{Error, Result};

pub(super) fn decode(
    mut d: Decoding<'_>,
    decoder: &mut dyn Decoder,
    generator: &mut dyn CandidateGenerator,
    watch: &mut Watch<'_>,
) -> Result<Generated> {
    check(&d)?;
    let mut ids = d.prompt.rows().pop().unwrap_or_default();
    let mut acceptance = Acceptance::default();
    let mut candidates: Vec<i64> = vec![];
    let mut logits = decoder.prefill(d.prompt)?;
    let stop = 'texts: loop {
        let mut accepted = 0;
        for position in 0..=candidates.len() {
            let mut scores = logits.row(position).to_vec();
            let token = d.next_token(&ids, &mut scores)?;
            ids.push(token);
            let stop = d.stopping.check(&ids)?;
            let is_candidate = candidates.get(position) == Some(&token);
            accepted += usize::from(is_candidate);
            let cancelled = watch(&[Some(token)]).is_break();
            if stop.is_some() || cancelled {
                acceptance.add(candidates.len(), accepted);
                break 'texts stop.unwrap_or(Stop::Cancelled);
            }
            if !is_candidate {
                break;
            }
        }
        if !candidates.is_empty() {
            acceptance.add(candidates.len(), accepted);
            decoder.crop(candidates.len() - accepted)?;
            generator.update(accepted);
        }
        // The target itself gives one more token than there are candidates.
        let most = d.lengths.most.saturating_sub(ids.len() + 1);
        let next = |ids: &[i64], scores: &mut [f32]| d.next_token(ids, scores);
        candidates = generator.candidates(&ids, most, decoder, &next)?;
        candidates.truncate(most);
        let last = ids.len() - 1;
        logits = match candidates.is_empty() {
            true => decoder.decode(&ids[last..], None)?,
            false => decoder.decode_many(&[&ids[last..], &candidates].concat())?,
        };
    };
    Ok(Generated {
        prompt_length: d.lengths.prompt,
        ends: vec![ids.len()],
        stops: vec![stop],
        sequences: vec![ids],
        scores: None,
        acceptance: Some(acceptance),
    })
}

/// Refuses several rows, which accept other numbers of candidates.
fn check(d: &Decoding<'_>) -> Result<()> {
    let refuse = |name: &str, problem: &str, help: &str| Err(Error::input(name, problem, help));
    if d.prompt.len() != 1 {
        return refuse("batch_size", "must be 1 in assisted decoding", "give the prompts one by one");
    }
    if d.config.num_return_sequences() != 1 {
        let help = "leave it out, or generate without an assistant and without `prompt_lookup_num_tokens`";
        return refuse("num_return_sequences", "must be 1 in assisted decoding", help);
    }
    Ok(())
}

impl Decoding<'_> {
    /// The next token of the only row, by its scores, which are processed in place.
    fn next_token(&self, ids: &[i64], scores: &mut [f32]) -> Result<i64> {
        self.process(0, ids, scores);
        Ok(choose(self, scores, 0, ids.len())? as i64)
    }
}
