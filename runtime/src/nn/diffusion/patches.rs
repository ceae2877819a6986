//! Patches of latents and their positions (`PatchEmbed` of `diffusers`).

use crate::graph::{Conv, Dim, Dtype, Graph, Scope, Tensor, Unary, show};
use crate::nn::flatten_feature_map;
use crate::{Result, dims};

/// Patches with sinusoidal positions along columns and rows (`PatchEmbed` without `pos_embed_max_size`).
#[derive(Clone, Copy, Debug)]
pub struct LatentPatches {
    /// The rows and columns of a patch.
    pub size: usize,
    /// The rows and columns of patches that the model was trained on; places of others are stretched to as many.
    pub base: usize,
    /// What places are divided by.
    pub scale: usize,
    /// The width of patches.
    pub width: usize,
}

impl LatentPatches {
    /// Latents `[batch, channels, rows, columns]` to `[batch, patches, width]`, and how many rows and columns of patches there are.
    ///
    /// # Errors
    /// When the latents have not four axes, or the width is no multiple of 4.
    pub fn forward(&self, g: &mut Graph, w: &Scope, latents: &Tensor) -> Result<(Tensor, [Dim; 2])> {
        let x = g.conv(&w.scope("proj"), latents, &Conv::patches(self.width, self.size))?;
        let grid = [x.shape()[2].clone(), x.shape()[3].clone()];
        let x = flatten_feature_map(g, &x)?;
        let positions = self.positions(g, &grid)?;
        Ok((g.add(&x, &positions)?, grid))
    }

    /// `[patches, width]`: of the column the first half, of the row the second (`get_2d_sincos_pos_embed`).
    fn positions(&self, g: &mut Graph, [rows, columns]: &[Dim; 2]) -> Result<Tensor> {
        if !self.width.is_multiple_of(4) {
            return Err(g.error("PatchEmbed", format!("the width {} is no multiple of 4", self.width)));
        }
        let half = self.width / 2;
        let of_columns = self.along(g, columns)?;
        let of_columns = g.unsqueeze(&of_columns, 0)?;
        let of_columns = g.expand(&of_columns, dims![rows, columns, half])?;
        let of_rows = self.along(g, rows)?;
        let of_rows = g.unsqueeze(&of_rows, 1)?;
        let of_rows = g.expand(&of_rows, dims![rows, columns, half])?;
        let both = g.concat(&[&of_columns, &of_rows], 2)?;
        g.flatten(&both, 0..2)
    }

    /// Sines and cosines of places along an axis: `[length, width / 2]`.
    fn along(&self, g: &mut Graph, length: &Dim) -> Result<Tensor> {
        let quarter = self.width / 4;
        let omega = |index: usize| 10_000_f64.powf(-(index as f64) / quarter as f64) as f32;
        let omega = g.constant(&[quarter], (0..quarter).map(omega).collect())?;
        let places = g.arange(length);
        let places = g.cast(&places, Dtype::F32);
        let count = g.length(length)?;
        let count = g.cast(&count, Dtype::F32);
        let base = g.scalar(self.base as f32);
        let stretch = g.div(&count, &base)?;
        let places = g.div(&places, &stretch)?;
        let scale = g.scalar(self.scale as f32);
        let places = g.div(&places, &scale)?;
        let places = g.unsqueeze(&places, 1)?;
        let angles = g.mul(&places, &omega)?;
        let (sines, cosines) = (g.unary(Unary::Sin, &angles), g.unary(Unary::Cos, &angles));
        g.concat(&[&sines, &cosines], 1)
    }
}

