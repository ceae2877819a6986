//! Images of native sizes, padded to one: their patches, square after square, and where each stands.
//!
//! Reference: `PixtralVisionModel`, `Mistral3PatchMerger`, `Emu3VQVAE.encode`.

use ndarray::{Array1, Array3};

use crate::{Error, Result, Value, Values};

const SIZES: &str = "image_sizes";

/// A patch that is no padding: its image, the square of patches that it is of, its row and column.
struct Patch {
    image: usize,
    row: usize,
    column: usize,
}

/// Indices of the patches that are no padding among those of all images: `[patches]` i64, square after square of `merge` by
/// `merge`, from `pixel_values` `[images, channels, height, width]` and `image_sizes` `[images, 2]`, in pixels, of which a patch
/// has `edge` by `edge`.
///
/// # Errors
/// When one of them is missing, or an image is no whole number of squares.
pub fn native_patch_rows(values: &Values, edge: usize, merge: usize) -> Result<Value> {
    let (patches, (rows, columns)) = patches(values, edge, merge)?;
    let index = |patch: &Patch| ((patch.image * rows + patch.row) * columns + patch.column) as i64;
    Ok(Value::I64(patches.iter().map(index).collect::<Array1<_>>().into_dyn()))
}

/// As [`native_patch_rows`], row after row, with the index behind the last patch of all images at the end of each row
/// (`convert_img2bpe` of `Emu3ImageVocabularyMapping`): `[features]` i64.
///
/// # Errors
/// As [`native_patch_rows`].
pub fn native_ended_rows(values: &Values, edge: usize) -> Result<Value> {
    let (patches, (rows, columns)) = patches(values, edge, 1)?;
    let images = values.get(SIZES).map_or(0, |sizes| sizes.shape()[0]);
    let mut all = vec![];
    for (at, patch) in patches.iter().enumerate() {
        all.push(((patch.image * rows + patch.row) * columns + patch.column) as i64);
        let goes_on = |next: &Patch| (next.image, next.row) == (patch.image, patch.row);
        if !patches.get(at + 1).is_some_and(goes_on) {
            all.push((images * rows * columns) as i64);
        }
    }
    Ok(Value::I64(Array1::from_vec(all).into_dyn()))
}

/// Row and column of each of those patches: `[2, 1, patches]` i64.
///
/// # Errors
/// As [`native_patch_rows`].
pub fn native_patch_position_ids(values: &Values, edge: usize, merge: usize) -> Result<Value> {
    let (patches, _) = patches(values, edge, merge)?;
    let rows = patches.iter().map(|patch| patch.row as i64);
    let all = rows.chain(patches.iter().map(|patch| patch.column as i64)).collect();
    let ids = Array3::from_shape_vec((2, 1, patches.len()), all).unwrap_or_default();
    Ok(Value::I64(ids.into_dyn()))
}

/// The image of each square of those patches, which attends to itself alone: `[features]` i64.
///
/// # Errors
/// As [`native_patch_rows`].
pub fn native_patch_images(values: &Values, edge: usize, merge: usize) -> Result<Value> {
    let (patches, _) = patches(values, edge, merge)?;
    let squares = patches.iter().step_by((merge * merge).max(1)).map(|patch| patch.image as i64);
    Ok(Value::I64(squares.collect::<Array1<_>>().into_dyn()))
}

