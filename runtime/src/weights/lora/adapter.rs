//! What PEFT's `adapter_config.json` (`LoraConfig`) says of low-rank updates: the factor of each, and how they are made.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json};

use crate::files as storage;
use crate::{Error, Result};

const CONFIG: &str = "adapter_config.json";
/// The weights of PEFT's folders, and of those that pipelines of `diffusers` save.
const WEIGHTS: [&str; 2] = ["adapter_model.safetensors", "pytorch_lora_weights.safetensors"];

/// Fields that make something else of updates than a product that is added, where they are neither absent, false nor empty.
const OTHERS: [&str; 9] = [
    "use_dora",
    "use_qalora",
    "lora_bias",
    "alora_invocation_tokens",
    "layer_replication",
    "modules_to_save",
    "trainable_token_indices",
    "target_parameters",
    "use_bdlora",
];

/// Ways to initialise an adapter that leave the model's own weights as they are; others (PiSSA, OLoRA, CorDA, LoftQ) are added to
/// weights that they changed.
const INITIALIZATIONS: [&str; 3] = ["gaussian", "eva", "orthogonal"];

/// The settings of an adapter.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Adapter {
    lora_alpha: Option<f32>,
    /// Of modules whose names end in a pattern (`alpha_pattern`).
    alphas: Vec<(String, f32)>,
    r: Option<usize>,
    /// Of modules whose names end in a pattern (`rank_pattern`).
    ranks: Vec<(String, f32)>,
    /// Whether factors are over the square root of the rank (`use_rslora`).
    pub(super) rank_stabilized: bool,
    /// Whether weights are stored by their inputs (`fan_in_fan_out`).
    pub(super) transposed: bool,
}

impl Adapter {
    /// The file of updates at a place, and what stands beside it where that is a folder.
    ///
    /// # Errors
    /// When the folder has none, or its configuration says what is not supported.
    pub(super) fn find(path: &Path) -> Result<(PathBuf, Option<Self>)> {
        if !storage::is_dir(path) {
            return Ok((path.to_owned(), None));
        }
        let Some(weights) = WEIGHTS.iter().map(|name| path.join(name)).find(|file| storage::is_file(file))
        else {
            let problem = format!("has neither {} nor {}", WEIGHTS[0], WEIGHTS[1]);
            return Err(Error::weights(path, problem, "give a folder or a file of low-rank updates"));
        };
        let config = path.join(CONFIG);
        if !storage::is_file(&config) {
            if weights.ends_with(WEIGHTS[0]) {
                let help = "fetch that file as well: it says how much of the updates is added";
                return Err(Error::weights(path, format!("has no {CONFIG}"), help));
            }
            return Ok((weights, None));
        }
        let text = storage::read(&config).map_err(|error| Error::io(&config, error))?;
        let json = serde_json::from_slice(&text).map_err(|error| invalid(&config, &error))?;
        let adapter = Self::new(&config, &json)?;
        // What `LoraConfig` has where a file says nothing.
        Ok((weights, Some(Self { lora_alpha: adapter.lora_alpha.or(Some(8.0)), ..adapter })))
    }

    /// Those of a file's components, which `save_lora_weights` of `diffusers` writes into its metadata: `unet.lora_alpha`.
    ///
    /// # Errors
    /// When it is not JSON, or says what is not supported.
    pub(super) fn of_components(file: &Path, text: &str) -> Result<HashMap<String, Self>> {
        let fields: Map<String, Json> = serde_json::from_str(text).map_err(|error| invalid(file, &error))?;
        let mut components: HashMap<&str, Map<String, Json>> = HashMap::new();
        for (name, value) in &fields {
            if let Some((component, field)) = name.split_once('.') {
                components.entry(component).or_default().insert(field.to_owned(), value.clone());
            }
        }
        let adapter =
            |(name, fields): (&str, _)| Ok((name.to_owned(), Self::new(file, &Json::Object(fields))?));
        components.into_iter().map(adapter).collect()
    }

