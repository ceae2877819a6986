//! What is known of a checkpoint without running it: its graph, lowered or not, its inputs and parameters.

use super::inspection::{self, Inspected, Inspection};
use super::{Choices, Loader, Loads, Quantizing, subgraph};
use crate::engine;
use crate::graph::{Input, Weight};
use crate::lower::{Lowered, Target, lower};
use crate::{Architecture, GraphKind, Hardware, Result};

impl<A: Architecture, T: Loads<A>> Loader<A, T> {
    /// Reads the configuration and builds the graph by it.
    pub(crate) fn build(&self) -> Result<()> {
        let (_, config, head, weights) = self.read()?;
        subgraph::built::<A>(&config, head, self.kind, Some(&weights), self.choices()).map(|_| ())
    }

    /// The parameters that a checkpoint of this configuration has, none of which need be there.
    pub(crate) fn parameters(&self) -> Result<Vec<Weight>> {
        let (_, config, head) = self.configuration()?;
        let graph = subgraph::built::<A>(&config, head, self.kind, None, self.choices())?;
        Ok(graph.all_weights())
    }

    /// The graph in the form that a backend would run, without running it.
    ///
    /// # Errors
    /// As [`Loader::load`], but for the backend.
    pub fn lower(&self, hardware: Hardware) -> Result<Lowered> {
        let precision = self.precision.unwrap_or_else(|| hardware.default_precision());
        self.lower_to(engine::target(hardware, precision))
    }

    /// The graph in the form of a target, whatever there is here to run it: `Target::in_browser(Hardware::Webgpu, …)` for a page.
    ///
    /// # Errors
    /// As [`Loader::lower`].
    pub fn lower_to(&self, mut target: Target) -> Result<Lowered> {
        let (_, config, head, weights) = self.read()?;
        let graph = subgraph::built::<A>(&config, head, self.kind, Some(&weights), self.choices())?;
        let located = weights.locate(graph.weights(), &A::NAMES)?;
        if self.kind == GraphKind::Forward {
            let all = weights.locate(&graph.all_weights(), &A::NAMES)?;
            weights.expect_read(&weights.unread(&all, &graph.unused, &A::NAMES), &all)?;
        }
        let located = Quantizing::new(self.quantized(), &target.kernels, None).apply(&graph, located)?;
        target.dims.extend(self.dims.clone());
        lower(&graph, &located, &target)
    }

    /// The graphs that the class can be run by.
    ///
    /// # Errors
    /// When the configuration is not the architecture's.
    pub(crate) fn graph_kinds(&self) -> Result<&'static [GraphKind]> {
        self.configuration().map(|(_, _, head)| A::graph_kinds(head))
    }

    /// The inputs of the graph, with what stands for those that are not given.
    ///
    /// # Errors
    /// When the configuration is not the architecture's.
    pub(crate) fn inputs(&self) -> Result<Vec<Input>> {
        let (_, config, head, weights) = self.read()?;
        let graph = subgraph::built::<A>(&config, head, self.kind, Some(&weights), self.choices())?;
        Ok(graph.inputs().to_vec())
    }

    /// What the checkpoint is and needs, without reading a weight.
    ///
    /// # Errors
    /// When the configuration is not the architecture's, or a file cannot be read.
    pub(crate) fn inspect(&self, contexts: &[usize]) -> Result<Inspection> {
        let (raw, config, head, weights) = self.read()?;
        let build = |kind| subgraph::built::<A>(&config, head, kind, Some(&weights), Choices::default());
        inspection::inspect::<A>(&Inspected { raw: &raw, head, weights: &weights, build: &build }, contexts)
    }
}
