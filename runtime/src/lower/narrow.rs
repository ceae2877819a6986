//! Integers and truth values that some backends only take as other types.

use super::emitter::{Emitter, data_type};
use crate::graph::{Dtype, Node, Op};
use crate::onnx::Attribute;

/// What an operation on narrower numbers gives: its own type, under the name that the result must get.
pub(super) struct Widened {
    dtype: Dtype,
    result: Option<String>,
}

impl Emitter<'_> {
    /// Casts integers that are cut or reduced to what the rules' kernels take; then [`Self::widened`] gives the result.
    pub(super) fn narrowed(&mut self, node: &Node, inputs: &mut [String]) -> Option<Widened> {
        let to = match node.op {
            // Exact for positions and tokens: below 2^24.
            Op::Slice { .. } => Dtype::F32,
            Op::Reduce { .. } => Dtype::I32,
            _ => return None,
        };
        let dtype = self.graph.values[*node.inputs.first()?].tensor.dtype();
        if !self.rules.narrow_reads || dtype.is_float() {
            return None;
        }
        inputs[0] = self.part("Cast", &[&inputs[0]], vec![Attribute::int("to", data_type(to))]);
        Some(Widened { dtype, result: self.result.take() })
    }

    pub(super) fn widened(&mut self, narrow: &str, wide: Widened) -> String {
        self.place.push_str("/Cast");
        self.result = wide.result;
        self.last("Cast", &[narrow], vec![Attribute::int("to", data_type(wide.dtype))])
    }

    /// One of two by a condition. ONNX Runtime moves axes around convolutions, and past a `Where` those of its condition
    /// too; where truth values have no kernel for that, the two are multiplied by 1 and 0.
    pub(super) fn choose(&mut self, node: &Node, operands: &[&str]) -> String {
        let convolves = || self.graph.nodes.iter().any(|node| matches!(node.op, Op::Conv(_)));
        let float = self.graph.values[node.output].tensor.dtype().is_float();
        if !self.rules.narrow_reads || !float || !convolves() {
            return self.last("Where", operands, vec![]);
        }
        let to = vec![Attribute::int("to", data_type(self.rules.float))];
        let one = self.part("Cast", &[operands[0]], to.clone());
        let other = self.part("Not", &[operands[0]], vec![]);
        let other = self.part("Cast", &[&other], to);
        let one = self.part("Mul", &[&one, operands[1]], vec![]);
        let other = self.part("Mul", &[&other, operands[2]], vec![]);
        self.last("Add", &[&one, &other], vec![])
    }
}