    fn new(file: &Path, json: &Json) -> Result<Self> {
        let refused = |name: &str, help: &str| {
            Err(Error::config(file, format!("`{name}` is {}, which is not read", json[name]), help))
        };
        let kind = json["peft_type"].as_str().unwrap_or("LORA");
        if kind != "LORA" {
            return refused("peft_type", "take an adapter of LoRA, or merge it into the model with PEFT");
        }
        let merge = "merge the adapter into the model with PEFT (`merge_and_unload`), and open that";
        let empty = |value: &Json| match value {
            Json::Null | Json::Bool(false) => true,
            Json::Array(list) => list.is_empty(),
            Json::Object(map) => map.is_empty(),
            _ => false,
        };
        if let Some(name) = OTHERS.iter().find(|name| !empty(&json[**name])) {
            return refused(name, merge);
        }
        if json["bias"].as_str().is_some_and(|bias| bias != "none") {
            return refused("bias", merge);
        }
        let initialized = &json["init_lora_weights"];
        if initialized.as_str().is_some_and(|way| !INITIALIZATIONS.contains(&way)) {
            return refused(
                "init_lora_weights",
                "convert it with PEFT (`path_initial_model_for_weight_conversion`)",
            );
        }
        let is = |name: &str| json[name].as_bool().unwrap_or(false);
        Ok(Self {
            lora_alpha: number(file, "lora_alpha", &json["lora_alpha"])?,
            alphas: patterns(file, "alpha_pattern", json)?,
            r: number(file, "r", &json["r"])?.map(|rank| rank as usize),
            ranks: patterns(file, "rank_pattern", json)?,
            rank_stabilized: is("use_rslora"),
            transposed: is("fan_in_fan_out"),
        })
    }

    /// `lora_alpha` of a module.
    pub(super) fn alpha(&self, module: &str) -> Option<f32> {
        of_pattern(&self.alphas, module).or(self.lora_alpha)
    }

    /// The rank of a module's update.
    pub(super) fn rank(&self, module: &str) -> Option<usize> {
        of_pattern(&self.ranks, module).map(|rank| rank as usize).or(self.r)
    }
}

/// What is said of the modules that a pattern stands for: one whose name it is or ends with, or after `^` is alone.
fn of_pattern(patterns: &[(String, f32)], module: &str) -> Option<f32> {
    let stands = |pattern: &str| match pattern.strip_prefix('^') {
        Some(whole) => whole == module,
        None => module.strip_suffix(pattern).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')),
    };
    patterns.iter().find(|(pattern, _)| stands(pattern)).map(|(_, number)| *number)
}

/// The numbers of a field by patterns of modules' names.
fn patterns(file: &Path, field: &str, json: &Json) -> Result<Vec<(String, f32)>> {
    let mut all = vec![];
    for (pattern, value) in json[field].as_object().into_iter().flatten() {
        let plain = pattern.replace("\\.", ".");
        if plain.trim_start_matches('^').contains(|c: char| "\\*+?()[]{}|$^".contains(c)) {
            let problem = format!("`{field}` has `{pattern}`, a regular expression");
            return Err(Error::config(file, problem, "name each module in full, or by how its name ends"));
        }
        all.extend(number(file, field, value)?.map(|number| (plain, number)));
    }
    Ok(all)
}

fn number(file: &Path, field: &str, value: &Json) -> Result<Option<f32>> {
    match value.as_f64() {
        Some(number) => Ok(Some(number as f32)),
        None if value.is_null() => Ok(None),
        None => Err(Error::config(file, format!("`{field}` is {value}"), "set it to a number")),
    }
}

fn invalid(file: &Path, error: &serde_json::Error) -> Error {
    let help = "download it again, or save the adapter again";
    Error::config(file, format!("is not valid JSON: {error}"), help)
}
