//! The types that weights are stored in, and their exact widening to single precision.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use ort::value::PrimitiveTensorElementType;

use crate::graph::Dtype;

/// An element of a weight, as a checkpoint stores it.
pub(super) trait Stored: PrimitiveTensorElementType + Copy + Send + Sync + 'static {
    const DTYPE: Dtype;

    /// `stored` in single precision: itself, or written into `wide`, which is at least as long.
    fn single<'a>(stored: &'a [Self], wide: &'a mut [f32]) -> &'a [f32];
}

impl Stored for f32 {
    const DTYPE: Dtype = Dtype::F32;

    #[inline(always)]
    fn single<'a>(stored: &'a [Self], _: &'a mut [f32]) -> &'a [f32] {
        stored
    }
}

impl Stored for bf16 {
    const DTYPE: Dtype = Dtype::Bf16;

    // Written out, so that it is compiled for the processor of the loop it stands in.
    #[inline(always)]
    fn single<'a>(stored: &'a [Self], wide: &'a mut [f32]) -> &'a [f32] {
        for (wide, stored) in wide.iter_mut().zip(stored) {
            *wide = f32::from_bits(u32::from(stored.to_bits()) << 16);
        }
        &wide[..stored.len()]
    }
}

impl Stored for f16 {
    const DTYPE: Dtype = Dtype::F16;

    #[inline(always)]
    fn single<'a>(stored: &'a [Self], wide: &'a mut [f32]) -> &'a [f32] {
        let wide = &mut wide[..stored.len()];
        stored.convert_to_f32_slice(wide);
        wide
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_16_bits_is_widened_exactly() {
        let bits: Vec<u16> = (0..=u16::MAX).collect();
        let mut wide = vec![0.0; bits.len()];
        let stored: Vec<bf16> = bits.iter().map(|bits| bf16::from_bits(*bits)).collect();
        let widened = bf16::single(&stored, &mut wide);
        assert!(stored.iter().zip(widened).all(|(a, b)| a.is_nan() || a.to_f32() == *b));
        let stored: Vec<f16> = bits.iter().map(|bits| f16::from_bits(*bits)).collect();
        let widened = f16::single(&stored, &mut wide);
        assert!(stored.iter().zip(widened).all(|(a, b)| a.is_nan() || a.to_f32() == *b));
    }
}
