//! Front matter: what a template says of itself, so that a spec can be checked against it.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spec::architectures::Pipeline;

/// The YAML between the two `---` lines that open a template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Front {
    /// What it is for, in a sentence. Of a head: what the head does.
    #[serde(default)]
    pub about: String,
    /// The keys a spec may set for it.
    #[serde(default)]
    pub options: IndexMap<String, OptionSpec>,
    /// Graph templates: the slots that parts are put into.
    #[serde(default)]
    pub slots: IndexMap<String, SlotSpec>,
    /// Graph templates: the modules that it calls, each rendered from a graph template of its own.
    #[serde(default)]
    pub modules: IndexMap<String, ModuleSpec>,
    /// Graph templates and parts, heads among them: inputs of the model that it reads.
    #[serde(default)]
    pub inputs: Vec<InputSpec>,
    /// Parts that are statements: the variable with which they end, which other parts are told of.
    #[serde(default)]
    pub gives: Option<GivesSpec>,
    /// Heads: what it gives.
    #[serde(default)]
    pub outputs: Vec<OutputSpec>,
    /// Heads: the inputs that it takes, or modules all of whose inputs it takes; all of the model's where it does not say.
    #[serde(default)]
    pub takes: Vec<String>,
    /// Heads: the graphs it builds, where that is more than the reference's `forward`; its function then takes the kind.
    #[serde(default)]
    pub graphs: Vec<GraphKind>,
    /// Heads: the parts of other heads whose weights its checkpoints hold as well.
    #[serde(default)]
    pub holds: Vec<String>,
    /// Heads: the symbols that stand before the last axis of every input, after `batch`.
    #[serde(default)]
    pub axes: Vec<String>,
    /// Pipelines: the head parts that serve the task, the preferred first.
    #[serde(default)]
    pub heads: Vec<String>,
    /// Pipelines: whether checkpoints of every class will do, as they hold the base model that serves the task.
    #[serde(default)]
    pub any_class: bool,
    /// Pipelines: whether specs that name it alone offer it, of all whose heads could serve it.
    #[serde(default)]
    pub named: bool,
    /// Pipelines: the name of the type in the crate's `tasks` module.
    #[serde(default, rename = "type")]
    pub type_name: Option<String>,
    /// Pipelines: the kinds of pipeline that offer the task; `architectures.yaml` names a model's.
    #[serde(default)]
    pub pipelines: Vec<Pipeline>,
    /// Pipelines: what stands behind the checkpoint where the crate's page shows the task on a command line.
    #[serde(default)]
    pub arguments: Option<String>,
    /// Pipelines: the cargo features of the runtime that the task needs.
    #[serde(default)]
    pub features: Vec<Feature>,
}

/// A cargo feature of the runtime that a task may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Feature {
    /// Spectra and decoders of sound files.
    Audio,
    /// Chat templates; with `text`.
    Chat,
    /// Schedulers and the reference's random numbers; with `image` and `text`.
    Diffusion,
    /// Image processors and decoders of image files.
    Image,
    /// Tokenizers and generation.
    Text,
    /// Frames of video files; with `image`.
    Video,
}

impl Feature {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Audio, Self::Chat, Self::Diffusion, Self::Image, Self::Text, Self::Video];

    /// Its name in the runtime's manifest.
    pub fn name(self) -> &'static str {
        match self {
            Self::Audio => "audio",
            Self::Chat => "chat",
            Self::Diffusion => "diffusion",
            Self::Image => "image",
            Self::Text => "text",
            Self::Video => "video",
        }
    }
}

/// A key that a spec may set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OptionSpec {
    /// What it takes.
    #[serde(rename = "type")]
    pub kind: OptionType,
    /// What it is when a spec does not set it; a spec must where there is none.
    #[serde(default)]
    pub default: Option<serde_json::Value>,
    /// Whether it may be left out without a default.
    #[serde(default)]
    pub optional: bool,
    /// The words that `word` takes; of `schedule`, the kind of the layers for which it holds, and that of the others.
    #[serde(default)]
    pub of: Vec<String>,
    /// Variables that its expression may use besides fields of `config`. The template says what they are where it puts
    /// the expression: `{{ o.is_sliding | at(layer="index") }}`.
    #[serde(default)]
    pub with: IndexMap<String, VariableType>,
    /// Whether its expression may give null; the template gets a Rust option.
    #[serde(default)]
    pub nullable: bool,
    /// What it does, in a sentence.
    #[serde(default)]
    pub doc: String,
}

/// What an option takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OptionType {
    /// `true` or `false`.
    #[default]
    Bool,
    /// A whole number.
    Int,
    /// A number.
    Float,
    /// A name in the checkpoint, its levels separated by dots.
    Scope,
    /// A list of such names.
    Scopes,
    /// The name of a field of `config`.
    Field,
    /// `true`, `false` or an expression that is either (see `docs/specs.md`); the template gets Rust.
    Flag,
    /// A count or an expression that gives one; the template gets Rust.
    Usize,
    /// A number or an expression that gives one; the template gets Rust.
    F64,
    /// What holds for some layers: an expression that is true or false, or `{of, kind, or, when}`; the template gets Rust.
    Schedule,
    /// Rotary position embeddings: a field of `config`, or `{of, kind, theta}`; the template gets Rust.
    Rope,
    /// One of the words under `of`.
    Word,
    /// An activation function, or the name of a field of `config`; the template gets a Rust expression.
    Activation,
}

/// A variable that a part leaves behind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GivesSpec {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
}

/// What a variable of an expression is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VariableType {
    /// A count, such as the index of a layer.
    Usize,
    /// True or false.
    Bool,
}

