//! Which feature of which camera stands for each image token of a robot's instruction.
//!
//! Reference: `PI0Model.embed_prefix`.

use super::array;
use crate::{Error, Result, Value, Values};

const CAMERAS: &str = "pixel_attention_mask";

/// Indices into the token embeddings followed by the cameras' features, `each` for a camera, by which the image tokens of a text
/// become the features of its own cameras, of which `pixel_attention_mask` bool `[batch, cameras]` says which there are: `[batch,
/// sequence]` i64, from `input_ids` `[batch, sequence]`.
///
/// # Errors
/// When one of them is missing, or a text has other than as many image tokens as its cameras give features.
pub fn camera_token_indices(values: &Values, token: usize, each: usize) -> Result<Value> {
    let missing = |name| Error::input(name, "is required and was not given", "give texts with their cameras");
    let ids = values.get("input_ids").ok_or_else(|| missing("input_ids"))?.i64("input_ids")?;
    let cameras = values.get(CAMERAS).ok_or_else(|| missing(CAMERAS))?.bool(CAMERAS)?;
    let count = cameras.shape().get(1).copied().unwrap_or_default();
    let mut indices = Vec::with_capacity(ids.len());
    for (row, (text, cameras)) in ids.outer_iter().zip(cameras.outer_iter()).enumerate() {
        let seen = cameras.iter().enumerate().filter(|(_, seen)| **seen).map(|(camera, _)| camera);
        let first = |camera: usize| ids.len() + (row * count + camera) * each;
        let mut features = seen.flat_map(|camera| first(camera)..first(camera) + each);
        let tokens = text.iter().filter(|&&id| id == token as i64).count();
        for (position, &id) in text.iter().enumerate() {
            let place = match id == token as i64 {
                true => features.next(),
                false => Some(row * text.len() + position),
            };
            indices.extend(place.map(|place| place as i64));
        }
        if indices.len() != (row + 1) * text.len() || features.next().is_some() {
            let seen = cameras.iter().filter(|seen| **seen).count() * each;
            let problem = format!(
                "has {tokens} image tokens ({token}) in text {row}, whose cameras give {seen} features"
            );
            return Err(Error::input("input_ids", problem, "make them with the checkpoint's processor"));
        }
    }
    Ok(array(ids.shape(), indices))
}

#[cfg(test)]
mod tests {
    use ndarray::array as of;

    use super::*;

    fn values(cameras: [[bool; 2]; 2]) -> Values {
        let ids = of![[9_i64, 9, 9, 9, 5], [4, 9, 9, 5, 6]];
        Values::from([
            ("input_ids".to_owned(), ids.into_dyn().into()),
            (CAMERAS.to_owned(), ndarray::Array2::from(cameras.to_vec()).into_dyn().into()),
        ])
    }

    #[test]
    fn cameras_that_are_missing_have_no_tokens() {
        let indices = camera_token_indices(&values([[true, true], [false, true]]), 9, 2).unwrap();
        assert_eq!(indices, Value::from(of![[10_i64, 11, 12, 13, 4], [5, 16, 17, 8, 9]].into_dyn()));
    }

    #[test]
    fn other_numbers_of_tokens_are_refused() {
        let problem = |cameras| camera_token_indices(&values(cameras), 9, 2).unwrap_err().to_string();
        let found = problem([[true, false], [false, true]]);
        assert!(found.contains("has 4 image tokens (9) in text 0, whose cameras give 2 features"), "{found}");
        assert!(problem([[true, true], [true, true]]).contains("in text 1"));
    }
}
