//! Relative positions of the patches of images of any size.

use ndarray::Array2;

use super::interpolation::patches_along;
use crate::{Result, Value, Values};

/// Which row of a table of relative position bias each pair of positions has, class token and patches of `pixel_values`
/// (`generate_relative_position_index` of `BeitRelativePositionBias`): `[1 + patches, 1 + patches]` i64.
///
/// # Errors
/// When there are no `pixel_values`, or they are too small for a patch.
pub fn relative_position_index(values: &Values, patch_size: usize) -> Result<Value> {
    let (rows, columns) = (patches_along(values, 2, patch_size)?, patches_along(values, 3, patch_size)?);
    let (across, distances) = (2 * columns - 1, (2 * rows - 1) * (2 * columns - 1));
    let index = |(place, other): (usize, usize)| match (place, other) {
        (0, 0) => distances + 2,
        (0, _) => distances,
        (_, 0) => distances + 1,
        (place, other) => {
            let [from, to] = [place - 1, other - 1].map(|at| [at / columns, at % columns]);
            (from[0] + rows - 1 - to[0]) * across + from[1] + columns - 1 - to[1]
        }
    };
    let positions = 1 + rows * columns;
    Ok(Value::I64(Array2::from_shape_fn((positions, positions), |pair| index(pair) as i64).into_dyn()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_have_a_row_by_their_distance() {
        let pixels = ndarray::ArrayD::<f32>::zeros(vec![1, 3, 4, 9]);
        let values = Values::from([("pixel_values".into(), pixels.into())]);
        let Value::I64(found) = relative_position_index(&values, 4).unwrap() else {
            panic!("not whole numbers")
        };
        // One row of two patches: distances of -1, 0 and 1, then those of the class token.
        let expected = ndarray::array![[5, 3, 3], [4, 1, 0], [4, 2, 1]];
        assert_eq!(found, expected.into_dyn());
        let said = relative_position_index(&values, 5).unwrap_err().to_string();
        assert!(said.contains("less than a patch of 5"), "{said}");
    }
}
