//! Long recordings in pieces that end where it is quiet (`CohereAsrFeatureExtractor`).
//!
//! Reference: `CohereAsrFeatureExtractor._split_audio_chunks_energy`.

use std::ops::Range;

use serde::Deserialize;

use super::settings::Settings;
use crate::Result;

/// Where recordings are cut.
#[derive(Clone, Debug)]
pub(super) struct QuietChunks {
    /// Recordings up to this length are never cut, seconds.
    whole: f64,
    rate: f64,
    /// The longest piece, samples.
    longest: usize,
    /// How far before a piece's longest end a quiet place is looked for, samples.
    search: usize,
    /// The samples whose loudness is compared.
    window: usize,
}

#[derive(Deserialize)]
#[serde(default)]
struct Fields {
    sampling_rate: u32,
    max_audio_clip_s: f64,
    overlap_chunk_second: f64,
    min_energy_window_samples: usize,
}

impl Default for Fields {
    fn default() -> Self {
        Self {
            sampling_rate: 16_000,
            max_audio_clip_s: 35.0,
            overlap_chunk_second: 5.0,
            min_energy_window_samples: 1600,
        }
    }
}

impl QuietChunks {
    pub(super) fn new(settings: &Settings) -> Result<Self> {
        let fields: Fields = settings.typed()?;
        let rate = f64::from(fields.sampling_rate);
        if fields.min_energy_window_samples == 0 || !(0.01..=3600.0).contains(&fields.max_audio_clip_s) {
            let problem = "`min_energy_window_samples` is 0, or `max_audio_clip_s` is not from 0.01 to 3600";
            return Err(settings.refuse(problem));
        }
        let samples = |seconds: f64| ((seconds * rate).round_ties_even() as usize).max(1);
        Ok(Self {
            whole: (fields.max_audio_clip_s - fields.overlap_chunk_second).max(0.0),
            rate,
            longest: samples(fields.max_audio_clip_s),
            search: samples(fields.overlap_chunk_second),
            window: fields.min_energy_window_samples,
        })
    }

    /// The pieces of a recording, in order; none where it stays whole.
    pub(super) fn cut(&self, samples: &[f32]) -> Option<Vec<Range<usize>>> {
        let total = samples.len();
        if total as f64 / self.rate <= self.whole {
            return None;
        }
        let mut pieces = vec![];
        let mut start = 0;
        while start + self.longest < total {
            let end = start + self.longest;
            let from = start.max(end.saturating_sub(self.search));
            let at = self.quietest(samples, from..end).clamp(start + 1, total);
            pieces.push(start..at);
            start = at;
        }
        pieces.push(start..total);
        Some(pieces)
    }

    /// Where the quietest window begins (`_find_split_point_energy`).
    fn quietest(&self, samples: &[f32], within: Range<usize>) -> usize {
        let windows = within.len().saturating_sub(self.window).div_ceil(self.window);
        let loudness = |at: usize| {
            let window = &samples[at..at + self.window];
            window.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>()
        };
        let starts = (0..windows).map(|index| within.start + index * self.window);
        let quietest = starts.map(|at| (at, loudness(at))).reduce(|a, b| if b.1 < a.1 { b } else { a });
        quietest.map_or((within.start + within.end) / 2, |(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(whole: f64) -> QuietChunks {
        QuietChunks { whole, rate: 1.0, longest: 10, search: 6, window: 2 }
    }

    #[test]
    fn pieces_end_where_it_is_quiet() {
        let mut samples = [1.0; 25];
        (samples[6], samples[7]) = (0.0, 0.5);
        let ranges = |cut: Option<Vec<Range<usize>>>| format!("{cut:?}");
        assert_eq!(ranges(chunks(3.0).cut(&samples)), "Some([0..6, 6..10, 10..14, 14..18, 18..25])");
        assert_eq!(ranges(chunks(30.0).cut(&samples)), "None");
        assert_eq!(ranges(chunks(3.0).cut(&samples[..10])), "Some([0..10])");
    }

    #[test]
    fn a_search_shorter_than_a_window_cuts_in_its_middle() {
        let short = QuietChunks { search: 2, ..chunks(3.0) };
        assert_eq!(short.cut(&[1.0; 12]), Some(vec![0..9, 9..12]));
    }
}
