//! The types that weights are stored in, and their exact widening to single precision.

use half::{bf16, f16};
use ort::value::PrimitiveTensorElementType;

use super::lanes::fastest;
use crate::graph::Dtype;

/// An element of a weight, as a checkpoint stores it.
///
/// Widening is written out in plain operations, so that loops over it are compiled into the processor's widest ones.
pub(super) trait Stored: PrimitiveTensorElementType + Copy + Send + Sync + 'static {
    const DTYPE: Dtype;
    /// Whether such numbers are scales of codes that are places in a codebook, and of those that are numbers: kernels are
    /// compiled for these alone.
    const OF_PLACES: bool = false;
    const OF_NUMBERS: bool = true;

    /// The same number in single precision.
    fn single(self) -> f32;

    /// All of them in single precision.
    #[inline(always)]
    fn widen(stored: &[Self], wide: &mut [f32]) {
        wide.iter_mut().zip(stored).for_each(|(wide, stored)| *wide = stored.single());
    }

    /// All of them in bfloat16, rounded to the nearest.
    #[inline(always)]
    fn narrow(stored: &[Self], narrow: &mut [bf16]) {
        narrow.iter_mut().zip(stored).for_each(|(narrow, stored)| *narrow = rounded(stored.single()));
    }
}

/// The nearest number in bfloat16, the even one of two.
#[inline(always)]
pub(super) fn rounded(number: f32) -> bf16 {
    let bits = number.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    bf16::from_bits(if number.is_nan() { 0x7fc0 } else { rounded as u16 })
}

impl Stored for f32 {
    const DTYPE: Dtype = Dtype::F32;

    #[inline(always)]
    fn single(self) -> f32 {
        self
    }

    fn narrow(stored: &[Self], narrow: &mut [bf16]) {
        narrowing()(stored, narrow);
    }
}

/// Rounds all numbers, the fastest way that this processor has: one that has instructions for it takes numbers below the least normal one
/// for 0, as it does where it multiplies them.
fn narrowing() -> fn(&[f32], &mut [bf16]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512bf16") && std::arch::is_x86_feature_detected!("avx512f") {
        return with_avx512bf16::narrow;
    }
    fastest!(each_rounded: fn(numbers: &[f32], narrow: &mut [bf16]))
}

/// Rounding neither adds nor multiplies, so that both forms are one.
#[inline(always)]
fn each_rounded<const FUSED: bool>(numbers: &[f32], narrow: &mut [bf16]) {
    narrow.iter_mut().zip(numbers).for_each(|(narrow, number)| *narrow = rounded(*number));
}

#[cfg(target_arch = "x86_64")]
mod with_avx512bf16 {
    use std::arch::x86_64::{__m512i, _mm512_cvtne2ps_pbh, _mm512_loadu_ps, _mm512_storeu_si512};

    use super::{bf16, each_rounded};

    /// Numbers of two registers.
    const BOTH: usize = 32;

    #[allow(unsafe_code)]
    pub(super) fn narrow(numbers: &[f32], narrow: &mut [bf16]) {
        #[target_feature(enable = "avx512f,avx512bf16")]
        fn compiled(numbers: &[f32], narrow: &mut [bf16]) {
            let narrow = &mut narrow[..numbers.len()];
            let ((numbers, rest), (narrow, narrow_rest)) =
                (numbers.as_chunks::<BOTH>(), narrow.as_chunks_mut::<BOTH>());
            for (narrow, numbers) in narrow.iter_mut().zip(numbers) {
                // SAFETY: both are as many numbers; registers have the same bits, whatever they are numbers of.
                unsafe {
                    let low = _mm512_loadu_ps(numbers.as_ptr());
                    let high = _mm512_loadu_ps(numbers.as_ptr().add(BOTH / 2));
                    let both: __m512i = std::mem::transmute(_mm512_cvtne2ps_pbh(high, low));
                    _mm512_storeu_si512(narrow.as_mut_ptr().cast(), both);
                }
            }
            each_rounded::<true>(rest, narrow_rest);
        }
        // SAFETY: only handed out where the processor has the instructions.
        unsafe { compiled(numbers, narrow) }
    }
}

