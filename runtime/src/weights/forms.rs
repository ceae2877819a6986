//! The same block-quantized weight in other blocks or wider codes, exactly, and its zeros as operators take them.

use super::{BlockQuantized, Zeros};
use crate::weights::Bytes;
use crate::{Dtype, Result};

impl BlockQuantized {
    /// The same weight in smaller blocks: each scale and zero stands for several.
    ///
    /// # Errors
    /// When a file that holds a part of it cannot be read.
    pub(crate) fn regrouped(&self, group: usize) -> Result<Self> {
        if group == self.group {
            return Ok(self.clone());
        }
        let ([out, columns], times) = (self.shape, self.group / group);
        let (from, to) = (self.blocks(), columns.div_ceil(group));
        let spread = |row: usize| (0..to).map(move |block| row * from + block / times);
        let places: Vec<usize> = (0..out).flat_map(spread).collect();
        let size = self.scale_dtype.size();
        let scales = self.scales.read()?;
        let scales =
            places.iter().flat_map(|&place| &scales[place * size..(place + 1) * size]).copied().collect();
        let (codes, row) = (self.codes.read()?, from * self.group * self.bits / 8);
        let taken = to * group * self.bits / 8;
        let codes = codes.chunks_exact(row.max(1)).flat_map(|row| &row[..taken]).copied().collect();
        let zeros = match &self.zeros {
            Zeros::Middle => Zeros::Middle,
            Zeros::Codes(zeros) => Zeros::Codes(places.iter().map(|&place| zeros[place]).collect()),
            Zeros::Minimums(all) => Zeros::Minimums(places.iter().map(|&place| all[place]).collect()),
        };
        let (codes, scales) = (Bytes::memory(codes), Bytes::memory(scales));
        Ok(Self { group, codes, scales, zeros, ..self.clone() })
    }

    /// The same weight in wider codes.
    ///
    /// # Errors
    /// As [`BlockQuantized::regrouped`].
    pub(crate) fn widened(&self, bits: usize) -> Result<Self> {
        if bits == self.bits {
            return Ok(self.clone());
        }
        let (narrow, mask) = (self.bits, (1_u16 << self.bits) as u8 - 1);
        let offset = match self.zeros {
            Zeros::Middle => (1_u8 << (bits - 1)) - (1 << (narrow - 1)),
            Zeros::Codes(_) | Zeros::Minimums(_) => 0,
        };
        let each =
            move |byte: u8| (0..8 / narrow).map(move |place| (byte >> (place * narrow) & mask) + offset);
        let read = self.codes.read()?;
        let codes = match bits {
            8 => read.iter().flat_map(|&byte| each(byte)).collect(),
            _ => {
                let pairs = |byte: u8| {
                    (0..4 / narrow).map(move |pair| {
                        let code = |place| (byte >> (place * narrow) & mask) + offset;
                        code(2 * pair) | code(2 * pair + 1) << 4
                    })
                };
                read.iter().flat_map(|&byte| pairs(byte)).collect()
            }
        };
        Ok(Self { bits, codes: Bytes::memory(codes), ..self.clone() })
    }

    /// The same weight with scales of another type, to which they are rounded.
    ///
    /// # Errors
    /// As [`BlockQuantized::regrouped`].
    pub(crate) fn with_scales_in(&self, dtype: Dtype) -> Result<Self> {
        if dtype == self.scale_dtype {
            return Ok(self.clone());
        }
        let scales = dtype.encoded(&self.scales_in_single()?);
        Ok(Self { scale_dtype: dtype, scales: Bytes::memory(scales), ..self.clone() })
    }

    /// Zero points as the operators take them, u8 `[out, ⌈blocks · bits / 8⌉]`, the first in the low bits of a byte; none where
    /// there are none.
    pub(crate) fn packed_zeros(&self) -> Option<Vec<u8>> {
        let Zeros::Codes(zeros) = &self.zeros else { return None };
        let per_byte = 8 / self.bits;
        let packed = |codes: &[u8]| -> u8 {
            codes.iter().enumerate().fold(0, |byte, (place, code)| byte | code << (place * self.bits))
        };
        Some(zeros.chunks(self.blocks().max(1)).flat_map(|row| row.chunks(per_byte).map(packed)).collect())
    }

    /// What operators for which `2^(bits − 1)` is zero leave out of `code · scale + minimum`, by block; none where they leave
    /// out nothing.
    ///
    /// # Errors
    /// As [`BlockQuantized::scales_in_single`].
    pub(crate) fn offsets(&self) -> Result<Option<Vec<f32>>> {
        let Zeros::Minimums(minimums) = &self.zeros else { return Ok(None) };
        let middle = (1_u16 << (self.bits - 1)) as f32;
        let scales = self.scales_in_single()?;
        Ok(Some(
            scales.iter().zip(minimums.iter()).map(|(scale, minimum)| middle * scale + minimum).collect(),
        ))
    }

    /// What those operators compute with, in the order of the codes: `[out, in]`.
    ///
    /// # Errors
    /// As [`BlockQuantized::dequantize`].
    pub(crate) fn without_offsets(&self) -> Result<Vec<f32>> {
        let zeros = match &self.zeros {
            Zeros::Minimums(_) => Zeros::Middle,
            zeros => zeros.clone(),
        };
        Self { zeros, order: None, ..self.clone() }.dequantize()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{KINDS, sample};
    use super::*;

    #[test]
    fn smaller_blocks_are_the_same_weight() {
        for (bits, kind) in [2, 4, 8].into_iter().flat_map(|bits| KINDS.map(|kind| (bits, kind))) {
            for (columns, group) in [(64, 64), (40, 32), (70, 64)] {
                let weight = sample([3, columns], bits, group, kind);
                let smaller = weight.regrouped(16).unwrap();
                assert_eq!((smaller.group, smaller.blocks()), (16, columns.div_ceil(16)));
                assert_eq!(smaller.dequantize().unwrap(), weight.dequantize().unwrap(), "{bits} {kind}");
            }
        }
    }

    #[test]
    fn wider_codes_are_the_same_weight() {
        for (bits, wide) in [(2, 4), (2, 8), (4, 8)] {
            for kind in KINDS {
                let weight = sample([3, 40], bits, 16, kind);
                let wider = weight.widened(wide).unwrap();
                assert_eq!(wider.codes.length(), weight.codes.length() * (wide / bits) as u64);
                assert_eq!(wider.dequantize().unwrap(), weight.dequantize().unwrap(), "{bits} {kind}");
            }
        }
    }

    #[test]
    fn zero_points_are_packed_by_row() {
        let mut weight = sample([2, 48], 4, 16, "codes");
        weight.zeros = Zeros::Codes([1, 2, 3, 4, 5, 6].into());
        assert_eq!(weight.packed_zeros().unwrap(), [0x21, 0x03, 0x54, 0x06]);
    }
}
