//! Patches of images of any size in one sequence, squares within squares, so that those that become one stand side by side.
//!
//! Reference: `get_vision_nearest_position_ids`, `get_vision_window_index` and the merger of MiniCPM-V.

use ndarray::Array1;

use super::grids::MOST;
use crate::{Error, Result, Value, Values};

const GRIDS: &str = "target_sizes";

/// Indices of patches among those of all images, which stand row after row, by squares of four within squares of four, `levels` times:
/// `[patches]` i64, from `target_sizes` `[images, 2]`, the rows and columns of patches of each image.
///
/// # Errors
/// When there are no sizes, or they are no multiples of such squares.
pub fn nested_patch_rows(values: &Values, levels: u32) -> Result<Value> {
    let (mut rows, mut first) = (vec![], 0);
    for (height, width) in sizes(values, levels)? {
        rows.extend(nested(height, width, levels).map(|(row, column)| (first + row * width + column) as i64));
        first += height * width;
    }
    Ok(Value::I64(Array1::from_vec(rows).into_dyn()))
}

/// The image that each run of so many patches is of, in the order of [`nested_patch_rows`]: `[runs]` i64.
///
/// # Errors
/// As [`nested_patch_rows`].
pub fn nested_patch_images(values: &Values, levels: u32, run: usize) -> Result<Value> {
    let of = |(index, (height, width)): (usize, (usize, usize))| {
        std::iter::repeat_n(index as i64, height * width / run.max(1))
    };
    let images: Vec<i64> = sizes(values, levels)?.into_iter().enumerate().flat_map(of).collect();
    Ok(Value::I64(Array1::from_vec(images).into_dyn()))
}

/// Position ids of patches, in the order of [`nested_patch_rows`], by their fractions of an image over a learned square of `side` by
/// `side`: `[patches]` i64.
///
/// # Errors
/// As [`nested_patch_rows`].
pub fn nested_position_ids(values: &Values, levels: u32, side: usize) -> Result<Value> {
    let boundaries: Vec<f32> = (1..side).map(|place| (place as f64 / side as f64) as f32).collect();
    let bucket = |at: usize, length: usize| {
        let place = at as f32 / length as f32;
        boundaries.partition_point(|boundary| *boundary <= place)
    };
    let mut ids = vec![];
    for (height, width) in sizes(values, levels)? {
        let place = |(row, column)| (bucket(row, height) * side + bucket(column, width)) as i64;
        ids.extend(nested(height, width, levels).map(place));
    }
    Ok(Value::I64(Array1::from_vec(ids).into_dyn()))
}

/// Row and column of each patch, square within square.
fn nested(height: usize, width: usize, levels: u32) -> impl Iterator<Item = (usize, usize)> {
    let edge = 2_usize.pow(levels);
    let across = width / edge;
    (0..height * width).map(move |at| {
        let (square, mut within) = (at / (edge * edge), at % (edge * edge));
        let (mut row, mut column, mut half) = (square / across * edge, square % across * edge, edge);
        while half > 1 {
            half /= 2;
            let quarter = within / (half * half);
            within %= half * half;
            row += quarter / 2 * half;
            column += quarter % 2 * half;
        }
        (row, column)
    })
}

/// Rows and columns of patches of each image, which are multiples of the largest squares.
pub(super) fn sizes(values: &Values, levels: u32) -> Result<Vec<(usize, usize)>> {
    let missing = || Error::input(GRIDS, "must be rows and columns of patches", "give it as i64 [images, 2]");
    let all = values.get(GRIDS).ok_or_else(missing)?.i64(GRIDS)?;
    let edge = 2_usize.pow(levels);
    let mut sizes = vec![];
    for row in all.rows() {
        let length = |at: usize| row.get(at).and_then(|length| usize::try_from(*length).ok());
        let (Some(height), Some(width)) = (length(0), length(1)) else { return Err(missing()) };
        let few = height.checked_mul(width).is_some_and(|count| count <= MOST);
        if !few || !height.is_multiple_of(edge) || !width.is_multiple_of(edge) || width == 0 {
            let problem =
                format!("has {height} by {width} patches, which are no squares of {edge} by {edge}");
            return Err(Error::input(GRIDS, problem, "make images with the checkpoint's processor"));
        }
        sizes.push((height, width));
    }
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use ndarray::ArrayD;

    use super::*;

    fn given(sizes: &[[i64; 2]]) -> Values {
        let sizes = ArrayD::from_shape_vec(vec![sizes.len(), 2], sizes.concat()).unwrap();
        Values::from([(GRIDS.to_owned(), sizes.into())])
    }

    fn numbers(value: Result<Value>) -> Vec<i64> {
        value.unwrap().i64("numbers").unwrap().iter().copied().collect()
    }

    #[test]
    fn squares_stand_within_squares() {
        let values = given(&[[2, 4], [2, 2]]);
        assert_eq!(numbers(nested_patch_rows(&values, 1)), [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 10, 11]);
        assert_eq!(numbers(nested_patch_images(&values, 1, 1)), [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1]);
        assert_eq!(numbers(nested_patch_images(&values, 1, 4)), [0, 0, 1]);
        let twice = numbers(nested_patch_rows(&given(&[[4, 4]]), 2));
        assert_eq!(twice, [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15]);
        let error = nested_patch_rows(&values, 2).unwrap_err().to_string();
        assert!(error.contains("2 by 4 patches") && error.contains("4 by 4"), "{error}");
    }

    #[test]
    fn positions_are_fractions_of_an_image() {
        // Four columns fall on two halves, and two rows on one each.
        assert_eq!(numbers(nested_position_ids(&given(&[[2, 4]]), 1, 2)), [0, 0, 2, 2, 1, 1, 3, 3]);
    }
}
