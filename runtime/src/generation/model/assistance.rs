//! What assisted decoding needs of a model: several tokens in one run, some of which are taken back, and what drafters read of it.

use ndarray::{Array1, Array2, ArrayD, Axis};

use super::outputs::{joined, taken};
use super::{ATTENDED, LAST_HIDDEN_STATE, LOGITS, LOGITS_TO_KEEP, ModelDecoder};
use crate::graph::dims::TOKENS_TOGETHER;
use crate::session::SavedStates;
use crate::value::{selected, without_last};
use crate::{AnyModel, Cache, Error, GraphKind, Result, Value, Values};

/// Tokens that were added to states, which have no positions.
pub(super) struct Added {
    ids: Vec<i64>,
    before: SavedStates,
}

impl ModelDecoder<'_> {
    /// Hidden states by this name of the only row, of all positions that were run last and stayed, `[1, positions, hidden_size]`; none
    /// where they were not asked for ([`AnyModel::output_intermediates`]).
    pub(in crate::generation) fn hidden_states(&self, name: &str) -> Option<&ArrayD<f32>> {
        self.hidden.get(name)?.f32(name).ok()
    }

    /// An intermediate value of tokens, `[1, tokens, size]`.
    ///
    /// # Errors
    /// As [`AnyModel::run_part`].
    pub(in crate::generation) fn embedded(&self, ids: &[i64], name: &str) -> Result<ArrayD<f32>> {
        let ids = Array1::from_vec(ids.to_vec()).insert_axis(Axis(0));
        let inputs = Values::from([("input_ids".to_owned(), ids.into_dyn().into())]);
        taken(&mut self.model.run_part(None, name, inputs)?, name)
    }

    /// Logits of hidden states `[1, tokens, hidden_size]` behind the last norm, `[1, tokens, vocab_size]`.
    ///
    /// # Errors
    /// As [`AnyModel::run_part`].
    pub(in crate::generation) fn logits(&self, hidden: ArrayD<f32>) -> Result<ArrayD<f32>> {
        let all = Array1::from_iter(0..hidden.len_of(Axis(1)) as i64);
        let mut inputs = Values::from([(LAST_HIDDEN_STATE.to_owned(), hidden.into())]);
        if self.names.logits_to_keep {
            inputs.insert(LOGITS_TO_KEEP.to_owned(), all.into_dyn().into());
        }
        taken(&mut self.model.run_part(Some(LAST_HIDDEN_STATE), LOGITS, inputs)?, LOGITS)
    }

    /// The keys and values of a layer, `[1, heads, positions, size]`.
    pub(in crate::generation) fn key_value(&self, layer: usize) -> Result<Option<[Value; 2]>> {
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
            Some((name.to_owned(), selected(seen, 1, &vec![0; count])))
        });
        let attended = attended.collect();
        self.run(GraphKind::Decode, ids, positions, attended, wanted)
    }
    /// [`Decoder::decode_many`](super::Decoder::decode_many).
    pub(super) fn add_candidates(&mut self, ids: &[i64]) -> Result<Array2<f32>> {
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

    /// [`Decoder::crop`](super::Decoder::crop).
    pub(super) fn take_back(&mut self, count: usize) -> Result<()> {
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
    if model.limit(&TOKENS_TOGETHER.to_string()) != Some(1) {
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

fn first_columns(all: &Array2<i64>, count: usize) -> Array2<i64> {
    all.slice_axis(Axis(1), (..count).into()).as_standard_layout().into_owned()
}
