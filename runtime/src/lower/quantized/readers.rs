//! What reads each weight of a graph.

use crate::graph::{Graph, Op};

/// What reads a weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Readers {
    /// Linear layers, as their weight.
    pub linear: bool,
    /// Embeddings, as their table.
    pub embedding: bool,
    /// Anything else.
    pub others: bool,
}

impl Readers {
    /// Of all weights, in their order.
    pub(crate) fn of(graph: &Graph) -> Vec<Self> {
        let mut all = vec![Self::default(); graph.weights.len()];
        let index = |id: usize| graph.weight_index(graph.tensor(id));
        for weight in graph.outputs.iter().filter_map(|(_, id)| index(*id)) {
            all[weight].others = true;
        }
        for node in &graph.nodes {
            for (place, id) in node.inputs.iter().enumerate() {
                let Some(readers) = index(*id).and_then(|weight| all.get_mut(weight)) else { continue };
                match (&node.op, place) {
                    (Op::Linear, 1) => readers.linear = true,
                    // Of transposed weights, those of a batch may be stored the other way.
                    (Op::ExpertLinear(op), 2..) if !op.transposed || graph.tensor(*id).rank() == 3 => {
                        readers.linear = true;
                    }
                    (Op::Gather { axis: 0 }, 0) => readers.embedding = true,
                    _ => readers.others = true,
                }
            }
        }
        all
    }
}
