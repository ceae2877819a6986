//! What a round does: a forward pass, or tokens one by one.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use ndarray::Array2;
use serde_json::Value as Json;

use super::super::arguments::Arguments;
use super::random;
use crate::GraphKind;
use crate::generation::{Decoder, Generation, GenerationConfig, ModelDecoder, Prompt};
use crate::session::millis;
use crate::{AnyModel, Error, Result, Value, Values, golden};

/// Milliseconds of a round by what was measured: `run`, or of a decoder `prefill` and `token`, the mean of its tokens; of many tokens
/// also `token_first` and `token_last`, the medians of the first hundred and the last.
pub(super) type Round = BTreeMap<&'static str, f64>;

pub(super) enum Work {
    Forward(Values),
    Tokens {
        inputs: Values,
        count: usize,
        /// The positions and bytes that a decoder cached last.
        cached: Cell<Option<[usize; 2]>>,
    },
}

impl Work {
    /// As the arguments say: `--inputs FILE` with `in.` tensors, or random ones; `--generate N`.
    pub(super) fn of(model: &dyn AnyModel, arguments: &Arguments) -> Result<Self> {
        let inputs = match arguments.get("inputs") {
            Some(file) => given(Path::new(file))?,
            None => {
                let (batch, sequence) = (arguments.number("batch", 1)?, arguments.number("sequence", 128)?);
                let wanted = model.inputs().iter().filter(|input| input.default.is_none());
                wanted.map(|input| (input.name.clone(), random(input, batch, sequence))).collect()
            }
        };
        Ok(match arguments.number("generate", 0)? {
            0 => Self::Forward(inputs),
            count => Self::Tokens { inputs, count, cached: Cell::default() },
        })
    }

    pub(super) fn round(&self, model: &dyn AnyModel) -> Result<Round> {
        match self {
            Self::Forward(inputs) => {
                let start = Instant::now();
                model.run(inputs.clone())?;
                Ok(Round::from([("run", millis(start))]))
            }
            Self::Tokens { inputs, count, .. } if model.graph_kinds().contains(&GraphKind::Encoder) => {
                encoder_decoder(model, inputs, *count)
            }
            Self::Tokens { inputs, count, cached } => decoder(model, inputs, *count, cached),
        }
    }

    /// The positions and bytes that the last round cached; none where it was no decoder's.
    pub(super) fn cached(&self) -> Option<[usize; 2]> {
        match self {
            Self::Tokens { cached, .. } => cached.get(),
            Self::Forward(_) => None,
        }
    }
}

fn given(file: &Path) -> Result<Values> {
    let tensors = golden::tensors(file)?;
    Ok(tensors
        .into_iter()
        .filter_map(|(name, value)| Some((name.strip_prefix("in.")?.to_owned(), value)))
        .collect())
}

/// The encoder, then so many tokens, as pipelines generate them.
fn encoder_decoder(model: &dyn AnyModel, inputs: &Values, count: usize) -> Result<Round> {
    let first = model.raw_config().get("decoder_start_token_id").and_then(Json::as_i64);
    let prompt = Prompt::new(&[vec![first.unwrap_or_default()]], None)?;
    let config = GenerationConfig { max_new_tokens: Some(count), ..GenerationConfig::default() };
    let start = Instant::now();
    let mut decoder = ModelDecoder::encoder_decoder(model, inputs.clone())?;
    let generated = Generation::new(&prompt, &config).run(&mut decoder)?;
    let ms = millis(start);
    match generated.new_tokens(0).len() {
        made if made == count => Ok(Round::from([("run", ms)])),
        made => Err(Error::input("--generate", format!("made {made} tokens of {count}"), "give fewer")),
    }
}

/// A prompt with what else its pass takes, images for one, then tokens one by one, each the most probable after the one before.
fn decoder(
    model: &dyn AnyModel,
    inputs: &Values,
    count: usize,
    cached: &Cell<Option<[usize; 2]>>,
) -> Result<Round> {
    let Some(Value::I64(ids)) = inputs.get("input_ids") else {
        return Err(Error::input("input_ids", "a decoder goes on from tokens", "give `in.input_ids`"));
    };
    let rows: Vec<Vec<i64>> = ids.outer_iter().map(|row| row.iter().copied().collect()).collect();
    let prompt = Prompt::new(&rows, None)?;
    let mut first = inputs.clone();
    first.retain(|name, _| !matches!(name.as_str(), "input_ids" | "attention_mask"));
    let start = Instant::now();
    let mut decoder = ModelDecoder::new(model)?.beginning_with(first);
    let mut next = argmax(&decoder.prefill(&prompt)?);
    let prefill = millis(start);
    let mut steps = Vec::with_capacity(count);
    for _ in 0..count {
        let start = Instant::now();
        next = argmax(&decoder.decode(&next, None)?);
        steps.push(millis(start));
    }
    let token = (millis(start) - prefill) / count as f64;
    cached.set(decoder.cached());
    let mut round = Round::from([("prefill", prefill), ("token", token)]);
    if count >= 2 * PART {
        round.insert("token_first", median(&mut steps[..PART]));
        round.insert("token_last", median(&mut steps[count - PART..]));
    }
    Ok(round)
}

/// How many steps the first and the last ones are.
const PART: usize = 100;

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn argmax(scores: &Array2<f32>) -> Vec<i64> {
    let best = |row: ndarray::ArrayView1<'_, f32>| {
        let found = row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
        found.map_or(0, |(token, _)| token as i64)
    };
    scores.outer_iter().map(best).collect()
}
