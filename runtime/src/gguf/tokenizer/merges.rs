//! Merges of a vocabulary that has scores in place of them.

use std::collections::HashMap;

/// The pairs of pieces that give a piece, those first that give one with a higher score.
///
/// Reference: `generate_merges` of transformers.
pub fn by_score(pieces: &[(&str, f64)]) -> Vec<String> {
    let known: HashMap<&str, f64> = pieces.iter().copied().collect();
    let mut merges = vec![];
    for (order, (piece, score)) in pieces.iter().enumerate() {
        let ends = piece.char_indices().skip(1).map(|(end, _)| end);
        let pairs = ends.map(|end| piece.split_at(end));
        let pairs = pairs.filter(|(left, right)| known.contains_key(left) && known.contains_key(right));
        merges.extend(pairs.map(|(left, right)| (*score, left, right, order)));
    }
    let length = |text: &str| text.chars().count();
    merges.sort_by(|a, b| {
        let longer = || length(b.1).cmp(&length(a.1)).then_with(|| length(b.2).cmp(&length(a.2)));
        b.0.total_cmp(&a.0).then_with(longer).then_with(|| a.3.cmp(&b.3))
    });
    merges.into_iter().map(|(_, left, right, _)| format!("{left} {right}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_by_the_score_of_what_they_give() {
        let pieces = [("a", -9.0), ("b", -9.0), ("ab", -2.0), ("ba", -1.0), ("aba", -3.0)];
        assert_eq!(by_score(&pieces), ["b a", "a b", "ab a", "a ba"]);
    }
}
