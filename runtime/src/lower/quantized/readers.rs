//! What reads each weight of a graph.

use crate::graph::{ConvOp, Dim, Dtype, Graph, Op};
use crate::quantization::panels::DEEPEST;

/// The fewest channels of a group, going in and coming out, for which windows of 8 bits pay: depthwise convolutions and those of an
/// image's colours have fewer.
const FEWEST: usize = 16;

/// What reads a weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Readers {
    /// Linear layers, as their weight.
    pub linear: bool,
    /// Embeddings, as their table.
    pub embedding: bool,
    /// Convolutions that have kernels of 8 bits, as their weight: in how many groups.
    pub convolution: Option<usize>,
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
                    (Op::Conv(op), 1)
                        if readers.convolution.is_none_or(|groups| groups == op.groups)
                            && is_many(graph, node.inputs[0], *id, op) =>
                    {
                        readers.convolution = Some(op.groups);
                    }
                    _ => readers.others = true,
                }
            }
        }
        all
    }
}

/// Whether a convolution has enough channels for kernels of 8 bits, and its sums are of no more places than fit.
fn is_many(graph: &Graph, x: usize, weight: usize, op: &ConvOp) -> bool {
    let fixed: Option<Vec<usize>> = graph.tensor(weight).shape().iter().map(Dim::fixed).collect();
    let Some([out, channels, kernel @ ..]) = fixed.as_deref() else { return false };
    let depth = channels * kernel.iter().product::<usize>();
    graph.tensor(x).dtype() == Dtype::F32
        && (1..=3).contains(&kernel.len())
        && *channels >= FEWEST
        && out / op.groups.max(1) >= FEWEST
        && depth <= DEEPEST
}
