//! x in codes of 8 bits, as products with quantized weights take it.

use std::sync::{Mutex, PoisonError};

/// Where kernels find the codes of x, and for how many of them they have a number each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Layout {
    /// Codes that share a scale: 16 or 32.
    pub(super) block: usize,
    /// Codes of the weight in a byte: of so many neighbours, each is in a run of its own, as masks take them from bytes.
    pub(super) per_byte: usize,
    /// Codes that are arranged in as many runs.
    pub(super) span: usize,
    /// Codes that have a scale and a start of their own: those that a sum of integers is of.
    pub(super) part: usize,
    /// Codes whose sum is wanted.
    pub(super) summed: usize,
    /// Whether sums are of rounded x, as those are that zero points are taken from.
    pub(super) rounded_sums: bool,
    /// Codes of a row; zeros follow x.
    pub(super) width: usize,
    /// What scales are multiplied with, for all products to be so.
    pub(super) unit: f32,
}

/// Rows of x by blocks: `x ≈ code · scale`, with codes from -127 to 127.
pub(super) struct Rounded {
    pub(super) layout: Layout,
    /// `[rows, width]`.
    pub(super) codes: Vec<i8>,
    /// `[rows, width / part]`.
    pub(super) scales: Vec<f32>,
    /// What sums of products begin with, so that they are those of codes of the weight less the middle one: `[rows, width / part]`.
    pub(super) starts: Vec<i32>,
    /// The sums of x: `[rows, width / summed]`.
    pub(super) sums: Vec<f32>,
}

/// A row of each.
type Row<'a> = (&'a mut [i8], &'a mut [f32], &'a mut [i32], &'a mut [f32]);

impl Rounded {
    /// Rounds rows of `width` numbers; `middle` is the weight's code that stands for zero. `each` runs its argument for every
    /// number below its first, on any threads.
    pub(super) fn new<E>(
        x: &[f32],
        width: usize,
        layout: Layout,
        middle: i32,
        each: impl FnOnce(usize, &(dyn Fn(usize) + Sync)) -> Result<(), E>,
    ) -> Result<Self, E> {
        let rows = x.len().checked_div(width).unwrap_or(0);
        let (parts, summed) = (layout.width / layout.part, layout.width / layout.summed);
        let mut rounded = Self {
            layout,
            codes: vec![0; rows * layout.width],
            scales: vec![0.0; rows * parts],
            starts: vec![0; rows * parts],
            sums: vec![0.0; rows * summed],
        };
        let places = (rounded.codes.chunks_mut(layout.width.max(1)))
            .zip(rounded.scales.chunks_mut(parts.max(1)))
            .zip(rounded.starts.chunks_mut(parts.max(1)))
            .zip(rounded.sums.chunks_mut(summed.max(1)));
        let places: Vec<Mutex<Row<'_>>> = places
            .map(|(((codes, scales), starts), sums)| Mutex::new((codes, scales, starts, sums)))
            .collect();
        each(places.len(), &|row| {
            let mut place = places[row].lock().unwrap_or_else(PoisonError::into_inner);
            round(&x[row * width..][..width], layout, middle, &mut place);
        })?;
        drop(places);
        Ok(rounded)
    }
}

/// Rounds a row, compiled for the widest registers that this processor has.
fn round(x: &[f32], layout: Layout, middle: i32, row: &mut Row<'_>) {
    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code)]
    {
        #[target_feature(enable = "avx2,fma")]
        fn with_avx2(x: &[f32], layout: Layout, middle: i32, row: &mut Row<'_>) {
            by_blocks::<false>(x, layout, middle, row);
        }
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2")]
        fn with_avx512(x: &[f32], layout: Layout, middle: i32, row: &mut Row<'_>) {
            by_blocks::<true>(x, layout, middle, row);
        }
        if super::has_avx512() {
            // SAFETY: the processor has the instructions.
            return unsafe { with_avx512(x, layout, middle, row) };
        } else if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            // SAFETY: the processor has the instructions.
            return unsafe { with_avx2(x, layout, middle, row) };
        }
    }
    by_blocks::<false>(x, layout, middle, row);
}

