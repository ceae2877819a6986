//! Block quantization in the form that kernels run: that of `com.microsoft.MatMulNBits`.

use std::sync::Arc;

use crate::small_floats::e8m0;
use crate::weights::{Bytes, Codebook, Run};
use crate::{Dtype, Result};

/// A weight `[out, in]` as codes: each row is cut into blocks of `group`, which share a scale.
///
/// `w = (code − zero) · scale`, or `w = code · scale + minimum`; the operand `B` of `com.microsoft.MatMulNBits` with its scales.
/// Or `w = codebook[code] · scale`, which that operator does not have.
/// A row that `group` does not divide ends with a block that is filled up with codes nothing reads.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockQuantized {
    /// `[out, in]`; of a batch the rows of all its matrices, `[batch · out, in]`.
    pub shape: [usize; 2],
    /// How many matrices it holds where it stands for a tensor `[batch, in, out]`, as the experts of a layer are: values lie
    /// the other way than codes.
    pub batch: Option<usize>,
    /// Bits of a code: 2, 4 or 8. Codes of other widths are stored in the next of these.
    pub bits: usize,
    /// How many elements of a row share a scale: 16, 32, 64, 128 or 256; of a convolution's weight all of them.
    pub group: usize,
    /// u8 `[out, blocks, group · bits / 8]`, the first code in the low bits of a byte.
    pub codes: Bytes,
    /// The type of the scales: f32, f16 or bf16, or u8 for E8M0 (OCP Microscaling Formats 1.0): `2^(code − 127)`.
    pub scale_dtype: Dtype,
    /// `[out, blocks]`, little-endian.
    pub scales: Bytes,
    /// What scales of [`OUTER`] blocks are multiplied with, f16 `[out, ⌈blocks / OUTER⌉]`, where scales are whole numbers
    /// themselves: the super-blocks of ggml, double quantization of QLoRA.
    pub outer: Option<Bytes>,
    /// What a code of zero stands for.
    pub zeros: Zeros,
    /// The input column of each stored column, where groups are not of neighbours (GPTQ's `desc_act`).
    pub order: Option<Arc<[u32]>>,
}

/// How many blocks share an outer scale.
pub const OUTER: usize = 8;

/// Where the codes of a block begin.
#[derive(Clone, Debug, PartialEq)]
pub enum Zeros {
    /// `2^(bits − 1)` is zero: symmetric quantization.
    Middle,
    /// The code that is zero, by block `[out, blocks]`, a byte each.
    Codes(Arc<[u8]>),
    /// What is added to `code · scale`, by block `[out, blocks]`: a minimum, or a zero point that is no whole number.
    Minimums(Arc<[f32]>),
    /// None: codes of 4 bits are places in a codebook.
    Codebook(Codebook),
}

impl Zeros {
    /// What a code of so many bits stands for in a block of this scale.
    #[inline]
    pub(crate) fn value(&self, code: u8, bits: usize, scale: f32, block: usize) -> f32 {
        match self {
            Self::Middle => (f32::from(code) - (1_u16 << (bits - 1)) as f32) * scale,
            Self::Codes(zeros) => (f32::from(code) - f32::from(zeros[block])) * scale,
            Self::Minimums(minimums) => f32::from(code) * scale + minimums[block],
            Self::Codebook(book) => book.value(code) * scale,
        }
    }
}

impl BlockQuantized {
    /// The codebook that its codes are places in.
    pub fn codebook(&self) -> Option<Codebook> {
        match self.zeros {
            Zeros::Codebook(book) => Some(book),
            _ => None,
        }
    }

    /// Blocks of a row.
    pub fn blocks(&self) -> usize {
        self.shape[1].div_ceil(self.group)
    }

    /// Whether each row has one scale, as convolutions' weights have: symmetric, in 8 bits.
    pub(crate) fn is_by_row(&self) -> bool {
        let plain = self.outer.is_none() && self.order.is_none() && self.batch.is_none();
        plain && self.bits == 8 && self.group == self.shape[1] && self.zeros == Zeros::Middle
    }

    /// Bytes that codes, scales and zeros take.
    pub fn size(&self) -> u64 {
        let zeros = match &self.zeros {
            Zeros::Middle | Zeros::Codebook(_) => 0,
            Zeros::Codes(codes) => codes.len(),
            Zeros::Minimums(minimums) => 4 * minimums.len(),
        };
        let outer = self.outer.as_ref().map_or(0, Bytes::length);
        self.codes.length() + self.scales.length() + outer + zeros as u64
    }

    /// Some of its rows.
    pub(crate) fn rows(&self, run: Run) -> Self {
        let range = run.within(self.shape[0] * self.blocks());
        let zeros = match &self.zeros {
            Zeros::Middle | Zeros::Codebook(_) => self.zeros.clone(),
            Zeros::Codes(codes) => Zeros::Codes(codes[range].into()),
            Zeros::Minimums(minimums) => Zeros::Minimums(minimums[range].into()),
        };
        Self {
            shape: [run.within(self.shape[0]).len(), self.shape[1]],
            codes: self.codes.clone().part(run),
            scales: self.scales.clone().part(run),
            outer: self.outer.clone().map(|outer| outer.part(run)),
            zeros,
            ..self.clone()
        }
    }

