//! Rotary position embeddings that a pipeline gives its denoiser (`get_2d_rotary_pos_embed`), of a grid that is fitted into that of the
//! training.

use ndarray::Array2;

use super::settings::Settings;
use crate::diffusion::schedulers::linspace;

/// Rows and columns of latents that images of 512 by 512 pixels have, in whose squares places are counted.
const TRAINED: usize = 512 / 8;
const THETA: f32 = 10_000.0;

/// Cosines and sines of each token's column and row, `[tokens, head_width]` each, every one twice.
pub(super) fn tables(grid: [usize; 2], settings: &Settings) -> [Array2<f32>; 2] {
    let [rows, columns] = places(grid, TRAINED / settings.patch_size);
    // Columns turn the first half of a head, rows the second.
    let half = settings.head_width / 2;
    let step = |column: usize| THETA.powf((column % half.max(1) / 2 * 2) as f32 / half as f32).recip();
    let steps: Vec<f32> = (0..settings.head_width).map(step).collect();
    let across = grid[1].max(1);
    let angle = |(token, column): (usize, usize)| {
        let place = if column < half { columns[token % across] } else { rows[token / across] };
        place * steps[column]
    };
    let angles = Array2::from_shape_fn((grid[0] * grid[1], settings.head_width), angle);
    [angles.mapv(f32::cos), angles.mapv(f32::sin)]
}

/// The places of rows and of columns in a square of so many, into whose middle the grid is stretched.
fn places([rows, columns]: [usize; 2], base: usize) -> [Vec<f32>; 2] {
    let longest = rows.max(columns);
    let base = base as f64;
    [rows, columns].map(|side| {
        let length = match side == longest {
            true => base,
            false => (base / longest as f64 * side as f64).round_ties_even(),
        };
        let start = ((base - length) / 2.0).round_ties_even();
        let stop = (start + length) * side.saturating_sub(1) as f64 / side.max(1) as f64;
        linspace(start, stop, side)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_lies_in_the_middle_of_the_square() {
        // Four columns fill a square of eight, two rows its middle.
        let [rows, columns] = places([2, 4], 8);
        assert_eq!(columns, [0.0, 2.0, 4.0, 6.0]);
        assert_eq!(rows, [2.0, 3.0]);
        assert_eq!(places([3, 3], 6), [vec![0.0, 2.0, 4.0], vec![0.0, 2.0, 4.0]]);
    }
}
