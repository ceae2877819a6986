//! Tensors of quantized types into the form that kernels run, on all cores, with their rows put back into the checkpoint's
//! order.

use std::num::NonZero;
use std::thread;

use half::f16;

use crate::Dtype;
use crate::gguf::types::{Form, Kind, Repack, neighbours};
use crate::small_floats::E8M0_MOST;
use crate::weights::{BlockQuantized, Bytes, Zeros};

/// Where rows of the checkpoint are in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowOrder {
    /// In the checkpoint's order.
    Same,
    /// Of each head of so many rows those of its two halves in turn, where the checkpoint has one half behind the other: queries
    /// and keys of rotary position embeddings (`permute` of the converter).
    Halves(usize),
    /// Items, such as heads or experts, of which each has rows of several places.
    Items(Vec<Run>),
}

/// Rows of each item that lie together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Which tensor they are in.
    pub part: usize,
    /// Where those of the first item begin; those of the next follow.
    pub start: usize,
    /// How many they are of an item.
    pub rows: usize,
}

impl RowOrder {
    /// Of so many rows, in which the halves of each head take turns.
    pub fn halves(heads: usize, rows: usize) -> Option<Self> {
        let width = rows.checked_div(heads)?;
        (width.is_multiple_of(2) && width * heads == rows).then_some(Self::Halves(width))
    }

    /// Of so many rows: all query heads, then all key heads, then all value heads, where the checkpoint has those that share a key
    /// head together, `[groups, queries + 2, width]`.
    pub fn grouped(groups: usize, queries: usize, rows: usize) -> Option<Self> {
        let heads = queries.checked_add(2)?.checked_mul(groups).filter(|heads| *heads > 0)?;
        let width = rows / heads;
        let run = |start, heads| Run { part: 0, start: start * width, rows: heads * width };
        let runs = vec![run(0, queries), run(groups * queries, 1), run(groups * (queries + 1), 1)];
        (width * heads == rows).then_some(Self::Items(runs))
    }

    /// Of several tensors: all rows of an item that the first has, then those of the next.
    pub fn behind(rows: &[usize]) -> Self {
        Self::Items(rows.iter().enumerate().map(|(part, &rows)| Run { part, start: 0, rows }).collect())
    }

    /// Of so many tensors: a row of each in turn.
    pub fn in_turn(parts: usize) -> Self {
        Self::behind(&vec![1; parts])
    }

    /// The tensor, and the row in it, of a row of the checkpoint.
    fn place(&self, row: usize) -> (usize, usize) {
        match self {
            Self::Same => (0, row),
            Self::Halves(width) => {
                let (head, row) = (row / width, row % width);
                let (half, place) = (row / (width / 2), row % (width / 2));
                (0, head * width + 2 * place + half)
            }
            Self::Items(runs) => {
                let of_item = runs.iter().map(|run| run.rows).sum::<usize>();
                let (item, mut left) = (row / of_item, row % of_item);
                for run in runs {
                    match left.checked_sub(run.rows) {
                        None => return (run.part, run.start + item * run.rows + left),
                        Some(rest) => left = rest,
                    }
                }
                (0, row)
            }
        }
    }
}

/// Rows of a tensor in the checkpoint's order, where they lie in files.
pub struct Rows<'a> {
    /// The bytes of each tensor.
    pub parts: Vec<&'a [u8]>,
    /// Bytes of a row.
    pub length: usize,
    /// How the checkpoint orders them.
    pub order: &'a RowOrder,
}

impl<'a> Rows<'a> {
    fn row(&self, row: usize) -> &'a [u8] {
        let (part, row) = self.order.place(row);
        &self.parts[part][row * self.length..][..self.length]
    }

    /// All of them, one after the other.
    pub fn bytes(&self) -> Vec<u8> {
        let length = self.parts.iter().map(|part| part.len()).sum::<usize>();
        let mut bytes = Vec::with_capacity(length);
        (0..length / self.length.max(1)).for_each(|row| bytes.extend_from_slice(self.row(row)));
        bytes
    }
}

