//! A graph with its weights, compiled for the shapes it is run with.
//!
//! Backends that take symbolic shapes get the graph once. The others get it anew for each combination of
//! lengths; those that were run last stay ready.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Lowering, kv_bucket, millis};
use crate::clock::Instant;
use crate::engine::{self, Compiled, KvState, Options, Placement};
use crate::graph::{Dim, Graph};
use crate::lower::{Target, lower};
use crate::weights::WeightData;
use crate::{Hardware, Result, Values};

/// How many combinations of lengths stay ready on a backend that needs fixed shapes.
const KEPT: usize = 4;

/// How long the steps of loading took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timings {
    /// Building the graph, milliseconds.
    pub graph_ms: f64,
    /// Lowering it to ONNX, milliseconds.
    pub lower_ms: f64,
    /// Making it ready in the engine, milliseconds.
    pub compile_ms: f64,
}

pub(super) struct Executable {
    graph: Graph,
    weights: Vec<WeightData>,
    target: Target,
    hardware: Hardware,
    options: Options,
    lowering: Option<Lowering>,
    symbols: BTreeSet<String>,
    ready: Mutex<Readied>,
}

/// Shapes of cached tensors, by the inputs that take them.
pub(super) type CachedShapes = BTreeMap<String, Vec<usize>>;

/// What a run goes on from.
#[derive(Default)]
pub(super) struct Cached<'a> {
    /// The positions that there is room for.
    pub past: usize,
    /// The rows that each of them has.
    pub rows: usize,
    /// Shapes of what stays as long as it was cached, such as keys and values of the encoder.
    pub shapes: Option<&'a CachedShapes>,
}

/// What is ready, what was run last at the end, and how often a graph was made ready.
#[derive(Default)]
struct Readied {
    latest: Vec<Arc<Ready>>,
    made: usize,
}

/// A graph that an engine holds, for these lengths.
pub(super) struct Ready {
    dims: BTreeMap<String, usize>,
    compiled: Box<dyn Compiled>,
    pub operators: BTreeMap<String, usize>,
    pub timings: Timings,
}

impl Executable {
    /// Makes the graph ready at once where the backend takes symbolic shapes.
    pub(super) fn new(
        graph: Graph,
        weights: Vec<WeightData>,
        target: Target,
        hardware: Hardware,
        options: Options,
        lowering: Option<Lowering>,
    ) -> Result<Self> {
        let target = target.suited(&graph);
        let (symbols, ready) = (symbols(&graph), Mutex::default());
        let executable = Self { graph, weights, target, hardware, options, lowering, symbols, ready };
        let known = |symbol| executable.target.dims.contains_key(symbol);
        if !executable.target.fixed_shapes || executable.symbols.iter().all(known) {
            executable.ready(&executable.target.dims)?;
        }
        Ok(executable)
    }

    pub(super) fn run(&self, inputs: &Values) -> Result<Values> {
        self.ready(&self.lengths(inputs, &Cached::default()))?.compiled.run(inputs)
    }

    /// Runs it on from what was kept.
    pub(super) fn run_with_state(
        &self,
        inputs: Values,
        cached: &Cached<'_>,
        state: &mut KvState,
    ) -> Result<Values> {
        self.ready(&self.lengths(&inputs, cached))?.compiled.run_with_state(inputs, state)
    }

    /// The shapes of what a run of these inputs leaves in the cache, by the inputs that take it.
    pub(super) fn cached_shapes(&self, inputs: &Values) -> CachedShapes {
        let lengths = input_lengths(&self.graph, &|name| inputs.get(name).map(crate::Value::shape));
        let of = |symbol: &str| lengths.get(symbol).copied();
        let outputs = self.graph.outputs().filter_map(|(name, x)| {
            let shape: Option<_> = x.shape().iter().map(|dim| dim.substitute(&of).fixed()).collect();
            Some((engine::next_input(name)?, shape?))
        });
        outputs.collect()
    }

    /// The cached positions that a graph has room for in a run of new ones, where so many are cached: as many, or more where the graph
    /// would be made ready anew for each number of them.
    pub(super) fn capacity(&self, past: usize, new: usize) -> usize {
        if self.target.fixed_shapes { kv_bucket::capacity(past, new) } else { past }
    }

    /// The backend.
    pub(super) fn hardware(&self) -> Hardware {
        self.hardware
    }

    /// The backend, where it gets the graph anew for each combination of lengths.
    pub(super) fn fixed_on(&self) -> Option<Hardware> {
        self.target.fixed_shapes.then_some(self.hardware)
    }

