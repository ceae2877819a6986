//! Loops of rounding by WebAssembly's vectors (`simd128`), which every browser has that runs ONNX Runtime Web: a page's code is optimized
//! for size, which leaves loops as they are written. What a vector does not fill is left to the plain loops, as are other processors.
#![allow(unsafe_code, reason = "vectors are read from slices and written to them")]

use std::arch::wasm32::{
    f32x4_abs, f32x4_add, f32x4_extract_lane, f32x4_max, f32x4_min, f32x4_mul, f32x4_pmax, f32x4_splat,
    i8x16_shuffle, i16x8_shl, u8x16_narrow_i16x8, u16x8_shr, u16x8_splat, u32x4_extend_high_u16x8,
    u32x4_extend_low_u16x8, u32x4_shl, v128, v128_and, v128_load, v128_or, v128_store,
};

/// Numbers of bfloat16, the upper halves of those in single precision; how many bytes were read.
#[target_feature(enable = "simd128")]
pub(in crate::quantization) fn widened(narrow: &[u8], wide: &mut [f32]) -> usize {
    let (narrow, wide) = (narrow.as_chunks::<16>().0, wide.as_chunks_mut::<8>().0);
    for (narrow, wide) in narrow.iter().zip(&mut *wide) {
        let all = load(narrow.as_ptr());
        store(wide.as_mut_ptr(), u32x4_shl(u32x4_extend_low_u16x8(all), 16));
        store(wide[4..].as_mut_ptr(), u32x4_shl(u32x4_extend_high_u16x8(all), 16));
    }
    16 * narrow.len().min(wide.len())
}

/// The largest absolute value of a multiple of four numbers; those that are none are passed over.
#[target_feature(enable = "simd128")]
pub(super) fn largest(values: &[[f32; 4]]) -> f32 {
    let most = values.iter().fold(f32x4_splat(0.0), |most, x| f32x4_pmax(most, f32x4_abs(load(x.as_ptr()))));
    lanes(most).into_iter().fold(0.0, f32::max)
}

/// The sum of absolute values of a multiple of four numbers.
#[target_feature(enable = "simd128")]
pub(in crate::quantization) fn sum(values: &[[f32; 4]]) -> f32 {
    let sum = values.iter().fold(f32x4_splat(0.0), |sum, x| f32x4_add(sum, f32x4_abs(load(x.as_ptr()))));
    lanes(sum).into_iter().sum()
}

/// Codes of sixteen numbers each: `x · inverse` within bounds, of which `bias` leaves the nearest integer in the low bits.
#[target_feature(enable = "simd128")]
pub(super) fn round(
    values: &[[f32; 16]],
    inverse: f32,
    [least, most]: [f32; 2],
    bias: f32,
    codes: &mut [[u8; 16]],
) {
    let (inverse, bias) = (f32x4_splat(inverse), f32x4_splat(bias));
    let (least, most) = (f32x4_splat(least), f32x4_splat(most));
    for (values, codes) in values.iter().zip(codes) {
        let four = |at: usize| {
            let x = f32x4_mul(load(values[at..].as_ptr()), inverse);
            f32x4_add(f32x4_min(f32x4_max(x, least), most), bias)
        };
        let low = i8x16_shuffle::<0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28>(four(0), four(4));
        let high =
            i8x16_shuffle::<0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28>(four(8), four(12));
        let all = i8x16_shuffle::<0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23>(low, high);
        store(codes.as_mut_ptr(), all);
    }
}

/// Codes of a byte each as those of 4 bits, the first in the low bits.
#[target_feature(enable = "simd128")]
pub(super) fn pack(wide: &[[u8; 32]], codes: &mut [[u8; 16]]) {
    for (wide, codes) in wide.iter().zip(codes) {
        let pairs = |at: usize| {
            let all = load(wide[at..].as_ptr());
            let low = v128_and(all, u16x8_splat(0x00ff));
            v128_or(low, i16x8_shl(u16x8_shr(all, 8), 4))
        };
        store(codes.as_mut_ptr(), u8x16_narrow_i16x8(pairs(0), pairs(16)));
    }
}

#[target_feature(enable = "simd128")]
fn lanes(x: v128) -> [f32; 4] {
    [
        f32x4_extract_lane::<0>(x),
        f32x4_extract_lane::<1>(x),
        f32x4_extract_lane::<2>(x),
        f32x4_extract_lane::<3>(x),
    ]
}

/// Sixteen bytes, which every caller has there.
#[target_feature(enable = "simd128")]
fn load<T>(from: *const T) -> v128 {
    // SAFETY: all callers give the beginning of sixteen bytes of a slice; the address may be any.
    unsafe { v128_load(from.cast()) }
}

/// Sixteen bytes, for which every caller has room there.
#[target_feature(enable = "simd128")]
fn store<T>(to: *mut T, x: v128) {
    // SAFETY: as in `load`.
    unsafe { v128_store(to.cast(), x) }
}
