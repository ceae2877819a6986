//! Masks of queries (MaskFormer, arXiv:2107.06278).

use crate::graph::{Graph, Tensor, show};
use crate::{Result, dims};

/// Mask logits of queries `[batch, queries, channels]` on a map `[batch, channels, rows, columns]`: `[batch, queries, rows, columns]`
/// (`einsum("bqc,bchw->bqhw")`).
///
/// # Errors
/// When the shapes do not fit.
pub fn mask_logits(g: &mut Graph, queries: &Tensor, map: &Tensor) -> Result<Tensor> {
    let ([batch, count, _], [_, channels, rows, columns]) = (queries.shape(), map.shape()) else {
        let problem = format!("queries {} do not fit a map {}", show(queries.shape()), show(map.shape()));
        return Err(g.error("mask_logits", problem));
    };
    let shape = dims![batch, count, rows, columns];
    let places = dims![batch, channels, rows.clone() * columns.clone()];
    let map = g.reshape(map, places)?;
    let logits = g.matmul(queries, &map)?;
    g.reshape(&logits, shape)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{expect, refusal};
    use super::*;

    #[test]
    fn each_query_weighs_the_channels_of_each_place() {
        let masks = |g: &mut Graph| {
            let queries = g.constant(&[1, 2, 2], vec![1.0, 10.0, -1.0, 0.0])?;
            let map = g.constant(&[1, 2, 1, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
            mask_logits(g, &queries, &map)
        };
        expect(&[], masks, &[1, 2, 1, 3], &[41.0, 52.0, 63.0, -1.0, -2.0, -3.0]);
    }

    #[test]
    fn a_map_without_rows_is_refused() {
        let text = refusal(|g| {
            let queries = g.constant(&[1, 1, 1], vec![1.0])?;
            mask_logits(g, &queries, &queries)
        });
        assert!(text.contains("do not fit a map [1, 1, 1]"), "{text}");
    }
}
