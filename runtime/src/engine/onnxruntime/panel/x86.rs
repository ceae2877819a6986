//! Tiles in the registers of x86-64 processors: AVX2 and AVX-512.

use std::arch::x86_64::{
    __m256, __m512, _mm256_add_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_permute2f128_ps, _mm256_set1_ps,
    _mm256_shuffle_ps, _mm256_storeu_ps, _mm256_unpackhi_ps, _mm256_unpacklo_ps, _mm512_add_ps,
    _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_set1_ps, _mm512_shuffle_f32x4, _mm512_shuffle_ps,
    _mm512_storeu_ps, _mm512_unpackhi_ps, _mm512_unpacklo_ps,
};
use std::ops::Range;

use super::{Kernel, Lanes, of, products, some_of};

pub(super) const AVX2: Kernel = Kernel {
    products: avx2::<false>,
    add_products: avx2::<true>,
    transposed: transposed_avx2,
    ..of::<__m256>()
};

pub(super) const AVX512: Kernel = Kernel {
    products: avx512::<false>,
    add_products: avx512::<true>,
    transposed: transposed_avx512,
    ..of::<__m512>()
};

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

        fn $kernel<const ADD: bool>(
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
                unsafe { products::<$register, ADD>(left, stride, panel, columns, rows) }
            }
            // SAFETY: only handed out where the processor has the instructions.
            unsafe { compiled::<ADD>(left, stride, panel, columns, rows) }
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

fn transposed_avx2(rows: &[f32], stride: usize, taken: usize, panel: &mut [f32], at: usize) {
    #[target_feature(enable = "avx2")]
    fn compiled(rows: &[f32], stride: usize, taken: usize, panel: &mut [f32], at: usize) {
        const LANES: usize = 8;
        let columns = LANES * <__m256 as Lanes>::REGISTERS;
        let whole = taken - taken % LANES;
        assert!(stride >= taken && rows.len() >= LANES * stride && at + LANES <= columns);
        assert!(panel.len() >= taken * columns);
        for start in (0..whole).step_by(LANES) {
            // SAFETY: each row has as many numbers as a register from `start` on, and so has the panel in each of its rows.
            unsafe {
                let row = |row: usize| _mm256_loadu_ps(rows.as_ptr().add(row * stride + start));
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
                    let to = panel.as_mut_ptr().add((start + place) * columns + at);
                    _mm256_storeu_ps(to, _mm256_permute2f128_ps::<0x20>(a, b));
                    _mm256_storeu_ps(to.add(4 * columns), _mm256_permute2f128_ps::<0x31>(a, b));
                }
            }
        }
        some_of::<__m256>(rows, stride, whole..taken, panel, at);
    }
    // SAFETY: only handed out where the processor has the instructions.
    unsafe { compiled(rows, stride, taken, panel, at) }
}

fn transposed_avx512(rows: &[f32], stride: usize, taken: usize, panel: &mut [f32], at: usize) {
    #[target_feature(enable = "avx512f")]
    fn compiled(rows: &[f32], stride: usize, taken: usize, panel: &mut [f32], at: usize) {
        const LANES: usize = 16;
        let columns = LANES * <__m512 as Lanes>::REGISTERS;
        let whole = taken - taken % LANES;
        assert!(stride >= taken && rows.len() >= LANES * stride && at + LANES <= columns);
        assert!(panel.len() >= taken * columns);
        for start in (0..whole).step_by(LANES) {
            // SAFETY: each row has as many numbers as a register from `start` on, and so has the panel in each of its rows.
            unsafe {
                let row = |row: usize| _mm512_loadu_ps(rows.as_ptr().add(row * stride + start));
                let pairs: [[__m512; 2]; 8] = std::array::from_fn(|pair| {
                    let (a, b) = (row(2 * pair), row(2 * pair + 1));
                    [_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b)]
                });
                for place in 0..4 {
                    // Of four rows, in each quarter of the register one place of each.
                    let fours: [__m512; 4] = std::array::from_fn(|four| {
                        let (a, b) = (pairs[2 * four][place / 2], pairs[2 * four + 1][place / 2]);
                        match place % 2 {
                            0 => _mm512_shuffle_ps::<0x44>(a, b),
                            _ => _mm512_shuffle_ps::<0xee>(a, b),
                        }
                    });
                    let [a, b, c, d] = fours;
                    // Quarters 0 and 2, and 1 and 3, of eight rows each.
                    let even = [_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0x88>(c, d)];
                    let odd = [_mm512_shuffle_f32x4::<0xdd>(a, b), _mm512_shuffle_f32x4::<0xdd>(c, d)];
                    let to = panel.as_mut_ptr().add((start + place) * columns + at);
                    _mm512_storeu_ps(to, _mm512_shuffle_f32x4::<0x88>(even[0], even[1]));
                    _mm512_storeu_ps(to.add(4 * columns), _mm512_shuffle_f32x4::<0x88>(odd[0], odd[1]));
                    _mm512_storeu_ps(to.add(8 * columns), _mm512_shuffle_f32x4::<0xdd>(even[0], even[1]));
                    _mm512_storeu_ps(to.add(12 * columns), _mm512_shuffle_f32x4::<0xdd>(odd[0], odd[1]));
                }
            }
        }
        some_of::<__m512>(rows, stride, whole..taken, panel, at);
    }
    // SAFETY: only handed out where the processor has the instructions.
    unsafe { compiled(rows, stride, taken, panel, at) }
}
