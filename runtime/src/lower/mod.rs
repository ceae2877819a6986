//! From the graph to the ONNX model that a backend runs best: one meaning, several forms.
//!
//! [`Rules`] says which form each operation takes; every backend has its own set, in [`Rules::of`].

mod activation;
mod attention;
mod basic;
mod emitter;
mod floats;
mod int32;
mod linear;
mod narrow;
mod norm;
mod operators;
mod published;
mod resize;
mod rotary;
mod rules;
mod shapes;
mod spatial;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

pub use int32::narrow_integers;
pub use published::{fallen, source};
pub use rules::{AttentionForm, GeluForm, LinearForm, RmsNormForm, Rules};

use crate::graph::Graph;
use crate::weights::{Bytes, Located};
use crate::{Result, onnx};
use emitter::Emitter;

/// A graph in the form that one backend runs.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The ONNX model, without the weights that stay in their files.
    pub model: onnx::Model,
    /// The folder that the locations of external weights start from.
    pub folder: Option<PathBuf>,
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
/// When an operation has no form under these rules.
pub fn lower(graph: &Graph, weights: &[Located], rules: &Rules) -> Result<Lowered> {
    let folder = common_folder(weights);
    let mut emitter = Emitter::new(graph, weights, rules, folder.as_deref());
    let read = read(graph);
    for node in graph.nodes.iter().filter(|node| read.contains(&node.output)) {
        emitter.node(node)?;
    }
    let model = emitter.finish()?;
    let model = if rules.basic { floats::compute_in_floats(model) } else { model };
    let mut operators = BTreeMap::new();
    for node in model.graph.iter().flat_map(|graph| &graph.node) {
        let name = match node.domain.as_str() {
            "" => node.op_type.clone(),
            domain => format!("{domain}.{}", node.op_type),
        };
        *operators.entry(name).or_default() += 1;
    }
    Ok(Lowered { model, folder, operators })
}

/// The values that lead to outputs; a backend may leave the rest out, and the inputs that only the rest reads.
fn read(graph: &Graph) -> BTreeSet<usize> {
    let mut read: BTreeSet<usize> = graph.outputs.iter().map(|(_, id)| *id).collect();
    for node in graph.nodes.iter().rev() {
        if read.contains(&node.output) {
            read.extend(&node.inputs);
        }
    }
    read
}

/// The deepest folder that holds every weights file.
fn common_folder(weights: &[Located]) -> Option<PathBuf> {
    let folders = weights.iter().filter_map(|weight| match &weight.bytes {
        Bytes::File { path, .. } => path.parent(),
        Bytes::Memory(_) => None,
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
mod half_tests;
#[cfg(test)]
mod places_tests;
#[cfg(test)]
mod tests;
