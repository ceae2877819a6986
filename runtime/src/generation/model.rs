//! A loaded model as decoder: with its KV cache where it has one, else the whole sequence at every step.

use ndarray::{Array1, Array2, ArrayD, Axis, concatenate};

use super::decoder::Decoder;
use super::prompt::Prompt;
use crate::GraphKind;
use crate::graph::{Input, InputDefault};
use crate::session::SavedStates;
use crate::value::without_last;
use crate::{AnyModel, Cache, Error, Result, Value, Values};

/// The input of cached parts that names the positions whose scores are wanted.
const LOGITS_TO_KEEP: &str = "logits_to_keep";
const LOGITS: &str = "logits";
const LAST_HIDDEN_STATE: &str = "last_hidden_state";

/// A loaded model as [`Decoder`].
///
/// An encoder-decoder runs its encoder once, when this is made; a decoder that takes more than tokens at first, such
/// as images, is given that by [`ModelDecoder::beginning_with`].
pub struct ModelDecoder<'a> {
    model: &'a dyn AnyModel,
    cache: Option<Cache>,
    names: Names,
    /// What is seen of each row, `[rows, length]`.
    mask: Array2<i64>,
    /// All tokens, where there is no cache.
    ids: Array2<i64>,
    /// The next position of each row.
    positions: Vec<i64>,
    /// What every run takes, row by row: the encoder's mask, or all of the encoder's inputs where there is no cache.
    every: Values,
    /// What the first run takes beside tokens.
    first: Values,
    /// What [`Decoder::decode_many`] added and may be taken back, where that needs more than a shorter cache.
    added: Vec<Added>,
    /// Hidden states of what was run last and stayed, `[rows, positions, hidden_size]`, where they were asked for.
    hidden: Values,
}

/// Tokens that were added to states, which have no positions.
struct Added {
    ids: Vec<i64>,
    before: SavedStates,
}

/// What the decoder calls its inputs; none for those that it does not take.
struct Names {
    ids: &'static str,
    mask: Option<&'static str>,
    /// With the number that positions count from.
    positions: Option<(&'static str, usize)>,
    /// Whether it takes `logits_to_keep`.
    logits_to_keep: bool,
}

/// What tokens attend to of images, `[rows, sequence, …]`; tokens that follow attend to what the last one does.
const ATTENDED: [&str; 2] = ["cross_attention_mask", "image_attention_mask"];

/// What a model that has read images says of the positions after them, row by row.
const ROPE_DELTAS: &str = "rope_deltas";

impl Names {
    fn of(inputs: &[Input]) -> Self {
        let find = |names: [&'static str; 2]| {
            names.into_iter().find(|name| inputs.iter().any(|input| input.name == *name))
        };
        let decoder = inputs.iter().any(|input| input.name == "decoder_input_ids");
        // Positions that the model counts by its own rule are left to it.
        let positions = ["decoder_position_ids", "position_ids"].into_iter().find_map(|name| {
            let input = inputs.iter().find(|input| input.name == name)?;
            match input.default {
                Some(InputDefault::Positions) | None => Some((name, 0)),
                Some(InputDefault::PositionsFrom(first)) => Some((name, first)),
                Some(_) => None,
            }
        });
        Self {
            ids: if decoder { "decoder_input_ids" } else { "input_ids" },
            // Of a model in one piece, `attention_mask` is the encoder's.
            mask: find(["decoder_attention_mask", "attention_mask"])
                .filter(|name| !decoder || *name == "decoder_attention_mask"),
            positions,
            logits_to_keep: takes(inputs, LOGITS_TO_KEEP),
        }
    }
}

impl<'a> ModelDecoder<'a> {
    /// A decoder-only model.
    ///
    /// # Errors
    /// When the model cannot be made ready.
    pub fn new(model: &'a dyn AnyModel) -> Result<Self> {
        let cached = model.graph_kinds().contains(&GraphKind::Decode);
        let inputs = if cached { model.inputs_of(GraphKind::Decode)? } else { model.inputs().to_vec() };
        Ok(Self {
            model,
            cache: cached.then(Cache::new),
            names: Names::of(&inputs),
            mask: Array2::zeros((0, 0)),
            ids: Array2::zeros((0, 0)),
            positions: vec![],
            every: Values::new(),
            first: Values::new(),
            added: vec![],
            hidden: Values::new(),
        })
    }

