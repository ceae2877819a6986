//! Relative position biases of attention scores: T5's buckets, DeBERTa's signed distances.

use std::collections::BTreeMap;

use super::sinusoidal;
use crate::graph::{Binary, Dim, Dtype, Graph, MASKED_SCORE, Scope, Tensor};
use crate::{Result, dims};

/// T5's relative position buckets: exact for near positions, logarithmic up to `max_distance`
/// (`T5Attention._relative_position_bucket`; Raffel et al., 2019, arXiv:1910.10683).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelativeBuckets {
    /// How many there are.
    pub count: usize,
    /// From here on all distances are in the last one.
    pub max_distance: usize,
    /// Whether there are buckets for positions before alone; half of them are for positions after otherwise.
    pub causal: bool,
}

impl RelativeBuckets {
    /// The bucket of a key that is `distance` positions after the query.
    fn of(self, distance: i64) -> i64 {
        let (count, after, distance) = if self.causal {
            (self.count as i64, 0, (-distance).max(0))
        } else {
            let half = self.count as i64 / 2;
            (half, if distance > 0 { half } else { 0 }, distance.abs())
        };
        let exact = count / 2;
        if distance < exact {
            return after + distance;
        }
        // In the precision and the order of the reference: the last bit decides where a bucket ends.
        let longest = (self.max_distance as f64 / exact.max(1) as f64).ln() as f32;
        let wide = (distance as f32 / exact.max(1) as f32).ln() / longest * (count - exact) as f32;
        after + exact.saturating_add(wide as i64).clamp(0, count - 1)
    }

    /// The relative attention bias `[…, heads]` of distances `[…]` i64, how far a key is after its query: rows of the embedding
    /// `[buckets, heads]` at `w` (`LongT5TransientGlobalAttention.compute_side_bias`).
    ///
    /// # Errors
    /// When the distances are not whole numbers.
    pub fn bias(self, g: &mut Graph, w: &Scope, distance: &Tensor, heads: usize) -> Result<Tensor> {
        let table = g.weight(&w.name("weight"), &[self.count, heads])?;
        let index = self.index(g, distance)?;
        g.gather(&table, &index, 0)
    }

    /// The bucket `[…]` i64 of each distance `[…]` i64, how far a key is after its query
    /// (`LayoutLMv3Encoder.relative_position_bucket`).
    ///
    /// # Errors
    /// When the distances are not whole numbers.
    pub fn index(self, g: &mut Graph, distance: &Tensor) -> Result<Tensor> {
        by_distance(g, distance, self.rows())
    }

    /// The buckets of all distances that have others than those beyond.
    fn rows(self) -> Vec<i64> {
        let reach = self.reach();
        (-reach..=reach).map(|distance| self.of(distance)).collect()
    }

    /// The distance from which on none has another bucket. With a longest distance below the exact ones, what is beyond
    /// these goes back through the buckets, down to the first: the reference has none for what is farther.
    fn reach(self) -> i64 {
        let exact = if self.causal { self.count } else { self.count / 2 } / 2;
        let back = if self.max_distance < exact { exact * exact / self.max_distance.max(1) } else { 0 };
        self.max_distance.max(exact).max(back) as i64
    }
}

/// T5's relative attention bias `[1, heads, queries, keys]`: rows of the embedding `[buckets, heads]` at `w`, by the bucket of
/// the distance between positions `[queries]` and `[keys]` (`T5Attention.compute_bias`).
///
/// # Errors
/// When the positions have not one axis each.
pub fn relative_bias(
    g: &mut Graph,
    w: &Scope,
    [queries, keys]: [&Tensor; 2],
    heads: usize,
    buckets: RelativeBuckets,
) -> Result<Tensor> {
    let table = g.weight(&w.name("weight"), &[buckets.count, heads])?;
    let index = bias_by_distance(g, queries, keys, buckets.rows())?;
    let bias = g.gather(&table, &index, 0)?;
    let bias = g.transpose(&bias, &[2, 0, 1])?;
    g.unsqueeze(&bias, 0)
}

