//! What a generated crate provides for its architecture, and what it gets for it.

use std::fmt;

use serde::de::DeserializeOwned;

use crate::graph::Graph;
use crate::hardware::Declared;
use crate::{Hardware, Processing, Result, Task};

/// A model architecture: implemented by the `Model` type of each generated crate.
pub trait Architecture: Sized + Send + Sync + 'static {
    /// `config.json`, typed.
    type Config: Configuration;
    /// The reference's classes for this architecture: the base model and its heads.
    type Head: Head;

    /// The crate's name in the specs, such as `bert`.
    const NAME: &'static str;
    /// The values of `model_type` in `config.json` that this crate opens.
    const MODEL_TYPES: &'static [&'static str];
    /// How the checkpoint's tensor names may differ from the graph's.
    const NAMES: Names;
    /// The declared matrix.
    const DECLARED: &'static [Declared];
    /// The order in which [`Hardware::Auto`] tries backends.
    const ROUTE: &'static [Hardware];

    /// The tasks that its checkpoints are for, each with the classes that serve it.
    const TASKS: &'static [TaskHeads<Self::Head>] = &[];

    /// What pipelines know of the model that neither its graph nor its checkpoints say.
    fn processing(config: &Self::Config) -> Processing {
        let _ = config;
        Processing::default()
    }
    /// The graphs that a head can be run by.
    fn graph_kinds(head: Self::Head) -> &'static [GraphKind] {
        let _ = head;
        &[GraphKind::Forward]
    }
    /// Builds one of a head's graphs.
    fn build(g: &mut Graph, config: &Self::Config, head: Self::Head, kind: GraphKind) -> Result<()>;
    /// Wraps a session.
    fn from_session(session: crate::Session<Self>) -> Self;
    /// The session that runs it.
    fn session(&self) -> &crate::Session<Self>;
}

/// One of the graphs that a head is run by: `forward` in one piece, or the stages of generation with a KV cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GraphKind {
    /// The reference's `forward` in one piece, without a cache.
    #[default]
    Forward,
    /// `forward` of text alone, where the model also takes images.
    TextOnly,
    /// The encoder of an encoder-decoder, run once per generation; its outputs are the keys and values of
    /// cross-attention.
    Encoder,
    /// A decoder's cross-attention weights over given tokens, as word timestamps need them: `alignment_heads` in,
    /// their weights out.
    CrossAttentions,
    /// The first step over a prompt with more than tokens, such as images, which fills the KV cache.
    Prefill,
    /// The next tokens, from the KV cache; the prompt too, where it is tokens alone.
    Decode,
    /// As [`GraphKind::Decode`], with `beam_idx`: the row of the cache that each beam continues (`reorder_cache`).
    BeamDecode,
}

impl GraphKind {
    /// The error of a head that has no such graph.
    pub fn absent(self, g: &Graph) -> crate::Error {
        g.error("GraphKind", format!("the head has no graph {self:?}"))
    }

    /// Whether it reads and extends a KV cache.
    pub fn is_cached(self) -> bool {
        matches!(self, Self::Prefill | Self::Decode | Self::BeamDecode)
    }
}

/// A typed `config.json`.
pub trait Configuration: DeserializeOwned + fmt::Debug + Clone + Send + Sync {
    /// Checks what types alone cannot: the problem, starting with the field's name.
    fn check(&self) -> std::result::Result<(), String>;
    /// Brings what older files say into the form that the type reads.
    fn prepare(raw: &mut serde_json::Value) {
        let _ = raw;
    }
}

/// One of the reference's classes for an architecture.
pub trait Head: Copy + fmt::Debug + PartialEq + Send + Sync + 'static {
    /// All of them; the base model first.
    const ALL: &'static [Self];
    /// The class's name, as `architectures` in `config.json` gives it.
    fn class(self) -> &'static str;
}

/// A task that an architecture's checkpoints are for, and the classes that serve it.
#[derive(Clone, Copy, Debug)]
pub struct TaskHeads<H: 'static> {
    pub(crate) task: Task,
    pub(crate) heads: &'static [H],
    /// Other classes whose checkpoints hold all the weights of the first head.
    pub(crate) holders: &'static [H],
    /// Whether checkpoints of every class hold them.
    pub(crate) from_any: bool,
}

impl<H: 'static> TaskHeads<H> {
    /// A task and its classes, the preferred first: that one is loaded where a checkpoint names none.
    pub const fn new(task: Task, heads: &'static [H]) -> Self {
        Self { task, heads, holders: &[], from_any: false }
    }

    /// Also takes checkpoints of these classes, which hold all the weights of the preferred one.
    #[must_use]
    pub const fn also_from(self, holders: &'static [H]) -> Self {
        Self { holders, ..self }
    }

    /// Takes checkpoints of every class, as they hold the base model, which serves the task.
    #[must_use]
    pub const fn from_any(self) -> Self {
        Self { from_any: true, ..self }
    }
}

/// How tensors are named in checkpoints, where that differs from the graph's names.
#[derive(Clone, Copy, Debug, Default)]
pub struct Names {
    /// The prefix that head classes put before the base model's names (`bert`), absent in checkpoints of
    /// the base model alone.
    pub base_model_prefix: &'static str,
    /// Suffixes of older releases' names, such as `LayerNorm.gamma`: (old suffix, today's suffix).
    pub legacy_suffixes: &'static [(&'static str, &'static str)],
    /// Substrings by which published checkpoints' names differ (`key_mapping` of `from_pretrained`): each list, replaced in
    /// order, turns today's name into one that a file may have. The pairs are (in the file, today's).
    pub key_mapping: &'static [&'static [(&'static str, &'static str)]],
    /// Weights that published checkpoints hold fused into one tensor, concatenated along its rows: (in the file, today's).
    pub fused_weights: &'static [(&'static str, &'static [&'static str])],
}
