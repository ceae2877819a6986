//! What a graph is told of the checkpoint that it is built for.

use std::path::PathBuf;
use std::sync::Arc;

use super::{Graph, Weight};
use crate::{Error, Result};

/// What gives the shape of a parameter by its name.
pub(crate) type ShapeOf = dyn Fn(&str) -> Option<Vec<usize>> + Send + Sync;

/// The checkpoint, as far as a graph is built by it.
#[derive(Clone)]
pub(crate) struct Stored {
    /// Whether it holds a parameter.
    pub has: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    /// The shape of a parameter that it holds.
    pub shape: Arc<ShapeOf>,
    /// How many tensors it holds, and how many elements these have together.
    pub tensors: usize,
    pub elements: usize,
    /// Where it is.
    pub place: PathBuf,
}

impl Stored {
    /// Refuses to go on where a configuration asks for far more than there is, which would take all time or memory.
    pub(super) fn suffices(&self, name: &str, shape: &[usize], weights: usize, nodes: usize) -> Result<()> {
        let elements = shape.iter().fold(1_usize, |product, n| product.saturating_mul(*n));
        let problem = match self.tensors {
            // Of less, every tensor that does not fit is named.
            _ if elements > self.elements.saturating_mul(1_000) => {
                let all = self.elements;
                format!(
                    "tensor `{name}` {shape:?} would have far more elements than all {all} that are stored"
                )
            }
            // Tensors may be taken apart, and some few layers may be missing: then each is named.
            tensors if weights > 8 * tensors + 1_000 || nodes > 1_000 * tensors + 20_000 => {
                format!("`{name}` is of more layers than {tensors} stored tensors can be for")
            }
            _ => return Ok(()),
        };
        let help = "config.json and the weights must be of one checkpoint: compare its sizes with the published one's";
        Err(Error::weights(&self.place, problem, help))
    }
}

impl std::fmt::Debug for Stored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stored")
    }
}

impl Graph {
    /// The parameters of the graph and of what follows it.
    pub(crate) fn all_weights(&self) -> Vec<Weight> {
        let own = |weight: &&Weight| self.weights.iter().all(|own| own.name != weight.name);
        self.weights.iter().chain(self.later.iter().filter(own)).cloned().collect()
    }
}
