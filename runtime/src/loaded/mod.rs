//! Opening a checkpoint: configuration, head, graph, weights, backend; and the model that comes of it.

mod config;
mod inputs;
mod lowering;
mod program;
mod room;
mod route;
mod section;

use std::sync::Arc;
use std::time::Instant;

use serde_json::Value as Json;

use crate::engine::{Options, Placement};
use crate::graph::Input;
use crate::graph::probe::Probe;
use crate::hub::Checkpoint;
use crate::lower::{Lowered, Rules, lower};
use crate::model::{Architecture, Head, Part};
use crate::weights::{Files, Weights};
use crate::{Hardware, Precision, Result, Values};
pub(crate) use lowering::Lowering;
pub use program::Timings;
pub(crate) use room::ending;
pub use section::Cache;
use section::{Section, Sections, Setting};

/// A checkpoint that was found, before it is loaded.
#[derive(Clone, Debug)]
pub struct Loader<A: Architecture> {
    checkpoint: Checkpoint,
    weights: Option<Weights>,
    hardware: Hardware,
    precision: Precision,
    head: Option<A::Head>,
    part: Part,
    dims: std::collections::BTreeMap<String, usize>,
    options: Options,
    lowering: Option<Lowering>,
    probes: Vec<String>,
}

impl<A: Architecture> Loader<A> {
    /// Finds a checkpoint: a folder, or a hub id such as `google-bert/bert-base-uncased`.
    ///
    /// # Errors
    /// When there is no such checkpoint.
    pub fn open(checkpoint: &str) -> Result<Self> {
        Ok(Self {
            checkpoint: Checkpoint::open(checkpoint)?,
            weights: None,
            hardware: Hardware::Auto,
            precision: Precision::F32,
            head: None,
            part: Part::Whole,
            dims: Default::default(),
            options: Options::default(),
            lowering: None,
            probes: vec![],
        })
    }

    /// Where to run; [`Hardware::Auto`] follows the model's fallback route, anything else never falls back.
    #[must_use]
    pub fn hardware(mut self, hardware: Hardware) -> Self {
        self.hardware = hardware;
        self
    }

    /// What to compute in; [`Precision::F32`] where not given.
    #[must_use]
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self.options.precision = precision;
        self
    }

    /// Threads within an operation; the physical cores where not given.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.options.threads = Some(threads);
        self
    }

    /// The engine's device, where one engine has several: OpenVINO's `CPU` (where not given), `GPU`, `NPU`.
    #[must_use]
    pub fn device(mut self, device: &str) -> Self {
        self.options.device = Some(device.to_owned());
        self
    }

    /// Leaves weights in their mapped pages: large models open at once, while encoders and prompts are slower on CPU.
    ///
    /// On CPU, weights stored in 16 bits stay so and are widened as they are used, which is exact. Where not given, a decoder
    /// with a cache leaves weights mapped from a gigabyte on; all else is opened for speed.
    #[must_use]
    pub fn map_weights(mut self, map: bool) -> Self {
        self.options.map_weights = Some(map);
        self
    }

    /// Which class to load; the one that `architectures` in `config.json` names where not given.
    #[must_use]
    pub fn head(mut self, head: A::Head) -> Self {
        self.head = Some(head);
        self
    }

    /// Which part to make ready at once; [`Part::Whole`] where not given. The others are when they are first run.
    #[must_use]
    pub fn part(mut self, part: Part) -> Self {
        self.part = part;
        self
    }

    /// The class that [`Loader::head`] asked for.
    pub fn asked_head(&self) -> Option<A::Head> {
        self.head
    }

    /// Weights from elsewhere than the checkpoint's files.
    #[must_use]
    pub fn weights(mut self, weights: Weights) -> Self {
        self.weights = Some(weights);
        self
    }

    /// Fixes the length of a symbolic axis, which backends without dynamic shapes need.
    #[must_use]
    pub fn dim(mut self, symbol: &str, length: usize) -> Self {
        self.dims.insert(symbol.to_owned(), length);
        self
    }

    /// Operators that may run on the CPU instead of the backend; none where not given.
    #[must_use]
    pub fn cpu_fallback(mut self, operators: &[&str]) -> Self {
        self.options.cpu_fallback = operators.iter().map(|&operator| operator.to_owned()).collect();
        self
    }

    /// Gives the graph the form of another backend than the one that runs it, and holds it against what that backend
    /// publishes.
    #[must_use]
    pub(crate) fn lowering(mut self, lowering: Lowering) -> Self {
        self.lowering = Some(lowering);
        self
    }

    /// Makes the values of each of these parts (`encoder.layer.0`) outputs as well.
    #[must_use]
    pub(crate) fn probes(mut self, parts: &[String]) -> Self {
        self.probes = parts.to_vec();
        self
    }

    /// The checkpoint that was found.
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// Builds the graph, finds its weights and makes it ready on the backend.
    ///
    /// # Errors
    /// When the configuration is not the architecture's, a weight is missing or does not fit, or the backend
    /// is not available or refuses the graph.
    pub fn load(self) -> Result<A> {
        let raw = config::read::<A>(&self.checkpoint)?;
        let config = config::typed::<A>(&self.checkpoint, &raw)?;
        let head = match self.head {
            Some(head) => head,
            None => config::head::<A>(&self.checkpoint, &raw)?,
        };
        let weights = match self.weights {
            Some(weights) => weights,
            None => Weights::Files(Files::open(&self.checkpoint)?),
        };
        let chosen = route::choose::<A>(self.hardware)?;
        let form = self.lowering.as_ref().map_or(chosen.hardware, |lowering| lowering.hardware);
        let mut rules = Rules::of(form, self.precision);
        rules.dims = self.dims;
        let sections = Sections::<A>::new(
            head,
            weights,
            Setting {
                rules,
                hardware: chosen.hardware,
                options: self.options,
                lowering: self.lowering,
                probes: self.probes,
            },
        );
        let main = sections.get(&config, self.part)?;
        let loaded = Loaded {
            config,
            raw,
            head,
            checkpoint: self.checkpoint,
            main,
            sections,
            hardware: chosen.hardware,
            explanation: chosen.explanation,
            precision: self.precision,
            part: self.part,
        };
        Ok(A::from_loaded(loaded))
    }

    /// The graph in the form that a backend would run, without running it.
    ///
    /// # Errors
    /// As [`Loader::load`], but for the backend.
    pub fn lower(&self, hardware: Hardware) -> Result<Lowered> {
        let raw = config::read::<A>(&self.checkpoint)?;
        let config = config::typed::<A>(&self.checkpoint, &raw)?;
        let head = match self.head {
            Some(head) => head,
            None => config::head::<A>(&self.checkpoint, &raw)?,
        };
        let weights = match &self.weights {
            Some(weights) => weights.clone(),
            None => Weights::Files(Files::open(&self.checkpoint)?),
        };
        let mut graph = section::graph_over::<A>(&weights);
        A::build(&mut graph, &config, head, self.part)?;
        let located = weights.locate(graph.weights(), &A::NAMES)?;
        let mut rules = Rules::of(hardware, self.precision);
        rules.dims.clone_from(&self.dims);
        lower(&graph, &located, &rules)
    }
}

