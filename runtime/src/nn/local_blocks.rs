//! Local attention in blocks: sequences cut into blocks of one length (`LongT5LocalAttention`, `PegasusXGlobalLocalAttention`),
//! so that time and memory grow with the length and not with its square.

use crate::Result;
use crate::graph::{Binary, Dim, Dtype, Graph, MASKED_SCORE, PadMode, Tensor};

/// Blocks of `[batch, sequence]` or `[batch, sequence, width]`, zero-padded to a multiple of their length.
#[derive(Clone, Debug)]
pub struct LocalBlocks {
    /// The length of a block.
    block: usize,
    /// How far the first block begins before the sequence (`PegasusXEncoderLayer.pad_local_tokens`).
    before: usize,
    /// The length of a sequence.
    sequence: Dim,
    /// How many blocks there are.
    count: Dim,
}

impl LocalBlocks {
    /// Blocks of this length over a sequence, the first one beginning `before` it.
    pub fn new(sequence: &Dim, block: usize, before: usize) -> Self {
        let block = block.max(1);
        let count = (sequence.clone() + Dim::Fixed(before)).ceil_div(block);
        Self { block, before, sequence: sequence.clone(), count }
    }

    /// How many blocks a sequence has.
    pub fn count(&self) -> &Dim {
        &self.count
    }

    /// Blocks `[batch·blocks, block, …]` of `[batch, sequence, …]`.
    ///
    /// # Errors
    /// When x has not two axes or more, or its second is not the sequence.
    pub fn split(&self, g: &mut Graph, x: &Tensor) -> Result<Tensor> {
        let h = self.by_block(g, x)?;
        g.flatten(&h, 0..2)
    }

    /// Blocks, each with the one before and the one after: `[batch·blocks, 3·block, …]` of `[batch, sequence, …]`
    /// (`_concatenate_3_blocks`).
    ///
    /// # Errors
    /// When x has not two axes or more, or its second is not the sequence.
    pub fn with_neighbours(&self, g: &mut Graph, x: &Tensor) -> Result<Tensor> {
        let h = self.by_block(g, x)?;
        let around = zero_pad(g, &h, 1, 1)?;
        let mut parts = vec![];
        for first in 0..3 {
            let first = Dim::Fixed(first);
            parts.push(g.slice_dims(&around, 1, first.clone(), first + self.count.clone())?);
        }
        let h = g.concat(&parts.iter().collect::<Vec<_>>(), 2)?;
        g.flatten(&h, 0..2)
    }

    /// One and the same for every block of a text: `[batch·blocks, …]` of `[batch, …]`.
    ///
    /// # Errors
    /// When x has no axis.
    pub fn repeat(&self, g: &mut Graph, x: &Tensor) -> Result<Tensor> {
        let h = g.unsqueeze(x, 1)?;
        let mut shape = h.shape().to_vec();
        if let Some(blocks) = shape.get_mut(1) {
            *blocks = self.count.clone();
        }
        let h = g.expand(&h, shape)?;
        g.flatten(&h, 0..2)
    }

    /// The sequence `[batch, sequence, width]` of its blocks `[batch·blocks, block, width]`.
    ///
    /// # Errors
    /// When x has another shape.
    pub fn join(&self, g: &mut Graph, x: &Tensor, batch: &Dim) -> Result<Tensor> {
        let [_, _, width] = x.shape() else {
            return Err(g.error("LocalBlocks", "blocks are [batch·blocks, block, width]"));
        };
        let shape = crate::dims![batch, self.count.clone() * Dim::Fixed(self.block), width];
        let h = g.reshape(x, shape)?;
        let first = Dim::Fixed(self.before);
        g.slice_dims(&h, 1, first.clone(), first + self.sequence.clone())
    }

    /// `[batch, blocks, block, …]`, zero-padded.
    fn by_block(&self, g: &mut Graph, x: &Tensor) -> Result<Tensor> {
        let padded = self.count.clone() * Dim::Fixed(self.block);
        let h = zero_pad(g, x, self.before, self.block - 1)?;
        let h = g.slice_dims(&h, 1, Dim::Fixed(0), padded)?;
        let [batch, _, rest @ ..] = x.shape() else {
            return Err(g.error("LocalBlocks", "sequences are [batch, sequence] or [batch, sequence, width]"));
        };
        let mut shape = crate::dims![batch, self.count.clone(), self.block];
        shape.extend_from_slice(rest);
        g.reshape(&h, shape)
    }
}

/// Zeros before and after along the second axis; whole numbers too, which engines pad as fractions alone.
fn zero_pad(g: &mut Graph, x: &Tensor, before: usize, after: usize) -> Result<Tensor> {
    let fractions = g.cast(x, Dtype::F32);
    let padded = g.pad(&fractions, &[(1, before, after)], PadMode::Constant(0.0))?;
    Ok(g.cast(&padded, x.dtype()))
}

