//! What a layer of long short-term memory is given, and gives.

use super::{Graph, Op, Tensor};

/// What a layer of an LSTM is given, gates in ONNX's order: input, output, forget, cell.
#[derive(Clone, Copy, Debug)]
pub struct LstmLayer<'a> {
    /// `[sequence, batch, in]`.
    pub x: &'a Tensor,
    /// The weights of x, `[directions, 4·hidden, in]`.
    pub input: &'a Tensor,
    /// The weights of the hidden state, `[directions, 4·hidden, hidden]`.
    pub recurrence: &'a Tensor,
    /// The biases of both, one behind the other, `[directions, 8·hidden]`.
    pub bias: &'a Tensor,
    /// The hidden and the cell state before the first position, each `[directions, batch, hidden]`.
    pub states: [&'a Tensor; 2],
}

/// What a layer of an LSTM gives.
#[derive(Clone, Debug)]
pub struct LstmOutput {
    /// The hidden state at each position, `[sequence, directions, batch, hidden]`.
    pub output: Tensor,
    /// The hidden and the cell state behind the last position, each `[directions, batch, hidden]`.
    pub states: [Tensor; 2],
}

impl Graph {
    /// Whether it has an LSTM, which is computed step by step where a backend has no kernel for it.
    pub(crate) fn has_lstm(&self) -> bool {
        self.nodes.iter().any(|node| matches!(node.op, Op::Lstm(_)))
    }
}
