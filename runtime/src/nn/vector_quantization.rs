//! Residual vector quantization of neural audio codecs.

use super::nearest_codes;
use crate::Result;
use crate::graph::{Graph, Tensor};

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

#[cfg(test)]
mod tests {
    use super::super::testing::{expect, refusal};
    use super::*;
    use crate::graph::Dtype;

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