#[inline(always)]
fn by_blocks<const AVX512: bool>(x: &[f32], layout: Layout, middle: i32, row: &mut Row<'_>) {
    match (layout.block, layout.per_byte) {
        (16, 1) => by_parts::<16, 1, false>(x, layout, middle, row),
        (16, 2) => by_parts::<16, 2, false>(x, layout, middle, row),
        (16, _) => by_parts::<16, 4, false>(x, layout, middle, row),
        (_, 1) => by_parts::<32, 1, AVX512>(x, layout, middle, row),
        (_, 2) => by_parts::<32, 2, AVX512>(x, layout, middle, row),
        _ => by_parts::<32, 4, AVX512>(x, layout, middle, row),
    }
}

/// A part is a block, or four bytes of codes.
#[inline(always)]
fn by_parts<const BLOCK: usize, const PER_BYTE: usize, const AVX512: bool>(
    x: &[f32],
    layout: Layout,
    middle: i32,
    row: &mut Row<'_>,
) {
    if layout.part == BLOCK {
        each_block::<BLOCK, PER_BYTE, AVX512, true>(x, layout, middle, row);
    } else {
        each_block::<BLOCK, PER_BYTE, AVX512, false>(x, layout, middle, row);
    }
}

/// A block of x, rounded.
struct Block<const BLOCK: usize> {
    /// By their runs.
    codes: [i8; BLOCK],
    scale: f32,
    /// Sums of four neighbouring codes each.
    sums: [i32; 8],
    /// The sum of x.
    total: f32,
}

#[inline(always)]
fn each_block<const BLOCK: usize, const PER_BYTE: usize, const AVX512: bool, const WHOLE: bool>(
    x: &[f32],
    layout: Layout,
    middle: i32,
    (all, scales, starts, sums): &mut Row<'_>,
) {
    // Both are powers of two.
    let [span, summed] = [layout.span, layout.summed].map(usize::ilog2);
    let part = if WHOLE { BLOCK } else { 4 * PER_BYTE };
    for (index, x) in x.chunks(BLOCK).enumerate() {
        let mut filled = [0.0; BLOCK];
        let x = x.first_chunk().unwrap_or_else(|| {
            filled[..x.len()].copy_from_slice(x);
            &filled
        });
        let rounded = match AVX512 {
            // SAFETY: only asked for where the processor has the instructions.
            #[cfg(target_arch = "x86_64")]
            #[allow(unsafe_code)]
            true => unsafe { x86::block::<BLOCK, PER_BYTE>(x) },
            _ => block::<BLOCK, PER_BYTE>(x),
        };
        let start = index * BLOCK;
        let begun = start & (layout.span - 1);
        let place = start - begun + begun / PER_BYTE;
        for (run, codes) in rounded.codes.chunks_exact(BLOCK / PER_BYTE).enumerate() {
            all[place + (run << span) / PER_BYTE..][..BLOCK / PER_BYTE].copy_from_slice(codes);
        }
        let parts = start / part..(start + BLOCK) / part;
        scales[parts.clone()].fill(rounded.scale * layout.unit);
        for (start, sums) in starts[parts].iter_mut().zip(rounded.sums.chunks_exact(part / 4)) {
            *start = -middle * sums.iter().sum::<i32>();
        }
        let of_codes = || rounded.sums.iter().sum::<i32>() as f32 * rounded.scale;
        sums[start >> summed] += if layout.rounded_sums { of_codes() } else { rounded.total };
    }
}

/// The sum of a block, added up in lanes.
#[inline(always)]
fn sum<const BLOCK: usize>(x: &[f32; BLOCK]) -> f32 {
    let mut lanes = [0.0; 8];
    for x in x.as_chunks::<8>().0 {
        lanes.iter_mut().zip(x).for_each(|(lane, x)| *lane += x);
    }
    lanes.iter().sum()
}

/// Added to a number below 2^22, it leaves the nearest integer in the lowest bits.
const INTEGERS: f32 = 12_582_912.0;

/// What numbers are divided and multiplied by for codes, by the bits of the largest without its sign.
#[inline(always)]
fn scale(largest: u32) -> (f32, f32) {
    let scale = f32::from_bits(largest) / 127.0;
    (scale, if scale > 0.0 { 1.0 / scale } else { 0.0 })
}

