//! Hyper-connections: several residual streams, of which each branch reads a weighted sum and to all of which it writes.

use super::rms_norm_no_affine;
use crate::graph::{Dim, Graph, Reduction, Scope, Tensor, Unary, show};
use crate::{Result, dims};

/// Independent hyper-connections (`HYV4HyperConnection`; hyper-connections: Zhu et al., 2024, arXiv:2409.19606) over streams
/// `[batch, sequence, streams, hidden]`.
#[derive(Clone, Copy, Debug)]
pub struct HyperConnection {
    /// The number of streams (`hc_mult`).
    pub streams: usize,
    /// What is added to each weight of a stream (`hc_eps`).
    pub eps: f64,
    /// The epsilon of the RMS norm of all streams together.
    pub norm_eps: f64,
    /// The largest weight with which a branch is written to a stream (`hc_magnitude`).
    pub magnitude: f64,
}

impl HyperConnection {
    /// What a branch reads, `[batch, sequence, hidden]`, and the weights `[batch, sequence, streams, 1]` with which it is written: by
    /// `fn` `[2·streams, streams·hidden]`, `base` `[2·streams]` and `scale` `[2]` at `w`.
    ///
    /// # Errors
    /// When x has another shape.
    pub fn read(&self, g: &mut Graph, w: &Scope, x: &Tensor) -> Result<(Tensor, Tensor)> {
        let (count, logits) = (self.streams, self.logits(g, &w.name("fn"), x, 2 * self.streams)?);
        let base = g.weight(&w.name("base"), &[2 * count])?;
        let scale = g.weight(&w.name("scale"), &[2])?;
        let mut part = |of: usize| {
            let range = of * count..(of + 1) * count;
            let (logits, base) = (g.slice(&logits, 2, range.clone())?, g.slice(&base, 0, range)?);
            let scale = g.slice(&scale, 0, of..of + 1)?;
            let logits = g.mul(&logits, &scale)?;
            let logits = g.add(&logits, &base)?;
            Ok(g.unary(Unary::Sigmoid, &logits))
        };
        let (read, written) = (part(0)?, part(1)?);
        let written = g.scale(&written, self.magnitude)?;
        let written = self.above_zero(g, &written)?;
        let h = self.sum(g, x, &read)?;
        Ok((h, g.unsqueeze(&written, 3)?))
    }

    /// Streams x with what a branch gave, h `[batch, sequence, hidden]`, added by the weights of [`HyperConnection::read`].
    ///
    /// # Errors
    /// When the shapes do not go together.
    pub fn write(&self, g: &mut Graph, x: &Tensor, h: &Tensor, weights: &Tensor) -> Result<Tensor> {
        let h = g.unsqueeze(h, 2)?;
        let h = g.mul(&h, weights)?;
        g.add(x, &h)
    }

    /// The streams as one, `[batch, sequence, hidden]` (`HYV4HyperHead`), by `hc_fn`, `hc_base` and `hc_scale` at `w`.
    ///
    /// # Errors
    /// When x has another shape.
    pub fn collapse(&self, g: &mut Graph, w: &Scope, x: &Tensor) -> Result<Tensor> {
        let logits = self.logits(g, &w.name("hc_fn"), x, self.streams)?;
        let base = g.weight(&w.name("hc_base"), &[self.streams])?;
        let scale = g.weight(&w.name("hc_scale"), &[1])?;
        let logits = g.mul(&logits, &scale)?;
        let logits = g.add(&logits, &base)?;
        let read = g.unary(Unary::Sigmoid, &logits);
        self.sum(g, x, &read)
    }

    /// A linear layer `weight` of all streams side by side, normalised.
    fn logits(&self, g: &mut Graph, weight: &str, x: &Tensor, out: usize) -> Result<Tensor> {
        let [batch, sequence, streams, Dim::Fixed(hidden)] = x.shape() else {
            return Err(g.error("HyperConnection", format!("{} has no streams", show(x.shape()))));
        };
        let width = streams.fixed().unwrap_or_default() * hidden;
        let flat = g.reshape(x, dims![batch, sequence, width])?;
        let flat = rms_norm_no_affine(g, &flat, self.norm_eps)?;
        g.linear_with(weight, None, &flat, out)
    }

    /// The sum of streams, weighted.
    fn sum(&self, g: &mut Graph, x: &Tensor, weights: &Tensor) -> Result<Tensor> {
        let weights = self.above_zero(g, weights)?;
        let weights = g.unsqueeze(&weights, 3)?;
        let weighted = g.mul(x, &weights)?;
        g.reduce(Reduction::Sum, &weighted, &[2], false)
    }

    /// Weights, each with `eps` added.
    fn above_zero(&self, g: &mut Graph, weights: &Tensor) -> Result<Tensor> {
        let eps = g.scalar(self.eps as f32);
        g.add(weights, &eps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::{expect, refusal};

    const CONNECTION: HyperConnection =
        HyperConnection { streams: 2, eps: 0.25, norm_eps: 0.0, magnitude: 2.0 };

    /// Two streams of two channels, whose mean square is 1.
    fn streams(g: &mut Graph) -> Result<Tensor> {
        g.constant(&[1, 1, 2, 2], vec![1.0, 1.0, -1.0, 1.0])
    }

    /// A logarithm, so that the sigmoid is 3/4.
    const LN_3: f32 = 1.098_612_3;

    /// Logits of 0, of the first channel of the first stream, and of the scales and biases that follow.
    const WEIGHTS: [(&str, &[f32]); 3] = [
        ("hc.fn", &[0., 0., 0., 0., 1., 0., 0., 0., 1., 0., 0., 0., 0., 0., 0., 0.]),
        ("hc.base", &[0.0, 0.0, 0.0, -LN_3]),
        ("hc.scale", &[LN_3, -LN_3]),
    ];

    #[test]
    fn a_branch_reads_a_weighted_sum_of_streams() {
        // Weights are 1/2 and 3/4, and a quarter more.
        let read = |g: &mut Graph| {
            let x = streams(g)?;
            Ok(CONNECTION.read(g, &g.scope("hc"), &x)?.0)
        };
        expect(&WEIGHTS, read, &[1, 1, 2], &[-0.25, 1.75]);
    }

    #[test]
    fn a_branch_is_added_to_all_streams() {
        // Both are written with twice a quarter, and a quarter more.
        let write = |g: &mut Graph| {
            let x = streams(g)?;
            let (_, weights) = CONNECTION.read(g, &g.scope("hc"), &x)?;
            let h = g.constant(&[1, 1, 2], vec![4.0, 8.0])?;
            CONNECTION.write(g, &x, &h, &weights)
        };
        expect(&WEIGHTS, write, &[1, 1, 2, 2], &[4.0, 7.0, 2.0, 7.0]);
    }

    #[test]
    fn streams_collapse_into_one() {
        let weights: [(&str, &[f32]); 3] =
            [("hc_fn", &[0., 0., 0., 0., 0., 0., 1., 0.]), ("hc_base", &[LN_3, 0.0]), ("hc_scale", &[LN_3])];
        let build = |g: &mut Graph| {
            let x = streams(g)?;
            CONNECTION.collapse(g, &g.root(), &x)
        };
        expect(&weights, build, &[1, 1, 2], &[0.5, 1.5]);
    }

    #[test]
    fn what_has_no_streams_is_refused() {
        let flat = refusal(|g| {
            let x = g.constant(&[1, 2, 2], vec![0.0; 4])?;
            CONNECTION.collapse(g, &g.root(), &x)
        });
        insta::assert_snapshot!(flat, @"HyperConnection in the root: [1, 2, 2] has no streams");
    }
}
