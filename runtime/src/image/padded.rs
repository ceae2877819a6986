//! Images of one size of which parts are padding: the patches that are none, their positions, and the images that are none.
//!
//! Reference: `Idefics3Model.get_image_features`, `Idefics3VisionEmbeddings`.

use ndarray::{Array1, Array2, ArrayD, ArrayView4, Ix4, Ix5};

use crate::{Error, Result, Value, Values};

/// Patches that are no padding: `[images, patches]` i64, 1 for those, from `pixel_attention_mask`
/// `[batch, images, height, width]` or `pixel_mask` `[images, height, width]`. A patch is one where one of its pixels is.
///
/// # Errors
/// When there is no mask, or it has other axes.
pub fn patch_attention_mask(values: &Values, patch_size: usize) -> Result<Value> {
    Ok(seen(&grids(values, patch_size, Part::Any)?))
}

/// As [`patch_attention_mask`], of patches of which all pixels are some (`Idefics2Model`).
///
/// # Errors
/// As [`patch_attention_mask`].
pub fn whole_patch_attention_mask(values: &Values, patch_size: usize) -> Result<Value> {
    Ok(seen(&grids(values, patch_size, Part::Whole)?))
}

fn seen(grids: &[Array2<bool>]) -> Value {
    let patches = grids.first().map_or(0, Array2::len);
    let all: Vec<i64> = grids.iter().flat_map(|grid| grid.iter().map(|seen| i64::from(*seen))).collect();
    Value::I64(ArrayD::from_shape_vec(vec![grids.len(), patches], all).unwrap_or_default())
}

/// Position ids of patches by their fractional coordinates in what is no padding, over a learned square of `side` by `side`
/// (NaViT, arXiv:2307.06304): `[images, patches]` i64, from `pixel_attention_mask` `[batch, images, height, width]`; 0 for
/// padding.
///
/// # Errors
/// As [`patch_attention_mask`].
pub fn fractional_position_ids(values: &Values, patch_size: usize, side: usize) -> Result<Value> {
    Ok(fractional(&grids(values, patch_size, Part::Any)?, side))
}

/// As [`fractional_position_ids`], of patches of which all pixels are some (`Idefics2Model`).
///
/// # Errors
/// As [`patch_attention_mask`].
pub fn whole_fractional_position_ids(values: &Values, patch_size: usize, side: usize) -> Result<Value> {
    Ok(fractional(&grids(values, patch_size, Part::Whole)?, side))
}

fn fractional(grids: &[Array2<bool>], side: usize) -> Value {
    let patches = grids.first().map_or(0, Array2::len);
    let mut ids = Vec::with_capacity(grids.len() * patches);
    for grid in grids {
        let count = |line: Option<ndarray::ArrayView1<'_, bool>>| {
            line.map_or(0, |line| line.iter().filter(|seen| **seen).count())
        };
        let rows = buckets(grid.nrows(), count(grid.columns().into_iter().next()), side);
        let columns = buckets(grid.ncols(), count(grid.rows().into_iter().next()), side);
        ids.extend(grid.indexed_iter().map(|((row, column), seen)| {
            if *seen { (rows[row] * side + columns[column]) as i64 } else { 0 }
        }));
    }
    Value::I64(ArrayD::from_shape_vec(vec![grids.len(), patches], ids).unwrap_or_default())
}

/// Indices of the features of images that are no padding, which have only zeros: `[features]` i64, `each` for an image, from
/// `pixel_values` `[batch, images, channels, height, width]`.
///
/// # Errors
/// When there are no `pixel_values`, or they have other axes.
pub fn unpadded_image_rows(values: &Values, each: usize) -> Result<Value> {
    let pixels = values.get("pixel_values").ok_or_else(|| missing("pixel_values"))?.f32("pixel_values")?;
    let Ok(pixels) = pixels.view().into_dimensionality::<Ix5>() else {
        let problem = format!("has shape {:?}", pixels.shape());
        return Err(Error::input(
            "pixel_values",
            problem,
            "give it as [batch, images, channels, height, width]",
        ));
    };
    let images = pixels.outer_iter().flat_map(ArrayView4::into_outer_iter);
    let shown = images.enumerate().filter(|(_, image)| image.iter().any(|level| *level != 0.0));
    let rows: Vec<i64> =
        shown.flat_map(|(index, _)| index * each..(index + 1) * each).map(|row| row as i64).collect();
    Ok(Value::I64(Array1::from_vec(rows).into_dyn()))
}

