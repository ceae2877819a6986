//! The graphs that a head is run by, each with its inputs, compiled when it is first run.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::cache::{Cache, Layout};
use super::executable::{Cached, Executable};
use super::inputs::{self, Limits};
use super::quantizing::Quantizing;
use super::{Calibration, ExpertUsage, Lowering, kv_bucket, millis};
use crate::auto::memory;
use crate::clock::Instant;
use crate::engine::Options;
use crate::graph::dims::BATCH;
use crate::graph::probe::Probe;
use crate::graph::{CacheCodes, Dim, Graph, Input, InputDefault, SHARED_NAME, Stored};
use crate::lower::Target;
use crate::weights::{Bytes, WeightData, Weights};
use crate::{Architecture, GraphKind, Head};
use crate::{Error, Hardware, Result, Value, Values};

/// What all graphs of a model are compiled with.
#[derive(Clone)]
pub(super) struct Settings {
    pub target: Target,
    pub hardware: Hardware,
    pub options: Options,
    pub lowering: Option<Lowering>,
    /// Whether images may have other sizes than the configuration's.
    pub interpolate: bool,
    /// The bits of cached keys and values; none where they are floating point.
    pub cache_codes: Option<CacheCodes>,
    /// Where selected experts are counted.
    pub usage: Option<ExpertUsage>,
    /// Where Gram matrices of what linear layers are given are gathered.
    pub calibration: Option<Calibration>,
    /// Modules of [`GraphKind::Forward`] whose values are wanted besides its outputs.
    pub probes: Vec<String>,
}

/// What one graph of a head takes and reads.
pub(super) struct Signature {
    pub inputs: Vec<Input>,
    pub limits: Limits,
    /// The checkpoint's tensors that it does not read.
    pub unused: Vec<String>,
    /// The probed modules, each with the outputs that hold its values.
    pub probes: Vec<Probe>,
}

/// One graph of a head, ready to run.
pub(super) struct Subgraph {
    pub signature: Arc<Signature>,
    pub executable: Executable,
    pub graph_ms: f64,
    /// What was done for want of memory.
    pub note: Option<String>,
    /// Where selected experts are counted, with the outputs that do.
    pub usage: Option<(ExpertUsage, Vec<String>)>,
    /// Where Gram matrices are gathered, with the outputs that are.
    pub calibration: Option<(Calibration, Vec<String>)>,
}

impl Subgraph {
    /// Whether nothing is missing of what it needs.
    pub(super) fn has_all(&self, given: &Values) -> bool {
        let mut needed =
            self.signature.inputs.iter().filter(|input| input.default.is_none() && input.computed.is_none());
        let mut apart = self
            .signature
            .inputs
            .iter()
            .filter(|input| matches!(input.default, Some(InputDefault::LeftOut { .. })))
            .peekable();
        needed.all(|input| given.contains_key(&input.name))
            && (apart.peek().is_none() || apart.any(|input| given.contains_key(&input.name)))
    }

    /// Whether it takes everything that is given.
    pub(super) fn takes_all(&self, given: &Values) -> bool {
        given.keys().all(|name| self.signature.inputs.iter().any(|input| input.name == *name))
    }

    pub(super) fn run(&self, inputs: Values) -> Result<Values> {
        let inputs = inputs::complete(
            &self.signature.inputs,
            &self.signature.limits,
            inputs,
            &BTreeMap::new(),
            &|_| false,
        )?;
        let outputs = self.executable.run(&inputs)?;
        Ok(self.named(outputs))
    }

    /// Outputs without those that count experts or calibrate, and those under their own names that inputs have too.
    fn named(&self, mut outputs: Values) -> Values {
        if let Some((usage, names)) = &self.usage {
            usage.add(names, &mut outputs);
        }
        if let Some((calibration, names)) = &self.calibration {
            calibration.add(names, &mut outputs);
        }
        for input in &self.signature.inputs {
            if let Some(output) = outputs.remove(&format!("{SHARED_NAME}{}", input.name)) {
                outputs.insert(input.name.clone(), output);
            }
        }
        outputs
    }

