//! Tensors of quantized types into the form that kernels run, on all cores.

use std::num::NonZero;
use std::thread;

use half::f16;

use super::rows::Rows;
use crate::Dtype;
use crate::gguf::types::{Form, Kind, Repack, neighbours};
use crate::small_floats::E8M0_MOST;
use crate::weights::{BlockQuantized, Bytes, Zeros, pages};

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
    let mut codes = pages::zeros(rows * columns * bits / 8);
    let mut scales = pages::zeros(rows * groups * scale_dtype.size());
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
        codes: codes.into(),
        scale_dtype,
        scales: scales.into(),
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
pub(super) mod tests {
    use super::super::rows::RowOrder;
    use super::*;

    /// Rows of a type in an order.
    pub fn blocks(
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

    pub const HALF: [u8; 2] = [0x00, 0x38];

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
