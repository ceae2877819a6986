//! Patches of images of any size in one sequence, of which each image has squares of a size of its own.
//!
//! Reference: `VideoLlama3VisionModel`, whose `merge_sizes` are inputs.

use ndarray::{Array1, Array2, Array3};

use super::grids::{GRIDS, Grid, grids};
use crate::{Error, Result, Value, Values};

const SIZES: &str = "image_merge_sizes";

/// Row and column of each patch: `[2, 1, patches]` i64, from `image_grid_thw` `[images, 3]` and `image_merge_sizes` `[images]`
/// (`get_vision_position_ids`). Patches stand square after square of the image's size.
///
/// # Errors
/// When there are no grids or sizes, or the sides of a grid are no multiples of its size.
pub fn sized_patch_position_ids(values: &Values) -> Result<Value> {
    let mut all = [vec![], vec![]];
    for (grid, size) in sized_grids(values)? {
        for (row, column) in (0..grid.frames).flat_map(|_| grid.patches(size)) {
            all[0].push(row as i64);
            all[1].push(column as i64);
        }
    }
    let count = all[0].len();
    let ids = Array3::from_shape_vec((2, 1, count), all.concat()).unwrap_or_default();
    Ok(Value::I64(ids.into_dyn()))
}

/// The frame of an image that each patch is of, which attends to itself alone: `[patches]` i64 (`get_vision_cu_seqlens`).
///
/// # Errors
/// As [`sized_patch_position_ids`].
pub fn sized_patch_frames(values: &Values) -> Result<Value> {
    let (mut frames, mut frame) = (vec![], 0);
    for (grid, _) in sized_grids(values)? {
        for _ in 0..grid.frames {
            frames.extend(std::iter::repeat_n(frame, grid.rows * grid.columns));
            frame += 1;
        }
    }
    Ok(Value::I64(Array1::from_vec(frames).into_dyn()))
}

/// The four patches in the middle of each square, whose mean is what bilinear interpolation makes of it (`pixel_unshuffle` of
/// `VideoLlama3VisionModel`): `[features, 4]` i64. Of squares with an odd size all four are one.
///
/// # Errors
/// As [`sized_patch_position_ids`].
pub fn middle_patches(values: &Values) -> Result<Value> {
    let (mut all, mut first) = (vec![], 0);
    for (grid, size) in sized_grids(values)? {
        let [low, high] = [(size - 1) / 2, size / 2];
        let squares = grid.frames * (grid.rows / size) * (grid.columns / size);
        for _ in 0..squares {
            let of = [(low, low), (low, high), (high, low), (high, high)];
            all.extend(of.map(|(row, column)| (first + row * size + column) as i64));
            first += size * size;
        }
    }
    let middles = Array2::from_shape_vec((all.len() / 4, 4), all).unwrap_or_default();
    Ok(Value::I64(middles.into_dyn()))
}

/// The grids of all images, each with the edge of its squares.
fn sized_grids(values: &Values) -> Result<Vec<(Grid, usize)>> {
    let help = "make it with the checkpoint's processor";
    let Some(sizes) = values.get(SIZES) else {
        return Err(Error::input(SIZES, "is required and was not given", help));
    };
    let (grids, sizes) = (grids(values, 1)?, sizes.i64(SIZES)?);
    if sizes.len() != grids.len() {
        let problem = format!("has {} sizes, and {GRIDS} {} images", sizes.len(), grids.len());
        return Err(Error::input(SIZES, problem, help));
    }
    let sized = |(grid, &size): (Grid, &i64)| match usize::try_from(size) {
        Ok(size) if size > 0 && grid.rows.is_multiple_of(size) && grid.columns.is_multiple_of(size) => {
            Ok((grid, size))
        }
        _ => {
            let problem =
                format!("holds {size}, which does not divide {} by {} patches", grid.rows, grid.columns);
            Err(Error::input(SIZES, problem, help))
        }
    };
    grids.into_iter().zip(sizes.iter()).map(sized).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(grids: &[[i64; 3]], sizes: &[i64]) -> Values {
        let grids = Array2::from_shape_vec((grids.len(), 3), grids.concat()).unwrap().into_dyn();
        let sizes = Array1::from_vec(sizes.to_vec()).into_dyn();
        Values::from([(GRIDS.into(), grids.into()), (SIZES.into(), sizes.into())])
    }

    fn numbers(found: Result<Value>) -> Vec<i64> {
        match found.unwrap() {
            Value::I64(numbers) => numbers.into_iter().collect(),
            other => panic!("not whole numbers: {other:?}"),
        }
    }

    #[test]
    fn each_image_has_squares_of_its_own() {
        let values = values(&[[1, 1, 2], [2, 2, 2]], &[1, 2]);
        let rows = [0, 0, 0, 0, 1, 1, 0, 0, 1, 1];
        let columns = [0, 1, 0, 1, 0, 1, 0, 1, 0, 1];
        assert_eq!(numbers(sized_patch_position_ids(&values)), [rows, columns].concat());
        assert_eq!(numbers(sized_patch_frames(&values)), [0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
        let middles = [[0; 4], [1; 4], [2, 3, 4, 5], [6, 7, 8, 9]].concat();
        assert_eq!(numbers(middle_patches(&values)), middles);
    }

    #[test]
    fn large_squares_are_their_middle() {
        assert_eq!(numbers(middle_patches(&values(&[[1, 3, 3]], &[3]))), [4; 4]);
        assert_eq!(numbers(middle_patches(&values(&[[1, 4, 4]], &[4]))), [5, 6, 9, 10]);
    }

    #[test]
    fn sizes_that_do_not_divide_are_refused() {
        let said = |sizes: &[i64]| middle_patches(&values(&[[1, 2, 4]], sizes)).unwrap_err().to_string();
        assert!(said(&[4]).contains("does not divide 2 by 4 patches"), "{}", said(&[4]));
        assert!(said(&[0]).contains("holds 0"), "{}", said(&[0]));
        assert!(said(&[1, 1]).contains("has 2 sizes"), "{}", said(&[1, 1]));
    }
}
