//! A loaded model, whatever its architecture.

use serde_json::Value as Json;

use crate::engine::Placement;
use crate::graph::Input;
use crate::hub::Checkpoint;
use crate::{Architecture, Cache, GraphKind, Hardware, Processing, Result, Timings, Values};

/// What pipelines need of a model, as [`Session`](crate::Session) has it.
///
/// Pipelines are written over this and not over [`Architecture`]: with [`DynModel`] their code is compiled once, in this
/// crate, and not again for each generated one.
pub trait AnyModel: Send + Sync + 'static {
    /// [`Session::run`](crate::Session::run).
    ///
    /// # Errors
    /// As that.
    fn run(&self, inputs: Values) -> Result<Values>;
    /// [`Session::run_graph`](crate::Session::run_graph).
    ///
    /// # Errors
    /// As that.
    fn run_graph(&self, kind: GraphKind, inputs: Values) -> Result<Values>;
    /// [`Session::run_cached`](crate::Session::run_cached).
    ///
    /// # Errors
    /// As that.
    fn run_cached(&self, kind: GraphKind, inputs: Values, cache: &mut Cache) -> Result<Values>;
    /// [`Session::output_intermediates`](crate::Session::output_intermediates).
    ///
    /// # Errors
    /// As that.
    fn output_intermediates(&self, names: &[&str]) -> Result<()>;
    /// [`Session::run_part`](crate::Session::run_part).
    ///
    /// # Errors
    /// As that.
    fn run_part(&self, from: Option<&str>, to: &str, inputs: Values) -> Result<Values>;
    /// The graphs that the loaded head can be run by.
    fn graph_kinds(&self) -> &'static [GraphKind];
    /// What the model takes.
    fn inputs(&self) -> &[Input];
    /// The inputs of a graph.
    ///
    /// # Errors
    /// When the head has no such graph.
    fn inputs_of(&self, kind: GraphKind) -> Result<Vec<Input>>;
    /// The longest an axis may be.
    fn limit(&self, symbol: &str) -> Option<usize>;
    /// What pipelines know of the model that neither its graph nor its checkpoint says.
    fn processing(&self) -> Processing;
    /// `config.json` as it is.
    fn raw_config(&self) -> &Json;
    /// `config.json` with what holds where it does not say.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    fn config_json(&self) -> Result<Json>;
    /// The checkpoint it was loaded from.
    fn checkpoint(&self) -> &Checkpoint;
    /// The name of the loaded class.
    fn class(&self) -> &'static str;
    /// The nodes that each device runs.
    fn placement(&self) -> Placement;
    /// The backend it runs on.
    fn hardware(&self) -> Hardware;
    /// Why it runs there.
    fn explanation(&self) -> &str;
    /// How long loading took.
    fn timings(&self) -> Timings;
    /// The checkpoint's tensors that the head does not use.
    fn unused_weights(&self) -> &[String];
    /// The bytes of all the checkpoint's tensors.
    fn weight_bytes(&self) -> u64;
    /// The probed modules, each with its outputs' names, in the order they are computed.
    #[doc(hidden)]
    fn probed(&self) -> &[(String, Vec<String>)];
    /// Whether the backend takes every length as a number only.
    fn needs_fixed_shapes(&self) -> bool;
}

/// A model behind a pointer.
pub type DynModel = Box<dyn AnyModel>;

/// All of [`AnyModel`] but its runs.
macro_rules! described {
    ($self:ident => $inner:expr) => {
        fn output_intermediates(&$self, names: &[&str]) -> Result<()> {
            $inner.output_intermediates(names)
        }

        fn run_part(&$self, from: Option<&str>, to: &str, inputs: Values) -> Result<Values> {
            $inner.run_part(from, to, inputs)
        }

        fn graph_kinds(&$self) -> &'static [GraphKind] {
            $inner.graph_kinds()
        }

        fn inputs(&$self) -> &[Input] {
            $inner.inputs()
        }

        fn inputs_of(&$self, kind: GraphKind) -> Result<Vec<Input>> {
            $inner.inputs_of(kind)
        }

        fn limit(&$self, symbol: &str) -> Option<usize> {
            $inner.limit(symbol)
        }

        fn processing(&$self) -> Processing {
            $inner.processing()
        }

        fn raw_config(&$self) -> &Json {
            $inner.raw_config()
        }

        fn config_json(&$self) -> Result<Json> {
            $inner.config_json()
        }

        fn checkpoint(&$self) -> &Checkpoint {
            $inner.checkpoint()
        }

        fn class(&$self) -> &'static str {
            $inner.class()
        }

        fn placement(&$self) -> Placement {
            $inner.placement()
        }

        fn hardware(&$self) -> $crate::Hardware {
            $inner.hardware()
        }

        fn explanation(&$self) -> &str {
            $inner.explanation()
        }

        fn timings(&$self) -> Timings {
            $inner.timings()
        }

        fn unused_weights(&$self) -> &[String] {
            $inner.unused_weights()
        }

        fn weight_bytes(&$self) -> u64 {
            $inner.weight_bytes()
        }

        fn probed(&$self) -> &[(String, Vec<String>)] {
            $inner.probed()
        }

        fn needs_fixed_shapes(&$self) -> bool {
            $inner.needs_fixed_shapes()
        }
    };
}
pub(crate) use described;

macro_rules! through {
    ($self:ident => $inner:expr) => {
        fn run(&$self, inputs: Values) -> Result<Values> {
            $inner.run(inputs)
        }

        fn run_graph(&$self, kind: GraphKind, inputs: Values) -> Result<Values> {
            $inner.run_graph(kind, inputs)
        }

        fn run_cached(&$self, kind: GraphKind, inputs: Values, cache: &mut Cache) -> Result<Values> {
            $inner.run_cached(kind, inputs, cache)
        }

        described!($self => $inner);
    };
}

impl<A: Architecture> AnyModel for A {
    through!(self => self.session());
}

impl AnyModel for DynModel {
    through!(self => self.as_ref());
}
