//! Every kernel that this processor has gives what the plain ones give, and these what weights in single precision give.

use std::convert::Infallible;

use half::f16;

use super::super::product::testing::numbers;
use super::*;
use crate::codebook::Codebook;

/// A weight and what its codes stand for.
struct Made<S> {
    codes: Vec<u8>,
    scales: Vec<S>,
    zeros: Vec<u8>,
    offsets: Vec<f32>,
    shape: [usize; 2],
    bits: usize,
    group: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Middle,
    Codes,
    Offsets,
    Codebook(Codebook),
}

fn bytes(count: usize, seed: u32) -> Vec<u8> {
    numbers(count, seed).into_iter().map(|x| (x * 128.0) as i8 as u8).collect()
}

impl<S: Stored> Made<S> {
    fn new([out, width]: [usize; 2], bits: usize, group: usize, of: fn(f32) -> S) -> Self {
        let blocks = width.div_ceil(group);
        Self {
            codes: bytes(out * blocks * group * bits / 8, 5),
            scales: numbers(out * blocks, 6).into_iter().map(|x| of(x / 64.0)).collect(),
            zeros: bytes(out * (blocks * bits).div_ceil(8), 7),
            offsets: numbers(out * blocks, 8),
            shape: [out, width],
            bits,
            group,
        }
    }

    fn weight(&self, kind: Kind) -> Weight<'_, S> {
        let zeros = match kind {
            Kind::Middle => Zeros::Middle,
            Kind::Codes => Zeros::Codes(&self.zeros),
            Kind::Offsets => Zeros::Offsets(&self.offsets),
            Kind::Codebook(book) => Zeros::Codebook(book),
        };
        let (bits, group) = (self.bits, self.group);
        Weight {
            codes: &self.codes,
            scales: &self.scales,
            outer: None,
            zeros,
            width: self.shape[1],
            bits,
            group,
        }
    }

    /// In double precision, column by column as they lie.
    fn dequantized(&self, kind: Kind) -> Vec<f64> {
        let [out, width] = self.shape;
        let (blocks, per_byte) = (width.div_ceil(self.group), 8 / self.bits);
        let code = |bytes: &[u8], at: usize| {
            f64::from(bytes[at / per_byte] >> (at % per_byte * self.bits) & ((1_u16 << self.bits) - 1) as u8)
        };
        let zero_bytes = (blocks * self.bits).div_ceil(8);
        let middle = f64::from(1_u16 << (self.bits - 1));
        let mut all = vec![];
        for row in 0..out {
            for column in 0..width {
                let block = row * blocks + column / self.group;
                let q = code(&self.codes, block * self.group + column % self.group);
                let s = f64::from(self.scales[block].single());
                let zeros = &self.zeros[row * zero_bytes..];
                all.push(match kind {
                    Kind::Middle => (q - middle) * s,
                    Kind::Codes => (q - code(zeros, column / self.group)) * s,
                    Kind::Offsets => (q - middle) * s + f64::from(self.offsets[block]),
                    Kind::Codebook(book) => f64::from(book.value(q as u8)) * s,
                });
            }
        }
        all
    }
}

fn product<S: Stored>(
    kernels: Kernels<S>,
    x: &[f32],
    weight: Weight<'_, S>,
    bias: Option<&[f32]>,
) -> Vec<f32> {
    let mut result = vec![f32::NAN; x.len() / weight.width * weight.out()];
    let each = |count: usize, row: &(dyn Fn(usize) + Sync)| {
        (0..count).rev().for_each(row);
        Ok::<_, Infallible>(())
    };
    let product = Product::by(kernels, x, weight, bias, &mut result, each).unwrap();
    (0..product.blocks()).rev().for_each(|block| product.compute(block));
    drop(product);
    result
}

/// How far numbers are from those wanted, in root mean squares of these.
fn distance(got: &[f32], wanted: &[f64], usual: f64) -> f64 {
    let far = got.iter().zip(wanted).map(|(got, wanted)| (f64::from(*got) - wanted).powi(2)).sum::<f64>();
    (far / got.len() as f64).sqrt() / usual
}

fn root_mean_square(numbers: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = numbers.len() as f64;
    (numbers.map(|x| x * x).sum::<f64>() / count).sqrt()
}

/// The kernels that this processor has beside the plain ones.
fn others<S: Stored>() -> Vec<(&'static str, Kernels<S>)> {
    let mut all = vec![];
    #[cfg(target_arch = "x86_64")]
    {
        if has_avx512() {
            all.push(("avx512", avx512()));
        }
        if has_avx2() && std::arch::is_x86_feature_detected!("avxvnni") {
            all.push(("avx_vnni", avx_vnni()));
        }
        if has_avx2() {
            all.push(("avx2", avx2()));
        }
    }
    all
}

