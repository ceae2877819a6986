//! Squares of patches of images of their own aspect ratios, padded to as many patches (NaFlex).
//!
//! Reference: `Lfm2VlModel.get_image_features`, `Lfm2VlMultiModalProjector.pixel_unshuffle`.

use ndarray::Array2;

use crate::{Error, Result, Value, Values};

const SHAPES: &str = "spatial_shapes";

/// Indices of the patches of each square of `factor` by `factor`, row by row, among those of all images: `[features, factor²]` i64,
/// from `pixel_values` `[images, patches, values]` and `spatial_shapes` `[images, 2]`, rows and columns of patches.
///
/// # Errors
/// When one of them is missing, or an image is no whole number of squares, or has more patches than there are.
pub fn naflex_squares(values: &Values, factor: usize) -> Result<Value> {
    let factor = factor.max(1);
    let shapes = values.get(SHAPES).ok_or_else(|| missing(SHAPES))?.i64(SHAPES)?;
    let pixels = values.get("pixel_values").ok_or_else(|| missing("pixel_values"))?.shape();
    let most = pixels.get(1).copied().unwrap_or_default();
    let mut all = vec![];
    for (image, shape) in shapes.rows().into_iter().enumerate() {
        let sides: Vec<usize> = shape.iter().filter_map(|side| usize::try_from(*side).ok()).collect();
        let whole = |side: usize| side > 0 && side.is_multiple_of(factor);
        let &[rows, columns] = sides.as_slice() else { return Err(uneven(&shape, factor, most)) };
        if !whole(rows) || !whole(columns) || rows.saturating_mul(columns) > most {
            return Err(uneven(&shape, factor, most));
        }
        for square in 0..(rows / factor) * (columns / factor) {
            let (down, across) = (square / (columns / factor) * factor, square % (columns / factor) * factor);
            all.extend((0..factor * factor).map(|within| {
                let (row, column) = (down + within / factor, across + within % factor);
                (image * most + row * columns + column) as i64
            }));
        }
    }
    let squares =
        Array2::from_shape_vec((all.len() / (factor * factor), factor * factor), all).unwrap_or_default();
    Ok(Value::I64(squares.into_dyn()))
}

fn uneven(shape: &ndarray::ArrayView1<'_, i64>, factor: usize, most: usize) -> Error {
    let problem =
        format!("holds {shape}, which are no squares of {factor} by {factor} patches of at most {most}");
    Error::input(SHAPES, problem, "make it with the checkpoint's processor")
}

fn missing(name: &str) -> Error {
    Error::input(name, "is required and was not given", "give what the checkpoint's processor makes")
}

#[cfg(test)]
mod tests {
    use ndarray::{Array3, array};

    use super::*;

    fn values(shapes: Array2<i64>) -> Values {
        let pixels = Array3::<f32>::zeros((shapes.nrows(), 9, 2)).into_dyn();
        Values::from([("pixel_values".into(), pixels.into()), (SHAPES.into(), shapes.into_dyn().into())])
    }

    #[test]
    fn squares_are_read_row_by_row() {
        let squares = naflex_squares(&values(array![[2, 4], [2, 2]]), 2).unwrap();
        let want = array![[0_i64, 1, 4, 5], [2, 3, 6, 7], [9, 10, 11, 12]].into_dyn();
        assert_eq!(squares, Value::from(want));
    }

    #[test]
    fn parts_of_squares_and_too_many_patches_are_refused() {
        for shape in [[1, 2], [4, 4], [0, 2], [-2, 2]] {
            let error = naflex_squares(&values(array![shape]), 2).unwrap_err().to_string();
            assert!(error.contains("no squares of 2 by 2 patches of at most 9"), "{error}");
        }
    }
}
