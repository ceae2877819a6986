//! Logits to scores, and the best of them.

use crate::ScoreFunction;

impl ScoreFunction {
    /// Applies it to one row of logits.
    pub fn apply(self, logits: &[f32]) -> Vec<f32> {
        match self {
            Self::Sigmoid => logits.iter().map(|x| 1.0 / (1.0 + (-x).exp())).collect(),
            Self::Softmax => softmax(logits),
            Self::None => logits.to_vec(),
        }
    }
}

/// How the reference scores labels where the caller does not say it: as `problem_type` and their number have it.
pub(super) fn default_function(problem_type: Option<&str>, labels: usize) -> ScoreFunction {
    match problem_type {
        Some("regression") => ScoreFunction::None,
        Some("multi_label_classification") => ScoreFunction::Sigmoid,
        _ if labels == 1 => ScoreFunction::Sigmoid,
        _ => ScoreFunction::Softmax,
    }
}

/// `eˣ / Σ eˣ`, from the largest down so that nothing overflows.
pub(super) fn softmax(logits: &[f32]) -> Vec<f32> {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f32> = logits.iter().map(|x| (x - largest).exp()).collect();
    let sum: f64 = powers.iter().map(|p| f64::from(*p)).sum();
    powers.iter().map(|p| (f64::from(*p) / sum) as f32).collect()
}

/// The index of the largest score; the first of equals.
pub(super) fn largest(scores: &[f32]) -> usize {
    let mut best = 0;
    for (i, score) in scores.iter().enumerate() {
        if *score > scores[best] {
            best = i;
        }
    }
    best
}

/// The indices of the `count` largest scores, best first; equals in their order.
pub(super) fn top(scores: &[f32], count: usize) -> Vec<usize> {
    let before = |a: &usize, b: &usize| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b));
    let mut order: Vec<usize> = (0..scores.len()).collect();
    if count > 0 && count < order.len() {
        order.select_nth_unstable_by(count - 1, before);
    }
    order.truncate(count);
    order.sort_unstable_by(before);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn softmax_is_stable_and_sums_to_one() {
        let scores = softmax(&[1000.0, 1001.0, -1000.0]);
        assert!((scores.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        assert!((scores[1] / scores[0] - std::f32::consts::E).abs() < 1e-5);
    }

    #[test]
    fn the_best_come_first_and_equals_in_order() {
        assert_eq!(top(&[0.1, 0.4, 0.4, 0.3], 3), [1, 2, 3]);
        assert_eq!(top(&[0.1, 0.4], 9), [1, 0]);
        assert!(top(&[0.1], 0).is_empty());
        assert_eq!(largest(&[0.1, 0.4, 0.4]), 1);
    }

    #[test]
    fn functions_by_name() {
        assert_eq!(ScoreFunction::Sigmoid.apply(&[0.0]), [0.5]);
        assert_eq!(ScoreFunction::None.apply(&[3.0]), [3.0]);
        assert_eq!(serde_json::to_string(&ScoreFunction::Softmax).unwrap(), "\"softmax\"");
    }

    proptest::proptest! {
        #[test]
        fn top_is_what_sorting_gives(scores in proptest::collection::vec(-1.0f32..1.0, 0..40), count in 0usize..50) {
            let mut all: Vec<usize> = (0..scores.len()).collect();
            all.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
            all.truncate(count);
            proptest::prop_assert_eq!(top(&scores, count), all);
        }
    }

    #[test]
    fn the_function_follows_the_problem() {
        assert_eq!(default_function(Some("regression"), 1), ScoreFunction::None);
        assert_eq!(default_function(Some("multi_label_classification"), 3), ScoreFunction::Sigmoid);
        assert_eq!(default_function(Some("single_label_classification"), 3), ScoreFunction::Softmax);
        assert_eq!(default_function(None, 1), ScoreFunction::Sigmoid);
        assert_eq!(default_function(None, 2), ScoreFunction::Softmax);
    }
}
