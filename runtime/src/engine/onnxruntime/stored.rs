//! The types that weights are stored in, and their exact widening to single precision.

use half::{bf16, f16};
use ort::value::PrimitiveTensorElementType;

use crate::graph::Dtype;

/// An element of a weight, as a checkpoint stores it.
///
/// Widening is written out in plain operations, so that loops over it are compiled into the processor's widest ones.
pub(super) trait Stored: PrimitiveTensorElementType + Copy + Send + Sync + 'static {
    const DTYPE: Dtype;

    /// The same number in single precision.
    fn single(self) -> f32;
}

impl Stored for f32 {
    const DTYPE: Dtype = Dtype::F32;

    #[inline(always)]
    fn single(self) -> f32 {
        self
    }
}

impl Stored for bf16 {
    const DTYPE: Dtype = Dtype::Bf16;

    #[inline(always)]
    fn single(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }
}

impl Stored for f16 {
    const DTYPE: Dtype = Dtype::F16;

    #[inline(always)]
    fn single(self) -> f32 {
        /// The difference of the exponents' biases, as a factor: it makes subnormal numbers normal as well.
        const REBIASED: f32 = f32::from_bits((127 + 112) << 23);
        let bits = u32::from(self.to_bits());
        let (sign, magnitude) = ((bits & 0x8000) << 16, (bits & 0x7fff) << 13);
        let number = (f32::from_bits(magnitude) * REBIASED).to_bits();
        let infinite = magnitude >= 0x7c00 << 13;
        f32::from_bits(sign | if infinite { magnitude | 0x7f80_0000 } else { number })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_16_bits_is_widened_exactly() {
        for bits in 0..=u16::MAX {
            let (brain, half) = (bf16::from_bits(bits), f16::from_bits(bits));
            assert!(
                brain.is_nan() && brain.single().is_nan()
                    || brain.to_f32().to_bits() == brain.single().to_bits()
            );
            assert!(
                half.is_nan() && half.single().is_nan() || half.to_f32().to_bits() == half.single().to_bits()
            );
        }
    }
}
