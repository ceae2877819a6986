//! Tiles in the registers of x86-64 processors: AVX2 and AVX-512.

use std::arch::x86_64::{
    __m256, __m512, __m512bh, _mm256_add_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_permute2f128_ps,
    _mm256_set1_ps, _mm256_shuffle_ps, _mm256_storeu_ps, _mm256_unpackhi_ps, _mm256_unpacklo_ps,
    _mm512_add_ps, _mm512_dpbf16_ps, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_set1_ps, _mm512_shuffle_f32x4,
    _mm512_shuffle_ps, _mm512_storeu_ps, _mm512_unpackhi_ps, _mm512_unpacklo_ps,
};
use std::ops::Range;

use super::tiles::{self, Transforms};
use super::{Kernel, Lanes, plain, products, transposed};

pub(super) const AVX2: Kernel = Kernel {
    products: avx2::products::<false>,
    add_products: avx2::products::<true>,
    transposed: avx2::transposed,
    transforms: avx2_tiles::TRANSFORMS,
    ..plain::<__m256>()
};

pub(super) const AVX512: Kernel = Kernel {
    products: avx512::products::<false>,
    add_products: avx512::products::<true>,
    transposed: avx512::transposed,
    transforms: avx512_tiles::TRANSFORMS,
    ..plain::<__m512>()
};

pub(super) const AVX512_BF16: Kernel = Kernel {
    products: avx512bf16::products::<false>,
    add_products: avx512bf16::products::<true>,
    transposed: avx512bf16::transposed,
    ..plain::<Pairs>()
};

/// A register: its rows in a tile, and its instructions.
macro_rules! register {
    ($register:ty, $rows:literal, $splat:ident, $load:ident, $store:ident, $add:ident, $add_product:ident, $transpose:ident) => {
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

            #[inline(always)]
            unsafe fn transpose(from: *const f32, stride: usize, to: *mut f32, columns: usize) {
                // SAFETY: the caller's.
                unsafe { $transpose(from, stride, to, columns) }
            }
        }
    };
}

/// The kernels compiled for processors that have a register's instructions.
macro_rules! kernels {
    ($kernel:ident, $features:literal, $register:ty) => {
        mod $kernel {
            use super::*;

            pub(super) fn products<const ADD: bool>(
                left: &[f32],
                stride: usize,
                panel: &[f32],
                columns: Range<usize>,
                rows: &mut [&mut [f32]],
            ) {
                #[target_feature(enable = $features)]
                fn compiled<const ADD: bool>(
                    left: &[f32],
                    stride: usize,
                    panel: &[f32],
                    columns: Range<usize>,
                    rows: &mut [&mut [f32]],
                ) {
                    // SAFETY: it is compiled with the instructions.
                    unsafe { super::products::<$register, ADD>(left, stride, panel, columns, rows) }
                }
                // SAFETY: only handed out where the processor has the instructions.
                unsafe { compiled::<ADD>(left, stride, panel, columns, rows) }
            }

            pub(super) fn transposed(
                rows: &[f32],
                stride: usize,
                taken: usize,
                panel: &mut [f32],
                at: usize,
            ) {
                #[target_feature(enable = $features)]
                fn compiled(rows: &[f32], stride: usize, taken: usize, panel: &mut [f32], at: usize) {
                    // SAFETY: it is compiled with the instructions.
                    unsafe { super::transposed::<$register>(rows, stride, taken, panel, at) }
                }
                // SAFETY: only handed out where the processor has the instructions.
                unsafe { compiled(rows, stride, taken, panel, at) }
            }
        }
    };
}

/// The transforms of tiles, compiled so.
macro_rules! transforms {
    ($transforms:ident, $features:literal, $register:ty) => {
        mod $transforms {
            use super::*;

            pub(super) const TRANSFORMS: Transforms = Transforms { inputs, filters, outputs };

            fn inputs(lines: &[f32], tiles: usize, phases: &mut [f32], into: &mut [f32]) {
                #[target_feature(enable = $features)]
                fn compiled(lines: &[f32], tiles: usize, phases: &mut [f32], into: &mut [f32]) {
                    // SAFETY: it is compiled with the instructions.
                    unsafe { tiles::inputs::<$register>(lines, tiles, phases, into) }
                }
                // SAFETY: only handed out where the processor has the instructions.
                unsafe { compiled(lines, tiles, phases, into) }
            }

            fn filters(weights: &[f32], stride: usize, into: &mut [f32]) {
                #[target_feature(enable = $features)]
                fn compiled(weights: &[f32], stride: usize, into: &mut [f32]) {
                    // SAFETY: it is compiled with the instructions.
                    unsafe { tiles::filters::<$register>(weights, stride, into) }
                }
                // SAFETY: only handed out where the processor has the instructions.
                unsafe { compiled(weights, stride, into) }
            }

            fn outputs(sums: &[f32], stride: usize, first: usize, count: usize, into: &mut [f32]) {
                #[target_feature(enable = $features)]
                fn compiled(sums: &[f32], stride: usize, first: usize, count: usize, into: &mut [f32]) {
                    // SAFETY: it is compiled with the instructions.
                    unsafe { tiles::outputs::<$register>(sums, stride, first, count, into) }
                }
                // SAFETY: only handed out where the processor has the instructions.
                unsafe { compiled(sums, stride, first, count, into) }
            }
        }
    };
}

