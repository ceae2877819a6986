//! Convolutions' codes in the order in which kernels of 8 bits multiply them.

use super::BlockQuantized;
use crate::Result;

/// Channels of the result in a panel.
pub(crate) const CHANNELS: usize = 16;

/// The depth of a panel is a multiple of this, filled up with weights that are zero: a row of a tile of AMX.
pub(crate) const DEPTH: usize = 64;

/// The most places of a window: so many products of 8 bits, 255 · 127 at most, add up to no more than 32 bits hold.
pub(crate) const DEEPEST: usize = 1 << 16;

/// A convolution's weight for kernels of whole numbers.
pub(crate) struct Panels {
    /// Signed bytes, of each group panels of 16 channels `[depth / 4, 16, 4]`: a window's places one after another, each with its
    /// channels, filled up to four; the last panel's channels and the depth are filled up with zeros.
    pub(crate) codes: Vec<u8>,
    /// What all weights of a channel add up to, `[out]`.
    pub(crate) sums: Vec<f32>,
    /// The scale of each channel, `[out]`.
    pub(crate) scales: Vec<f32>,
}

/// How deep panels are for windows of so many places of so many channels.
pub(crate) fn depth(channels: usize, places: usize) -> usize {
    (places * channels.next_multiple_of(4)).next_multiple_of(DEPTH)
}

impl Panels {
    /// Of a weight `[out, channels, places]` with one scale for each row, in so many groups.
    ///
    /// # Errors
    /// When the file that holds it cannot be read.
    pub(crate) fn of(
        weight: &BlockQuantized,
        [out, channels, places]: [usize; 3],
        groups: usize,
    ) -> Result<Self> {
        let (codes, scales) = (weight.codes.read()?, weight.scales_in_single()?);
        let (depth, fours) = (depth(channels, places), channels.next_multiple_of(4));
        let (per_group, columns) = (out / groups.max(1), channels * places);
        let panels = per_group.div_ceil(CHANNELS);
        let mut made =
            Self { codes: vec![0; groups * panels * depth * CHANNELS], sums: vec![0.0; out], scales };
        for (row, (codes, sum)) in codes.chunks_exact(columns.max(1)).zip(&mut made.sums).enumerate() {
            let (group, channel) = (row / per_group, row % per_group);
            let panel = group * panels + channel / CHANNELS;
            let panel = &mut made.codes[panel * depth * CHANNELS..][..depth * CHANNELS];
            let mut total = 0;
            for (column, code) in codes.iter().enumerate() {
                let at = column % places * fours + column / places;
                let code = code.wrapping_sub(128);
                panel[(at / 4 * CHANNELS + channel % CHANNELS) * 4 + at % 4] = code;
                total += i32::from(code as i8);
            }
            *sum = total as f32;
        }
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype;
    use crate::quantization::Zeros;
    use crate::weights::Bytes;

    #[test]
    fn channels_of_a_place_lie_beside_each_other() {
        // Three rows of two channels by two places, in one group: 1, 2 of the first channel, 3, 4 of the second.
        let codes: Vec<u8> = (0..12).map(|code| 129 + code).collect();
        let weight = BlockQuantized {
            shape: [3, 4],
            batch: None,
            bits: 8,
            group: 4,
            codes: Bytes::memory(codes),
            scale_dtype: Dtype::F32,
            scales: Bytes::memory(Dtype::F32.encoded(&[0.5, 1.0, 2.0])),
            outer: None,
            zeros: Zeros::Middle,
            order: None,
        };
        let panels = Panels::of(&weight, [3, 2, 2], 1).unwrap();
        assert_eq!(panels.codes.len(), 64 * 16);
        // The first place's channels, of each row of the weight.
        assert_eq!(panels.codes[..12], [1, 3, 0, 0, 5, 7, 0, 0, 9, 11, 0, 0]);
        // The second's.
        assert_eq!(panels.codes[64..76], [2, 4, 0, 0, 6, 8, 0, 0, 10, 12, 0, 0]);
        assert!(panels.codes[128..].iter().all(|code| *code == 0));
        assert_eq!(panels.sums, [10.0, 26.0, 42.0]);
        assert_eq!(panels.scales, [0.5, 1.0, 2.0]);
        // In three groups each row has a panel of its own.
        let panels = Panels::of(&weight, [3, 2, 2], 3).unwrap();
        assert_eq!(panels.codes.len(), 3 * 64 * 16);
        assert_eq!(panels.codes[64 * 16..][..5], [5, 7, 0, 0, 0]);
    }
}
