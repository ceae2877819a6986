//! A drafter that denoises a block of tokens over the target's hidden states (`DFlashTokenCandidateGenerator`).

use ndarray::{ArrayD, Axis, concatenate};

use super::{CandidateGenerator, NextToken};
use crate::generation::model::taken;
use crate::generation::{Decoder, ModelDecoder};
use crate::{AnyModel, Error, Result, Values};

/// The input that such a drafter has.
pub(super) const INPUT: &str = "context_hidden_states";

/// A block diffusion drafter, such as Muse Glimmer's assistant, as [`CandidateGenerator`] (`DFlashTokenCandidateGenerator`).
///
/// It is given the target's hidden states behind its `target_layer_ids`, of all tokens but the last, and that token's embedding before those of
/// `block_size` - 1 mask tokens; the target's head makes tokens of what it makes of these, all in one run.
pub struct DFlashAssistant<'a> {
    model: &'a dyn AnyModel,
    /// The target's hidden states that are read.
    names: Vec<String>,
    block_size: usize,
    mask_token_id: i64,
    /// Those of all tokens that were run, `[1, tokens, layers·hidden_size]`.
    context: Option<ArrayD<f32>>,
}

impl<'a> DFlashAssistant<'a> {
    /// Of a drafter for a model, which gives its hidden states from now on.
    ///
    /// # Errors
    /// When the model does not give what the drafter reads or is of another width, or the drafter's configuration lacks a field.
    pub fn new(model: &'a dyn AnyModel, target: &dyn AnyModel) -> Result<Self> {
        let config = model.raw_config();
        super::same_width(&config["hidden_size"], target)?;
        let lacks = |field: &str| {
            let (file, problem) = (model.checkpoint().dir().join("config.json"), format!("has no `{field}`"));
            Error::config(file, problem, "take the published file")
        };
        let layers = config["target_layer_ids"].as_array().ok_or_else(|| lacks("target_layer_ids"))?;
        let all = super::text_config(target)["num_hidden_layers"].as_u64();
        let layers = layers.iter().filter_map(serde_json::Value::as_u64);
        // The reference's hidden states behind the last layer are those behind the norm.
        let name = |layer: u64| match Some(layer + 1) == all {
            true => "last_hidden_state".to_owned(),
            false => format!("hidden_states.{}", layer + 1),
        };
        let names: Vec<String> = layers.map(name).collect();
        target.output_intermediates(&names.iter().map(String::as_str).collect::<Vec<_>>())?;
        Ok(Self {
            model,
            names,
            block_size: config["block_size"].as_u64().ok_or_else(|| lacks("block_size"))? as usize,
            mask_token_id: config["mask_token_id"].as_i64().ok_or_else(|| lacks("mask_token_id"))?,
            context: None,
        })
    }

    /// Appends the hidden states of what the target ran last and kept.
    fn read(&mut self, target: &ModelDecoder<'_>) -> Result<()> {
        let new: Option<Vec<_>> =
            self.names.iter().map(|name| Some(target.hidden_states(name)?.view())).collect();
        let Some(new) = new else { return Ok(()) };
        let failed =
            |e: ndarray::ShapeError| Error::input(INPUT, e.to_string(), "choose the assistant of this model");
        let new = concatenate(Axis(2), &new).map_err(failed)?;
        let all = match &self.context {
            Some(before) => concatenate(Axis(1), &[before.view(), new.view()]).map_err(failed)?,
            None => new,
        };
        self.context = Some(all.as_standard_layout().into_owned());
        Ok(())
    }
}

impl CandidateGenerator for DFlashAssistant<'_> {
    fn candidates(
        &mut self,
        ids: &[i64],
        most: usize,
        target: &mut dyn Decoder,
        next: &NextToken<'_>,
    ) -> Result<Vec<i64>> {
        let Some(target) = target.as_model() else { return Ok(vec![]) };
        self.read(target)?;
        let Some(context) = self.context.clone().filter(|context| context.len_of(Axis(1)) + 1 == ids.len())
        else {
            return Ok(vec![]);
        };
        let most = most.min(self.block_size.saturating_sub(1));
        if most == 0 {
            return Ok(vec![]);
        }
        let mut block = vec![self.mask_token_id; self.block_size];
        block[0] = ids[ids.len() - 1];
        let noise = target.embedded(&block, "token_embeds")?;
        let inputs =
            Values::from([("noise_embeds".to_owned(), noise.into()), (INPUT.to_owned(), context.into())]);
        let hidden = taken(&mut self.model.run(inputs)?, "last_hidden_state")?;
        let drafted = hidden.slice_axis(Axis(1), (1..).into()).as_standard_layout().into_owned();
        let logits = target.logits(drafted)?;
        let mut row = ids.to_vec();
        for logits in logits.index_axis(Axis(0), 0).outer_iter().take(most) {
            let mut scores: Vec<f32> = logits.iter().copied().collect();
            row.push(next(&row, &mut scores)?);
        }
        Ok(row.split_off(ids.len()))
    }
}