/// Positions in the middle of a square (`cropped_pos_embed`): `[side, side, width]` to `[rows, columns, width]`; where there are not
/// evenly many beside them, one more follows than precedes them.
///
/// # Errors
/// When the positions have not three axes.
pub fn center_crop(g: &mut Graph, positions: &Tensor, grid: &[Dim; 2]) -> Result<Tensor> {
    if positions.rank() != 3 {
        let problem = format!("{} is not [side, side, width]", show(positions.shape()));
        return Err(g.error("PatchEmbed", problem));
    }
    let mut x = positions.clone();
    for (axis, length) in grid.iter().enumerate() {
        let start = (x.shape()[axis].clone() - length.clone()).floor_div(2);
        x = g.slice_dims(&x, axis, start.clone(), start + length.clone())?;
    }
    Ok(x)
}

/// Patches `[batch, rows * columns, size * size * channels]` as a feature map `[batch, channels, size * rows, size * columns]`.
///
/// # Errors
/// When the patches have another shape.
pub fn unpatchify(
    g: &mut Graph,
    x: &Tensor,
    [rows, columns]: &[Dim; 2],
    [size, channels]: [usize; 2],
) -> Result<Tensor> {
    let batch = x.shape()[0].clone();
    let x = g.reshape(x, dims![batch, rows, columns, size, size, channels])?;
    let x = g.transpose(&x, &[0, 5, 1, 3, 2, 4])?;
    let (batch, size) = (x.shape()[0].clone(), Dim::Fixed(size));
    g.reshape(&x, dims![batch, channels, rows.clone() * size.clone(), columns.clone() * size])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::{expect, refusal};

    #[test]
    fn places_are_stretched_to_those_of_training() {
        let build = |g: &mut Graph| {
            let latents = g.constant(&[1, 1, 2, 4], vec![0.0; 8])?;
            let patches = LatentPatches { size: 2, base: 4, scale: 2, width: 4 };
            Ok(patches.forward(g, &Scope::root().scope("p"), &latents)?.0)
        };
        let weights: [(&str, &[f32]); 2] =
            [("p.proj.weight", &[0.0; 16]), ("p.proj.bias", &[10.0, 20.0, 30.0, 40.0])];
        // Two columns of four, halved: places 0 and 1; one row: 0.
        let (sin, cos) = (1.0_f32.sin(), 1.0_f32.cos());
        expect(&weights, build, &[1, 2, 4], &[10.0, 21.0, 30.0, 41.0, 10.0 + sin, 20.0 + cos, 30.0, 41.0]);
        let problem = refusal(|g| {
            let latents = g.constant(&[1, 1, 2, 2], vec![0.0; 4])?;
            let patches = LatentPatches { size: 2, base: 4, scale: 1, width: 6 };
            Ok(patches.forward(g, &Scope::root(), &latents)?.0)
        });
        assert!(problem.contains("the width 6 is no multiple of 4"), "{problem}");
    }

    #[test]
    fn the_middle_of_a_square_is_taken() {
        let build = |g: &mut Graph| {
            let positions = g.constant(&[3, 3, 1], (0..9_u8).map(f32::from).collect())?;
            center_crop(g, &positions, &[Dim::Fixed(1), Dim::Fixed(2)])
        };
        // Of three rows the second, of three columns the first two.
        expect(&[], build, &[1, 2, 1], &[3.0, 4.0]);
        let problem = refusal(|g| {
            let flat = g.constant(&[4, 1], vec![0.0; 4])?;
            center_crop(g, &flat, &[Dim::Fixed(1), Dim::Fixed(1)])
        });
        insta::assert_snapshot!(problem, @"PatchEmbed in the root: [4, 1] is not [side, side, width]");
    }

    #[test]
    fn patches_are_put_side_by_side() {
        let build = |g: &mut Graph| {
            let x = g.constant(&[1, 2, 4], (0..8_u8).map(f32::from).collect())?;
            unpatchify(g, &x, &[Dim::Fixed(1), Dim::Fixed(2)], [2, 1])
        };
        expect(&[], build, &[1, 1, 2, 4], &[0.0, 1.0, 4.0, 5.0, 2.0, 3.0, 6.0, 7.0]);
    }
}
