//! `<category>/<model>.yaml`: what one model is.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use super::config_type::ConfigType;

use super::architectures::HardwareOverride;
use super::vocabulary::{Hardware, Precision, Support};

/// One model. What a spec leaves out comes from the one it `extends`, or from the defaults given here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelSpec {
    /// The model's name: the file's, which need not be repeated, the crate's, and what `extends` and `--model` take.
    #[serde(default)]
    pub model: String,
    /// Its name in prose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The spec that this one is a difference to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extends: Option<String>,
    /// The folder that the spec and the crate are in. Not inherited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// One of the types in `architectures.yaml`: gives pipeline and hardware matrix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    /// What the model is, in a sentence or two: opens its documentation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Published checkpoints, the best known first. Not inherited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checkpoints: Vec<String>,
    /// The values of `model_type` in `config.json`; the model's name if left out. Not inherited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub model_types: Vec<String>,
    /// What the reference's class names start with; the title's letters and digits if left out. Not inherited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class_prefix: Option<String>,
    /// The reference's file that defines the model, within `transformers`; `models/<model>/modeling_<model>.py` if a
    /// built-in spec leaves it out. Not inherited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// How checkpoints name their tensors.
    #[serde(default)]
    pub weights: Weights,
    /// `config.json`: fields under their published names. A plain value gives type and default; a map under a name that
    /// ends with `_config` holds the fields of a configuration within this one. `remove` lists inherited fields that the
    /// model does not have.
    #[serde(default)]
    #[schemars(extend("patternProperties" = {
        "_config$": {"anyOf": [
            {"$ref": "#/$defs/ConfigField"},
            {"type": "object", "additionalProperties": {"$ref": "#/$defs/ConfigEntry"}}
        ]}
    }))]
    pub config: IndexMap<String, ConfigEntry>,
    /// A graph template, the parts it is composed of, and their options: see `docs/specs.md`.
    #[serde(default)]
    pub graph: IndexMap<String, serde_json::Value>,
    /// How pipelines prepare what the model reads, and read what it gives, where checkpoints do not say it.
    #[serde(default, skip_serializing_if = "Processing::is_empty")]
    pub processing: Processing,
    /// The tasks it serves, by the names `transformers.pipeline` uses; all that its heads serve where neither it nor a
    /// spec that it extends names any. Of inherited tasks those remain that a head serves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<String>,
    /// What differs from the architecture type's hardware matrix.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {
        "enum": ["cpu", "cuda", "rocm", "metal", "openvino", "qnn", "webgpu", "webnn"]
    }))]
    pub hardware: IndexMap<Hardware, ModelHardware>,
}

impl ModelSpec {
    /// What the reference's class names start with: what the spec says, or else the title's letters and digits.
    pub fn class_prefix(&self) -> String {
        let letters =
            || self.title.iter().flat_map(|title| title.chars()).filter(char::is_ascii_alphanumeric);
        self.class_prefix.clone().unwrap_or_else(|| letters().collect())
    }
}

/// How pipelines prepare what a model reads, and read what it gives: what the reference's pipelines know of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Processing {
    /// Whether texts are lowercased before they are tokenized.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub do_lower_case: Option<bool>,
    /// The length that all texts are padded and truncated to (`padding="max_length"`): a number, or an expression over
    /// `config`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<Length>,
    /// What makes scores of the logits that compare images or sounds with texts; `softmax` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function_to_apply: Option<FunctionToApply>,
    /// Whether memory of a video's frames is rounded to bfloat16 before others attend to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bf16_memory: Option<bool>,
    /// Whether memory of all objects of a video's frame is made in one batch, where a prompt of one says for all that masks
    /// have sharp edges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batched_memory: Option<bool>,
}

impl Processing {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A number, or an expression over `config`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Length {
    /// The length.
    Number(usize),
    /// The expression.
    Expression(String),
}

/// What makes scores of logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FunctionToApply {
    /// Every pair for itself.
    Sigmoid,
    /// Labels exclude each other.
    Softmax,
}

/// How checkpoints name their tensors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Weights {
    /// What head classes put before the base model's names; absent in checkpoints of the base model alone. `{model}` in
    /// it stands for the model's name.
    #[serde(default)]
    pub prefix: String,
    /// Endings of names in old releases, and what they are today.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub legacy_suffixes: IndexMap<String, String>,
    /// Pieces of names in published checkpoints, and what they are today. Each map, applied in order, gives one more
    /// name that a file may have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub key_mapping: Vec<IndexMap<String, String>>,
    /// Pieces of names of tensors that published checkpoints hold as one, row after row, and what the rows are today. `*`
    /// in these stands for the number of an expert, by which the tensor has a first axis:
    /// `experts.gate_up_proj: [experts.*.gate_proj.weight, experts.*.up_proj.weight]`. Weights of different lengths take as
    /// many rows as each has. Several tensors, with ` + ` between their names, are one weight, row after row:
    /// `wte.embedding + wte.new_embedding: [embed_tokens.weight]`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub fused_weights: IndexMap<String, Vec<String>>,
    /// Names of tensors that checkpoints hold and the reference does not read either
    /// (`_keys_to_ignore_on_load_unexpected`), with `*` for any piece: `*.attn.bias`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore_unexpected: Vec<String>,
}

