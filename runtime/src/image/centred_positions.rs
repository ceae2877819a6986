//! Learned position embeddings of a square grid at the patches of images of any size, whose borders lie on those of the grid.
//!
//! Reference: `Glm4vVisionEmbeddings`, which asks `torch.nn.functional.grid_sample` for it, with borders repeated;
//! `PaddleOCRVisionEmbeddings`, linear and without corners aligned; `MuseGlimmerVisionPatchEmbedder`, with zeros beyond the borders.

use ndarray::{Array2, Array3};

use super::grids::grids;
use crate::{Result, Value, Values};

/// The coefficient of PyTorch's cubic convolution.
const A: f32 = -0.75;

/// The learned positions around each patch's own in a square grid of `side` by `side`: `[patches, 16]` i64, from
/// `image_grid_thw` `[images, 3]`. Patches stand square after square of `merge` by `merge`; the borders of an image lie on those of
/// the grid.
///
/// # Errors
/// When there are no grids, or their sides are no multiples of `merge`.
pub fn bicubic_ids(values: &Values, merge: usize, side: usize) -> Result<Value> {
    ids(&taps(values, merge, |index, length| cubic(index, length, side))?, side)
}

/// How much each of those counts: `[patches, 16, 1]` f32.
///
/// # Errors
/// As [`bicubic_ids`].
pub fn bicubic_weights(values: &Values, merge: usize, side: usize) -> Result<Value> {
    weights(&taps(values, merge, |index, length| cubic(index, length, side))?)
}

/// As [`bicubic_ids`] by linear interpolation, without corners aligned: `[patches, 4]` i64.
///
/// # Errors
/// As [`bicubic_ids`].
pub fn centred_bilinear_ids(values: &Values, merge: usize, side: usize) -> Result<Value> {
    ids(&taps(values, merge, |index, length| linear(index, length, side))?, side)
}

/// How much each of those counts: `[patches, 4, 1]` f32.
///
/// # Errors
/// As [`bicubic_ids`].
pub fn centred_bilinear_weights(values: &Values, merge: usize, side: usize) -> Result<Value> {
    weights(&taps(values, merge, |index, length| linear(index, length, side))?)
}

/// As [`centred_bilinear_ids`], of a grid beyond whose borders are zeros (`padding_mode="zeros"` of
/// `torch.nn.functional.grid_sample`): `[patches, 4]` i64.
///
/// # Errors
/// As [`bicubic_ids`].
pub fn zero_padded_bilinear_ids(values: &Values, merge: usize, side: usize) -> Result<Value> {
    ids(&taps(values, merge, |index, length| zero_padded(index, length, side))?, side)
}

/// How much each of those counts, nothing where it is beyond the borders: `[patches, 4, 1]` f32.
///
/// # Errors
/// As [`bicubic_ids`].
pub fn zero_padded_bilinear_weights(values: &Values, merge: usize, side: usize) -> Result<Value> {
    weights(&taps(values, merge, |index, length| zero_padded(index, length, side))?)
}

/// Lines of the grid around the middle of a patch, and how much each counts.
pub(super) type Lines<const N: usize> = [(usize, f32); N];

/// The lines down and across of each patch.
fn taps<const N: usize>(
    values: &Values,
    merge: usize,
    axis: impl Fn(usize, usize) -> Lines<N>,
) -> Result<Vec<[Lines<N>; 2]>> {
    let mut all = vec![];
    for grid in grids(values, merge)? {
        let patches = (0..grid.frames).flat_map(|_| grid.patches(merge));
        all.extend(patches.map(|(row, column)| [axis(row, grid.rows), axis(column, grid.columns)]));
    }
    Ok(all)
}

pub(super) fn ids<const N: usize>(taps: &[[Lines<N>; 2]], side: usize) -> Result<Value> {
    let of = |[down, across]: &[Lines<N>; 2]| {
        let (down, across) = (*down, *across);
        down.into_iter().flat_map(move |y| across.map(|x| (y.0 * side + x.0) as i64))
    };
    let ids =
        Array2::from_shape_vec((taps.len(), N * N), taps.iter().flat_map(of).collect()).unwrap_or_default();
    Ok(Value::I64(ids.into_dyn()))
}

pub(super) fn weights<const N: usize>(taps: &[[Lines<N>; 2]]) -> Result<Value> {
    let of = |[down, across]: &[Lines<N>; 2]| {
        let (down, across) = (*down, *across);
        down.into_iter().flat_map(move |y| across.map(|x| y.1 * x.1))
    };
    let weights = taps.iter().flat_map(of).collect();
    let weights = Array3::from_shape_vec((taps.len(), N * N, 1), weights).unwrap_or_default();
    Ok(Value::F32(weights.into_dyn()))
}

