//! A session: a checkpoint loaded on a backend, its graphs, and running them.

mod architecture;
mod cache;
mod calibration;
mod config;
mod executable;
mod expert_usage;
mod inputs;
mod inspection;
mod kv_bucket;
mod loader;
mod lowering;
mod older;
mod quantizing;
mod refusals;
mod route;
mod subgraph;

use std::sync::Arc;

use serde_json::Value as Json;

use crate::clock::Instant;
use crate::engine::Placement;
use crate::graph::Input;
use crate::graph::probe::Probe;
use crate::hub::Checkpoint;
use crate::{Error, GraphKind, Hardware, Head, Precision, Processing, Result, Values};
pub use architecture::Architecture;
pub use cache::Cache;
pub(crate) use cache::SavedStates;
pub use calibration::Calibration;
pub use executable::Timings;
pub use expert_usage::{ExpertUsage, LayerUsage};
pub use inspection::{BackendVerdict, Inspection, MemoryNeed};
pub use loader::{Loader, Loads};
pub(crate) use lowering::Lowering;
pub use quantizing::{cached_weights, remove_cached_weights};
use subgraph::{Signature, Subgraph, Subgraphs};

/// A model that is ready to run, whatever its architecture.
pub struct Session<A: Architecture> {
    config: A::Config,
    raw: Json,
    head: A::Head,
    checkpoint: Checkpoint,
    /// The graph that was compiled when it was loaded.
    main: Arc<Subgraph>,
    /// What the graph of `kind` takes and reads, whether it was compiled or not.
    signature: Arc<Signature>,
    subgraphs: Subgraphs<A>,
    hardware: Hardware,
    explanation: String,
    precision: Precision,
    kind: GraphKind,
}

impl<A: Architecture> Session<A> {
    /// Runs the model once; inputs that are not given get the reference's defaults.
    ///
    /// # Errors
    /// When a required input is missing, one is unknown, has the wrong dtype or shape or ids out of range,
    /// or the text is longer than the model's positions.
    pub fn run(&self, inputs: Values) -> Result<Values> {
        let outputs = self.subgraphs.suited(&self.config, self.kind, &inputs)?.run(inputs)?;
        let goes_on = self.kind == GraphKind::Forward && self.graph_kinds().contains(&GraphKind::AtKeypoints);
        if goes_on { self.run_graph(GraphKind::AtKeypoints, outputs) } else { Ok(outputs) }
    }

    /// Runs another graph of the head, compiled when it is first run.
    ///
    /// # Errors
    /// When the head has no such graph, and as [`Session::run`].
    pub fn run_graph(&self, kind: GraphKind, inputs: Values) -> Result<Values> {
        self.subgraphs.get(&self.config, kind)?.run(inputs)
    }

    /// Runs a graph with the KV cache, and updates it. The encoder's graph leaves the keys and values of cross-attention.
    ///
    /// # Errors
    /// As [`Session::run_graph`].
    pub fn run_cached(&self, kind: GraphKind, inputs: Values, cache: &mut Cache) -> Result<Values> {
        self.subgraphs.get(&self.config, kind)?.run_cached(kind, inputs, cache)
    }

    /// Makes runs with a cache give intermediate values too, such as `last_hidden_state` and `hidden_states.1` (`output_hidden_states`), of
    /// models that drafters are made for.
    ///
    /// # Errors
    /// When the model does not give one of them.
    pub fn output_intermediates(&self, names: &[&str]) -> Result<()> {
        self.subgraphs.output_intermediates(&self.config, names)
    }

    /// Runs the part of a decoder that leads to an intermediate value or an output, such as its token embeddings (`get_input_embeddings`);
    /// from an intermediate value that is given, such as its head on hidden states (`get_output_embeddings`).
    ///
    /// # Errors
    /// When the model has no such value, and as [`Session::run`].
    pub fn run_part(&self, from: Option<&str>, to: &str, inputs: Values) -> Result<Values> {
        self.subgraphs.part(&self.config, from, to)?.run(inputs)
    }

