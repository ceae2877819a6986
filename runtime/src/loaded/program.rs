//! A graph with its weights, made ready for the shapes it is run with.
//!
//! Backends that take symbolic shapes get the graph once. The others get it anew for each combination of
//! lengths; the last few stay ready.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::{Lowering, Timings, millis};
use crate::engine::{self, Compiled, Kept, Options, Placement};
use crate::graph::{Dim, Graph};
use crate::lower::{Rules, lower};
use crate::weights::Located;
use crate::{Hardware, Result, Values};

/// How many combinations of lengths stay ready on a backend that needs fixed shapes.
const KEPT: usize = 4;

pub(super) struct Program {
    graph: Graph,
    weights: Vec<Located>,
    rules: Rules,
    hardware: Hardware,
    options: Options,
    lowering: Option<Lowering>,
    ready: Mutex<Vec<Arc<Ready>>>,
}

/// A graph that an engine holds, for these lengths.
pub(super) struct Ready {
    dims: BTreeMap<String, usize>,
    compiled: Box<dyn Compiled>,
    pub operators: BTreeMap<String, usize>,
    pub timings: Timings,
}

impl Program {
    /// Makes the graph ready at once where the backend takes symbolic shapes.
    pub(super) fn new(
        graph: Graph,
        weights: Vec<Located>,
        rules: Rules,
        hardware: Hardware,
        options: Options,
        lowering: Option<Lowering>,
    ) -> Result<Self> {
        let program = Self { graph, weights, rules, hardware, options, lowering, ready: Mutex::default() };
        let symbols = program.symbols();
        if !program.rules.fixed_shapes || symbols.iter().all(|symbol| program.rules.dims.contains_key(symbol))
        {
            program.ready(&program.rules.dims)?;
        }
        Ok(program)
    }

    pub(super) fn run(&self, inputs: &Values) -> Result<Values> {
        self.ready(&self.lengths(inputs, (0, 0)))?.compiled.run(inputs)
    }

    /// Runs it on from what was kept of so many positions and rows.
    pub(super) fn run_kept(
        &self,
        inputs: &Values,
        kept_of: (usize, usize),
        kept: &mut Kept,
    ) -> Result<Values> {
        self.ready(&self.lengths(inputs, kept_of))?.compiled.run_kept(inputs, kept)
    }

    /// What the symbols are in a run, where the backend needs to know.
    fn lengths(&self, inputs: &Values, (past, rows): (usize, usize)) -> BTreeMap<String, usize> {
        let mut dims = self.rules.dims.clone();
        if self.rules.fixed_shapes {
            dims.insert("past".to_owned(), past);
            dims.insert("rows".to_owned(), rows);
            for input in &self.graph.inputs {
                let lengths = inputs.get(&input.name).map(crate::Value::shape).unwrap_or_default();
                for (dim, length) in input.shape.iter().zip(lengths) {
                    if let Dim::Symbol(symbol) = dim {
                        dims.insert(symbol.to_string(), *length);
                    }
                }
            }
        }
        dims
    }

    /// The graph that was made ready last.
    pub(super) fn latest(&self) -> Option<Arc<Ready>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).last().cloned()
    }

    fn ready(&self, dims: &BTreeMap<String, usize>) -> Result<Arc<Ready>> {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = ready.iter().find(|ready| ready.dims == *dims) {
            return Ok(Arc::clone(found));
        }
        let rules = Rules { dims: dims.clone(), ..self.rules.clone() };
        let start = Instant::now();
        let lowered = lower(&self.graph, &self.weights, &rules)?;
        let lower_ms = millis(start);
        if let Some(lowering) = &self.lowering {
            lowering.check(&lowered);
        }
        let start = Instant::now();
        let compiled = engine::compile(self.hardware, &lowered, &self.options)?;
        let timings = Timings { graph_ms: 0.0, lower_ms, compile_ms: millis(start) };
        let made = Arc::new(Ready { dims: dims.clone(), compiled, operators: lowered.operators, timings });
        if ready.len() == KEPT {
            ready.remove(0);
        }
        ready.push(Arc::clone(&made));
        Ok(made)
    }

    fn symbols(&self) -> Vec<String> {
        let dims = self.graph.inputs.iter().flat_map(|input| &input.shape);
        let symbols = dims.filter_map(|dim| match dim {
            Dim::Symbol(symbol) => Some(symbol.to_string()),
            _ => None,
        });
        symbols.collect()
    }
}

impl Ready {
    pub(super) fn placement(&self) -> Placement {
        self.compiled.placement().clone()
    }
}
