//! Greedy search and sampling (`GenerationMixin._sample`), row by row.
//!
//! Reference: `GenerationMixin._sample`.

use super::distribution::{best, softmax};
use super::{Decoding, Generated, Stop, Watch};
use crate::generation::decoder::Decoder;
use crate::{Error, Result};

pub(super) fn decode(
    mut d: Decoding<'_>,
    decoder: &mut dyn Decoder,
    watch: &mut Watch<'_>,
) -> Result<Generated> {
    let per_prompt = d.config.num_return_sequences();
    let mut rows: Vec<Vec<i64>> = Vec::new();
    for row in d.prompt.rows() {
        rows.extend(std::iter::repeat_n(row, per_prompt));
    }
    let mut stops: Vec<Option<Stop>> = vec![None; rows.len()];
    let mut ends: Vec<usize> = vec![d.lengths.most; rows.len()];
    let mut logits = decoder.prefill(d.prompt)?;
    // The sequences of one prompt share its scores and its caches until their first tokens.
    let mut parents: Option<Vec<usize>> =
        (per_prompt > 1).then(|| (0..rows.len()).map(|r| r / per_prompt).collect());
    loop {
        let mut tokens = Vec::with_capacity(rows.len());
        let mut new_tokens = Vec::with_capacity(rows.len());
        for (r, row) in rows.iter_mut().enumerate() {
            let from = parents.as_ref().map_or(r, |parents| parents[r]);
            let token = match stops[r] {
                Some(_) if d.stopping.fills() => d.config.pad_token().unwrap_or_default(),
                _ => {
                    let mut scores = logits.row(from).to_vec();
                    d.process(r / per_prompt, row, &mut scores);
                    choose(&d, &scores, r, row.len())? as i64
                }
            };
            new_tokens.push(stops[r].is_none().then_some(token));
            row.push(token);
            tokens.push(token);
            let stop = d.stopping.check(row)?;
            if stops[r].is_none() && stop.is_some() {
                stops[r] = stop;
                ends[r] = row.len();
            }
        }
        let cancelled = watch(&new_tokens).is_break();
        if cancelled || stops.iter().all(Option::is_some) {
            break;
        }
        logits = decoder.decode(&tokens, parents.take().as_deref())?;
    }
    let length = rows.first().map_or(0, Vec::len);
    Ok(Generated {
        prompt_length: d.lengths.prompt,
        ends: ends.iter().zip(&stops).map(|(end, stop)| stop.map_or(length, |_| *end)).collect(),
        stops: stops.into_iter().map(|stop| stop.unwrap_or(Stop::Cancelled)).collect(),
        sequences: rows,
        scores: None,
        acceptance: None,
    })
}

pub(super) fn choose(d: &Decoding<'_>, scores: &[f32], row: usize, step: usize) -> Result<usize> {
    if !d.config.do_sample() {
        return Ok(best(scores));
    }
    let probabilities = softmax(scores);
    if probabilities.iter().any(|p| p.is_nan()) {
        let help = "loosen what forbids tokens, or set `remove_invalid_values`";
        return Err(Error::input("logits", "no token is possible, or scores are no numbers", help));
    }
    Ok(d.draws.one(&probabilities, row, step))
}
