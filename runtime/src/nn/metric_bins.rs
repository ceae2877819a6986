//! Metric depth by bins whose centres attractors move (ZoeDepth, arXiv:2302.12288).

use crate::Result;
use crate::graph::{Dim, Graph, Tensor, Unary, show};

/// The shares of `count` bins by a binomial distribution (`LogBinomialSoftmax`), of `probability` and `temperature`
/// `[batch, 1, rows, columns]`: `[batch, count, rows, columns]`. In single precision: what is divided by a low temperature does not
/// fit into half.
///
/// # Errors
/// When these have other axes, or there are no bins.
pub fn log_binomial_softmax(
    g: &mut Graph,
    probability: &Tensor,
    temperature: &Tensor,
    count: usize,
) -> Result<Tensor> {
    g.in_single(|g| binomial_shares(g, probability, temperature, count))
}

fn binomial_shares(
    g: &mut Graph,
    probability: &Tensor,
    temperature: &Tensor,
    count: usize,
) -> Result<Tensor> {
    let bins: Vec<f32> = (0..count).map(|bin| bin as f32).collect();
    let last = count.saturating_sub(1) as f32;
    // By Stirling's approximation, with the reference's small numbers.
    let (n, small) = (last + 1e-7, 1e-7_f32);
    let binomial = |&bin: &f32| {
        let bin = bin + small;
        n * n.ln() - bin * bin.ln() - (n - bin) * (n - bin + small).ln()
    };
    let shape = [1, count, 1, 1];
    let binomials = g.constant(&shape, bins.iter().map(binomial).collect())?;
    let others = g.constant(&shape, bins.iter().map(|bin| last - bin).collect())?;
    let bins = g.constant(&shape, bins)?;
    let one = g.scalar(1.0);
    let other = g.sub(&one, probability)?;
    let mut weighed = |weights: &Tensor, x: &Tensor| {
        let x = g.clip(x, 1e-4, 1.0)?;
        let x = g.unary(Unary::Log, &x);
        g.mul(weights, &x)
    };
    let (yes, no) = (weighed(&bins, probability)?, weighed(&others, &other)?);
    let y = g.add(&binomials, &yes)?;
    let y = g.add(&y, &no)?;
    let y = g.div(&y, temperature)?;
    let y = g.transpose(&y, &[0, 2, 3, 1])?;
    let y = g.softmax(&y)?;
    g.transpose(&y, &[0, 3, 1, 2])
}

/// How far `points` `[batch, attractors, rows, columns]` move `centers` `[batch, bins, rows, columns]`, all together
/// (`inv_attractor`): `[batch, bins, rows, columns]`.
///
/// # Errors
/// When the number of attractors is not fixed, or there are none.
pub fn attract(g: &mut Graph, points: &Tensor, centers: &Tensor) -> Result<Tensor> {
    let count = points.dim(1).and_then(Dim::fixed).unwrap_or(0);
    let mut sum: Option<Tensor> = None;
    for index in 0..count {
        let point = g.slice(points, 1, index..index + 1)?;
        let away = g.sub(&point, centers)?;
        let square = g.mul(&away, &away)?;
        let square = g.scale(&square, 300.0)?;
        let one = g.scalar(1.0);
        let near = g.add(&square, &one)?;
        let moved = g.div(&away, &near)?;
        sum = Some(match sum {
            Some(sum) => g.add(&sum, &moved)?,
            None => moved,
        });
    }
    sum.ok_or_else(|| g.error("attract", format!("{} has no attractors", show(points.shape()))))
}

/// The channels of each pixel in ascending order (`torch.sort`): `[batch, channels, rows, columns]`.
///
/// # Errors
/// When the number of channels is not fixed.
pub fn sort_channels(g: &mut Graph, x: &Tensor) -> Result<Tensor> {
    let Some(count) = x.dim(1).and_then(Dim::fixed) else {
        return Err(g.error("sort_channels", format!("{} has no fixed channels", show(x.shape()))));
    };
    let x = g.unary(Unary::Neg, x);
    let x = g.transpose(&x, &[0, 2, 3, 1])?;
    let (sorted, _) = g.top_k(&x, count)?;
    let sorted = g.unary(Unary::Neg, &sorted);
    g.transpose(&sorted, &[0, 3, 1, 2])
}

#[cfg(test)]
mod tests {
    use super::super::testing::expect;
    use super::*;

    #[test]
    fn shares_are_those_of_a_binomial_distribution() {
        let build = |g: &mut Graph| {
            let probability = g.constant(&[1, 1, 1, 1], vec![0.25])?;
            let temperature = g.constant(&[1, 1, 1, 1], vec![1.0])?;
            log_binomial_softmax(g, &probability, &temperature, 3)
        };
        // 0.75², 4 * 0.25 * 0.75 by the approximation of 2, and 0.25².
        let all = [0.5625, 0.75, 0.0625].map(|share: f32| share / 1.375);
        expect(&[], build, &[1, 3, 1, 1], &all);
    }

    #[test]
    fn centers_move_towards_attractors() {
        let build = |g: &mut Graph| {
            let points = g.constant(&[1, 2, 1, 1], vec![0.1, 0.0])?;
            let centers = g.constant(&[1, 2, 1, 1], vec![0.0, 0.1])?;
            attract(g, &points, &centers)
        };
        // A tenth is divided by 1 + 300 / 100.
        expect(&[], build, &[1, 2, 1, 1], &[0.025, -0.025]);
    }

    #[test]
    fn channels_are_sorted() {
        let build = |g: &mut Graph| {
            let x = g.constant(&[1, 3, 1, 2], vec![3.0, 1.0, 1.0, 5.0, 2.0, -4.0])?;
            sort_channels(g, &x)
        };
        expect(&[], build, &[1, 3, 1, 2], &[1.0, -4.0, 2.0, 1.0, 3.0, 5.0]);
    }
}
