//! From the graph to the ONNX model that a backend runs best: a list of passes over the typed graph, which is printed last.
//!
//! [`Target::of`] says which passes each backend's graphs go through.

mod operators;
mod passes;
mod print;
mod published;
mod quantized;
mod target;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use passes::Pass;
pub(crate) use passes::rare;
pub use published::{source, unsupported_ops};
pub use quantized::Kernels;
pub(crate) use quantized::Readers;
pub use target::{Experts, Target};

use crate::graph::Graph;
use crate::weights::{Buffer, Bytes, WeightData};
use crate::{Result, onnx};
use passes::rare::ExpertsPass;
use print::Printer;

/// Weights in memory, by the location that a model has of them.
pub type Memory = BTreeMap<String, Arc<Buffer>>;

/// What the locations of weights in memory begin with, as no file's do.
pub(crate) const IN_MEMORY: &str = "*/memory/";

/// What the names of outputs begin with that are there for the engine's sake alone.
pub(crate) const UNASKED: &str = "*/unasked/";

/// A graph in the form that one backend runs.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The ONNX model, without the weights that stay in their files.
    pub model: onnx::Model,
    /// The folder that the locations of external weights start from.
    pub folder: Option<PathBuf>,
    /// Weights that the model refers to in memory, by the location that it has of them.
    pub memory: Memory,
    /// How often each operator occurs, by `domain.name`; ONNX's own without a domain.
    pub operators: BTreeMap<String, usize>,
}

impl Lowered {
    /// The model's bytes.
    pub fn bytes(&self) -> Vec<u8> {
        prost::Message::encode_to_vec(&self.model)
    }
}

/// Lowers a graph whose weights were found.
///
/// # Errors
/// When an operation has no form on the target.
pub fn lower(graph: &Graph, weights: &[WeightData], target: &Target) -> Result<Lowered> {
    let (mut graph, mut weights) = (graph.clone(), Cow::Borrowed(weights));
    match graph.rare.experts.and_then(|experts| experts.downcast_ref::<ExpertsPass>()) {
        Some(formed) => formed(&mut graph, &mut weights, target)?,
        None => passes::lengths::fix(&mut graph, target)?,
    }
    let (mut graph, weights) = quantized::formed(graph, &weights, target)?;
    for pass in &target.passes {
        pass.run(&mut graph, target)?;
    }
    let folder = common_folder(&weights);
    let (model, memory) = Printer::new(&graph, &weights, target, folder.as_deref()).print()?;
    let mut operators = BTreeMap::new();
    for node in model.graph.iter().flat_map(|graph| &graph.node) {
        let name = match node.domain.as_str() {
            "" => node.op_type.clone(),
            domain => format!("{domain}.{}", node.op_type),
        };
        *operators.entry(name).or_default() += 1;
    }
    Ok(Lowered { model, folder, memory, operators })
}

/// The deepest folder that holds every weights file.
fn common_folder(weights: &[WeightData]) -> Option<PathBuf> {
    let folders = weights.iter().filter_map(|weight| match &weight.bytes {
        Bytes::File { path, .. } => path.parent(),
        Bytes::Memory(_) | Bytes::Quantized(_) => None,
    });
    folders.fold(None, |common: Option<PathBuf>, folder| match common {
        None => Some(folder.to_path_buf()),
        Some(common) => common.ancestors().find(|a| folder.starts_with(a)).map(Path::to_path_buf),
    })
}

#[cfg(test)]
mod basic_tests;
#[cfg(test)]
mod cached_tests;
#[cfg(test)]
mod glu_tests;
#[cfg(test)]
mod half_tests;
#[cfg(test)]
mod places_tests;
#[cfg(test)]
mod tests;