/// Matrices `[items, rows, columns]` of elements of so many bytes the other way, as `[items, columns, rows]`.
pub fn turned(bytes: &[u8], [rows, columns]: [usize; 2], size: usize) -> Vec<u8> {
    let mut turned = Vec::with_capacity(bytes.len());
    for matrix in bytes.chunks_exact((rows * columns * size).max(1)) {
        for column in 0..columns {
            for row in 0..rows {
                turned.extend_from_slice(&matrix[(row * columns + column) * size..][..size]);
            }
        }
    }
    turned
}

/// Below this many elements, threads take longer to start than to read.
const FEW: usize = 1 << 16;

/// The blocks `[rows, columns]` of a quantized type, in the form that kernels run.
///
/// # Errors
/// When the type is not one of blocks, or a scale is not finite: names the row.
pub fn unpack(kind: &Kind, from: &Rows<'_>, [rows, columns]: [usize; 2]) -> Result<BlockQuantized, String> {
    let Form::Blocks { bits, group, scales: scale_dtype, minimums: has_minimums, codebook, outer, .. } =
        kind.form
    else {
        return Err(format!("is of type {}, which is not read as blocks", kind.name));
    };
    let groups = columns / group;
    let mut codes = vec![0; rows * columns * bits / 8];
    let mut scales = vec![0_u8; rows * groups * scale_dtype.size()];
    let mut minimums = vec![0_f32; if has_minimums { rows * groups } else { 0 }];
    // An outer scale for each block of the file.
    let outer_row = if outer.is_some() { 2 * columns / kind.elements } else { 0 };
    let mut outer_scales = vec![0_u8; rows * outer_row];
    let threads =
        if rows * columns < FEW { 1 } else { thread::available_parallelism().map_or(1, NonZero::get) };
    let share = rows.div_ceil(threads).max(1);
    let parts = codes
        .chunks_mut(share * columns * bits / 8)
        .zip(scales.chunks_mut(share * groups * scale_dtype.size()))
        .enumerate();
    let (mut left, mut outer_left) = (minimums.as_mut_slice(), outer_scales.as_mut_slice());
    let jobs: Vec<_> = parts
        .map(|(index, (codes, scales))| {
            let first = index * share;
            let count = share.min(rows - first);
            let (minimums, rest) =
                std::mem::take(&mut left).split_at_mut(if has_minimums { count * groups } else { 0 });
            left = rest;
            let (outer, rest) = std::mem::take(&mut outer_left).split_at_mut(count * outer_row);
            outer_left = rest;
            Job { kind, from, first, count, codes, scales, minimums, outer }
        })
        .collect();
    thread::scope(|scope| {
        let running: Vec<_> = jobs.into_iter().map(|job| scope.spawn(move || job.run())).collect();
        let done =
            running.into_iter().map(|job| job.join().unwrap_or_else(|_| Err("cannot be unpacked".into())));
        done.collect::<Result<Vec<()>, String>>()
    })?;
    Ok(BlockQuantized {
        shape: [rows, columns],
        batch: None,
        bits,
        group,
        codes: Bytes::memory(codes),
        scale_dtype,
        scales: Bytes::memory(scales),
        outer: outer.map(|_| Bytes::memory(outer_scales)),
        zeros: match codebook {
            Some(book) => Zeros::Codebook(book),
            None if has_minimums => Zeros::Minimums(minimums.into()),
            None => Zeros::Middle,
        },
        order: None,
    })
}

/// What one thread unpacks: some rows.
struct Job<'a> {
    kind: &'a Kind,
    from: &'a Rows<'a>,
    first: usize,
    count: usize,
    codes: &'a mut [u8],
    scales: &'a mut [u8],
    minimums: &'a mut [f32],
    /// In half precision; of types that have some.
    outer: &'a mut [u8],
}

