//! Windows of images and sounds, ranges and borders.

use super::emitter::Emitter;
use crate::Result;
use crate::graph::{ConvOp, Dim, Interpolation, Padded, PoolOp, Reduction, ResizeOp};
use crate::onnx::Attribute;

impl Emitter<'_> {
    pub(super) fn conv(&mut self, operator: &str, op: &ConvOp, operands: &[&str]) -> String {
        let attributes = vec![
            ints("kernel_shape", &op.kernel),
            ints("strides", &op.stride),
            pads(&op.padding),
            ints("dilations", &op.dilation),
            Attribute::int("group", op.groups as i64),
        ];
        self.last(operator, operands, attributes)
    }

    pub(super) fn pool(&mut self, op: &PoolOp, x: &str) -> String {
        let mut attributes =
            vec![ints("kernel_shape", &op.kernel), ints("strides", &op.stride), pads(&op.padding)];
        if op.by == Reduction::Mean {
            attributes.push(Attribute::int("count_include_pad", 1));
        }
        self.last(op.name(), &[x], attributes)
    }

    pub(super) fn resize(&mut self, op: ResizeOp, x: &str, to: &[Dim]) -> Result<String> {
        let (mode, centre) = match op.by {
            Interpolation::Nearest => ("nearest", "asymmetric"),
            Interpolation::Bilinear => ("linear", "half_pixel"),
            Interpolation::Bicubic => ("cubic", "half_pixel"),
        };
        let centre = if op.align_corners { "align_corners" } else { centre };
        let mut attributes = vec![
            Attribute::string("mode", mode),
            Attribute::string("coordinate_transformation_mode", centre),
        ];
        match op.by {
            Interpolation::Nearest => attributes.push(Attribute::string("nearest_mode", "floor")),
            Interpolation::Bilinear => {}
            Interpolation::Bicubic => attributes.push(Attribute::float("cubic_coeff_a", -0.75)),
        }
        let sizes = self.shape_operand(to)?;
        Ok(self.last("Resize", &[x, "", "", &sizes], attributes))
    }

    pub(super) fn pad(&mut self, by: Padded, around: &[(usize, usize)], x: &str) -> String {
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
