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

    /// The places, stretched to those of training: `[patches, width]`.
    fn positions(&self, g: &mut Graph, grid: &[Dim; 2]) -> Result<Tensor> {
        let base = g.scalar(self.base as f32);
        let scale = g.scalar(self.scale as f32);
        sincos(g, grid, self.width, |g, length, places| {
            let count = g.length(length)?;
            let count = g.cast(&count, Dtype::F32);
            let stretch = g.div(&count, &base)?;
            let places = g.div(places, &stretch)?;
            g.div(&places, &scale)
        })
    }
}

/// Sines and cosines of places along columns and rows (`get_2d_sincos_pos_embed`): `[rows * columns, width]`, of the column the first
/// half, of the row the second.
///
/// # Errors
/// When the width is no multiple of 4.
pub fn sincos_positions(g: &mut Graph, grid: &[Dim; 2], width: usize) -> Result<Tensor> {
    sincos(g, grid, width, |_, _, places| Ok(places.clone()))
}

/// As [`sincos_positions`], of what `place` makes of the places along an axis of that length.
fn sincos(
    g: &mut Graph,
    [rows, columns]: &[Dim; 2],
    width: usize,
    place: impl Fn(&mut Graph, &Dim, &Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    if !width.is_multiple_of(4) {
        return Err(g.error("PatchEmbed", format!("the width {width} is no multiple of 4")));
    }
    let (half, quarter) = (width / 2, width / 4);
    let omega = |index: usize| 10_000_f64.powf(-(index as f64) / quarter as f64) as f32;
    let omega = g.constant(&[quarter], (0..quarter).map(omega).collect())?;
    let along = |g: &mut Graph, length: &Dim| {
        let places = g.arange(length);
        let places = g.cast(&places, Dtype::F32);
        let places = place(g, length, &places)?;
        let places = g.unsqueeze(&places, 1)?;
        let angles = g.mul(&places, &omega)?;
        let (sines, cosines) = (g.unary(Unary::Sin, &angles), g.unary(Unary::Cos, &angles));
        g.concat(&[&sines, &cosines], 1)
    };
    let of_columns = along(g, columns)?;
    let of_columns = g.unsqueeze(&of_columns, 0)?;
    let of_columns = g.expand(&of_columns, dims![rows, columns, half])?;
    let of_rows = along(g, rows)?;
    let of_rows = g.unsqueeze(&of_rows, 1)?;
    let of_rows = g.expand(&of_rows, dims![rows, columns, half])?;
    let both = g.concat(&[&of_columns, &of_rows], 2)?;
    g.flatten(&both, 0..2)
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

/// Latents `[batch, channels, rows, columns]` as patches `[batch, patches, size * size * channels]`, and how many rows and columns of
/// them there are; of a patch, the channels come first (`AuraFlowPatchEmbed`, `CogView4PatchEmbed`) or, with `channels_last`, last
/// (`Lumina2RotaryPosEmbed`), as [`unpatchify`] reads them. Rows and columns that no patch has are left out.
///
/// # Errors
/// When the latents have not four axes.
pub fn patchify(
    g: &mut Graph,
    latents: &Tensor,
    size: usize,
    channels_last: bool,
) -> Result<(Tensor, [Dim; 2])> {
    let [batch, channels, height, width] = latents.shape() else {
        let problem = format!("{} is not [batch, channels, rows, columns]", show(latents.shape()));
        return Err(g.error("patchify", problem));
    };
    let (batch, channels) = (batch.clone(), channels.clone());
    let [rows, columns] = [height, width].map(|length| length.floor_div(size));
    let side = Dim::Fixed(size);
    let mut x = latents.clone();
    if size > 1 {
        x = g.slice_dims(&x, 2, Dim::Fixed(0), rows.clone() * side.clone())?;
        x = g.slice_dims(&x, 3, Dim::Fixed(0), columns.clone() * side.clone())?;
    }
    let x = g.reshape(&x, dims![&batch, &channels, &rows, size, &columns, size])?;
    let x = g.transpose(&x, if channels_last { &[0, 2, 4, 3, 5, 1] } else { &[0, 2, 4, 1, 3, 5] })?;
    let values = channels * side.clone() * side;
    let x = g.reshape(&x, dims![batch, rows.clone() * columns.clone(), values])?;
    Ok((x, [rows, columns]))
}

/// The row and the column of each position of a grid, row after row: `[rows * columns]` i64 each.
///
/// # Errors
/// None for lengths of a graph.
pub fn grid_positions(g: &mut Graph, [rows, columns]: &[Dim; 2]) -> Result<[Tensor; 2]> {
    let shape = dims![rows, columns];
    let of_rows = g.arange(rows);
    let of_rows = g.unsqueeze(&of_rows, 1)?;
    let of_rows = g.expand(&of_rows, shape.clone())?;
    let of_columns = g.arange(columns);
    let of_columns = g.unsqueeze(&of_columns, 0)?;
    let of_columns = g.expand(&of_columns, shape)?;
    Ok([g.flatten(&of_rows, 0..2)?, g.flatten(&of_columns, 0..2)?])
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

    #[test]
    fn patches_have_their_channels_first_or_last() {
        // Two channels of two rows and two columns; a third column is left out.
        let build = |channels_last: bool| {
            move |g: &mut Graph| {
                let values = vec![1.0, 2.0, 0.0, 3.0, 4.0, 0.0, 10.0, 20.0, 0.0, 30.0, 40.0, 0.0];
                let x = g.constant(&[1, 2, 2, 3], values)?;
                Ok(patchify(g, &x, 2, channels_last)?.0)
            }
        };
        let first = [1.0, 2.0, 3.0, 4.0, 10.0, 20.0, 30.0, 40.0];
        expect(&[], build(false), &[1, 1, 8], &first);
        let last = [1.0, 10.0, 2.0, 20.0, 3.0, 30.0, 4.0, 40.0];
        expect(&[], build(true), &[1, 1, 8], &last);
        let problem = refusal(|g| {
            let x = g.constant(&[2, 2], vec![0.0; 4])?;
            patchify(g, &x, 2, true)
        });
        insta::assert_snapshot!(problem, @"patchify in the root: [2, 2] is not [batch, channels, rows, columns]");
    }

    #[test]
    fn positions_of_a_grid_go_row_after_row() {
        for (axis, want) in [(0, [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]), (1, [0.0, 1.0, 2.0, 0.0, 1.0, 2.0])] {
            let build = move |g: &mut Graph| {
                let both = grid_positions(g, &[Dim::Fixed(2), Dim::Fixed(3)])?;
                Ok(both[axis].clone())
            };
            expect(&[], build, &[6], &want);
        }
    }
}