    /// How often the graph was made ready.
    #[cfg(test)]
    pub(super) fn made(&self) -> usize {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).made
    }

    /// What the symbols are in a run, where the backend needs to know.
    fn lengths(&self, inputs: &Values, cached: &Cached<'_>) -> BTreeMap<String, usize> {
        let mut dims = self.target.dims.clone();
        if self.target.fixed_shapes {
            dims.extend(input_lengths(&self.graph, &|name| cached.shapes?.get(name).map(Vec::as_slice)));
            dims.insert("past".to_owned(), cached.past);
            dims.insert("past_batch".to_owned(), cached.rows);
            dims.extend(input_lengths(&self.graph, &|name| inputs.get(name).map(crate::Value::shape)));
            dims.retain(|symbol, _| self.symbols.contains(symbol) || self.target.dims.contains_key(symbol));
        }
        dims
    }

    /// The graph that was run or made ready last.
    pub(super) fn latest(&self) -> Option<Arc<Ready>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).latest.last().cloned()
    }

    fn ready(&self, dims: &BTreeMap<String, usize>) -> Result<Arc<Ready>> {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = ready.latest.iter().position(|ready| ready.dims == *dims) {
            let found = ready.latest.remove(place);
            ready.latest.push(Arc::clone(&found));
            return Ok(found);
        }
        let target = Target { dims: dims.clone(), ..self.target.clone() };
        let start = Instant::now();
        let mut graph = Cow::Borrowed(&self.graph);
        if target.fixed_shapes {
            kv_bucket::keep_capacity(graph.to_mut(), dims)?;
        }
        let lowered = lower(&graph, &self.weights, &target)?;
        let lower_ms = millis(start);
        if let Some(lowering) = &self.lowering {
            lowering.check(&lowered);
        }
        let start = Instant::now();
        let compiled = engine::compile(self.hardware, &lowered, &self.options)?;
        let timings = Timings { graph_ms: 0.0, lower_ms, compile_ms: millis(start) };
        let made = Arc::new(Ready { dims: dims.clone(), compiled, operators: lowered.operators, timings });
        if ready.latest.len() == KEPT {
            ready.latest.remove(0);
        }
        ready.latest.push(Arc::clone(&made));
        ready.made += 1;
        Ok(made)
    }
}

/// The symbols that the shapes of a graph's inputs tell, where these are known.
fn input_lengths<'a>(
    graph: &Graph,
    shape_of: &dyn Fn(&str) -> Option<&'a [usize]>,
) -> BTreeMap<String, usize> {
    let mut lengths = BTreeMap::new();
    for input in &graph.inputs {
        for (dim, length) in input.shape.iter().zip(shape_of(&input.name).unwrap_or_default()) {
            if let Dim::Symbol(symbol) = dim {
                lengths.insert(symbol.to_string(), *length);
            }
        }
    }
    lengths
}

/// The symbols that the shapes of a graph's inputs tell.
fn symbols(graph: &Graph) -> BTreeSet<String> {
    let dims = graph.inputs.iter().flat_map(|input| &input.shape);
    let symbols = dims.filter_map(|dim| match dim {
        Dim::Symbol(symbol) => Some(symbol.to_string()),
        _ => None,
    });
    symbols.collect()
}

impl Ready {
    pub(super) fn placement(&self) -> Placement {
        self.compiled.placement().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Input;
    use crate::graph::dims::{BATCH, ENCODER_SEQUENCE, SEQUENCE};
    use crate::nn::{Cache, CrossAttention};
    use crate::weights::Weights;
    use crate::{GraphKind, Precision, Value, dims};

    /// Cross-attention of text to the three positions of an image, without a mask.
    fn executable(kind: GraphKind) -> Result<Executable> {
        let mut g = Graph::new();
        let cache = Cache::new(&mut g, kind);
        let states = match kind.is_cached() {
            true => None,
            false => Some(g.input(Input::f32("pixel_values", dims![BATCH, 3, 4]))),
        };
        let cross = CrossAttention { layers: 1, heads: 2, size: 2, keys: ENCODER_SEQUENCE };
        let keys_and_values = cross.keys_and_values(&mut g, &cache, states.as_ref(), |g, _, states| {
            let w = g.scope("layer");
            Ok((g.linear(&w.scope("k"), states, 4)?, g.linear(&w.scope("v"), states, 4)?))
        })?;
        if kind.is_cached() {
            g.input(Input::i64("input_ids", dims![BATCH, SEQUENCE]));
            g.output("values", &keys_and_values[0].1)?;
        }
        let parameters = g.weights().iter().map(|weight| (weight.name.clone(), weight.shape.clone()));
        let weights = Weights::Rule(parameters.collect()).locate(g.weights(), &Default::default())?;
        let target = Target { fixed_shapes: true, ..Target::of(Hardware::Openvino, Precision::F32) };
        Executable::new(g, weights, target, Hardware::Cpu, Options::default(), None)
    }

    #[test]
    fn what_the_encoder_left_tells_lengths_that_no_input_does() -> Result<()> {
        let pixels = Value::F32(ndarray::ArrayD::zeros(vec![2, 3, 4]));
        let pixels = Values::from([("pixel_values".to_owned(), pixels)]);
        let shapes = executable(GraphKind::Encoder)?.cached_shapes(&pixels);
        let names: Vec<_> = shapes.keys().map(String::as_str).collect();
        assert_eq!(names, ["past_key_values.0.encoder.key", "past_key_values.0.encoder.value"]);
        assert!(shapes.values().all(|shape| *shape == [2, 2, 3, 2]), "{shapes:?}");

        let ids = Values::from([("input_ids".to_owned(), Value::I64(ndarray::ArrayD::zeros(vec![4, 1])))]);
        let cached = Cached { past: 32, rows: 2, shapes: Some(&shapes) };
        // Beams are more rows than the encoder had, of which the step reads its own number.
        for (kind, batch) in [(GraphKind::Decode, ("batch", 4)), (GraphKind::BeamDecode, ("past_batch", 2))] {
            let lengths = executable(kind)?.lengths(&ids, &cached);
            assert_eq!(lengths.get("encoder_sequence"), Some(&3), "{kind:?}");
            assert_eq!(lengths.get(batch.0), Some(&batch.1), "{kind:?}");
        }
        Ok(())
    }
}
