//! Interpolation of learned position embeddings to other grids of patches, as weights over the learned positions.
//!
//! Reference: `torch.nn.functional.interpolate` with `antialias=True`, whose filters are Pillow's.

use ndarray::{Array2, Array3, Axis};

use super::Filter;
use super::grids::grids;
use crate::{Error, Result, Value, Values};

/// Interpolation weights of `to` positions over `from`: `[to, from]`, every row summing to 1; filters widen where positions
/// become fewer (antialiasing).
pub(super) fn weights(from: usize, to: usize, filter: Filter) -> Array2<f32> {
    let scale = from as f64 / to as f64;
    let stretch = scale.max(1.0);
    let weight = |(place, other): (usize, usize)| {
        let centre = (place as f64 + 0.5) * scale;
        filter.weight((other as f64 + 0.5 - centre) / stretch)
    };
    let weights = Array2::from_shape_fn((to, from), weight);
    let sums: Vec<f64> = weights.rows().into_iter().map(|row| row.sum()).collect();
    Array2::from_shape_fn((to, from), |(place, other)| (weights[(place, other)] / sums[place]) as f32)
}

/// How much each of `from` positions counts for each of `to`, one after the other: `to · from` of them (`interpolate` with `antialias`).
pub fn antialiased_shares(from: usize, to: usize, filter: Filter) -> Vec<f32> {
    weights(from, to, filter).into_iter().collect()
}

/// Resamples an image along one axis.
pub(crate) fn resampled(plane: &Array3<f32>, axis: usize, length: usize, filter: Filter) -> Array3<f32> {
    let axis = Axis(axis);
    let mut shape = plane.raw_dim();
    shape[axis.0] = length;
    let mut result = Array3::zeros(shape);
    for ((place, other), share) in weights(plane.len_of(axis), length, filter).indexed_iter() {
        if *share != 0.0 {
            result.index_axis_mut(axis, place).scaled_add(*share, &plane.index_axis(axis, other));
        }
    }
    result
}

/// Interpolation weights along one axis: of the patches of `pixel_values` along `axis` over `learned` positions,
/// `[patches, learned]` f32 (`interpolate_pos_encoding`).
///
/// # Errors
/// When there are no `pixel_values`, or they are too small for a patch.
pub fn interpolation_weights(
    values: &Values,
    axis: usize,
    patch_size: usize,
    learned: usize,
    filter: Filter,
) -> Result<Value> {
    let patches = patches_along(values, axis, patch_size)?;
    Ok(Value::F32(weights(learned, patches, filter).into_dyn()))
}

/// Interpolation weights of NaFlex patches over a learned square of positions: `[images, patches, side * side]` f32, from
/// `spatial_shapes` `[images, 2]` (`Siglip2VisionEmbeddings.resize_positional_embeddings`); padding has the first patch's.
///
/// # Errors
/// When there are no `pixel_values` or `spatial_shapes`, or there are fewer patches than those say.
pub fn patch_interpolation_weights(values: &Values, side: usize, filter: Filter) -> Result<Value> {
    let missing = |name: &str| {
        Error::input(name, "is required and was not given", "give both pixel_values and spatial_shapes")
    };
    let pixels = values.get("pixel_values").ok_or_else(|| missing("pixel_values"))?;
    let shapes = values.get("spatial_shapes").ok_or_else(|| missing("spatial_shapes"))?;
    let patches = pixels.shape().get(1).copied().unwrap_or_default();
    let shapes = shapes.i64("spatial_shapes")?;
    let mut all = Array3::zeros((shapes.len() / 2, patches, side * side));
    for (image, shape) in shapes.rows().into_iter().enumerate() {
        let shape: Vec<usize> = shape.iter().filter_map(|length| usize::try_from(*length).ok()).collect();
        let (rows, columns) = match shape.as_slice() {
            &[rows, columns] if (1..=patches).contains(&rows.saturating_mul(columns)) => (rows, columns),
            _ => {
                let problem = format!("holds {shape:?} for image {image}, which has {patches} patches");
                let help = "give rows and columns of patches, none of them 0";
                return Err(Error::input("spatial_shapes", problem, help));
            }
        };
        let (down, across) = (weights(side, rows, filter), weights(side, columns, filter));
        for (patch, mut taken) in all.index_axis_mut(Axis(0), image).rows_mut().into_iter().enumerate() {
            let patch = if patch < rows * columns { patch } else { 0 };
            for (place, share) in taken.iter_mut().enumerate() {
                *share = down[(patch / columns, place / side)] * across[(patch % columns, place % side)];
            }
        }
    }
    Ok(Value::F32(all.into_dyn()))
}

