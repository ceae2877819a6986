//! Pooling of windows of patches by attention of their mean.

use super::{MultiHead, mask_hidden_states, masked_mean_pool};
use crate::Result;
use crate::dims;
use crate::graph::{Binary, Dtype, Graph, Scope, Tensor, show};

/// Attention pooling of some patches each (`image_pooling_2d` of `Molmo2Adapter`): the mean of the patches that a token has attends
/// to them by `attention`, whose weights are at `w`. Patches `[patches, width]` f32, and `places` `[tokens, most]` i64, the indices of
/// the patches of each token, below 0 for none, of which each token has one at least: `[tokens, output_width]`.
///
/// # Errors
/// When the patches or the places have not two axes, or the heads do not divide the width.
pub fn pool_patches(
    g: &mut Graph,
    w: &Scope,
    attention: &MultiHead<'_>,
    patches: &Tensor,
    places: &Tensor,
) -> Result<Tensor> {
    g.enter(w);
    let ([_, _], [tokens, most], Dtype::I64) = (patches.shape(), places.shape(), places.dtype()) else {
        let (patches, shape, dtype) = (show(patches.shape()), show(places.shape()), places.dtype());
        let problem =
            format!("{patches} and {dtype} {shape} are not [patches, width] and i64 [tokens, most]");
        return Err(g.error("pool_patches", problem));
    };
    let zero = g.integer(0);
    let some = g.binary(Binary::GreaterOrEqual, places, &zero)?;
    let rows = g.select(&some, places, &zero)?;
    let x = g.gather(patches, &rows, 0)?;
    let x = mask_hidden_states(g, &x, &some)?;
    let mean = masked_mean_pool(g, &x, &some)?;
    let mean = g.unsqueeze(&mean, 1)?;
    let mask = g.reshape(&some, dims![tokens, 1, 1, most])?;
    let attention = MultiHead { mask: Some(&mask), ..*attention };
    let x = attention.attend(g, w, [&mean, &x, &x])?;
    g.squeeze(&x, 1)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{expect, refusal};
    use super::*;

    #[test]
    fn the_mean_of_the_patches_of_a_token_attends_to_them() {
        let ln2 = 2.0_f32.ln();
        let weights: [(&str, &[f32]); 8] = [
            ("w.q_proj.weight", &[ln2, 0.0]),
            ("w.q_proj.bias", &[0.0]),
            ("w.k_proj.weight", &[0.0, 1.0]),
            ("w.k_proj.bias", &[0.0]),
            ("w.v_proj.weight", &[3.0, 0.0]),
            ("w.v_proj.bias", &[1.0]),
            ("w.o_proj.weight", &[1.0]),
            ("w.o_proj.bias", &[0.5]),
        ];
        let build = |g: &mut Graph| {
            let patches = g.constant(&[3, 2], vec![2.0, 1.0, 0.0, 0.0, 5.0, 7.0])?;
            let places = g.integers(&[3, 2], vec![0, 1, 1, -1, -1, 2])?;
            pool_patches(g, &Scope::root().scope("w"), &MultiHead::new(1, 1), &patches, &places)
        };
        // The first token asks by 1·ln 2 for keys 1 and 0, whose values are 7 and 1; the others have one patch.
        expect(&weights, build, &[3, 1], &[5.5, 1.5, 16.5]);
    }

    #[test]
    fn places_are_indices() {
        let error = refusal(|g| {
            let patches = g.constant(&[3, 2], vec![0.0; 6])?;
            pool_patches(g, &Scope::root(), &MultiHead::new(1, 1), &patches, &patches)
        });
        assert!(error.to_string().contains("f32 [3, 2] are not"), "{error}");
    }
}
