//! Tiles that overlap and are blended, so that the memory of an autoencoder does not grow with the image.
//!
//! Reference: `enable_vae_tiling` of `diffusers`, as `AutoencoderKL` does it.

use ndarray::{Array4, Axis, concatenate, s};

use super::misshapen;
use crate::Result;

/// How something is cut into tiles, and what becomes of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tiles {
    /// The rows and columns of a tile.
    size: usize,
    /// From one tile to the next.
    step: usize,
    /// How many rows and columns of what a tile becomes are blended with those before.
    blended: usize,
    /// How many are kept.
    kept: usize,
}

impl Tiles {
    /// A quarter of each tile, of so many rows and columns here and there, overlaps the next (`tile_overlap_factor`).
    pub(super) fn new(size: usize, becomes: usize) -> Self {
        let blended = becomes / 4;
        Self { size, step: (size * 3 / 4).max(1), blended, kept: becomes - blended }
    }

    /// What `run` makes of `[batch, channels, rows, columns]`, of each tile alone where there is more than one.
    pub(super) fn run(
        &self,
        whole: &Array4<f32>,
        run: &mut dyn FnMut(Array4<f32>) -> Result<Array4<f32>>,
    ) -> Result<Array4<f32>> {
        let (_, _, rows, columns) = whole.dim();
        if rows <= self.size && columns <= self.size {
            return run(whole.clone());
        }
        let (mut above, mut strips): (Vec<Array4<f32>>, Vec<Array4<f32>>) = (vec![], vec![]);
        for top in (0..rows).step_by(self.step) {
            let (mut row, mut kept): (Vec<Array4<f32>>, Vec<Array4<f32>>) = (vec![], vec![]);
            for (place, left) in (0..columns).step_by(self.step).enumerate() {
                let (bottom, right) = ((top + self.size).min(rows), (left + self.size).min(columns));
                let mut tile = run(whole.slice(s![.., .., top..bottom, left..right]).to_owned())?;
                if let Some(above) = above.get(place) {
                    blend(above, &mut tile, Axis(2), self.blended);
                }
                if let Some(before) = row.last() {
                    blend(before, &mut tile, Axis(3), self.blended);
                }
                let (_, _, height, width) = tile.dim();
                kept.push(tile.slice(s![.., .., ..self.kept.min(height), ..self.kept.min(width)]).to_owned());
                row.push(tile);
            }
            strips.push(joined(&kept, Axis(3))?);
            above = row;
        }
        joined(&strips, Axis(2))
    }
}

/// Fades from the end of a tile to the beginning of the next one along an axis (`blend_v`, `blend_h`).
fn blend(before: &Array4<f32>, tile: &mut Array4<f32>, axis: Axis, most: usize) {
    let length = before.len_of(axis);
    let count = most.min(length).min(tile.len_of(axis));
    for place in 0..count {
        let share = place as f64 / count as f64;
        let (old, new) = ((1.0 - share) as f32, share as f32);
        let end = before.index_axis(axis, length - count + place);
        let mut begin = tile.index_axis_mut(axis, place);
        begin.zip_mut_with(&end, |x, end| *x = end * old + *x * new);
    }
}

fn joined(parts: &[Array4<f32>], axis: Axis) -> Result<Array4<f32>> {
    let parts: Vec<_> = parts.iter().map(|part| part.view()).collect();
    concatenate(axis, &parts).map_err(|error| misshapen(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_overlap_by_a_quarter_and_fade_into_the_next() {
        let whole = Array4::from_shape_fn((1, 1, 1, 7), |(_, _, _, column)| column as f32);
        let tiles = Tiles::new(4, 8);
        assert_eq!(tiles, Tiles { size: 4, step: 3, blended: 2, kept: 6 });
        let mut number = 0.0;
        // Each tile becomes twice as wide, of its own number.
        let made = tiles.run(&whole, &mut |tile| {
            number += 1.0;
            let (batch, channels, rows, columns) = tile.dim();
            Ok(Array4::from_elem((batch, channels, 2 * rows, 2 * columns), number))
        });
        let made = made.unwrap();
        assert_eq!(made.shape(), [1, 1, 2, 14]);
        let row: Vec<f32> = made.slice(s![0, 0, 0, ..]).to_vec();
        assert_eq!(row, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.5, 2.0, 2.0, 2.0, 2.0, 2.0, 2.5]);
    }

    #[test]
    fn what_fits_into_a_tile_goes_through_at_once() {
        let whole = Array4::zeros((2, 1, 4, 4));
        let made = Tiles::new(4, 8).run(&whole, &mut |tile| Ok(tile + 1.0)).unwrap();
        assert_eq!(made, Array4::from_elem((2, 1, 4, 4), 1.0));
    }
}
