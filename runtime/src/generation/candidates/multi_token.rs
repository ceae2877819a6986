//! A drafter that reads the target's keys, values and hidden states (`SinglePositionMultiTokenCandidateGenerator`, multi-token
//! prediction).

use ndarray::{ArrayD, Axis, arr2, concatenate};
use serde_json::Value as Json;

use super::{CandidateGenerator, NextToken, Schedule};
use crate::generation::model::taken;
use crate::generation::{Decoder, GenerationConfig, ModelDecoder};
use crate::{AnyModel, Error, Result, Value, Values};

/// The input that such a drafter has.
pub(super) const INPUT: &str = "shared_kv_states.full_attention.key";

/// The kinds of layers whose keys and values are read.
const KINDS: [&str; 2] = ["full_attention", "sliding_attention"];

/// A drafter without keys and values of its own, such as Gemma 4's assistants, as [`CandidateGenerator`]
/// (`SinglePositionMultiTokenCandidateGenerator`).
///
/// It attends to the target's keys and values, from the position of the last token for all that it drafts, and is given the
/// target's embedding of that token beside the hidden states that led to it. Those of a rejected token are not among them, as they are in
/// the reference; drafts may differ from the reference's by that, and tokens not.
pub struct MultiTokenAssistant<'a> {
    model: &'a dyn AnyModel,
    /// The target's last layer of each kind that has keys and values.
    layers: Vec<(&'static str, usize)>,
    schedule: Schedule,
}

impl<'a> MultiTokenAssistant<'a> {
    /// Of a drafter for a model, with what a configuration says of assistants. The model gives its hidden states from now on.
    ///
    /// # Errors
    /// When the model does not give what the drafter reads, or is of another width.
    pub fn new(model: &'a dyn AnyModel, target: &dyn AnyModel, config: &GenerationConfig) -> Result<Self> {
        target.output_intermediates(&["last_hidden_state"])?;
        let width =
            |config: &Json| config["hidden_size"].as_u64().or(config["text_config"]["hidden_size"].as_u64());
        let (wanted, found) =
            (model.raw_config()["backbone_hidden_size"].as_u64(), width(target.raw_config()));
        if wanted != found {
            let shown = |width: Option<u64>| width.map_or("none".to_owned(), |width| width.to_string());
            let problem =
                format!("drafts for a model of hidden size {}, not {}", shown(wanted), shown(found));
            return Err(Error::input("assistant_model", problem, "choose the assistant of this model"));
        }
        let layers = layers(super::text_config(target)).ok_or_else(|| {
            let problem =
                "has no `layer_types` with a layer of each kind, whose keys and values the assistant reads";
            Error::config(target.checkpoint().dir().join("config.json"), problem, "take the published file")
        })?;
        Ok(Self { model, layers, schedule: Schedule::of(config) })
    }

    /// What every draft after the same token takes.
    fn shared(&self, target: &ModelDecoder<'_>, position: usize) -> Result<Values> {
        let mut shared =
            Values::from([("position_ids".to_owned(), arr2(&[[position as i64]]).into_dyn().into())]);
        for (kind, layer) in &self.layers {
            let Some([key, value]) = target.key_value(*layer)? else {
                let problem = format!("reads layer {layer} of the model, which caches no keys and values");
                return Err(Error::input("assistant_model", problem, "choose the assistant of this model"));
            };
            shared.insert(name(kind, "key"), key);
            shared.insert(name(kind, "value"), value);
        }
        Ok(shared)
    }
}

impl CandidateGenerator for MultiTokenAssistant<'_> {
    fn candidates(
        &mut self,
        ids: &[i64],
        most: usize,
        target: &mut dyn Decoder,
        next: &NextToken<'_>,
    ) -> Result<Vec<i64>> {
        let most = most.min(self.schedule.count);
        let Some(target) = target.as_model().filter(|_| most > 0) else { return Ok(vec![]) };
        let Some(hidden) = target.hidden_states("last_hidden_state") else { return Ok(vec![]) };
        let last = hidden.len_of(Axis(1)).saturating_sub(1);
        let mut hidden = hidden.slice_axis(Axis(1), (last..).into()).as_standard_layout().into_owned();
        let shared = self.shared(target, ids.len() - 1)?;
        let mut row = ids.to_vec();
        while row.len() < ids.len() + most {
            let embedded = target.embedded(&row[row.len() - 1..], "inputs_embeds")?;
            let mut inputs = shared.clone();
            inputs.insert("inputs_embeds".to_owned(), joined(&embedded, &hidden)?);
            let mut outputs = self.model.run(inputs)?;
            let mut scores = taken(&mut outputs, "logits")?.into_iter().collect::<Vec<f32>>();
            row.push(next(&row, &mut scores)?);
            hidden = taken(&mut outputs, "last_hidden_state")?;
        }
        Ok(row.split_off(ids.len()))
    }

    fn update(&mut self, accepted: usize) {
        self.schedule.update(accepted);
    }
}

fn name(kind: &str, what: &str) -> String {
    format!("shared_kv_states.{kind}.{what}")
}

/// The last layer of each kind among those that have keys and values of their own.
fn layers(config: &Json) -> Option<Vec<(&'static str, usize)>> {
    let kinds = config["layer_types"].as_array()?;
    let shared = config["num_kv_shared_layers"].as_u64().unwrap_or(0) as usize;
    let own = kinds.get(..kinds.len().checked_sub(shared)?)?;
    KINDS.into_iter().map(|kind| Some((kind, own.iter().rposition(|own| own == kind)?))).collect()
}

/// Embeddings beside hidden states, `[1, 1, 2·hidden_size]`.
fn joined(embedded: &ArrayD<f32>, hidden: &ArrayD<f32>) -> Result<Value> {
    let joined = concatenate(Axis(2), &[embedded.view(), hidden.view()]);
    let joined = joined.map_err(|e| Error::input("inputs_embeds", e.to_string(), "report this"))?;
    Ok(joined.as_standard_layout().into_owned().into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_layers_with_keys_and_values_are_read() {
        let types = ["sliding_attention", "full_attention", "sliding_attention", "full_attention"];
        assert_eq!(
            layers(&json!({"layer_types": types})),
            Some(vec![("full_attention", 3), ("sliding_attention", 2)])
        );
        assert_eq!(
            layers(&json!({"layer_types": types, "num_kv_shared_layers": 2})),
            Some(vec![("full_attention", 1), ("sliding_attention", 0)])
        );
        assert_eq!(layers(&json!({"layer_types": types, "num_kv_shared_layers": 3})), None);
        assert_eq!(layers(&json!({})), None);
    }
}
