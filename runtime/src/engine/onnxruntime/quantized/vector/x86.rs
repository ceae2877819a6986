//! Registers of x86-64 processors: AVX-512 VNNI, AVX-VNNI, and AVX2.

use std::arch::x86_64::*;

use super::{Stored, Vector};
use crate::graph::Dtype;

/// Eight scales in single precision, of which as many as asked for are there.
#[inline(always)]
unsafe fn eight<S: Stored>(from: *const S, count: usize) -> __m256 {
    // SAFETY: the caller's: the processor has AVX2 and F16C, and the place `count` scales.
    unsafe {
        let from = from.cast::<u8>();
        match (S::DTYPE, count) {
            (Dtype::F32, 1) => _mm256_castps128_ps256(_mm_load_ss(from.cast())),
            (Dtype::F32, 2) => _mm256_castps128_ps256(_mm_castsi128_ps(_mm_loadl_epi64(from.cast()))),
            (Dtype::F32, 4) => _mm256_castps128_ps256(_mm_loadu_ps(from.cast())),
            (Dtype::F32, _) => _mm256_loadu_ps(from.cast()),
            (Dtype::U8, 1) => powers(_mm_cvtsi32_si128(from.read().into())),
            (Dtype::U8, 2) => powers(_mm_cvtsi32_si128(from.cast::<u16>().read_unaligned().into())),
            (Dtype::U8, 4) => powers(_mm_cvtsi32_si128(from.cast::<i32>().read_unaligned())),
            (Dtype::U8, _) => powers(_mm_loadl_epi64(from.cast())),
            (_, 1) => widened::<S>(_mm_cvtsi32_si128(from.cast::<u16>().read_unaligned().into())),
            (_, 2) => widened::<S>(_mm_cvtsi32_si128(from.cast::<i32>().read_unaligned())),
            (_, 4) => widened::<S>(_mm_loadl_epi64(from.cast())),
            _ => widened::<S>(_mm_loadu_si128(from.cast())),
        }
    }
}

/// The eight powers of two that E8M0 codes stand for: exponents of single precision, of which the least is subnormal.
#[inline(always)]
unsafe fn powers(codes: __m128i) -> __m256 {
    // SAFETY: the caller's: the processor has AVX2.
    unsafe {
        let exponents = _mm256_slli_epi32::<23>(_mm256_cvtepu8_epi32(codes));
        _mm256_castsi256_ps(_mm256_max_epu32(exponents, _mm256_set1_epi32(0x0040_0000)))
    }
}

/// Eight numbers of 16 bits in single precision.
#[inline(always)]
unsafe fn widened<S: Stored>(bits: __m128i) -> __m256 {
    // SAFETY: the caller's: the processor has AVX2 and F16C.
    unsafe {
        match S::DTYPE {
            Dtype::F16 => _mm256_cvtph_ps(bits),
            _ => _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(bits))),
        }
    }
}

/// AVX-512 with VNNI.
pub(in super::super) struct Avx512;

impl Vector for Avx512 {
    type Ints = __m512i;
    type Floats = __m512;
    const LANES: usize = 16;
    const ROWS: usize = 6;

    #[inline(always)]
    unsafe fn ints(from: *const u8) -> __m512i {
        // SAFETY: the caller's, here and below.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn same(integer: i32) -> __m512i {
        unsafe { _mm512_set1_epi32(integer) }
    }

    #[inline(always)]
    unsafe fn sixteen(bytes: &[u8; 16]) -> __m512i {
        unsafe { _mm512_broadcast_i32x4(_mm_loadu_si128(bytes.as_ptr().cast())) }
    }

    #[inline(always)]
    unsafe fn store_ints(integers: __m512i, to: *mut u32) {
        unsafe { _mm512_storeu_si512(to.cast(), integers) }
    }

    #[inline(always)]
    unsafe fn transposed(from: &[*const u8; 16], byte: usize) -> [__m512i; 4] {
        unsafe {
            // Lanes of four numbers hold what four lanes in a row have when pairs of pairs have changed places.
            let quarter = |lane: usize| _mm_loadu_si128(from[lane].add(byte).cast());
            let row = |lane: usize| {
                let whole = _mm512_castsi128_si512(quarter(lane));
                let whole = _mm512_inserti32x4::<1>(whole, quarter(lane + 4));
                let whole = _mm512_inserti32x4::<2>(whole, quarter(lane + 8));
                _mm512_inserti32x4::<3>(whole, quarter(lane + 12))
            };
            let [a, b, c, d] = [row(0), row(1), row(2), row(3)];
            let [ab, cd] = [_mm512_unpacklo_epi32(a, b), _mm512_unpacklo_epi32(c, d)];
            let [ab_high, cd_high] = [_mm512_unpackhi_epi32(a, b), _mm512_unpackhi_epi32(c, d)];
            [
                _mm512_unpacklo_epi64(ab, cd),
                _mm512_unpackhi_epi64(ab, cd),
                _mm512_unpacklo_epi64(ab_high, cd_high),
                _mm512_unpackhi_epi64(ab_high, cd_high),
            ]
        }
    }

