//! Mixture of experts: routers (top-k, group-limited, sparsemixer), routing weights, and the weighted sum of experts.

use crate::Result;
use crate::graph::{Binary, Dim, Graph, Reduction, Scope, Tensor, Unary, show};

/// Top-k selection along the last axis, as a mask: bool of the shape of `scores`, true at the `count` largest, of equal ones
/// at the first.
///
/// # Errors
/// When the last axis has no fixed length, or is shorter than `count`.
pub fn top_k(g: &mut Graph, scores: &Tensor, count: usize) -> Result<Tensor> {
    let shape = scores.shape().to_vec();
    let length = scores.dim(-1).and_then(Dim::fixed).filter(|&length| (1..=length).contains(&count));
    let Some(length) = length else {
        let problem = format!("{} has no {count} largest along its last axis", show(&shape));
        return Err(g.error("top_k", problem));
    };
    let axis = shape.len() - 1;
    let places = g.arange(&length.into());
    let least = g.scalar(f32::MIN);
    let mut left = scores.clone();
    for _ in 0..count {
        let best = g.argmax(&left, axis)?;
        let best = g.unsqueeze(&best, axis)?;
        let here = g.binary(Binary::Equal, &best, &places)?;
        left = g.select(&here, &least, &left)?;
    }
    g.binary(Binary::Less, &left, scores)
}

/// Routing weights: the scores of the chosen experts and 0 elsewhere; `normalised` to a sum of 1 (`norm_topk_prob`).
///
/// # Errors
/// When the shapes differ.
pub fn routing_weights(g: &mut Graph, scores: &Tensor, chosen: &Tensor, normalised: bool) -> Result<Tensor> {
    let zero = g.scalar(0.0);
    let shares = g.select(chosen, scores, &zero)?;
    if !normalised {
        return Ok(shares);
    }
    let sum = g.reduce(Reduction::Sum, &shares, &[scores.rank() - 1], true)?;
    g.div(&shares, &sum)
}

/// Routing weights by softmax over the chosen logits alone, 0 elsewhere (`GptOssTopKRouter`).
///
/// # Errors
/// When the shapes differ.
pub fn softmax_after_topk(g: &mut Graph, logits: &Tensor, chosen: &Tensor) -> Result<Tensor> {
    let least = g.scalar(f32::MIN);
    let logits = g.select(chosen, logits, &least)?;
    g.softmax(&logits)
}

/// Group-limited top-k routing (`DeepseekV3TopkRouter`, `n_group` and `topk_group`): scores of experts
/// `[batch, sequence, experts]`, the lowest number where their group is not among the `best` of `groups`, which are ranked by
/// the sum of the `judged` largest scores in each.
///
/// # Errors
/// When the experts do not divide into the groups, or there are fewer than are asked for.
pub fn group_limited_topk(
    g: &mut Graph,
    scores: &Tensor,
    [groups, best]: [usize; 2],
    judged: usize,
) -> Result<Tensor> {
    let ([batch, sequence, experts], true) = (scores.shape(), groups > 0) else {
        return Err(g.error("group_limited_topk", format!("{} in {groups} groups", show(scores.shape()))));
    };
    if groups == 1 {
        return Ok(scores.clone());
    }
    let size = experts.fixed().unwrap_or_default() / groups;
    let grouped = g.reshape(scores, crate::dims![batch, sequence, groups, size])?;
    let largest = top_k(g, &grouped, judged)?;
    let largest = routing_weights(g, &grouped, &largest, false)?;
    let sums = g.reduce(Reduction::Sum, &largest, &[3], false)?;
    let chosen = top_k(g, &sums, best)?;
    let chosen = g.unsqueeze(&chosen, 3)?;
    let least = g.scalar(f32::MIN);
    let kept = g.select(&chosen, &grouped, &least)?;
    g.reshape(&kept, scores.shape().to_vec())
}

/// Routing weights of SparseMixer-v2 (`sparsemixer` of `transformers.models.phimoe`; arXiv:2409.12136) for two experts: the
/// softmax of each over the logits that are less than `2 · noise` below it, relative to the larger magnitude.
///
/// # Errors
/// When the last axis of the logits has no fixed length, or there is one expert only.
pub fn sparse_mixer(g: &mut Graph, logits: &Tensor, noise: f64) -> Result<Tensor> {
    let axis = logits.rank().saturating_sub(1);
    let (least, most) = (g.scalar(f32::MIN), g.scalar(2.0 * noise as f32));
    let magnitudes = g.unary(Unary::Abs, logits);
    let mut left = logits.clone();
    let mut both: Option<Tensor> = None;
    for _ in 0..2 {
        let best = g.reduce(Reduction::Max, &left, &[axis], true)?;
        let below = g.sub(&best, logits)?;
        let scale = g.binary(Binary::Max, &magnitudes, &best)?;
        let below = g.div(&below, &scale)?;
        let far = g.binary(Binary::Greater, &below, &most)?;
        let near = g.select(&far, &least, &left)?;
        let scores = g.softmax(&near)?;
        let chosen = top_k(g, &left, 1)?;
        let share = routing_weights(g, &scores, &chosen, false)?;
        left = g.select(&chosen, &least, &left)?;
        both = Some(match both {
            Some(first) => g.add(&first, &share)?,
            None => share,
        });
    }
    both.ok_or_else(|| g.error("sparse_mixer", "nothing was chosen"))
}

/// Mixture of experts: the outputs of the experts at `w` for x `[batch, sequence, width]`, summed by routing weights.
///
/// # Errors
/// As [`combine_experts`].
pub fn experts(
    g: &mut Graph,
    w: &Scope,
    x: &Tensor,
    shares: &Tensor,
    expert: impl Fn(&mut Graph, &Scope, &Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    combine_experts(g, shares, |g, index| expert(g, &w.index(index), x))
}

/// Weighted sum of the experts' outputs `[batch, sequence, width]`, by routing weights `[batch, sequence, experts]`.
///
/// Every expert computes every token, so that shapes are fixed; weights of 0 add nothing.
///
/// # Errors
/// When `shares` is not `[batch, sequence, experts]` with a fixed number of experts, or an expert does not fit.
pub fn combine_experts(
    g: &mut Graph,
    shares: &Tensor,
    expert: impl Fn(&mut Graph, usize) -> Result<Tensor>,
) -> Result<Tensor> {
    let mut sum: Option<Tensor> = None;
    for index in 0..shares.dim(-1).and_then(Dim::fixed).unwrap_or_default() {
        let h = expert(g, index)?;
        let share = g.slice(shares, 2, index..index + 1)?;
        let h = g.mul(&h, &share)?;
        sum = Some(match sum {
            Some(sum) => g.add(&sum, &h)?,
            None => h,
        });
    }
    sum.ok_or_else(|| g.error("combine_experts", format!("{} has no experts", show(shares.shape()))))
}

/// Linear layer of one expert whose weights are stacked: x `[…, in]` by `weights[index]` of `[experts, out, in]`, or of
/// `[experts, in, out]` where they are `transposed`.
///
/// # Errors
/// When there is no such expert, or x does not fit.
pub fn expert_linear(
    g: &mut Graph,
    x: &Tensor,
    weights: &Tensor,
    index: usize,
    transposed: bool,
) -> Result<Tensor> {
    let weight = g.slice(weights, 0, index..index + 1)?;
    let weight = g.reshape(&weight, weights.shape().get(1..).unwrap_or_default().to_vec())?;
    let weight = if transposed { weight } else { g.transpose(&weight, &[1, 0])? };
    g.matmul(x, &weight)
}
