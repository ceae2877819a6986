//! The same block-quantized weight in other blocks or wider codes, exactly, and its zeros as operators take them.

use std::mem::discriminant;

use super::{BlockQuantized, Codebook, Zeros};
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
        if self.outer.is_some() {
            return self.with_scales_in(Dtype::F32)?.regrouped(group);
        }
        let size = self.scale_dtype.size();
        let scales = self.scales.read()?;
        let scales =
            places.iter().flat_map(|&place| &scales[place * size..(place + 1) * size]).copied().collect();
        let (codes, row) = (self.codes.read()?, from * self.group * self.bits / 8);
        let taken = to * group * self.bits / 8;
        let codes = codes.chunks_exact(row.max(1)).flat_map(|row| &row[..taken]).copied().collect();
        let zeros = match &self.zeros {
            Zeros::Middle | Zeros::Codebook(_) => self.zeros.clone(),
            Zeros::Codes(zeros) => Zeros::Codes(places.iter().map(|&place| zeros[place]).collect()),
            Zeros::Minimums(all) => Zeros::Minimums(places.iter().map(|&place| all[place]).collect()),
        };
        let (codes, scales) = (Bytes::memory(codes), Bytes::memory(scales));
        Ok(Self { group, codes, scales, zeros, ..self.clone() })
    }

    /// The rows of several weights, one after the other; none where their blocks differ.
    ///
    /// # Errors
    /// As [`BlockQuantized::regrouped`].
    pub(crate) fn joined(all: &[Self]) -> Result<Option<Self>> {
        let Some(first) = all.first() else { return Ok(None) };
        let form = |it: &Self| {
            let codebook = it.codebook();
            (it.bits, it.group, it.shape[1], it.scale_dtype, discriminant(&it.zeros), codebook, it.batch)
        };
        if all.iter().any(|it| form(it) != form(first) || it.outer.is_some() || it.order.is_some()) {
            return Ok(None);
        }
        let bytes = |of: fn(&Self) -> &Bytes| -> Result<Bytes> {
            let all = all.iter().map(|it| of(it).read()).collect::<Result<Vec<_>>>()?;
            Ok(Bytes::memory(all.concat()))
        };
        let zeros = match first.zeros {
            Zeros::Middle | Zeros::Codebook(_) => first.zeros.clone(),
            Zeros::Codes(_) => Zeros::Codes(all.iter().flat_map(Self::zero_codes).copied().collect()),
            Zeros::Minimums(_) => Zeros::Minimums(all.iter().flat_map(Self::minimums).copied().collect()),
        };
        let rows = all.iter().map(|it| it.shape[0]).sum();
        Ok(Some(Self {
            shape: [rows, first.shape[1]],
            codes: bytes(|it| &it.codes)?,
            scales: bytes(|it| &it.scales)?,
            zeros,
            ..first.clone()
        }))
    }

    fn zero_codes(&self) -> &[u8] {
        if let Zeros::Codes(codes) = &self.zeros { codes } else { &[] }
    }

    fn minimums(&self) -> &[f32] {
        if let Zeros::Minimums(minimums) = &self.zeros { minimums } else { &[] }
    }

    /// The same weight in wider codes.
    ///
    /// # Errors
    /// As [`BlockQuantized::regrouped`].
    pub(crate) fn widened(&self, bits: usize) -> Result<Self> {
        if bits == self.bits {
            return Ok(self.clone());
        }
        if let Zeros::Codebook(_) = self.zeros {
            return self.looked_up()?.widened(bits);
        }
        let (narrow, mask) = (self.bits, (1_u16 << self.bits) as u8 - 1);
        let offset = match self.zeros {
            Zeros::Middle => (1_u8 << (bits - 1)) - (1 << (narrow - 1)),
            Zeros::Codes(_) | Zeros::Minimums(_) | Zeros::Codebook(_) => 0,
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

    /// The same weight without a codebook: what its codes of 4 bits stand for, as codes of 8 bits around 128.
    ///
    /// # Errors
    /// As [`BlockQuantized::regrouped`].
    pub(crate) fn looked_up(&self) -> Result<Self> {
        let Zeros::Codebook(book) = self.zeros else { return Ok(self.clone()) };
        let values = book.values().map(|value| value.cast_unsigned() ^ 128);
        let codes = self.codes.read()?;
        let both = |pair: &u8| [values[usize::from(pair & 15)], values[usize::from(pair >> 4)]];
        let codes = Bytes::memory(codes.iter().flat_map(both).collect());
        let wide = Self { bits: 8, codes, zeros: Zeros::Middle, ..self.clone() };
        if self.scale_dtype != Dtype::U8 && self.outer.is_none() && book.unit() == 1.0 {
            return Ok(wide);
        }
        let scales: Vec<f32> = self.scales_in_single()?.iter().map(|scale| scale * book.unit()).collect();
        let scales = Bytes::memory(Dtype::F32.encoded(&scales));
        Ok(Self { scale_dtype: Dtype::F32, scales, outer: None, ..wide })
    }

    /// The narrowest type that holds all its values exactly, of those that weights are stored in.
    pub(crate) fn exact_dtype(&self) -> Dtype {
        match (&self.zeros, self.scale_dtype) {
            // Two bits of mantissa by a power of two.
            (Zeros::Codebook(Codebook::E2m1), Dtype::U8) => Dtype::Bf16,
            _ => Dtype::F32,
        }
    }

    /// The same weight with scales of another type, to which they are rounded.
    ///
    /// # Errors
    /// As [`BlockQuantized::regrouped`].
    pub(crate) fn with_scales_in(&self, dtype: Dtype) -> Result<Self> {
        if dtype == self.scale_dtype && self.outer.is_none() {
            return Ok(self.clone());
        }
        let scales = dtype.encoded(&self.scales_in_single()?);
        Ok(Self { scale_dtype: dtype, scales: Bytes::memory(scales), outer: None, ..self.clone() })
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
    fn what_a_codebook_has_is_the_same_weight() {
        for kind in ["e2m1", "iq4_nl"] {
            let weight = sample([3, 64], 4, 32, kind);
            let wide = weight.widened(8).unwrap();
            assert_eq!((wide.bits, &wide.zeros), (8, &Zeros::Middle));
            assert_eq!(wide.dequantize().unwrap(), weight.dequantize().unwrap(), "{kind}");
        }
        let outer = Dtype::F16.encoded(&[0.5, -2.0, 1.0, 3.0]);
        let nested =
            BlockQuantized { outer: Some(Bytes::memory(outer)), ..sample([2, 512], 4, 32, "iq4_nl") };
        let flat = sample([2, 512], 4, 32, "iq4_nl").dequantize().unwrap();
        let values = nested.dequantize().unwrap();
        assert_eq!((values[3], values[300], values[600]), (0.5 * flat[3], -2.0 * flat[300], flat[600]));
        assert_eq!(values[1023], 3.0 * flat[1023]);
        assert_eq!(nested.looked_up().unwrap().dequantize().unwrap(), values);
        assert_eq!(nested.regrouped(16).unwrap().dequantize().unwrap(), values);
        assert_eq!(
            nested.rows(crate::weights::Run { first: 1, length: 1, of: 2 }).dequantize().unwrap(),
            values[512..]
        );
        let weight = sample([4, 64], 4, 32, "e2m1");
        let values = weight.dequantize().unwrap();
        assert_eq!(weight.exact_dtype(), Dtype::Bf16);
        assert_eq!(Dtype::Bf16.decoded(&Dtype::Bf16.encoded(&values)), values);
    }

    #[test]
    fn zero_points_are_packed_by_row() {
        let mut weight = sample([2, 48], 4, 16, "codes");
        weight.zeros = Zeros::Codes([1, 2, 3, 4, 5, 6].into());
        assert_eq!(weight.packed_zeros().unwrap(), [0x21, 0x03, 0x54, 0x06]);
    }
}
