//! Mel filter banks (`transformers.audio_utils.mel_filter_bank`).
//!
//! Reference: `transformers.audio_utils.mel_filter_bank`.

/// The mel scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MelScale {
    /// HTK's: `2595 · log₁₀(1 + f / 700)`.
    Htk,
    /// Slaney's: linear below 1000 Hz, logarithmic above.
    Slaney,
}

/// The normalisation of filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MelNorm {
    /// Their peaks are one.
    Peak,
    /// Their areas are equal.
    Slaney,
}

/// Triangular mel filters over the bins of a spectrum.
#[derive(Clone, Debug)]
pub struct MelFilters {
    /// For each filter the first bin that it takes, and its weights from there on.
    filters: Vec<(usize, Vec<f64>)>,
}

impl MelFilters {
    /// `count` filters between the frequencies `low` and `high`, Hz, over `bins` frequencies from zero to half of
    /// `sampling_rate`.
    pub fn new(
        count: usize,
        bins: usize,
        (low, high): (f64, f64),
        sampling_rate: u32,
        scale: MelScale,
        norm: MelNorm,
    ) -> Self {
        let corners = corners(count, (scale.mels(low), scale.mels(high)));
        let corners: Vec<f64> = corners.into_iter().map(|mels| scale.hertz(mels)).collect();
        let nyquist = f64::from(sampling_rate / 2);
        let frequency = |bin: usize| nyquist * bin as f64 / bins.saturating_sub(1).max(1) as f64;
        let places: Vec<f64> = (0..bins).map(frequency).collect();
        Self::triangles(&corners, &places, norm)
    }

    /// Filters that are triangles over mels, as Kaldi's are: `1127 · ln(1 + f / 700)`.
    pub fn in_mels(count: usize, bins: usize, (low, high): (f64, f64), sampling_rate: u32) -> Self {
        let mels = |hertz: f64| 1127.0 * (1.0 + hertz / 700.0).ln();
        let width = f64::from(sampling_rate) / (2 * bins.saturating_sub(1).max(1)) as f64;
        let places: Vec<f64> = (0..bins).map(|bin| mels(width * bin as f64)).collect();
        Self::triangles(&corners(count, (mels(low), mels(high))), &places, MelNorm::Peak)
    }

    fn triangles(corners: &[f64], places: &[f64], norm: MelNorm) -> Self {
        let filter = |corner: &[f64]| {
            let [left, peak, right] = [corner[0], corner[1], corner[2]];
            let area = match norm {
                MelNorm::Peak => 1.0,
                MelNorm::Slaney => 2.0 / (right - left),
            };
            let weight =
                |f: &f64| ((f - left) / (peak - left)).min((right - f) / (right - peak)).max(0.0) * area;
            let weights: Vec<f64> = places.iter().map(weight).collect();
            let first = weights.iter().position(|w| *w > 0.0).unwrap_or(0);
            let end = weights.iter().rposition(|w| *w > 0.0).map_or(first, |last| last + 1);
            (first, weights[first..end].to_vec())
        };
        Self { filters: corners.windows(3).map(filter).collect() }
    }

    /// The number of filters.
    pub fn len(&self) -> usize {
        self.filters.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }

    /// The energy in each mel band of a power spectrum.
    pub fn apply<'a>(&'a self, spectrum: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        let gather = |(first, weights): &(usize, Vec<f64>)| {
            weights.iter().zip(&spectrum[*first..]).map(|(weight, power)| weight * power).sum()
        };
        self.filters.iter().map(gather)
    }
}

/// Where filters begin, peak and end: evenly apart.
fn corners(count: usize, (from, to): (f64, f64)) -> Vec<f64> {
    (0..count + 2).map(|i| from + (to - from) * i as f64 / (count + 1) as f64).collect()
}

/// Slaney's scale is linear up to here: 1000 Hz, 15 mels.
const BREAK: (f64, f64) = (1000.0, 15.0);

impl MelScale {
    fn mels(self, hertz: f64) -> f64 {
        match self {
            Self::Htk => 2595.0 * (1.0 + hertz / 700.0).log10(),
            Self::Slaney if hertz >= BREAK.0 => BREAK.1 + (hertz / BREAK.0).ln() * 27.0 / 6.4f64.ln(),
            Self::Slaney => 3.0 * hertz / 200.0,
        }
    }

    fn hertz(self, mels: f64) -> f64 {
        match self {
            Self::Htk => 700.0 * (10f64.powf(mels / 2595.0) - 1.0),
            Self::Slaney if mels >= BREAK.1 => BREAK.0 * ((mels - BREAK.1) * 6.4f64.ln() / 27.0).exp(),
            Self::Slaney => 200.0 * mels / 3.0,
        }
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn scales_lead_back() {
        for scale in [MelScale::Htk, MelScale::Slaney] {
            for hertz in [0.0, 440.0, 999.9, 1000.0, 7999.0] {
                assert!((scale.hertz(scale.mels(hertz)) - hertz).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn filters_overlap_by_half() {
        let filters = MelFilters::new(4, 65, (0.0, 8000.0), 16000, MelScale::Htk, MelNorm::Peak);
        let sums: Vec<f64> = (0..65)
            .map(|bin| {
                let spectrum: Vec<f64> = (0..65).map(|b| f64::from(u8::from(b == bin))).collect();
                filters.apply(&spectrum).sum()
            })
            .collect();
        assert!(sums.iter().all(|sum| *sum <= 1.0 + 1e-9));
        assert!(sums[20..30].iter().all(|sum| (sum - 1.0).abs() < 1e-9));
    }
}
