//! Products of few rows: every code is read once, where it lies.
//!
//! Reading them takes the time of a step. A register of bytes is a mask and a shift away from codes; x is arranged in runs as
//! these give them. Integers add up within a block, and blocks in single precision.

#![allow(unsafe_code)]

use super::super::product::ask_for;
use super::super::stored::Stored;
use super::rounded::{Layout, Rounded};
use super::vector::Vector;
use super::weight::Weight;

/// Bytes of codes that x is arranged for: the widest register.
const UNIT: usize = 64;

/// Rows of the weight whose sums are added up at once.
const COLUMNS: usize = 4;

/// So many bytes before they are read, codes are asked for. On a Zen 4, products read 23 GB/s a thread with 8 KiB and more
/// ahead, 17 with 4, and 8 with none.
const AHEAD: usize = 12 * 1024;

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
        unit: weight.unit(),
    }
}

/// The products of all rows of x with rows of the weight from `first` on, as many as a row of the result has.
pub(super) type Kernel<S> = fn(x: &Rounded, weight: &Weight<'_, S>, first: usize, result: &mut [&mut [f32]]);

/// With `BOOK`, codes are places in the weight's codebook.
///
/// # Safety
/// The processor must have the vector's instructions.
#[inline(always)]
pub(super) unsafe fn products<V: Vector, S: Stored, const BITS: usize, const BOOK: bool>(
    x: &Rounded,
    weight: &Weight<'_, S>,
    first: usize,
    result: &mut [&mut [f32]],
) {
    let unit = Unit::new::<V, S>(weight);
    for (index, result) in result.chunks_mut(4).enumerate() {
        // SAFETY: the caller's.
        unsafe {
            match result.len() {
                1 => scaled::<V, S, BITS, BOOK, 1>(x, weight, &unit, 4 * index, first, result),
                2 => scaled::<V, S, BITS, BOOK, 2>(x, weight, &unit, 4 * index, first, result),
                _ => scaled::<V, S, BITS, BOOK, 4>(x, weight, &unit, 4 * index, first, result),
            }
        }
    }
}

/// By the number of scales in a register: loops over as many as most weights have decide nothing.
#[inline(always)]
unsafe fn scaled<V: Vector, S: Stored, const BITS: usize, const BOOK: bool, const R: usize>(
    x: &Rounded,
    weight: &Weight<'_, S>,
    unit: &Unit,
    row: usize,
    first: usize,
    result: &mut [&mut [f32]],
) {
    // SAFETY: the caller's.
    unsafe {
        match unit.count {
            4 => rows::<V, S, BITS, BOOK, R, 4>(x, weight, unit, row, first, result),
            2 => rows::<V, S, BITS, BOOK, R, 2>(x, weight, unit, row, first, result),
            _ => rows::<V, S, BITS, BOOK, R, ANY>(x, weight, unit, row, first, result),
        }
    }
}

/// Any number of scales in a register.
const ANY: usize = 0;

#[inline(always)]
unsafe fn rows<V: Vector, S: Stored, const BITS: usize, const BOOK: bool, const R: usize, const N: usize>(
    x: &Rounded,
    weight: &Weight<'_, S>,
    unit: &Unit,
    row: usize,
    first: usize,
    result: &mut [&mut [f32]],
) {
    let columns = result[0].len();
    for start in (0..columns).step_by(COLUMNS) {
        // The last ones begin earlier where fewer are left; where there are fewer at all, each is multiplied for itself.
        let start = start.min(columns.saturating_sub(COLUMNS));
        let (count, step) = if columns < COLUMNS { (columns, 0) } else { (1, 1) };
        for place in start..start + count {
            // SAFETY: the caller's; the rows are the weight's.
            let sums = unsafe { dots::<V, S, BITS, BOOK, R, N>(x, weight, unit, row, (first + place, step)) };
            for (index, (result, sums)) in result.iter_mut().zip(sums).enumerate() {
                for (column, sum) in sums.into_iter().enumerate().take(1 + step * (COLUMNS - 1)) {
                    let added = offsets(x, weight, row + index, first + place + column);
                    result[place + column] = sum + added;
                }
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
    /// What codes stand for, where they are places in a codebook.
    book: [u8; 16],
    is_narrow: bool,
}

impl Unit {
    fn new<V: Vector, S: Stored>(weight: &Weight<'_, S>) -> Self {
        let block_bytes = weight.block_bytes();
        let count = (4 * V::LANES / block_bytes).max(1);
        let mut places = [0; 16];
        for (lane, place) in places.iter_mut().enumerate().take(V::LANES) {
            *place = (lane * count / V::LANES) as i32;
        }
        let book = weight.codebook().map_or([0; 16], |book| book.above_zero().0);
        Self { count, block_bytes, places, book, is_narrow: weight.is_narrow() }
    }

    /// The block of a byte.
    #[inline(always)]
    fn block<V: Vector, const N: usize>(&self, byte: usize) -> usize {
        if N == ANY { byte / self.block_bytes } else { byte / (4 * V::LANES / N) }
    }
}

/// The products of rows of x with rows of the weight, `step` apart from the first on.
#[inline(always)]
unsafe fn dots<V: Vector, S: Stored, const BITS: usize, const BOOK: bool, const R: usize, const N: usize>(
    x: &Rounded,
    weight: &Weight<'_, S>,
    unit: &Unit,
    row: usize,
    (first, step): (usize, usize),
) -> [[f32; COLUMNS]; R] {
    let (bytes, blocks) = (weight.row_bytes(), weight.blocks());
    let (whole, row_scales) = (bytes / UNIT * UNIT, blocks * size_of::<S>());
    // SAFETY: the caller's; `whole` bytes of each row are there, and scales of their blocks.
    unsafe {
        let lanes = (V::ints(unit.places.as_ptr().cast()), V::sixteen(&unit.book));
        let mut sums = [[V::zero(); COLUMNS]; R];
        let of_x = X::<R>::new(x, row);
        // One row after the other: processors read ahead of few places at a time.
        for column in 0..COLUMNS {
            let codes = weight.codes.as_ptr().add((first + column * step) * bytes);
            let scales = weight.scales.as_ptr().add((first + column * step) * blocks);
            // As many rows ahead as codes.
            ask_for(scales.wrapping_byte_add(AHEAD * row_scales / bytes.max(1)), row_scales);
            let mut of_column = [V::zero(); R];
            // A unit is of one outer scale, since only blocks of 32 places in a codebook have such.
            let outer = |byte: usize| {
                if BOOK {
                    weight.outer_scale(first + column * step, byte / weight.block_bytes())
                } else {
                    1.0
                }
            };
            for start in (0..whole).step_by(UNIT) {
                let here = codes.add(start);
                ask_for(here.wrapping_add(AHEAD), 1);
                let there = scales.add(unit.block::<V, N>(start));
                of_x.add::<V, S, BITS, BOOK, N>(
                    &mut of_column,
                    (here, there, outer(start)),
                    start,
                    unit,
                    lanes,
                );
            }
            if whole < bytes {
                // The last unit has fewer codes, and scales, than registers.
                let at = unit.block::<V, N>(whole);
                let mut rest = [0_u8; UNIT];
                let mut few = [scales.add(blocks - 1).read(); UNIT];
                rest.as_mut_ptr().copy_from_nonoverlapping(codes.add(whole), bytes - whole);
                few.as_mut_ptr().copy_from_nonoverlapping(scales.add(at), blocks - at);
                let last = (rest.as_ptr(), few.as_ptr(), outer(whole));
                of_x.add::<V, S, BITS, BOOK, N>(&mut of_column, last, whole, unit, lanes);
            }
            for (sums, sum) in sums.iter_mut().zip(of_column) {
                sums[column] = sum;
            }
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
}

impl<const R: usize> X<R> {
    #[inline(always)]
    fn new(x: &Rounded, row: usize) -> Self {
        let (width, parts) = (x.layout.width, x.layout.width / x.layout.part);
        let mut of_x = Self {
            codes: [std::ptr::null(); R],
            scales: [std::ptr::null(); R],
            starts: [std::ptr::null(); R],
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
    unsafe fn add<V: Vector, S: Stored, const BITS: usize, const BOOK: bool, const N: usize>(
        &self,
        sums: &mut [V::Floats; R],
        (codes, scales, outer): (*const u8, *const S, f32),
        start: usize,
        unit: &Unit,
        (places, book): (V::Ints, V::Ints),
    ) {
        let count = if N == ANY { unit.count } else { N };
        let is_narrow = if BOOK { unit.is_narrow } else { BITS < 8 };
        // SAFETY: the caller's; x has codes of whole units.
        unsafe {
            for offset in (0..UNIT).step_by(4 * V::LANES) {
                let packed = V::ints(codes.add(offset));
                let scale = V::scales(scales.add(unit.block::<V, N>(offset)), count, places);
                let scale = if BOOK { V::mul(scale, V::splat(outer)) } else { scale };
                for (row, total) in sums.iter_mut().enumerate() {
                    let mut sum = V::ints(self.starts[row].add(start + offset));
                    let runs = self.codes[row].add(start * (8 / BITS) + offset);
                    for run in 0..8 / BITS {
                        let x = V::ints(runs.add(run * UNIT));
                        let codes = V::codes::<BITS>(packed, run * BITS);
                        let codes = if BOOK { V::look_up(book, codes) } else { codes };
                        sum = V::dot(sum, codes, x, is_narrow);
                    }
                    let scale = V::mul(scale, V::floats(self.scales[row].add((start + offset) / 4)));
                    *total = V::add_product(*total, V::single(sum), scale);
                }
            }
        }
    }
}

/// What the offsets of a row of the weight add.
#[inline(always)]
fn offsets<S: Stored>(x: &Rounded, weight: &Weight<'_, S>, row: usize, column: usize) -> f32 {
    if !weight.is_offset() {
        return 0.0;
    }
    let sums = &x.sums[row * (x.layout.width / x.layout.summed)..][..weight.blocks()];
    let mut lanes = [0.0; 8];
    for (block, sum) in sums.iter().enumerate() {
        lanes[block % 8] += sum * weight.offset(column, block);
    }
    lanes.into_iter().sum()
}