/// The two lines of the grid around the middle of a patch.
pub(super) fn linear(index: usize, length: usize, side: usize) -> Lines<2> {
    let scale = side as f32 / length as f32;
    let place = ((index as f32 + 0.5) * scale - 0.5).max(0.0);
    let (first, part) = (place.floor(), place - place.floor());
    let line = |at: usize| at.min(side.saturating_sub(1));
    [(line(first as usize), 1.0 - part), (line(first as usize + 1), part)]
}

/// The two lines of the grid around the middle of a patch, of which those beyond its borders count nothing.
fn zero_padded(index: usize, length: usize, side: usize) -> Lines<2> {
    let place = (index as f32 + 0.5) * side as f32 / length as f32 - 0.5;
    let (first, part) = (place.floor(), place - place.floor());
    let line = |at: f32, weight: f32| {
        let inside = at >= 0.0 && at < side as f32;
        (at.clamp(0.0, side.saturating_sub(1) as f32) as usize, if inside { weight } else { 0.0 })
    };
    [line(first, 1.0 - part), line(first + 1.0, part)]
}

/// The four lines of the grid around the middle of a patch.
fn cubic(index: usize, length: usize, side: usize) -> Lines<4> {
    let from_middle = (index as f32 + 0.5) / length as f32 * 2.0 - 1.0;
    let place = ((from_middle + 1.0) * side as f32 - 1.0) / 2.0;
    let (first, part) = (place.floor(), place - place.floor());
    let near = |x: f32| ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0;
    let far = |x: f32| ((A * x - 5.0 * A) * x + 8.0 * A) * x - 4.0 * A;
    let weights = [far(part + 1.0), near(part), near(1.0 - part), far(2.0 - part)];
    let line = |tap: usize| (first as isize + tap as isize - 1).clamp(0, side as isize - 1) as usize;
    std::array::from_fn(|tap| (line(tap), weights[tap]))
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn a_patch_for_each_position_reads_that_alone() {
        let values = Values::from([("image_grid_thw".into(), array![[1_i64, 2, 2]].into_dyn().into())]);
        let ids = bicubic_ids(&values, 1, 2).unwrap();
        assert_eq!(ids.shape(), [4, 16]);
        let weights = bicubic_weights(&values, 1, 2).unwrap();
        let weights: Vec<f32> = weights.f32("weights").unwrap().iter().copied().collect();
        let ids: Vec<i64> = ids.i64("ids").unwrap().iter().copied().collect();
        for patch in 0..4 {
            let read = (0..16).filter(|tap| weights[16 * patch + tap] != 0.0);
            assert_eq!(read.map(|tap| ids[16 * patch + tap]).collect::<Vec<_>>(), [patch as i64]);
        }
    }

    #[test]
    fn places_between_lines_count_four_of_them() {
        // The middle of one patch over two lines: half way between them.
        let [before, first, second, after] = cubic(0, 1, 2);
        assert_eq!([before.0, first.0, second.0, after.0], [0, 0, 1, 1]);
        assert_eq!([before.1, first.1, second.1, after.1], [-0.09375, 0.59375, 0.59375, -0.09375]);
    }

    #[test]
    fn lines_beyond_the_grid_are_its_borders() {
        assert_eq!(linear(0, 4, 2), [(0, 1.0), (1, 0.0)]);
        assert_eq!(linear(1, 4, 2), [(0, 0.75), (1, 0.25)]);
        assert_eq!(linear(3, 4, 2), [(1, 0.75), (1, 0.25)]);
    }

    #[test]
    fn lines_beyond_the_grid_count_nothing_where_it_is_padded_with_zeros() {
        // Middles at -0.25, 0.25, 0.75 and 1.25 of lines at 0 and 1.
        assert_eq!(zero_padded(0, 4, 2), [(0, 0.0), (0, 0.75)]);
        assert_eq!(zero_padded(1, 4, 2), [(0, 0.75), (1, 0.25)]);
        assert_eq!(zero_padded(2, 4, 2), [(0, 0.25), (1, 0.75)]);
        assert_eq!(zero_padded(3, 4, 2), [(1, 0.75), (1, 0.0)]);
        let values = Values::from([("image_grid_thw".into(), array![[1_i64, 1, 4]].into_dyn().into())]);
        let ids = zero_padded_bilinear_ids(&values, 1, 2).unwrap();
        let ids: Vec<i64> = ids.i64("ids").unwrap().iter().copied().collect();
        // One row between both lines; the first patch's column, then the second's.
        assert_eq!(ids[..8], [0, 0, 2, 2, 0, 1, 2, 3]);
        let weights = zero_padded_bilinear_weights(&values, 1, 2).unwrap();
        let weights: Vec<f32> = weights.f32("weights").unwrap().iter().copied().collect();
        assert_eq!(weights[..8], [0.0, 0.375, 0.0, 0.375, 0.375, 0.125, 0.375, 0.125]);
    }
}
