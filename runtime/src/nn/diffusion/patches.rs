//! Patches of latents and their positions (`PatchEmbed` of `diffusers`).

use crate::graph::{Dim, Graph, Tensor, show};
use crate::{Result, dims};

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
