//! Keypoints: scores that are the largest around, descriptors between the places of a map, and keypoints of two images that match.

use crate::graph::{Binary, Dim, Dtype, Graph, Reduction, Tensor, Unary};
use crate::{Result, dims};

/// Non-maximum suppression (`simple_nms` of SuperPoint, arXiv:1712.07629): of scores `[images, rows, columns]` those that are the
/// largest within `radius`, and 0 in place of others. What such a one suppresses makes room twice for further ones.
///
/// # Errors
/// When there are not three axes.
pub fn suppress_non_maxima(g: &mut Graph, scores: &Tensor, radius: usize) -> Result<Tensor> {
    let shape = scores.shape().to_vec();
    let [images, rows, columns] = &shape[..] else {
        return Err(g.error("MaxPool", "scores are [images, rows, columns]"));
    };
    let scores = g.reshape(scores, dims![images, 1, rows, columns])?;
    let around = |g: &mut Graph, x: &Tensor| g.max_pool(x, &[2 * radius + 1; 2], &[1, 1], &[radius; 2]);
    let zero = g.scalar(0.0);
    let most = around(g, &scores)?;
    let mut kept = g.binary(Binary::Equal, &scores, &most)?;
    for _ in 0..2 {
        let near = g.cast(&kept, Dtype::F32);
        let near = around(g, &near)?;
        let near = g.binary(Binary::Greater, &near, &zero)?;
        let rest = g.select(&near, &zero, &scores)?;
        let most = around(g, &rest)?;
        let more = g.binary(Binary::Equal, &rest, &most)?;
        let far = g.unary(Unary::Not, &near);
        let more = g.binary(Binary::And, &more, &far)?;
        kept = g.binary(Binary::Or, &kept, &more)?;
    }
    let scores = g.select(&kept, &scores, &zero)?;
    g.reshape(&scores, shape)
}

/// Log-space optimal transport with a bin for what matches nothing (`log_optimal_transport` of SuperGlue, arXiv:1911.11763):
/// scores `[batch, m, n]` and the bin's, `[1, 1, 1]`, to logarithms of the assignment without the bins, `[batch, m, n]`.
///
/// # Errors
/// When there are not three axes.
pub fn log_optimal_transport(
    g: &mut Graph,
    scores: &Tensor,
    bin: &Tensor,
    iterations: usize,
) -> Result<Tensor> {
    let [batch, m, n] = scores.shape() else {
        return Err(g.error("LogSoftmax", "scores are [batch, m, n]"));
    };
    let (batch, m, n) = (batch.clone(), m.clone(), n.clone());
    let beside = g.expand(bin, dims![&batch, &m, 1])?;
    let below = g.expand(bin, dims![&batch, 1, n.clone() + Dim::Fixed(1)])?;
    let rows = g.concat(&[scores, &beside], 2)?;
    let couplings = g.concat(&[&rows, &below], 1)?;
    let [many, others] = [g.length(&m)?, g.length(&n)?];
    let all = g.add(&many, &others)?;
    let all = g.unary(Unary::Log, &all);
    // Each keypoint has the share of one, and the bin that of all of the other image.
    let own = g.unary(Unary::Neg, &all);
    let share = |g: &mut Graph, count: &Dim, others: &Tensor, axis: usize| {
        let bin = g.unary(Unary::Log, others);
        let bin = g.sub(&bin, &all)?;
        let mut shape = dims![1, 1, 1];
        let bin = g.expand(&bin, shape.clone())?;
        shape[axis] = count.clone();
        let own = g.expand(&own, shape)?;
        g.concat(&[&own, &bin], axis)
    };
    let [source, target] = [share(g, &m, &others, 1)?, share(g, &n, &many, 2)?];
    let mut u = g.scale(&source, 0.0)?;
    let mut v = g.scale(&target, 0.0)?;
    for _ in 0..iterations {
        let moved = g.add(&couplings, &v)?;
        let sum = log_sum_exp(g, &moved, 2)?;
        u = g.sub(&source, &sum)?;
        let moved = g.add(&couplings, &u)?;
        let sum = log_sum_exp(g, &moved, 1)?;
        v = g.sub(&target, &sum)?;
    }
    let logs = g.add(&couplings, &u)?;
    let logs = g.add(&logs, &v)?;
    let logs = g.add(&logs, &all)?;
    let logs = g.slice_dims(&logs, 1, Dim::Fixed(0), m)?;
    g.slice_dims(&logs, 2, Dim::Fixed(0), n)
}

/// The logarithm of the sum of exponentials along an axis, which stays (`torch.logsumexp`).
///
/// # Errors
/// When the axis does not exist.
pub fn log_sum_exp(g: &mut Graph, x: &Tensor, axis: usize) -> Result<Tensor> {
    let most = g.reduce(Reduction::Max, x, &[axis], true)?;
    let below = g.sub(x, &most)?;
    let powers = g.unary(Unary::Exp, &below);
    let sum = g.reduce(Reduction::Sum, &powers, &[axis], true)?;
    let sum = g.unary(Unary::Log, &sum);
    g.add(&sum, &most)
}

