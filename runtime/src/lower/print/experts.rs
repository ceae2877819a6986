//! Linear layers of selected experts as the runtime's own operator, whose weights stay as they are stored.

use super::Printer;
use super::codebooks::own_blocks;
use crate::Result;
use crate::graph::{Dim, Dtype, ExpertLinearOp, Node, Op};
use crate::onnx::Attribute;

/// The domain of the runtime's own operators.
pub(in crate::lower) const WEFT: &str = "weft";

impl Printer<'_> {
    /// The names of what it is given: parameters without a conversion where all are stored in one type.
    pub(super) fn expert_operands(&mut self, node: &Node) -> Result<Vec<String>> {
        let stored = self.stored_in(node).is_some();
        let operands = node.inputs.iter().enumerate().map(|(place, &id)| match self.parameter(id) {
            Some(index) if place > 1 && stored => {
                let shape: Vec<usize> = self.tensor(id).shape().iter().filter_map(Dim::fixed).collect();
                self.stored(index, &shape)
            }
            _ => self.operand(id),
        });
        operands.collect()
    }

    /// The operator for the type that weights are stored in; of quantized ones, their scales.
    pub(super) fn expert_operator(&self, node: &Node) -> &'static str {
        let quantized = matches!(node.op, Op::ExpertLinear(ExpertLinearOp { quantized: Some(_), .. }));
        match (self.stored_in(node).unwrap_or(Dtype::F32), quantized) {
            (Dtype::Bf16, false) => "ExpertLinearBf16",
            (Dtype::F16, false) => "ExpertLinearF16",
            (_, false) => "ExpertLinearF32",
            (Dtype::Bf16, true) => "ExpertLinearQuantizedBf16",
            (Dtype::F16, true) => "ExpertLinearQuantizedF16",
            (Dtype::U8, true) => "ExpertLinearQuantizedE8m0",
            (_, true) => "ExpertLinearQuantizedF32",
        }
    }

    /// The type that all weights are stored in; none where they differ, or one is computed.
    fn stored_in(&self, node: &Node) -> Option<Dtype> {
        let Op::ExpertLinear(op) = node.op else { return None };
        // Of quantized weights, scales are what has a type: each weight is codes, scales and perhaps more.
        let (first, step) = match op.quantized {
            Some(it) => {
                let more = [it.zero_points, it.offsets, it.blocks.outer].map(usize::from);
                (3, 2 + more.iter().sum::<usize>())
            }
            None => (2, 1),
        };
        let mut types = node.inputs.iter().skip(first).step_by(step).map(|&id| {
            let index = self.parameter(id)?;
            Some(self.weights[index].dtype)
        });
        let first = types.next()??;
        types.all(|dtype| dtype == Some(first)).then_some(first)
    }

    /// The parameter that a value is, or is in another shape.
    fn parameter(&self, id: usize) -> Option<usize> {
        let tensor = self.tensor(id);
        if let Some(index) = self.graph.weight_index(tensor) {
            return Some(index);
        }
        let reshaped = self.graph.made_by(tensor).filter(|node| node.op == Op::Reshape)?;
        self.graph.weight_index(self.tensor(reshaped.inputs[0]))
    }
}

/// Its attributes.
pub(super) fn expert_linear(op: ExpertLinearOp) -> Vec<Attribute> {
    match op.quantized {
        None => vec![Attribute::int("transposed", i64::from(op.transposed))],
        Some(it) => {
            let mut attributes = own_blocks(it.blocks);
            attributes.extend([
                Attribute::int("zero_points", i64::from(it.zero_points)),
                Attribute::int("offsets", i64::from(it.offsets)),
            ]);
            attributes.extend(it.batch.map(|experts| Attribute::int("batch", experts as i64)));
            attributes
        }
    }
}
