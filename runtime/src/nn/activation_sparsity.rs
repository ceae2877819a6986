//! Activations of which most are zero: those that a normal distribution would have below a share.

use crate::Result;
use crate::graph::{Graph, Reduction, Tensor, Unary};

/// What of x lies above the quantile of a normal distribution with the mean and the deviation of its last axis, and zero for the
/// rest (`Gemma3nTextMLP._gaussian_topk`).
///
/// # Errors
/// When x is not floating point.
pub fn gaussian_topk(g: &mut Graph, x: &Tensor, share: f64) -> Result<Tensor> {
    let axis = x.shape().len() - 1;
    let mean = g.reduce(Reduction::Mean, x, &[axis], true)?;
    let x = g.sub(x, &mean)?;
    let squares = g.mul(&x, &x)?;
    let variance = g.reduce(Reduction::Mean, &squares, &[axis], true)?;
    let deviation = g.unary(Unary::Sqrt, &variance);
    // The reference takes the share in single precision.
    let cutoff = g.scale(&deviation, normal_quantile(f64::from(share as f32)))?;
    let x = g.sub(&x, &cutoff)?;
    g.activation(crate::nn::Activation::Relu, &x)
}

/// The number below which a share of a standard normal distribution lies (Acklam's rational functions, relative error 1.2e-9).
pub fn normal_quantile(share: f64) -> f64 {
    const CENTRE: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    const CENTRE_BY: [f64; 5] = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
    ];
    const TAIL: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const TAIL_BY: [f64; 4] =
        [7.784_695_709_041_462e-3, 3.224_671_290_700_398e-1, 2.445_134_137_142_996, 3.754_408_661_907_416];
    /// Beyond this share from either end, the tails' functions hold.
    const LOW: f64 = 0.02425;
    let polynomial = |factors: &[f64], x: f64| factors.iter().fold(0.0, |sum, factor| sum * x + factor);
    let tail = |share: f64| {
        let q = (-2.0 * share.ln()).sqrt();
        polynomial(&TAIL, q) / (polynomial(&TAIL_BY, q) * q + 1.0)
    };
    if share <= 0.0 {
        f64::NEG_INFINITY
    } else if share >= 1.0 {
        f64::INFINITY
    } else if share < LOW {
        tail(share)
    } else if share > 1.0 - LOW {
        -tail(1.0 - share)
    } else {
        let q = share - 0.5;
        let r = q * q;
        polynomial(&CENTRE, r) * q / (polynomial(&CENTRE_BY, r) * r + 1.0)
    }
}

/// The share of a standard normal distribution below a number, found by halves.
pub fn normal_share(number: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if normal_quantile(middle) < number { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::expect;

    #[test]
    fn what_is_above_the_quantile_stays() {
        // The mean is 1, and with half of the distribution above it the cutoff.
        let half = |g: &mut Graph| {
            let x = g.constant(&[1, 4], vec![0.0, 0.0, 0.0, 4.0])?;
            gaussian_topk(g, &x, 0.5)
        };
        expect(&[], half, &[1, 4], &[0.0, 0.0, 0.0, 3.0]);
        // One deviation above the mean, which is 2 and whose deviation is 1.
        let sixth = |g: &mut Graph| {
            let x = g.constant(&[1, 2], vec![1.0, 3.0])?;
            gaussian_topk(g, &x, 0.841_344_746_068_542_9)
        };
        expect(&[], sixth, &[1, 2], &[0.0, 0.0]);
    }

    #[test]
    fn quantiles_are_those_of_the_normal_distribution() {
        for (share, wanted) in [
            (0.5, 0.0),
            (0.95, 1.644_853_626_951_472),
            (0.99, 2.326_347_874_040_841),
            (0.01, -2.326_347_874_040_841),
        ] {
            assert!((normal_quantile(share) - wanted).abs() < 3e-9, "{share}");
            assert!((normal_share(wanted) - share).abs() < 1e-9, "{share}");
        }
        assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
        assert!(normal_share(f64::NEG_INFINITY) < 1e-20);
    }
}
