//! Integers that some backends only cut or reduce as other types.

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
}