    pub(super) fn run_cached(&self, kind: GraphKind, inputs: Values, cache: &mut Cache) -> Result<Values> {
        let kept = |name: &str| cache.state.holds(name);
        let mut known = cache.lengths.clone();
        known.extend([("past".to_owned(), cache.past), ("past_batch".to_owned(), cache.rows)]);
        let inputs = inputs::complete(&self.signature.inputs, &self.signature.limits, inputs, &known, &kept)?;
        let ids = ["input_ids", "decoder_input_ids", "decoder_input_values"]
            .into_iter()
            .find_map(|name| inputs.get(name));
        let length = |axis| ids.and_then(|ids| ids.shape().get(axis)).copied().unwrap_or_default();
        let (rows, new) = (length(0), length(1));
        let capacity = self.executable.capacity(cache.past, new);
        let inputs = kv_bucket::pad_left(&self.signature.inputs, inputs, capacity - cache.past);
        if kind.is_cached() {
            self.resize(cache, capacity)?;
        }
        let (lengths, leaves) = match kind {
            GraphKind::Encoder => (self.lengths(&inputs), self.executable.cached_shapes(&inputs)),
            _ => Default::default(),
        };
        let cached = Cached { past: capacity, rows: cache.rows, shapes: Some(&cache.shapes) };
        let outputs = self.executable.run_with_state(inputs, &cached, &mut cache.state)?;
        cache.lengths.extend(lengths);
        cache.shapes.extend(leaves);
        if kind.is_cached() {
            if cache.layout.is_none() {
                cache.layout = Some(Layout::of(&self.signature.inputs, &self.executable));
            }
            cache.past += new;
            cache.rows = rows;
            cache.capacity = kv_bucket::left(capacity, new);
        }
        Ok(self.named(outputs))
    }

    /// How long the symbolic axes of its inputs are; but of the batch: beams are rows of one item, of which a decoder
    /// may have more.
    fn lengths(&self, inputs: &Values) -> BTreeMap<String, usize> {
        let mut lengths = BTreeMap::new();
        for input in &self.signature.inputs {
            let shape = inputs.get(&input.name).map(Value::shape).unwrap_or_default();
            for (dim, length) in input.shape.iter().zip(shape) {
                if let Dim::Symbol(symbol) = dim
                    && *dim != BATCH
                {
                    lengths.insert(symbol.to_string(), *length);
                }
            }
        }
        lengths
    }

    /// Resizes the cached tensors to the capacity of the next run, where it has another.
    fn resize(&self, cache: &mut Cache, capacity: usize) -> Result<()> {
        let Some(hardware) = self.executable.fixed_on() else { return Ok(()) };
        if cache.capacity != capacity {
            for input in &self.signature.inputs {
                if let Some(axis) = kv_bucket::axis(input) {
                    cache.state.resize(hardware, &input.name, axis, capacity)?;
                }
            }
        }
        cache.capacity = capacity;
        Ok(())
    }
}

/// What a graph is built with besides its configuration.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Choices {
    /// Whether images may have other sizes than the configuration's.
    pub interpolate: bool,
    /// Whether selected experts are counted.
    pub counts_experts: bool,
    /// How cached keys and values are stored, where they are codes.
    pub cache_codes: Option<CacheCodes>,
}

/// Builds one of a head's graphs, with access to the names of the checkpoint's weights; without weights as if all that any
/// checkpoint has were there.
pub(super) fn built<A: Architecture>(
    config: &A::Config,
    head: A::Head,
    kind: GraphKind,
    weights: Option<&Weights>,
    choices: Choices,
) -> Result<Graph> {
    let mut graph = built_alone::<A>(config, head, kind, weights, choices)?;
    if kind == GraphKind::Forward && A::graph_kinds(head).contains(&GraphKind::AtKeypoints) {
        let later = built_alone::<A>(config, head, GraphKind::AtKeypoints, weights, choices)?;
        graph.later = later.weights;
        graph.unused.extend(later.unused);
    }
    Ok(graph)
}

fn built_alone<A: Architecture>(
    config: &A::Config,
    head: A::Head,
    kind: GraphKind,
    weights: Option<&Weights>,
    choices: Choices,
) -> Result<Graph> {
    let place = weights.map_or(Path::new("config.json"), Weights::place).to_path_buf();
    let mut graph = Graph::new();
    graph.stored = weights.cloned().map(|weights| {
        let (tensors, elements) = weights.counts();
        let held = weights.clone();
        let has = move |name: &str| held.stored_as(name, &A::NAMES).is_some();
        let shape = move |name: &str| weights.stored_shape(name, &A::NAMES);
        Stored { has: Arc::new(has), shape: Arc::new(shape), tensors, elements, place: place.clone() }
    });
    graph.interpolate = choices.interpolate;
    graph.counts_experts = choices.counts_experts;
    graph.cache_codes = choices.cache_codes;
    // Sizes that no model has may divide by zero or overflow, which must not end the program.
    catch_unwind(AssertUnwindSafe(|| A::build(&mut graph, config, head, kind))).unwrap_or_else(|_| {
        let problem = format!("config.json has sizes of which no {} can be built", head.class());
        Err(Error::weights(&place, problem, "compare its sizes with the published ones"))
    })?;
    ExpertUsage::ask(&mut graph)?;
    if choices.interpolate && !graph.can_interpolate {
        let problem = format!("{} has no positions of images that could be interpolated", head.class());
        let help = "load it without, and give images of the configuration's size";
        return Err(Error::input("interpolate_pos_encoding", problem, help));
    }
    Ok(graph)
}