/// Relative position index `[queries, keys]` i64: an entry of `table` by how far the key is after the query. The table's
/// middle is for distance 0; longer distances are clamped to its ends.
///
/// # Errors
/// When the positions have not one axis each.
pub fn bias_by_distance(g: &mut Graph, queries: &Tensor, keys: &Tensor, table: Vec<i64>) -> Result<Tensor> {
    let ([query_count], [key_count]) = (queries.shape(), keys.shape()) else {
        return Err(g.error("bias_by_distance", "positions must have one axis"));
    };
    let rows = g.reshape(queries, crate::dims![query_count, 1])?;
    let columns = g.reshape(keys, crate::dims![1, key_count])?;
    let distance = g.sub(&columns, &rows)?;
    by_distance(g, &distance, table)
}

/// An entry of `table` for each distance `[…]`; the middle is for 0, and the ends are for those beyond.
fn by_distance(g: &mut Graph, distance: &Tensor, table: Vec<i64>) -> Result<Tensor> {
    let reach = (table.len() / 2) as i64;
    let (longest, shortest) = (g.integer(reach), g.integer(-reach));
    let distance = g.binary(Binary::Min, distance, &longest)?;
    let distance = g.binary(Binary::Max, &distance, &shortest)?;
    let index = g.add(&distance, &longest)?;
    let table = g.integers(&[table.len()], table)?;
    g.gather(&table, &index, 0)
}

/// Sines and cosines in turn of the distances from `frames - 1` down to `-frames` (`ParakeetEncoderRelPositionalEncoding`,
/// `Wav2Vec2ConformerRelPositionalEmbedding`), as [`relative_shift`] takes what is made of them: `[1, 2·frames, width]`.
///
/// # Errors
/// When the width is odd.
pub fn distance_embeddings(g: &mut Graph, frames: &Dim, width: usize) -> Result<Tensor> {
    let twice = frames.clone() * Dim::from(2);
    let (positions, counted) = (g.arange(frames), g.arange(&twice));
    let last = g.take(&positions, 0, -1)?;
    let distances = g.sub(&last, &counted)?;
    let distances = g.unsqueeze(&distances, 0)?;
    let waves = sinusoidal(g, &distances, width, 1, 0)?;
    let waves = g.reshape(&waves, dims![1, &twice, 2, width / 2])?;
    let waves = g.transpose(&waves, &[0, 1, 3, 2])?;
    g.reshape(&waves, dims![1, &twice, width])
}

/// Transformer-XL's relative shift (`XLNetRelativeAttention.rel_shift_bnij`): scores by distance `[batch, heads, queries,
/// 2 * queries]`, of `queries` down to `1 - queries`, to scores by key `[batch, heads, queries, queries]`.
///
/// # Errors
/// When x has another shape.
pub fn relative_shift(g: &mut Graph, x: &Tensor) -> Result<Tensor> {
    let [batch, heads, queries, distances] = x.shape() else {
        return Err(g.error("relative_shift", "scores are [batch, heads, queries, 2 * queries]"));
    };
    let (batch, heads, queries, distances) =
        (batch.clone(), heads.clone(), queries.clone(), distances.clone());
    let h = g.reshape(x, crate::dims![&batch, &heads, &distances, &queries])?;
    let h = g.slice_dims(&h, 2, Dim::Fixed(1), distances.clone())?;
    let h = g.reshape(&h, vec![batch, heads, queries.clone(), distances - Dim::Fixed(1)])?;
    g.slice_dims(&h, 3, Dim::Fixed(0), queries)
}

/// DeBERTa's relative position rows (`build_relative_position`): those that a table of signed distances has for `-reach` to
/// `reach`, and half the number of its rows. Each distance up to `reach` has its own, or with `buckets` each up to half of
/// that, and the longer ones share the rest by their logarithm (He et al., 2020 and 2021, arXiv:2006.03654,
/// arXiv:2111.09543).
pub fn signed_distances(reach: usize, buckets: Option<usize>) -> (Vec<i64>, usize) {
    let span = buckets.unwrap_or(reach);
    let middle = (span / 2).max(1) as f32;
    let bucket = |distance: i64| {
        let far = distance.abs() as f32;
        if buckets.is_none() || far <= middle {
            return distance;
        }
        // In the precision and the order of the reference: the last bit decides where a bucket ends.
        let longest = ((reach as f64 - 1.0) / f64::from(middle)) as f32;
        let steps = ((far / middle).ln() / longest.ln() * (middle - 1.0)).ceil() + middle;
        distance.signum() * steps as i64
    };
    let (reach, span) = (reach as i64, span as i64);
    let row = |distance| (bucket(distance) + span).clamp(0, 2 * span - 1);
    ((-reach..=reach).map(row).collect(), span as usize)
}

