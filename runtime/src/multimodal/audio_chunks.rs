//! Log-mel spectrograms of recordings of any length as chunks, each padded to the longest of them.
//!
//! Reference: `chunk_and_pad_features`, `get_valid_indices`, `get_audio_cu_seqlens` and `get_pool_indices` of Qwen2.5-Omni and
//! Qwen3-Omni.

use ndarray::{Array3, Ix3};

use super::array;
use super::frames::seen;
use crate::{Error, Result, Value, Values};

/// Recordings cut into chunks of at most so many frames: `input_features` f32 `[recordings, bins, frames]`, of which a mask
/// `[recordings, frames]` says what is no padding.
#[derive(Clone, Copy, Debug)]
pub struct AudioChunks {
    /// The input that holds the mask.
    pub mask: &'static str,
    /// Frames of a chunk.
    pub frames: usize,
    /// How many positions so many frames of a chunk become.
    pub positions: fn(usize) -> usize,
}

const FEATURES: &str = "input_features";

impl AudioChunks {
    /// The chunks of all recordings, padded by zeros at the end: `[chunks, bins, longest]` f32.
    ///
    /// # Errors
    /// When spectrograms or mask are missing or do not fit each other.
    pub fn spectra(self, values: &Values) -> Result<Value> {
        let missing = || {
            let help = "make recordings with the checkpoint's processor";
            Error::input(FEATURES, "must be spectrograms [recordings, bins, frames] with their mask", help)
        };
        let spectra = values.get(FEATURES).ok_or_else(missing)?.f32(FEATURES)?;
        let spectra = spectra.view().into_dimensionality::<Ix3>().map_err(|_| missing())?;
        let lengths = self.lengths(values)?.concat();
        let seen = seen(values, self.mask)?;
        if seen.nrows() != spectra.dim().0 || seen.ncols() != spectra.dim().2 {
            return Err(missing());
        }
        let longest = lengths.iter().copied().max().unwrap_or_default();
        let mut chunks = Array3::zeros((lengths.len(), spectra.dim().1, longest));
        let mut first = 0;
        for (spectrum, seen) in spectra.outer_iter().zip(seen.outer_iter()) {
            let frames: Vec<usize> = (0..seen.len()).filter(|at| seen[*at]).collect();
            for (at, frame) in frames.iter().enumerate() {
                let mut column = chunks.slice_mut(ndarray::s![
                    first + at / self.frames.max(1),
                    ..,
                    at % self.frames.max(1)
                ]);
                column.assign(&spectrum.column(*frame));
            }
            first += frames.len().div_ceil(self.frames.max(1));
        }
        Ok(Value::F32(chunks.into_dyn()))
    }

    /// 1 for frames of these chunks, 0 for padding: `[chunks, 1, longest]` f32.
    ///
    /// # Errors
    /// When the mask is missing or has not two axes.
    pub fn padding(self, values: &Values) -> Result<Value> {
        let lengths = self.lengths(values)?.concat();
        let longest = lengths.iter().copied().max().unwrap_or_default();
        let mask = Array3::from_shape_fn((lengths.len(), 1, longest), |(chunk, _, at)| {
            f32::from(u8::from(at < lengths[chunk]))
        });
        Ok(Value::F32(mask.into_dyn()))
    }

    /// The positions that are no padding among those of all chunks: `[positions]` i64.
    ///
    /// # Errors
    /// As [`AudioChunks::padding`].
    pub fn rows(self, values: &Values) -> Result<Value> {
        let lengths = self.lengths(values)?.concat();
        let each = (self.positions)(lengths.iter().copied().max().unwrap_or_default());
        let rows: Vec<i64> = lengths
            .iter()
            .enumerate()
            .flat_map(|(chunk, length)| {
                (0..(self.positions)(*length)).map(move |at| (chunk * each + at) as i64)
            })
            .collect();
        Ok(array(&[rows.len()], rows))
    }