/// Attention within blocks of this many positions (`CanineAttention` with `local`), as an additive mask f32
/// `[batch, 1, sequence, sequence]` of the padding mask `[batch, 1, 1, sequence]`: in a block of padding alone, all get the mean of it.
///
/// # Errors
/// When the mask has another shape.
pub fn block_local_mask(g: &mut Graph, mask: &Tensor, block: usize) -> Result<Tensor> {
    let [_, _, _, sequence] = mask.shape() else {
        return Err(g.error("block_local_mask", "a padding mask is [batch, 1, 1, sequence]"));
    };
    let positions = g.arange(sequence);
    let block = g.integer(block.max(1) as i64);
    let blocks = g.div(&positions, &block)?;
    let (queries, keys) = (g.unsqueeze(&blocks, 1)?, g.unsqueeze(&blocks, 0)?);
    let same = g.binary(Binary::Equal, &queries, &keys)?;
    let (seen, once, twice) = (g.scalar(0.0), g.scalar(MASKED_SCORE / 2.0), g.scalar(MASKED_SCORE));
    let of_block = g.select(mask, &seen, &once)?;
    g.select(&same, &of_block, &twice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::{expect, refusal};

    /// Two sequences of five.
    fn x(g: &mut Graph) -> Result<Tensor> {
        g.constant(&[2, 5, 1], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0])
    }

    fn blocks(before: usize) -> LocalBlocks {
        LocalBlocks::new(&Dim::Fixed(5), 2, before)
    }

    #[test]
    fn other_blocks_are_lower_than_padding() {
        let build = |g: &mut Graph| {
            let mask = g.integers(&[1, 3], vec![1, 0, 1])?;
            let mask = crate::nn::padding_mask(g, &mask)?;
            block_local_mask(g, &mask, 2)
        };
        let (once, twice) = (MASKED_SCORE / 2.0, MASKED_SCORE);
        expect(&[], build, &[1, 1, 3, 3], &[0.0, once, twice, 0.0, once, twice, twice, twice, 0.0]);
        let problem = refusal(|g| {
            let mask = g.integers(&[1, 5], vec![1; 5])?;
            block_local_mask(g, &mask, 2)
        });
        insta::assert_snapshot!(problem, @"block_local_mask in the root: a padding mask is [batch, 1, 1, sequence]");
    }

    #[test]
    fn the_last_block_is_padded() {
        let build = |g: &mut Graph| {
            let x = x(g)?;
            blocks(0).split(g, &x)
        };
        expect(&[], build, &[6, 2, 1], &[1.0, 2.0, 3.0, 4.0, 5.0, 0.0, 6.0, 7.0, 8.0, 9.0, 10.0, 0.0]);
    }

    #[test]
    fn masks_are_cut_too() {
        let build = |g: &mut Graph| {
            let mask = g.integers(&[1, 3], vec![1, 1, 1])?;
            LocalBlocks::new(&Dim::Fixed(3), 2, 0).split(g, &mask)
        };
        expect(&[], build, &[2, 2], &[1.0, 1.0, 1.0, 0.0]);
    }

    #[test]
    fn staggered_blocks_begin_before_the_sequence() {
        let build = |g: &mut Graph| {
            let x = x(g)?;
            blocks(1).split(g, &x)
        };
        expect(&[], build, &[6, 2, 1], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 0.0, 6.0, 7.0, 8.0, 9.0, 10.0]);
    }

    #[test]
    fn neighbours_of_the_ends_are_zero() {
        let build = |g: &mut Graph| {
            let x = g.constant(&[1, 3, 1], vec![1.0, 2.0, 3.0])?;
            LocalBlocks::new(&Dim::Fixed(3), 2, 0).with_neighbours(g, &x)
        };
        expect(&[], build, &[2, 6, 1], &[0.0, 0.0, 1.0, 2.0, 3.0, 0.0, 1.0, 2.0, 3.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn joined_blocks_are_the_sequence() {
        for before in [0, 1] {
            let build = |g: &mut Graph| {
                let x = x(g)?;
                let h = blocks(before).split(g, &x)?;
                blocks(before).join(g, &h, &Dim::Fixed(2))
            };
            expect(&[], build, &[2, 5, 1], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]);
        }
    }

    #[test]
    fn blocks_of_a_text_share_what_is_repeated() {
        let build = |g: &mut Graph| {
            let x = g.constant(&[2, 1, 1], vec![1.0, 2.0])?;
            blocks(0).repeat(g, &x)
        };
        expect(&[], build, &[6, 1, 1], &[1.0, 1.0, 1.0, 2.0, 2.0, 2.0]);
    }

    #[test]
    fn blocks_have_three_axes() {
        let problem = refusal(|g| {
            let x = g.constant(&[2, 2], vec![0.0; 4])?;
            blocks(0).join(g, &x, &Dim::Fixed(1))
        });
        insta::assert_snapshot!(problem, @"LocalBlocks in the root: blocks are [batch·blocks, block, width]");
    }
}
