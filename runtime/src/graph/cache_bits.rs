//! The codes of cached keys and values.

/// How cached keys and values are stored (`QuantizedCache`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheCodes {
    /// How many bits an element takes.
    pub bits: CacheBits,
    /// Whether they are stored in single precision, three bytes as a whole number below 2²⁴, for backends that move no bytes.
    pub as_floats: bool,
}

/// The bytes that a floating-point number stands for.
pub(crate) const BYTES_OF_A_FLOAT: usize = 3;

impl CacheCodes {
    /// The length of the last axis of what is stored, of heads of this size.
    pub(crate) fn stored(self, size: usize) -> usize {
        let bytes = self.bits.bytes(size);
        if self.as_floats { bytes.div_ceil(BYTES_OF_A_FLOAT) } else { bytes }
    }
}

/// How many bits a cached element takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheBits {
    /// A byte an element.
    Eight,
    /// A byte for two elements: the first half of a head in the low bits, the second half in the high ones.
    Four,
}

impl CacheBits {
    /// Of a number of bits; none where there are no such codes.
    pub fn of(bits: usize) -> Option<Self> {
        match bits {
            8 => Some(Self::Eight),
            4 => Some(Self::Four),
            _ => None,
        }
    }

    /// The largest code: codes are of both signs around zero.
    pub(crate) fn most(self) -> f32 {
        match self {
            Self::Eight => 127.0,
            Self::Four => 7.0,
        }
    }

    /// The bytes that a position of a head of this size takes.
    pub(crate) fn bytes(self, size: usize) -> usize {
        match self {
            Self::Eight => size,
            Self::Four => size / 2,
        }
    }

    /// Whether heads of this size can be so cached: two elements share a byte of 4 bits.
    pub(crate) fn takes(self, size: usize) -> bool {
        size > 0 && (self == Self::Eight || size.is_multiple_of(2))
    }
}
