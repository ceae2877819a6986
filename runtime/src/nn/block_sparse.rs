//! Block-sparse attention (`BigBirdBlockSparseAttention`, `BigBirdPegasusBlockSparseAttention`; Zaheer et al., 2020,
//! arXiv:2007.14062): blocks next to each other, the first and the last, and random ones.

use super::padding_mask;
use crate::Result;
use crate::graph::{Binary, Dim, Graph, MASKED_SCORE, Reduction, Tensor};

/// The masks of block-sparse attention, for all layers. Outside training every random block is the first one, which is
/// then seen that many times more.
#[derive(Clone, Debug)]
pub struct BlockSparse {
    /// What is added to scores: f32 `[batch, 1, sequence, sequence]`.
    pub mask: Tensor,
    /// Which positions have a result, all others 0: bool `[batch, sequence, 1]`.
    kept: Tensor,
}

impl BlockSparse {
    /// Of `attention_mask` `[batch, sequence]`: full attention up to `(5 + 2 * num_random_blocks) * block_size` tokens.
    ///
    /// # Errors
    /// When the mask has not two axes.
    pub fn new(
        g: &mut Graph,
        attention_mask: &Tensor,
        block_size: usize,
        num_random_blocks: usize,
    ) -> Result<Self> {
        let seen = padding_mask(g, attention_mask)?;
        let [batch, _, _, sequence] = seen.shape() else {
            return Err(g.error("BlockSparse", "a mask is 2d"));
        };
        let (batch, sequence) = (batch.clone(), sequence.clone());
        let (block_size, longest) = (block_size.max(1), (5 + 2 * num_random_blocks) * block_size);
        let blocks = block_of(g, &sequence, block_size)?;
        let last = g.reduce(Reduction::Max, &blocks, &[0], true)?;
        let (first, one) = (g.integer(0), g.integer(1));
        let queries = g.reshape(&blocks, crate::dims![&sequence, 1])?;
        let keys = g.reshape(&blocks, crate::dims![1, &sequence])?;

        let is_edge = |g: &mut Graph, x: &Tensor| -> Result<Tensor> {
            let is_last = g.binary(Binary::Equal, x, &last)?;
            let is_first = g.binary(Binary::Equal, x, &first)?;
            g.binary(Binary::Or, &is_first, &is_last)
        };
        let global_queries = is_edge(g, &queries)?;
        let global_keys = is_edge(g, &keys)?;
        let (before, after) = (g.sub(&queries, &one)?, g.add(&queries, &one)?);
        let not_before = g.binary(Binary::GreaterOrEqual, &keys, &before)?;
        let not_after = g.binary(Binary::LessOrEqual, &keys, &after)?;
        let mut sparse = g.binary(Binary::And, &not_before, &not_after)?;
        for more in [&global_queries, &global_keys] {
            sparse = g.binary(Binary::Or, &sparse, more)?;
        }
        // Lengths are known when the model is run.
        let positions = g.arange(&sequence);
        let end = g.reduce(Reduction::Max, &positions, &[0], true)?;
        let longest = g.integer(longest as i64);
        let is_full = g.binary(Binary::Less, &end, &longest)?;
        let visible = g.binary(Binary::Or, &sparse, &is_full)?;
        let visible = g.binary(Binary::And, &seen, &visible)?;

        let is_first = g.binary(Binary::Equal, &keys, &first)?;
        let once = g.binary(Binary::Or, &global_queries, &is_full)?;
        let (zero, masked) = (g.scalar(0.0), g.scalar(MASKED_SCORE));
        let often = g.scalar((1.0 + num_random_blocks as f32).ln());
        let bias = g.select(&is_first, &often, &zero)?;
        let bias = g.select(&once, &zero, &bias)?;
        let mask = g.select(&visible, &bias, &masked)?;
        let is_token = g.reshape(&seen, crate::dims![&batch, &sequence, 1])?;
        Ok(Self { mask, kept: g.binary(Binary::Or, &is_token, &is_full)? })
    }

    /// What attention gives `[batch, sequence, width]`, 0 for padding where it is sparse.
    ///
    /// # Errors
    /// When x has other lengths.
    pub fn mask_padding(&self, g: &mut Graph, x: &Tensor) -> Result<Tensor> {
        let zero = g.scalar(0.0);
        g.select(&self.kept, x, &zero)
    }
}

/// Which block each position is in: `[sequence]` i64.
pub(super) fn block_of(g: &mut Graph, sequence: &Dim, block_size: usize) -> Result<Tensor> {
    let count = sequence.ceil_div(block_size);
    let blocks = g.arange(&count);
    let blocks = g.reshape(&blocks, crate::dims![count.clone(), 1])?;
    let blocks = g.expand(&blocks, crate::dims![count.clone(), block_size])?;
    let blocks = g.reshape(&blocks, vec![count * Dim::Fixed(block_size)])?;
    g.slice_dims(&blocks, 0, Dim::Fixed(0), sequence.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::{expect, refusal};

    /// How often each key counts, by query.
    fn counts(length: usize, random: usize, padding: usize) -> impl Fn(&mut Graph) -> Result<Tensor> {
        move |g| {
            let mask = (0..length).map(|index| i64::from(index + padding < length)).collect();
            let mask = g.integers(&[1, length], mask)?;
            let sparse = BlockSparse::new(g, &mask, 1, random)?;
            let rows = g.reshape(&sparse.mask, crate::dims![length, length])?;
            let base = g.scalar(std::f32::consts::E);
            g.binary(Binary::Pow, &base, &rows)
        }
    }

    #[test]
    fn up_to_a_length_attention_is_full() {
        expect(&[], counts(5, 0, 0), &[5, 5], &[1.0; 25]);
    }

    #[test]
    fn blocks_see_neighbours_and_edges_and_the_first_more_often() {
        #[rustfmt::skip]
        let want = [
            1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0,
            2.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0,
            2.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0,
            2.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0,
            2.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0,
            2.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0,
            2.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0,
            1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0,
        ];
        expect(&[], counts(8, 1, 1), &[8, 8], &want);
    }

    #[test]
    fn padding_has_no_result_where_attention_is_sparse() {
        for (length, last) in [(8, 0.0), (7, 1.0)] {
            let build = |g: &mut Graph| {
                let mask = g.integers(&[1, length], (1..=length).map(|n| i64::from(n < length)).collect())?;
                let sparse = BlockSparse::new(g, &mask, 1, 1)?;
                let x = g.constant(&[1, length, 1], vec![1.0; length])?;
                let x = sparse.mask_padding(g, &x)?;
                g.slice(&x, 1, length - 2..length)
            };
            expect(&[], build, &[1, 2, 1], &[1.0, last]);
        }
    }

    #[test]
    fn masks_have_two_axes() {
        let problem = refusal(|g| {
            let mask = g.integers(&[2], vec![1, 1])?;
            BlockSparse::new(g, &mask, 2, 1).map(|sparse| sparse.mask)
        });
        insta::assert_snapshot!(problem, @"padding_mask in the root: attention_mask must be [batch, sequence]");
    }
}
