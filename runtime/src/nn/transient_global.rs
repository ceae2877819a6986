//! Local attention with transient global tokens (`LongT5LocalAttention`, `LongT5TransientGlobalAttention`; Guo et al., 2021,
//! arXiv:2112.07916).

use super::block_sparse::block_of;
use super::{Attention, LocalBlocks, RelativeBuckets, padding_mask};
use crate::Result;
use crate::graph::{Binary, Dim, Dtype, Graph, MASKED_SCORE, Reduction, Scope, Tensor};

/// What the reference gives hidden scores; lower still are those that it does not have.
const HIDDEN: f32 = -1e10;

/// Local attention of an encoder: each token sees those up to `radius` away, and with `global_block_size` the sums of blocks
/// of that length, made anew in each layer.
#[derive(Clone, Debug)]
pub struct TransientGlobal {
    /// Blocks of `radius + 1`.
    pub blocks: LocalBlocks,
    /// How far tokens see, `local_radius`.
    pub radius: usize,
    /// The length of a block that makes one global token; none are made where not given.
    pub global_block_size: Option<usize>,
    /// Attention heads.
    pub heads: usize,
    /// The buckets of the relative attention bias.
    pub buckets: RelativeBuckets,
}

/// What all layers share.
#[derive(Clone, Debug)]
pub struct TransientGlobalContext {
    /// What is added to scores: f32 `[batch·blocks, heads, block, 3·block + globals]`.
    bias: Tensor,
    /// Which tokens each global one sums: f32 `[batch, globals, sequence]`.
    pub aggregate: Option<Tensor>,
}

impl TransientGlobal {
    /// Masks and relative attention biases, which are the first layer's, at `w`: of `attention_mask` `[batch, sequence]`.
    ///
    /// # Errors
    /// When the mask has not two axes, or `global_block_size` is not a power of two: the reference counts blocks by sums of
    /// its inverse, which are exact for these alone.
    pub fn context(
        &self,
        g: &mut Graph,
        w: &Scope,
        attention_mask: &Tensor,
    ) -> Result<TransientGlobalContext> {
        let local = self.local_bias(g, w, attention_mask)?;
        let Some(size) = self.global_block_size else {
            return Ok(TransientGlobalContext { bias: local, aggregate: None });
        };
        if !size.is_power_of_two() {
            let problem = format!("global_block_size: is {size}, but must be a power of two");
            return Err(g.error("Attention", problem));
        }
        let [batch, sequence] = attention_mask.shape() else {
            return Err(g.error("Attention", "attention_mask must be [batch, sequence]"));
        };
        let (batch, sequence) = (batch.clone(), sequence.clone());
        let globals = sequence.ceil_div(size);
        let blocks = global_blocks(g, attention_mask, size)?;
        let blocks = g.reshape(&blocks, crate::dims![&batch, &sequence, 1])?;
        let numbers = g.arange(&globals);
        let numbers = g.reshape(&numbers, crate::dims![1, 1, &globals])?;

        let member = g.binary(Binary::Equal, &blocks, &numbers)?;
        let aggregate = g.cast(&member, Dtype::F32);
        let aggregate = g.transpose(&aggregate, &[0, 2, 1])?;

        // Tokens see the blocks that there are, padding those that there are not.
        let last = g.reduce(Reduction::Max, &blocks, &[1], true)?;
        let exists = g.binary(Binary::LessOrEqual, &numbers, &last)?;
        let exists = g.cast(&exists, Dtype::I64);
        let is_token = g.reshape(attention_mask, crate::dims![&batch, &sequence, 1])?;
        let visible = g.binary(Binary::Equal, &is_token, &exists)?;
        let distance = g.sub(&numbers, &blocks)?;
        let bias = self.buckets.bias(g, &w.scope("global_relative_attention_bias"), &distance, self.heads)?;
        let hidden = g.scalar(HIDDEN);
        let visible = g.unsqueeze(&visible, 3)?;
        let bias = g.select(&visible, &bias, &hidden)?;
        // A block at the end that is not whole is none in the reference.
        let whole = g.arange(&globals);
        let positions = g.arange(&sequence);
        let count = block_count(g, &positions, size)?;
        let whole = g.binary(Binary::Less, &whole, &count)?;
        let whole = g.reshape(&whole, crate::dims![1, 1, &globals, 1])?;
        let absent = g.scalar(MASKED_SCORE);
        let bias = g.select(&whole, &bias, &absent)?;
        let bias =
            g.reshape(&bias, crate::dims![&batch, &sequence, globals.clone() * Dim::Fixed(self.heads)])?;
        let bias = self.blocks.split(g, &bias)?;
        let [rows, block, _] = bias.shape() else { return Err(g.error("Attention", "blocks are 3d")) };
        let shape = crate::dims![rows, block, &globals, self.heads];
        let bias = g.reshape(&bias, shape)?;
        let bias = g.transpose(&bias, &[0, 3, 1, 2])?;
        Ok(TransientGlobalContext { bias: g.concat(&[&local, &bias], 3)?, aggregate: Some(aggregate) })
    }