/// Interpolation weights of the patches of images of any size over a learned square of positions: `[patches, side * side]` f32, from
/// `image_grid_thw` `[images, 3]` (`Cosmos3EdgeVisionEmbeddings.resize_positional_embeddings`). Patches stand square after square of
/// `merge` by `merge`.
///
/// # Errors
/// When there are no grids, or their sides are no multiples of `merge`.
pub fn grid_interpolation_weights(
    values: &Values,
    merge: usize,
    side: usize,
    filter: Filter,
) -> Result<Value> {
    let (mut all, mut count) = (vec![], 0);
    for grid in grids(values, merge)? {
        let (down, across) = (weights(side, grid.rows, filter), weights(side, grid.columns, filter));
        for (row, column) in (0..grid.frames).flat_map(|_| grid.patches(merge)) {
            let place = |place: usize| down[(row, place / side)] * across[(column, place % side)];
            all.extend((0..side * side).map(place));
            count += 1;
        }
    }
    let all = Array2::from_shape_vec((count, side * side), all).unwrap_or_default();
    Ok(Value::F32(all.into_dyn()))
}

/// How many patches there are along an axis of `pixel_values`.
pub(super) fn patches_along(values: &Values, axis: usize, patch_size: usize) -> Result<usize> {
    const NAME: &str = "pixel_values";
    let help = "give it as f32 [batch, num_channels, height, width]";
    let shape = match values.get(NAME) {
        Some(value) => value.shape(),
        None => return Err(Error::input(NAME, "is required and was not given", help)),
    };
    let length = shape.get(axis).copied().unwrap_or_default();
    match length / patch_size.max(1) {
        0 => {
            let problem = format!("has an edge of {length}, less than a patch of {patch_size}");
            Err(Error::input(NAME, problem, "give larger images"))
        }
        patches => Ok(patches),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_places_take_their_own() {
        for filter in [Filter::Bilinear, Filter::Bicubic] {
            assert_eq!(weights(3, 3, filter), Array2::<f32>::eye(3));
        }
    }

    #[test]
    fn fewer_places_take_from_all_around_them() {
        // torch.nn.functional.interpolate(torch.eye(4)[None, None], (4, 2), mode="bilinear", antialias=True)
        let expected = ndarray::array![
            [0.428_571_43, 0.428_571_43, 0.142_857_15, 0.0],
            [0.0, 0.142_857_15, 0.428_571_43, 0.428_571_43]
        ];
        let found = weights(4, 2, Filter::Bilinear);
        assert!((&found - &expected).iter().all(|difference: &f32| difference.abs() < 1e-6), "{found}");
    }

    #[test]
    fn patches_of_grids_stand_square_after_square() {
        let grids = ndarray::array![[1_i64, 2, 4], [2, 2, 2]].into_dyn();
        let values = Values::from([("image_grid_thw".into(), grids.into())]);
        let found = grid_interpolation_weights(&values, 2, 2, Filter::Bilinear).unwrap();
        let found = found.f32("weights").unwrap();
        assert_eq!(found.shape(), [16, 4]);
        let row = |at: usize| found.index_axis(Axis(0), at).iter().copied().collect::<Vec<f32>>();
        // The second column of four, of the first row; and what has as many patches as positions.
        assert_eq!((row(1), row(2)), (vec![0.75, 0.25, 0.0, 0.0], vec![0.0, 0.0, 1.0, 0.0]));
        assert_eq!((row(8), row(13)), (vec![1.0, 0.0, 0.0, 0.0], vec![0.0, 1.0, 0.0, 0.0]));
    }

    #[test]
    fn an_edge_without_a_patch_is_named() {
        let values =
            Values::from([("pixel_values".into(), ndarray::ArrayD::<f32>::zeros(vec![1, 3, 3, 9]).into())]);
        let said = interpolation_weights(&values, 2, 4, 2, Filter::Bicubic).unwrap_err().to_string();
        assert!(said.contains("edge of 3") && said.contains("patch of 4"), "{said}");
        assert_eq!(interpolation_weights(&values, 3, 4, 2, Filter::Bicubic).unwrap().shape(), [2, 2]);
    }
}
