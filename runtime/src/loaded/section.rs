//! The parts that a model is run by: each a graph with its inputs, made ready when it is first asked for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::inputs::{self, Limits};
use super::program::Program;
use super::{Lowering, millis, room};
use crate::engine::{Kept, Options};
use crate::graph::dims::BATCH;
use crate::graph::probe::Probe;
use crate::graph::{Convention, Dim, Graph, Input, Stored};
use crate::lower::Target;
use crate::model::{Architecture, Head, Part};
use crate::weights::{Bytes, Located, Weights};
use crate::{Error, Hardware, Result, Values};

/// What a decoder remembers of the tokens before; its tensors stay in the engine.
#[derive(Debug, Default)]
pub struct Cache {
    kept: Kept,
    past: usize,
    rows: usize,
    /// The lengths of what an encoder left.
    lengths: BTreeMap<String, usize>,
}

impl Cache {
    /// Nothing remembered.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many positions are remembered, padding included.
    pub fn len(&self) -> usize {
        self.past
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.past == 0
    }
}

/// What all parts of a model are made ready with.
#[derive(Clone)]
pub(super) struct Setting {
    pub target: Target,
    pub hardware: Hardware,
    pub options: Options,
    pub lowering: Option<Lowering>,
    /// Whether images may have other sizes than the configuration's.
    pub interpolate: bool,
    /// Parts of the whole whose values are wanted besides its outputs.
    pub probes: Vec<String>,
}

/// One part, ready to run.
pub(super) struct Section {
    pub inputs: Vec<Input>,
    pub limits: Limits,
    pub convention: Convention,
    pub program: Program,
    pub graph_ms: f64,
    pub unused: Vec<String>,
    /// The parts that were asked for, each with the outputs that hold its values.
    pub probes: Vec<Probe>,
}

impl Section {
    /// Whether nothing is missing of what it needs.
    pub(super) fn has_all(&self, given: &Values) -> bool {
        let mut needed = self.inputs.iter().filter(|input| input.fill.is_none() && input.computed.is_none());
        needed.all(|input| given.contains_key(&input.name))
    }

    /// Whether it takes everything that is given.
    pub(super) fn takes_all(&self, given: &Values) -> bool {
        given.keys().all(|name| self.inputs.iter().any(|input| input.name == *name))
    }

    pub(super) fn run(&self, inputs: Values) -> Result<Values> {
        let inputs = inputs::complete(&self.inputs, &self.limits, inputs, &BTreeMap::new(), &|_| false)?;
        self.program.run(&inputs)
    }

    pub(super) fn run_cached(&self, part: Part, inputs: Values, cache: &mut Cache) -> Result<Values> {
        let kept = |name: &str| cache.kept.holds(name);
        let mut known = cache.lengths.clone();
        known.extend([("past".to_owned(), cache.past), ("rows".to_owned(), cache.rows)]);
        let inputs = inputs::complete(&self.inputs, &self.limits, inputs, &known, &kept)?;
        let space = self.program.room(cache.past);
        let inputs = room::widened(&self.inputs, inputs, space - cache.past);
        let outputs = self.program.run_kept(&inputs, (space, cache.rows), &mut cache.kept)?;
        if part == Part::Encoder {
            for input in &self.inputs {
                let lengths = inputs.get(&input.name).map(crate::Value::shape).unwrap_or_default();
                for (dim, length) in input.shape.iter().zip(lengths) {
                    // Beams are rows of one item: a decoder may have more of them.
                    if let Dim::Symbol(symbol) = dim
                        && *dim != BATCH
                    {
                        cache.lengths.insert(symbol.to_string(), *length);
                    }
                }
            }
        }
        if part.is_cached() {
            let ids = ["input_ids", "decoder_input_ids"].into_iter().find_map(|name| inputs.get(name));
            cache.past += ids.and_then(|ids| ids.shape().get(1)).copied().unwrap_or_default();
            cache.rows = ids.and_then(|ids| ids.shape().first()).copied().unwrap_or_default();
            self.make_room(cache)?;
        }
        Ok(outputs)
    }

    /// Brings what was kept, which is longer by what was new, to the length that the next run takes.
    fn make_room(&self, cache: &mut Cache) -> Result<()> {
        let Some(hardware) = self.program.fixed_on() else { return Ok(()) };
        let space = self.program.room(cache.past);
        for input in &self.inputs {
            if let Some(axis) = room::axis(input) {
                cache.kept.end(hardware, &input.name, axis, space)?;
            }
        }
        Ok(())
    }
}

