//! Frames of videos of which two have features together.
//!
//! Reference: `_temporal_slicing` of `Ernie4_5_VLMoeVariableResolutionResamplerModel`.

use ndarray::Array2;

use super::grids::grids;
use crate::{Result, Value, Values};

/// The two squares of `merge` by `merge` patches that are one feature, by their places among the squares of all images: `[features, 2]`
/// i64, from `image_grid_thw` `[images, 3]` (`_temporal_slicing`). They stand in the same place of two frames, the first of which has
/// an even number; an image of one frame has each square twice.
///
/// # Errors
/// As [`patch_position_ids`](super::patch_position_ids).
pub fn joined_frames(values: &Values, merge: usize) -> Result<Value> {
    let (mut pairs, mut first) = (vec![], 0);
    for grid in grids(values, merge)? {
        let squares = (grid.rows / merge) * (grid.columns / merge);
        let (times, apart) = if grid.frames > 1 { (grid.frames / 2, squares) } else { (grid.frames, 0) };
        for time in 0..times {
            let begin = first + 2 * time * squares;
            pairs
                .extend((begin..begin + squares).flat_map(|square| [square as i64, (square + apart) as i64]));
        }
        first += grid.frames * squares;
    }
    let pairs = Array2::from_shape_vec((pairs.len() / 2, 2), pairs).unwrap_or_default();
    Ok(Value::I64(pairs.into_dyn()))
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::super::grids::GRIDS;
    use super::*;

    #[test]
    fn squares_of_two_frames_are_a_feature_and_an_image_has_its_own_twice() {
        let grids = array![[4_i64, 2, 4], [1, 2, 2], [2, 2, 2]].into_dyn();
        let pairs = joined_frames(&Values::from([(GRIDS.to_owned(), grids.into())]), 2).unwrap();
        let expected = array![[0_i64, 2], [1, 3], [4, 6], [5, 7], [8, 8], [9, 10]].into_dyn();
        assert_eq!(pairs, Value::I64(expected));
    }

    #[test]
    fn a_frame_that_is_left_over_has_no_feature() {
        let grids = array![[3_i64, 1, 1], [1, 1, 1]].into_dyn();
        let pairs = joined_frames(&Values::from([(GRIDS.to_owned(), grids.into())]), 1).unwrap();
        assert_eq!(pairs, Value::I64(array![[0_i64, 1], [3, 3]].into_dyn()));
    }
}