/// A field of `config.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ConfigEntry {
    /// Everything said.
    Explicit(Box<ConfigField>),
    /// Only the default, which gives the type too.
    Default(Scalar),
}

/// A plain value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Scalar {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A text.
    Text(String),
    /// Several of one kind.
    List(Vec<Self>),
}

impl Scalar {
    /// The type that a default of this value shows.
    pub fn kind(&self) -> Option<ConfigType> {
        Some(match self {
            Self::Bool(_) => ConfigType::Bool,
            Self::Int(number) if *number < 0 => ConfigType::I64,
            Self::Int(_) => ConfigType::Usize,
            Self::Float(_) => ConfigType::F64,
            Self::Text(_) => ConfigType::String,
            Self::List(values) => match values.first()? {
                Self::Int(_) => ConfigType::Usizes,
                Self::Float(_) => ConfigType::Floats,
                Self::Text(_) => ConfigType::Strings,
                Self::Bool(_) => ConfigType::Bools,
                Self::List(_) => ConfigType::UsizeLists,
            },
        })
    }
}

/// A field of `config.json`, in full.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfigField {
    /// Its type; the default's if left out.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<ConfigType>,
    /// Its name in `config.json`, where that is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Whether it may be `null` or absent without a default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
    /// What it is when `config.json` does not say; it must say where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Scalar>,
    /// What it is where neither `config.json` nor a default says: an expression over other fields, such as
    /// `hidden_size / num_attention_heads`.
    #[serde(default, rename = "or", skip_serializing_if = "Option::is_none")]
    pub otherwise: Option<String>,
    /// Other names that published files have for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Other names that published files have for it, which win over its own where a file has both.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overridden_by: Vec<String>,
    /// The fields of a configuration within this one; under a name that ends with `_config` they may stand alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<IndexMap<String, ConfigEntry>>,
    /// Whether entries of a configuration within this one that are not among `fields` are refused, since each would change
    /// the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<bool>,
    /// What the configuration is where a module may be one of several models, by what the module calls them: what differs
    /// from theirs. `fields` are then what the first one has where `config.json` has no such map.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub one_of: IndexMap<String, ConfigVariant>,
    /// What it means, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doc: Option<String>,
    /// The least it may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<i64>,
    /// The field that must divide it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multiple_of: Option<String>,
    /// The words that a text may be, or a list may hold; a list with another is refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub of: Vec<String>,
    /// The field that says how many elements a list has, where it is given and not empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<String>,
    /// The field that says how many elements a list has at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_length: Option<String>,
    /// The only value that is supported; null, with `because`, is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<Scalar>,
    /// Why no other value is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// The share of a head that turns where a file does not say, of rotary position embeddings; all of it where there is
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial_rotary_factor: Option<f64>,
    /// What stretches rotary position embeddings where a file has neither `rope_parameters` nor `rope_scaling`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rope_scaling: Option<IndexMap<String, Scalar>>,
    /// Why inference does not depend on it, though the reference reads it: the crate passes over it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_effect: Option<String>,
    /// What reads it in place of the graph, in `templates/fields.yaml`: tasks and generation, from the checkpoint's own
    /// files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_by: Option<String>,
    /// Takes an inherited field away.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub remove: bool,
}

/// The configuration of one of the models that a module may be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfigVariant {
    /// The values of `model_type` that choose it; those of the model's spec.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub model_types: Vec<String>,
    /// Its fields.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub fields: IndexMap<String, ConfigEntry>,
}

/// What a model's spec says of one backend, on top of its architecture type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelHardware {
    /// How far it is supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub support: Option<Support>,
    /// Why not fully.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Expected speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub performance: Option<String>,
    /// Expected memory use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// How well each number format does.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub precision: IndexMap<String, String>,
    /// What to know before using it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// Optimizations that apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optimizations: Option<Vec<String>>,
    /// Operators that may run on the CPU there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu_fallback_ops: Vec<String>,
    /// How far results may be off, where the backend's own bound does not do.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"enum": ["f32", "f16", "bf16", "int8", "int4", "int4-mixed", "int3", "int2"]}))]
    pub tolerances: IndexMap<Precision, ToleranceOverride>,
}

/// A bound of a model's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToleranceOverride {
    /// max|got - want| <= relative * max(1, max|want|).
    pub relative: f64,
    /// Why the backend's own bound does not do.
    pub reason: String,
}

impl ModelHardware {
    /// The part that replaces entries of the architecture type's matrix.
    pub fn matrix(&self) -> HardwareOverride {
        HardwareOverride {
            support: self.support,
            reason: self.reason.clone(),
            performance: self.performance.clone(),
            memory: self.memory.clone(),
            precision: self.precision.clone(),
            notes: self.notes.clone(),
            optimizations: self.optimizations.clone(),
        }
    }
}