/// The graph of a part of a head, which knows which parameters there are.
pub(super) fn built<A: Architecture>(
    config: &A::Config,
    head: A::Head,
    part: Part,
    weights: &Weights,
    interpolate: bool,
) -> Result<Graph> {
    let weights = weights.clone();
    let stored = move |name: &str| weights.stored_as(name, &A::NAMES).is_some();
    let mut graph = Graph::new();
    graph.stored = Some(Stored(Arc::new(stored)));
    graph.interpolate = interpolate;
    A::build(&mut graph, config, head, part)?;
    if interpolate && !graph.may_interpolate {
        let problem = format!("{} has no positions of images that could be interpolated", head.class());
        let help = "load it without, and give images of the configuration's size";
        return Err(Error::input("interpolate_pos_encoding", problem, help));
    }
    Ok(graph)
}

/// From so many bytes on, a decoder opens with its weights in their mapped pages.
const LARGE: u64 = 1 << 30;

/// Whether opening at once and taking no memory twice outweighs a slower prompt: of large weights.
fn are_worth_mapping(weights: &[Located]) -> bool {
    let mapped = weights.iter().map(|weight| match weight.bytes {
        Bytes::File { length, .. } => length,
        Bytes::Memory(_) => 0,
    });
    mapped.sum::<u64>() >= LARGE
}

/// All parts of a model.
pub(super) struct Sections<A: Architecture> {
    head: A::Head,
    pub weights: Weights,
    setting: Setting,
    ready: Mutex<BTreeMap<Part, Arc<Section>>>,
    /// What ran last of the whole and a text alone.
    ran: Mutex<Option<Arc<Section>>>,
}

impl<A: Architecture> Sections<A> {
    pub(super) fn new(head: A::Head, weights: Weights, setting: Setting) -> Self {
        Self { head, weights, setting, ready: Mutex::default(), ran: Mutex::default() }
    }

    /// What runs these inputs: in place of the whole, the part for a text alone where that is all that is given.
    pub(super) fn suited(&self, config: &A::Config, part: Part, given: &Values) -> Result<Arc<Section>> {
        let mut suited = self.get(config, part)?;
        let apart = part == Part::Whole && A::parts(self.head).contains(&Part::Text);
        if apart && !suited.has_all(given) {
            let text = self.get(config, Part::Text)?;
            if text.takes_all(given) {
                suited = text;
            }
        }
        *self.ran.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&suited));
        Ok(suited)
    }

    /// What they ran in last; `main` before that.
    pub(super) fn ran(&self, main: &Arc<Section>) -> Arc<Section> {
        Arc::clone(self.ran.lock().unwrap_or_else(PoisonError::into_inner).as_ref().unwrap_or(main))
    }

    pub(super) fn needs_fixed_shapes(&self) -> bool {
        self.setting.target.fixed_shapes
    }

    pub(super) fn get(&self, config: &A::Config, part: Part) -> Result<Arc<Section>> {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(section) = ready.get(&part) {
            return Ok(Arc::clone(section));
        }
        if !A::parts(self.head).contains(&part) {
            let class = self.head.class();
            let help = "run it whole, or open the checkpoint with another `.head(..)`";
            return Err(Error::input("part", format!("{class} has no part {part:?}"), help));
        }
        let start = Instant::now();
        let mut graph = built::<A>(config, self.head, part, &self.weights, self.setting.interpolate)?;
        let graph_ms = millis(start);
        let probes = if part == Part::Whole { graph.probe(&self.setting.probes) } else { vec![] };
        let located = self.weights.locate(graph.weights(), &A::NAMES)?;
        let mut unused = self.weights.unused(&located);
        unused.retain(|name| !graph.is_idle(name));
        let inputs = graph.inputs().to_vec();
        let limits = Limits { most: graph.limits.clone(), some: graph.lengths.clone() };
        let convention = graph.convention.clone();
        let Setting { target, hardware, mut options, lowering, .. } = self.setting.clone();
        options.map_weights.get_or_insert_with(|| part.is_cached() && are_worth_mapping(&located));
        let program = Program::new(graph, located, target, hardware, options, lowering)?;
        let section = Arc::new(Section { inputs, limits, convention, program, graph_ms, unused, probes });
        ready.insert(part, Arc::clone(&section));
        Ok(section)
    }
}
