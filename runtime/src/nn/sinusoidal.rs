//! Sinusoidal position embeddings, and position ids counted from the attention mask.

use crate::Result;
use crate::graph::{Binary, Dim, Dtype, Graph, Tensor, Unary};

/// Position ids from the attention mask (`create_position_ids_from_input_ids`, OPT's cumulative sum): tokens counted from
/// `offset`, padding `offset - 1`. `attention_mask` `[batch, past + sequence]` to `[batch, sequence]` i64.
///
/// # Errors
/// When the mask has not two axes.
pub fn positions_from_mask(
    g: &mut Graph,
    attention_mask: &Tensor,
    past: &Dim,
    offset: i64,
) -> Result<Tensor> {
    let shift = g.integer(offset - 1);
    let counted = g.cumsum(attention_mask, 1)?;
    let counted = g.mul(&counted, attention_mask)?;
    let counted = g.add(&counted, &shift)?;
    let keys = attention_mask.shape().get(1).cloned().unwrap_or(Dim::Fixed(0));
    match past {
        Dim::Fixed(0) => Ok(counted),
        past => g.slice_dims(&counted, 1, past.clone(), keys),
    }
}

/// Sinusoidal position embeddings (Vaswani et al., 2017; `M2M100SinusoidalPositionalEmbedding`): sines, then cosines of
/// positions `[batch, sequence]` counted from `offset`, frequencies from 1 to 1/10000 over half the width, less `fewer` steps:
/// `[batch, sequence, width]`.
///
/// # Errors
/// When the width is odd.
pub fn sinusoidal(
    g: &mut Graph,
    position_ids: &Tensor,
    width: usize,
    offset: i64,
    fewer: usize,
) -> Result<Tensor> {
    let half = width / 2;
    let step = -(10_000_f64.ln()) / half.saturating_sub(fewer).max(1) as f64;
    let frequencies: Vec<_> = (0..half).map(|index| (index as f32 * step as f32).exp()).collect();
    let frequencies = g.constant(&[half], frequencies)?;
    let offset = g.integer(offset);
    let positions = g.add(position_ids, &offset)?;
    let positions = g.cast(&positions, Dtype::F32);
    let positions = g.unsqueeze(&positions, 2)?;
    let angles = g.mul(&positions, &frequencies)?;
    let (sines, cosines) = (g.unary(Unary::Sin, &angles), g.unary(Unary::Cos, &angles));
    g.concat(&[&sines, &cosines], 2)
}

/// Position embeddings with zeros at `padding_idx` `row`; unchanged where there is none, or it is negative.
///
/// # Errors
/// When there are not as many vectors as positions.
pub fn zero_padding(g: &mut Graph, x: &Tensor, position_ids: &Tensor, row: Option<i64>) -> Result<Tensor> {
    let Some(row) = row.filter(|row| *row >= 0) else { return Ok(x.clone()) };
    let row = g.integer(row);
    let found = g.binary(Binary::Equal, position_ids, &row)?;
    let found = g.unsqueeze(&found, 2)?;
    let zero = g.scalar(0.0);
    g.select(&found, &zero, x)
}
