//! Prompts of promptable segmentation where some are left out: points with labels, boxes, masks.
//!
//! Reference: `SamModel.forward`, which has other tokens for other prompts. Here the tokens are always the same, and what stands for
//! a prompt that is left out says that it does not count.

use ndarray::{ArrayD, Axis};

use crate::{Error, Result, Value, Values};

/// The label of a point that was left out; the reference's own are 1, 0, -1 for no point and -10 for padding.
pub const NO_POINT: i64 = -100;

/// Every number of a box or a mask that was left out: no coordinate of an image, and no logit of a mask.
pub const NO_PROMPT: f32 = -1e4;

/// `input_labels` `[batch, prompts, points]`, where not given: 1 for each of `input_points`, or one [`NO_POINT`] for each prompt.
///
/// # Errors
/// When there are no images, or points and boxes have not the axes that they need.
pub fn prompt_labels(values: &Values) -> Result<Value> {
    let (shape, label) = match values.get("input_points") {
        Some(points) => (shape(points, "input_points", 4)?[..3].to_vec(), 1),
        None => (vec![batch(values)?, prompts(values)?, 1], NO_POINT),
    };
    Ok(Value::I64(ArrayD::from_elem(shape, label)))
}

/// `input_labels` `[batch, prompts, points]` as [`prompt_labels`], but one -1 for each image where there are neither points nor boxes
/// (`Sam2Model`).
///
/// # Errors
/// As [`prompt_labels`].
pub fn prompt_or_no_point_labels(values: &Values) -> Result<Value> {
    match values.contains_key("input_points") || values.contains_key("input_boxes") {
        true => prompt_labels(values),
        false => Ok(Value::I64(ArrayD::from_elem(vec![batch(values)?, 1, 1], -1))),
    }
}

/// `input_points` `[batch, prompts, points, 2]`, where not given: zeros, one for each label.
///
/// # Errors
/// When labels of points are given without them.
pub fn prompt_points(values: &Values) -> Result<Value> {
    let labels = values.get("input_labels").map(|labels| labels.i64("input_labels")).transpose()?;
    match labels {
        Some(labels) if labels.iter().all(|label| matches!(*label, NO_POINT | -1)) => {
            Ok(Value::F32(ArrayD::zeros([labels.shape(), &[2]].concat())))
        }
        _ => Err(Error::input("input_points", "is not given, but its labels are", "give both, or neither")),
    }
}

/// `input_boxes` `[batch, prompts, 4]`, where not given: [`NO_PROMPT`] for each prompt of the points.
///
/// # Errors
/// When there are no points.
pub fn prompt_boxes(values: &Values) -> Result<Value> {
    let missing = || Error::input("input_labels", "is missing", "give points, boxes, or nothing");
    let labels = shape(values.get("input_labels").ok_or_else(missing)?, "input_labels", 3)?;
    Ok(Value::F32(ArrayD::from_elem(vec![labels[0], labels[1], 4], NO_PROMPT)))
}

/// `input_masks` `[batch, 1, edge, edge]`, where not given: [`NO_PROMPT`] everywhere.
///
/// # Errors
/// When there are no images.
pub fn prompt_masks(values: &Values, edge: usize) -> Result<Value> {
    Ok(Value::F32(ArrayD::from_elem(vec![batch(values)?, 1, edge, edge], NO_PROMPT)))
}

/// Memory of an object, where not given: zeros of one frame or pointer, `[batch, 1, …]`, whose offset says that it is none.
///
/// # Errors
/// When there are no images.
pub fn no_memory(values: &Values, shape: &[usize]) -> Result<Value> {
    Ok(Value::F32(ArrayD::zeros([&[batch(values)?, 1], shape].concat())))
}

/// `memory_offsets` `[batch, frames]`, where not given: -1, for the one of [`no_memory`].
///
/// # Errors
/// When `maskmem_features` are given without them.
pub fn no_memory_offsets(values: &Values) -> Result<Value> {
    absent(values, "maskmem_features", "memory_offsets")?;
    Ok(Value::I64(ArrayD::from_elem(vec![batch(values)?, 1], -1)))
}

