//! Windows of images and sounds, ranges and borders.

use super::emitter::Emitter;
use crate::Result;
use crate::graph::{ConvOp, Dim, Node, Padded, PoolOp, Reduction};
use crate::onnx::Attribute;

impl Emitter<'_> {
    pub(super) fn conv(&mut self, operator: &str, op: &ConvOp, operands: &[&str], channels: usize) -> String {
        let threes = channels > 3 && channels.is_multiple_of(3) && !channels.is_multiple_of(4);
        if self.rules.pads_channels && threes && op.groups == 1 && operator == "Conv" {
            let added = channels.next_multiple_of(4) - channels;
            let padded = [operands[0], operands[1]].map(|x| self.zero_channels(x, op.kernel.len(), added));
            let padded = padded.iter().map(String::as_str);
            let operands: Vec<&str> = padded.chain(operands[2..].iter().copied()).collect();
            return self.conv(operator, op, &operands, channels + added);
        }
        let attributes = vec![
            ints("kernel_shape", &op.kernel),
            ints("strides", &op.stride),
            pads(&op.padding),
            ints("dilations", &op.dilation),
            Attribute::int("group", op.groups as i64),
        ];
        self.last(operator, operands, attributes)
    }

    /// Zeros after the channels, the second of its axes.
    fn zero_channels(&mut self, x: &str, spatial: usize, added: usize) -> String {
        let mut counts = vec![0; 2 * (spatial + 2)];
        counts[spatial + 3] = added as i64;
        let (counts, zero) = (self.integers(&counts), self.number(0.0));
        self.part("Pad", &[x, &counts, &zero], vec![])
    }

    pub(super) fn pool(&mut self, op: &PoolOp, x: &str) -> String {
        let mut attributes =
            vec![ints("kernel_shape", &op.kernel), ints("strides", &op.stride), pads(&op.padding)];
        if op.by == Reduction::Mean {
            attributes.push(Attribute::int("count_include_pad", 1));
        }
        self.last(op.name(), &[x], attributes)
    }

    pub(super) fn pad(&mut self, node: &Node, by: Padded, around: &[(usize, usize)], x: &str) -> String {
        if self.rules.basic
            && let Some(padded) = self.basic_pad(node, by, around, x)
        {
            return padded;
        }
        let before = around.iter().map(|(before, _)| *before as i64);
        let counts: Vec<i64> = before.chain(around.iter().map(|(_, after)| *after as i64)).collect();
        let counts = self.integers(&counts);
        match by {
            Padded::Constant(value) => {
                let value = self.number(value);
                self.last("Pad", &[x, &counts, &value], vec![])
            }
            Padded::Reflect => self.last("Pad", &[x, &counts], vec![Attribute::string("mode", "reflect")]),
            Padded::Edge => self.last("Pad", &[x, &counts], vec![Attribute::string("mode", "edge")]),
        }
    }

    pub(super) fn slice(
        &mut self,
        x: &str,
        axis: usize,
        [start, end]: [&Dim; 2],
        step: usize,
    ) -> Result<String> {
        let symbols = |dim: &Dim| dim.substitute(&|name| self.rules.dims.get(name).copied());
        let (start, end) = (symbols(start), symbols(end));
        let start = self.shape_operand(&[start])?;
        let end = self.shape_operand(&[end])?;
        let axis = self.integers(&[axis as i64]);
        if step == 1 {
            return Ok(self.last("Slice", &[x, &start, &end, &axis], vec![]));
        }
        let step = self.integers(&[step as i64]);
        Ok(self.last("Slice", &[x, &start, &end, &axis, &step], vec![]))
    }
}

fn ints(name: &str, values: &[usize]) -> Attribute {
    Attribute::ints(name, values.iter().map(|&n| n as i64).collect())
}

/// All beginnings, then all ends.
fn pads(padding: &[(usize, usize)]) -> Attribute {
    let before = padding.iter().map(|(before, _)| *before as i64);
    Attribute::ints("pads", before.chain(padding.iter().map(|(_, after)| *after as i64)).collect())
}
