//! Patches of latents of several frames (`ZImageTransformer2DModel._patchify_image`).

use crate::graph::{Dim, Graph, Tensor, show};
use crate::{Result, dims};

/// Latents `[batch, channels, frames, rows, columns]` as patches of frames, rows and columns of this size: `[batch, patches,
/// values]`, of a patch the channels last, and how many frames, rows and columns of patches there are.
///
/// # Errors
/// When the latents have not five axes.
pub fn patchify_3d(g: &mut Graph, latents: &Tensor, size: [usize; 3]) -> Result<(Tensor, [Dim; 3])> {
    let [batch, channels, sides @ ..] = latents.shape() else {
        return Err(g.error("patchify_3d", five_axes(latents)));
    };
    let [frames, rows, columns] = sides else { return Err(g.error("patchify_3d", five_axes(latents))) };
    let (batch, channels) = (batch.clone(), channels.clone());
    let grid = [(frames, size[0]), (rows, size[1]), (columns, size[2])].map(|(side, of)| side.floor_div(of));
    let mut x = latents.clone();
    for (axis, (count, of)) in grid.iter().zip(size).enumerate().filter(|(_, (_, of))| *of > 1) {
        x = g.slice_dims(&x, axis + 2, Dim::Fixed(0), count.clone() * Dim::Fixed(of))?;
    }
    let [f, r, c] = &grid;
    let x = g.reshape(&x, dims![&batch, &channels, f, size[0], r, size[1], c, size[2]])?;
    let x = g.transpose(&x, &[0, 2, 4, 6, 3, 5, 7, 1])?;
    let values = channels * Dim::Fixed(size.iter().product());
    let x = g.reshape(&x, dims![batch, f.clone() * r.clone() * c.clone(), values])?;
    Ok((x, grid))
}

/// Patches `[batch, patches, values]` as latents `[batch, channels, frames, rows, columns]`: the other way round than [`patchify_3d`].
///
/// # Errors
/// When the patches have another shape.
pub fn unpatchify_3d(
    g: &mut Graph,
    x: &Tensor,
    [frames, rows, columns]: &[Dim; 3],
    (size, channels): ([usize; 3], usize),
) -> Result<Tensor> {
    let batch = x.shape()[0].clone();
    let x = g.reshape(x, dims![&batch, frames, rows, columns, size[0], size[1], size[2], channels])?;
    let x = g.transpose(&x, &[0, 7, 1, 4, 2, 5, 3, 6])?;
    let sides = [(frames, size[0]), (rows, size[1]), (columns, size[2])]
        .map(|(count, of)| count.clone() * Dim::Fixed(of));
    g.reshape(&x, dims![batch, channels, &sides[0], &sides[1], &sides[2]])
}

/// The frame, the row and the column of each position of a grid, frame after frame: `[3, positions]` i64.
///
/// # Errors
/// None for lengths of a graph.
pub fn grid_positions_3d(g: &mut Graph, [frames, rows, columns]: &[Dim; 3]) -> Result<Tensor> {
    let positions = frames.clone() * rows.clone() * columns.clone();
    let mut axes = vec![];
    for (axis, length) in [frames, rows, columns].into_iter().enumerate() {
        let places = g.arange(length);
        let shape: Vec<Dim> =
            (0..3).map(|other| if other == axis { length.clone() } else { Dim::Fixed(1) }).collect();
        let places = g.reshape(&places, shape)?;
        let places = g.expand(&places, dims![frames, rows, columns])?;
        axes.push(g.reshape(&places, dims![1, &positions])?);
    }
    g.concat(&axes.iter().collect::<Vec<_>>(), 0)
}

fn five_axes(x: &Tensor) -> String {
    format!("{} is not [batch, channels, frames, rows, columns]", show(x.shape()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::{expect, refusal};

    /// One frame of two rows and two columns of two channels, then another.
    fn latents(g: &mut Graph) -> Result<Tensor> {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
        g.constant(&[1, 2, 2, 2, 2], values.into_iter().chain(values.map(|value| 10.0 * value)).collect())
    }

    #[test]
    fn patches_go_frame_by_frame() {
        let build = |g: &mut Graph| {
            let x = latents(g)?;
            Ok(patchify_3d(g, &x, [1, 2, 1])?.0)
        };
        let want = [1.0, 10.0, 3.0, 30.0, 2.0, 20.0, 4.0, 40.0, 5.0, 50.0, 7.0, 70.0, 6.0, 60.0, 8.0, 80.0];
        expect(&[], build, &[1, 4, 4], &want);
    }

    #[test]
    fn they_become_latents_again() {
        let build = |g: &mut Graph| {
            let x = latents(g)?;
            let (patches, grid) = patchify_3d(g, &x, [2, 1, 2])?;
            let back = unpatchify_3d(g, &patches, &grid, ([2, 1, 2], 2))?;
            g.sub(&back, &x)
        };
        expect(&[], build, &[1, 2, 2, 2, 2], &[0.0; 16]);
    }

    #[test]
    fn positions_go_frame_after_frame() {
        let build = |g: &mut Graph| grid_positions_3d(g, &[2, 1, 2].map(Dim::Fixed));
        expect(&[], build, &[3, 4], &[0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0]);
    }

    #[test]
    fn five_axes_are_needed() {
        let problem = refusal(|g| {
            let x = g.constant(&[1, 2, 2, 2], vec![0.0; 8])?;
            patchify_3d(g, &x, [1, 1, 1])
        });
        insta::assert_snapshot!(problem, @"patchify_3d in the root: [1, 2, 2, 2] is not [batch, channels, frames, rows, columns]");
    }
}