/// A model that is ready to run, whatever its architecture.
pub struct Loaded<A: Architecture> {
    config: A::Config,
    raw: Json,
    head: A::Head,
    checkpoint: Checkpoint,
    /// The part that was asked for when it was loaded.
    main: Arc<Section>,
    sections: Sections<A>,
    hardware: Hardware,
    explanation: String,
    precision: Precision,
    part: Part,
}

impl<A: Architecture> Loaded<A> {
    /// Runs the model once; inputs that are not given get the reference's defaults.
    ///
    /// # Errors
    /// When a required input is missing, one is unknown, has the wrong dtype or shape or ids out of range,
    /// or the text is longer than the model's positions.
    pub fn run(&self, inputs: Values) -> Result<Values> {
        self.sections.suited(&self.config, self.part, &inputs)?.run(inputs)
    }

    /// Runs another part of the model, made ready when it is first asked for.
    ///
    /// # Errors
    /// When the head has no such part, and as [`Loaded::run`].
    pub fn run_part(&self, part: Part, inputs: Values) -> Result<Values> {
        self.sections.get(&self.config, part)?.run(inputs)
    }

    /// Runs a part on from what the cache holds, and leaves there what the next step goes on from. An encoder leaves
    /// what its cross-attention keeps.
    ///
    /// # Errors
    /// As [`Loaded::run_part`].
    pub fn run_cached(&self, part: Part, inputs: Values, cache: &mut Cache) -> Result<Values> {
        self.sections.get(&self.config, part)?.run_cached(part, inputs, cache)
    }

    /// The parts that the loaded head can be run by.
    pub fn parts(&self) -> &'static [Part] {
        A::parts(self.head)
    }

    /// Whether the backend makes the graph ready anew for each combination of lengths.
    pub fn needs_fixed_shapes(&self) -> bool {
        self.sections.needs_fixed_shapes()
    }

    /// What a part takes.
    ///
    /// # Errors
    /// As [`Loaded::run_part`].
    pub fn inputs_of(&self, part: Part) -> Result<Vec<Input>> {
        Ok(self.sections.get(&self.config, part)?.inputs.clone())
    }

    /// `config.json`, typed.
    pub fn config(&self) -> &A::Config {
        &self.config
    }

    /// `config.json` as it is.
    pub fn raw_config(&self) -> &Json {
        &self.raw
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
        &self.main.inputs
    }

    /// The longest an axis may be: `limit("sequence")`.
    pub fn limit(&self, symbol: &str) -> Option<usize> {
        self.main.limits.iter().filter(|limit| limit.symbol == symbol).map(|limit| limit.most).min()
    }

    /// The backend it runs on.
    pub fn hardware(&self) -> Hardware {
        self.hardware
    }

    /// Why it runs there.
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
        self.sections.ran(&self.main).program.latest().map(|ready| ready.placement()).unwrap_or_default()
    }

    /// How long loading took; the last time, where a backend needs fixed shapes.
    pub fn timings(&self) -> Timings {
        let ran = self.sections.ran(&self.main);
        let timings = ran.program.latest().map(|ready| ready.timings).unwrap_or_default();
        Timings { graph_ms: ran.graph_ms, ..timings }
    }

    /// The checkpoint's tensors that this head does not use.
    pub fn unused_weights(&self) -> &[String] {
        &self.main.unused
    }

    /// The parts whose values were asked for, each with its outputs' names, in the order they are done.
    pub(crate) fn probed(&self) -> &[Probe] {
        &self.main.probes
    }

    /// The bytes of all the checkpoint's tensors.
    pub fn weight_bytes(&self) -> u64 {
        self.sections.weights.size()
    }

    /// How often each operator occurs in the lowered graph.
    pub fn operators(&self) -> std::collections::BTreeMap<String, usize> {
        self.sections
            .ran(&self.main)
            .program
            .latest()
            .map(|ready| ready.operators.clone())
            .unwrap_or_default()
    }

    /// The name of the loaded class.
    pub fn class(&self) -> &'static str {
        self.head.class()
    }
}

impl<A: Architecture> std::fmt::Debug for Loaded<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loaded")
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