/// DeBERTa's scores of contents x `[batch, sequence, hidden]` with relative positions `[rows, hidden]`
/// (`DisentangledSelfAttention.disentangled_attention_bias`): for every pair that with row `index` `[sequence, sequence]`, as
/// `[batch, heads, sequence, sequence]`.
///
/// # Errors
/// When the heads do not divide the width, or the shapes do not go together.
pub fn disentangled_scores(
    g: &mut Graph,
    x: &Tensor,
    distances: &Tensor,
    index: &Tensor,
    heads: usize,
) -> Result<Tensor> {
    let ([batch, sequence, _], [rows, width]) = (x.shape(), distances.shape()) else {
        return Err(g.error(
            "disentangled_scores",
            "contents are [batch, sequence, hidden], positions [rows, hidden]",
        ));
    };
    let (batch, sequence, rows) = (batch.clone(), sequence.clone(), rows.clone());
    let size = width.fixed().unwrap_or_default() / heads.max(1);
    let x = g.reshape(x, crate::dims![&batch, &sequence, heads, size])?;
    let x = g.transpose(&x, &[0, 2, 1, 3])?;
    let distances = g.reshape(distances, crate::dims![rows, heads, size])?;
    let distances = g.transpose(&distances, &[1, 2, 0])?;
    let scores = g.matmul(&x, &distances)?;
    let index = g.reshape(index, crate::dims![1, 1, &sequence, &sequence])?;
    let index = g.expand(&index, crate::dims![batch, heads, &sequence, &sequence])?;
    g.gather_elements(&scores, &index, 3)
}

/// Scores of queries with relative position embeddings (Shaw et al., 2018, arXiv:1803.02155; `SpeechT5Attention`,
/// `Wav2Vec2BertSelfAttention`): q `[batch, queries, heads·size]`, the table `[rows, size]` that all heads share and its row
/// for each query and key, i64 `[queries, keys]`, to `[batch, heads, queries, keys]`, scaled as attention scores are.
///
/// # Errors
/// When the shapes do not go together.
pub fn relative_key_scores(g: &mut Graph, q: &Tensor, table: &Tensor, index: &Tensor) -> Result<Tensor> {
    let ([batch, queries, width], [_, size], [_, keys]) = (q.shape(), table.shape(), index.shape()) else {
        let problem =
            "queries are [batch, queries, heads·size], the table [rows, size], its rows [queries, keys]";
        return Err(g.error("relative_key_scores", problem));
    };
    let (batch, queries, keys) = (batch.clone(), queries.clone(), keys.clone());
    let size = size.fixed().unwrap_or_default().max(1);
    let heads = width.fixed().unwrap_or_default() / size;
    let q = g.reshape(q, dims![&batch, &queries, heads, size])?;
    let q = g.transpose(&q, &[0, 2, 1, 3])?;
    let table = g.transpose(table, &[1, 0])?;
    let scores = g.matmul(&q, &table)?;
    let scores = g.scale(&scores, (size as f64).sqrt().recip())?;
    let index = g.reshape(index, dims![1, 1, &queries, &keys])?;
    let index = g.expand(&index, dims![batch, heads, queries, keys])?;
    g.gather_elements(&scores, &index, 3)
}

/// Attention mask (bool) and bias (f32) as one additive mask: the bias where the mask is true, the lowest score elsewhere.
///
/// # Errors
/// When they do not broadcast.
pub fn masked_bias(g: &mut Graph, mask: &Tensor, bias: &Tensor) -> Result<Tensor> {
    if mask.dtype() != Dtype::Bool {
        return Err(g.error("masked_bias", format!("a mask is bool, not {}", mask.dtype())));
    }
    let hidden = g.scalar(MASKED_SCORE);
    g.select(mask, bias, &hidden)
}