    /// One that reads the whole text at every step.
    pub fn without_cache(model: &'a dyn AnyModel) -> Self {
        let names = Names::of(model.inputs());
        let (mask, ids) = (Array2::zeros((0, 0)), Array2::zeros((0, 0)));
        let (every, first) = (Values::new(), Values::new());
        Self {
            model,
            cache: None,
            names,
            mask,
            ids,
            positions: vec![],
            every,
            first,
            added: vec![],
            hidden: Values::new(),
        }
    }

    /// An encoder-decoder, whose encoder runs now. `inputs` are the encoder's, such as `input_ids` and
    /// `attention_mask`, or `input_features`.
    ///
    /// # Errors
    /// When the model cannot be made ready or cannot run.
    pub fn encoder_decoder(model: &'a dyn AnyModel, mut inputs: Values) -> Result<Self> {
        let mut made = Self::new(model)?;
        match &mut made.cache {
            Some(cache) => {
                let taken = model.inputs_of(GraphKind::Encoder)?;
                let step = model.inputs_of(GraphKind::Decode)?;
                // What the decoder takes too: the mask of the encoder's positions.
                for (name, value) in &inputs {
                    let name = if name == "attention_mask" { "encoder_attention_mask" } else { name };
                    if takes(&step, name) {
                        made.every.insert(name.to_owned(), value.clone());
                    }
                }
                inputs.retain(|name, _| takes(&taken, name));
                let encoded = model.run_cached(GraphKind::Encoder, inputs, cache)?;
                made.every.extend(encoded.into_iter().filter(|(name, _)| takes(&step, name)));
            }
            None => made.every = inputs,
        }
        Ok(made)
    }

    /// What the decoder takes with the first tokens alone, such as `pixel_values`.
    #[must_use]
    pub fn beginning_with(mut self, values: Values) -> Self {
        self.first = values;
        self
    }

    fn run(
        &mut self,
        kind: GraphKind,
        ids: Array2<i64>,
        positions: Array2<i64>,
        more: Values,
        wanted: usize,
    ) -> Result<Array2<f32>> {
        let mut values = self.every.clone();
        values.extend(more);
        let length = ids.ncols() as i64;
        values.insert(self.names.ids.to_owned(), Value::I64(ids.into_dyn()));
        if let Some(name) = self.names.mask {
            values.insert(name.to_owned(), Value::I64(self.mask.clone().into_dyn()));
        }
        if let Some((name, first)) = self.names.positions {
            values.insert(name.to_owned(), Value::I64((positions + first as i64).into_dyn()));
        }
        if self.names.logits_to_keep {
            let kept = Array1::from_iter((length - wanted as i64).max(0)..length);
            values.insert(LOGITS_TO_KEEP.to_owned(), Value::I64(kept.into_dyn()));
        }
        let outputs = match &mut self.cache {
            Some(cache) => self.model.run_cached(kind, values, cache)?,
            None => self.model.run(values)?,
        };
        if let Some(Value::I64(deltas)) = outputs.get(ROPE_DELTAS) {
            self.positions.iter_mut().zip(deltas).for_each(|(position, delta)| *position += delta);
        }
        let logits = last(&outputs, wanted)?;
        self.hidden = outputs.into_iter().filter(|(name, _)| is_hidden(name)).collect();
        Ok(logits)
    }

    /// The whole text once more; the scores at so many of the last positions.
    fn run_whole(&mut self, wanted: usize) -> Result<Array2<f32>> {
        let prompt = Prompt {
            input_ids: self.ids.clone(),
            attention_mask: self.mask.clone(),
            encoder_input_ids: None,
        };
        let positions = prompt.position_ids();
        self.run(GraphKind::Forward, prompt.input_ids, positions, self.first.clone(), wanted)
    }