fn check<S: Stored>(rows: usize, shape: [usize; 2], bits: usize, group: usize, of: fn(f32) -> S) {
    let made = Made::new(shape, bits, group, of);
    let x = numbers(rows * shape[1], 1);
    let bias = numbers(shape[0], 3);
    let books = Codebook::ALL.into_iter().filter(|_| bits == 4).map(Kind::Codebook);
    let kinds = [Kind::Middle, Kind::Codes, Kind::Offsets].into_iter().chain(books);
    for kind in kinds.filter(|kind| made.weight(*kind).holds(shape[0])) {
        let place = format!("{rows} x {shape:?}, {bits} bits by {group}, {kind:?}, {:?}", S::DTYPE);
        let weight = made.weight(kind);
        let dequantized = made.dequantized(kind);
        let wanted = x.chunks(shape[1]).flat_map(|x| {
            dequantized.chunks(shape[1]).zip(&bias).map(|(weight, bias)| {
                x.iter().zip(weight).map(|(x, w)| f64::from(*x) * w).sum::<f64>() + f64::from(*bias)
            })
        });
        let wanted: Vec<f64> = wanted.collect();
        let usual = root_mean_square(x.iter().map(|x| f64::from(*x)))
            * root_mean_square(dequantized.iter().copied())
            * (shape[1] as f64).sqrt();
        let plain = product(plain(), &x, weight, Some(&bias));
        let far = distance(&plain, &wanted, usual);
        // Of few results, chance makes more.
        let most = 5e-3 * (1.0 + 2.0 / (wanted.len() as f64).sqrt());
        assert!(far < most, "{place}: {far}");
        let plain: Vec<f64> = plain.into_iter().map(f64::from).collect();
        for (name, kernels) in others() {
            let got = product(kernels, &x, weight, Some(&bias));
            let far = distance(&got, &plain, usual);
            assert!(far < 1e-6, "{name} {place}: {far}");
        }
    }
}

#[test]
fn every_group_zero_and_number_of_rows() {
    for bits in [2, 4, 8] {
        for group in [16, 32, 64, 128, 256] {
            for rows in [1, 2, 3, 4, 5, 13] {
                check(rows, [37, 320], bits, group, f16::from_f32);
            }
        }
    }
}

#[test]
fn widths_that_blocks_and_registers_divide_and_that_they_do_not() {
    for bits in [2, 4, 8] {
        for (rows, out, width) in
            [(1, 1, 16), (2, 3, 37), (1, 70, 1000), (7, 33, 1000), (3, 5, 2048), (9, 130, 1100), (5, 2, 5)]
        {
            check(rows, [out, width], bits, 32, |x| x);
            check(rows, [out, width], bits, 16, f16::from_f32);
        }
    }
}

#[test]
fn products_by_hand() {
    // Codes 1 and 15 of 4 bits, the first in the low bits: -7 and 7 times a half.
    let mut codes = vec![0x88; 8];
    codes[0] = 0xf1;
    let weight = Weight {
        codes: &codes,
        scales: &[0.5_f32],
        outer: None,
        zeros: Zeros::Middle,
        width: 16,
        bits: 4,
        group: 16,
    };
    let mut x = [0.0; 16];
    (x[0], x[1]) = (127.0, 1.0);
    assert_eq!(product(plain(), &x, weight, None), [(-7.0 * 127.0 + 7.0) / 2.0]);
    let zeros = Weight { zeros: Zeros::Codes(&[1]), ..weight };
    assert_eq!(product(plain(), &x, zeros, Some(&[1.0])), [14.0 / 2.0 + 1.0]);
    let offsets = Weight { zeros: Zeros::Offsets(&[0.25]), ..weight };
    assert_eq!(product(plain(), &x, offsets, None), [-441.0 + 32.0]);
}

#[test]
fn places_in_a_codebook_with_scales_of_any_type() {
    // E8M0 codes around one.
    let power = |x: f32| (120.0 + x * 320.0) as u8;
    for (rows, out, width) in
        [(1, 9, 32), (2, 3, 37), (1, 70, 1000), (4, 5, 2880), (7, 33, 1000), (9, 130, 1100)]
    {
        check(rows, [out, width], 4, 32, power);
        check(rows, [out, width], 4, 32, f16::from_f32);
    }
}

