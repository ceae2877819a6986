//! Codes of a few rows of a weight, a byte each, as products of many rows take them.

#![allow(unsafe_code)]

use super::super::product::ask_for;
use super::super::stored::Stored;
use super::vector::Vector;
use super::weight::Weight;

/// How many codes of a row are unpacked at a time.
pub(super) const DEPTH: usize = 512;

/// Bytes of a row that are unpacked at a time.
const TAKEN: usize = 16;

/// The most lanes of a register.
const MOST_LANES: usize = 16;

/// The most blocks of a row in a panel.
const MOST_BLOCKS: usize = DEPTH / 16;

/// Codes of a few columns, those that a lane takes side by side, with scales and offsets of their blocks.
pub(super) struct Panel {
    pub(super) columns: usize,
    /// Where its codes begin in rows of x.
    pub(super) start: usize,
    /// Where its columns begin in the result.
    pub(super) column: usize,
    /// Codes that x has a scale for.
    pub(super) block: usize,
    pub(super) blocks: usize,
    /// `[blocks, block / 4, columns, 4]`.
    pub(super) codes: Vec<u32>,
    /// `[blocks, columns]`.
    pub(super) scales: Vec<f32>,
    /// `[blocks, columns]`, where there are some.
    pub(super) offsets: Vec<f32>,
    pub(super) is_offset: bool,
    /// Whether codes have less than 8 bits.
    pub(super) is_narrow: bool,
}

/// Takes codes of rows of the weight from the first on, as many as are there. Columns beyond them keep what they have, or get
/// what others have.
pub(super) type Unpack<S> = fn(panel: &mut Panel, weight: &Weight<'_, S>, first: usize, there: usize);

impl Panel {
    pub(super) fn new<S: Stored>(columns: usize, weight: &Weight<'_, S>, block: usize) -> Self {
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
            is_offset: weight.is_offset(),
            is_narrow: weight.is_narrow(),
        }
    }

    /// Goes to codes from `start` to `end` and to columns from this one on.
    pub(super) fn begin(&mut self, start: usize, column: usize, end: usize) {
        (self.start, self.column) = (start, column);
        self.blocks = (end - start) / self.block;
    }

    /// Offsets of the blocks of a row of the weight.
    fn offsets_of<S: Stored>(&mut self, weight: &Weight<'_, S>, column: usize, row: usize) {
        for block in 0..self.blocks {
            let stored = (self.start + block * self.block) / weight.group;
            self.offsets[block * self.columns + column] = weight.offset(row, stored);
        }
    }
}

/// As [`Unpack`].
///
/// # Safety
/// The processor must have the vector's instructions.
#[inline(always)]
pub(super) unsafe fn unpack<V: Vector, S: Stored>(
    panel: &mut Panel,
    weight: &Weight<'_, S>,
    first: usize,
    there: usize,
) {
    // SAFETY: the caller's.
    unsafe {
        for column in (0..there).step_by(V::LANES) {
            let rows = Rows { first: first + column, there: (there - column).min(V::LANES) };
            match (weight.bits, weight.codebook()) {
                (2, _) => codes::<V, S, 2, false>(panel, weight, column, &rows),
                (4, None) => codes::<V, S, 4, false>(panel, weight, column, &rows),
                (4, Some(_)) => codes::<V, S, 4, true>(panel, weight, column, &rows),
                _ => codes::<V, S, 8, false>(panel, weight, column, &rows),
            }
            scales::<V, S>(panel, weight, column, &rows);
        }
        if panel.is_offset {
            (0..there).for_each(|column| panel.offsets_of(weight, column, first + column));
        }
    }
}

/// Rows of the weight that lanes take; where they are fewer, the last ones take the last.
struct Rows {
    first: usize,
    there: usize,
}

impl Rows {
    fn of(&self, lane: usize) -> usize {
        self.first + lane.min(self.there - 1)
    }
}

/// Codes of as many rows as there are lanes.
#[inline(always)]
unsafe fn codes<V: Vector, S: Stored, const BITS: usize, const BOOK: bool>(
    panel: &mut Panel,
    weight: &Weight<'_, S>,
    column: usize,
    rows: &Rows,
) {
    let per_byte = 8 / BITS;
    let bytes = panel.blocks * panel.block / per_byte;
    let packed: [&[u8]; MOST_LANES] = std::array::from_fn(|lane| {
        &weight.codes[rows.of(lane) * weight.row_bytes() + panel.start / per_byte..][..bytes]
    });
    let begins = packed.map(<[u8]>::as_ptr);
    let book = weight.codebook().filter(|_| BOOK).map_or([0; 16], |book| book.above_zero().0);
    let place = Place {
        words: (panel.block / 4 / per_byte).ilog2(),
        block: panel.block / 4,
        columns: panel.columns,
        column,
    };
    let whole = bytes / TAKEN * TAKEN;
    // SAFETY: the caller's; so many bytes of each row are there, and as many codes have room in the panel.
    unsafe {
        let book = V::sixteen(&book);
        let into = panel.codes.as_mut_ptr();
        for byte in (0..whole).step_by(TAKEN) {
            let words = V::transposed(&begins, byte);
            store::<V, BITS, BOOK>(&words, byte / 4, &place, book, into);
        }
        if whole < bytes {
            let mut rest = [[0_u8; TAKEN]; MOST_LANES];
            for (rest, packed) in rest.iter_mut().zip(packed) {
                rest[..bytes - whole].copy_from_slice(&packed[whole..]);
            }
            let words = V::transposed(&rest.each_ref().map(|rest| rest.as_ptr()), 0);
            store::<V, BITS, BOOK>(&words[..(bytes - whole) / 4], whole / 4, &place, book, into);
        }
    }
}