    #[inline(always)]
    unsafe fn look_up(sixteen: __m512i, places: __m512i) -> __m512i {
        unsafe { _mm512_shuffle_epi8(sixteen, places) }
    }

    #[inline(always)]
    unsafe fn codes<const BITS: usize>(packed: __m512i, shift: usize) -> __m512i {
        unsafe {
            if BITS == 8 {
                return packed;
            }
            let mask = _mm512_set1_epi8(((1_u16 << BITS) - 1) as i8);
            _mm512_and_si512(_mm512_srl_epi32(packed, _mm_cvtsi32_si128(shift as i32)), mask)
        }
    }

    #[inline(always)]
    unsafe fn dot(sum: __m512i, codes: __m512i, x: __m512i, _: bool) -> __m512i {
        unsafe { _mm512_dpbusd_epi32(sum, codes, x) }
    }

    #[inline(always)]
    unsafe fn zero() -> __m512 {
        unsafe { _mm512_setzero_ps() }
    }

    #[inline(always)]
    unsafe fn floats(from: *const f32) -> __m512 {
        unsafe { _mm512_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn splat(number: f32) -> __m512 {
        unsafe { _mm512_set1_ps(number) }
    }

    #[inline(always)]
    unsafe fn store(numbers: __m512, to: *mut f32) {
        unsafe { _mm512_storeu_ps(to, numbers) }
    }

    #[inline(always)]
    unsafe fn add(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn mul(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_mul_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn add_product(sum: __m512, a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_fmadd_ps(a, b, sum) }
    }

    #[inline(always)]
    unsafe fn single(integers: __m512i) -> __m512 {
        unsafe { _mm512_cvtepi32_ps(integers) }
    }

    #[inline(always)]
    unsafe fn scales<S: Stored>(from: *const S, count: usize, places: __m512i) -> __m512 {
        unsafe {
            let first = eight(from, count);
            if count == 16 {
                return _mm512_insertf32x8::<1>(_mm512_castps256_ps512(first), eight(from.add(8), 8));
            }
            _mm512_permutexvar_ps(places, _mm512_castps256_ps512(first))
        }
    }

    #[inline(always)]
    unsafe fn sums(of: [__m512; 4]) -> [f32; 4] {
        unsafe { sums([halves(of[0]), halves(of[1]), halves(of[2]), halves(of[3])]) }
    }
}

/// The sum of both halves.
#[inline(always)]
unsafe fn halves(of: __m512) -> __m256 {
    // SAFETY: the caller has AVX-512.
    unsafe {
        let upper = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(of)));
        _mm256_add_ps(_mm512_castps512_ps256(of), upper)
    }
}

/// The sum of the lanes of each.
#[inline(always)]
unsafe fn sums([a, b, c, d]: [__m256; 4]) -> [f32; 4] {
    // SAFETY: the caller has AVX; four lanes are four numbers.
    unsafe {
        let pairs = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
        std::mem::transmute(_mm_add_ps(_mm256_castps256_ps128(pairs), _mm256_extractf128_ps::<1>(pairs)))
    }
}

/// Registers of 256 bits, which processors with and without VNNI have.
macro_rules! registers_of_256_bits {
    ($(#[$doc:meta])* $name:ident, $dot:ident) => {
        $(#[$doc])*
        pub(in super::super) struct $name;

        impl Vector for $name {
            type Ints = __m256i;
            type Floats = __m256;
            const LANES: usize = 8;
            const ROWS: usize = 2;

            #[inline(always)]
            unsafe fn ints(from: *const u8) -> __m256i {
                // SAFETY: the caller's, here and below.
                unsafe { _mm256_loadu_si256(from.cast()) }
            }

            #[inline(always)]
            unsafe fn same(integer: i32) -> __m256i {
                unsafe { _mm256_set1_epi32(integer) }
            }

            #[inline(always)]
            unsafe fn sixteen(bytes: &[u8; 16]) -> __m256i {
                unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128(bytes.as_ptr().cast())) }
            }

            #[inline(always)]
            unsafe fn store_ints(integers: __m256i, to: *mut u32) {
                unsafe { _mm256_storeu_si256(to.cast(), integers) }
            }

            #[inline(always)]
            unsafe fn transposed(from: &[*const u8; 16], byte: usize) -> [__m256i; 4] {
                unsafe {
                    let half = |lane: usize| _mm_loadu_si128(from[lane].add(byte).cast());
                    let row = |lane: usize| _mm256_set_m128i(half(lane + 4), half(lane));
                    let [a, b, c, d] = [row(0), row(1), row(2), row(3)];
                    let [ab, cd] = [_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d)];
                    let [ab_high, cd_high] = [_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d)];
                    [
                        _mm256_unpacklo_epi64(ab, cd),
                        _mm256_unpackhi_epi64(ab, cd),
                        _mm256_unpacklo_epi64(ab_high, cd_high),
                        _mm256_unpackhi_epi64(ab_high, cd_high),
                    ]
                }
            }

            #[inline(always)]
            unsafe fn look_up(sixteen: __m256i, places: __m256i) -> __m256i {
                unsafe { _mm256_shuffle_epi8(sixteen, places) }
            }

            #[inline(always)]
            unsafe fn codes<const BITS: usize>(packed: __m256i, shift: usize) -> __m256i {
                unsafe {
                    let mask = _mm256_set1_epi8(((1_u16 << BITS) - 1) as i8);
                    _mm256_and_si256(_mm256_srl_epi32(packed, _mm_cvtsi32_si128(shift as i32)), mask)
                }
            }

            #[inline(always)]
            unsafe fn dot(sum: __m256i, codes: __m256i, x: __m256i, narrow: bool) -> __m256i {
                unsafe { $dot(sum, codes, x, narrow) }
            }

            #[inline(always)]
            unsafe fn zero() -> __m256 {
                unsafe { _mm256_setzero_ps() }
            }

            #[inline(always)]
            unsafe fn floats(from: *const f32) -> __m256 {
                unsafe { _mm256_loadu_ps(from) }
            }

            #[inline(always)]
            unsafe fn splat(number: f32) -> __m256 {
                unsafe { _mm256_set1_ps(number) }
            }

            #[inline(always)]
            unsafe fn store(numbers: __m256, to: *mut f32) {
                unsafe { _mm256_storeu_ps(to, numbers) }
            }

            #[inline(always)]
            unsafe fn add(a: __m256, b: __m256) -> __m256 {
                unsafe { _mm256_add_ps(a, b) }
            }

            #[inline(always)]
            unsafe fn mul(a: __m256, b: __m256) -> __m256 {
                unsafe { _mm256_mul_ps(a, b) }
            }

            #[inline(always)]
            unsafe fn add_product(sum: __m256, a: __m256, b: __m256) -> __m256 {
                unsafe { _mm256_fmadd_ps(a, b, sum) }
            }

            #[inline(always)]
            unsafe fn single(integers: __m256i) -> __m256 {
                unsafe { _mm256_cvtepi32_ps(integers) }
            }

            #[inline(always)]
            unsafe fn scales<S: Stored>(from: *const S, count: usize, places: __m256i) -> __m256 {
                unsafe { _mm256_permutevar8x32_ps(eight(from, count), places) }
            }

            #[inline(always)]
            unsafe fn sums(of: [__m256; 4]) -> [f32; 4] {
                unsafe { sums(of) }
            }
        }
    };
}

