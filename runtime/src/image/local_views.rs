//! Which features a language model reads of images that have crops of their own, and in what order.
//!
//! Reference: `DeepseekOcr2Model.get_image_features`.

use ndarray::ArrayD;

use crate::{Error, Result, Value, Values};

/// Rows of a separator, the features of whole images, `whole` each, and those of crops, `crop` each, in the order in which they are
/// read: of each image its crops, itself and the separator: `[features]` i64, from `pixel_values` `[images, …]`, `num_local_patches`
/// `[images]`, where there are crops, and `pixel_values_local` `[crops, …]`.
///
/// # Errors
/// When there are no images, or not as many crops as they are said to have.
pub fn local_view_rows(values: &Values, [whole, crop]: [usize; 2]) -> Result<Value> {
    let images = values.get("pixel_values").and_then(|pixels| pixels.shape().first().copied());
    let Some(images) = images else {
        let problem = "is required and was not given";
        return Err(Error::input("pixel_values", problem, "make images with the checkpoint's processor"));
    };
    let counts = match values.get("num_local_patches") {
        Some(counts) => counts.i64("num_local_patches")?.iter().copied().collect(),
        None => vec![0; images],
    };
    let counts: Vec<usize> = counts.into_iter().filter_map(|count| usize::try_from(count).ok()).collect();
    let crops = values.get("pixel_values_local").and_then(|pixels| pixels.shape().first().copied());
    let (said, crops) =
        (counts.iter().fold(0, |sum: usize, count| sum.saturating_add(*count)), crops.unwrap_or(0));
    // Where no crops are given, one that is read by nothing stands for them.
    if counts.len() != images || said != crops && !(said == 0 && crops <= 1) {
        let problem =
            format!("says {said} crops of {} images, but there are {crops} of {images}", counts.len());
        return Err(Error::input(
            "num_local_patches",
            problem,
            "make images with the checkpoint's processor",
        ));
    }
    let (mut rows, mut read) = (vec![], 1 + images * whole);
    for (image, count) in counts.into_iter().enumerate() {
        rows.extend(read..read + count * crop);
        read += count * crop;
        rows.extend(1 + image * whole..1 + (image + 1) * whole);
        rows.push(0);
    }
    let rows = rows.into_iter().map(|row| row as i64).collect::<Vec<_>>();
    Ok(Value::I64(ArrayD::from_shape_vec(vec![rows.len()], rows).unwrap_or_default()))
}

/// A crop that stands for none, and that nothing reads: zeros `[1, channels, edge, edge]` f32.
pub fn blank_crop(channels: usize, edge: usize) -> Value {
    Value::F32(ArrayD::zeros(vec![1, channels, edge, edge]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(crops: usize, counts: Option<Vec<i64>>) -> Values {
        let pixels = |count| ndarray::Array4::<f32>::zeros((count, 1, 1, 1)).into_dyn();
        let mut values = Values::from([("pixel_values".into(), pixels(2).into())]);
        if crops > 0 {
            values.insert("pixel_values_local".into(), pixels(crops).into());
        }
        if let Some(counts) = counts {
            values.insert("num_local_patches".into(), ndarray::Array1::from(counts).into_dyn().into());
        }
        values
    }

    #[test]
    fn crops_stand_before_their_image_and_a_separator_behind_it() {
        let rows = local_view_rows(&given(3, Some(vec![1, 2])), [2, 1]).unwrap();
        // The separator, two rows of each image, one of each crop.
        assert_eq!(rows, Value::I64(ndarray::array![5, 1, 2, 0, 6, 7, 3, 4, 0].into_dyn()));
        let rows = local_view_rows(&given(1, Some(vec![0, 1])), [1, 2]).unwrap();
        assert_eq!(rows, Value::I64(ndarray::array![1, 0, 3, 4, 2, 0].into_dyn()));
    }

    #[test]
    fn images_alone_have_no_crops() {
        let rows = local_view_rows(&given(0, None), [1, 9]).unwrap();
        assert_eq!(rows, Value::I64(ndarray::array![1, 0, 2, 0].into_dyn()));
    }

    #[test]
    fn other_numbers_are_refused() {
        for (crops, counts) in [(3, vec![1, 1]), (0, vec![1, 0]), (2, vec![2]), (1, vec![-1, 1])] {
            let error = local_view_rows(&given(crops, Some(counts)), [1, 1]).unwrap_err().to_string();
            assert!(error.contains("num_local_patches: says"), "{error}");
        }
        assert!(
            local_view_rows(&Values::new(), [1, 1])
                .unwrap_err()
                .to_string()
                .contains("pixel_values: is required")
        );
    }
}
