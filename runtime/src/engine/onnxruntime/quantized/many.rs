//! Products of many rows: the codes of a block of the weight are unpacked once, into the first cache, where all rows of x meet
//! them.

#![allow(unsafe_code)]

use super::super::stored::Stored;
use super::rounded::{Layout, Rounded};
use super::vector::Vector;
use super::weight::Weight;

/// How many codes of a row are unpacked at a time.
const DEPTH: usize = 1024;

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

/// Adds the products of all rows of x with a panel to their parts of the result.
pub(super) type Kernel = fn(x: &Rounded, panel: &Panel, result: &mut [&mut [f32]]);

/// Puts what a codebook has for them in the place of codes of a byte each, a whole number of registers.
pub(super) type LookUp = fn(book: &[u8; 16], codes: &mut [u32]);

/// What a processor multiplies many rows with.
#[derive(Clone, Copy)]
pub(super) struct Kernels {
    pub(super) tiles: Kernel,
    pub(super) look_up: LookUp,
    /// Those of its registers.
    pub(super) lanes: usize,
}

/// Adds the products of all rows of x with rows of the weight from `first` on, as many as a row of the result has.
pub(super) fn products<S: Stored>(
    kernels: Kernels,
    x: &Rounded,
    weight: &Weight<'_, S>,
    first: usize,
    result: &mut [&mut [f32]],
) {
    let columns = result.first().map_or(0, |row| row.len());
    let mut panel = Panel::new(COLUMNS * kernels.lanes, x.layout.block);
    let book = weight.codebook().map(|book| book.above_zero().0);
    for column in (0..columns).step_by(panel.columns) {
        for start in (0..x.layout.width).step_by(DEPTH) {
            let there = panel.columns.min(columns - column);
            (panel.start, panel.column) = (start, column);
            panel.unpack(weight, first + column, there, (start + DEPTH).min(x.layout.width));
            if let Some(book) = &book {
                let taken = panel.columns * panel.blocks * panel.block / 4;
                (kernels.look_up)(book, &mut panel.codes[..taken]);
            }
            (kernels.tiles)(x, &panel, result);
        }
    }
}

/// Codes of a few columns, those that a lane takes side by side, with scales and offsets of their blocks.
pub(super) struct Panel {
    columns: usize,
    /// Where its codes begin in rows of x.
    start: usize,
    /// Where its columns begin in the result.
    column: usize,
    /// Codes that x has a scale for.
    block: usize,
    blocks: usize,
    /// `[blocks, block / 4, columns, 4]`.
    codes: Vec<u32>,
    /// `[blocks, columns]`.
    scales: Vec<f32>,
    /// `[blocks, columns]`, where there are some.
    offsets: Vec<f32>,
    is_offset: bool,
    /// Whether codes have less than 8 bits.
    is_narrow: bool,
}

impl Panel {
    fn new(columns: usize, block: usize) -> Self {
        let blocks = DEPTH / block;
        Self {
            columns,
            start: 0,
            column: 0,
            block,
            blocks,
            codes: vec![0; columns * DEPTH / 4],
            scales: vec![0.0; columns * blocks],
            offsets: vec![0.0; columns * blocks],
            is_offset: false,
            is_narrow: false,
        }
    }

    /// Takes codes up to `end` of rows of the weight from `first` on. Columns beyond `there` keep what they have.
    fn unpack<S: Stored>(&mut self, weight: &Weight<'_, S>, first: usize, there: usize, end: usize) {
        self.blocks = (end - self.start) / self.block;
        self.is_offset = weight.is_offset();
        self.is_narrow = weight.is_narrow();
        for column in 0..there {
            match weight.bits {
                2 => self.column_of::<S, 2>(weight, column, first + column, end),
                4 => self.column_of::<S, 4>(weight, column, first + column, end),
                _ => self.column_of::<S, 8>(weight, column, first + column, end),
            }
        }
    }

    fn column_of<S: Stored, const BITS: usize>(
        &mut self,
        weight: &Weight<'_, S>,
        column: usize,
        row: usize,
        end: usize,
    ) {
        let per_byte = 8 / BITS;
        let mask = u32::from_ne_bytes([((1_u16 << BITS) - 1) as u8; 4]);
        let (row_bytes, blocks) = (weight.row_bytes(), weight.blocks());
        let codes = &weight.codes[row * row_bytes..][self.start / per_byte..end / per_byte];
        let words = self.block / 4 / per_byte;
        let mut places = self.codes[column..].iter_mut().step_by(self.columns);
        for codes in codes.as_chunks::<4>().0.chunks_exact(words) {
            for run in 0..per_byte {
                for (codes, place) in codes.iter().zip(&mut places) {
                    *place = u32::from_ne_bytes(*codes) >> (run * BITS) & mask;
                }
            }
        }
        for block in 0..self.blocks {
            let stored = (self.start + block * self.block) / weight.group;
            self.scales[block * self.columns + column] =
                weight.scales[row * blocks + stored].single() * weight.outer_scale(row, stored);
            if self.is_offset {
                self.offsets[block * self.columns + column] = weight.offset(row, stored);
            }
        }
    }
}

/// Puts what a codebook has for them in the place of codes of a byte each, a whole number of registers; what is no code
/// gets any value.
///
/// # Safety
/// The processor must have the vector's instructions.
#[inline(always)]
pub(super) unsafe fn look_up<V: Vector>(book: &[u8; 16], codes: &mut [u32]) {
    // SAFETY: the caller's; chunks are registers.
    unsafe {
        let book = V::sixteen(book);
        for codes in codes.chunks_exact_mut(V::LANES) {
            let found = V::look_up(book, V::ints(codes.as_ptr().cast()));
            V::store_ints(found, codes.as_mut_ptr());
        }
    }
}

/// Adds the products of all rows of x with a panel to their parts of the result.
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

/// Adds the products of `R` rows of x.
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
                if result.len() >= V::LANES {
                    V::store(V::add(V::floats(result.as_ptr()), sums), result.as_mut_ptr());
                } else {
                    let mut lanes = [0.0; 16];
                    V::store(sums, lanes.as_mut_ptr());
                    result.iter_mut().zip(lanes).for_each(|(result, sum)| *result += sum);
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