register!(
    __m256,
    6,
    _mm256_set1_ps,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    _mm256_add_ps,
    _mm256_fmadd_ps,
    square_avx2
);
register!(
    __m512,
    12,
    _mm512_set1_ps,
    _mm512_loadu_ps,
    _mm512_storeu_ps,
    _mm512_add_ps,
    _mm512_fmadd_ps,
    square_avx512
);
register!(Pairs, 12, splat_pairs, load_pairs, store_sums, add_sums, add_products, square_avx512);
kernels!(avx2, "avx2,fma", __m256);
transforms!(avx2_tiles, "avx2,fma", __m256);
kernels!(avx512, "avx512f", __m512);
transforms!(avx512_tiles, "avx512f", __m512);
kernels!(avx512bf16, "avx512f,avx512bf16", Pairs);

/// Pairs of numbers in bfloat16, or their sums in single precision.
#[derive(Clone, Copy)]
struct Pairs(__m512);

#[target_feature(enable = "avx512f")]
fn splat_pairs(pair: f32) -> Pairs {
    Pairs(_mm512_set1_ps(pair))
}

#[target_feature(enable = "avx512f")]
unsafe fn load_pairs(from: *const f32) -> Pairs {
    // SAFETY: the caller's.
    Pairs(unsafe { _mm512_loadu_ps(from) })
}

#[target_feature(enable = "avx512f")]
unsafe fn store_sums(to: *mut f32, sums: Pairs) {
    // SAFETY: the caller's.
    unsafe { _mm512_storeu_ps(to, sums.0) }
}

#[target_feature(enable = "avx512f")]
fn add_sums(a: Pairs, b: Pairs) -> Pairs {
    Pairs(_mm512_add_ps(a.0, b.0))
}

#[target_feature(enable = "avx512f,avx512bf16")]
fn add_products(a: Pairs, b: Pairs, sums: Pairs) -> Pairs {
    // SAFETY: registers have the same bits, whatever they are numbers of.
    let [a, b] = [a, b].map(|pairs| unsafe { std::mem::transmute::<__m512, __m512bh>(pairs.0) });
    Pairs(_mm512_dpbf16_ps(sums.0, a, b))
}

/// Eight rows by eight.
#[target_feature(enable = "avx2")]
unsafe fn square_avx2(from: *const f32, stride: usize, to: *mut f32, columns: usize) {
    // SAFETY: the caller's.
    unsafe {
        let row = |row: usize| _mm256_loadu_ps(from.add(row * stride));
        let pairs: [[__m256; 2]; 4] = std::array::from_fn(|pair| {
            let (a, b) = (row(2 * pair), row(2 * pair + 1));
            [_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b)]
        });
        // Of four rows, in each half of the register one place of each.
        let fours = |pair: usize, place: usize| {
            let (a, b) = (pairs[pair][place / 2], pairs[pair + 1][place / 2]);
            match place % 2 {
                0 => _mm256_shuffle_ps::<0x44>(a, b),
                _ => _mm256_shuffle_ps::<0xee>(a, b),
            }
        };
        for place in 0..4 {
            let (a, b) = (fours(0, place), fours(2, place));
            let to = to.add(place * columns);
            _mm256_storeu_ps(to, _mm256_permute2f128_ps::<0x20>(a, b));
            _mm256_storeu_ps(to.add(4 * columns), _mm256_permute2f128_ps::<0x31>(a, b));
        }
    }
}

/// Sixteen rows by sixteen.
///
/// # Safety
/// Each row must have sixteen numbers, and there must be room for sixteen columns as long.
#[target_feature(enable = "avx512f")]
pub(in super::super) unsafe fn square_avx512(from: *const f32, stride: usize, to: *mut f32, columns: usize) {
    // SAFETY: the caller's.
    unsafe {
        let row = |row: usize| _mm512_loadu_ps(from.add(row * stride));
        let pairs: [[__m512; 2]; 8] = std::array::from_fn(|pair| {
            let (a, b) = (row(2 * pair), row(2 * pair + 1));
            [_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b)]
        });
        for place in 0..4 {
            // Of four rows, in each quarter of the register one place of each.
            let [a, b, c, d]: [__m512; 4] = std::array::from_fn(|four| {
                let (a, b) = (pairs[2 * four][place / 2], pairs[2 * four + 1][place / 2]);
                match place % 2 {
                    0 => _mm512_shuffle_ps::<0x44>(a, b),
                    _ => _mm512_shuffle_ps::<0xee>(a, b),
                }
            });
            // Quarters 0 and 2, and 1 and 3, of eight rows each.
            let even = [_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0x88>(c, d)];
            let odd = [_mm512_shuffle_f32x4::<0xdd>(a, b), _mm512_shuffle_f32x4::<0xdd>(c, d)];
            let to = to.add(place * columns);
            _mm512_storeu_ps(to, _mm512_shuffle_f32x4::<0x88>(even[0], even[1]));
            _mm512_storeu_ps(to.add(4 * columns), _mm512_shuffle_f32x4::<0x88>(odd[0], odd[1]));
            _mm512_storeu_ps(to.add(8 * columns), _mm512_shuffle_f32x4::<0xdd>(even[0], even[1]));
            _mm512_storeu_ps(to.add(12 * columns), _mm512_shuffle_f32x4::<0xdd>(odd[0], odd[1]));
        }
    }
}
