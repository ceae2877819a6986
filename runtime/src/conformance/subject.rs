//! The architecture under test, behind a few pointers: all else here is compiled once and not for every crate.

use std::path::Path;

use serde_json::Value as Json;

use crate::graph::Weight;
use crate::lower::Lowered;
use crate::quantization::{Recipe, Written};
use crate::session::{Loader, Lowering};
use crate::tasks::{JsonPipeline, load_json};
use crate::weights::Weights;
use crate::{AnyModel, DynModel, Hardware, Precision, Result, Task, Values};
use crate::{Architecture, GraphKind, Head, TaskHeads};

/// How to open a checkpoint.
#[derive(Clone, Debug, Default)]
pub(super) struct Request<'a> {
    pub checkpoint: &'a str,
    pub hardware: Option<Hardware>,
    pub precision: Precision,
    pub threads: Option<usize>,
    /// The class to load; the one that the checkpoint names where not given.
    pub class: Option<String>,
    /// Whether images have other sizes than the configuration's.
    pub interpolate: bool,
    /// What to make ready at once.
    pub kind: GraphKind,
    /// Whether weights stay in their mapped pages; the loader's own choice where not given.
    pub map_weights: Option<bool>,
    pub weights: Option<Weights>,
    pub cpu_fallback: &'a [&'a str],
    /// Whether quantized weights run by their dequantized values.
    pub dequantized: bool,
    /// Whether kernels of quantized weights may not round what they multiply with; in single precision where not said.
    pub exact_activations: Option<bool>,
    /// What keys and values are cached in.
    pub kv_cache: Option<Precision>,
    pub lowering: Option<Lowering>,
    /// Parts whose values are wanted besides the outputs.
    pub probes: &'a [String],
}

/// Writes a checkpoint quantized, calibrated where there are inputs.
type Quantize = fn(Request<'_>, Recipe, Option<&[Json]>, &Path) -> Result<Written>;

/// What a generated crate's tests need of its architecture.
#[derive(Clone, Copy)]
pub(super) struct Subject {
    /// The crate's name in the specs.
    pub name: &'static str,
    /// The `model_type` of its checkpoints.
    pub model_type: &'static str,
    /// The class that serves its first task; the base model where there is none.
    pub class: fn() -> &'static str,
    /// Loads a model.
    pub load: fn(Request<'_>) -> Result<DynModel>,
    /// Reads a checkpoint's configuration and builds the graph by it.
    pub build: fn(Request<'_>) -> Result<()>,
    /// The parameters that a checkpoint of a configuration has.
    pub parameters: fn(Request<'_>) -> Result<Vec<Weight>>,
    /// Writes a checkpoint with its linear layers quantized, calibrated where inputs are given.
    pub quantize: Quantize,
    /// The graphs that a class can be run by.
    pub graph_kinds: fn(&str) -> &'static [GraphKind],
    /// Opens a checkpoint and gives its graph the form of a backend.
    pub lower: fn(Request<'_>, Hardware) -> Result<Lowered>,
    /// The tasks, each with the names of the classes that serve it.
    pub promises: fn() -> Vec<(Task, Vec<&'static str>)>,
    /// Loads the class that serves a task, by what the checkpoint names.
    pub load_for: fn(Task, Request<'_>) -> Result<DynModel>,
    /// Takes the outputs of a class as the crate's type for them.
    pub check_outputs: fn(&str, &mut Values) -> Result<()>,
    /// Loads the pipeline of a task.
    pub pipeline: fn(&str, Request<'_>) -> Result<Box<dyn JsonPipeline>>,
}

impl Subject {
    pub(super) fn of<A: Architecture>() -> Self {
        Self {
            name: A::NAME,
            model_type: A::MODEL_TYPES[0],
            class: || {
                let served = A::TASKS.first().and_then(|served| served.heads.first());
                served.unwrap_or(&A::Head::ALL[0]).class()
            },
            load: |request| Ok(Box::new(loader::<A>(request)?.load()?) as Box<dyn AnyModel>),
            build: |request| loader::<A>(request)?.build(),
            parameters: |request| loader::<A>(request)?.parameters(),
            quantize: |request, recipe, inputs, out| match inputs {
                Some(inputs) => loader::<A>(request)?.quantize_on(recipe, inputs, out),
                None => loader::<A>(request)?.quantize(recipe, out),
            },
            graph_kinds: |class| {
                let head = A::Head::ALL.iter().find(|head| head.class() == class);
                A::graph_kinds(*head.unwrap_or(&A::Head::ALL[0]))
            },
            lower: |request, hardware| loader::<A>(request)?.lower(hardware),
            promises: || {
                let classes =
                    |served: &TaskHeads<A::Head>| served.heads.iter().map(|head| head.class()).collect();
                A::TASKS.iter().map(|served| (served.task, classes(served))).collect()
            },
            load_for: |task, request| {
                let loader = loader::<A>(request)?;
                let head = task.head::<A>(loader.checkpoint(), None)?;
                Ok(Box::new(loader.head(head).load()?) as Box<dyn AnyModel>)
            },
            check_outputs: |class, outputs| {
                let head = A::Head::ALL.iter().find(|head| head.class() == class);
                head.map_or(Ok(()), |head| A::check_outputs(*head, outputs))
            },
            pipeline: |task, request| load_json(task, loader::<A>(request)?),
        }
    }
}

fn loader<A: Architecture>(request: Request<'_>) -> Result<Loader<A>> {
    let mut loader = Loader::<A>::open(request.checkpoint)?
        .hardware(request.hardware.unwrap_or(Hardware::Cpu))
        .precision(request.precision)
        // A golden says what the weights stand for; what rounded activations make of that is no matter of reading them.
        .exact_activations(request.exact_activations.unwrap_or(request.precision == Precision::F32))
        .graph_kind(request.kind)
        .interpolate_pos_encoding(request.interpolate)
        .cpu_fallback(request.cpu_fallback)
        .probes(request.probes);
    let named = |head: &&A::Head| request.class.as_deref() == Some(head.class());
    if let Some(head) = A::Head::ALL.iter().find(named) {
        loader = loader.head(*head);
    }
    if request.dequantized {
        loader = loader.dequantized();
    }
    if let Some(threads) = request.threads {
        loader = loader.threads(threads);
    }
    if let Some(map) = request.map_weights {
        loader = loader.map_weights(map);
    }
    if let Some(precision) = request.kv_cache {
        loader = loader.kv_cache(precision);
    }
    if let Some(weights) = request.weights {
        loader = loader.weights(weights);
    }
    if let Some(lowering) = request.lowering {
        loader = loader.lowering(lowering);
    }
    Ok(loader)
}
