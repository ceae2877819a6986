//! The forms of rotary position embeddings.

use super::emitter::Emitter;
use super::{AttentionForm, shapes};
use crate::Result;
use crate::dims;
use crate::graph::{Dim, Dtype, Node, RotaryOp, Unary};
use crate::onnx::{self, Attribute};

impl Emitter<'_> {
    /// Cosines or sines of positions, in single precision up to the last step.
    pub(super) fn angles(
        &mut self,
        node: &Node,
        of: Unary,
        frequencies: &[f32],
        scaling: f32,
        positions: &str,
    ) -> Result<String> {
        let single = i64::from(onnx::data_type(Dtype::F32));
        let key = format!("/angles/{}/{frequencies:?}", node.inputs[0]);
        let angles = match self.symbols.get(&key) {
            Some(angles) => angles.clone(),
            None => {
                let from = self.shape(node.inputs[0]);
                let mut column = from.clone();
                column.push(Dim::Fixed(1));
                let positions = self.part("Cast", &[positions], vec![Attribute::int("to", single)]);
                let positions = self.reshape_part(&positions, &from, &column)?;
                let bytes = frequencies.iter().flat_map(|x| x.to_le_bytes()).collect();
                let frequencies = self.literal(Dtype::F32, &[frequencies.len()], bytes);
                let angles = self.part("Mul", &[&positions, &frequencies], vec![]);
                self.symbols.insert(key, angles.clone());
                angles
            }
        };
        let narrow = self.rules.float != Dtype::F32;
        if !narrow && scaling == 1.0 {
            return Ok(self.last(of.onnx(), &[&angles], vec![]));
        }
        let mut result = self.part(of.onnx(), &[&angles], vec![]);
        if scaling != 1.0 {
            let scaling = self.literal(Dtype::F32, &[], scaling.to_le_bytes().to_vec());
            if !narrow {
                return Ok(self.last("Mul", &[&result, &scaling], vec![]));
            }
            result = self.part("Mul", &[&result, &scaling], vec![]);
        }
        let to = i64::from(onnx::data_type(self.rules.float));
        Ok(self.last("Cast", &[&result], vec![Attribute::int("to", to)]))
    }

    /// x `[batch, sequence, heads·size]`, rotated.
    pub(super) fn rotary(&mut self, node: &Node, op: RotaryOp, [x, cos, sin]: [&str; 3]) -> Result<String> {
        let shape = self.shape(node.output);
        let size = shapes::width(&shape) / op.heads;
        if self.rules.attention == AttentionForm::Standard && op.width == size {
            let attributes = vec![
                Attribute::int("num_heads", op.heads as i64),
                Attribute::int("interleaved", i64::from(op.interleaved)),
            ];
            let result = self.last("RotaryEmbedding", &[x, cos, sin], attributes);
            self.declare(&result, &shape);
            return Ok(result);
        }
        let split = dims![&shape[0], &shape[1], op.heads, size];
        let x = self.reshape_part(x, &shape, &split)?;
        let half = op.width / 2;
        let angles = dims![&shape[0], &shape[1], 1, half];
        let cos = self.by_head(node, 1, cos, &angles)?;
        let sin = self.by_head(node, 2, sin, &angles)?;
        let rotated = match op.interleaved {
            true => {
                let head = self.range(&x, 3, 0, op.width);
                let whole = dims![&shape[0], &shape[1], op.heads, op.width];
                let pairs = dims![&shape[0], &shape[1], op.heads, half, 2];
                let head = self.reshape_part(&head, &whole, &pairs)?;
                let flat = dims![&shape[0], &shape[1], op.heads, half];
                let single = dims![&shape[0], &shape[1], op.heads, half, 1];
                let [a, b] = [0, 1].map(|i| self.range(&head, 4, i, i + 1));
                let (a, b) = (self.reshape_part(&a, &single, &flat)?, self.reshape_part(&b, &single, &flat)?);
                let (a, b) = self.turned(&a, &b, &cos, &sin);
                let (a, b) = (self.reshape_part(&a, &flat, &single)?, self.reshape_part(&b, &flat, &single)?);
                let both = self.part("Concat", &[&a, &b], vec![Attribute::int("axis", 4)]);
                self.reshape_part(&both, &pairs, &whole)?
            }
            false => {
                let a = self.range(&x, 3, 0, half);
                let b = self.range(&x, 3, half, op.width);
                let (a, b) = self.turned(&a, &b, &cos, &sin);
                self.part("Concat", &[&a, &b], vec![Attribute::int("axis", 3)])
            }
        };
        let whole = match size - op.width {
            0 => rotated,
            _ => {
                let rest = self.range(&x, 3, op.width, size);
                self.part("Concat", &[&rotated, &rest], vec![Attribute::int("axis", 3)])
            }
        };
        self.reshape(&whole, &split, &shape)
    }

    /// Cosines or sines with an axis for heads, written once however many layers use them.
    fn by_head(&mut self, node: &Node, operand: usize, name: &str, to: &[Dim]) -> Result<String> {
        let key = (node.inputs[operand], "by head");
        if let Some(name) = self.derived.get(&key) {
            return Ok(name.clone());
        }
        let from = self.shape(node.inputs[operand]);
        let name = self.reshape_part(name, &from, to)?;
        self.derived.insert(key, name.clone());
        Ok(name)
    }

    /// `(a cos - b sin, b cos + a sin)`.
    fn turned(&mut self, a: &str, b: &str, cos: &str, sin: &str) -> (String, String) {
        let [ac, bs, bc, as_] =
            [(a, cos), (b, sin), (b, cos), (a, sin)].map(|(x, y)| self.part("Mul", &[x, y], vec![]));
        (self.part("Sub", &[&ac, &bs], vec![]), self.part("Add", &[&bc, &as_], vec![]))
    }

    fn range(&mut self, x: &str, axis: usize, start: usize, end: usize) -> String {
        let [start, end, axis] = [start, end, axis].map(|n| self.integers(&[n as i64]));
        self.part("Slice", &[x, &start, &end, &axis], vec![])
    }
}