    /// The graphs that the loaded head can be run by.
    pub fn graph_kinds(&self) -> &'static [GraphKind] {
        A::graph_kinds(self.head)
    }

    /// Whether the backend makes the graph ready anew for each combination of lengths.
    pub fn needs_fixed_shapes(&self) -> bool {
        self.subgraphs.needs_fixed_shapes()
    }

    /// The inputs of a graph.
    ///
    /// # Errors
    /// As [`Session::run_graph`].
    pub fn inputs_of(&self, kind: GraphKind) -> Result<Vec<Input>> {
        Ok(self.subgraphs.get(&self.config, kind)?.signature.inputs.clone())
    }

    /// `config.json`, typed.
    pub fn config(&self) -> &A::Config {
        &self.config
    }

    /// `config.json` as it is.
    pub fn raw_config(&self) -> &Json {
        &self.raw
    }

    /// `config.json` with what holds where it does not say: the fields that the model has.
    ///
    /// # Errors
    /// When a number has no form in JSON.
    pub fn config_json(&self) -> Result<Json> {
        let path = self.checkpoint.dir().join("config.json");
        let help = "correct the field: numbers must be finite";
        serde_json::to_value(&self.config).map_err(|e| Error::config(path, e.to_string(), help))
    }

    /// The class that was loaded.
    pub fn head(&self) -> A::Head {
        self.head
    }

    /// The checkpoint it was loaded from.
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// What the model takes.
    pub fn inputs(&self) -> &[Input] {
        &self.signature.inputs
    }

    /// The longest an axis may be: `limit("sequence")`.
    pub fn limit(&self, symbol: &str) -> Option<usize> {
        self.signature.limits.most.iter().filter(|limit| limit.symbol == symbol).map(|limit| limit.most).min()
    }

    /// What pipelines know of the model that neither its graph nor its checkpoint says.
    pub fn processing(&self) -> Processing {
        A::processing(&self.config)
    }

    /// The backend it runs on.
    pub fn hardware(&self) -> Hardware {
        self.hardware
    }

    /// Why it runs there: on the first line the backend, on further ones those of the route that are not available.
    pub fn explanation(&self) -> &str {
        &self.explanation
    }

    /// What it computes in.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// The nodes that each device runs, as the engine reports them.
    ///
    /// Backends that need fixed shapes have none before the first run.
    pub fn placement(&self) -> Placement {
        self.subgraphs.ran(&self.main).executable.latest().map(|ready| ready.placement()).unwrap_or_default()
    }

    /// How long loading took; the last time, where a backend needs fixed shapes.
    pub fn timings(&self) -> Timings {
        let ran = self.subgraphs.ran(&self.main);
        let timings = ran.executable.latest().map(|ready| ready.timings).unwrap_or_default();
        Timings { graph_ms: ran.graph_ms, ..timings }
    }

    /// The checkpoint's tensors that this head does not use.
    pub fn unused_weights(&self) -> &[String] {
        &self.signature.unused
    }

    /// The probed modules, each with its outputs' names, in the order they are computed.
    pub(crate) fn probed(&self) -> &[Probe] {
        &self.signature.probes
    }

    /// The bytes of all the checkpoint's tensors.
    pub fn weight_bytes(&self) -> u64 {
        self.subgraphs.weights.size()
    }

    /// How often each operator occurs in the lowered graph.
    pub fn operators(&self) -> std::collections::BTreeMap<String, usize> {
        self.subgraphs
            .ran(&self.main)
            .executable
            .latest()
            .map(|ready| ready.operators.clone())
            .unwrap_or_default()
    }

    /// The name of the loaded class.
    pub fn class(&self) -> &'static str {
        self.head.class()
    }
}

impl<A: Architecture> std::fmt::Debug for Session<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("class", &self.class())
            .field("checkpoint", &self.checkpoint.id())
            .field("hardware", &self.hardware)
            .field("precision", &self.precision)
            .finish_non_exhaustive()
    }
}

pub(crate) fn millis(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}