/// An E8M0 code (OCP Microscaling Formats): `2^(code − 127)`; 255 is no number, and no weight has such a scale.
impl Stored for u8 {
    const DTYPE: Dtype = Dtype::U8;
    const OF_PLACES: bool = true;
    const OF_NUMBERS: bool = false;

    #[inline(always)]
    fn single(self) -> f32 {
        f32::from_bits((u32::from(self) << 23).max(0x0040_0000))
    }
}

impl Stored for bf16 {
    const DTYPE: Dtype = Dtype::Bf16;

    #[inline(always)]
    fn single(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }

    #[inline(always)]
    fn narrow(stored: &[Self], narrow: &mut [bf16]) {
        narrow.copy_from_slice(stored);
    }
}

impl Stored for f16 {
    const DTYPE: Dtype = Dtype::F16;
    const OF_PLACES: bool = true;

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

    /// By the processor's own instruction, where it has one.
    fn widen(stored: &[Self], wide: &mut [f32]) {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("f16c") && std::arch::is_x86_feature_detected!("avx") {
            return with_f16c::widen(stored, wide);
        }
        wide.iter_mut().zip(stored).for_each(|(wide, stored)| *wide = stored.single());
    }
}

#[cfg(target_arch = "x86_64")]
mod with_f16c {
    use std::arch::x86_64::{_mm_loadu_si128, _mm256_cvtph_ps, _mm256_storeu_ps};

    use super::{Stored, f16};

    #[allow(unsafe_code)]
    pub(super) fn widen(stored: &[f16], wide: &mut [f32]) {
        #[target_feature(enable = "avx,f16c")]
        fn compiled(stored: &[f16], wide: &mut [f32]) {
            let ((stored, stored_rest), (wide, wide_rest)) =
                (stored.as_chunks::<8>(), wide.as_chunks_mut::<8>());
            for (wide, stored) in wide.iter_mut().zip(stored) {
                // SAFETY: both are eight numbers.
                unsafe {
                    let stored = _mm_loadu_si128(stored.as_ptr().cast());
                    _mm256_storeu_ps(wide.as_mut_ptr(), _mm256_cvtph_ps(stored));
                }
            }
            wide_rest.iter_mut().zip(stored_rest).for_each(|(wide, stored)| *wide = stored.single());
        }
        // SAFETY: only called where the processor has the instructions.
        unsafe { compiled(stored, wide) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::product::testing::numbers;
    use super::*;

    #[test]
    fn codes_of_8_bits_are_powers_of_two() {
        for code in 0..=254_u8 {
            assert_eq!(f64::from(code.single()), 2_f64.powi(i32::from(code) - 127), "{code}");
        }
    }

    #[test]
    fn bfloat16_is_rounded_to_the_nearest() {
        let ends = [0.0, -0.0, f32::MIN_POSITIVE, f32::MAX, f32::INFINITY];
        let all: Vec<f32> = ends.into_iter().chain(numbers(10_000, 4)).collect();
        let mut narrow = vec![bf16::ZERO; all.len()];
        f32::narrow(&all, &mut narrow);
        for (x, narrow) in all.iter().zip(narrow) {
            assert_eq!(narrow, bf16::from_f32(*x), "{x}");
            assert_eq!(rounded(*x), narrow, "{x}");
        }
        assert_eq!(rounded(1e-40), bf16::from_f32(1e-40));
        let mut nan = [bf16::ZERO; 33];
        f32::narrow(&[f32::NAN; 33], &mut nan);
        assert!(nan.iter().all(|nan| nan.is_nan()));
        assert!(rounded(f32::NAN).is_nan());
    }

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
        let all: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
        let mut wide = vec![0.0; all.len()];
        f16::widen(&all[3..], &mut wide[3..]);
        for (half, wide) in all.iter().zip(&wide).skip(3) {
            assert!(half.is_nan() && wide.is_nan() || half.to_f32().to_bits() == wide.to_bits());
        }
    }
}
