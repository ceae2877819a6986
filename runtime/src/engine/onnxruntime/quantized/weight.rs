//! A weight as codes, of which blocks share a scale.

use super::super::stored::Stored;

/// A weight `[out, width]` as `com.microsoft.MatMulNBits` takes it.
#[derive(Clone, Copy)]
pub(in super::super) struct Weight<'a, S> {
    /// `[out, blocks, group · bits / 8]`, the first code in the low bits of a byte.
    pub(in super::super) codes: &'a [u8],
    /// `[out, blocks]`.
    pub(in super::super) scales: &'a [S],
    pub(in super::super) zeros: Zeros<'a>,
    pub(in super::super) width: usize,
    /// Bits of a code: 2, 4 or 8.
    pub(in super::super) bits: usize,
    /// How many codes share a scale: 16, 32, 64, 128 or 256.
    pub(in super::super) group: usize,
}

/// What codes stand for zero.
#[derive(Clone, Copy)]
pub(in super::super) enum Zeros<'a> {
    /// `2^(bits − 1)`.
    Middle,
    /// One of each block, in as many bits as codes have: `[out, ⌈blocks · bits / 8⌉]`.
    Codes(&'a [u8]),
    /// The middle one, and so much is added to each weight of a block: `[out, blocks]`.
    Offsets(&'a [f32]),
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

    /// Whether there are as many of each as `out` rows need.
    pub(in super::super) fn holds(&self, out: usize) -> bool {
        let blocks = self.blocks();
        self.codes.len() == out * self.row_bytes()
            && self.scales.len() == out * blocks
            && match self.zeros {
                Zeros::Middle => true,
                Zeros::Codes(zeros) => zeros.len() == out * (blocks * self.bits).div_ceil(8),
                Zeros::Offsets(offsets) => offsets.len() == out * blocks,
            }
    }

    /// The code in the middle.
    pub(super) fn middle(&self) -> i32 {
        1 << (self.bits - 1)
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
            Zeros::Middle => 0.0,
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