/// `pointer_offsets` `[batch, pointers]`, where not given: -1, for the one of [`no_memory`].
///
/// # Errors
/// When `object_pointers` are given without them.
pub fn no_pointer_offsets(values: &Values) -> Result<Value> {
    absent(values, "object_pointers", "pointer_offsets")?;
    Ok(Value::F32(ArrayD::from_elem(vec![batch(values)?, 1], -1.0)))
}

/// Refuses memory that is other than zeros of one frame or pointer, since its offsets are not given.
fn absent(values: &Values, memory: &str, offsets: &str) -> Result<()> {
    let given = values.get(memory).map(|given| given.f32(memory)).transpose()?;
    let none = given.is_none_or(|given| given.shape()[1] == 1 && given.iter().all(|value| *value == 0.0));
    match none {
        true => Ok(()),
        false => {
            Err(Error::input(offsets, format!("is not given, but `{memory}` is"), "give both, or neither"))
        }
    }
}

/// The rows of each image's texts, `[images, queries]`: of `input_ids` `[images * queries, sequence]` the first are those of the first
/// of `pixel_values` (`OwlViTForObjectDetection`).
///
/// # Errors
/// When there are not as many texts of each image.
pub fn text_queries(values: &Values) -> Result<Value> {
    let (images, texts) = (batch(values)?, input_ids(values)?.shape().first().copied().unwrap_or_default());
    if images == 0 || texts == 0 || texts % images != 0 {
        let problem = format!("are {texts} texts of {images} images");
        return Err(Error::input("input_ids", problem, "give as many texts for each image"));
    }
    let rows = (0..texts as i64).collect();
    let rows = ArrayD::from_shape_vec(vec![images, texts / images], rows);
    rows.map(Value::I64).map_err(|error| Error::input("input_ids", error.to_string(), "give texts"))
}

/// The first token of each of `input_ids` `[batch, sequence]`: `[batch]`; 0 stands for no text (`OwlViTForObjectDetection`).
///
/// # Errors
/// When there are no tokens.
pub fn text_starts(values: &Values) -> Result<Value> {
    let ids = input_ids(values)?;
    if ids.ndim() != 2 || ids.shape()[1] == 0 {
        let problem = format!("has shape {:?}", ids.shape());
        return Err(Error::input("input_ids", problem, "give it 2 axes, and tokens"));
    }
    Ok(Value::I64(ids.index_axis(Axis(1), 0).to_owned()))
}

fn input_ids(values: &Values) -> Result<&ArrayD<i64>> {
    let missing = || Error::input("input_ids", "is required and was not given", "give texts");
    values.get("input_ids").ok_or_else(missing)?.i64("input_ids")
}

/// The number of images, or of feature maps that stand for them ([`GraphKind::Tracking`](crate::GraphKind::Tracking)).
fn batch(values: &Values) -> Result<usize> {
    let images = values.get("pixel_values").or_else(|| values.get("fpn_hidden_states.0"));
    let images = images.and_then(|images| images.shape().first().copied());
    images.ok_or_else(|| Error::input("pixel_values", "is required and was not given", "give images"))
}

/// The number of prompts of each image: that of boxes, or one.
fn prompts(values: &Values) -> Result<usize> {
    values.get("input_boxes").map_or(Ok(1), |boxes| Ok(shape(boxes, "input_boxes", 3)?[1]))
}