/// Indices of the patches that images have among those of all, where each image is padded to as many: `[patches]` i64, from
/// `image_grid_thw` `[images, 3]` and `pixel_values` `[images, most, values]` (`ColQwen2ForRetrieval`).
///
/// # Errors
/// When one of them is missing, or an image has more patches than `most`.
pub fn unpadded_patches(values: &Values) -> Result<Value> {
    let pixels = values.get("pixel_values").ok_or_else(|| missing("pixel_values"))?;
    let most = pixels.shape().get(1).copied().unwrap_or_default();
    let mut all = vec![];
    for (image, grid) in super::grids::grids(values, 1)?.into_iter().enumerate() {
        let count = grid.count().filter(|count| *count <= most).ok_or_else(|| {
            let problem =
                format!("says more patches of image {image} than the {most} that pixel_values has of each");
            Error::input("image_grid_thw", problem, "make both with the checkpoint's processor")
        })?;
        all.extend((image * most..image * most + count).map(|patch| patch as i64));
    }
    Ok(Value::I64(Array1::from_vec(all).into_dyn()))
}

/// How much of a patch must be no padding.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Any,
    Whole,
}

/// Of each image the patches that are no padding, rows and columns.
fn grids(values: &Values, patch_size: usize, part: Part) -> Result<Vec<Array2<bool>>> {
    const LISTS: &str = "pixel_attention_mask";
    const IMAGES: &str = "pixel_mask";
    let (name, axes) = if values.contains_key(IMAGES) {
        (IMAGES, "[images, height, width]")
    } else {
        (LISTS, "[batch, images, height, width]")
    };
    let mask = values.get(name).ok_or_else(|| missing(name))?.i64(name)?.view();
    let mask = if name == IMAGES { mask.insert_axis(ndarray::Axis(0)) } else { mask };
    let shape = mask.shape().to_vec();
    let mask: ArrayView4<'_, i64> = mask.into_dimensionality::<Ix4>().map_err(|_| {
        let problem = format!("has shape {:?}", &shape[usize::from(name == IMAGES)..]);
        Error::input(name, problem, format!("give it as {axes}"))
    })?;
    let grid = |image: ndarray::ArrayView2<'_, i64>| {
        let size = (image.nrows() / patch_size, image.ncols() / patch_size);
        Array2::from_shape_fn(size, |(row, column)| {
            let (top, left) = (row * patch_size, column * patch_size);
            let square = ndarray::s![top..top + patch_size, left..left + patch_size];
            let square = image.slice(square);
            let mut pixels = square.iter().map(|pixel| *pixel != 0);
            if part == Part::Any { pixels.any(|seen| seen) } else { pixels.all(|seen| seen) }
        })
    };
    Ok(mask.outer_iter().flat_map(|text| text.into_outer_iter().map(grid).collect::<Vec<_>>()).collect())
}

/// The learned positions of `count` patches in a row, of which `shown` are no padding: which of `side` equal parts the
/// fractional coordinate of each falls into, in the reference's single precision.
fn buckets(count: usize, shown: usize, side: usize) -> Vec<usize> {
    let part = 1.0 / side as f64;
    let boundaries: Vec<f32> = (1..side).map(|index| (part + (index - 1) as f64 * part) as f32).collect();
    let step = 1.0 / shown as f32;
    (0..count)
        .map(|index| {
            let coordinate = (index as f32 * step).min(1.0 - 1e-6);
            boundaries.iter().filter(|boundary| **boundary <= coordinate).count()
        })
        .collect()
}

fn missing(name: &str) -> Error {
    Error::input(name, "is required and was not given", "give what the checkpoint's processor makes")
}

#[cfg(test)]
mod tests {
    use ndarray::{Array4, Array5};

    use super::*;

