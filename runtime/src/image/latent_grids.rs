//! Places of tokens of latents that a transformer sees behind a text, counted from the middle of each image.
//!
//! Reference: `QwenEmbedRope` of `diffusers`.

use ndarray::{Array1, Array3};

use super::grids::{MOST, two_axes};
use crate::{Error, Result, Value, Values};

const SHAPES: &str = "img_shapes";
const TEXT: &str = "encoder_hidden_states";
const REMEDY: &str = "give a text, and frames, rows and columns of tokens of each image";

/// Places along three axes of text and images together: `[3, 1, words + tokens]` i64, from `img_shapes` `[images, 3]`, which has
/// frames, rows and columns of tokens of each image, and as many words as `encoder_hidden_states` has (`QwenEmbedRope` with
/// `scale_rope`). Images count along the first axis, rows and columns from their middle; words behind the farthest of these.
///
/// # Errors
/// When an input is missing, is not `[images, 3]`, or has a side of 0.
pub fn centred_position_ids(values: &Values) -> Result<Value> {
    let words = match values.get(TEXT) {
        Some(text) => text.shape().get(1).copied().unwrap_or_default(),
        None => return Err(Error::input(TEXT, "is missing", REMEDY)),
    };
    let shapes = shapes(values)?;
    let farthest =
        shapes.iter().map(|[_, rows, columns]| (rows / 2).max(columns / 2)).max().unwrap_or_default();
    let word = |index: usize| (farthest + index) as i64;
    let mut axes = [(); 3].map(|()| (0..words).map(word).collect::<Vec<_>>());
    for (image, &[frames, rows, columns]) in shapes.iter().enumerate() {
        let centred = |index: usize, side: usize| index as i64 - (side - side / 2) as i64;
        for frame in 0..frames {
            for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
                axes[0].push((image + frame) as i64);
                axes[1].push(centred(row, rows));
                axes[2].push(centred(column, columns));
            }
        }
    }
    let count = axes[0].len();
    let ids = Array3::from_shape_vec((3, 1, count), axes.concat()).unwrap_or_default();
    Ok(Value::I64(ids.into_dyn()))
}

/// Whether each token is of the first image, the one that is made: `[1, tokens, 1]` bool, from `img_shapes` `[images, 3]`.
///
/// # Errors
/// As [`centred_position_ids`].
pub fn first_image_tokens(values: &Values) -> Result<Value> {
    let shapes = shapes(values)?;
    let counts: Vec<usize> = shapes.iter().map(|sides| sides.iter().product()).collect();
    let first = counts.first().copied().unwrap_or_default();
    let all: Vec<bool> = (0..counts.iter().sum()).map(|token| token < first).collect();
    let count = all.len();
    let tokens = Array1::from_vec(all).into_shape_with_order((1, count, 1));
    let tokens = tokens.map_err(|problem| Error::input(SHAPES, problem.to_string(), REMEDY))?;
    Ok(Value::Bool(tokens.into_dyn()))
}

/// Frames, rows and columns of each image.
fn shapes(values: &Values) -> Result<Vec<[usize; 3]>> {
    let ids = two_axes(values, SHAPES)?;
    if ids.ncols() != 3 {
        return Err(Error::input(SHAPES, format!("is {:?}, not [images, 3]", ids.shape()), REMEDY));
    }
    let (mut shapes, mut total) = (vec![], 0_usize);
    for row in ids.outer_iter() {
        let sides: Vec<usize> = row.iter().map(|side| usize::try_from(*side).unwrap_or_default()).collect();
        let count =
            sides.iter().try_fold(1_usize, |product, side| product.checked_mul(*side)).unwrap_or(MOST);
        total = total.saturating_add(count);
        match sides[..] {
            [frames, rows, columns] if count > 0 && total < MOST => shapes.push([frames, rows, columns]),
            _ => {
                let problem = format!("has the sides {row}, not numbers above 0 of fewer than {MOST} tokens");
                return Err(Error::input(SHAPES, problem, REMEDY));
            }
        }
    }
    Ok(shapes)
}

#[cfg(test)]
mod tests {
    use ndarray::{ArrayD, IxDyn, arr2};

    use super::*;

    fn values(shapes: &[[i64; 3]]) -> Values {
        let shapes = arr2(shapes).into_dyn();
        let text = ArrayD::<f32>::zeros(IxDyn(&[1, 2, 4]));
        Values::from([(SHAPES.to_owned(), Value::I64(shapes)), (TEXT.to_owned(), Value::F32(text))])
    }

    #[test]
    fn rows_and_columns_count_from_the_middle() {
        let Value::I64(ids) = centred_position_ids(&values(&[[1, 1, 3], [1, 2, 1]])).unwrap() else {
            panic!()
        };
        assert_eq!(ids.shape(), [3, 1, 7]);
        // Two words behind place 1, three columns of one row, and two rows of the next image.
        let want = [[1, 2, 0, 0, 0, 1, 1], [1, 2, -1, -1, -1, -1, 0], [1, 2, -2, -1, 0, -1, -1]];
        assert_eq!(ids.iter().copied().collect::<Vec<_>>(), want.concat());
    }

    #[test]
    fn tokens_of_the_first_image_are_known() {
        let Value::Bool(first) = first_image_tokens(&values(&[[1, 1, 2], [1, 1, 1]])).unwrap() else {
            panic!()
        };
        assert_eq!(first.iter().copied().collect::<Vec<_>>(), [true, true, false]);
    }

    #[test]
    fn sides_of_nothing_are_refused() {
        for (shapes, named) in [(vec![[1, 0, 3]], "numbers above 0"), (vec![[1 << 20; 3]], "fewer than")] {
            let problem = first_image_tokens(&values(&shapes)).unwrap_err().to_string();
            assert!(problem.contains(named) && problem.contains(SHAPES), "{problem}");
        }
        let problem = centred_position_ids(&Values::new()).unwrap_err().to_string();
        assert!(problem.contains("encoder_hidden_states"), "{problem}");
    }
}
