//! Products of many rows: the codes of a block of the weight are unpacked once, into the first cache, where all rows of x meet
//! them.

#![allow(unsafe_code)]

use super::super::stored::Stored;
use super::panel::{self, DEPTH, Panel};
use super::rounded::{Layout, Rounded};
use super::vector::Vector;
use super::weight::Weight;

/// Registers of columns in a tile.
const COLUMNS: usize = 2;

/// How x is rounded for them.
pub(super) fn layout<S: Stored>(weight: &Weight<'_, S>) -> Layout {
    let block = weight.rounded_block();
    let width = weight.blocks() * weight.group;
    Layout {
        block,
        per_byte: 8 / weight.bits,
        span: block,
        part: block,
        summed: block,
        rounded_sums: weight.rounded_sums(),
        width,
        unit: weight.unit(),
    }
}

/// Brings the products of all rows of x with a panel to their parts of the result, and adds those of panels behind the first.
type Tiles = fn(x: &Rounded, panel: &Panel, result: &mut [&mut [f32]]);

/// What a processor multiplies many rows with.
#[derive(Clone, Copy)]
pub(super) struct Kernels<S> {
    pub(super) tiles: Tiles,
    pub(super) unpack: panel::Unpack<S>,
    /// Those of its registers.
    pub(super) lanes: usize,
}

/// The products of all rows of x with rows of the weight from `first` on, as many as a row of the result has.
pub(super) fn products<S: Stored>(
    kernels: Kernels<S>,
    x: &Rounded,
    weight: &Weight<'_, S>,
    first: usize,
    result: &mut [&mut [f32]],
) {
    let columns = result.first().map_or(0, |row| row.len());
    let mut panel = Panel::new(COLUMNS * kernels.lanes, weight, x.layout.block);
    let (step, width) = (panel.columns, x.layout.width);
    let places = (0..columns)
        .step_by(step)
        .flat_map(|column| (0..width).step_by(DEPTH).map(move |start| (column, start)));
    let mut places = places.peekable();
    while let Some((column, start)) = places.next() {
        panel.begin(start, column, (start + DEPTH).min(width));
        (kernels.unpack)(&mut panel, weight, first + column, step.min(columns - column));
        // What comes next is read while this is multiplied.
        if let Some(&(column, start)) = places.peek() {
            panel::ask_for_codes(weight, first + column, step.min(columns - column), start);
        }
        (kernels.tiles)(x, &panel, result);
    }
}

/// As [`Tiles`].
///
/// # Safety
/// The processor must have the vector's instructions.
#[inline(always)]
pub(super) unsafe fn tiles<V: Vector>(x: &Rounded, panel: &Panel, result: &mut [&mut [f32]]) {
    let mut row = 0;
    while row < result.len() {
        let left = result.len() - row;
        // SAFETY: the caller's.
        unsafe {
            if V::ROWS == 6 && left >= 6 {
                rows::<V, 6>(x, panel, row, result);
                row += 6;
            } else if left >= 2 {
                rows::<V, 2>(x, panel, row, result);
                row += 2;
            } else {
                rows::<V, 1>(x, panel, row, result);
                row += 1;
            }
        }
    }
}

/// The products of `R` rows of x, of a panel that is not the first of its columns added to those before.
#[inline(always)]
unsafe fn rows<V: Vector, const R: usize>(x: &Rounded, panel: &Panel, row: usize, result: &mut [&mut [f32]]) {
    // SAFETY: the caller's.
    let sums = unsafe { tile::<V, R>(x, panel, row) };
    for (result, sums) in result[row..].iter_mut().zip(sums) {
        for (index, sums) in sums.into_iter().enumerate() {
            let from = panel.column + index * V::LANES;
            let Some(result) = result.get_mut(from..).filter(|result| !result.is_empty()) else { continue };
            // SAFETY: the caller's; as many numbers as are written are there.
            unsafe {
                if result.len() < V::LANES {
                    let mut lanes = [0.0; 16];
                    V::store(sums, lanes.as_mut_ptr());
                    let result = result.iter_mut().zip(lanes);
                    result.for_each(|(result, sum)| {
                        *result = if panel.start == 0 { sum } else { *result + sum }
                    });
                } else if panel.start == 0 {
                    V::store(sums, result.as_mut_ptr());
                } else {
                    V::store(V::add(V::floats(result.as_ptr()), sums), result.as_mut_ptr());
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn tile<V: Vector, const R: usize>(
    x: &Rounded,
    panel: &Panel,
    row: usize,
) -> [[V::Floats; COLUMNS]; R] {
    let (width, parts) = (x.layout.width, x.layout.width / x.layout.part);
    let first = panel.start / panel.block;
    // SAFETY: the caller's; x has the rows, and in each as many codes from the panel's start on as the panel.
    unsafe {
        let mut sums = [[V::zero(); COLUMNS]; R];
        let mut codes = panel.codes.as_ptr();
        let mut here = x.codes.as_ptr().add(row * width + panel.start).cast::<u8>();
        for block in 0..panel.blocks {
            let mut products = [[V::same(0); COLUMNS]; R];
            for (index, products) in products.iter_mut().enumerate() {
                let begin = V::same(*x.starts.get_unchecked((row + index) * parts + first + block));
                *products = [begin; COLUMNS];
            }
            for _ in 0..panel.block / 16 {
                for word in 0..4 {
                    let mut codes_of = [V::same(0); COLUMNS];
                    for (column, codes_of) in codes_of.iter_mut().enumerate() {
                        *codes_of = V::ints(codes.add((word * COLUMNS + column) * V::LANES).cast());
                    }
                    for (index, products) in products.iter_mut().enumerate() {
                        let x = V::same(here.add(index * width + word * 4).cast::<i32>().read_unaligned());
                        for (products, codes) in products.iter_mut().zip(codes_of) {
                            *products = V::dot(*products, codes, x, panel.is_narrow);
                        }
                    }
                }
                codes = codes.add(4 * COLUMNS * V::LANES);
                here = here.add(16);
            }
            let at = block * COLUMNS * V::LANES;
            for column in 0..COLUMNS {
                let scales = V::floats(panel.scales.as_ptr().add(at + column * V::LANES));
                for index in 0..R {
                    let place = (row + index) * parts + first + block;
                    let scale = V::mul(scales, V::splat(*x.scales.get_unchecked(place)));
                    let products = V::single(products[index][column]);
                    sums[index][column] = V::add_product(sums[index][column], products, scale);
                }
                if panel.is_offset {
                    let offsets = V::floats(panel.offsets.as_ptr().add(at + column * V::LANES));
                    for (index, sums) in sums.iter_mut().enumerate() {
                        let sum = V::splat(*x.sums.get_unchecked((row + index) * parts + first + block));
                        sums[column] = V::add_product(sums[column], offsets, sum);
                    }
                }
            }
        }
        sums
    }
}
