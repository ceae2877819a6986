//! Long recordings in pieces that overlap, and what is kept of each.

use std::ops::Range;

use crate::{Error, Result};

/// How a recording is cut: lengths in samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunking {
    length: usize,
    left: usize,
    right: usize,
}

/// A piece, and how much of it belongs to its neighbours: samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub start: usize,
    pub end: usize,
    pub left: usize,
    pub right: usize,
}

impl Chunking {
    /// From seconds; all lengths become multiples of what the model's frames stand for.
    pub(super) fn new(length: f64, stride: Option<(f64, f64)>, rate: f64, frame: usize) -> Result<Self> {
        let (left, right) = stride.unwrap_or((length / 6.0, length / 6.0));
        if ![length, left, right].iter().all(|seconds| seconds.is_finite() && *seconds >= 0.0) {
            let help = "give seconds, 0 or more";
            return Err(Error::input("stride_length_s", "a length is not a number of seconds", help));
        }
        let samples = |seconds: f64| (seconds * rate / frame as f64).round_ties_even() as usize * frame;
        let (length, left, right) = (samples(length), samples(left), samples(right));
        if length <= left.saturating_add(right) {
            let problem =
                format!("pieces of {length} samples overlap by {left} and {right}: nothing is left");
            return Err(Error::input("chunk_length_s", problem, "give longer pieces or shorter overlaps"));
        }
        Ok(Self { length, left, right })
    }

    /// The pieces of a recording of so many samples.
    pub(super) fn cut(self, samples: usize) -> Vec<Chunk> {
        let Self { length, left, right } = self;
        let mut chunks = vec![];
        let mut start = 0;
        while start < samples {
            let last = start + length >= samples;
            let left = if start == 0 { 0 } else { left };
            let end = samples.min(start + length);
            if end - start > left {
                chunks.push(Chunk { start, end, left, right: if last { 0 } else { right } });
            }
            if last {
                break;
            }
            start += length - self.left - right;
        }
        chunks
    }
}

impl Chunk {
    /// A recording in one piece.
    pub(super) fn whole(samples: usize) -> Self {
        Self { start: 0, end: samples, left: 0, right: 0 }
    }

    /// Which of the piece's frames are not its neighbours'.
    pub(super) fn kept(self, frames: usize, samples_per_frame: usize) -> Range<usize> {
        let Self { start, end, left, right } = self;
        if (left, right) == (0, 0) && start == 0 {
            return 0..frames;
        }
        let samples = (end - start) as f64;
        let whole = (samples * (1.0 / samples_per_frame as f64)).round_ties_even();
        let scaled = |stride: usize| (stride as f64 / samples * whole).round_ties_even() as usize;
        let last = (whole as usize).saturating_sub(scaled(right)).min(frames);
        scaled(left).min(last)..last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_overlap_and_the_last_ends_with_the_recording() {
        let chunking = Chunking::new(1.0, Some((0.25, 0.125)), 80.0, 10).unwrap();
        assert_eq!(chunking, Chunking { length: 80, left: 20, right: 10 });
        let chunks = chunking.cut(170);
        let of = |start, end, left, right| Chunk { start, end, left, right };
        assert_eq!(chunks, [of(0, 80, 0, 10), of(50, 130, 20, 10), of(100, 170, 20, 0)]);
        assert_eq!(chunks[1].kept(7, 10), 2..7);
        assert_eq!(chunks[0].kept(8, 10), 0..7);
        assert!(chunking.cut(0).is_empty());
    }

    #[test]
    fn pieces_shorter_than_their_overlaps_are_refused() {
        let text = Chunking::new(1.0, Some((0.5, 0.5)), 80.0, 10).unwrap_err().to_string();
        assert!(text.contains("nothing is left"), "{text}");
        assert!(Chunking::new(f64::NAN, None, 80.0, 10).is_err());
    }
}