/// From so many bytes on, a decoder opens with its weights in their mapped pages.
const LARGE: u64 = 1 << 28;

/// Whether opening at once and taking no memory twice outweighs a slower prompt: of large weights.
fn are_worth_mapping(weights: &[WeightData]) -> bool {
    let mapped = weights.iter().map(|weight| match weight.bytes {
        Bytes::File { length, .. } => length,
        Bytes::Memory(_) | Bytes::Quantized(_) => 0,
    });
    mapped.sum::<u64>() >= LARGE
}

/// The values that a part of a graph leads from, where not from inputs alone, and to.
type Between = (Option<String>, String);

/// All graphs of a head.
pub(super) struct Subgraphs<A: Architecture> {
    head: A::Head,
    pub weights: Weights,
    setting: Settings,
    quantizing: Quantizing,
    ready: Mutex<BTreeMap<GraphKind, Arc<Subgraph>>>,
    /// What ran last of [`GraphKind::Forward`] and [`GraphKind::TextOnly`].
    ran: Mutex<Option<Arc<Subgraph>>>,
    /// The intermediate values that graphs with a cache give too.
    intermediates: Mutex<Vec<String>>,
    /// Parts of the decoder's graph, by the values that they lead from and to.
    parts: Mutex<BTreeMap<Between, Arc<Subgraph>>>,
}

impl<A: Architecture> Subgraphs<A> {
    pub(super) fn new(head: A::Head, weights: Weights, setting: Settings, quantizing: Quantizing) -> Self {
        Self {
            head,
            weights,
            setting,
            quantizing,
            ready: Mutex::default(),
            ran: Mutex::default(),
            intermediates: Mutex::default(),
            parts: Mutex::default(),
        }
    }

