//! Mask units, the windows of Hiera (arXiv:2306.00989): the order of their tokens, pooling and attention.

use super::split_last;
use crate::graph::{Attention, Dim, Graph, Reduction, Scope, Tensor, show};
use crate::{Result, dims};

/// The tokens of a grid, counted row by row, in the order in which those that are pooled together stand apart by as much as the
/// sequence is shorter afterwards (`unroll` of Hiera): each of `schedule` is by how much a pool makes rows and columns fewer.
pub fn unroll_order([rows, columns]: [usize; 2], schedule: &[[usize; 2]]) -> Vec<usize> {
    let Some((&[down, across], rest)) = schedule.split_first() else { return (0..rows * columns).collect() };
    let narrow = columns / across;
    let inner = unroll_order([rows / down, narrow], rest);
    let mut order = vec![];
    for row in 0..down {
        for column in 0..across {
            let token =
                |token: &usize| (token / narrow * down + row) * columns + token % narrow * across + column;
            order.extend(inner.iter().map(token));
        }
    }
    order
}

/// Positions of x `[batch, positions, channels]` in this order.
///
/// # Errors
/// When x has not these axes.
pub fn reorder_tokens(g: &mut Graph, x: &Tensor, order: &[usize]) -> Result<Tensor> {
    let ids = g.integers(&[order.len()], order.iter().map(|&token| token as i64).collect())?;
    g.gather(x, &ids, 1)
}

/// The largest of each `count` parts of a sequence: x `[batch, positions, channels]` to `[batch, positions / count, channels]`.
///
/// # Errors
/// When x has not these axes.
pub fn max_pool_tokens(g: &mut Graph, x: &Tensor, count: usize) -> Result<Tensor> {
    let [batch, positions, channels] = x.shape() else {
        return Err(g.error("Reduce", format!("{} is not [batch, positions, channels]", show(x.shape()))));
    };
    let shape = dims![batch, count, positions.floor_div(count), channels];
    let x = g.reshape(x, shape)?;
    g.reduce(Reduction::Max, &x, &[1], false)
}

/// Self-attention within mask units whose queries may be pooled (`HieraMaskUnitAttention`).
#[derive(Clone, Copy, Debug)]
pub struct MaskUnitAttention {
    /// The width of the result.
    pub width: usize,
    /// The number of heads.
    pub heads: usize,
    /// How many queries become one.
    pub pools: usize,
    /// The pooled tokens of a mask unit; 0 where all tokens attend to each other.
    pub window: usize,
}

impl MaskUnitAttention {
    /// x `[batch, positions, channels]` to `[batch, positions / pools, width]`, with weights at `qkv` and `proj` of `w`.
    ///
    /// # Errors
    /// When the number of positions is not fixed.
    pub fn forward(&self, g: &mut Graph, w: &Scope, x: &Tensor) -> Result<Tensor> {
        let &Self { width, heads, pools, window } = self;
        let (Some(batch), Some(positions)) = (x.dim(0).cloned(), x.dim(1).and_then(Dim::fixed)) else {
            let problem = format!("mask units need a fixed number of positions, not {}", show(x.shape()));
            return Err(g.error("Attention", problem));
        };
        let units = if window == 0 { 1 } else { (positions / (pools * window)).max(1) };
        let each = positions / units;
        let qkv = g.linear(&w.scope("qkv"), x, 3 * width)?;
        let qkv = g.reshape(&qkv, dims![&batch, each, units, 3 * width])?;
        let qkv = g.transpose(&qkv, &[0, 2, 1, 3])?;
        let qkv = g.reshape(&qkv, dims![batch.clone() * Dim::from(units), each, 3 * width])?;
        let [q, k, v] = split_last(g, &qkv, [width; 3])?;
        let q = if pools > 1 { max_pool_tokens(g, &q, pools)? } else { q };
        let x = g.attention(&q, &k, &v, &Attention { heads, kv_heads: heads, ..Attention::default() })?;
        let x = g.reshape(&x, dims![&batch, units, each / pools, width])?;
        let x = g.transpose(&x, &[0, 2, 1, 3])?;
        let x = g.reshape(&x, dims![&batch, positions / pools, width])?;
        g.linear(&w.scope("proj"), &x, width)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::expect;
    use super::*;

    #[test]
    fn tokens_that_are_pooled_together_stand_a_quarter_apart() {
        assert_eq!(unroll_order([2, 4], &[[2, 2]]), [0, 2, 1, 3, 4, 6, 5, 7]);
        assert_eq!(unroll_order([4, 2], &[[2, 1], [2, 2]]), [0, 1, 4, 5, 2, 3, 6, 7]);
        let pooled = |g: &mut Graph| {
            let x = g.constant(&[1, 8, 1], vec![3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0])?;
            let x = reorder_tokens(g, &x, &unroll_order([2, 4], &[[2, 2]]))?;
            max_pool_tokens(g, &x, 4)
        };
        expect(&[], pooled, &[1, 2, 1], &[9.0, 6.0]);
    }

    #[test]
    fn tokens_attend_within_their_unit() {
        // Values are the tokens themselves, queries and keys nothing: the mean of a unit, of which every second token is one.
        let attend = |window: usize, pools: usize| {
            move |g: &mut Graph| {
                let x = g.constant(&[1, 4, 1], vec![1.0, 10.0, 3.0, 30.0])?;
                let attention = MaskUnitAttention { width: 1, heads: 1, pools, window };
                attention.forward(g, &Scope::root(), &x)
            }
        };
        let weights: [(&str, &[f32]); 4] = [
            ("qkv.weight", &[0.0, 0.0, 1.0]),
            ("qkv.bias", &[0.0; 3]),
            ("proj.weight", &[1.0]),
            ("proj.bias", &[0.5]),
        ];
        expect(&weights, attend(2, 1), &[1, 4, 1], &[2.5, 20.5, 2.5, 20.5]);
        expect(&weights, attend(1, 2), &[1, 2, 1], &[2.5, 20.5]);
        expect(&weights, attend(0, 1), &[1, 4, 1], &[11.5; 4]);
    }
}