    /// The bias of keys in the block and its neighbours: f32 `[batch·blocks, heads, block, 3·block]`.
    fn local_bias(&self, g: &mut Graph, w: &Scope, attention_mask: &Tensor) -> Result<Tensor> {
        let block = self.radius + 1;
        let keys = g.arange(&Dim::Fixed(3 * block));
        let queries = g.slice(&keys, 0, block..2 * block)?;
        let queries = g.reshape(&queries, crate::dims![block, 1])?;
        let keys = g.reshape(&keys, crate::dims![1, 3 * block])?;
        let distance = g.sub(&keys, &queries)?;
        let bias = self.buckets.bias(g, &w.scope("relative_attention_bias"), &distance, self.heads)?;
        let bias = g.transpose(&bias, &[2, 0, 1])?;

        let (far, near) = (g.integer(-(block as i64)), g.integer(block as i64));
        let not_before = g.binary(Binary::Greater, &distance, &far)?;
        let not_after = g.binary(Binary::Less, &distance, &near)?;
        let local = g.binary(Binary::And, &not_before, &not_after)?;
        let own = self.blocks.split(g, attention_mask)?;
        let others = self.blocks.with_neighbours(g, attention_mask)?;
        let others = padding_mask(g, &others)?;
        let own = padding_mask(g, &own)?;
        let own = g.transpose(&own, &[0, 1, 3, 2])?;
        let visible = g.binary(Binary::And, &own, &others)?;
        let visible = g.binary(Binary::And, &visible, &local)?;
        let hidden = g.scalar(HIDDEN);
        g.select(&visible, &bias, &hidden)
    }

    /// Attention without scaling of scores, and without the projection of its result: `[batch, sequence, width]` of queries,
    /// keys and values of tokens, and keys and values `[batch, globals, width]` of global tokens.
    ///
    /// # Errors
    /// When the shapes do not go together.
    pub fn attention(
        &self,
        g: &mut Graph,
        q: &Tensor,
        (k, v): &(Tensor, Tensor),
        global: Option<&(Tensor, Tensor)>,
        context: &TransientGlobalContext,
    ) -> Result<Tensor> {
        let [batch, ..] = q.shape() else { return Err(g.error("Attention", "queries are 3d")) };
        let batch = batch.clone();
        let q = self.blocks.split(g, q)?;
        let mut around = |local: &Tensor, global: Option<&Tensor>| -> Result<Tensor> {
            let local = self.blocks.with_neighbours(g, local)?;
            let Some(global) = global else { return Ok(local) };
            let global = self.blocks.repeat(g, global)?;
            g.concat(&[&local, &global], 1)
        };
        let (k, v) = (around(k, global.map(|kv| &kv.0))?, around(v, global.map(|kv| &kv.1))?);
        let options = Attention {
            heads: self.heads,
            kv_heads: self.heads,
            scale: Some(1.0),
            mask: Some(&context.bias),
            ..Attention::default()
        };
        let h = g.attention(&q, &k, &v, &options)?;
        self.blocks.join(g, &h, &batch)
    }
}

/// How many whole blocks there are, `[1]`: of positions `[sequence]`.
fn block_count(g: &mut Graph, positions: &Tensor, size: usize) -> Result<Tensor> {
    let ends = block_ends(g, positions, size)?;
    let ends = g.cast(&ends, Dtype::I64);
    g.reduce(Reduction::Sum, &ends, &[0], true)
}