/// A place in a graph template that a part is put into.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlotSpec {
    /// The part that stands there when a spec names none.
    pub default: String,
    /// The folder of `graph/parts/` that the parts are in; the slot's name if left out.
    #[serde(default)]
    pub from: Option<String>,
    /// What a part does there: its arguments and what it leaves behind.
    #[serde(default)]
    pub doc: String,
}

/// A module that a graph template calls: `text::encoder(g, &c.text_config, …)`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModuleSpec {
    /// The graph template of a module for which a spec names none.
    #[serde(default)]
    pub template: Option<String>,
    /// The field that holds its configuration where a spec does not say; the model's own where neither does.
    #[serde(default)]
    pub config: Option<String>,
    /// Whether a spec may leave it out.
    #[serde(default)]
    pub optional: bool,
    /// What it does there: the functions that are called.
    #[serde(default)]
    pub doc: String,
}

/// One of the graphs that a head is run by; `weft::GraphKind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GraphKind {
    /// The reference's `forward`, without a cache.
    Forward,
    /// The same for text alone.
    TextOnly,
    /// The encoder alone.
    Encoder,
    /// The decoder's cross-attention weights.
    CrossAttentions,
    /// The prompt with more than tokens, such as images.
    Prefill,
    /// The next tokens, with a KV cache.
    Decode,
    /// As `decode`, after `beam_idx` reorders the cache.
    BeamDecode,
    /// The text encoder of a diffusion pipeline, whose `forward` is the denoiser.
    TextEncoder,
    /// Its second text encoder.
    #[serde(rename = "text_encoder_2")]
    TextEncoder2,
    /// Its third text encoder.
    #[serde(rename = "text_encoder_3")]
    TextEncoder3,
    /// The latents of images.
    LatentEncoder,
    /// The images of latents.
    LatentDecoder,
    /// What follows where keypoints are chosen of what `forward` scores.
    AtKeypoints,
    /// The features of a video's frame, for all objects in it.
    ImageFeatures,
    /// What of a text is in a frame, of these.
    Detection,
    /// `forward` of these, for each object.
    Tracking,
    /// The memory of a frame, of masks that are given.
    MemoryEncoder,
}

impl GraphKind {
    /// The variant of `weft::GraphKind`.
    pub fn variant(self) -> &'static str {
        match self {
            Self::Forward => "Forward",
            Self::TextOnly => "TextOnly",
            Self::Encoder => "Encoder",
            Self::CrossAttentions => "CrossAttentions",
            Self::Prefill => "Prefill",
            Self::Decode => "Decode",
            Self::BeamDecode => "BeamDecode",
            Self::TextEncoder => "TextEncoder",
            Self::TextEncoder2 => "TextEncoder2",
            Self::TextEncoder3 => "TextEncoder3",
            Self::LatentEncoder => "LatentEncoder",
            Self::LatentDecoder => "LatentDecoder",
            Self::AtKeypoints => "AtKeypoints",
            Self::ImageFeatures => "ImageFeatures",
            Self::Detection => "Detection",
            Self::Tracking => "Tracking",
            Self::MemoryEncoder => "MemoryEncoder",
        }
    }
}

/// An input of the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InputSpec {
    /// The reference's name for it.
    pub name: String,
    /// Its element type.
    #[serde(default)]
    pub dtype: InputType,
    /// Its axes: symbols, fields of `config` or numbers.
    pub shape: Vec<String>,
    /// What stands for it when it is not given; required where there is none.
    #[serde(default)]
    pub fill: Option<FillWith>,
    /// Whether there may be none of it: heads that take it have a part for texts alone.
    #[serde(default)]
    pub optional: bool,
    /// Whether the part that reads it declares it, not the one that declares what all heads take.
    #[serde(default)]
    pub apart: bool,
    /// Where positions start that stand for it; 0 if left out.
    #[serde(default)]
    pub first: Option<usize>,
    /// The field of `config` that its values stay below.
    #[serde(default)]
    pub below: Option<String>,
    /// What examples give for it; numbers that suit its type and shape if left out.
    #[serde(default)]
    pub example: Option<Example>,
    /// The option without which there is no such input.
    #[serde(default)]
    pub when: Option<String>,
    /// What it is.
    pub doc: String,
}

/// What examples give for an input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Example {
    /// Its elements, row by row: `[[101, 7592, 102]]`.
    Values(Vec<ExampleValue>),
    /// Zeros of this shape.
    Zeros {
        /// Its axes' lengths.
        shape: Vec<usize>,
    },
}

/// An element of an example.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ExampleValue {
    /// A number.
    Number(serde_json::Number),
    /// A row.
    Row(Vec<Self>),
}

/// The element type of an input or an output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum InputType {
    /// 64-bit integers.
    #[default]
    I64,
    /// 32-bit floating-point numbers.
    F32,
    /// Truth values.
    Bool,
}

/// What an input is when it is not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FillWith {
    /// All zero.
    Zeros,
    /// All one.
    Ones,
    /// 0, 1, 2 … along the last axis.
    Positions,
    /// 1, 2, 3 … for the tokens of `input_ids` and 0 for padding, plus `pad_token_id`.
    #[serde(rename = "token_positions")]
    TokenPositions,
}

/// An output of a head.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputSpec {
    /// The reference's name for it.
    pub name: String,
    /// Its element type.
    #[serde(default = "floats")]
    pub dtype: InputType,
    /// Its axes, in words.
    pub shape: Vec<String>,
    /// Whether checkpoints may be without what gives it.
    #[serde(default)]
    pub optional: bool,
    /// Whether it is a tuple of as many tensors as the configuration says: `name.0`, `name.1` …
    #[serde(default)]
    pub tuple: bool,
    /// The option of the head without which there is no such output.
    #[serde(default)]
    pub when: Option<String>,
    /// What it is.
    pub doc: String,
}

fn floats() -> InputType {
    InputType::F32
}