/// Which keypoints of two images match each other (`get_matches_from_scores` of LightGlue, arXiv:2306.13643): of each the other
/// image's that it prefers, where that prefers it too and the assignment's logarithms `[batch, m, n]` say more than `threshold`,
/// or else -1; and how surely, 0 where they do not prefer each other. With `strict`, as in SuperGlue, it is 0 below the threshold
/// as well. Indices `[batch, m]` and `[batch, n]` i64, then both images' scores.
///
/// # Errors
/// When there are not three axes.
pub fn mutual_matches(
    g: &mut Graph,
    logs: &Tensor,
    threshold: f64,
    strict: bool,
) -> Result<([Tensor; 2], [Tensor; 2])> {
    let [_, m, n] = logs.shape() else {
        return Err(g.error("ArgMax", "logarithms are [batch, m, n]"));
    };
    let (m, n) = (m.clone(), n.clone());
    let (zero, none) = (g.scalar(0.0), g.integer(-1));
    let [there, back] = [g.argmax(logs, 2)?, g.argmax(logs, 1)?];
    let mutual = |g: &mut Graph, own: &Tensor, other: &Tensor, count: &Dim| {
        let again = g.gather_elements(other, own, 1)?;
        let places = g.arange(count);
        g.binary(Binary::Equal, &again, &places)
    };
    let [first, second] = [mutual(g, &there, &back, &m)?, mutual(g, &back, &there, &n)?];
    let most = g.reduce(Reduction::Max, logs, &[2], false)?;
    let sure = g.unary(Unary::Exp, &most);
    let mut sure = g.select(&first, &sure, &zero)?;
    let least = g.scalar(threshold as f32);
    let mut enough = g.binary(Binary::Greater, &sure, &least)?;
    if strict {
        sure = g.select(&enough, &sure, &zero)?;
        enough = g.binary(Binary::Greater, &sure, &zero)?;
    }
    let valid = g.binary(Binary::And, &first, &enough)?;
    let sure_back = g.gather_elements(&sure, &back, 1)?;
    let sure_back = g.select(&second, &sure_back, &zero)?;
    let number = g.cast(&valid, Dtype::I64);
    let valid_back = g.gather_elements(&number, &back, 1)?;
    let valid_back = g.cast(&valid_back, Dtype::Bool);
    let valid_back = g.binary(Binary::And, &second, &valid_back)?;
    let matches = [g.select(&valid, &there, &none)?, g.select(&valid_back, &back, &none)?];
    Ok((matches, [sure, sure_back]))
}

/// Of pairs of images `[pairs * 2, …]` the other one at the place of each.
///
/// # Errors
/// When there is no axis.
pub fn other_of_pair(g: &mut Graph, x: &Tensor, pairs: &Dim) -> Result<Tensor> {
    let shape = x.shape().to_vec();
    let rest = shape.get(1..).unwrap_or_default();
    let split = g.reshape(x, [&dims![pairs, 2][..], rest].concat())?;
    let [first, second] = [g.slice(&split, 1, 0..1)?, g.slice(&split, 1, 1..2)?];
    let turned = g.concat(&[&second, &first], 1)?;
    g.reshape(&turned, shape)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{expect, refusal};
    use super::*;

    #[test]
    fn what_is_suppressed_makes_room() {
        let build = |g: &mut Graph| {
            // 0.8 is near 0.9 and goes; 0.7 is near 0.8 alone, and stays then.
            let x = g.constant(&[1, 1, 7], vec![0.0, 0.9, 0.8, 0.7, 0.1, 0.0, 0.3])?;
            suppress_non_maxima(g, &x, 1)
        };
        expect(&[], build, &[1, 1, 7], &[0.0, 0.9, 0.0, 0.7, 0.0, 0.0, 0.3]);
        assert!(
            refusal(|g| {
                let x = g.scalar(1.0);
                suppress_non_maxima(g, &x, 1)
            })
            .contains("scores")
        );
    }

    #[test]
    fn five_iterations_give_what_the_reference_gives() {
        let build = |g: &mut Graph| {
            let x = g.constant(&[1, 2, 2], vec![3.0, -1.0, 0.5, 2.0])?;
            let bin = g.constant(&[1, 1, 1], vec![-1.0])?;
            log_optimal_transport(g, &x, &bin, 5)
        };
        // `log_optimal_transport` of release 5.23.0, without the bins.
        expect(&[], build, &[1, 2, 2], &[-0.249_485, -3.600_639, -2.493_776, -0.344_930]);
    }

    #[test]
    fn matches_are_mutual() {
        let table = vec![0.5_f32, 0.3, 0.2, 0.6, 0.1, 0.1].into_iter().map(f32::ln).collect::<Vec<_>>();
        let build = |of: usize| {
            let table = table.clone();
            move |g: &mut Graph| {
                let logs = g.constant(&[1, 2, 3], table)?;
                let (matches, scores) = mutual_matches(g, &logs, 0.1, false)?;
                Ok([&matches[0], &matches[1], &scores[0], &scores[1]][of].clone())
            }
        };
        // The second of the first image and the first of the second one prefer each other.
        expect(&[], build(0), &[1, 2], &[-1.0, 0.0]);
        expect(&[], build(1), &[1, 3], &[1.0, -1.0, -1.0]);
        expect(&[], build(2), &[1, 2], &[0.0, 0.6]);
        expect(&[], build(3), &[1, 3], &[0.6, 0.0, 0.0]);
    }

    #[test]
    fn images_of_a_pair_change_places() {
        let build = |g: &mut Graph| {
            let x = g.constant(&[4, 1], vec![1.0, 2.0, 3.0, 4.0])?;
            other_of_pair(g, &x, &Dim::Fixed(2))
        };
        expect(&[], build, &[4, 1], &[2.0, 1.0, 4.0, 3.0]);
    }
}
