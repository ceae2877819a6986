//! The three-axis positions of texts with images and videos in them (M-RoPE).
//!
//! Reference: `get_rope_index` of `Qwen2VLModel`, `Qwen2_5_VLModel` and `Ernie4_5_VLMoeModel`.

use ndarray::{Array1, Array3};

use super::grids::{GRIDS, grids, two_axes};
use crate::multimodal::LEFT_OUT;
use crate::{Error, Result, Value, Values};

/// Positions of tokens along time, height and width (M-RoPE, `get_rope_index`): `[3, batch, sequence]` i64, from `input_ids` and
/// `attention_mask` `[batch, sequence]` and `image_grid_thw` `[images, 3]`. Image tokens, `merge` by `merge` patches each, count
/// rows and columns from the position that the text before has reached; the text after goes on behind the longer side.
///
/// # Errors
/// When one of them is missing, or there are other numbers of image tokens than of squares of patches.
pub fn rope_index(values: &Values, token: usize, merge: usize) -> Result<Value> {
    Counting::new(token, merge).index(values)
}

/// As [`rope_index`], but that times of a video are so many positions apart for each second (`Qwen2_5_VLModel`), of which
/// `second_per_grid_ts` f32 `[images]` says how many lie between two.
///
/// # Errors
/// As [`rope_index`].
pub fn rope_index_by_seconds(
    values: &Values,
    token: usize,
    merge: usize,
    per_second: usize,
) -> Result<Value> {
    Counting { per_second: Some(per_second), ..Counting::new(token, merge) }.index(values)
}

/// What is added to the number of tokens before it for the position of the next token of each sequence
/// (`mrope_position_deltas`): `[batch, 1]` i64, from what [`rope_index`] takes.
///
/// # Errors
/// As [`rope_index`].
pub fn rope_deltas(values: &Values, token: usize, merge: usize) -> Result<Value> {
    Counting::new(token, merge).deltas(values)
}

/// As [`rope_deltas`], from what [`rope_index_by_seconds`] takes.
///
/// # Errors
/// As [`rope_index`].
pub fn rope_deltas_by_seconds(
    values: &Values,
    token: usize,
    merge: usize,
    per_second: usize,
) -> Result<Value> {
    Counting { per_second: Some(per_second), ..Counting::new(token, merge) }.deltas(values)
}

/// As [`rope_index`], but that an image without the token `start` before it counts its tokens as a text does
/// (`Qwen2_5OmniThinkerModel`).
///
/// # Errors
/// As [`rope_index`], but for images that no text has.
pub fn rope_index_of_marked(values: &Values, token: usize, merge: usize, start: usize) -> Result<Value> {
    Counting { start: Some(start), ..Counting::new(token, merge) }.index(values)
}

/// As [`rope_deltas`], of the positions of [`rope_index_of_marked`].
///
/// # Errors
/// As [`rope_index_of_marked`].
pub fn rope_deltas_of_marked(values: &Values, token: usize, merge: usize, start: usize) -> Result<Value> {
    Counting { start: Some(start), ..Counting::new(token, merge) }.deltas(values)
}

/// As [`rope_index`], but that so many frames of a video have a token together (`Ernie4_5_VLMoeModel`).
///
/// # Errors
/// As [`rope_index`].
pub fn rope_index_of_joined(values: &Values, token: usize, merge: usize, frames: usize) -> Result<Value> {
    Counting { joined: frames.max(1), ..Counting::new(token, merge) }.index(values)
}

/// As [`rope_deltas`], of the positions of [`rope_index_of_joined`].
///
/// # Errors
/// As [`rope_index`].
pub fn rope_deltas_of_joined(values: &Values, token: usize, merge: usize, frames: usize) -> Result<Value> {
    Counting { joined: frames.max(1), ..Counting::new(token, merge) }.deltas(values)
}

/// 1 for padding and 0 for tokens, by which positions of padding differ where the reference begins with ones
/// (`Qwen2_5OmniThinkerModel`): `[1, batch, sequence]` i64, from `input_ids` and `attention_mask` `[batch, sequence]`.
///
/// # Errors
/// When one of them is missing.
pub fn padding_positions(values: &Values) -> Result<Value> {
    let (ids, seen) = (two_axes(values, "input_ids")?, two_axes(values, "attention_mask")?);
    let (batch, sequence) = ids.dim();
    let padding = |(_, row, at)| i64::from(seen.get((row, at)) == Some(&0));
    Ok(Value::I64(Array3::from_shape_fn((1, batch, sequence), padding).into_dyn()))
}

