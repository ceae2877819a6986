//! Windows of images and sounds, ranges and borders.

use super::emitter::{Emitter, data_type};
use crate::Result;
use crate::graph::{ConvOp, Dim, Dtype, Interpolation, Node, Padded, PoolOp, Reduction, ResizeOp};
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

    pub(super) fn resize(&mut self, op: ResizeOp, x: &str, from: &[Dim], to: &[Dim]) -> Result<String> {
        if let Some(picked) = self.picked(op, x, from, to) {
            return Ok(picked);
        }
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
        if self.rules.float != Dtype::F16 || op.by != Interpolation::Bicubic {
            return Ok(self.last("Resize", &[x, "", "", &sizes], attributes));
        }
        // Weights of cubic curves lose too much in half precision, for which WebGPU has no kernel either.
        let cast = |to| vec![Attribute::int("to", data_type(to))];
        let wide = self.part("Cast", &[x], cast(Dtype::F32));
        let wide = self.part("Resize", &[&wide, "", "", &sizes], attributes);
        Ok(self.last("Cast", &[&wide], cast(Dtype::F16)))
    }

    /// The nearest places where all lengths are numbers: which ones is known, and backends that round otherwise, as
    /// browsers do, are not asked.
    fn picked(&mut self, op: ResizeOp, x: &str, from: &[Dim], to: &[Dim]) -> Option<String> {
        if op.by != Interpolation::Nearest || op.align_corners || !self.rules.fixed_shapes {
            return None;
        }
        let lengths = from.iter().zip(to).map(|(from, to)| Some((from.fixed()?, to.fixed()?)));
        let lengths = lengths.collect::<Option<Vec<_>>>()?;
        let mut changed = lengths.iter().enumerate().filter(|(_, (from, to))| from != to).peekable();
        let mut x = x.to_owned();
        while let Some((axis, &(from, to))) = changed.next() {
            let scale = to as f32 / from as f32;
            let nearest = |place: usize| ((place as f32 / scale) as usize).min(from - 1) as i64;
            let places: Vec<i64> = (0..to).map(nearest).collect();
            let places = self.integers(&places);
            let axis = vec![Attribute::int("axis", axis as i64)];
            if changed.peek().is_none() {
                return Some(self.last("Gather", &[&x, &places], axis));
            }
            x = self.part("Gather", &[&x, &places], axis);
        }
        None
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
