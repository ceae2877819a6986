//! Element types of tensors.

use std::fmt;

use half::{bf16, f16};

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dtype {
    /// IEEE single precision.
    F32,
    /// IEEE half precision.
    F16,
    /// bfloat16.
    Bf16,
    /// 64-bit signed integer.
    I64,
    /// 32-bit signed integer.
    I32,
    /// 8-bit unsigned integer: the codes of quantized weights.
    U8,
    /// Boolean.
    Bool,
}

impl Dtype {
    /// Bytes of one element.
    pub fn size(self) -> usize {
        match self {
            Self::I64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::U8 | Self::Bool => 1,
        }
    }

    /// Whether it is one of the floating-point types.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F16 | Self::Bf16)
    }

    /// Little-endian elements of a floating-point type in single precision; bytes at the end that make no element are left out.
    pub(crate) fn decoded(self, bytes: &[u8]) -> Vec<f32> {
        match self {
            Self::F16 => bytes.as_chunks().0.iter().map(|x| f16::from_le_bytes(*x).to_f32()).collect(),
            Self::Bf16 => bytes.as_chunks().0.iter().map(|x| bf16::from_le_bytes(*x).to_f32()).collect(),
            _ => bytes.as_chunks().0.iter().map(|x| f32::from_le_bytes(*x)).collect(),
        }
    }

    /// Which of little-endian elements of a floating-point type is the first that is infinite or no number: one whose exponent has all
    /// its bits.
    pub(crate) fn first_not_finite(self, bytes: &[u8]) -> Option<usize> {
        let short = |mask: u16| {
            let all = bytes.as_chunks().0.iter().map(|x| u16::from_le_bytes(*x) & mask);
            // Most have none, and the largest is found without a branch.
            (all.clone().max() == Some(mask)).then(|| all.clone().position(|bits| bits == mask)).flatten()
        };
        match self {
            Self::F16 => short(0x7c00),
            Self::Bf16 => short(0x7f80),
            _ => bytes.as_chunks().0.iter().position(|x| !f32::from_le_bytes(*x).is_finite()),
        }
    }

    /// Numbers as little-endian elements of a floating-point type, the nearest ones.
    pub(crate) fn encoded(self, values: &[f32]) -> Vec<u8> {
        match self {
            Self::F16 => values.iter().flat_map(|x| f16::from_f32(*x).to_le_bytes()).collect(),
            Self::Bf16 => values.iter().flat_map(|x| bf16::from_f32(*x).to_le_bytes()).collect(),
            _ => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
        }
    }

    /// The nearest number of a floating-point type.
    pub(crate) fn nearest(self, value: f32) -> f32 {
        match self {
            Self::F16 => f16::from_f32(value).to_f32(),
            Self::Bf16 => bf16::from_f32(value).to_f32(),
            _ => value,
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::I64 => "i64",
            Self::I32 => "i32",
            Self::U8 => "u8",
            Self::Bool => "bool",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_finite_is_found() {
        for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16] {
            let largest = dtype.nearest(6.0e4);
            for (value, place) in [
                (f32::INFINITY, Some(2)),
                (f32::NEG_INFINITY, Some(2)),
                (f32::NAN, Some(2)),
                (-largest, None),
            ] {
                let bytes = dtype.encoded(&[0.0, -largest, value, f32::MIN_POSITIVE]);
                assert_eq!(dtype.first_not_finite(&bytes), place, "{dtype} {value}");
            }
            assert_eq!(dtype.first_not_finite(&[]), None);
        }
    }
}