/// How the tokens of images count.
#[derive(Clone, Copy)]
struct Counting {
    token: usize,
    merge: usize,
    /// How many positions a second of a video is long.
    per_second: Option<usize>,
    /// The token behind which alone images count by rows and columns.
    start: Option<usize>,
    /// How many frames of a video have a token together.
    joined: usize,
}

impl Counting {
    fn new(token: usize, merge: usize) -> Self {
        Self { token, merge, per_second: None, start: None, joined: 1 }
    }

    fn index(self, values: &Values) -> Result<Value> {
        Ok(Value::I64(positions(values, self)?.0.into_dyn()))
    }

    fn deltas(self, values: &Values) -> Result<Value> {
        let deltas = Array1::from_vec(positions(values, self)?.1);
        Ok(Value::I64(deltas.insert_axis(ndarray::Axis(1)).into_dyn()))
    }
}

fn positions(values: &Values, counting: Counting) -> Result<(Array3<i64>, Vec<i64>)> {
    let Counting { token, merge, per_second, start, joined } = counting;
    let tensor = |name| two_axes(values, name);
    let (ids, seen) = (tensor("input_ids")?, tensor("attention_mask")?);
    let seconds: Vec<f32> = match values.get("second_per_grid_ts") {
        Some(seconds) => seconds.f32("second_per_grid_ts")?.iter().copied().collect(),
        None => vec![],
    };
    // In single precision, as the reference.
    let interval = |image: usize| {
        per_second.map_or(1.0, |count| count as f32 * seconds.get(image).copied().unwrap_or(1.0))
    };
    let mut images = grids(values, merge)?.into_iter().enumerate();
    let (batch, sequence) = ids.dim();
    let mut all = Array3::zeros((3, batch, sequence));
    let mut deltas = vec![];
    for (row, (ids, seen)) in ids.rows().into_iter().zip(seen.rows()).enumerate() {
        let places: Vec<usize> =
            (0..sequence).filter(|place| seen.get(*place).is_none_or(|seen| *seen != 0)).collect();
        let (mut next, mut most, mut at) = (0, -1, 0);
        while let Some(place) = places.get(at) {
            let before = at.checked_sub(1).and_then(|before| places.get(before));
            let marked = start.is_none_or(|start| before.is_some_and(|place| ids[*place] == start as i64));
            if ids[*place] != token as i64 || !marked {
                (0..3).for_each(|axis| all[(axis, row, *place)] = next);
                (most, next, at) = (most.max(next), next + 1, at + 1);
                continue;
            }
            let (image, grid) = images.next().ok_or_else(|| mismatched("fewer"))?;
            let interval = interval(image);
            let (rows, columns) = (grid.rows / merge, grid.columns / merge);
            let times = if grid.frames > 1 { grid.frames / joined } else { grid.frames };
            for square in 0..times * rows * columns {
                let place = places.get(at).filter(|place| ids[**place] == token as i64);
                let place = *place.ok_or_else(|| mismatched("larger"))?;
                let (frame, within) = (square / (rows * columns), square % (rows * columns));
                let frame = (frame as f32 * interval) as usize;
                for (axis, step) in [frame, within / columns, within % columns].into_iter().enumerate() {
                    all[(axis, row, place)] = next + step as i64;
                    most = most.max(next + step as i64);
                }
                at += 1;
            }
            next += rows.max(columns) as i64;
        }
        deltas.push(most + 1 - places.len() as i64);
    }
    match images.next() {
        None => Ok((all, deltas)),
        Some(_) if start.is_some() || values.contains_key(LEFT_OUT) => Ok((all, deltas)),
        Some(_) => Err(mismatched("more")),
    }
}