    /// Rows become copies of those at `beam_idx`.
    fn reorder(&mut self, beam_idx: &[usize]) {
        let before = self.mask.nrows();
        self.mask = self.mask.select(Axis(0), beam_idx);
        self.positions = beam_idx.iter().map(|row| self.positions[*row]).collect();
        self.every.values_mut().for_each(|value| *value = rows(value, beam_idx, before));
        if self.cache.is_none() {
            self.ids = self.ids.select(Axis(0), beam_idx);
            self.first.values_mut().for_each(|value| *value = rows(value, beam_idx, before));
        }
    }
}

impl ModelDecoder<'_> {
    /// Hidden states by this name of the only row, of all positions that were run last and stayed, `[1, positions, hidden_size]`; none
    /// where they were not asked for ([`AnyModel::output_intermediates`]).
    pub(super) fn hidden_states(&self, name: &str) -> Option<&ArrayD<f32>> {
        self.hidden.get(name)?.f32(name).ok()
    }

    /// An intermediate value of tokens, `[1, tokens, size]`.
    ///
    /// # Errors
    /// As [`AnyModel::run_part`].
    pub(super) fn embedded(&self, ids: &[i64], name: &str) -> Result<ArrayD<f32>> {
        let ids = Array1::from_vec(ids.to_vec()).insert_axis(Axis(0));
        let inputs = Values::from([("input_ids".to_owned(), ids.into_dyn().into())]);
        taken(&mut self.model.run_part(None, name, inputs)?, name)
    }

    /// Logits of hidden states `[1, tokens, hidden_size]` behind the last norm, `[1, tokens, vocab_size]`.
    ///
    /// # Errors
    /// As [`AnyModel::run_part`].
    pub(super) fn logits(&self, hidden: ArrayD<f32>) -> Result<ArrayD<f32>> {
        let all = Array1::from_iter(0..hidden.len_of(Axis(1)) as i64);
        let mut inputs = Values::from([(LAST_HIDDEN_STATE.to_owned(), hidden.into())]);
        if self.names.logits_to_keep {
            inputs.insert(LOGITS_TO_KEEP.to_owned(), all.into_dyn().into());
        }
        taken(&mut self.model.run_part(Some(LAST_HIDDEN_STATE), LOGITS, inputs)?, LOGITS)
    }

    /// The keys and values of a layer, `[1, heads, positions, size]`.
    pub(super) fn key_value(&self, layer: usize) -> Result<Option<[Value; 2]>> {
        self.cache.as_ref().map_or(Ok(None), |cache| cache.key_value(layer))
    }

    /// Adds tokens to the only row; the scores at so many of the last positions.
    fn add(&mut self, ids: &[i64], wanted: usize) -> Result<Array2<f32>> {
        let count = ids.len();
        self.mask = joined(&self.mask, &Array2::ones((1, count)))?;
        let row = |values: Vec<i64>| Array1::from_vec(values).insert_axis(Axis(0));
        let first = self.positions.first().copied().unwrap_or_default();
        let positions = row((first..first + count as i64).collect());
        self.positions.iter_mut().for_each(|position| *position += count as i64);
        let ids = row(ids.to_vec());
        if self.cache.is_none() {
            self.ids = joined(&self.ids, &ids)?;
            return self.run_whole(wanted);
        }
        let attended = ATTENDED.into_iter().filter_map(|name| {
            let seen = self.every.get(name)?;
            Some((name.to_owned(), repeated(seen, count)))
        });
        let attended = attended.collect();
        self.run(GraphKind::Decode, ids, positions, attended, wanted)
    }
}

