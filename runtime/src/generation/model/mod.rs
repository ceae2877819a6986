//! A loaded model as decoder: with its KV cache where it has one, else the whole sequence at every step.

mod assistance;
mod names;
mod outputs;

use ndarray::{Array1, Array2, Axis};

use super::decoder::Decoder;
use super::prompt::Prompt;
use crate::GraphKind;
use crate::value::selected;
use crate::{AnyModel, Cache, Result, Value, Values};
use assistance::Added;
pub(crate) use assistance::refuse_one_by_one;
use names::{Names, takes};
pub(super) use outputs::taken;
use outputs::{is_hidden, joined, last};

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

/// What tokens attend to of images, `[rows, sequence, …]`; tokens that follow attend to what the last one does.
const ATTENDED: [&str; 2] = ["cross_attention_mask", "image_attention_mask"];

/// What a model that has read images says of the positions after them, row by row.
const ROPE_DELTAS: &str = "rope_deltas";

impl<'a> ModelDecoder<'a> {
    /// A decoder-only model.
    ///
    /// # Errors
    /// When the model cannot be made ready.
    pub fn new(model: &'a dyn AnyModel) -> Result<Self> {
        let cached = model.graph_kinds().contains(&GraphKind::Decode);
        let inputs = if cached { model.inputs_of(GraphKind::Decode)? } else { model.inputs().to_vec() };
        Ok(Self::with(model, cached.then(Cache::new), Names::of(&inputs)))
    }

    /// One that reads the whole text at every step.
    pub fn without_cache(model: &'a dyn AnyModel) -> Self {
        Self::with(model, None, Names::of(model.inputs()))
    }

    fn with(model: &'a dyn AnyModel, cache: Option<Cache>, names: Names) -> Self {
        Self {
            model,
            cache,
            names,
            mask: Array2::zeros((0, 0)),
            ids: Array2::zeros((0, 0)),
            positions: vec![],
            every: Values::new(),
            first: Values::new(),
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

    /// The positions that are cached, and the bytes of keys, values and states; none where the model caches none.
    pub fn cached(&self) -> Option<[usize; 2]> {
        self.cache.as_ref().map(|cache| [cache.len(), cache.bytes()])
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
        self.add_candidates(ids)
    }

    fn as_model(&self) -> Option<&ModelDecoder<'_>> {
        Some(self)
    }

    fn crop(&mut self, count: usize) -> Result<()> {
        self.take_back(count)
    }
}

/// What a value has of rows at `beam_idx`, of `before`: several entries each where it has as many times more (passages).
fn rows(value: &Value, beam_idx: &[usize], before: usize) -> Value {
    let each = value.shape().first().map_or(1, |count| (count / before.max(1)).max(1));
    let at: Vec<usize> = beam_idx.iter().flat_map(|row| row * each..(row + 1) * each).collect();
    selected(value, 0, &at)
}
