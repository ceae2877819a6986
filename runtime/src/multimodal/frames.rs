//! Frames of recordings that are no padding.

use ndarray::{Array2, Ix2};

use super::array;
use crate::{Error, Result, Value, Values};

/// The rows that are no padding among those of all recordings, one recording after the other, `[features]` i64: of a mask
/// `[recordings, frames]`, `length` of a number of frames being the rows that they become.
///
/// # Errors
/// When the mask is missing or has not two axes.
pub fn unpadded_rows(values: &Values, mask: &str, length: impl Fn(usize) -> usize) -> Result<Value> {
    let seen = seen(values, mask)?;
    let frames = seen.ncols();
    rows(&seen, frames, length)
}

/// As [`unpadded_rows`], of recordings that are cut into chunks of so many frames, each of which becomes rows of its own.
///
/// # Errors
/// As [`unpadded_rows`], and when the recordings are no whole number of chunks.
pub fn chunk_rows(
    values: &Values,
    mask: &str,
    chunk: usize,
    length: impl Fn(usize) -> usize,
) -> Result<Value> {
    rows(&seen(values, mask)?, chunk, length)
}

/// The window of each of the rows that [`chunk_rows`] gives, counted over all recordings, `[1, features]` i64: windows are as many
/// rows long as the fullest chunk has, times `chunks`, and begin anew with each recording (`get_audio_cu_seqlens`).
///
/// # Errors
/// As [`chunk_rows`].
pub fn chunk_windows(
    values: &Values,
    mask: &str,
    (chunk, chunks): (usize, usize),
    length: impl Fn(usize) -> usize,
) -> Result<Value> {
    let seen = seen(values, mask)?;
    let cut = whole_chunks(&seen, chunk, mask)?;
    let counts: Vec<Vec<usize>> =
        cut.iter().map(|row| row.iter().map(|&frames| length(frames)).collect()).collect();
    let window = counts.iter().flatten().max().map_or(1, |most| most * chunks).max(1);
    let (mut windows, mut first) = (vec![], 0);
    for row in counts {
        let total: usize = row.iter().sum();
        windows.extend((0..total).map(|at| (first + at / window) as i64));
        first += total.div_ceil(window);
    }
    Ok(array(&[1, windows.len()], windows))
}

fn rows(seen: &Array2<bool>, chunk: usize, length: impl Fn(usize) -> usize) -> Result<Value> {
    let each = length(chunk);
    let mut rows = vec![];
    for (index, frames) in whole_chunks(seen, chunk, "input_features")?.concat().into_iter().enumerate() {
        rows.extend((0..length(frames).min(each)).map(|at| (index * each + at) as i64));
    }
    Ok(array(&[rows.len()], rows))
}

/// The frames that are no padding in each chunk of each recording.
fn whole_chunks(seen: &Array2<bool>, chunk: usize, name: &str) -> Result<Vec<Vec<usize>>> {
    let frames = seen.ncols();
    if chunk == 0 || !frames.is_multiple_of(chunk) {
        let problem = format!("has {frames} frames, which are no whole number of chunks of {chunk}");
        return Err(Error::input(name, problem, "make recordings with the checkpoint's processor"));
    }
    let count = |frames: &[bool]| frames.iter().filter(|seen| **seen).count();
    Ok(seen.outer_iter().map(|row| row.to_vec().chunks(chunk).map(count).collect()).collect())
}

pub(super) fn seen(values: &Values, mask: &str) -> Result<Array2<bool>> {
    let missing = || {
        Error::input(mask, "must be a mask [recordings, frames]", "make it with the checkpoint's processor")
    };
    let seen = match values.get(mask).ok_or_else(missing)? {
        Value::Bool(seen) => seen.clone(),
        other => other.i64(mask)?.mapv(|value| value != 0),
    };
    seen.into_dimensionality::<Ix2>().map_err(|_| missing())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(rows: &[&[i64]]) -> Values {
        let mask = array(&[rows.len(), rows[0].len()], rows.concat());
        Values::from([("mask".to_owned(), mask)])
    }

    fn numbers(value: Result<Value>) -> Vec<i64> {
        value.unwrap().i64("rows").unwrap().iter().copied().collect()
    }

    #[test]
    fn rows_of_padding_are_left_out() {
        let values = given(&[&[1, 1, 1, 1, 1], &[1, 1, 1, 0, 0], &[0, 0, 0, 0, 0]]);
        let half = |frames: usize| frames.div_ceil(2);
        assert_eq!(numbers(unpadded_rows(&values, "mask", half)), [0, 1, 2, 3, 4]);
        assert!(unpadded_rows(&values, "other", half).is_err());
        let marks =
            Values::from([("mask".to_owned(), Value::from(ndarray::arr2(&[[true, false]]).into_dyn()))]);
        assert_eq!(numbers(unpadded_rows(&marks, "mask", |frames| frames)), [0]);
    }

    #[test]
    fn chunks_have_rows_and_windows_of_their_own() {
        let values = given(&[&[1, 1, 1, 1, 1, 0], &[1, 1, 1, 0, 0, 0]]);
        let half = |frames: usize| frames.div_ceil(2);
        // Chunks of two frames become one row each: three of the first recording, two of the second.
        assert_eq!(numbers(chunk_rows(&values, "mask", 2, half)), [0, 1, 2, 3, 4]);
        assert_eq!(numbers(chunk_windows(&values, "mask", (2, 2), half)), [0, 0, 1, 2, 2]);
        // Chunks of three frames become two rows each.
        assert_eq!(numbers(chunk_rows(&values, "mask", 3, half)), [0, 1, 2, 4, 5]);
        assert_eq!(numbers(chunk_windows(&values, "mask", (3, 1), half)), [0, 0, 1, 2, 2]);
        let error = chunk_rows(&values, "mask", 4, half).unwrap_err().to_string();
        assert!(error.contains("6 frames") && error.contains("chunks of 4"), "{error}");
    }
}