fn shape<'a>(value: &'a Value, name: &str, axes: usize) -> Result<&'a [usize]> {
    let shape = value.shape();
    match shape.len() == axes {
        true => Ok(shape),
        false => Err(Error::input(name, format!("has shape {shape:?}"), format!("give it {axes} axes"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(names: &[(&str, &[usize])]) -> Values {
        names.iter().map(|(name, shape)| ((*name).to_owned(), Value::F32(ArrayD::zeros(*shape)))).collect()
    }

    /// The values with what stands for all that is left out.
    fn completed(mut values: Values) -> Values {
        for (name, of) in [
            ("input_labels", prompt_labels as fn(&Values) -> Result<Value>),
            ("input_points", prompt_points),
            ("input_boxes", prompt_boxes),
        ] {
            if !values.contains_key(name) {
                let value = of(&values).unwrap();
                values.insert(name.to_owned(), value);
            }
        }
        values
    }

    #[test]
    fn without_prompts_there_is_one_point_that_is_none() {
        let labels = prompt_or_no_point_labels(&given(&[("pixel_values", &[2, 3, 8, 8])])).unwrap();
        assert_eq!(labels.i64("input_labels").unwrap(), &ArrayD::from_elem(vec![2, 1, 1], -1));
        let boxes = given(&[("pixel_values", &[2, 3, 8, 8]), ("input_boxes", &[2, 5, 4])]);
        let labels = prompt_or_no_point_labels(&boxes).unwrap();
        assert_eq!(labels.i64("input_labels").unwrap(), &ArrayD::from_elem(vec![2, 5, 1], NO_POINT));
    }

    #[test]
    fn points_without_labels_are_of_the_object() {
        let values = completed(given(&[("pixel_values", &[2, 3, 8, 8]), ("input_points", &[2, 3, 4, 2])]));
        let labels = values["input_labels"].i64("input_labels").unwrap();
        assert_eq!(labels.shape(), [2, 3, 4]);
        assert!(labels.iter().all(|label| *label == 1));
        let boxes = values["input_boxes"].f32("input_boxes").unwrap();
        assert_eq!((boxes.shape(), boxes[[1, 2, 3]]), ([2, 3, 4].as_slice(), NO_PROMPT));
    }

    #[test]
    fn without_points_there_is_one_that_does_not_count() {
        let values = completed(given(&[("pixel_values", &[2, 3, 8, 8]), ("input_boxes", &[2, 5, 4])]));
        let labels = values["input_labels"].i64("input_labels").unwrap();
        assert_eq!((labels.shape(), labels[[0, 4, 0]]), ([2, 5, 1].as_slice(), NO_POINT));
        assert_eq!(values["input_points"].shape(), [2, 5, 1, 2]);
        let nothing = completed(given(&[("pixel_values", &[2, 3, 8, 8])]));
        assert_eq!(nothing["input_boxes"].shape(), [2, 1, 4]);
        let masks = prompt_masks(&nothing, 6).unwrap();
        assert_eq!(masks.shape(), [2, 1, 6, 6]);
    }

    #[test]
    fn texts_are_those_of_one_image_after_the_other() {
        let texts = |count: usize| {
            let ids =
                Value::I64(ArrayD::from_shape_fn(vec![count, 2], |at| 10 * at[0] as i64 + at[1] as i64));
            let mut values = given(&[("pixel_values", &[2, 3, 8, 8])]);
            values.insert("input_ids".to_owned(), ids);
            values
        };
        let rows = text_queries(&texts(6)).unwrap();
        assert_eq!(rows, Value::I64(ndarray::array![[0, 1, 2], [3, 4, 5]].into_dyn()));
        let starts = text_starts(&texts(3)).unwrap();
        assert_eq!(starts, Value::I64(ndarray::array![0, 10, 20].into_dyn()));
        let error = text_queries(&texts(3)).unwrap_err().to_string();
        assert!(error.contains("are 3 texts of 2 images"), "{error}");
    }

    #[test]
    fn labels_without_points_are_refused() {
        let labels = Value::I64(ArrayD::ones(vec![1, 1, 2]));
        let error = prompt_points(&Values::from([("input_labels".to_owned(), labels)])).unwrap_err();
        assert!(error.to_string().contains("give both, or neither"), "{error}");
        let error = prompt_labels(&given(&[("input_points", &[1, 2])])).unwrap_err();
        assert!(error.to_string().contains("give it 4 axes"), "{error}");
    }
}
