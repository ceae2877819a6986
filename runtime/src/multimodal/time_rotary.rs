//! Angles of rotary time embeddings: of windows of recordings, and of positions within them, by when they sound.

use std::f32::consts::PI;

use ndarray::Array3;

use super::frames::unpadded_rows;
use crate::{Error, Result, Value, Values};

/// Rotary time embeddings (`MusicFlamingoRotaryEmbedding`) of recordings that are cut into windows of one length.
#[derive(Clone, Debug)]
pub struct TimeRotary {
    /// The token that stands for positions of recordings; a run of it is one recording.
    pub token: usize,
    /// Seconds from one position to the next.
    pub step: f64,
    /// The greatest number of windows, and of positions.
    pub longest: f32,
    /// Inverse frequencies.
    pub frequencies: Vec<f32>,
}

impl TimeRotary {
    /// The angles of each position `[windows, positions, 2 · frequencies]` f32, those by window before those by position: of the
    /// mask of the windows' frames, `length` of a number of frames being the positions that they become.
    ///
    /// # Errors
    /// When the mask or ids are missing, or the tokens are not as many as the positions.
    pub fn angles(&self, values: &Values, mask: &str, length: impl Fn(usize) -> usize) -> Result<Value> {
        let shape = values.get(mask).map(Value::shape).unwrap_or_default();
        let &[windows, frames] = shape else {
            return Err(Error::input(
                mask,
                "must be a mask [windows, frames]",
                "make it with the checkpoint's processor",
            ));
        };
        let positions = length(frames);
        let rows = unpadded_rows(values, mask, length)?;
        let mut lengths = vec![0; windows];
        for row in rows.i64(mask)? {
            lengths[*row as usize / positions.max(1)] += 1;
        }
        let numbers = self.numbers(values, &lengths)?;
        let count = self.frequencies.len();
        let of = |(window, position, pair): (usize, usize, usize)| {
            let (step, own) = (self.step as f32, numbers[window]);
            let starts = (own * positions) as f32 * step;
            let seconds = starts + position as f32 * step;
            let number = (starts / (self.step * positions as f64) as f32).round_ties_even();
            let turn = match pair < count {
                true => number / self.longest * self.frequencies[pair],
                false => position as f32 / self.longest * (2.0 * PI) * self.frequencies[pair - count],
            };
            turn * (-seconds * 2.0 * PI)
        };
        Ok(Array3::from_shape_fn((windows, positions, 2 * count), of).into_dyn().into())
    }

    /// Which window of its recording each is.
    fn numbers(&self, values: &Values, lengths: &[usize]) -> Result<Vec<usize>> {
        let missing =
            || Error::input("input_ids", "is required and was not given", "give it as i64 [batch, sequence]");
        let ids = values.get("input_ids").ok_or_else(missing)?.i64("input_ids")?;
        let mut runs: Vec<usize> = vec![];
        for row in ids.rows() {
            let mut within = false;
            for &id in row {
                let is = id == self.token as i64;
                match runs.last_mut() {
                    Some(run) if is && within => *run += 1,
                    _ if is => runs.push(1),
                    _ => {}
                }
                within = is;
            }
        }
        let (tokens, total): (usize, usize) = (runs.iter().sum(), lengths.iter().sum());
        if tokens != total {
            let problem = format!(
                "has {tokens} audio tokens ({}), but the recordings give {total} features",
                self.token
            );
            return Err(Error::input(
                "input_ids",
                problem,
                "make text and recordings with the checkpoint's processor",
            ));
        }
        let (mut numbers, mut ends, mut begun, mut number) = (vec![], runs.into_iter(), 0, 0);
        let mut end = ends.next().unwrap_or_default();
        for length in lengths {
            if begun >= end && *length > 0 {
                end += ends.next().unwrap_or_default();
                number = 0;
            }
            numbers.push(number);
            number += 1;
            begun += length;
        }
        Ok(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multimodal::array;

    #[test]
    fn windows_are_counted_within_recordings() {
        let rotary = TimeRotary { token: 9, step: 0.5, longest: 4.0, frequencies: vec![1.0, 0.5] };
        // The first recording has a window and a half, the second half a one.
        let mask = array(&[3, 4], vec![1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 0, 0]);
        let ids = array(&[1, 6], vec![9, 9, 9, 1, 9, 2]);
        let values = Values::from([("mask".to_owned(), mask), ("input_ids".to_owned(), ids)]);
        let angles = rotary.angles(&values, "mask", |frames| frames / 2).unwrap();
        assert_eq!(angles.shape(), [3, 2, 4]);
        let angles = angles.f32("angles").unwrap();
        // The second window begins after a second; its second position sounds at 1.5 s.
        let near = |at: [usize; 3], wanted: f32| {
            assert!((angles[at] - wanted).abs() < 1e-5, "{at:?} {}", angles[at]);
        };
        near([0, 1, 0], 0.0);
        near([0, 1, 2], 0.25 * 2.0 * PI * -PI);
        near([1, 1, 0], 0.25 * -3.0 * PI);
        near([1, 1, 3], 0.25 * 2.0 * PI * 0.5 * -3.0 * PI);
        near([2, 0, 0], 0.0);
        let few = Values::from([
            ("mask".to_owned(), array(&[1, 2], vec![1, 1])),
            ("input_ids".to_owned(), array(&[1, 1], vec![1])),
        ]);
        assert!(rotary.angles(&few, "mask", |frames| frames).is_err());
    }
}
