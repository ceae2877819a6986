//! Types that some backends lack for an operation, which is done in others.

use super::emitter::{Emitter, data_type};
use crate::graph::{Dtype, Node, Op, Origin};
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
            Op::Slice { .. } | Op::CumSum { .. } => Dtype::F32,
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

    /// Another element type; floating-point numbers are what the rules compute in.
    pub(super) fn cast(&mut self, node: &Node, to: Dtype, x: &str) -> String {
        let from = self.graph.values[node.inputs[0]].tensor.dtype();
        if self.rules.compares_to_zero && from.is_float() && to == Dtype::Bool {
            let zero = self.number(0.0);
            let none = self.part("Equal", &[x, &zero], vec![]);
            return self.last("Not", &[&none], vec![]);
        }
        let to = if to == Dtype::F32 { self.rules.float } else { to };
        self.last("Cast", &[x], vec![Attribute::int("to", data_type(to))])
    }

    /// Shares that sum to one. Those of a parameter are known before the graph runs, but in single precision only: a
    /// part of a graph without inputs would be left otherwise, which some backends refuse.
    pub(super) fn softmax(&mut self, node: &Node, axis: usize, x: &str) -> String {
        let along = vec![Attribute::int("axis", axis as i64)];
        let parameter = matches!(self.graph.values[node.inputs[0]].origin, Origin::Weight(_));
        if !parameter || self.rules.float == Dtype::F32 {
            return self.last("Softmax", &[x], along);
        }
        let cast = |to| vec![Attribute::int("to", data_type(to))];
        let wide = self.part("Cast", &[x], cast(Dtype::F32));
        let wide = self.part("Softmax", &[&wide], along);
        self.last("Cast", &[&wide], cast(self.rules.float))
    }
}
