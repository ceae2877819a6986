//! ALiBi, attention with linear biases (Press et al., 2021, arXiv:2108.12409), GPT-2's additive masks, and attention sinks.

use super::causal_mask;
use crate::Result;
use crate::dims;
use crate::graph::{Binary, Dim, Dtype, Graph, MASKED_SCORE, PadMode, Tensor, show};

/// ALiBi slopes by powers of two, then every other slope of the next power (`build_alibi_tensor` of BLOOM).
pub fn alibi_slopes(heads: usize) -> Vec<f32> {
    let whole = if heads == 0 { 1 } else { 1 << heads.ilog2() };
    let base = |count: usize| 2_f32.powf(-(2_f32.powf(3.0 - (count as f32).log2())));
    let slopes = (1..=whole).map(|power| base(whole).powi(power as i32));
    let more = (1..).step_by(2).map(|power| base(2 * whole).powi(power));
    slopes.chain(more).take(heads).collect()
}

/// ALiBi slopes by `alibi_bias_max` `most`, every other one first where heads are no power of two (`build_mpt_alibi_tensor`).
pub fn alibi_slopes_with_max(heads: usize, most: f64) -> Vec<f32> {
    let count = heads.next_power_of_two();
    let slopes: Vec<_> =
        (1..=count).map(|n| 2_f32.powf(-(n as f32 * (most / count as f64) as f32))).collect();
    if count == heads {
        return slopes;
    }
    let odd = slopes.iter().skip(1).step_by(2);
    odd.chain(slopes.iter().step_by(2)).take(heads).copied().collect()
}

/// Attention mask with ALiBi: `mask` `[batch, 1, q, k]` as an additive one `[batch, heads, q, k]`, biases being slope times the
/// key's position among the tokens of `attention_mask` `[batch, k]` (`BloomAttention`).
///
/// # Errors
/// When the shapes do not go together.
pub fn alibi(g: &mut Graph, mask: &Tensor, attention_mask: &Tensor, slopes: &[f32]) -> Result<Tensor> {
    let positions = token_positions(g, attention_mask)?;
    biased(g, mask, &positions, slopes)
}

/// The position of each key among tokens `[batch, 1, 1, k]` f32.
fn token_positions(g: &mut Graph, attention_mask: &Tensor) -> Result<Tensor> {
    let one = g.integer(1);
    let positions = g.cumsum(attention_mask, 1)?;
    let positions = g.sub(&positions, &one)?;
    let positions = g.mul(&positions, attention_mask)?;
    let positions = g.unsqueeze(&positions, 1)?;
    let positions = g.unsqueeze(&positions, 1)?;
    Ok(g.cast(&positions, Dtype::F32))
}

/// [`alibi`] rounded to bfloat16 in slopes, positions and biases, which are divided by the square root of the head size
/// (`build_alibi_tensor` of Falcon).
///
/// # Errors
/// As [`alibi`].
pub fn alibi_bfloat16(
    g: &mut Graph,
    mask: &Tensor,
    attention_mask: &Tensor,
    heads: usize,
    size: usize,
) -> Result<Tensor> {
    let slopes = alibi_slopes(heads).into_iter().map(|slope| half::bf16::from_f32(slope).to_f32());
    let positions = token_positions(g, attention_mask)?;
    let positions = in_bfloat16(g, &positions);
    let slopes = g.constant(&[1, heads, 1, 1], slopes.collect())?;
    let biases = g.mul(&slopes, &positions)?;
    let biases = in_bfloat16(g, &biases);
    let biases = g.scale(&biases, (size as f64).powf(-0.5))?;
    let lowest = g.scalar(MASKED_SCORE);
    g.select(mask, &biases, &lowest)
}

/// Numbers rounded to bfloat16.
fn in_bfloat16(g: &mut Graph, x: &Tensor) -> Tensor {
    let narrow = g.cast(x, Dtype::Bf16);
    g.cast(&narrow, Dtype::F32)
}

/// As [`alibi`], by the key's position among all keys.
///
/// # Errors
/// As [`alibi`].
pub fn alibi_by_key(g: &mut Graph, mask: &Tensor, slopes: &[f32]) -> Result<Tensor> {
    let Some(keys) = mask.dim(-1).cloned() else {
        return Err(g.error("alibi", "the mask has no axes"));
    };
    let positions = g.arange(&keys);
    let positions = g.cast(&positions, Dtype::F32);
    biased(g, mask, &positions, slopes)
}

fn biased(g: &mut Graph, mask: &Tensor, positions: &Tensor, slopes: &[f32]) -> Result<Tensor> {
    let slopes = g.constant(&[1, slopes.len(), 1, 1], slopes.to_vec())?;
    let biases = g.mul(&slopes, positions)?;
    let lowest = g.scalar(MASKED_SCORE);
    g.select(mask, &biases, &lowest)
}

/// GPT-2's causal mask added to `mask`: of a position that sees nothing, keys that both masks hide stay hidden.
///
/// # Errors
/// When the shapes do not go together.
pub fn causal_and_padding_mask(
    g: &mut Graph,
    mask: &Tensor,
    attention_mask: &Tensor,
    past: &Dim,
    window: Option<usize>,
) -> Result<Tensor> {
    let all = g.binary(Binary::Equal, attention_mask, attention_mask)?;
    let near = causal_mask(g, &all, past, window)?;
    // Not the sum of both: that is infinite in half precision, and nearly so in single.
    let (seen, once, twice) = (g.scalar(0.0), g.scalar(MASKED_SCORE / 2.0), g.scalar(MASKED_SCORE));
    let where_seen = g.select(&near, &seen, &once)?;
    let where_hidden = g.select(&near, &once, &twice)?;
    g.select(mask, &where_seen, &where_hidden)
}

/// Attention sinks (`GptOssAttention`; arXiv:2309.17453): keys, values and a mask `[batch, 1, q, k]` with one key more, first,
/// whose value is zero and whose scores are `sinks` `[heads]`.
///
/// # Errors
/// When the shapes do not go together.
pub fn attention_sinks(
    g: &mut Graph,
    k: &Tensor,
    v: &Tensor,
    mask: &Tensor,
    sinks: &Tensor,
) -> Result<(Tensor, Tensor, Tensor)> {
    let ([batch, _, queries, keys], [heads]) = (mask.shape(), sinks.shape()) else {
        return Err(g.error("attention_sinks", format!("the mask is {}", show(mask.shape()))));
    };
    let (seen, hidden) = (g.scalar(0.0), g.scalar(MASKED_SCORE));
    let mask = g.select(mask, &seen, &hidden)?;
    let mask = g.expand(&mask, dims![batch, heads, queries, keys])?;
    let first = g.reshape(sinks, dims![1, heads, 1, 1])?;
    let first = g.expand(&first, dims![batch, heads, queries, 1])?;
    let mask = g.concat(&[&first, &mask], 3)?;
    let [k, v] = [k, v].map(|x| g.pad(x, &[(x.rank() - 2, 1, 0)], PadMode::Constant(0.0)));
    Ok((k?, v?, mask))
}

#[cfg(test)]
mod tests;
