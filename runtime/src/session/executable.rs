//! A graph with its weights, compiled for the shapes it is run with.
//!
//! Backends that take symbolic shapes get the graph once. The others get it anew for each combination of
//! lengths; those that were run last stay ready.

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
        self.ready(&self.lengths(inputs, (0, 0)))?.compiled.run(inputs)
    }

    /// Runs it on from what was kept, which has room for so many positions, and of so many rows.
    pub(super) fn run_with_state(
        &self,
        inputs: Values,
        cached: (usize, usize),
        state: &mut KvState,
    ) -> Result<Values> {
        self.ready(&self.lengths(&inputs, cached))?.compiled.run_with_state(inputs, state)
    }

    /// The positions that a graph has room for, where so many are cached: as many, or more where the graph would be
    /// made ready anew for each number of them.
    pub(super) fn bucket(&self, past: usize) -> usize {
        if self.target.fixed_shapes { kv_bucket::bucket(past) } else { past }
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
    fn lengths(&self, inputs: &Values, (past, rows): (usize, usize)) -> BTreeMap<String, usize> {
        let mut dims = self.target.dims.clone();
        if self.target.fixed_shapes {
            dims.insert("past".to_owned(), past);
            dims.insert("past_batch".to_owned(), rows);
            for input in &self.graph.inputs {
                let lengths = inputs.get(&input.name).map(crate::Value::shape).unwrap_or_default();
                for (dim, length) in input.shape.iter().zip(lengths) {
                    if let Dim::Symbol(symbol) = dim {
                        dims.insert(symbol.to_string(), *length);
                    }
                }
            }
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
        let lowered = lower(&self.graph, &self.weights, &target)?;
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
