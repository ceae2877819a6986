//! Sines and cosines where a backend's own are too far off: the shading languages of GPUs allow 2⁻¹¹ between -π and π, and nothing is
//! said of what lies beyond (WGSL, "Accuracy of Built-in Functions").

use crate::Result;
use crate::graph::{Dtype, Graph, Op, Operation, Tensor, Unary};

/// π in three parts (Cody and Waite, 1980), the first two of so few bits that a multiple of up to 2¹⁵ halves of π is exact.
const PI: [f32; 3] = [3.140_625, 9.675_026e-4, 1.509_958e-7];

/// Taylor's coefficients of `(sin(r) / r − 1) / r²` in `r²`, the last first: off by 6e-8 at π/2.
const SINE: [f32; 5] = [-1.0 / 39_916_800.0, 1.0 / 362_880.0, -1.0 / 5040.0, 1.0 / 120.0, -1.0 / 6.0];

/// Sines and cosines by sums and products, which are exact to a last digit everywhere: those of an angle that is at most half of π off a
/// multiple of it, or of half a π more.
pub(in crate::lower) fn by_products(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::Unary(wave @ (Unary::Sin | Unary::Cos)), [x]) = (it.op, it.operands) else { return Ok(None) };
    if x.dtype() != Dtype::F32 {
        return Ok(None);
    }
    let [half, one, two] = [0.5, 1.0, 2.0].map(|number| g.scalar(number));
    let halves = g.scale(x, 1.0 / std::f64::consts::PI)?;
    // Of a sine the nearest multiple of π, of a cosine the nearest but for half a π.
    let (multiple, centre) = if *wave == Unary::Sin {
        let halves = g.add(&halves, &half)?;
        let multiple = g.unary(Unary::Floor, &halves);
        (multiple.clone(), multiple)
    } else {
        let multiple = g.unary(Unary::Floor, &halves);
        let centre = g.add(&multiple, &half)?;
        (multiple, centre)
    };
    let mut rest = x.clone();
    for part in PI {
        let part = g.scalar(part);
        let part = g.mul(&centre, &part)?;
        rest = g.sub(&rest, &part)?;
    }
    let square = g.mul(&rest, &rest)?;
    let [first, others @ ..] = SINE.map(|number| g.scalar(number));
    let mut sum = first;
    for next in &others {
        let higher = g.mul(&square, &sum)?;
        sum = g.add(&higher, next)?;
    }
    let sum = g.mul(&square, &sum)?;
    let sum = g.mul(&rest, &sum)?;
    let sine = g.add(&rest, &sum)?;
    // At odd multiples of π a sine falls and a cosine rises.
    let pairs = g.mul(&multiple, &half)?;
    let pairs = g.unary(Unary::Floor, &pairs);
    let pairs = g.mul(&pairs, &two)?;
    let odd = g.sub(&multiple, &pairs)?;
    let odd = g.mul(&odd, &two)?;
    let sign = if *wave == Unary::Sin { g.sub(&one, &odd)? } else { g.sub(&odd, &one)? };
    g.mul(&sine, &sign).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::evaluate;

    /// The largest difference of a wave of angles from that of double precision.
    fn off(wave: Unary, angles: &[f32]) -> Option<f64> {
        let (_, found) = evaluate(&[], |g| {
            let x = g.constant(&[angles.len()], angles.to_vec())?;
            let result = g.unary(wave, &x);
            let op = Op::Unary(wave);
            let it = Operation { op: &op, operands: &[x], types: &[Dtype::F32], result: &result };
            by_products(g, &it).map(Option::unwrap)
        })?;
        let exact = |x: &f32| if wave == Unary::Sin { f64::from(*x).sin() } else { f64::from(*x).cos() };
        let off = angles.iter().zip(found).map(|(angle, found)| (exact(angle) - f64::from(found)).abs());
        Some(off.fold(0.0, f64::max))
    }

    #[test]
    fn waves_are_right_to_a_last_digit_far_from_zero_too() {
        let near: Vec<f32> = (-40_000..40_000).map(|step| step as f32 * 0.037).collect();
        let far: Vec<f32> = (0..40_000).map(|step| 98_304.5 - step as f32 * 2.37).collect();
        for wave in [Unary::Sin, Unary::Cos] {
            if let (Some(near), Some(far)) = (off(wave, &near), off(wave, &far)) {
                assert!(near < 2e-7 && far < 1e-6, "{near} and {far}");
            }
        }
    }
}