/// The patches that are no padding, and rows and columns of an image with its padding.
fn patches(values: &Values, edge: usize, merge: usize) -> Result<(Vec<Patch>, (usize, usize))> {
    let (edge, merge) = (edge.max(1), merge.max(1));
    let sizes = values.get(SIZES).ok_or_else(|| missing(SIZES))?.i64(SIZES)?;
    let pixels = values.get("pixel_values").ok_or_else(|| missing("pixel_values"))?.shape().to_vec();
    let &[images, _, height, width] = pixels.as_slice() else {
        let problem = format!("has shape {pixels:?}");
        return Err(Error::input("pixel_values", problem, "give it as [images, channels, height, width]"));
    };
    if sizes.shape() != [images, 2] {
        let problem = format!("has shape {:?} for {images} images", sizes.shape());
        return Err(Error::input(SIZES, problem, "give height and width of each image"));
    }
    let mut all = vec![];
    for (image, size) in sizes.rows().into_iter().enumerate() {
        let sides: Vec<usize> = size.iter().filter_map(|side| usize::try_from(*side).ok()).collect();
        let fits = |side: usize, most: usize| side > 0 && side <= most && (side / edge).is_multiple_of(merge);
        let &[tall, wide] = sides.as_slice() else { return Err(uneven(&size, edge, merge)) };
        if !fits(tall, height) || !fits(wide, width) {
            return Err(uneven(&size, edge, merge));
        }
        let (down, across) = (tall / edge / merge, wide / edge / merge);
        all.extend((0..down * across * merge * merge).map(|index| {
            let (square, within) = (index / (merge * merge), index % (merge * merge));
            Patch {
                image,
                row: square / across * merge + within / merge,
                column: square % across * merge + within % merge,
            }
        }));
    }
    Ok((all, (height / edge, width / edge)))
}

fn uneven(size: &ndarray::ArrayView1<'_, i64>, edge: usize, merge: usize) -> Error {
    let problem =
        format!("holds {size}, which is no image of squares of {merge} by {merge} patches of {edge} pixels");
    Error::input(SIZES, problem, "make it with the checkpoint's processor")
}

fn missing(name: &str) -> Error {
    Error::input(name, "is required and was not given", "give what the checkpoint's processor makes")
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, Array4, ArrayD, array};

    use super::*;

    /// Two images of patches of two by two pixels in a frame of four by six.
    fn values(sizes: Array2<i64>) -> Values {
        let pixels = Array4::<f32>::zeros((sizes.nrows(), 1, 4, 6)).into_dyn();
        Values::from([("pixel_values".into(), pixels.into()), (SIZES.into(), sizes.into_dyn().into())])
    }

    fn numbers(value: Result<Value>) -> ArrayD<i64> {
        value.unwrap().i64("value").unwrap().clone()
    }

    #[test]
    fn patches_of_padding_are_left_out() {
        let values = values(array![[2, 4], [4, 2]]);
        assert_eq!(numbers(native_patch_rows(&values, 2, 1)), array![0, 1, 6, 9].into_dyn());
        let ids = numbers(native_patch_position_ids(&values, 2, 1));
        assert_eq!(ids, array![[[0, 0, 0, 1]], [[0, 1, 0, 0]]].into_dyn());
        assert_eq!(numbers(native_patch_images(&values, 2, 1)), array![0, 0, 1, 1].into_dyn());
    }

    #[test]
    fn rows_end_with_an_index_of_their_own() {
        let values = values(array![[4, 4], [2, 6]]);
        // Twice two rows of three patches, of which the first image has two by two and the second one row.
        assert_eq!(
            numbers(native_ended_rows(&values, 2)),
            array![0, 1, 12, 3, 4, 12, 6, 7, 8, 12].into_dyn()
        );
    }

    #[test]
    fn patches_stand_square_after_square() {
        let values = values(array![[4, 4]]);
        assert_eq!(numbers(native_patch_rows(&values, 1, 2)).as_slice().unwrap()[..6], [0, 1, 6, 7, 2, 3]);
        assert_eq!(numbers(native_patch_images(&values, 1, 2)), array![0, 0, 0, 0].into_dyn());
    }

    #[test]
    fn parts_of_squares_and_larger_sizes_are_refused() {
        for size in [[2, 4], [4, 8], [0, 4], [-4, 4]] {
            let error = native_patch_rows(&values(array![size]), 2, 2).unwrap_err().to_string();
            assert!(error.contains("no image of squares of 2 by 2 patches"), "{error}");
        }
        let error = native_patch_rows(&Values::new(), 2, 2).unwrap_err().to_string();
        assert!(error.contains("image_sizes"), "{error}");
    }
}