#[inline(always)]
fn block<const BLOCK: usize, const PER_BYTE: usize>(x: &[f32; BLOCK]) -> Block<BLOCK> {
    // Without the sign, numbers are in the order of their bits; what is no number is the largest.
    let (scale, factor) = scale(x.iter().map(|x| x.to_bits() & 0x7fff_ffff).fold(0, u32::max));
    let each = x.map(|x| (x * factor + INTEGERS).to_bits() as i8);
    let mut sums = [0; 8];
    for (sum, codes) in sums.iter_mut().zip(each.as_chunks::<4>().0) {
        *sum = codes.iter().map(|code| i32::from(*code)).sum();
    }
    let codes = std::array::from_fn(|place| {
        let (run, index) = (place / (BLOCK / PER_BYTE), place % (BLOCK / PER_BYTE));
        each[index * PER_BYTE + run]
    });
    Block { codes, scale, sums, total: sum(x) }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    #![allow(unsafe_code)]

    use std::arch::x86_64::*;

    use super::{Block, INTEGERS, scale};

    /// Of 32 numbers.
    ///
    /// # Safety
    /// The processor must have AVX-512 (F, BW, DQ and VL).
    #[inline(always)]
    pub(super) unsafe fn block<const BLOCK: usize, const PER_BYTE: usize>(x: &[f32; BLOCK]) -> Block<BLOCK> {
        assert_eq!(BLOCK, 32, "numbers of a block");
        // SAFETY: the caller's; 32 numbers and codes are two registers and one.
        unsafe {
            // No closures, into which instructions of the processor are not inlined.
            let (a, b) = (_mm512_loadu_ps(x.as_ptr()), _mm512_loadu_ps(x.as_ptr().add(16)));
            let unsigned = _mm512_set1_epi32(0x7fff_ffff);
            let largest = _mm512_max_epu32(
                _mm512_and_si512(_mm512_castps_si512(a), unsigned),
                _mm512_and_si512(_mm512_castps_si512(b), unsigned),
            );
            let total = _mm512_reduce_add_ps(_mm512_add_ps(a, b));
            let (scale, factor) = scale(_mm512_reduce_max_epu32(largest));
            let (factor, integers) = (_mm512_set1_ps(factor), _mm512_set1_ps(INTEGERS));
            let a = _mm512_add_ps(_mm512_mul_ps(a, factor), integers);
            let b = _mm512_add_ps(_mm512_mul_ps(b, factor), integers);
            let a = _mm512_cvtepi32_epi8(_mm512_castps_si512(a));
            let b = _mm512_cvtepi32_epi8(_mm512_castps_si512(b));
            let codes = _mm256_set_m128i(b, a);
            let pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), codes);
            let sums = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
            let codes = by_runs::<PER_BYTE>(codes);
            let mut rounded = Block { codes: [0; BLOCK], scale, sums: [0; 8], total };
            _mm256_storeu_si256(rounded.codes.as_mut_ptr().cast(), codes);
            _mm256_storeu_si256(rounded.sums.as_mut_ptr().cast(), sums);
            rounded
        }
    }

    /// The first of each byte's codes, then the next ones.
    #[inline(always)]
    unsafe fn by_runs<const PER_BYTE: usize>(codes: __m256i) -> __m256i {
        // SAFETY: the caller has AVX2.
        unsafe {
            match PER_BYTE {
                1 => codes,
                2 => {
                    let order = _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
                    let halves = _mm256_shuffle_epi8(codes, _mm256_broadcastsi128_si256(order));
                    _mm256_permute4x64_epi64::<0b11_01_10_00>(halves)
                }
                _ => {
                    let order = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
                    let quarters = _mm256_shuffle_epi8(codes, _mm256_broadcastsi128_si256(order));
                    _mm256_permutevar8x32_epi32(quarters, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))
                }
            }
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::super::super::product::testing::numbers;
    use super::*;

    #[allow(unsafe_code)]
    fn compare<const PER_BYTE: usize>(x: &[f32; 32]) {
        // SAFETY: the caller has seen that the processor has the instructions.
        let (plain, fast) = (block::<32, PER_BYTE>(x), unsafe { x86::block::<32, PER_BYTE>(x) });
        assert_eq!((plain.codes, plain.scale, plain.sums), (fast.codes, fast.scale, fast.sums), "{PER_BYTE}");
        assert!((plain.total - fast.total).abs() < 1e-5, "{} for {}", fast.total, plain.total);
    }

    #[test]
    fn a_block_is_the_same_by_plain_arithmetic_and_by_avx512() {
        if !super::super::has_avx512() {
            return;
        }
        for x in numbers(640, 3).as_chunks::<32>().0.iter().chain([&[0.0; 32]]) {
            compare::<1>(x);
            compare::<2>(x);
            compare::<4>(x);
        }
    }
}
