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
            by_blocks(x, layout, middle, row);
        }
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
        fn with_avx512(x: &[f32], layout: Layout, middle: i32, row: &mut Row<'_>) {
            by_blocks(x, layout, middle, row);
        }
        if super::has_avx512() {
            // SAFETY: the processor has the instructions.
            return unsafe { with_avx512(x, layout, middle, row) };
        } else if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            // SAFETY: the processor has the instructions.
            return unsafe { with_avx2(x, layout, middle, row) };
        }
    }
    by_blocks(x, layout, middle, row);
}

#[inline(always)]
fn by_blocks(x: &[f32], layout: Layout, middle: i32, row: &mut Row<'_>) {
    match (layout.block, layout.per_byte) {
        (16, 1) => each_block::<16, 1>(x, layout, middle, row),
        (16, 2) => each_block::<16, 2>(x, layout, middle, row),
        (16, _) => each_block::<16, 4>(x, layout, middle, row),
        (_, 1) => each_block::<32, 1>(x, layout, middle, row),
        (_, 2) => each_block::<32, 2>(x, layout, middle, row),
        _ => each_block::<32, 4>(x, layout, middle, row),
    }
}

#[inline(always)]
fn each_block<const BLOCK: usize, const PER_BYTE: usize>(
    x: &[f32],
    layout: Layout,
    middle: i32,
    (all, scales, starts, sums): &mut Row<'_>,
) {
    for (index, x) in x.chunks(BLOCK).enumerate() {
        let mut filled = [0.0; BLOCK];
        filled[..x.len()].copy_from_slice(x);
        let (codes, scale) = block(&filled);
        let start = index * BLOCK;
        let place = start - start % layout.span + start % layout.span / PER_BYTE;
        for run in 0..PER_BYTE {
            let into = &mut all[place + run * (layout.span / PER_BYTE)..][..BLOCK / PER_BYTE];
            for (into, codes) in into.iter_mut().zip(codes.as_chunks::<PER_BYTE>().0) {
                *into = codes[run] as i8;
            }
        }
        let parts = start / layout.part..(start + BLOCK) / layout.part;
        scales[parts.clone()].fill(scale * layout.unit);
        let mut total = 0;
        for (start, codes) in starts[parts].iter_mut().zip(codes.chunks(layout.part)) {
            let sum = codes.iter().sum::<i32>();
            *start = -middle * sum;
            total += sum;
        }
        let sum = if layout.rounded_sums { total as f32 * scale } else { sum(&filled) };
        sums[start / layout.summed] += sum;
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

/// The codes of a block, and their scale.
#[inline(always)]
fn block<const BLOCK: usize>(x: &[f32; BLOCK]) -> ([i32; BLOCK], f32) {
    /// Added to a number below 2^22, it leaves the nearest integer in the lowest bits.
    const INTEGERS: f32 = 12_582_912.0;
    // Without the sign, numbers are in the order of their bits; what is no number is the largest.
    let largest = x.iter().map(|x| x.to_bits() & 0x7fff_ffff).fold(0, u32::max);
    let scale = f32::from_bits(largest) / 127.0;
    let factor = if scale > 0.0 { 1.0 / scale } else { 0.0 };
    let codes = x.map(|x| i32::from((x * factor + INTEGERS).to_bits() as i8));
    (codes, scale)
}