    /// The scales in single precision, `[out, blocks]`.
    ///
    /// # Errors
    /// When the file that holds them cannot be read.
    pub fn scales_in_single(&self) -> Result<Vec<f32>> {
        let scales = self.scales.read()?;
        let mut scales = match self.scale_dtype {
            Dtype::U8 => scales.iter().copied().map(e8m0).collect(),
            dtype => dtype.decoded(&scales),
        };
        if let Some(outer) = &self.outer {
            let outer = Dtype::F16.decoded(&outer.read()?);
            let rows = scales.chunks_mut(self.blocks().max(1)).flat_map(|row| row.chunks_mut(OUTER));
            rows.zip(outer).for_each(|(scales, outer)| scales.iter_mut().for_each(|scale| *scale *= outer));
        }
        Ok(scales)
    }

    /// The weight in single precision, row-major `[out, in]`; of a batch `[batch, in, out]`.
    ///
    /// # Errors
    /// When a file that holds a part of it cannot be read.
    pub fn dequantize(&self) -> Result<Vec<f32>> {
        let (codes, scales) = (self.codes.read()?, self.scales_in_single()?);
        let ([out, columns], blocks) = (self.shape, self.blocks());
        let (per_byte, mask) = (8 / self.bits, ((1_u16 << self.bits) - 1) as u8);
        let rows = out / self.batch.unwrap_or(1).max(1);
        let mut values = vec![0.0; out * columns];
        for row in 0..out {
            for column in 0..columns {
                let block = row * blocks + column / self.group;
                let place = block * self.group + column % self.group;
                let code = codes[place / per_byte] >> (place % per_byte * self.bits) & mask;
                let column = self.order.as_ref().map_or(column, |order| order[column] as usize);
                let into = match self.batch {
                    Some(_) => (row / rows * columns + column) * rows + row % rows,
                    None => row * columns + column,
                };
                values[into] = self.zeros.value(code, self.bits, scales[block], block);
            }
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One row of 32 codes, of which the second half is in another block.
    fn quantized(bits: usize, codes: &[u8], zeros: Zeros) -> BlockQuantized {
        let scales = Dtype::F16.encoded(&[0.5, 2.0]);
        BlockQuantized {
            shape: [1, 18],
            batch: None,
            bits,
            group: 16,
            codes: Bytes::memory(codes.to_vec()),
            scale_dtype: Dtype::F16,
            scales: Bytes::memory(scales),
            outer: None,
            zeros,
            order: None,
        }
    }

    #[test]
    fn the_first_code_is_in_the_low_bits() {
        let mut codes = vec![0x88; 16];
        (codes[0], codes[8]) = (0x70, 0x9f);
        let values = quantized(4, &codes, Zeros::Middle).dequantize().unwrap();
        assert_eq!((values[0], values[1], values[2]), (-4.0, -0.5, 0.0));
        assert_eq!(values[16..], [14.0, 2.0]);
    }

    #[test]
    fn zeros_are_codes_or_minimums_of_a_block() {
        let codes: Vec<u8> = (0..32).collect();
        let values = quantized(8, &codes, Zeros::Codes([1, 20].into())).dequantize().unwrap();
        assert_eq!((values[0], values[15], values[16], values[17]), (-0.5, 7.0, -8.0, -6.0));
        let values = quantized(8, &codes, Zeros::Minimums([0.25, -1.0].into())).dequantize().unwrap();
        assert_eq!((values[0], values[15], values[16], values[17]), (0.25, 7.75, 31.0, 33.0));
    }

    #[test]
    fn codes_are_places_in_a_codebook() {
        let mut codes = vec![0; 32];
        codes[..4].copy_from_slice(&[0x10, 0x32, 0x54, 0xf7]);
        codes[16] = 0x2f;
        let weight = BlockQuantized {
            shape: [2, 32],
            group: 32,
            codes: Bytes::memory(codes),
            scale_dtype: Dtype::U8,
            scales: Bytes::memory(vec![128, 126]),
            ..quantized(4, &[], Zeros::Codebook(Codebook::E2m1))
        };
        let values = weight.dequantize().unwrap();
        assert_eq!(values[..8], [0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 12.0, -12.0]);
        assert_eq!((values[32], values[33], values[34]), (-3.0, 0.5, 0.0));
        // Two matrices of one row, the other way round, are columns.
        let batch = BlockQuantized { batch: Some(2), ..weight.clone() };
        assert_eq!(batch.dequantize().unwrap(), values);
        let one = BlockQuantized { batch: Some(1), ..weight };
        let values = one.dequantize().unwrap();
        assert_eq!(values[..6], [0.0, -3.0, 1.0, 0.5, 2.0, 0.0]);
        assert_eq!(one.size(), 34);
    }

    #[test]
    fn columns_go_where_they_came_from() {
        let mut ordered = quantized(2, &[0b1110_0100, 0, 0, 0, 0b0000_0001, 0, 0, 0], Zeros::Middle);
        let mut order: Vec<u32> = (0..18).collect();
        order.swap(0, 17);
        ordered.order = Some(order.into());
        let values = ordered.dequantize().unwrap();
        assert_eq!(
            (values[17], values[1], values[2], values[3], values[16], values[0]),
            (-1.0, -0.5, 0.0, 0.5, -2.0, -4.0)
        );
        assert_eq!(ordered.size(), 12);
    }
}
