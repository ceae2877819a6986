//! Expected collisions of hashes (YOSO; Zeng et al., 2021, arXiv:2111.09714), and the arc cosine that they need.

use super::l2_normalize;
use crate::Result;
use crate::graph::{Binary, Graph, Tensor, Unary};

/// `arccos(x) / √(1 - x)` for x from 0 to 1, the powers of x from the 0th (Abramowitz and Stegun, 1964, 4.4.46); off by 2e-8 at most.
const COEFFICIENTS: [f32; 8] = [
    std::f32::consts::FRAC_PI_2,
    -0.214_598_8,
    0.088_978_99,
    -0.050_174_3,
    0.030_891_88,
    -0.017_088_126,
    0.006_670_09,
    -0.001_262_491_1,
];

/// The probability that `bits` random hyperplanes leave a query on the same sides as a key, `(1 - arccos(q · k) / π)^bits` of
/// unit vectors (`YosoCumulation`): q `[.., queries, size]` and k `[.., keys, size]` to `[.., queries, keys]`.
///
/// # Errors
/// When the shapes do not go together.
pub fn collision_probability(g: &mut Graph, q: &Tensor, k: &Tensor, bits: usize) -> Result<Tensor> {
    let (q, k) = (l2_normalize(g, q)?, l2_normalize(g, k)?);
    let mut axes: Vec<usize> = (0..k.rank()).collect();
    if let [.., a, b] = axes.as_mut_slice() {
        std::mem::swap(a, b);
    }
    let k = g.transpose(&k, &axes)?;
    let cosine = g.matmul(&q, &k)?;
    let angle = arc_cosine(g, &cosine)?;
    let apart = g.scale(&angle, -std::f64::consts::FRAC_1_PI)?;
    let one = g.scalar(1.0);
    let same = g.add(&apart, &one)?;
    let bits = g.scalar(bits as f32);
    g.binary(Binary::Pow, &same, &bits)
}

/// The arc cosine of x, clamped to -1 and 1, by operators that every backend has: a polynomial times a square root.
///
/// # Errors
/// When x is not floating point.
pub fn arc_cosine(g: &mut Graph, x: &Tensor) -> Result<Tensor> {
    let size = g.unary(Unary::Abs, x);
    let size = g.clip(&size, 0.0, 1.0)?;
    let [first, .., last] = COEFFICIENTS;
    let mut polynomial = g.scale(&size, f64::from(last))?;
    for coefficient in COEFFICIENTS[1..7].iter().rev() {
        let coefficient = g.scalar(*coefficient);
        let sum = g.add(&polynomial, &coefficient)?;
        polynomial = g.mul(&sum, &size)?;
    }
    let first = g.scalar(first);
    let polynomial = g.add(&polynomial, &first)?;
    let one = g.scalar(1.0);
    let rest = g.sub(&one, &size)?;
    let root = g.unary(Unary::Sqrt, &rest);
    let angle = g.mul(&root, &polynomial)?;
    // arccos(-x) is π - arccos(x).
    let half = g.scalar(std::f32::consts::FRAC_PI_2);
    let from_half = g.sub(&angle, &half)?;
    let sign = g.unary(Unary::Sign, x);
    let signed = g.mul(&sign, &from_half)?;
    g.add(&signed, &half)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{expect, refusal};
    use super::*;

    #[test]
    fn the_arc_cosine_is_exact_to_single_precision() {
        let values = [-1.0_f32, -0.9, -0.5, -0.1, 0.0, 0.001, 0.3, 0.75, 0.99, 1.0, 1.000_001];
        let build = |g: &mut Graph| {
            let x = g.constant(&[11], values.to_vec())?;
            let x = arc_cosine(g, &x)?;
            let one = g.scalar(1.0);
            g.add(&x, &one)
        };
        expect(&[], build, &[11], &values.map(|x| x.clamp(-1.0, 1.0).acos() + 1.0));
    }

    #[test]
    fn vectors_collide_by_the_angle_between_them() {
        let build = |g: &mut Graph| {
            let q = g.constant(&[1, 1, 2], vec![3.0, 0.0])?;
            let k = g.constant(&[1, 3, 2], vec![2.0, 0.0, 0.0, 5.0, 1.0, 1.0])?;
            collision_probability(g, &q, &k, 2)
        };
        // The same direction, a quarter of a turn and an eighth: (1 - 1/2)² and (1 - 1/4)².
        expect(&[], build, &[1, 1, 3], &[1.0, 0.25, 0.5625]);
        let problem = refusal(|g| {
            let q = g.constant(&[1, 2], vec![1.0, 0.0])?;
            let k = g.constant(&[1, 3], vec![1.0, 0.0, 0.0])?;
            collision_probability(g, &q, &k, 2)
        });
        assert!(problem.contains("MatMul"), "{problem}");
    }
}