/// Begins to read the codes of so many rows of a weight that a panel from `start` on takes.
pub(super) fn ask_for_codes<S: Stored>(weight: &Weight<'_, S>, first: usize, there: usize, start: usize) {
    let (block, scales) = (start / weight.group, DEPTH / weight.group * size_of::<S>());
    let (row_bytes, start) = (weight.row_bytes(), start * weight.bits / 8);
    let bytes = (DEPTH * weight.bits / 8).min(row_bytes - start);
    for row in first..first + there {
        ask_for(weight.codes[row * row_bytes + start..].as_ptr(), bytes);
        ask_for(weight.scales[row * weight.blocks() + block..].as_ptr(), scales);
    }
}

/// Where codes go in a panel.
struct Place {
    /// Packed words of a block, a power of two, as one.
    words: u32,
    /// Words of codes of a block.
    block: usize,
    columns: usize,
    column: usize,
}

/// Stores the codes of neighbouring words, of which the first is this one of its row.
#[inline(always)]
unsafe fn store<V: Vector, const BITS: usize, const BOOK: bool>(
    words: &[V::Ints],
    first: usize,
    place: &Place,
    book: V::Ints,
    into: *mut u32,
) {
    for (index, packed) in words.iter().enumerate() {
        let block = (first + index) >> place.words;
        let within = first + index - (block << place.words);
        for run in 0..8 / BITS {
            let word = block * place.block + (run << place.words) + within;
            // SAFETY: the caller's: the panel has the words.
            unsafe {
                let codes = V::codes::<BITS>(*packed, run * BITS);
                let codes = if BOOK { V::look_up(book, codes) } else { codes };
                V::store_ints(codes, into.add(word * place.columns + place.column));
            }
        }
    }
}

/// Scales of the blocks of as many rows as there are lanes.
#[inline(always)]
unsafe fn scales<V: Vector, S: Stored>(
    panel: &mut Panel,
    weight: &Weight<'_, S>,
    column: usize,
    rows: &Rows,
) {
    let mut single = [[0.0; MOST_BLOCKS]; MOST_LANES];
    // SAFETY: the caller's; a row has numbers for four blocks more than those before any, and as many lanes have room in the panel.
    unsafe {
        for (lane, single) in single.iter_mut().enumerate().take(V::LANES) {
            scales_of::<V, S>(panel, weight, rows.of(lane), single);
        }
        let begins = single.each_ref().map(|row| row.as_ptr().cast::<u8>());
        for block in (0..panel.blocks).step_by(4) {
            let four = V::transposed(&begins, block * size_of::<f32>());
            for (index, scales) in four.into_iter().enumerate().take(panel.blocks - block) {
                let place = (block + index) * panel.columns + column;
                V::store_ints(scales, panel.scales.as_mut_ptr().add(place).cast());
            }
        }
    }
}

/// Scales of the blocks of a row, in single precision.
#[inline(always)]
unsafe fn scales_of<V: Vector, S: Stored>(
    panel: &Panel,
    weight: &Weight<'_, S>,
    row: usize,
    single: &mut [f32; MOST_BLOCKS],
) {
    let (first, last) = (panel.start / weight.group, panel.start + panel.blocks * panel.block);
    let stored = &weight.scales[row * weight.blocks()..][first..last.div_ceil(weight.group)];
    let places: [i32; MOST_LANES] = std::array::from_fn(|lane| lane as i32);
    let whole = stored.len() / V::LANES * V::LANES;
    // SAFETY: the caller's; as many scales as lanes are there, and numbers for them.
    unsafe {
        let places = V::ints(places.as_ptr().cast());
        for at in (0..whole).step_by(V::LANES) {
            let scales = V::scales(stored.as_ptr().add(at), V::LANES, places);
            V::store(scales, single.as_mut_ptr().add(at));
        }
    }
    for (single, stored) in single.iter_mut().zip(stored).skip(whole) {
        *single = stored.single();
    }
    if weight.outer.is_some() {
        for (at, single) in single.iter_mut().enumerate().take(stored.len()) {
            *single *= weight.outer_scale(row, first + at);
        }
    }
    // A scale of the weight is that of as many blocks, of which panels before may have taken some.
    let (blocks, begun) = (weight.group / panel.block, panel.start % weight.group / panel.block);
    if blocks > 1 {
        for block in (0..panel.blocks).rev() {
            single[block] = single[(begun + block) / blocks];
        }
    }
}
