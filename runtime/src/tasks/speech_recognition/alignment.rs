//! Timestamps of tokens by dynamic time warping over cross-attention weights.
//!
//! Reference: `WhisperGenerationMixin._extract_token_timestamps`.

use ndarray::{Array2, ArrayD, Axis, Ix4, Slice};

use crate::{Error, Result};

/// Seconds from one position of the encoder to the next.
const SECONDS: f64 = 0.02;

/// The timestamp of each token after the prompt, seconds, by the cross-attention weights of the alignment heads `[1, heads,
/// tokens, positions]`, of which so many positions hold audio. `width` is that of the median filter over them.
pub(super) fn token_times(
    weights: &ArrayD<f32>,
    prompt: usize,
    positions: usize,
    width: usize,
) -> Result<Vec<f64>> {
    let shape =
        || Error::input("alignment", format!("has shape {:?}", weights.shape()), "four axes are needed");
    let weights = weights.view().into_dimensionality::<Ix4>().map_err(|_| shape())?;
    let mut weights = weights.index_axis_move(Axis(0), 0);
    let (tokens, most) = (weights.len_of(Axis(1)), weights.len_of(Axis(2)));
    // Nothing follows the last token, so that nobody looked anywhere while going on from it.
    let rows = tokens.saturating_sub(prompt + 1);
    let positions = positions.min(most);
    if rows == 0 || positions == 0 {
        return Ok(vec![0.0; tokens.saturating_sub(prompt)]);
    }
    weights.slice_axis_inplace(Axis(1), Slice::from(prompt..prompt + rows));
    weights.slice_axis_inplace(Axis(2), Slice::from(0..positions));
    let mut mean = Array2::<f32>::zeros((rows, positions));
    for head in weights.outer_iter() {
        let centre = head.mean_axis(Axis(0)).ok_or_else(shape)?;
        let spread = head.std_axis(Axis(0), 0.0);
        let mut normal = (&head - &centre) / &spread;
        for mut row in normal.rows_mut() {
            let smoothed = smoothed(&row.to_vec(), width);
            row.assign(&ndarray::ArrayView1::from(smoothed.as_slice()));
        }
        mean += &normal;
    }
    mean /= weights.len_of(Axis(0)) as f32;
    let mut times: Vec<f64> = path(&mean).into_iter().map(|position| position as f64 * SECONDS).collect();
    times.extend(times.last().copied());
    Ok(times)
}

/// The medians of windows of this width, mirrored at both ends.
fn smoothed(row: &[f32], width: usize) -> Vec<f32> {
    let reach = width / 2;
    if row.len() <= reach {
        return row.to_vec();
    }
    let (length, reach) = (row.len() as isize, reach as isize);
    let mirrored = |at: isize| {
        let at = if at < 0 { -at } else { at };
        if at >= length { 2 * length - 2 - at } else { at }
    };
    let window = |at: isize| {
        let mut window: Vec<f32> = (at - reach..=at + reach).map(|at| row[mirrored(at) as usize]).collect();
        window.sort_by(f32::total_cmp);
        window[reach as usize]
    };
    (0..length).map(window).collect()
}

/// Dynamic time warping: the position at which the most probable path through tokens and positions reaches each token.
fn path(scores: &Array2<f32>) -> Vec<usize> {
    let (tokens, positions) = scores.dim();
    let mut cost = Array2::<f32>::from_elem((tokens + 1, positions + 1), f32::INFINITY);
    let mut trace = Array2::<u8>::from_elem((tokens + 1, positions + 1), 2);
    cost[(0, 0)] = 0.0;
    for j in 1..=positions {
        for i in 1..=tokens {
            let [both, token, position] = [cost[(i - 1, j - 1)], cost[(i - 1, j)], cost[(i, j - 1)]];
            let (least, step) = if both < token && both < position {
                (both, 0)
            } else if token < both && token < position {
                (token, 1)
            } else {
                (position, 2)
            };
            cost[(i, j)] = (f64::from(least) - f64::from(scores[(i - 1, j - 1)])) as f32;
            trace[(i, j)] = step;
        }
    }
    trace.row_mut(0).fill(2);
    trace.column_mut(0).fill(1);
    let (mut i, mut j) = (tokens, positions);
    let mut reached = vec![0; tokens];
    while i > 0 || j > 0 {
        if i > 0 {
            reached[i - 1] = j.saturating_sub(1);
        }
        match trace[(i, j)] {
            0 => (i, j) = (i - 1, j - 1),
            1 => i -= 1,
            _ => j -= 1,
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_mirrored_at_the_ends() {
        assert_eq!(smoothed(&[5.0, 1.0, 2.0, 9.0, 3.0], 3), [1.0, 2.0, 2.0, 3.0, 9.0]);
        assert_eq!(smoothed(&[5.0], 3), [5.0]);
    }

    #[test]
    fn tokens_are_aligned_with_what_they_attend_to() {
        let mut scores = Array2::<f32>::zeros((3, 6));
        for (token, position) in [(0, 0), (0, 1), (1, 2), (1, 3), (2, 4), (2, 5)] {
            scores[(token, position)] = 1.0;
        }
        // As the reference: of equals, the path stays with the earlier position.
        assert_eq!(path(&scores), [0, 1, 3]);
    }
}
