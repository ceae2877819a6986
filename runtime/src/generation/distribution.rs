//! Softmax, entropy and top-k of token scores.

use std::cmp::Ordering;

/// Probabilities of scores.
pub(crate) fn softmax(scores: &[f32]) -> Vec<f32> {
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if most == f32::NEG_INFINITY {
        return vec![f32::NAN; scores.len()];
    }
    let mut probabilities: Vec<f32> = scores.iter().map(|score| (score - most).exp()).collect();
    let sum = probabilities.iter().map(|p| f64::from(*p)).sum::<f64>() as f32;
    probabilities.iter_mut().for_each(|p| *p /= sum);
    probabilities
}

/// Replaces scores by the logarithms of their probabilities.
pub(crate) fn log_softmax(scores: &mut [f32]) {
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = scores.iter().map(|score| f64::from((score - most).exp())).sum();
    let shift = sum.ln() as f32;
    scores.iter_mut().for_each(|score| *score = *score - most - shift);
}

/// The entropy of probabilities in nats; what is impossible adds nothing.
pub(crate) fn entropy(probabilities: &[f32]) -> f32 {
    let terms = probabilities.iter().filter(|p| **p > 0.0).map(|p| f64::from(-p * p.ln()));
    terms.sum::<f64>() as f32
}

/// The index of the highest score, the first of several.
pub(crate) fn best(scores: &[f32]) -> usize {
    let mut best = 0;
    for (index, score) in scores.iter().enumerate() {
        if *score > scores[best] || scores[best].is_nan() {
            best = index;
        }
    }
    best
}

/// The indices of the `k` highest scores, highest first; the earlier of equal ones first.
pub(crate) fn top(scores: &[f32], k: usize) -> Vec<usize> {
    let k = k.min(scores.len());
    if k == 0 {
        return Vec::new();
    }
    let order = |a: &usize, b: &usize| descending(scores[*a], scores[*b]).then(a.cmp(b));
    let mut indices: Vec<usize> = (0..scores.len()).collect();
    if k < indices.len() {
        indices.select_nth_unstable_by(k - 1, order);
        indices.truncate(k);
    }
    indices.sort_unstable_by(order);
    indices
}

/// Highest first, what is no number last.
pub(crate) fn descending(a: f32, b: f32) -> Ordering {
    b.partial_cmp(&a).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// The indices of all scores, lowest first.
pub(crate) fn ascending_indices(scores: &[f32]) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..scores.len()).collect();
    indices.sort_by(|a, b| scores[*a].partial_cmp(&scores[*b]).unwrap_or(Ordering::Equal));
    indices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_come_first_and_ties_in_order() {
        let scores = [1.0, f32::NEG_INFINITY, 3.0, 3.0, f32::NAN, 2.0];
        assert_eq!(top(&scores, 4), [2, 3, 5, 0]);
        assert_eq!(top(&scores, 99).len(), 6);
        assert_eq!(top(&scores, 0), [0; 0]);
        assert_eq!(best(&scores), 2);
    }

    #[test]
    fn impossible_tokens_have_no_probability() {
        let p = softmax(&[0.0, f32::NEG_INFINITY, 0.0]);
        assert_eq!(p, [0.5, 0.0, 0.5]);
        assert!((entropy(&p) - std::f32::consts::LN_2).abs() < 1e-6);
        let mut scores = [0.0, f32::NEG_INFINITY, 0.0];
        log_softmax(&mut scores);
        assert!((scores[0] + std::f32::consts::LN_2).abs() < 1e-6 && scores[1] == f32::NEG_INFINITY);
    }
}
