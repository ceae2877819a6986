//! Pictures in other sizes.

use super::emitter::{Emitter, data_type};
use crate::Result;
use crate::graph::{Dim, Dtype, Interpolation, ResizeOp};
use crate::onnx::Attribute;

/// The curves' coefficient, as the reference has it.
const CURVE: f32 = -0.75;

impl Emitter<'_> {
    pub(super) fn resize(&mut self, op: ResizeOp, x: &str, from: &[Dim], to: &[Dim]) -> Result<String> {
        if let Some(picked) = self.picked(op, x, from, to) {
            return Ok(picked);
        }
        // Weights of cubic curves lose too much in half precision, for which WebGPU has no kernel either.
        let half = self.rules.float == Dtype::F16 && op.by == Interpolation::Bicubic;
        if !half {
            return self.resized(op, x, from, to);
        }
        let cast = |to| vec![Attribute::int("to", data_type(to))];
        let wide = self.part("Cast", &[x], cast(Dtype::F32));
        let (result, place) = (self.result.take(), self.place.clone());
        self.place.push_str("/wide");
        let wide = self.resized(op, &wide, from, to)?;
        (self.result, self.place) = (result, place);
        Ok(self.last("Cast", &[&wide], cast(Dtype::F16)))
    }

    fn resized(&mut self, op: ResizeOp, x: &str, from: &[Dim], to: &[Dim]) -> Result<String> {
        let products = self.rules.multiplies_cubic && op.by == Interpolation::Bicubic;
        if let Some(lengths) = fixed(from, to).filter(|_| products) {
            return Ok(self.multiplied(op, x, &lengths));
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
            Interpolation::Bicubic => attributes.push(Attribute::float("cubic_coeff_a", CURVE)),
        }
        let sizes = self.shape_operand(to)?;
        Ok(self.last("Resize", &[x, "", "", &sizes], attributes))
    }

    /// Rows and columns multiplied by the weights of the curves, where all lengths are numbers.
    fn multiplied(&mut self, op: ResizeOp, x: &str, lengths: &[(usize, usize)]) -> String {
        let [.., (rows, tall), (columns, wide)] = *lengths else { return x.to_owned() };
        let across = cubic(columns, wide, op.align_corners);
        let mut turned = vec![0.0; across.len()];
        for (place, weight) in across.iter().enumerate() {
            turned[place % columns * wide + place / columns] = *weight;
        }
        let across = self.wide_numbers(&[columns, wide], &turned);
        let down = self.wide_numbers(&[tall, rows], &cubic(rows, tall, op.align_corners));
        let x = self.part("MatMul", &[x, &across], vec![]);
        self.last("MatMul", &[&down, &x], vec![])
    }

    /// Literal numbers in single precision.
    fn wide_numbers(&mut self, dims: &[usize], values: &[f32]) -> String {
        self.literal(Dtype::F32, dims, values.iter().flat_map(|x| x.to_le_bytes()).collect())
    }

    /// The nearest places where all lengths are numbers: which ones is known, and backends that round otherwise, as
    /// browsers do, are not asked.
    fn picked(&mut self, op: ResizeOp, x: &str, from: &[Dim], to: &[Dim]) -> Option<String> {
        if op.by != Interpolation::Nearest || op.align_corners || !self.rules.fixed_shapes {
            return None;
        }
        let lengths = fixed(from, to)?;
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
}

/// The lengths before and after, where all are numbers.
fn fixed(from: &[Dim], to: &[Dim]) -> Option<Vec<(usize, usize)>> {
    from.iter().zip(to).map(|(from, to)| Some((from.fixed()?, to.fixed()?))).collect()
}

/// `[to, from]`: what each place takes of those before, by cubic curves through four of them; beyond the edge stands what
/// is at the edge.
fn cubic(from: usize, to: usize, align_corners: bool) -> Vec<f32> {
    let mut weights = vec![0.0; to * from];
    for (place, row) in weights.chunks_exact_mut(from.max(1)).enumerate() {
        let at = match align_corners {
            true if to > 1 => place as f32 * (from - 1) as f32 / (to - 1) as f32,
            true => 0.0,
            false => (place as f32 + 0.5) * from as f32 / to as f32 - 0.5,
        };
        let first = at.floor();
        for tap in -1..=2 {
            let distance = (at - first - tap as f32).abs();
            let weight = if distance <= 1.0 {
                ((CURVE + 2.0) * distance - (CURVE + 3.0)) * distance * distance + 1.0
            } else {
                ((CURVE * distance - 5.0 * CURVE) * distance + 8.0 * CURVE) * distance - 4.0 * CURVE
            };
            let taken = (first as i64 + tap).clamp(0, from as i64 - 1) as usize;
            row[taken] += weight;
        }
    }
    weights
}
