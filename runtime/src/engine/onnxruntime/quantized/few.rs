//! Products of few rows: every code is read once, where it lies.
//!
//! Reading them takes the time of a step. A register of bytes is a mask and a shift away from codes; x is arranged in runs as
//! these give them. Integers add up within a block, and blocks in single precision.

#![allow(unsafe_code)]

use super::super::stored::Stored;
use super::rounded::{Layout, Rounded};
use super::vector::Vector;
use super::weight::{Weight, Zeros};

/// Bytes of codes that x is arranged for: the widest register.
const UNIT: usize = 64;

/// Rows of the weight that are multiplied at once, so that x is read once for them.
const COLUMNS: usize = 4;

/// How x is rounded for them.
pub(super) fn layout<S: Stored>(weight: &Weight<'_, S>) -> Layout {
    let per_byte = 8 / weight.bits;
    Layout {
        block: weight.rounded_block(),
        per_byte,
        span: UNIT * per_byte,
        part: 4 * per_byte,
        summed: weight.group,
        rounded_sums: weight.rounded_sums(),
        width: weight.row_bytes().next_multiple_of(UNIT.max(weight.block_bytes())) * per_byte,
    }
}

/// The products of all rows of x with rows of the weight from `first` on, as many as a row of the result has.
pub(super) type Kernel<S> = fn(x: &Rounded, weight: &Weight<'_, S>, first: usize, result: &mut [&mut [f32]]);

/// # Safety
/// The processor must have the vector's instructions.
#[inline(always)]
pub(super) unsafe fn products<V: Vector, S: Stored, const BITS: usize>(
    x: &Rounded,
    weight: &Weight<'_, S>,
    first: usize,
    result: &mut [&mut [f32]],
) {
    for (index, result) in result.chunks_mut(4).enumerate() {
        // SAFETY: the caller's.
        unsafe {
            match result.len() {
                1 => rows::<V, S, BITS, 1>(x, weight, 4 * index, first, result),
                2 => rows::<V, S, BITS, 2>(x, weight, 4 * index, first, result),
                _ => rows::<V, S, BITS, 4>(x, weight, 4 * index, first, result),
            }
        }
    }
}

#[inline(always)]
unsafe fn rows<V: Vector, S: Stored, const BITS: usize, const R: usize>(
    x: &Rounded,
    weight: &Weight<'_, S>,
    row: usize,
    first: usize,
    result: &mut [&mut [f32]],
) {
    let columns = result[0].len();
    let unit = Unit::new::<V, S>(weight);
    for start in (0..columns).step_by(COLUMNS) {
        // The last ones begin earlier where fewer are left.
        let start = start.min(columns.saturating_sub(COLUMNS));
        let taken = COLUMNS.min(columns);
        let mut places = [first + start; COLUMNS];
        for (place, row) in places.iter_mut().enumerate().take(taken) {
            *row += place;
        }
        // SAFETY: the caller's; the rows are the weight's.
        let sums = unsafe { dots::<V, S, BITS, R>(x, weight, &unit, row, places) };
        for (index, (result, sums)) in result.iter_mut().zip(sums).enumerate() {
            for (place, sum) in sums.into_iter().enumerate().take(taken) {
                result[start + place] = sum + offsets(x, weight, row + index, places[place]);
            }
        }
    }
}

/// What lanes of a unit's registers belong to.
struct Unit {
    /// Scales of a register.
    count: usize,
    block_bytes: usize,
    /// The scale of each lane.
    places: [i32; 16],
}

impl Unit {
    fn new<V: Vector, S: Stored>(weight: &Weight<'_, S>) -> Self {
        let block_bytes = weight.block_bytes();
        let count = (4 * V::LANES / block_bytes).max(1);
        let mut places = [0; 16];
        for (lane, place) in places.iter_mut().enumerate().take(V::LANES) {
            *place = (lane * count / V::LANES) as i32;
        }
        Self { count, block_bytes, places }
    }
}

#[inline(always)]
unsafe fn dots<V: Vector, S: Stored, const BITS: usize, const R: usize>(
    x: &Rounded,
    weight: &Weight<'_, S>,
    unit: &Unit,
    row: usize,
    columns: [usize; COLUMNS],
) -> [[f32; COLUMNS]; R] {
    let (bytes, blocks) = (weight.row_bytes(), weight.blocks());
    let whole = bytes / UNIT * UNIT;
    let ahead = bytes * COLUMNS;
    // SAFETY: the caller's; `whole` bytes of each row are there, and scales of their blocks.
    unsafe {
        let places = V::ints(unit.places.as_ptr().cast());
        let mut sums = [[V::zero(); COLUMNS]; R];
        let mut codes = [weight.codes.as_ptr(); COLUMNS];
        let mut scales = [weight.scales.as_ptr(); COLUMNS];
        for column in 0..COLUMNS {
            codes[column] = codes[column].add(columns[column] * bytes);
            scales[column] = scales[column].add(columns[column] * blocks);
        }
        let of_x = X::<R>::new(x, row);
        let mut rest = [[0_u8; UNIT]; COLUMNS];
        let mut few = [[weight.scales[0]; UNIT]; COLUMNS];
        for start in (0..bytes).step_by(UNIT) {
            let at = start / unit.block_bytes;
            let mut here = codes;
            let mut there = scales;
            for column in 0..COLUMNS {
                here[column] = codes[column].add(start);
                there[column] = scales[column].add(at);
                ask_for(here[column].wrapping_add(ahead));
            }
            if start == whole {
                // The last unit has fewer codes, and scales, than registers.
                for column in 0..COLUMNS {
                    few[column] = [there[column].add(blocks - at - 1).read(); UNIT];
                    rest[column].as_mut_ptr().copy_from_nonoverlapping(here[column], bytes - whole);
                    few[column].as_mut_ptr().copy_from_nonoverlapping(there[column], blocks - at);
                    here[column] = rest[column].as_ptr();
                    there[column] = few[column].as_ptr();
                }
            }
            of_x.add::<V, S, BITS>(&mut sums, (here, there), start, unit, places);
        }
        let mut totals = [[0.0; COLUMNS]; R];
        for (total, sums) in totals.iter_mut().zip(sums) {
            *total = V::sums(sums);
        }
        totals
    }
}

/// Where rows of x begin.
struct X<const R: usize> {
    codes: [*const u8; R],
    scales: [*const f32; R],
    starts: [*const u8; R],
    per_byte: usize,
}

impl<const R: usize> X<R> {
    #[inline(always)]
    fn new(x: &Rounded, row: usize) -> Self {
        let (width, parts) = (x.layout.width, x.layout.width / x.layout.part);
        let mut of_x = Self {
            codes: [std::ptr::null(); R],
            scales: [std::ptr::null(); R],
            starts: [std::ptr::null(); R],
            per_byte: x.layout.per_byte,
        };
        for index in 0..R {
            // Where rows are fewer, the last is multiplied once more.
            let row = (row + index).min(x.codes.len() / width - 1);
            of_x.codes[index] = x.codes[row * width..].as_ptr().cast();
            of_x.scales[index] = x.scales[row * parts..].as_ptr();
            of_x.starts[index] = x.starts[row * parts..].as_ptr().cast();
        }
        of_x
    }

    /// Adds the products with a unit of codes, the one that begins `start` bytes from the beginning of a row.
    #[inline(always)]
    unsafe fn add<V: Vector, S: Stored, const BITS: usize>(
        &self,
        sums: &mut [[V::Floats; COLUMNS]; R],
        (codes, scales): ([*const u8; COLUMNS], [*const S; COLUMNS]),
        start: usize,
        unit: &Unit,
        places: V::Ints,
    ) {
        // SAFETY: the caller's; x has codes of whole units.
        unsafe {
            for offset in (0..UNIT).step_by(4 * V::LANES) {
                for column in 0..COLUMNS {
                    let packed = V::ints(codes[column].add(offset));
                    let scale = V::scales(scales[column].add(offset / unit.block_bytes), unit.count, places);
                    for (row, sums) in sums.iter_mut().enumerate() {
                        let mut sum = V::ints(self.starts[row].add(start + offset));
                        let runs = self.codes[row].add(start * self.per_byte + offset);
                        for run in 0..8 / BITS {
                            let x = V::ints(runs.add(run * UNIT));
                            sum = V::dot(sum, V::codes::<BITS>(packed, run * BITS), x, BITS < 8);
                        }
                        let scale = V::mul(scale, V::floats(self.scales[row].add((start + offset) / 4)));
                        sums[column] = V::add_product(sums[column], V::single(sum), scale);
                    }
                }
            }
        }
    }
}

/// What the offsets of a row of the weight add.
#[inline(always)]
fn offsets<S: Stored>(x: &Rounded, weight: &Weight<'_, S>, row: usize, column: usize) -> f32 {
    if matches!(weight.zeros, Zeros::Middle) {
        return 0.0;
    }
    let sums = &x.sums[row * (x.layout.width / x.layout.summed)..][..weight.blocks()];
    let mut lanes = [0.0; 8];
    for (block, sum) in sums.iter().enumerate() {
        lanes[block % 8] += sum * weight.offset(column, block);
    }
    lanes.into_iter().sum()
}

/// Begins to read a line of memory, which need not be there at all.
#[inline(always)]
fn ask_for(line: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint to the processor, which no address makes fail; SSE is part of x86-64.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(line.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}