impl Job<'_> {
    fn run(self) -> Result<(), String> {
        let Form::Blocks {
            bits, group, scales: dtype, minimums: has_minimums, outer, unpack, repack, ..
        } = self.kind.form
        else {
            return Ok(());
        };
        if let Some(repack) = repack {
            return self.repack(repack, group * bits / 8, dtype);
        }
        let (elements, size) = (self.kind.elements, self.kind.bytes);
        let groups = elements / group;
        let (mut block_codes, mut block_scales, mut block_minimums) = ([0_u8; 256], [0_f32; 16], [0_f32; 16]);
        let mut at = 0;
        let mut outer_scales = self.outer.as_chunks_mut::<2>().0.iter_mut();
        for row in self.first..self.first + self.count {
            for block in self.from.row(row).chunks_exact(size) {
                unpack(
                    block,
                    &mut block_codes[..elements],
                    &mut block_scales[..groups],
                    &mut block_minimums[..groups],
                );
                let (scales, minimums) = (&block_scales[..groups], &block_minimums[..groups]);
                let mut finite = scales.iter().chain(minimums).all(|x| x.is_finite());
                if let Some((place, into)) = outer.zip(outer_scales.next()) {
                    *into = [block[place], block[place + 1]];
                    finite &= f16::from_le_bytes(*into).is_finite();
                }
                if !finite {
                    return Err(format!("has a scale that is no number in row {row}"));
                }
                pack(&block_codes[..elements], bits, &mut self.codes[at * group * bits / 8..]);
                for (scale, into) in
                    scales.iter().zip(self.scales[at * dtype.size()..].chunks_exact_mut(dtype.size()))
                {
                    match dtype {
                        Dtype::F16 => into.copy_from_slice(&f16::from_f32(*scale).to_le_bytes()),
                        _ => into.copy_from_slice(&scale.to_le_bytes()),
                    }
                }
                if has_minimums {
                    self.minimums[at..at + groups].copy_from_slice(minimums);
                }
                at += groups;
            }
        }
        Ok(())
    }

    /// Blocks whose codes, so many bytes, only change places, behind a scale as it runs.
    fn repack(self, repack: Repack, length: usize, scales: Dtype) -> Result<(), String> {
        let (size, scale_size) = (self.kind.bytes, scales.size());
        let mut into = self.codes.chunks_exact_mut(length).zip(self.scales.chunks_exact_mut(scale_size));
        for row in self.first..self.first + self.count {
            for (block, (codes, scale)) in self.from.row(row).chunks_exact(size).zip(&mut into) {
                scale.copy_from_slice(&block[..scale_size]);
                if !is_number(scale) {
                    return Err(format!("has a scale that is no number in row {row}"));
                }
                repack(block, codes);
            }
        }
        Ok(())
    }
}

/// Whether a scale in half precision, or a power of two by its exponent, is one that makes finite weights.
fn is_number(scale: &[u8]) -> bool {
    match *scale {
        [low, high] => f16::from_le_bytes([low, high]).is_finite(),
        [exponent] => exponent <= E8M0_MOST,
        _ => true,
    }
}

