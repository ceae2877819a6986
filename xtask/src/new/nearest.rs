//! Which known model a `config.json` is nearest to.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use weft_generator::spec::model::{ConfigEntry, ModelSpec};

use crate::specs::{Catalog, model_types};

/// Fields that every `config.json` may have, whatever the model.
const UNIVERSAL: [&str; 33] = [
    "_name_or_path",
    "architectures",
    "auto_map",
    "bos_token_id",
    "chunk_size_feed_forward",
    "cls_token_id",
    "decoder_start_token_id",
    "dtype",
    "eos_token_id",
    "finetuning_task",
    "gradient_checkpointing",
    "id2label",
    "initializer_factor",
    "initializer_range",
    "is_encoder_decoder",
    "label2id",
    "mask_token_id",
    "model_max_length",
    "model_type",
    "num_labels",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "problem_type",
    "return_dict",
    "sep_token_id",
    "task_specific_params",
    "torch_dtype",
    "torchscript",
    "transformers_version",
    "unk_token_id",
    "use_cache",
    "vocab_type",
];

/// Endings of fields that only training reads.
const TRAINING: [&str; 4] = ["_dropout", "_dropout_prob", "_pdrop", "dropout"];

/// Whether a spec says that inference depends on a field.
fn has_effect(entry: &ConfigEntry) -> bool {
    !matches!(entry, ConfigEntry::Explicit(field) if field.no_effect.is_some())
}

/// Below this, a model is not a parent.
const ENOUGH: f64 = 0.4;

/// A known model and how near it is.
pub struct Nearest<'a> {
    pub spec: &'a ModelSpec,
    /// The share of fields that both have, of those that either has.
    pub overlap: f64,
    /// Whether its spec names this `model_type`.
    pub exact: bool,
}

impl Nearest<'_> {
    pub fn why(&self) -> String {
        let share = format!("{:.0} % of the fields are the same", self.overlap * 100.0);
        if self.exact { format!("its spec names this model_type; {share}") } else { share }
    }
}

/// The nearest model, if one is near enough.
pub fn find<'a>(catalog: &'a Catalog, config: &Map<String, Value>) -> Option<Nearest<'a>> {
    let model_type = config.get("model_type").and_then(Value::as_str);
    let keys: BTreeSet<&str> = own_fields(config).collect();
    let classes = classes(config);
    let score = |spec: &'a ModelSpec| {
        let theirs: BTreeSet<&str> = spec
            .config
            .iter()
            .filter(|(key, entry)| !is_universal(key) && has_effect(entry))
            .map(|(key, _)| key.as_str())
            .collect();
        let both = keys.intersection(&theirs).count();
        let overlap = both as f64 / keys.union(&theirs).count().max(1) as f64;
        let exact = model_type.is_some_and(|name| model_types(spec).any(|known| known == name));
        let prefix = spec.class_prefix();
        let related = !prefix.is_empty() && classes.iter().any(|class| class.contains(&prefix));
        // A class name that contains another's (`RobertaModel`, `Bert`) breaks ties, and no more than that.
        let rank = overlap + if related { 0.1 } else { 0.0 } + if exact { 1.0 } else { 0.0 };
        (rank, Nearest { spec, overlap, exact })
    };
    let best =
        catalog.models.values().map(score).reduce(|best, other| if other.0 > best.0 { other } else { best });
    best.filter(|(rank, _)| *rank >= ENOUGH).map(|(_, nearest)| nearest)
}

/// The class names in `architectures`.
pub fn classes(config: &Map<String, Value>) -> Vec<&str> {
    config
        .get("architectures")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// The fields that say something about this architecture.
pub fn own_fields(config: &Map<String, Value>) -> impl Iterator<Item = &str> {
    config.keys().map(String::as_str).filter(|key| !is_universal(key))
}

fn is_universal(key: &str) -> bool {
    UNIVERSAL.contains(&key) || TRAINING.iter().any(|ending| key.ends_with(ending))
}
