//! Late interaction: sums of largest similarities of two lists of embeddings (`MaxSim` of ColBERT, Khattab and Zaharia, 2020,
//! arXiv:2004.12832).

use ndarray::{Array2, Axis};

use crate::{Error, Result};

/// How many passages the reference compares at once.
const BATCH_SIZE: usize = 128;

/// The score of each query with each passage (`ColPaliProcessor.score_retrieval`): for every embedding of the query
/// `[tokens, embedding_dim]` the largest of its dot products with the passage's embeddings, summed up: `[queries, passages]`.
///
/// As by the reference, a passage that is shorter than the longest among the 128 that it is compared with is padded with zeros,
/// so that no product of it counts less than 0.
///
/// # Errors
/// When there are no queries or no passages, or the widths of embeddings differ.
pub fn score_multi_vector(queries: &[Array2<f32>], passages: &[Array2<f32>]) -> Result<Array2<f32>> {
    for (name, all) in [("queries", queries), ("passages", passages)] {
        if all.is_empty() {
            return Err(Error::input(name, "are none", "give at least one"));
        }
    }
    let width = queries[0].ncols();
    if let Some(other) = queries.iter().chain(passages).find(|embeddings| embeddings.ncols() != width) {
        let problem = format!("have widths {width} and {}", other.ncols());
        return Err(Error::input("embeddings", problem, "compare embeddings of one model"));
    }
    let mut scores = Array2::zeros((queries.len(), passages.len()));
    for (start, batch) in passages.chunks(BATCH_SIZE).enumerate() {
        let longest = batch.iter().map(Array2::nrows).max().unwrap_or(0);
        for (at, passage) in batch.iter().enumerate() {
            let least = if passage.nrows() < longest { 0.0 } else { f32::NEG_INFINITY };
            for (row, query) in queries.iter().enumerate() {
                let products = query.dot(&passage.t());
                let best = |row: ndarray::ArrayView1<'_, f32>| row.iter().copied().fold(least, f32::max);
                scores[[row, start * BATCH_SIZE + at]] = products.axis_iter(Axis(0)).map(best).sum();
            }
        }
    }
    Ok(scores)
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn largest_products_are_summed() {
        let queries = [array![[1.0, 0.0], [0.0, 2.0]], array![[-1.0, 0.0]]];
        let passages = [array![[0.5, 0.25], [0.75, -1.0]], array![[0.5, -0.5], [0.25, 0.5]]];
        // 0.75 + 0.5; 0.5 + 1; -0.5; -0.25.
        let scores = score_multi_vector(&queries, &passages).unwrap();
        assert_eq!(scores, array![[1.25, 1.5], [-0.5, -0.25]]);
    }

    #[test]
    fn shorter_passages_are_padded_with_zeros() {
        let query = [array![[-1.0_f32, 0.0]]];
        let passages = [array![[0.5, 0.0]], array![[0.5, 0.0], [0.75, 0.0]]];
        assert_eq!(score_multi_vector(&query, &passages).unwrap(), array![[0.0, -0.5]]);
        assert_eq!(score_multi_vector(&query, &passages[..1]).unwrap(), array![[-0.5]]);
    }

    #[test]
    fn nothing_and_other_widths_are_refused() {
        let one = [array![[1.0_f32, 0.0]]];
        let problem = |queries: &[Array2<f32>], passages: &[Array2<f32>]| {
            score_multi_vector(queries, passages).unwrap_err().to_string()
        };
        assert!(problem(&[], &one).contains("queries"));
        assert!(problem(&one, &[]).contains("passages"));
        assert!(problem(&one, &[array![[1.0]]]).contains("widths 2 and 1"));
    }
}