impl Decoder for ModelDecoder<'_> {
    fn prefill(&mut self, prompt: &Prompt) -> Result<Array2<f32>> {
        self.mask = prompt.attention_mask.clone();
        let positions = prompt.position_ids();
        self.positions = positions.column(prompt.length() - 1).iter().map(|position| position + 1).collect();
        if self.cache.is_none() {
            self.ids = prompt.input_ids.clone();
            return self.run_whole(1);
        }
        let start = self.model.graph_kinds().contains(&GraphKind::Prefill) && !self.first.is_empty();
        let kind = if start { GraphKind::Prefill } else { GraphKind::Decode };
        let first = std::mem::take(&mut self.first);
        let first = if start { first } else { Values::new() };
        let logits = self.run(kind, prompt.input_ids.clone(), positions, first, 1)?;
        for name in ATTENDED {
            if let Some(Value::I64(seen)) = self.every.get_mut(name) {
                let last = seen.len_of(Axis(1)).saturating_sub(1);
                *seen = seen.slice_axis(Axis(1), (last..last + 1).into()).to_owned();
            }
        }
        Ok(logits)
    }

    fn decode(&mut self, ids: &[i64], beam_idx: Option<&[usize]>) -> Result<Array2<f32>> {
        if let Some(beam_idx) = beam_idx {
            self.reorder(beam_idx);
        }
        let column = |values: Vec<i64>| {
            Array2::from_shape_vec((values.len(), 1), values).unwrap_or_else(|_| Array2::zeros((0, 1)))
        };
        let positions = column(self.positions.clone());
        self.positions.iter_mut().for_each(|position| *position += 1);
        self.mask = joined(&self.mask, &Array2::ones((ids.len(), 1)))?;
        let ids = column(ids.to_vec());
        if self.cache.is_none() {
            self.ids = joined(&self.ids, &ids)?;
            return self.run_whole(1);
        }
        match beam_idx {
            None => self.run(GraphKind::Decode, ids, positions, Values::new(), 1),
            Some(beam_idx) => {
                let beams: Vec<i64> = beam_idx.iter().map(|row| *row as i64).collect();
                let beams = Value::I64(Array1::from_vec(beams).into_dyn());
                let beams = Values::from([("beam_idx".to_owned(), beams)]);
                self.run(GraphKind::BeamDecode, ids, positions, beams, 1)
            }
        }
    }

    fn decode_many(&mut self, ids: &[i64]) -> Result<Array2<f32>> {
        if self.mask.nrows() != 1 {
            let problem = format!("helps one text at a time, not {}", self.mask.nrows());
            return Err(Error::input("assistant_model", problem, "give texts one by one (`batch_size` 1)"));
        }
        refuse_one_by_one(self.model)?;
        if let Some(before) = self.cache.as_ref().map(Cache::saved).transpose()?.flatten() {
            self.added.push(Added { ids: ids.to_vec(), before });
        }
        self.add(ids, ids.len())
    }

    fn as_model(&self) -> Option<&ModelDecoder<'_>> {
        Some(self)
    }

    fn crop(&mut self, count: usize) -> Result<()> {
        let added = std::mem::take(&mut self.added);
        if count == 0 {
            return Ok(());
        }
        self.hidden.values_mut().for_each(|hidden| *hidden = without_last(hidden, 1, count));
        let length = self.mask.ncols().saturating_sub(count);
        self.mask = first_columns(&self.mask, length);
        self.positions.iter_mut().for_each(|position| *position -= count as i64);
        let Some(cache) = &mut self.cache else {
            self.ids = first_columns(&self.ids, length);
            return Ok(());
        };
        let Some((kept, before)) = kept_of(added, count) else { return cache.crop(count) };
        // States are what they were before, and are given again what stays of the tokens.
        cache.restore(before)?;
        self.mask = first_columns(&self.mask, length - kept.len());
        self.positions.iter_mut().for_each(|position| *position -= kept.len() as i64);
        if !kept.is_empty() {
            self.add(&kept, 1)?;
        }
        Ok(())
    }
}

/// Refuses models that give tokens other scores together than one by one, which say so by this limit.
///
/// # Errors
/// When the model is one.
pub(crate) fn refuse_one_by_one(model: &dyn AnyModel) -> Result<()> {
    if model.limit("tokens_together") != Some(1) {
        return Ok(());
    }
    let problem =
        format!("cannot help {}, which gives tokens other scores together than one by one", model.class());
    Err(Error::input(
        "assistant_model",
        problem,
        "generate without an assistant and without `prompt_lookup_num_tokens`",
    ))
}

