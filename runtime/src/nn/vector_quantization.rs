//! Residual vector quantization of neural audio codecs.

use super::nearest_codes;
use crate::Result;
use crate::graph::{Dtype, Graph, Reduction, Tensor, Unary};

/// Residual vector quantization (`EncodecResidualVectorQuantizer`; arXiv:2107.03312): each codebook quantizes what those before it
/// left of x `[batch, frames, width]`. Codes `[batch, codebooks, frames]`, and the sum of their vectors `[batch, frames, width]`.
///
/// # Errors
/// When there is no codebook, or widths differ.
pub fn residual_quantize(g: &mut Graph, x: &Tensor, codebooks: &[Tensor]) -> Result<(Tensor, Tensor)> {
    let (mut residual, mut sum) = (x.clone(), None::<Tensor>);
    let mut codes = vec![];
    for codebook in codebooks {
        let code = nearest_codes(g, &residual, codebook)?;
        let vectors = g.gather(codebook, &code, 0)?;
        residual = g.sub(&residual, &vectors)?;
        sum = Some(match sum {
            Some(sum) => g.add(&sum, &vectors)?,
            None => vectors,
        });
        codes.push(g.unsqueeze(&code, 1)?);
    }
    let Some(sum) = sum else { return Err(g.error("residual_quantize", "there is no codebook")) };
    Ok((g.concat(&codes.iter().collect::<Vec<_>>(), 1)?, sum))
}

/// Values bounded to `levels` whole numbers each, by a hyperbolic tangent (`Xcodec2FiniteScalarQuantization.bound`): x
/// `[…, levels.len()]`.
///
/// # Errors
/// When there are fewer than two levels, or not as many as x is wide.
pub fn bound_to_levels(g: &mut Graph, x: &Tensor, levels: &[usize]) -> Result<Tensor> {
    if let Some(few) = levels.iter().find(|&&level| level < 2) {
        return Err(g.error("bound_to_levels", format!("quantization_levels: {few} must be at least 2")));
    }
    let width = levels.len();
    let half_range = |level: usize| (level - 1) as f64 * 1.001 / 2.0;
    let offset = |level: usize| if level.is_multiple_of(2) { 0.5 } else { 0.0 };
    let mut row = |of: &dyn Fn(usize) -> f64| {
        g.constant(&[width], levels.iter().map(|&level| of(level) as f32).collect())
    };
    let shift = row(&|level| (offset(level) / half_range(level)).atanh())?;
    let (range, offset) = (row(&half_range)?, row(&offset)?);
    let x = g.add(x, &shift)?;
    let x = g.tanh(&x);
    let x = g.mul(&x, &range)?;
    g.sub(&x, &offset)
}

/// Finite scalar quantization (`Xcodec2FiniteScalarQuantization`; arXiv:2309.15505): the values of x `[batch, frames, width]` at one of
/// `levels` numbers from -1 on each; and the code that they stand for, i64 `[batch, frames]`, the first value counting least.
///
/// # Errors
/// As [`bound_to_levels`], and when codes exceed what f32 counts.
pub fn finite_scalar_quantize(g: &mut Graph, x: &Tensor, levels: &[usize]) -> Result<(Tensor, Tensor)> {
    let x = bound_to_levels(g, x, levels)?;
    let rounded = g.unary(Unary::Round, &x);
    let width = levels.len();
    let half: Vec<f32> = levels.iter().map(|&level| (level / 2) as f32).collect();
    let half = g.constant(&[width], half)?;
    let codes = g.div(&rounded, &half)?;
    let mut basis = vec![];
    let mut product = 1_i64;
    for &level in levels {
        basis.push(product);
        product = product.saturating_mul(i64::try_from(level).unwrap_or(i64::MAX));
    }
    if product > i64::from(i32::MAX) {
        return Err(
            g.error("finite_scalar_quantize", format!("quantization_levels: {product} codes are too many"))
        );
    }
    let whole = g.add(&rounded, &half)?;
    let whole = g.cast(&whole, Dtype::I64);
    let basis = g.integers(&[width], basis)?;
    let weighed = g.mul(&whole, &basis)?;
    let indices = g.reduce(Reduction::Sum, &weighed, &[2], false)?;
    Ok((codes, indices))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{expect, refusal};
    use super::*;

    #[test]
    fn scalars_are_rounded_to_their_levels() {
        let build = |codes: bool| {
            move |g: &mut Graph| {
                let x = g.constant(&[1, 2, 2], vec![9.0, -9.0, 0.0, 0.0])?;
                let (values, indices) = finite_scalar_quantize(g, &x, &[4, 3])?;
                Ok(if codes { g.cast(&indices, Dtype::F32) } else { values })
            }
        };
        // Four levels are -1, -½, 0 and ½, three -1, 0 and 1.
        expect(&[], build(false), &[1, 2, 2], &[0.5, -1.0, 0.0, 0.0]);
        expect(&[], build(true), &[1, 2], &[3.0, 6.0]);
        let problem = refusal(|g| {
            let x = g.constant(&[1, 1, 1], vec![0.0])?;
            finite_scalar_quantize(g, &x, &[1])
        });
        insta::assert_snapshot!(problem, @"bound_to_levels in the root: quantization_levels: 1 must be at least 2");
    }

    #[test]
    fn each_codebook_quantizes_what_is_left() {
        let build = |sum: bool| {
            move |g: &mut Graph| {
                let x = g.constant(&[1, 2, 2], vec![4.0, 0.0, 1.0, 9.0])?;
                let first = g.constant(&[3, 2], vec![3.0, 0.0, 100.0, 0.0, 0.0, 8.0])?;
                let second = g.constant(&[2, 2], vec![0.0, 1.0, 1.0, 0.0])?;
                let (codes, vectors) = residual_quantize(g, &x, &[first, second])?;
                if sum { Ok(vectors) } else { Ok(g.cast(&codes, Dtype::F32)) }
            }
        };
        expect(&[], build(false), &[1, 2, 2], &[0.0, 2.0, 1.0, 0.0]);
        expect(&[], build(true), &[1, 2, 2], &[4.0, 0.0, 0.0, 9.0]);
        let problem = refusal(|g| {
            let x = g.constant(&[1, 1, 1], vec![0.0])?;
            residual_quantize(g, &x, &[])
        });
        insta::assert_snapshot!(problem, @"residual_quantize in the root: there is no codebook");
    }
}
