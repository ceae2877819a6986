//! A weight as codes, of which blocks share a scale.

use half::f16;

use super::super::stored::Stored;
use crate::codebook::Codebook;

/// A weight `[out, width]` as `com.microsoft.MatMulNBits` takes it.
#[derive(Clone, Copy)]
pub(in super::super) struct Weight<'a, S> {
    /// `[out, blocks, group · bits / 8]`, the first code in the low bits of a byte.
    pub(in super::super) codes: &'a [u8],
    /// `[out, blocks]`.
    pub(in super::super) scales: &'a [S],
    /// What the scales of 256 codes are multiplied with, `[out, ⌈width / 256⌉]`, where places in a codebook have such.
    pub(in super::super) outer: Option<&'a [f16]>,
    pub(in super::super) zeros: Zeros<'a>,
    pub(in super::super) width: usize,
    /// Bits of a code: 2, 4 or 8.
    pub(in super::super) bits: usize,
    /// How many codes share a scale: 16, 32, 64, 128 or 256.
    pub(in super::super) group: usize,
}

/// How many codes share an outer scale.
const OUTER: usize = 256;

/// What codes stand for zero.
#[derive(Clone, Copy)]
pub(in super::super) enum Zeros<'a> {
    /// `2^(bits − 1)`.
    Middle,
    /// One of each block, in as many bits as codes have: `[out, ⌈blocks · bits / 8⌉]`.
    Codes(&'a [u8]),
    /// The middle one, and so much is added to each weight of a block: `[out, blocks]`.
    Offsets(&'a [f32]),
    /// Codes of 4 bits are places in a codebook.
    Codebook(Codebook),
}

impl<S: Stored> Weight<'_, S> {
    /// Blocks of a row.
    pub(super) fn blocks(&self) -> usize {
        self.width.div_ceil(self.group)
    }

    /// Bytes of a row.
    pub(super) fn row_bytes(&self) -> usize {
        self.blocks() * self.block_bytes()
    }

    pub(super) fn block_bytes(&self) -> usize {
        self.group * self.bits / 8
    }

    pub(super) fn out(&self) -> usize {
        self.codes.len().checked_div(self.row_bytes()).unwrap_or(0)
    }

    /// Whether there are as many of each as `out` rows need, and kernels for them.
    pub(in super::super) fn holds(&self, out: usize) -> bool {
        let blocks = self.blocks();
        self.codes.len() == out * self.row_bytes()
            && self.scales.len() == out * blocks
            && self.outer.is_none_or(|outer| self.group == 32 && outer.len() == out * self.outer_scales())
            && match self.zeros {
                Zeros::Middle => S::OF_NUMBERS,
                Zeros::Codebook(_) => S::OF_PLACES && self.bits == 4,
                Zeros::Codes(zeros) => S::OF_NUMBERS && zeros.len() == out * (blocks * self.bits).div_ceil(8),
                Zeros::Offsets(offsets) => S::OF_NUMBERS && offsets.len() == out * blocks,
            }
    }

    /// Outer scales of a row.
    fn outer_scales(&self) -> usize {
        self.width.div_ceil(OUTER)
    }

    /// What the scale of a block is multiplied with.
    #[inline(always)]
    pub(super) fn outer_scale(&self, row: usize, block: usize) -> f32 {
        match self.outer {
            Some(outer) => outer[row * self.outer_scales() + block * self.group / OUTER].single(),
            None => 1.0,
        }
    }

    /// What is taken off the codes that products are made with: the code in the middle, or what a codebook's values are above
    /// their own.
    pub(super) fn middle(&self) -> i32 {
        match self.zeros {
            Zeros::Codebook(book) => book.above_zero().1.into(),
            _ => 1 << (self.bits - 1),
        }
    }

    /// The codebook of its codes, where they are places in one.
    pub(super) fn codebook(&self) -> Option<Codebook> {
        match self.zeros {
            Zeros::Codebook(book) => Some(book),
            _ => None,
        }
    }

    /// What products of codes and scales are multiplied with.
    pub(super) fn unit(&self) -> f32 {
        self.codebook().map_or(1.0, Codebook::unit)
    }

    /// Whether the codes that products are made with have less than 8 bits.
    pub(super) fn is_narrow(&self) -> bool {
        match self.codebook() {
            Some(book) => book.above_zero().0.iter().all(|value| *value < 128),
            None => self.bits < 8,
        }
    }

    /// Whether something is added to all weights of a block.
    pub(super) fn is_offset(&self) -> bool {
        matches!(self.zeros, Zeros::Codes(_) | Zeros::Offsets(_))
    }

    /// Codes of x that share a scale.
    pub(super) fn rounded_block(&self) -> usize {
        self.group.min(32)
    }

    /// Whether a block's offset is taken times the sum of rounded x: codes far from the middle cancel out, each with its zero.
    /// An offset that is a number of its own is taken times the sum of x as it is.
    pub(super) fn rounded_sums(&self) -> bool {
        matches!(self.zeros, Zeros::Codes(_))
    }

    /// What is added to all weights of a block beside their codes less the middle one, times their scale.
    #[inline(always)]
    pub(super) fn offset(&self, row: usize, block: usize) -> f32 {
        match self.zeros {
            Zeros::Middle | Zeros::Codebook(_) => 0.0,
            Zeros::Codes(zeros) => {
                let place = block * self.bits;
                let row_bytes = (self.blocks() * self.bits).div_ceil(8);
                let zero =
                    zeros[row * row_bytes + place / 8] >> (place % 8) & ((1_u16 << self.bits) - 1) as u8;
                (self.middle() - i32::from(zero)) as f32 * self.scales[row * self.blocks() + block].single()
            }
            Zeros::Offsets(offsets) => offsets[row * self.blocks() + block],
        }
    }
}
