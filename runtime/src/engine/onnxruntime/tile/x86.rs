//! Tiles in the registers of x86-64 processors: AVX2, AVX-512, and AVX-512's products of bfloat16.

use std::arch::x86_64::{
    __m256, __m512, __m512bh, _mm_add_ps, _mm256_castps256_ps128, _mm256_extractf128_ps, _mm256_fmadd_ps,
    _mm256_hadd_ps, _mm256_loadu_ps, _mm256_setzero_ps, _mm512_add_ps, _mm512_castpd_ps, _mm512_castps_pd,
    _mm512_castps512_ps128, _mm512_dpbf16_ps, _mm512_extractf32x4_ps, _mm512_fmadd_ps, _mm512_loadu_ps,
    _mm512_loadu_si512, _mm512_setzero_ps, _mm512_unpackhi_pd, _mm512_unpackhi_ps, _mm512_unpacklo_pd,
    _mm512_unpacklo_ps,
};

use half::bf16;

use super::{COLUMNS, Stored, Vector, block};

/// A kernel compiled for a processor that has these instructions.
macro_rules! kernel {
    ($(#[$doc:meta])* $name:ident, $features:literal, $vector:ty, $element:ty) => {
        $(#[$doc])*
        pub(super) fn $name<W: Stored>(
            x: &[$element],
            weights: &[W],
            width: usize,
            bias: Option<&[f32]>,
            result: &mut [&mut [f32]],
        ) {
            #[target_feature(enable = $features)]
            fn compiled<W: Stored>(
                x: &[$element],
                weights: &[W],
                width: usize,
                bias: Option<&[f32]>,
                result: &mut [&mut [f32]],
            ) {
                // SAFETY: it is compiled with the instructions.
                unsafe { block::<W, $vector>(x, weights, width, bias, result) }
            }
            // SAFETY: only handed out where the processor has the instructions.
            unsafe { compiled(x, weights, width, bias, result) }
        }
    };
}

kernel!(avx2, "avx2,fma", __m256, f32);
kernel!(avx512, "avx512f", __m512, f32);
kernel!(avx512bf16, "avx512f,avx512bf16", PairSums, bf16);

impl Vector for __m256 {
    type Element = f32;
    const LANES: usize = 8;
    const ROWS: usize = 3;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller's.
        unsafe { _mm256_setzero_ps() }
    }

    #[inline(always)]
    unsafe fn add_products(self, x: *const f32, weights: *const f32) -> Self {
        // SAFETY: the caller's.
        unsafe { _mm256_fmadd_ps(_mm256_loadu_ps(x), _mm256_loadu_ps(weights), self) }
    }

    #[inline(always)]
    unsafe fn sums([a, b, c, d]: [Self; COLUMNS]) -> [f32; COLUMNS] {
        // SAFETY: the caller's; four lanes are four numbers.
        unsafe {
            let pairs = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
            let sums = _mm_add_ps(_mm256_castps256_ps128(pairs), _mm256_extractf128_ps::<1>(pairs));
            std::mem::transmute(sums)
        }
    }
}

impl Vector for __m512 {
    type Element = f32;
    const LANES: usize = 16;
    const ROWS: usize = 6;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller's.
        unsafe { _mm512_setzero_ps() }
    }

    #[inline(always)]
    unsafe fn add_products(self, x: *const f32, weights: *const f32) -> Self {
        // SAFETY: the caller's.
        unsafe { _mm512_fmadd_ps(_mm512_loadu_ps(x), _mm512_loadu_ps(weights), self) }
    }

    #[inline(always)]
    unsafe fn sums(of: [Self; COLUMNS]) -> [f32; COLUMNS] {
        // SAFETY: the caller's.
        unsafe { sums(of) }
    }
}

/// Sums in single precision of products of pairs in bfloat16.
#[derive(Clone, Copy)]
pub(super) struct PairSums(__m512);

impl Vector for PairSums {
    type Element = bf16;
    const LANES: usize = 32;
    const ROWS: usize = 6;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller's.
        Self(unsafe { _mm512_setzero_ps() })
    }

    #[inline(always)]
    unsafe fn add_products(self, x: *const bf16, weights: *const bf16) -> Self {
        // SAFETY: the caller's; registers of integers and of bfloat16 have the same bits.
        unsafe {
            let x: __m512bh = std::mem::transmute(_mm512_loadu_si512(x.cast()));
            let weights: __m512bh = std::mem::transmute(_mm512_loadu_si512(weights.cast()));
            Self(_mm512_dpbf16_ps(self.0, x, weights))
        }
    }

    #[inline(always)]
    unsafe fn sums([a, b, c, d]: [Self; COLUMNS]) -> [f32; COLUMNS] {
        // SAFETY: the caller's.
        unsafe { sums([a.0, b.0, c.0, d.0]) }
    }
}

/// The sum of the lanes of each.
#[inline(always)]
unsafe fn sums([a, b, c, d]: [__m512; COLUMNS]) -> [f32; COLUMNS] {
    // SAFETY: the caller has AVX-512; four lanes are four numbers.
    unsafe {
        let ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
        let cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
        let (ab, cd) = (_mm512_castps_pd(ab), _mm512_castps_pd(cd));
        let low = _mm512_castpd_ps(_mm512_unpacklo_pd(ab, cd));
        let high = _mm512_castpd_ps(_mm512_unpackhi_pd(ab, cd));
        // Of each four lanes a sum of a, b, c and d.
        let all = _mm512_add_ps(low, high);
        let halves = _mm_add_ps(_mm512_castps512_ps128(all), _mm512_extractf32x4_ps::<1>(all));
        let others = _mm_add_ps(_mm512_extractf32x4_ps::<2>(all), _mm512_extractf32x4_ps::<3>(all));
        std::mem::transmute(_mm_add_ps(halves, others))
    }
}
