//! Relative position embeddings that are decomposed by axis (MViTv2, arXiv:2112.01526).

use crate::graph::{Dim, Graph, Scope, Tensor, show};
use crate::{Result, dims};

/// Decomposed relative position embeddings (`SamVisionAttention.get_decomposed_rel_pos`): what is added to the scores of queries
/// `[batch, rows * columns, heads * size]` over the same grid, `[batch, heads, rows * columns, rows * columns]`. The tables are
/// `rel_pos_h` `[2 * rows - 1, size]` and `rel_pos_w` `[2 * columns - 1, size]`.
///
/// # Errors
/// When the queries have not as many positions, or the heads do not divide their width.
pub fn decomposed_rel_pos(
    g: &mut Graph,
    w: &Scope,
    q: &Tensor,
    heads: usize,
    grid: [usize; 2],
) -> Result<Tensor> {
    scores(g, w, q, heads, grid, grid)
}

/// As [`decomposed_rel_pos`] over a square of `side` by `side` positions, whose tables were trained with `trained` on a side: of other
/// numbers of rows, `[2 * trained - 1, size]`, between which is interpolated (`get_rel_pos`).
///
/// # Errors
/// As [`decomposed_rel_pos`].
pub fn interpolated_rel_pos(
    g: &mut Graph,
    w: &Scope,
    q: &Tensor,
    heads: usize,
    [trained, side]: [usize; 2],
) -> Result<Tensor> {
    scores(g, w, q, heads, [side; 2], [trained; 2])
}

fn scores(
    g: &mut Graph,
    w: &Scope,
    q: &Tensor,
    heads: usize,
    [rows, columns]: [usize; 2],
    trained: [usize; 2],
) -> Result<Tensor> {
    g.enter(w);
    let ([batch, _, _], Some(width)) = (q.shape(), q.dim(-1).and_then(Dim::fixed)) else {
        let problem = format!("queries are {}, not [batch, positions, width]", show(q.shape()));
        return Err(g.error("decomposed_rel_pos", problem));
    };
    let (batch, size, places) = (batch.clone(), width / heads.max(1), rows * columns);
    let q = g.reshape(q, dims![&batch, rows, columns, heads, size])?;
    let by_row = g.transpose(&q, &[0, 3, 1, 2, 4])?;
    let table = distances(g, &w.name("rel_pos_h"), [trained[0], rows], size)?;
    let by_row = g.matmul(&by_row, &table)?;
    let by_row = g.reshape(&by_row, dims![&batch, heads, places, rows, 1])?;
    let by_column = g.transpose(&q, &[0, 3, 2, 1, 4])?;
    let table = distances(g, &w.name("rel_pos_w"), [trained[1], columns], size)?;
    let by_column = g.matmul(&by_column, &table)?;
    let by_column = g.transpose(&by_column, &[0, 1, 3, 2, 4])?;
    let by_column = g.reshape(&by_column, dims![&batch, heads, places, 1, columns])?;
    let both = g.add(&by_row, &by_column)?;
    g.reshape(&both, dims![batch, heads, places, places])
}

/// The embeddings of all distances along an axis, `[length, size, length]`: by the query's place, then by the key's.
fn distances(g: &mut Graph, name: &str, [trained, length]: [usize; 2], size: usize) -> Result<Tensor> {
    let [from, to] = [trained, length].map(|length| (2 * length).saturating_sub(1));
    let mut table = g.weight(name, &[from, size])?;
    if from != to {
        g.table(&[to, from])?;
        let between = g.constant(&[to, from], linear_shares(from, to))?;
        table = g.matmul(&between, &table)?;
    }
    g.table(&[length, length])?;
    let row = |pair: usize| (pair / length + length - 1 - pair % length) as i64;
    let rows = g.integers(&[length, length], (0..length * length).map(row).collect())?;
    let table = g.gather(&table, &rows, 0)?;
    g.transpose(&table, &[0, 2, 1])
}

/// How much each of `from` rows counts for each of `to` between them, one after the other (`interpolate` with `linear`).
fn linear_shares(from: usize, to: usize) -> Vec<f32> {
    let last = from.saturating_sub(1);
    let mut shares = vec![0.0; from * to];
    for (place, shares) in shares.chunks_mut(from.max(1)).enumerate() {
        let at = ((place as f32 + 0.5) * (from as f32 / to as f32) - 0.5).max(0.0);
        let low = (at as usize).min(last);
        shares[low] += 1.0 - (at - low as f32);
        shares[(low + 1).min(last)] += at - low as f32;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::super::testing::{expect, refusal};
    use super::*;

    #[test]
    fn scores_are_those_of_rows_and_of_columns_apart() {
        // Of distances -1, 0 and 1; one row has one distance.
        let weights: [(&str, &[f32]); 2] = [("rel_pos_h", &[5.0]), ("rel_pos_w", &[1.0, 10.0, 100.0])];
        let build = |g: &mut Graph| {
            let q = g.constant(&[1, 2, 1], vec![1.0, 2.0])?;
            decomposed_rel_pos(g, &Scope::root(), &q, 1, [1, 2])
        };
        // The first query is a column before the second key.
        expect(&weights, build, &[1, 1, 2, 2], &[15.0, 6.0, 210.0, 30.0]);
    }

    #[test]
    fn tables_of_other_squares_are_interpolated() {
        // Five rows for two by two, of which three are made: at 1/3, 2 and 11/3.
        assert_eq!(linear_shares(2, 4), [1.0, 0.0, 0.75, 0.25, 0.25, 0.75, 0.0, 1.0]);
        let weights: [(&str, &[f32]); 2] =
            [("rel_pos_h", &[0.0; 5]), ("rel_pos_w", &[0.0, 3.0, 10.0, 40.0, 70.0])];
        let build = |g: &mut Graph| {
            let q = g.constant(&[1, 4, 1], vec![1.0; 4])?;
            interpolated_rel_pos(g, &Scope::root(), &q, 1, [3, 2])
        };
        let row = [10.0, 1.0, 10.0, 1.0, 60.0, 10.0, 60.0, 10.0];
        expect(&weights, build, &[1, 1, 4, 4], &[row, row].concat());
    }

    #[test]
    fn each_head_and_row_has_its_own_queries() {
        let weights: [(&str, &[f32]); 2] = [("rel_pos_h", &[1.0, 2.0, 4.0]), ("rel_pos_w", &[0.0])];
        let build = |g: &mut Graph| {
            let q = g.constant(&[1, 2, 2], vec![1.0, 3.0, 5.0, 7.0])?;
            decomposed_rel_pos(g, &Scope::root(), &q, 2, [2, 1])
        };
        let want = [2.0, 1.0, 20.0, 10.0, 6.0, 3.0, 28.0, 14.0];
        expect(&weights, build, &[1, 2, 2, 2], &want);
    }

    #[test]
    fn queries_of_other_axes_are_refused() {
        let text = refusal(|g| {
            let q = g.constant(&[2, 2], vec![0.0; 4])?;
            decomposed_rel_pos(g, &Scope::root(), &q, 1, [1, 2])
        });
        assert!(text.contains("not [batch, positions, width]"), "{text}");
    }
}
