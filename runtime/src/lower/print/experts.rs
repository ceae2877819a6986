//! Linear layers of selected experts as the runtime's own operator, whose weights stay as they are stored.

use super::Printer;
use super::codebooks::own_blocks;
use crate::Result;
use crate::graph::{Dim, Dtype, ExpertLinearOp, Node, Op, Tensor};
use crate::onnx::{self, Attribute};

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

    /// Codes and zeros as the unsigned integers that they are, in the shapes of values and of scales.
    pub(super) fn operands_in_blocks(&mut self, node: &Node, bits: usize) -> Result<Vec<String>> {
        let lengths =
            |tensor: &Tensor| -> Vec<usize> { tensor.shape().iter().filter_map(Dim::fixed).collect() };
        let shapes = [self.tensor(node.output), self.tensor(node.inputs[1])].map(lengths);
        let codes = |printer: &mut Self, id: usize, shape: &[usize]| -> Result<String> {
            let name = printer.operand(id)?;
            let data_type = if bits == 4 { onnx::UINT4 } else { onnx::data_type(Dtype::U8) };
            let stored = printer.out.initializer.iter_mut().rfind(|tensor| tensor.name == name);
            if let Some(tensor) = stored {
                tensor.data_type = data_type;
                tensor.dims = shape.iter().map(|&length| length as i64).collect();
            }
            Ok(name)
        };
        let of = codes(self, node.inputs[0], &shapes[0])?;
        let scales = self.operand(node.inputs[1])?;
        Ok(vec![of, scales, codes(self, node.inputs[2], &shapes[1])?])
    }

    /// Parameters of one type that is not computed in, one after the other as they are stored; none where a node is anything else.
    pub(super) fn concat_of_stored(&mut self, node: &Node) -> Result<Option<String>> {
        let Op::Concat { axis } = node.op else { return Ok(None) };
        let (graph, weights) = (self.graph, self.weights);
        let indices = node.inputs.iter().map(|&id| graph.weight_index(graph.tensor(id)));
        let Some(indices) = indices.collect::<Option<Vec<usize>>>() else { return Ok(None) };
        let dtype = weights[indices[0]].dtype;
        let computed_in = self.tensor(node.output).dtype();
        if !dtype.is_float()
            || dtype == computed_in
            || indices.iter().any(|&index| weights[index].dtype != dtype)
        {
            return Ok(None);
        }
        let operands = indices.iter().map(|&index| self.stored(index, &weights[index].shape));
        let operands = operands.collect::<Result<Vec<_>>>()?;
        let operands: Vec<&str> = operands.iter().map(String::as_str).collect();
        let name = format!("{}/Stored", node.name);
        let axis = vec![Attribute::int("axis", axis as i64)];
        self.write("", "Concat", &operands, axis, name.clone(), name.clone());
        Ok(Some(name))
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