#[test]
fn products_with_a_codebook_by_hand() {
    // Codes 1 and 15, the first in the low bits, in blocks that begin with them: ½ and -6 by 2, then by ¼.
    let mut codes = vec![0; 32];
    (codes[0], codes[16]) = (0xf1, 0xf1);
    let zeros = Zeros::Codebook(Codebook::E2m1);
    let weight =
        Weight { codes: &codes, scales: &[128_u8, 125], outer: None, zeros, width: 64, bits: 4, group: 32 };
    let mut x = [0.0; 64];
    (x[0], x[1], x[32], x[33]) = (127.0, 1.0, 4.0, 127.0);
    let wanted = (127.0 / 2.0 - 6.0) * 2.0 + (4.0 / 2.0 - 127.0 * 6.0) / 4.0;
    // -104 and 113 of IQ4_NL, and -127 for all others, whose x are 0.
    let zeros = Zeros::Codebook(Codebook::Iq4Nl);
    let scales = &[f16::ONE, f16::from_f32(0.25)];
    let iq4 = Weight { codes: &codes, scales, outer: None, zeros, width: 64, bits: 4, group: 32 };
    let of_iq4 = 113.0 - 104.0 * 127.0 + (113.0 * 127.0 - 104.0 * 4.0) / 4.0;
    for rows in [1, 6] {
        for (name, kernels) in others().into_iter().chain([("plain", plain())]) {
            assert_eq!(product(kernels, &x.repeat(rows), weight, None), vec![wanted; rows], "{name}");
        }
        for (name, kernels) in others().into_iter().chain([("plain", plain())]) {
            assert_eq!(product(kernels, &x.repeat(rows), iq4, None), vec![of_iq4; rows], "{name}");
        }
    }
}

#[test]
fn outer_scales_are_of_eight_blocks() {
    for (rows, out, width) in
        [(1, 9, 256), (2, 3, 768), (1, 7, 2816), (3, 5, 320), (7, 33, 1024), (9, 70, 1536)]
    {
        let made = Made::new([out, width], 4, 32, f16::from_f32);
        let outer: Vec<f16> =
            (0..out * width.div_ceil(256)).map(|i| f16::from_f32((i % 7) as f32 - 2.5)).collect();
        let x = numbers(rows * width, 1);
        let nested = Weight { outer: Some(&outer), ..made.weight(Kind::Codebook(Codebook::Iq4Nl)) };
        // In double precision, with the product of both scales.
        let place = |block: usize| block / (width / 32) * width.div_ceil(256) + block % (width / 32) / 8;
        let flat = made.dequantized(Kind::Codebook(Codebook::Iq4Nl));
        let flat: Vec<f64> =
            flat.iter().enumerate().map(|(i, w)| w * f64::from(outer[place(i / 32)].single())).collect();
        let wanted = x.chunks(width).flat_map(|x| {
            flat.chunks(width).map(|w| x.iter().zip(w).map(|(x, w)| f64::from(*x) * w).sum::<f64>())
        });
        let wanted: Vec<f64> = wanted.collect();
        let usual = root_mean_square(wanted.iter().copied());
        assert!(nested.holds(out) && !Weight { outer: Some(&outer[1..]), ..nested }.holds(out));
        for (name, kernels) in others().into_iter().chain([("plain", plain())]) {
            let got = product(kernels, &x, nested, None);
            let far = distance(&got, &wanted, usual);
            assert!(far < 1.5e-2, "{name}, {rows} x [{out}, {width}]: {far}");
            let plain: Vec<f64> = product(plain(), &x, nested, None).into_iter().map(f64::from).collect();
            assert!(distance(&got, &plain, usual) < 1e-6, "{name}, {rows} x [{out}, {width}]");
        }
    }
}

#[test]
fn nothing_stands_for_no_numbers_and_what_is_none_stays() {
    let weight = Weight {
        codes: &[0x88; 8],
        scales: &[1.0_f32],
        outer: None,
        zeros: Zeros::Middle,
        width: 16,
        bits: 4,
        group: 16,
    };
    for (name, kernels) in others().into_iter().chain([("plain", plain())]) {
        assert_eq!(product(kernels, &[0.0; 16], weight, None), [0.0], "{name}");
        assert_eq!(product(kernels, &[1e-42; 16], weight, None), [0.0], "{name}");
        assert!(product(kernels, &[f32::NAN; 16], weight, None)[0].is_nan(), "{name}");
        assert!(product(kernels, &[], weight, None).is_empty(), "{name}");
    }
}