    /// Makes graphs with a cache give intermediate values too; those that do not are made ready anew.
    pub(super) fn output_intermediates(&self, config: &A::Config, names: &[&str]) -> Result<()> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut wanted = self.intermediates.lock().unwrap_or_else(PoisonError::into_inner);
        if *wanted == names {
            return Ok(());
        }
        let mut graph =
            built::<A>(config, self.head, GraphKind::Decode, Some(&self.weights), Choices::default())?;
        graph.output_intermediates(&names)?;
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).retain(|kind, _| !kind.is_cached());
        *wanted = names;
        Ok(())
    }

    /// The part of a decoder's graph that leads to a value, perhaps from another.
    pub(super) fn part(&self, config: &A::Config, from: Option<&str>, to: &str) -> Result<Arc<Subgraph>> {
        let mut ready = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (from.map(str::to_owned), to.to_owned());
        if let Some(subgraph) = ready.get(&key) {
            return Ok(Arc::clone(subgraph));
        }
        let start = Instant::now();
        let weights = Some(&self.weights);
        let mut graph = built::<A>(config, self.head, GraphKind::Decode, weights, Choices::default())?;
        graph.keep_part(from, to)?;
        let subgraph = Arc::new(self.compiled(graph, GraphKind::Decode, millis(start))?);
        ready.insert(key, Arc::clone(&subgraph));
        Ok(subgraph)
    }

    /// The graph for these inputs: [`GraphKind::TextOnly`] instead of [`GraphKind::Forward`] where only text is given.
    pub(super) fn suited(
        &self,
        config: &A::Config,
        kind: GraphKind,
        given: &Values,
    ) -> Result<Arc<Subgraph>> {
        let mut suited = self.get(config, kind)?;
        let apart = kind == GraphKind::Forward && A::graph_kinds(self.head).contains(&GraphKind::TextOnly);
        if apart && !suited.has_all(given) {
            let text = self.get(config, GraphKind::TextOnly)?;
            if text.takes_all(given) {
                suited = text;
            }
        }
        *self.ran.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&suited));
        Ok(suited)
    }

    /// What they ran in last; `main` before that.
    pub(super) fn ran(&self, main: &Arc<Subgraph>) -> Arc<Subgraph> {
        Arc::clone(self.ran.lock().unwrap_or_else(PoisonError::into_inner).as_ref().unwrap_or(main))
    }

    pub(super) fn needs_fixed_shapes(&self) -> bool {
        self.setting.target.fixed_shapes
    }

    pub(super) fn get(&self, config: &A::Config, kind: GraphKind) -> Result<Arc<Subgraph>> {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(subgraph) = ready.get(&kind) {
            return Ok(Arc::clone(subgraph));
        }
        if !A::graph_kinds(self.head).contains(&kind) {
            let class = self.head.class();
            let help = "run it whole, or open the checkpoint with another `.head(..)`";
            return Err(Error::input("kind", format!("{class} has no graph {kind:?}"), help));
        }
        let start = Instant::now();
        let graph = self.built(config, kind)?;
        let subgraph = Arc::new(self.compiled(graph, kind, millis(start))?);
        ready.insert(kind, Arc::clone(&subgraph));
        Ok(subgraph)
    }

    /// What a graph takes and reads, without making it ready; with its weights, of which those that had to be decoded are so for other
    /// graphs too as long as they are held.
    pub(super) fn signature(
        &self,
        config: &A::Config,
        kind: GraphKind,
    ) -> Result<(Signature, Vec<WeightData>)> {
        let mut graph = self.built(config, kind)?;
        let probes = self.probes(&mut graph, kind);
        self.located(&graph, kind, probes)
    }

    /// A graph, with what it is asked for beside its outputs.
    fn built(&self, config: &A::Config, kind: GraphKind) -> Result<Graph> {
        let Settings { interpolate, cache_codes, usage, .. } = &self.setting;
        let choices = Choices {
            interpolate: *interpolate,
            counts_experts: usage.is_some(),
            cache_codes: cache_codes.filter(|_| kind.is_cached()),
        };
        let mut graph = built::<A>(config, self.head, kind, Some(&self.weights), choices)?;
        if kind.is_cached() {
            let wanted = self.intermediates.lock().unwrap_or_else(PoisonError::into_inner).clone();
            graph.output_intermediates(&wanted)?;
        }
        Ok(graph)
    }

    fn probes(&self, graph: &mut Graph, kind: GraphKind) -> Vec<Probe> {
        if kind == GraphKind::Forward { graph.probe(&self.setting.probes) } else { vec![] }
    }

    /// Where a graph's weights are.
    fn located(
        &self,
        graph: &Graph,
        kind: GraphKind,
        probes: Vec<Probe>,
    ) -> Result<(Signature, Vec<WeightData>)> {
        let located = self.weights.locate(graph.weights(), &A::NAMES)?;
        let all = match graph.later.is_empty() {
            true => None,
            false => Some(self.weights.locate(&graph.all_weights(), &A::NAMES)?),
        };
        let all = all.as_ref().unwrap_or(&located);
        let unused = self.weights.unread(all, &graph.unused, &A::NAMES);
        if kind == GraphKind::Forward {
            self.weights.expect_read(&unused, all)?;
        }
        let limits = Limits { most: graph.limits.clone(), some: graph.lengths.clone() };
        Ok((Signature { inputs: graph.inputs().to_vec(), limits, unused, probes }, located))
    }

    /// A graph with its weights, made ready.
    fn compiled(&self, mut graph: Graph, kind: GraphKind, graph_ms: f64) -> Result<Subgraph> {
        let Settings { usage, calibration, .. } = &self.setting;
        let probes = self.probes(&mut graph, kind);
        let calibration = match calibration {
            Some(calibration) => {
                let stored = |name: &str| self.weights.stored_as(name, &A::NAMES);
                Some((calibration.clone(), calibration.ask(&mut graph, &stored)?))
            }
            None => None,
        };
        let (signature, located) = self.located(&graph, kind, probes)?;
        let located = self.quantizing.apply(&graph, located)?;
        let usage = usage.clone().map(|usage| (usage, ExpertUsage::outputs(&graph)));
        let Settings { target, hardware, mut options, lowering, .. } = self.setting.clone();
        if kind.is_cached() && are_worth_mapping(&located) {
            options.map_weights.get_or_insert(true);
        }
        let note = memory::fit(hardware, &located, &mut options, memory::free())?;
        let executable = Executable::new(graph, located, target, hardware, options, lowering)?;
        let signature = Arc::new(signature);
        Ok(Subgraph { signature, executable, graph_ms, note, usage, calibration })
    }
}