registers_of_256_bits!(
    /// AVX2 with VNNI.
    AvxVnni, with_vnni
);
registers_of_256_bits!(
    /// AVX2.
    Avx2, products
);

#[inline(always)]
unsafe fn with_vnni(sum: __m256i, codes: __m256i, x: __m256i, _: bool) -> __m256i {
    // SAFETY: the caller has AVX-VNNI.
    unsafe { _mm256_dpbusd_avx_epi32(sum, codes, x) }
}

/// As `vpdpbusd`. Sums of two products are of 16 bits, which codes of up to 7 bits do not exceed: an eighth is for itself.
#[inline(always)]
unsafe fn products(sum: __m256i, codes: __m256i, x: __m256i, narrow: bool) -> __m256i {
    // SAFETY: the caller has AVX2.
    unsafe {
        let ones = _mm256_set1_epi16(1);
        if narrow {
            return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(codes, x), ones));
        }
        let low = _mm256_maddubs_epi16(_mm256_and_si256(codes, _mm256_set1_epi8(0x7f)), x);
        let high = _mm256_maddubs_epi16(_mm256_and_si256(codes, _mm256_set1_epi8(-128)), x);
        let both = _mm256_add_epi32(_mm256_madd_epi16(low, ones), _mm256_madd_epi16(high, ones));
        _mm256_add_epi32(sum, both)
    }
}
