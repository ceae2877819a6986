//! What a checkpoint of `sentence-transformers` says about the steps after the model.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::dense::Dense;
use super::{Pooling, Similarity};
use crate::hub::Checkpoint;
use crate::{Error, Result};

/// The file that lists the steps.
const FILE: &str = "modules.json";

/// The steps after the model, and the settings beside them.
#[derive(Debug)]
pub(super) struct Modules {
    pub(super) pooling: Pooling,
    pub(super) steps: Vec<Step>,
    pub(super) max_seq_length: Option<usize>,
    pub(super) do_lower_case: bool,
    pub(super) prompts: BTreeMap<String, String>,
    pub(super) default_prompt: Option<String>,
    pub(super) similarity: Similarity,
}

/// A step that takes the pooled vector.
#[derive(Debug)]
pub(super) enum Step {
    Normalize,
    Dense(Dense),
}

impl Modules {
    pub(super) fn read(checkpoint: &Checkpoint) -> Result<Self> {
        let transformer = checkpoint.json("sentence_bert_config.json")?.unwrap_or_default();
        let settings = checkpoint.json("config_sentence_transformers.json")?.unwrap_or_default();
        let mut modules = Self {
            pooling: Pooling::default(),
            steps: Vec::new(),
            max_seq_length: transformer["max_seq_length"].as_u64().map(|n| n as usize),
            do_lower_case: transformer["do_lower_case"].as_bool().unwrap_or(false),
            prompts: prompts(&settings["prompts"]),
            default_prompt: settings["default_prompt_name"].as_str().map(str::to_string),
            similarity: Similarity::read(checkpoint, &settings["similarity_fn_name"])?,
        };
        if let Some(list) = checkpoint.json(FILE)? {
            modules.read_steps(checkpoint, &list)?;
        }
        Ok(modules)
    }

    fn read_steps(&mut self, checkpoint: &Checkpoint, list: &Json) -> Result<()> {
        let entries = list.as_array().ok_or_else(|| wrong(checkpoint, "is not a list of modules"))?;
        for entry in entries {
            let (Some(kind), Some(path)) = (entry["type"].as_str(), entry["path"].as_str()) else {
                return Err(wrong(checkpoint, "has an entry without `type` or `path`"));
            };
            let config = || -> Result<Json> {
                let name = format!("{path}/config.json");
                match checkpoint.json(&name)? {
                    Some(config) => Ok(config),
                    None => checkpoint.require(&name).map(|_| Json::default()),
                }
            };
            // Releases differ in the package that a class is in, not in its name.
            match kind.rsplit('.').next().unwrap_or(kind) {
                "Transformer" if path.is_empty() => {}
                "Transformer" => {
                    return Err(wrong(
                        checkpoint,
                        &format!("has its transformer in the folder `{path}`, not at the top"),
                    ));
                }
                "Pooling" => self.pooling = Pooling::read(checkpoint, path, &config()?)?,
                "Normalize" => self.steps.push(Step::Normalize),
                "Dense" => self.steps.push(Step::Dense(Dense::read(checkpoint, path, &config()?)?)),
                // It only acts in training.
                "Dropout" => {}
                _ => {
                    return Err(wrong(
                        checkpoint,
                        &format!("has a module `{kind}`, which is not known here"),
                    ));
                }
            }
        }
        Ok(())
    }
}

fn wrong(checkpoint: &Checkpoint, problem: &str) -> Error {
    Error::config(
        checkpoint.dir().join(FILE),
        problem,
        "Transformer at the top, Pooling, Dense, Normalize and Dropout are known: save the checkpoint again with a \
         current sentence-transformers, or use feature-extraction and pool its result",
    )
}

fn prompts(value: &Json) -> BTreeMap<String, String> {
    let named = value.as_object().into_iter().flatten();
    named.filter_map(|(name, prompt)| Some((name.clone(), prompt.as_str()?.to_string()))).collect()
}
