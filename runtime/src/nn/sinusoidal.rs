//! Positions that models count themselves.

use crate::Result;
use crate::graph::{Binary, Dim, Dtype, Graph, Tensor, Unary};

/// The positions of tokens among tokens, counted from `offset`; padding has `offset - 1`. `attention_mask`
/// `[batch, past + sequence]` to `[batch, sequence]`.
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

/// Sines and then cosines of positions `[batch, sequence]` counted from `offset`, whose wavelengths grow 10000-fold over
/// half the width, or `fewer` steps: `[batch, sequence, width]`.
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

/// Vectors of positions, with zeros at position `row`; as they are where there is none, or it is before the first.
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