/// Which positions `[sequence]` end a block.
fn block_ends(g: &mut Graph, positions: &Tensor, size: usize) -> Result<Tensor> {
    let (size, last) = (g.integer(size as i64), g.integer(size as i64 - 1));
    let within = g.binary(Binary::Mod, positions, &size)?;
    g.binary(Binary::Equal, &within, &last)
}

/// The global token that each token is summed in, -1 for none: `[batch, sequence]` (`_make_global_fixed_block_ids`). Tokens
/// behind the last whole block are in that one.
fn global_blocks(g: &mut Graph, attention_mask: &Tensor, size: usize) -> Result<Tensor> {
    let [_, sequence] = attention_mask.shape() else {
        return Err(g.error("Attention", "attention_mask must be [batch, sequence]"));
    };
    let sequence = sequence.clone();
    let blocks = block_of(g, &sequence, size)?;
    let is_token = g.cast(attention_mask, Dtype::Bool);
    let none = g.integer(-1);
    let blocks = g.select(&is_token, &blocks, &none)?;
    let positions = g.arange(&sequence);
    let ends = block_ends(g, &positions, size)?;
    let ends = g.binary(Binary::And, &ends, &is_token)?;
    let ends = g.cast(&ends, Dtype::I64);
    let whole = g.reduce(Reduction::Sum, &ends, &[1], true)?;
    let whole = g.add(&whole, &none)?;
    g.binary(Binary::Min, &blocks, &whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::{expect, refusal};

    /// Five tokens, of which each sees one to either side; all scores but hidden ones are equal.
    fn attend(global_block_size: Option<usize>, mask: [i64; 5]) -> impl Fn(&mut Graph) -> Result<Tensor> {
        move |g| {
            let local = TransientGlobal {
                blocks: LocalBlocks::new(&Dim::Fixed(5), 2, 0),
                radius: 1,
                global_block_size,
                heads: 1,
                buckets: RelativeBuckets { count: 4, max_distance: 8, causal: false },
            };
            let mask = g.integers(&[1, 5], mask.to_vec())?;
            let context = local.context(g, &g.root(), &mask)?;
            let v = g.constant(&[1, 5, 1], vec![1.0, 2.0, 3.0, 4.0, 5.0])?;
            let zero = g.scale(&v, 0.0)?;
            let global = match &context.aggregate {
                None => None,
                Some(aggregate) => {
                    let v = g.matmul(aggregate, &v)?;
                    Some((g.scale(&v, 0.0)?, v))
                }
            };
            local.attention(g, &zero, &(zero.clone(), v), global.as_ref(), &context)
        }
    }

    const WEIGHTS: [(&str, &[f32]); 2] =
        [("relative_attention_bias.weight", &[0.0; 4]), ("global_relative_attention_bias.weight", &[0.0; 4])];

    #[test]
    fn tokens_see_their_neighbours() {
        expect(&WEIGHTS[..1], attend(None, [1; 5]), &[1, 5, 1], &[1.5, 2.0, 3.0, 4.0, 4.5]);
    }

    #[test]
    fn tokens_see_sums_of_blocks() {
        // The fifth token is summed with the second block: the sums are 3 and 12.
        let want = [18.0 / 4.0, 21.0 / 5.0, 24.0 / 5.0, 27.0 / 5.0, 24.0 / 4.0];
        expect(&WEIGHTS, attend(Some(2), [1; 5]), &[1, 5, 1], &want);
    }

    #[test]
    fn padding_is_in_no_sum_and_sees_what_is_none() {
        // One block is whole, and the third token is in it: the sum is 6.
        let want = [9.0 / 3.0, 12.0 / 4.0, 11.0 / 3.0, 0.0, 0.0];
        expect(&WEIGHTS, attend(Some(2), [1, 1, 1, 0, 0]), &[1, 5, 1], &want);
    }

    #[test]
    fn blocks_are_powers_of_two() {
        let problem = refusal(attend(Some(3), [1; 5]));
        insta::assert_snapshot!(problem, @"Attention in the root: global_block_size: is 3, but must be a power of two");
    }
}
