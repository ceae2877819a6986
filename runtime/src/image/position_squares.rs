//! Squares of patches whose positions are given one by one.
//!
//! Reference: `Gemma4VisionPooler._avg_pool_by_positions`, `Gemma4UnifiedModel.get_image_features`.

use std::collections::BTreeMap;

use ndarray::{Array1, Array2, ArrayViewD};

use crate::multimodal::LEFT_OUT;
use crate::{Error, Result, Value, Values};

const POSITIONS: &str = "image_position_ids";
const HELP: &str = "make it with the checkpoint's processor";

/// The patches of a square: row, column, and index among those of all images.
type Square = Vec<(usize, usize, i64)>;

/// Indices of the patches of each square of `factor` by `factor` among those of all images, square after square, row by row:
/// `[features, factor²]` i64, from `image_position_ids` `[images, patches, 2]`, the column and row of each patch, -1 at padding.
///
/// Of images that are left out there is one square, whose patches are the first.
///
/// # Errors
/// When the positions are missing, or an image is no whole number of squares.
pub fn position_squares(values: &Values, factor: usize) -> Result<Value> {
    let factor = factor.max(1);
    let positions = positions(values)?;
    let patches = positions.shape()[1];
    let mut rows = vec![];
    for (image, places) in positions.outer_iter().enumerate() {
        let mut squares: BTreeMap<(usize, usize), Square> = BTreeMap::new();
        for (patch, place) in places.outer_iter().enumerate() {
            let mut sides = place.iter().map(|side| usize::try_from(*side).ok());
            if let (Some(Some(column)), Some(Some(row))) = (sides.next(), sides.next()) {
                let square = squares.entry((row / factor, column / factor)).or_default();
                square.push((row, column, (image * patches + patch) as i64));
            }
        }
        for mut square in squares.into_values() {
            if square.len() != factor * factor {
                let problem = format!(
                    "has image {image}, which is no whole number of squares of {factor} by {factor} patches"
                );
                return Err(Error::input(POSITIONS, problem, HELP));
            }
            square.sort_unstable();
            rows.extend(square.into_iter().map(|(_, _, patch)| patch));
        }
    }
    if rows.is_empty() && values.contains_key(LEFT_OUT) {
        rows = vec![0; factor * factor];
    }
    let shape = (rows.len() / (factor * factor), factor * factor);
    Ok(Value::I64(Array2::from_shape_vec(shape, rows).unwrap_or_default().into_dyn()))
}

/// Indices of the patches that are no padding among those of all images, in their order: `[features]` i64, from
/// `image_position_ids` `[images, patches, 2]`, of which padding has -1.
///
/// # Errors
/// When the positions are missing.
pub fn placed_patches(values: &Values) -> Result<Value> {
    let positions = positions(values)?;
    let places = positions.rows().into_iter().enumerate();
    let rows =
        places.filter(|(_, place)| place.iter().all(|side| *side != -1)).map(|(patch, _)| patch as i64);
    Ok(Value::I64(rows.collect::<Array1<i64>>().into_dyn()))
}

fn positions(values: &Values) -> Result<ArrayViewD<'_, i64>> {
    let missing = || Error::input(POSITIONS, "is required and was not given", HELP);
    let positions = values.get(POSITIONS).ok_or_else(missing)?.i64(POSITIONS)?;
    match positions.shape() {
        [_, _, 2] => Ok(positions.view()),
        _ => Err(Error::input(POSITIONS, "is not [images, patches, 2]", HELP)),
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array3, array as of};

    use super::*;

    fn values(positions: Array3<i64>) -> Values {
        Values::from([(POSITIONS.to_owned(), positions.into_dyn().into())])
    }

    #[test]
    fn squares_follow_positions_and_padding_has_none() {
        let first = [[0, 0], [1, 0], [2, 0], [3, 0], [0, 1], [1, 1], [2, 1], [3, 1]];
        let second = [[1, 1], [0, 1], [0, 0], [1, 0], [-1, -1], [-1, -1], [-1, -1], [-1, -1]];
        let squares = position_squares(&values(of![first, second]), 2).unwrap();
        let want = of![[0_i64, 1, 4, 5], [2, 3, 6, 7], [10, 11, 9, 8]].into_dyn();
        assert_eq!(squares, Value::from(want));
    }

    #[test]
    fn patches_that_are_placed_keep_their_order() {
        let rows = placed_patches(&values(of![[[1, 0], [-1, -1]], [[0, 0], [0, 1]]])).unwrap();
        assert_eq!(rows, Value::from(of![0_i64, 2, 3].into_dyn()));
        let error = placed_patches(&values(of![[[1], [0]]])).unwrap_err();
        assert!(error.to_string().contains("is not [images, patches, 2]"), "{error}");
    }

    #[test]
    fn parts_of_squares_are_refused() {
        let error = position_squares(&values(of![[[0, 0], [1, 0], [0, 1]]]), 2).unwrap_err().to_string();
        assert!(
            error.contains("has image 0, which is no whole number of squares of 2 by 2 patches"),
            "{error}"
        );
    }

    #[test]
    fn images_that_are_left_out_have_one_square() {
        let mut left_out = values(of![[[-1, -1], [-1, -1]]]);
        assert_eq!(position_squares(&left_out, 2).unwrap().shape(), [0, 4]);
        left_out.insert(LEFT_OUT.to_owned(), Value::from(of![true].into_dyn()));
        assert_eq!(position_squares(&left_out, 2).unwrap(), Value::from(of![[0_i64, 0, 0, 0]].into_dyn()));
    }
}