    #[test]
    fn positions_are_fractions_of_what_is_no_padding() {
        // The second image shows its left half and upper three of four rows.
        let mask =
            Array4::from_shape_fn((1, 2, 8, 8), |(_, image, y, x)| i64::from(image == 0 || (x < 4 && y < 5)));
        let values = Values::from([("pixel_attention_mask".into(), mask.into_dyn().into())]);
        let seen = patch_attention_mask(&values, 2).unwrap();
        let seen = seen.i64("seen").unwrap().iter().copied().collect::<Vec<_>>();
        assert_eq!(seen[..16], [1; 16]);
        assert_eq!(seen[16..], [1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0]);
        let ids = fractional_position_ids(&values, 2, 4).unwrap();
        let ids = ids.i64("ids").unwrap().iter().copied().collect::<Vec<_>>();
        assert_eq!(ids[..16], (0..16).collect::<Vec<_>>());
        // Rows at 0, 1/3 and 2/3 of four parts, columns at 0 and 1/2.
        assert_eq!(ids[16..], [0, 2, 0, 0, 4, 6, 0, 0, 8, 10, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn masks_of_images_alone_are_read_too() {
        let mask = ndarray::Array3::from_shape_fn((2, 4, 4), |(image, y, _)| i64::from(image == 0 || y < 1));
        let values = Values::from([("pixel_mask".into(), mask.clone().into_dyn().into())]);
        let seen = patch_attention_mask(&values, 2).unwrap();
        assert_eq!(seen, Value::I64(ndarray::array![[1, 1, 1, 1], [1, 1, 0, 0]].into_dyn()));
        let whole = whole_patch_attention_mask(&values, 2).unwrap();
        assert_eq!(whole, Value::I64(ndarray::array![[1, 1, 1, 1], [0, 0, 0, 0]].into_dyn()));
        let ids = whole_fractional_position_ids(&values, 2, 3).unwrap();
        assert_eq!(ids, Value::I64(ndarray::array![[0, 1, 3, 4], [0, 0, 0, 0]].into_dyn()));
        let values =
            Values::from([("pixel_mask".into(), mask.insert_axis(ndarray::Axis(0)).into_dyn().into())]);
        let error = patch_attention_mask(&values, 2).unwrap_err().to_string();
        assert!(
            error.contains("has shape [1, 2, 4, 4]") && error.contains("[images, height, width]"),
            "{error}"
        );
    }

    #[test]
    fn every_position_of_a_whole_image_is_its_own() {
        for side in [4, 16, 26, 27, 32] {
            assert_eq!(buckets(side, side, side), (0..side).collect::<Vec<_>>(), "{side}");
        }
    }

    #[test]
    fn images_of_zeros_have_no_features() {
        let mut pixels = Array5::<f32>::zeros((2, 2, 1, 1, 1));
        pixels[(0, 1, 0, 0, 0)] = 1.0;
        pixels[(1, 0, 0, 0, 0)] = -1.0;
        let values = Values::from([("pixel_values".into(), pixels.into_dyn().into())]);
        assert_eq!(
            unpadded_image_rows(&values, 2).unwrap(),
            Value::I64(ndarray::array![2, 3, 4, 5].into_dyn())
        );
        let error = unpadded_image_rows(&Values::new(), 2).unwrap_err().to_string();
        assert!(error.contains("pixel_values"), "{error}");
    }

    #[test]
    fn patches_beyond_an_image_are_none() {
        let values = |most: usize| {
            let pixels = ndarray::Array3::<f32>::zeros((2, most, 3)).into_dyn();
            let grids = ndarray::array![[1_i64, 1, 2], [1, 2, 2]].into_dyn();
            Values::from([("pixel_values".into(), pixels.into()), ("image_grid_thw".into(), grids.into())])
        };
        assert_eq!(
            unpadded_patches(&values(4)).unwrap(),
            Value::I64(ndarray::array![0, 1, 4, 5, 6, 7].into_dyn())
        );
        let error = unpadded_patches(&values(3)).unwrap_err().to_string();
        assert!(error.contains("more patches of image 1 than the 3"), "{error}");
    }
}
