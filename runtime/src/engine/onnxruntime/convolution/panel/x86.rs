//! Tiles in the registers of x86-64 processors: AVX2 and AVX-512.

use std::arch::x86_64::{
    __m256, __m512, _mm256_add_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_set1_ps, _mm256_storeu_ps,
    _mm512_add_ps, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_set1_ps, _mm512_storeu_ps,
};
use std::ops::Range;

use super::{Lanes, products};

/// A register, and the kernel compiled for processors that have it.
macro_rules! register {
    ($kernel:ident, $features:literal, $register:ty, $rows:literal, $splat:ident, $load:ident, $store:ident, $add:ident, $add_product:ident) => {
        impl Lanes for $register {
            const LANES: usize = size_of::<$register>() / 4;
            const ROWS: usize = $rows;

            #[inline(always)]
            unsafe fn splat(number: f32) -> Self {
                // SAFETY: the caller's.
                unsafe { $splat(number) }
            }

            #[inline(always)]
            unsafe fn load(from: *const f32) -> Self {
                // SAFETY: the caller's.
                unsafe { $load(from) }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut f32) {
                // SAFETY: the caller's.
                unsafe { $store(to, self) }
            }

            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                // SAFETY: the caller's.
                unsafe { $add(self, other) }
            }

            #[inline(always)]
            unsafe fn add_product(self, a: Self, b: Self) -> Self {
                // SAFETY: the caller's.
                unsafe { $add_product(a, b, self) }
            }
        }

        pub(super) fn $kernel<const ADD: bool>(
            weights: &[f32],
            panel: &[f32],
            columns: Range<usize>,
            rows: &mut [&mut [f32]],
        ) {
            #[target_feature(enable = $features)]
            fn compiled<const ADD: bool>(
                weights: &[f32],
                panel: &[f32],
                columns: Range<usize>,
                rows: &mut [&mut [f32]],
            ) {
                // SAFETY: it is compiled with the instructions.
                unsafe { products::<$register, ADD>(weights, panel, columns, rows) }
            }
            // SAFETY: only handed out where the processor has the instructions.
            unsafe { compiled::<ADD>(weights, panel, columns, rows) }
        }
    };
}

register!(
    avx2,
    "avx2,fma",
    __m256,
    6,
    _mm256_set1_ps,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    _mm256_add_ps,
    _mm256_fmadd_ps
);
register!(
    avx512,
    "avx512f",
    __m512,
    12,
    _mm512_set1_ps,
    _mm512_loadu_ps,
    _mm512_storeu_ps,
    _mm512_add_ps,
    _mm512_fmadd_ps
);