/// What stays of the run in which so many last tokens begin, and the states before it; none where there are no states.
fn kept_of(added: Vec<Added>, count: usize) -> Option<(Vec<i64>, SavedStates)> {
    let mut rest = count;
    added.into_iter().rev().find_map(|Added { mut ids, before }| {
        let kept = ids.len().checked_sub(rest);
        rest = rest.saturating_sub(ids.len());
        ids.truncate(kept?);
        Some((ids, before))
    })
}

fn takes(inputs: &[Input], name: &str) -> bool {
    inputs.iter().any(|input| input.name == name)
}

/// The scores at so many of the last positions, row by row: `[rows·wanted, vocab_size]`.
fn last(outputs: &Values, wanted: usize) -> Result<Array2<f32>> {
    let problem = |problem: &str| {
        let names: Vec<_> = outputs.keys().map(String::as_str).collect();
        Error::input(
            LOGITS,
            problem,
            format!("choose a head that generates; this one gives {}", names.join(", ")),
        )
    };
    let logits =
        outputs.get(LOGITS).ok_or_else(|| problem("the model has no scores of tokens"))?.f32(LOGITS)?;
    let &[rows, length, width] = logits.shape() else {
        return Err(problem("scores of tokens are not [batch, sequence, vocab_size]"));
    };
    if length < wanted {
        return Err(problem("there are scores of fewer positions than of tokens"));
    }
    let last = logits.slice_axis(Axis(1), (length - wanted..length).into()).as_standard_layout().into_owned();
    last.into_shape_with_order((rows * wanted, width)).map_err(|e| problem(&e.to_string()))
}

/// Whether an output holds hidden states, which drafters may ask for.
fn is_hidden(name: &str) -> bool {
    name == LAST_HIDDEN_STATE || name.starts_with("hidden_states.")
}

/// Floating-point numbers among outputs.
pub(super) fn taken(outputs: &mut Values, name: &str) -> Result<ArrayD<f32>> {
    match outputs.remove(name) {
        Some(Value::F32(value)) => Ok(value),
        _ => {
            Err(Error::input(name, "is not among what the model gave", "choose the assistant of this model"))
        }
    }
}

/// What the only position along axis 1 has, so many times.
fn repeated(value: &Value, count: usize) -> Value {
    let at = vec![0; count];
    match value {
        Value::F32(a) => Value::F32(a.select(Axis(1), &at)),
        Value::I64(a) => Value::I64(a.select(Axis(1), &at)),
        Value::Bool(a) => Value::Bool(a.select(Axis(1), &at)),
    }
}

fn first_columns(all: &Array2<i64>, count: usize) -> Array2<i64> {
    all.slice_axis(Axis(1), (..count).into()).as_standard_layout().into_owned()
}

/// What a value has of rows at `beam_idx`, of `before`: several entries each where it has as many times more (passages).
fn rows(value: &Value, beam_idx: &[usize], before: usize) -> Value {
    let each = value.shape().first().map_or(1, |count| (count / before.max(1)).max(1));
    let at: Vec<usize> = beam_idx.iter().flat_map(|row| row * each..(row + 1) * each).collect();
    match value {
        Value::F32(a) => Value::F32(a.select(Axis(0), &at)),
        Value::I64(a) => Value::I64(a.select(Axis(0), &at)),
        Value::Bool(a) => Value::Bool(a.select(Axis(0), &at)),
    }
}

fn joined(before: &Array2<i64>, after: &Array2<i64>) -> Result<Array2<i64>> {
    let joined = concatenate(Axis(1), &[before.view(), after.view()]);
    joined
        .map(|all| all.as_standard_layout().into_owned())
        .map_err(|e| Error::input("input_ids", e.to_string(), "a step takes one token for each row"))
}
