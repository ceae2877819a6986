//! Masks of attention as numbers that are added to the scores.

use crate::Result;
use crate::dims;
use crate::graph::{AttentionOp, Binary, Dim, Dtype, Graph, MASKED_SCORE, Op, Reduction, Tensor};

/// What a masked score gets added: [`MASKED_SCORE`], in half precision the lowest number there is.
fn masked(float: Dtype) -> f32 {
    match float {
        Dtype::F16 => -65504.0,
        _ => MASKED_SCORE,
    }
}

/// Lower than what is added to scores that are seen in half precision, and higher than what hides them.
const LEAST_SEEN: f32 = -30000.0;

/// How many keys there are, with or without an axis for heads.
pub(super) fn key_count(keys: &Tensor) -> &Dim {
    &keys.shape()[keys.rank() - 2]
}

/// A mask of booleans as numbers to add.
pub(super) fn additive(g: &mut Graph, mask: &Tensor, float: Dtype) -> Result<Tensor> {
    if mask.dtype() != Dtype::Bool {
        return Ok(mask.clone());
    }
    let (seen, hidden) = (g.number(float, 0.0), g.number(float, masked(float)));
    g.select(mask, &seen, &hidden)
}

/// A bias for every query: `[…, q, k]`. Fused operators broadcast it over batch and heads alone.
pub(super) fn for_each_query(g: &mut Graph, bias: &Tensor, [q, k]: [&Tensor; 2]) -> Result<Tensor> {
    let (rank, queries) = (bias.rank(), &q.shape()[q.rank() - 2]);
    if rank < 2 || bias.shape()[rank - 2] == *queries {
        return Ok(bias.clone());
    }
    let mut shape = bias.shape().to_vec();
    shape[rank - 2] = queries.clone();
    shape[rank - 1] = key_count(k).clone();
    g.expand(bias, shape)
}

/// A bias with axes for batch and heads, whichever of them it had.
pub(super) fn four_axes(g: &mut Graph, bias: &Tensor, [q, k]: [&Tensor; 2]) -> Result<Tensor> {
    match bias.rank() {
        4 => Ok(bias.clone()),
        0 | 1 => g.expand(bias, dims![1, 1, &q.shape()[1], key_count(k)]),
        rank => {
            let mut shape = vec![Dim::Fixed(1); 4 - rank];
            shape.extend_from_slice(bias.shape());
            g.reshape(bias, shape)
        }
    }
}

/// `[q, k]`: 0 where a query sees a key, far below elsewhere; queries are the last positions of the keys.
pub(super) fn causal_bias(g: &mut Graph, queries: &Dim, keys: &Dim, float: Dtype) -> Result<Tensor> {
    let hidden = g.number(float, masked(float));
    let full = g.expand(&hidden, dims![queries, keys])?;
    Ok(g.trilu(&full, keys.clone() - queries.clone() + Dim::Fixed(1)))
}

/// Scores where a mask lets them be seen. Half precision has no number that every score is lost in: where a mask of booleans hides
/// them, scores are one and the same number instead, so that a position that sees nothing still gets the mean of all values. For a
/// mask of numbers the queries are to be those that [`see`].
pub(super) fn masked_scores(g: &mut Graph, scores: &Tensor, mask: &Tensor) -> Result<Tensor> {
    let half = scores.dtype() == Dtype::F16;
    if half && mask.dtype() == Dtype::Bool {
        let hidden = g.number(Dtype::F16, masked(Dtype::F16));
        return g.select(mask, scores, &hidden);
    }
    let mut bias = additive(g, mask, scores.dtype())?;
    if half {
        // What several masks hide is infinite.
        let op = Op::Clip { low: masked(Dtype::F16), high: None };
        bias = g.node(op, &[&bias], bias.dtype(), bias.shape().to_vec());
    }
    g.add(scores, &bias)
}

/// Queries by head, `[batch, heads, q, size]`, in half precision zeros where a mask of numbers hides all keys.
pub(super) fn see(g: &mut Graph, q: &Tensor, mask: &Tensor) -> Result<Tensor> {
    if q.dtype() != Dtype::F16 || mask.dtype() == Dtype::Bool || mask.rank() == 0 {
        return Ok(q.clone());
    }
    let sight = sight(g, mask)?;
    g.mul(q, &sight)
}

/// Queries `[batch, q, heads·size]` where they see something and zeros where they do not, so that these score all
/// keys alike: in half precision scores are not lost in what masked ones get added, as there is no number so low.
pub(super) fn seeing(g: &mut Graph, op: AttentionOp, q: &Tensor, bias: &Tensor) -> Result<Tensor> {
    let [batch, queries, width] = q.shape() else { return Ok(q.clone()) };
    if q.dtype() != Dtype::F16 || bias.rank() == 0 {
        return Ok(q.clone());
    }
    let sight = sight(g, bias)?;
    let sight = g.transpose(&sight, &[0, 2, 1, 3])?;
    let size = width.fixed().unwrap_or_default() / op.heads.max(1);
    let apart = g.reshape(q, dims![batch, queries, op.heads, size])?;
    let seen = g.mul(&apart, &sight)?;
    g.reshape(&seen, q.shape().to_vec())
}

/// 1 for queries that see something and 0 for those that do not, nor what is hidden once where other keys are hidden twice: a bias
/// `[…, k]` to four axes, the last of length 1.
fn sight(g: &mut Graph, bias: &Tensor) -> Result<Tensor> {
    let most = g.reduce(Reduction::Max, bias, &[bias.rank() - 1], true)?;
    let hidden = g.number(bias.dtype(), -LEAST_SEEN);
    let above = g.binary(Binary::Add, &most, &hidden)?;
    let op = Op::Clip { low: 0.0, high: Some(1.0) };
    let sees = g.node(op, &[&above], above.dtype(), above.shape().to_vec());
    let mut shape = vec![Dim::Fixed(1); 4_usize.saturating_sub(sees.rank())];
    if shape.is_empty() {
        return Ok(sees);
    }
    shape.extend_from_slice(sees.shape());
    g.reshape(&sees, shape)
}
