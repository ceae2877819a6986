//! What commands do with a checkpoint beside loading it. A page does none of it, and its WebAssembly is smaller without.

use std::path::Path;

use serde_json::Value as Json;

use super::{DynLoader, for_task, typed};
use crate::graph::Input;
use crate::lower::{Lowered, Target};
use crate::quantization::{Recipe, Written};
use crate::session::Inspection;
use crate::{Architecture, GraphKind, Result, Task};

/// Writes a checkpoint quantized, calibrated where there are inputs.
type Quantize = fn(&DynLoader, Recipe, Option<&[Json]>, &Path) -> Result<Written>;

/// An architecture's part in them.
#[derive(Clone, Copy)]
pub(super) struct Commands {
    inspect: fn(&DynLoader, &[usize]) -> Result<Inspection>,
    quantize: Quantize,
    graph_kinds: fn(&DynLoader, Option<Task>) -> Result<&'static [GraphKind]>,
    inputs: fn(&DynLoader, Option<Task>, GraphKind) -> Result<Vec<Input>>,
    lower: fn(&DynLoader, Option<Task>, GraphKind, Target) -> Result<Lowered>,
}

impl Commands {
    pub(super) const fn of<A: Architecture>() -> Self {
        Self {
            inspect: |loader, contexts| typed::<A>(loader)?.inspect(contexts),
            quantize: |loader, recipe, inputs, out| match inputs {
                Some(inputs) => typed::<A>(loader)?.quantize_on(recipe, inputs, out),
                None => typed::<A>(loader)?.quantize(recipe, out),
            },
            graph_kinds: |loader, task| for_task(typed::<A>(loader)?, task)?.graph_kinds(),
            inputs: |loader, task, kind| for_task(typed::<A>(loader)?, task)?.graph_kind(kind).inputs(),
            lower: |loader, task, kind, target| {
                for_task(typed::<A>(loader)?, task)?.graph_kind(kind).lower_to(target)
            },
        }
    }
}

impl DynLoader {
    /// What the checkpoint is and needs, by its configuration and the headers of its weights: no weight is read. Memory is for
    /// each of these lengths of context.
    ///
    /// # Errors
    /// When the configuration is not the architecture's, or a file cannot be read.
    pub fn inspect(&self, contexts: &[usize]) -> Result<Inspection> {
        (self.architecture.commands.inspect)(self, contexts)
    }

    /// [`Loader::quantize`].
    ///
    /// # Errors
    /// As that.
    pub fn quantize(&self, recipe: Recipe, out: &Path) -> Result<Written> {
        (self.architecture.commands.quantize)(self, recipe, None, out)
    }

    /// [`Loader::quantize_on`].
    ///
    /// # Errors
    /// As that.
    pub fn quantize_on(&self, recipe: Recipe, inputs: &[Json], out: &Path) -> Result<Written> {
        (self.architecture.commands.quantize)(self, recipe, Some(inputs), out)
    }

    /// The graphs that the class can be run by; of the class that serves a task, where one is given.
    ///
    /// # Errors
    /// When the configuration is not the architecture's.
    pub fn graph_kinds(&self, task: Option<Task>) -> Result<&'static [GraphKind]> {
        (self.architecture.commands.graph_kinds)(self, task)
    }

    /// The inputs of one of the graphs of [`DynLoader::graph_kinds`], with what stands for those that are not given.
    ///
    /// # Errors
    /// When the configuration is not the architecture's.
    pub fn inputs(&self, task: Option<Task>, kind: GraphKind) -> Result<Vec<Input>> {
        (self.architecture.commands.inputs)(self, task, kind)
    }

    /// One of the graphs of [`DynLoader::graph_kinds`], lowered to a target without running it.
    ///
    /// # Errors
    /// As [`Loader::lower`].
    pub fn lower(&self, task: Option<Task>, kind: GraphKind, target: Target) -> Result<Lowered> {
        (self.architecture.commands.lower)(self, task, kind, target)
    }
}
