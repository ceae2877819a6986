//! Sinusoidal position embeddings, and position ids counted from the attention mask.

use crate::Result;
use crate::graph::{Binary, Dim, Dtype, Graph, Reduction, Tensor, Unary};

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

/// Position ids from token ids (`RobertaEmbeddings.create_position_ids_from_input_ids`): tokens counted after `padding`, and
/// after those of the cache that `attention_mask` `[batch, past + sequence]` has; padding is at `padding`. `ids`
/// `[batch, sequence]` to the same shape, i64.
///
/// # Errors
/// When the shapes do not fit.
pub fn positions_after_padding(
    g: &mut Graph,
    ids: &Tensor,
    attention_mask: &Tensor,
    past: &Dim,
    padding: i64,
) -> Result<Tensor> {
    let (none, one, padding) = (g.integer(0), g.integer(1), g.integer(padding));
    let is_padding = g.binary(Binary::Equal, ids, &padding)?;
    let mask = g.select(&is_padding, &none, &one)?;
    let mut counted = g.cumsum(&mask, 1)?;
    if *past != Dim::Fixed(0) {
        let cached = g.slice_dims(attention_mask, 1, Dim::Fixed(0), past.clone())?;
        let cached = g.reduce(Reduction::Sum, &cached, &[1], true)?;
        counted = g.add(&counted, &cached)?;
    }
    let counted = g.mul(&counted, &mask)?;
    g.add(&counted, &padding)
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

/// Sinusoidal position embeddings that skip padding (`M2M100SinusoidalPositionalEmbedding`): tokens counted after `padding` and
/// the first of `position_ids`, zeros at padding. Ids and positions `[batch, sequence]` to `[batch, sequence, width]`.
///
/// # Errors
/// When the shapes do not fit.
pub fn sinusoidal_after_padding(
    g: &mut Graph,
    ids: &Tensor,
    position_ids: &Tensor,
    width: usize,
    padding: i64,
) -> Result<Tensor> {
    let (none, one, padding_id) = (g.integer(0), g.integer(1), g.integer(padding));
    let padded = g.binary(Binary::Equal, ids, &padding_id)?;
    let mask = g.select(&padded, &none, &one)?;
    let counted = g.cumsum(&mask, 1)?;
    let past = g.slice_dims(position_ids, 1, Dim::Fixed(0), Dim::Fixed(1))?;
    let counted = g.add(&counted, &past)?;
    let counted = g.mul(&counted, &mask)?;
    let embeddings = sinusoidal(g, &counted, width, padding, 1)?;
    zero_padding(g, &embeddings, &counted, Some(0))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Input, dims};
    use crate::nn::testing::{expect, refusal};

    #[test]
    fn tokens_are_counted_from_the_offset() {
        let mask = |g: &mut Graph| g.integers(&[2, 4], vec![0, 0, 1, 1, 1, 1, 1, 1]);
        let build = |g: &mut Graph| {
            let mask = mask(g)?;
            positions_from_mask(g, &mask, &Dim::Fixed(0), 2)
        };
        expect(&[], build, &[2, 4], &[1.0, 1.0, 2.0, 3.0, 2.0, 3.0, 4.0, 5.0]);
        let build = |g: &mut Graph| {
            let mask = mask(g)?;
            positions_from_mask(g, &mask, &Dim::Fixed(3), 2)
        };
        expect(&[], build, &[2, 1], &[3.0, 5.0]);
    }

    #[test]
    fn padding_is_not_counted() {
        let build = |g: &mut Graph| {
            let ids = g.integers(&[2, 4], vec![1, 1, 7, 8, 9, 7, 1, 8])?;
            let mask = g.integers(&[2, 7], vec![0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0, 1])?;
            positions_after_padding(g, &ids, &mask, &Dim::Fixed(3), 1)
        };
        expect(&[], build, &[2, 4], &[1.0, 1.0, 2.0, 3.0, 5.0, 6.0, 1.0, 7.0]);
    }

    #[test]
    fn padding_has_no_sinusoidal_position() {
        let build = |g: &mut Graph| {
            let ids = g.integers(&[1, 3], vec![1, 7, 8])?;
            let positions = g.integers(&[1, 3], vec![2, 3, 4])?;
            sinusoidal_after_padding(g, &ids, &positions, 2, 1)
        };
        // Padding, then rows 1 + 2 + 1 and 1 + 2 + 2 of the table, frequency 1.
        let (near, far) = (4.0_f32, 5.0_f32);
        expect(&[], build, &[1, 3, 2], &[0.0, 0.0, near.sin(), near.cos(), far.sin(), far.cos()]);
    }

    #[test]
    fn sines_come_before_cosines() {
        let build = |g: &mut Graph| {
            let positions = g.integers(&[1, 2], vec![0, 2])?;
            sinusoidal(g, &positions, 4, 1, 0)
        };
        // Positions 1 and 3, frequencies 1 and 1/100.
        let at = |position: f32| {
            [position.sin(), (position / 100.0).sin(), position.cos(), (position / 100.0).cos()]
        };
        expect(&[], build, &[1, 2, 4], &[at(1.0), at(3.0)].concat());
        let build = |g: &mut Graph| {
            let positions = g.integers(&[1, 1], vec![1])?;
            sinusoidal(g, &positions, 4, 0, 1)
        };
        // With one step fewer they are 1 and 1/10000.
        let want = [1_f32.sin(), 1e-4_f32.sin(), 1_f32.cos(), 1e-4_f32.cos()];
        expect(&[], build, &[1, 1, 4], &want);
    }

    #[test]
    fn the_padding_has_no_position() {
        for (row, want) in
            [(Some(5), [0.0, 0.0, 3.0, 4.0]), (Some(-1), [1.0, 2.0, 3.0, 4.0]), (None, [1.0, 2.0, 3.0, 4.0])]
        {
            let build = |g: &mut Graph| {
                let x = g.constant(&[1, 2, 2], vec![1.0, 2.0, 3.0, 4.0])?;
                let positions = g.integers(&[1, 2], vec![5, 6])?;
                zero_padding(g, &x, &positions, row)
            };
            expect(&[], build, &[1, 2, 2], &want);
        }
    }

    #[test]
    fn positions_go_with_vectors() {
        let problem = refusal(|g| {
            let x = g.input(Input::f32("x", crate::dims![dims::BATCH, 3, 2]));
            let positions = g.integers(&[1, 2], vec![5, 6])?;
            zero_padding(g, &x, &positions, Some(5))
        });
        insta::assert_snapshot!(problem, @"Where in the root: bool [1, 2, 1], f32 [], f32 [batch, 3, 2]: a condition and two of one type that broadcast are needed");
    }
}