/// Codes side by side, the first in the low bits of a byte.
fn pack(codes: &[u8], bits: usize, into: &mut [u8]) {
    match bits {
        8 => into[..codes.len()].copy_from_slice(codes),
        4 => {
            for (eight, bytes) in codes.as_chunks::<8>().0.iter().zip(into.as_chunks_mut::<4>().0) {
                *bytes = neighbours(u64::from_le_bytes(*eight));
            }
        }
        _ => {
            for (four, byte) in codes.chunks_exact(4).zip(into) {
                *byte = four[0] | four[1] << 2 | four[2] << 4 | four[3] << 6;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of a type in an order.
    fn blocks(
        kind: &Kind,
        parts: &[&[u8]],
        shape: [usize; 2],
        order: &RowOrder,
    ) -> Result<BlockQuantized, String> {
        let length = shape[1] / kind.elements * kind.bytes;
        unpack(kind, &Rows { parts: parts.to_vec(), length, order }, shape)
    }

    /// One row of a type, dequantized.
    fn row(kind: u32, bytes: &[u8]) -> Vec<f32> {
        let kind = Kind::of(kind).unwrap();
        let columns = bytes.len() / kind.bytes * kind.elements;
        blocks(kind, &[bytes], [1, columns], &RowOrder::Same).unwrap().dequantize().unwrap()
    }

    const HALF: [u8; 2] = [0x00, 0x38];

    #[test]
    fn q4_0_holds_the_first_half_in_low_nibbles() {
        let values = row(2, &[&HALF[..], &(0x80..=0x8f).collect::<Vec<u8>>()].concat());
        let first: Vec<f32> = (-8..8).map(|q| q as f32 * 0.5).collect();
        assert_eq!((&values[..16], &values[16..]), (first.as_slice(), &[0.0; 16][..]));
    }

    #[test]
    fn q8_0_is_signed() {
        let mut block = [&HALF[..], &[0; 32]].concat();
        block[2..6].copy_from_slice(&[0x01, 0xff, 0x7f, 0x80]);
        assert_eq!(row(8, &block)[..5], [0.5, -0.5, 63.5, -64.0, 0.0]);
    }

    #[test]
    fn mxfp4_is_a_table_by_an_exponent() {
        let block = [&[128, 0x10, 0x32, 0x54, 0xf7][..], &[0; 12]].concat();
        let values = row(39, &block);
        assert_eq!(
            (&values[..4], &values[16..20]),
            (&[0.0, 2.0, 4.0, 12.0][..], &[1.0, 3.0, 6.0, -12.0][..])
        );
        // The least exponents are subnormal scales.
        let least = row(39, &[&[0, 0x01][..], &[0; 15]].concat());
        assert_eq!(least[0], f32::from_bits(1 << 21));
    }

    #[test]
    fn q5_has_its_fifth_bit_apart() {
        // d = .5, m = -1; bits of elements 0 and 31; nibbles 1 and 2.
        let bits = 0x8000_0001_u32.to_le_bytes();
        let mut nibbles = [0; 16];
        (nibbles[0], nibbles[15]) = (0x01, 0x20);
        let values = row(6, &[&HALF[..], &bits, &nibbles].concat());
        assert_eq!((values[0], values[1], values[31]), (0.5, -8.0, 1.0));
        let values = row(7, &[&HALF[..], &[0x00, 0xbc], &bits, &nibbles].concat());
        assert_eq!((values[0], values[1], values[31]), (7.5, -1.0, 8.0));
    }

    #[test]
    fn q4_k_has_scales_and_minimums_of_six_bits() {
        let mut block = vec![0; 144];
        block[..2].copy_from_slice(&HALF);
        block[2..4].copy_from_slice(&[0x00, 0x3c]);
        // Group 0: scale 63, minimum 1. Group 4: scale 3 + (2 << 4), minimum 4 + (3 << 4).
        (block[4], block[8], block[12]) = (63 | 2 << 6, 1 | 3 << 6, 3 | 4 << 4);
        (block[16], block[16 + 64]) = (0x0f, 0x02);
        let values = row(12, &block);
        assert_eq!((values[0], values[1]), (0.5 * 63.0 * 15.0 - 1.0, -1.0));
        assert_eq!((values[128], values[129]), (0.5 * 35.0 * 2.0 - 52.0, -52.0));
    }

    #[test]
    fn ternary_codes_are_digits() {
        // 0xff: all digits 2; values 1 times d.
        let block = [&[0xff; 52][..], &HALF].concat();
        assert!(row(34, &block).iter().all(|x| *x == 0.5));
        let block = [&[0b1110_0100; 64][..], &HALF].concat();
        let values = row(35, &block);
        assert_eq!((values[0], values[32], values[64], values[96]), (-0.5, 0.0, 0.5, 1.0));
    }

    #[test]
    fn scales_that_are_no_numbers_are_refused() {
        for kind in Kind::quantized() {
            let bytes = vec![0xff; 2 * kind.bytes];
            let problem = blocks(kind, &[&bytes], [2, kind.elements], &RowOrder::Same).unwrap_err();
            assert!(problem.contains("no number in row 0"), "{}", kind.name);
        }
    }

    fn places(order: &RowOrder, rows: usize) -> Vec<(usize, usize)> {
        (0..rows).map(|row| order.place(row)).collect()
    }

    fn of_one(places: Vec<(usize, usize)>) -> Vec<usize> {
        places.into_iter().map(|(part, row)| if part == 0 { row } else { usize::MAX }).collect()
    }

    #[test]
    fn rows_come_back_in_the_checkpoints_order() {
        // Two heads of four rows: pairs of neighbours in the file, halves in the checkpoint.
        let halves = RowOrder::halves(2, 8).unwrap();
        assert_eq!(of_one(places(&halves, 8)), [0, 2, 1, 3, 4, 6, 5, 7]);
        // Two heads of one row: q0 q1 k0 k1 v0 v1 in the file, q0 k0 v0 q1 k1 v1 in the checkpoint.
        let split = RowOrder::grouped(2, 1, 6).unwrap();
        assert_eq!(of_one(places(&split, 6)), [0, 2, 4, 1, 3, 5]);
        let bytes = Rows { parts: vec![&[0, 1, 2, 3, 4, 5]], length: 1, order: &split }.bytes();
        assert_eq!(bytes, [0, 2, 4, 1, 3, 5]);
        // Two groups of two query heads of two rows: q0 q1 q2 q3 k0 k1 v0 v1 in the file.
        let grouped = RowOrder::grouped(2, 2, 16).unwrap();
        let stored: Vec<usize> = of_one(places(&grouped, 16)).into_iter().step_by(2).collect();
        assert_eq!(stored, [0, 2, 8, 12, 4, 6, 10, 14]);
        for misfit in [RowOrder::halves(2, 7), RowOrder::halves(0, 8), RowOrder::halves(usize::MAX, 8)] {
            assert_eq!(misfit, None);
        }
        assert_eq!((RowOrder::grouped(2, 1, 7), RowOrder::grouped(0, 1, 6)), (None, None));
        let kind = Kind::of(8).unwrap();
        let rows: Vec<u8> = (0..8).flat_map(|row| [&HALF[..], &[row; 32]].concat()).collect();
        let values = blocks(kind, &[&rows], [8, 32], &halves).unwrap().dequantize().unwrap();
        let first: Vec<usize> = values.chunks(32).map(|row| (row[0] * 2.0) as usize).collect();
        assert_eq!(first, [0, 2, 1, 3, 4, 6, 5, 7]);
    }

    #[test]
    fn rows_of_several_tensors_become_one() {
        let expected = [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2), (0, 3), (1, 3)];
        assert_eq!(places(&RowOrder::in_turn(2), 8), expected);
        // Two items: a row of the first tensor, then two of the second.
        let behind = RowOrder::behind(&[1, 2]);
        assert_eq!(places(&behind, 6), [(0, 0), (1, 0), (1, 1), (0, 1), (1, 2), (1, 3)]);
        let kind = Kind::of(8).unwrap();
        let [first, second] = [[0, 3].as_slice(), &[1, 2, 4, 5]]
            .map(|rows| rows.iter().flat_map(|row| [&HALF[..], &[*row; 32]].concat()).collect::<Vec<u8>>());
        let values = blocks(kind, &[&first, &second], [6, 32], &behind).unwrap().dequantize().unwrap();
        assert_eq!(values.chunks(32).map(|row| row[0]).collect::<Vec<_>>(), [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]);
    }

    #[test]
    fn matrices_are_turned_one_by_one() {
        // Two matrices [2, 3] of elements of one byte, and one of two bytes.
        assert_eq!(
            turned(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], [2, 3], 1),
            [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]
        );
        assert_eq!(turned(&[0, 1, 2, 3, 4, 5, 6, 7], [2, 2], 2), [0, 1, 4, 5, 2, 3, 6, 7]);
    }

    #[test]
    fn codes_that_only_change_places_are_what_unpacking_gives() {
        for id in [2, 8, 20, 39] {
            let kind = Kind::of(id).unwrap();
            let Form::Blocks { bits, repack: Some(repack), unpack, .. } = kind.form else {
                panic!("{} is repacked", kind.name)
            };
            let block: Vec<u8> = (0..kind.bytes).map(|i| (i * 37 % 251) as u8).collect();
            let (mut codes, mut packed, mut direct) = ([0; 32], vec![0; 4 * bits], vec![0; 4 * bits]);
            unpack(&block, &mut codes, &mut [0.0], &mut []);
            pack(&codes, bits, &mut packed);
            repack(&block, &mut direct);
            assert_eq!(direct, packed, "{}", kind.name);
        }
    }

    #[test]
    fn threads_give_what_one_gives() {
        let kind = Kind::of(14).unwrap();
        let bytes: Vec<u8> = (0..kind.bytes * 512).map(|i| (i % 97) as u8).collect();
        let many = blocks(kind, &[&bytes], [512, 256], &RowOrder::Same).unwrap().dequantize().unwrap();
        for (row, values) in many.chunks(256).enumerate() {
            let bytes = &bytes[row * kind.bytes..(row + 1) * kind.bytes];
            let one = blocks(kind, &[bytes], [1, 256], &RowOrder::Same).unwrap();
            assert_eq!(one.dequantize().unwrap(), values);
        }
    }
}
