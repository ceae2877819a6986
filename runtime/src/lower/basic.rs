//! Operations by basic ones, for backends that have little more than arithmetic; lengths are numbers there.

use super::emitter::Emitter;
use crate::Result;
use crate::graph::{Binary, Dim, Dtype, Node, Padded, Reduction, Unary};
use crate::onnx::{self, Attribute};

impl Emitter<'_> {
    /// By a product and a sum; what they are with is computed from the weights alone.
    pub(super) fn basic_batch_norm(
        &mut self,
        node: &Node,
        operands: &[&str],
        epsilon: f64,
    ) -> Result<String> {
        let [x, scale, shift, mean, variance] =
            [operands[0], operands[1], operands[2], operands[3], operands[4]];
        let epsilon = self.number(epsilon as f32);
        let variance = self.part("Add", &[variance, &epsilon], vec![]);
        let deviation = self.part("Sqrt", &[&variance], vec![]);
        let scale = self.part("Div", &[scale, &deviation], vec![]);
        let mean = self.part("Mul", &[mean, &scale], vec![]);
        let shift = self.part("Sub", &[shift, &mean], vec![]);
        let channels = self.shape(node.inputs[1]);
        let mut by_channel = vec![Dim::Fixed(1); self.shape(node.inputs[0]).len()];
        by_channel[1] = channels[0].clone();
        let scale = self.reshape_part(&scale, &channels, &by_channel)?;
        let shift = self.reshape_part(&shift, &channels, &by_channel)?;
        let scaled = self.part("Mul", &[x, &scale], vec![]);
        Ok(self.last("Add", &[&scaled, &shift], vec![]))
    }

    /// Sums up to each element as products with a triangle of ones.
    pub(super) fn basic_cumsum(&mut self, node: &Node, axis: usize, x: &str) -> Result<String> {
        let tensor = &self.graph.values[node.output].tensor;
        let (dtype, shape) = (tensor.dtype(), self.shape(node.output));
        let (float, last) = (dtype.is_float(), shape.len() - 1);
        let to = |dtype| vec![Attribute::int("to", i64::from(onnx::data_type(dtype)))];
        let kind = if float { self.rules.float } else { Dtype::F32 };
        let numbers = if float { x.to_owned() } else { self.part("Cast", &[x], to(kind)) };
        // The axis is the one that a product sums over.
        let mut order: Vec<i64> = (0..shape.len() as i64).collect();
        order.swap(axis, last);
        let swapped = |emitter: &mut Self, x: &str| match axis == last {
            true => x.to_owned(),
            false => emitter.part("Transpose", &[x], vec![Attribute::ints("perm", order.clone())]),
        };
        let numbers = swapped(self, &numbers);
        let count = self.shape_operand(&[shape[axis].clone(), shape[axis].clone()])?;
        let one = match kind {
            Dtype::F32 => self.literal(Dtype::F32, &[], 1_f32.to_le_bytes().to_vec()),
            _ => self.number(1.0),
        };
        let ones = self.part("Expand", &[&one, &count], vec![]);
        let triangle = self.part("Trilu", &[&ones], vec![Attribute::int("upper", 1)]);
        let sums = self.part("MatMul", &[&numbers, &triangle], vec![]);
        let sums = swapped(self, &sums);
        Ok(match float {
            true => self.last("Identity", &[&sums], vec![]),
            false => self.last("Cast", &[&sums], to(dtype)),
        })
    }

    /// The number put around by joining it on.
    pub(super) fn basic_pad(
        &mut self,
        node: &Node,
        by: Padded,
        around: &[(usize, usize)],
        x: &str,
    ) -> Option<String> {
        let Padded::Constant(value) = by else { return None };
        let from = self.shape(node.inputs[0]);
        let mut shape: Vec<usize> = from.iter().map(Dim::fixed).collect::<Option<_>>()?;
        let mut padded = x.to_owned();
        for (axis, &(before, after)) in around.iter().enumerate() {
            let mut parts = vec![];
            for (position, count) in [(0, before), (2, after)] {
                if count > 0 {
                    let mut dims = shape.clone();
                    dims[axis] = count;
                    let filled = vec![value; dims.iter().product()];
                    parts.push((position, self.numbers(&dims, &filled)));
                }
            }
            if parts.is_empty() {
                continue;
            }
            parts.push((1, padded));
            parts.sort();
            let parts: Vec<_> = parts.iter().map(|(_, part)| part.as_str()).collect();
            padded = self.part("Concat", &parts, vec![Attribute::int("axis", axis as i64)]);
            shape[axis] += before + after;
        }
        Some(self.last("Identity", &[&padded], vec![]))
    }

    /// Axes of length 1 repeated, under a name of its own or as the operation's result.
    pub(super) fn basic_expand(
        &mut self,
        x: &str,
        from: &[Dim],
        to: &[Dim],
        name: Option<&str>,
    ) -> Result<String> {
        let mut apart = vec![Dim::Fixed(1); to.len() - from.len()];
        apart.extend_from_slice(from);
        let x = match from.len() == to.len() {
            true => x.to_owned(),
            false => self.reshape_part(x, from, &apart)?,
        };
        let times: Vec<i64> = apart
            .iter()
            .zip(to)
            .map(|(one, dim)| if one == dim { 1 } else { dim.fixed().unwrap_or(1) as i64 })
            .collect();
        let times = self.integers(&times);
        Ok(match name {
            Some(name) => self.named("Tile", &[&x, &times], vec![], name),
            None => self.last("Tile", &[&x, &times], vec![]),
        })
    }

    /// The least by the greatest of what is negated, and powers in single precision.
    pub(super) fn basic_binary(&mut self, node: &Node, op: Binary, [a, b]: [&str; 2]) -> String {
        let dtype = self.graph.values[node.inputs[0]].tensor.dtype();
        match op {
            Binary::Min => {
                let minus = self.minus_one(dtype);
                let [a, b] = [a, b].map(|x| self.part("Mul", &[x, &minus], vec![]));
                let most = self.part("Max", &[&a, &b], vec![]);
                self.last("Mul", &[&most, &minus], vec![])
            }
            Binary::Pow if dtype.is_float() && self.rules.float != Dtype::F32 => {
                let to = |dtype| vec![Attribute::int("to", i64::from(onnx::data_type(dtype)))];
                let [a, b] = [a, b].map(|x| self.part("Cast", &[x], to(Dtype::F32)));
                let power = self.part("Pow", &[&a, &b], vec![]);
                self.last("Cast", &[&power], to(self.rules.float))
            }
            op => self.last(op.onnx(), &[a, b], vec![]),
        }
    }

    /// Signs by products, and rounding down by rounding up.
    pub(super) fn basic_unary(&mut self, node: &Node, op: Unary, x: &str) -> String {
        let minus = match op {
            Unary::Neg | Unary::Abs | Unary::Floor => {
                self.minus_one(self.graph.values[node.inputs[0]].tensor.dtype())
            }
            op => return self.last(op.onnx(), &[x], vec![]),
        };
        if op == Unary::Neg {
            return self.last("Mul", &[x, &minus], vec![]);
        }
        let negated = self.part("Mul", &[x, &minus], vec![]);
        if op == Unary::Abs {
            return self.last("Max", &[x, &negated], vec![]);
        }
        let up = self.part("Ceil", &[&negated], vec![]);
        self.last("Mul", &[&up, &minus], vec![])
    }

    /// Axes folded away; the least by the greatest of what is negated.
    pub(super) fn reduce(&mut self, node: &Node, by: Reduction, [x, axes]: [&str; 2], keep: bool) -> String {
        let attributes = vec![Attribute::int("keepdims", i64::from(keep))];
        match by {
            Reduction::Sum => self.last("ReduceSum", &[x, axes], attributes),
            Reduction::Mean => self.last("ReduceMean", &[x, axes], attributes),
            Reduction::Max => self.last("ReduceMax", &[x, axes], attributes),
            Reduction::Min if self.rules.basic => {
                let minus = self.minus_one(self.graph.values[node.inputs[0]].tensor.dtype());
                let negated = self.part("Mul", &[x, &minus], vec![]);
                let most = self.part("ReduceMax", &[&negated, axes], attributes);
                self.last("Mul", &[&most, &minus], vec![])
            }
            Reduction::Min => self.last("ReduceMin", &[x, axes], attributes),
        }
    }

    fn minus_one(&mut self, dtype: Dtype) -> String {
        if dtype.is_float() { self.number(-1.0) } else { self.integer(-1) }
    }
}