fn mismatched(which: &str) -> Error {
    let problem = format!("has {which} images than the image tokens of the texts");
    Error::input(GRIDS, problem, "make text and images with the checkpoint's processor")
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn images_without_a_token_before_them_count_as_texts_do() {
        let tensor = |value: ndarray::ArrayD<i64>| Value::I64(value);
        let values = Values::from([
            ("input_ids".to_owned(), tensor(array![[9, 9, 5, 9, 9, 6]].into_dyn())),
            ("attention_mask".to_owned(), tensor(array![[1, 1, 1, 1, 1, 1]].into_dyn())),
            (GRIDS.to_owned(), tensor(array![[1, 4, 2]].into_dyn())),
        ]);
        let rows =
            tensor(array![[[0, 1, 2, 3, 3, 5]], [[0, 1, 2, 3, 4, 5]], [[0, 1, 2, 3, 3, 5]]].into_dyn());
        assert_eq!(rope_index_of_marked(&values, 9, 2, 5).unwrap(), rows);
        let counted = rope_index_of_marked(&values, 9, 2, 8).unwrap();
        let plain = array![[[0, 1, 2, 3, 4, 5]], [[0, 1, 2, 3, 4, 5]], [[0, 1, 2, 3, 4, 5]]];
        assert_eq!(counted, tensor(plain.into_dyn()));
        assert_eq!(rope_deltas_of_marked(&values, 9, 2, 5).unwrap(), tensor(array![[0]].into_dyn()));
    }

    #[test]
    fn joined_frames_of_a_video_have_a_token_together() {
        let tensor = |value: ndarray::ArrayD<i64>| Value::I64(value);
        let values = Values::from([
            ("input_ids".to_owned(), tensor(array![[9, 5, 9, 9, 9, 9, 6]].into_dyn())),
            ("attention_mask".to_owned(), tensor(array![[1, 1, 1, 1, 1, 1, 1]].into_dyn())),
            (GRIDS.to_owned(), tensor(array![[1, 2, 2], [4, 2, 4]].into_dyn())),
        ]);
        let rows = array![[[0, 1, 2, 2, 3, 3, 4]], [[0, 1, 2, 2, 2, 2, 4]], [[0, 1, 2, 3, 2, 3, 4]]];
        assert_eq!(rope_index_of_joined(&values, 9, 2, 2).unwrap(), tensor(rows.into_dyn()));
        assert_eq!(rope_deltas_of_joined(&values, 9, 2, 2).unwrap(), tensor(array![[-2]].into_dyn()));
        assert!(rope_index(&values, 9, 2).is_err());
    }

    #[test]
    fn padding_has_positions_of_its_own() {
        let tensor = |value: ndarray::ArrayD<i64>| Value::I64(value);
        let mut values = Values::from([
            ("input_ids".to_owned(), tensor(array![[0, 5, 6], [5, 6, 7]].into_dyn())),
            ("attention_mask".to_owned(), tensor(array![[0, 1, 1], [1, 1, 1]].into_dyn())),
        ]);
        let padding = tensor(array![[[1, 0, 0], [0, 0, 0]]].into_dyn());
        assert_eq!(padding_positions(&values).unwrap(), padding);
        values.remove("input_ids");
        assert!(padding_positions(&values).is_err());
    }

    #[test]
    fn times_of_a_video_are_apart_by_its_seconds() {
        let tensor = |value: ndarray::ArrayD<i64>| Value::I64(value);
        let values = Values::from([
            ("input_ids".to_owned(), tensor(array![[5, 9, 9, 9, 6]].into_dyn())),
            ("attention_mask".to_owned(), tensor(array![[1, 1, 1, 1, 1]].into_dyn())),
            (GRIDS.to_owned(), tensor(array![[3, 1, 1]].into_dyn())),
            ("second_per_grid_ts".to_owned(), array![0.75_f32].into_dyn().into()),
        ]);
        // Three positions a second: times 0, 2.25 and 4.5 positions behind the first.
        let ids = rope_index_by_seconds(&values, 9, 1, 3).unwrap();
        let first = ids.i64("ids").unwrap().index_axis(ndarray::Axis(0), 0).to_owned();
        assert_eq!(first, array![[0, 1, 3, 5, 2]].into_dyn());
        assert_eq!(rope_deltas_by_seconds(&values, 9, 1, 3).unwrap(), tensor(array![[1]].into_dyn()));
        assert_eq!(rope_deltas(&values, 9, 1).unwrap(), tensor(array![[-1]].into_dyn()));
    }
}