    /// The window of each of these positions, counted over all recordings: windows are as long as `chunks` of the longest chunk, and
    /// begin anew with each recording: `[1, positions]` i64.
    ///
    /// # Errors
    /// As [`AudioChunks::padding`].
    pub fn windows(self, values: &Values, chunks: usize) -> Result<Value> {
        let lengths = self.lengths(values)?;
        let longest = lengths.iter().flatten().copied().max().unwrap_or_default();
        let window = ((self.positions)(longest) * chunks).max(1);
        let (mut windows, mut first) = (vec![], 0);
        for recording in lengths {
            let count: usize = recording.iter().map(|length| (self.positions)(*length)).sum();
            windows.extend((0..count).map(|at| (first + at / window) as i64));
            first += count.div_ceil(window);
        }
        Ok(array(&[1, windows.len()], windows))
    }

    /// The first of each two of these positions of a recording, of which one that is left over at the end is left out:
    /// `[pairs]` i64.
    ///
    /// # Errors
    /// As [`AudioChunks::padding`].
    pub fn pairs(self, values: &Values) -> Result<Value> {
        let (mut pairs, mut first) = (vec![], 0);
        for recording in self.lengths(values)? {
            let count: usize = recording.iter().map(|length| (self.positions)(*length)).sum();
            pairs.extend((0..count / 2).map(|pair| (first + 2 * pair) as i64));
            first += count;
        }
        Ok(array(&[pairs.len()], pairs))
    }

    /// The frames of each chunk of each recording.
    fn lengths(self, values: &Values) -> Result<Vec<Vec<usize>>> {
        let chunk = self.frames.max(1);
        let count = |seen: ndarray::ArrayView1<'_, bool>| {
            let frames = seen.iter().filter(|seen| **seen).count();
            (0..frames.div_ceil(chunk)).map(|at| chunk.min(frames - at * chunk)).collect()
        };
        Ok(seen(values, self.mask)?.outer_iter().map(count).collect())
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array3, ArrayD};

    use super::*;

    fn given() -> Values {
        let features =
            Array3::from_shape_fn((2, 1, 6), |(recording, _, frame)| (recording * 10 + frame) as f32);
        let mask = array(&[2, 6], vec![1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0]);
        Values::from([(FEATURES.to_owned(), Value::F32(features.into_dyn())), ("mask".to_owned(), mask)])
    }

    fn numbers(value: &Value) -> Vec<i64> {
        value.i64("value").unwrap().iter().copied().collect()
    }

    #[test]
    fn recordings_are_cut_and_padded_to_the_longest_chunk() {
        let chunks = AudioChunks { mask: "mask", frames: 4, positions: |frames| frames.div_ceil(2) };
        let spectra = chunks.spectra(&given()).unwrap();
        let want = vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 0.0, 0.0, 10.0, 11.0, 12.0, 0.0];
        assert_eq!(spectra, Value::F32(ArrayD::from_shape_vec(vec![3, 1, 4], want).unwrap()));
        let padding = chunks.padding(&given()).unwrap();
        let padding: Vec<f32> = padding.f32("padding").unwrap().iter().copied().collect();
        assert_eq!(padding, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0]);
        assert_eq!(numbers(&chunks.rows(&given()).unwrap()), [0, 1, 2, 4, 5]);
        assert_eq!(numbers(&chunks.windows(&given(), 1).unwrap()), [0, 0, 1, 2, 2]);
        assert_eq!(numbers(&chunks.windows(&given(), 2).unwrap()), [0, 0, 0, 1, 1]);
        assert_eq!(numbers(&chunks.pairs(&given()).unwrap()), [0, 3]);
    }

    #[test]
    fn a_mask_of_other_recordings_is_refused() {
        let chunks = AudioChunks { mask: "mask", frames: 4, positions: |frames| frames };
        let mut values = given();
        values.insert("mask".to_owned(), array(&[1, 6], vec![1; 6]));
        assert!(chunks.spectra(&values).unwrap_err().to_string().contains("with their mask"));
        values.remove("mask");
        assert!(chunks.rows(&values).unwrap_err().to_string().contains("must be a mask"));
    }
}