/// Learned bias by the distance of two places of a square grid, rows and columns apart without direction (`LevitAttention`,
/// `LevitAttentionSubsample`): the table of this name, `[heads, distances]`, whose entries are in the order in which distances occur,
/// to `[1, heads, queries, keys]`. Keys are a grid of `side`, queries every `stride`-th row and column of it.
///
/// # Errors
/// When the grid is too large for a table.
pub fn grid_distance_bias(
    g: &mut Graph,
    name: &str,
    heads: usize,
    side: usize,
    stride: usize,
) -> Result<Tensor> {
    let queries = side.div_ceil(stride.max(1));
    g.table(&[queries * queries, side * side])?;
    let mut known = BTreeMap::new();
    let mut rows = vec![];
    for query in 0..queries * queries {
        for key in 0..side * side {
            let down = (query / queries * stride).abs_diff(key / side);
            let across = (query % queries * stride).abs_diff(key % side);
            let next = known.len();
            rows.push(*known.entry((down, across)).or_insert(next) as i64);
        }
    }
    let table = g.weight(name, &[heads, known.len()])?;
    let rows = g.integers(&[queries * queries, side * side], rows)?;
    let bias = g.gather(&table, &rows, 1)?;
    g.unsqueeze(&bias, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::{expect, refusal};

    #[test]
    fn contents_are_scored_with_the_rows_of_their_distances() {
        let build = |g: &mut Graph| {
            let x = g.constant(&[1, 2, 2], vec![1.0, 10.0, 2.0, 20.0])?;
            let rows = g.constant(&[3, 2], vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0])?;
            let index = g.integers(&[2, 2], vec![1, 2, 0, 1])?;
            disentangled_scores(g, &x, &rows, &index, 2)
        };
        expect(&[], build, &[1, 2, 2, 2], &[2.0, 3.0, 2.0, 4.0, 50.0, 60.0, 80.0, 100.0]);
    }

    #[test]
    fn queries_are_scored_with_the_rows_of_their_distances() {
        let build = |g: &mut Graph| {
            let q = g.constant(&[1, 2, 8], (1..17).map(|x| x as f32).collect())?;
            let table =
                g.constant(&[3, 4], vec![1.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 4.0])?;
            let index = g.integers(&[2, 2], vec![0, 1, 2, 0])?;
            relative_key_scores(g, &q, &table, &index)
        };
        expect(&[], build, &[1, 2, 2, 2], &[0.5, 2.0, 24.0, 4.5, 2.5, 6.0, 32.0, 6.5]);
        let problem = refusal(|g| {
            let q = g.constant(&[2, 2], vec![0.0; 4])?;
            let index = g.integers(&[1, 1], vec![0])?;
            relative_key_scores(g, &q, &q, &index)
        });
        insta::assert_snapshot!(problem, @"relative_key_scores in the root: queries are [batch, queries, heads·size], the table [rows, size], its rows [queries, keys]");
    }

    #[test]
    fn places_as_far_apart_share_a_bias() {
        let bias = |stride: usize| move |g: &mut Graph| grid_distance_bias(g, "biases", 1, 2, stride);
        // Itself, the next column, the next row, both.
        let values: [(&str, &[f32]); 1] = [("biases", &[1.0, 2.0, 3.0, 4.0])];
        let want = [1.0, 2.0, 3.0, 4.0, 2.0, 1.0, 4.0, 3.0, 3.0, 4.0, 1.0, 2.0, 4.0, 3.0, 2.0, 1.0];
        expect(&values, bias(1), &[1, 1, 4, 4], &want);
        expect(&values, bias(2), &[1, 1, 1, 4], &want[..4]);
    }

    #[test]
    fn buckets_are_the_references() {
        let both = RelativeBuckets { count: 32, max_distance: 128, causal: false };
        let of = |distances: &[i64]| distances.iter().map(|&d| both.of(d)).collect::<Vec<_>>();
        assert_eq!(of(&[-200, -128, -64, -16, -8, -7, 0]), [15, 15, 14, 10, 8, 7, 0]);
        assert_eq!(of(&[1, 7, 8, 16, 64, 200]), [17, 23, 24, 26, 30, 31]);
        let before = RelativeBuckets { causal: true, ..both };
        assert_eq!([5, 0, -3, -15, -16, -127, -128].map(|d| before.of(d)), [0, 0, 3, 15, 16, 31, 31]);
        assert_eq!((both.reach(), before.reach()), (128, 128));
    }

    #[test]
    fn distances_between_items_have_buckets() {
        let buckets = RelativeBuckets { count: 8, max_distance: 16, causal: false };
        let build = |g: &mut Graph| {
            let distance = g.integers(&[2, 3], vec![0, -1, 1, 300, -300, 3])?;
            let index = buckets.index(g, &distance)?;
            Ok(g.cast(&index, Dtype::F32))
        };
        expect(&[], build, &[2, 3], &[0.0, 1.0, 5.0, 7.0, 3.0, 6.0]);
    }

    #[test]
    fn exact_buckets_may_reach_beyond_the_longest_distance() {
        let short = RelativeBuckets { count: 32, max_distance: 10, causal: true };
        assert_eq!([-9, -10, -15, -16, -17, -20, -25].map(|d| short.of(d)), [9, 10, 15, 16, 14, 9, 1]);
        assert_eq!(short.reach(), 25);
        let equal = RelativeBuckets { max_distance: 16, ..short };
        assert_eq!((equal.of(-15), equal.of(-16), equal.reach()), (15, 16, 16));
    }

    #[test]
    fn signed_distances_are_the_references() {
        let (rows, span) = signed_distances(4, None);
        assert_eq!((rows, span), (vec![0, 1, 2, 3, 4, 5, 6, 7, 7], 4));
        let (rows, span) = signed_distances(16, Some(8));
        assert_eq!(span, 8);
        assert_eq!(rows[16..], [8, 9, 10, 11, 12, 13, 13, 14, 14, 14, 15, 15, 15, 15, 15, 15, 15]);
    }
    #[test]
    fn the_bias_of_a_key_is_by_its_distance_and_head() {
        let buckets = RelativeBuckets { count: 4, max_distance: 8, causal: false };
        // Rows of two heads: the same position, one or more before, none, one or more after.
        let table: [f32; 8] = [0.0, 10.0, 1.0, 11.0, 2.0, 12.0, 3.0, 13.0];
        let build = |g: &mut Graph| {
            let (queries, keys) = (g.integers(&[2], vec![1, 2])?, g.arange(&3.into()));
            relative_bias(g, &g.scope("relative_attention_bias"), [&queries, &keys], 2, buckets)
        };
        let want = [1.0, 0.0, 3.0, 1.0, 1.0, 0.0, 11.0, 10.0, 13.0, 11.0, 11.0, 10.0];
        expect(&[("relative_attention_bias.weight", &table)], build, &[1, 2, 2, 3], &want);
    }

    #[test]
    fn distances_beyond_the_table_have_its_ends() {
        let build = |g: &mut Graph| {
            let (queries, keys) = (g.integers(&[2], vec![0, 5])?, g.integers(&[3], vec![0, 1, 9])?);
            bias_by_distance(g, &queries, &keys, vec![70, 80, 90])
        };
        expect(&[], build, &[2, 3], &[80.0, 90.0, 90.0, 70.0, 70.0, 90.0]);
    }

    #[test]
    fn shifted_scores_are_those_of_keys() {
        let build = |g: &mut Graph| {
            // Of two queries, by the distances 2, 1, 0 and -1.
            let x = g.constant(&[1, 1, 2, 4], vec![2.0, 1.0, 0.0, -1.0, 12.0, 11.0, 10.0, 9.0])?;
            relative_shift(g, &x)
        };
        expect(&[], build, &[1, 1, 2, 2], &[0.0, -1.0, 11.0, 10.0]);
    }

    #[test]
    fn masked_scores_are_the_lowest() {
        let build = |g: &mut Graph| {
            let mask = g.integers(&[1, 3], vec![1, 0, 1])?;
            let mask = g.cast(&mask, Dtype::Bool);
            let bias = g.constant(&[2, 1], vec![0.5, -2.0])?;
            masked_bias(g, &mask, &bias)
        };
        expect(&[], build, &[2, 3], &[0.5, -3e38, 0.5, -2.0, -3e38, -2.0]);
    }

    #[test]
    fn positions_have_one_axis_and_masks_are_boolean() {
        let problem = refusal(|g| {
            let (queries, keys) = (g.integers(&[1, 2], vec![0, 1])?, g.arange(&2.into()));
            bias_by_distance(g, &queries, &keys, vec![0, 1, 2])
        });
        insta::assert_snapshot!(problem, @"bias_by_distance in the root: positions must have one axis");
        let problem = refusal(|g| {
            let x = g.scalar(1.0);
            masked_bias(g, &x, &x)
        });
        insta::assert_snapshot!(problem, @"masked_bias in the root: a mask is bool, not f32");
    }
}
