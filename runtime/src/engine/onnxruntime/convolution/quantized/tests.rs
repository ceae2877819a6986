use super::super::super::product::testing::numbers;
use super::super::product::Epilogue;
use super::product::ROW;
use super::tile::{ROWS, Range, Scales, Steps, kernels};
use super::*;
use crate::Dtype;
use crate::quantization::panels::Panels;
use crate::quantization::quantize_by_row;
use crate::weights::{Bytes, WeightData};

/// A convolution, and how it is stored.
struct Made {
    geometry: Geometry,
    /// What the codes stand for, `[out, channels / groups, ..kernel]`.
    values: Vec<f32>,
    panels: Panels,
    silu: bool,
}

impl Made {
    fn of(x: &[i64], weight: &[i64], form: [&[i64]; 3], groups: i64, values: &[f32]) -> Self {
        let [strides, pads, dilations] = form;
        let geometry = Geometry::new(x, weight, strides, pads, dilations, groups).unwrap();
        let shape: Vec<usize> = weight.iter().map(|length| *length as usize).collect();
        let window = [shape[0], shape[1], shape[2..].iter().product()];
        let stored = WeightData {
            dtype: Dtype::F32,
            shape,
            stored_as: "conv.weight".to_owned(),
            bytes: Bytes::memory(Dtype::F32.encoded(values)),
        };
        let blocks = quantize_by_row(&stored).unwrap();
        let panels = Panels::of(&blocks, window, groups as usize).unwrap();
        Self { geometry, values: blocks.dequantize().unwrap(), panels, silu: false }
    }

    fn results(&self) -> usize {
        self.geometry.batch * self.geometry.out * self.geometry.groups * self.geometry.places()
    }

    fn run(&self, kernel: tile::Kernel, x: &[f32], epilogue: &Epilogue<'_>) -> Vec<f32> {
        let mut result = vec![f32::NAN; self.results()];
        let Panels { codes, scales, sums } = &self.panels;
        let weight = Weight::new(&self.geometry, codes, scales, sums).unwrap();
        let each = |parts: usize, task: super::super::windows::Task<'_>| {
            (0..parts).rev().for_each(task);
            Ok::<_, ()>(())
        };
        by(kernel, &self.geometry, x, &weight, Follow { epilogue, silu: self.silu }, &mut result, each)
            .unwrap();
        result
    }

    /// The sums in double precision, of numbers as they are rounded.
    fn wanted(&self, x: &[f32]) -> Vec<f64> {
        let geometry = &self.geometry;
        let plane: usize = geometry.lengths.iter().product();
        let mut all = vec![];
        for x in x.chunks(plane * geometry.channels * geometry.groups) {
            let x = rounded(x);
            for channel in 0..geometry.out * geometry.groups {
                all.extend((0..geometry.places()).map(|position| self.sum(&x, channel, position)));
            }
        }
        all
    }

    fn sum(&self, x: &[f64], channel: usize, position: usize) -> f64 {
        let it = &self.geometry;
        let [_, high, wide] = it.kernel;
        let places: usize = it.kernel.iter().product();
        let weight = &self.values[channel * it.channels * places..][..it.channels * places];
        let plane: usize = it.lengths.iter().product();
        let [_, rows, columns] = it.positions;
        let at = [position / (rows * columns), position / columns % rows, position % columns];
        let mut sum = 0.0;
        for (place, weight) in weight.iter().enumerate() {
            let (input, place) = (channel / it.out * it.channels + place / places, place % places);
            let offset = [place / (high * wide), place / wide % high, place % wide];
            let index = (0..3).try_fold(0, |index, axis| {
                let at = at[axis] * it.strides[axis] + offset[axis] * it.dilations[axis];
                let at = at.checked_sub(it.pads[axis].0).filter(|at| *at < it.lengths[axis])?;
                Some(index * it.lengths[axis] + at)
            });
            sum += index.map_or(0.0, |index| x[input * plane + index] * f64::from(*weight));
        }
        sum
    }
}

/// What an image's numbers are rounded to.
fn rounded(x: &[f32]) -> Vec<f64> {
    let (least, greatest) = x.iter().fold((0.0_f32, 0.0_f32), |(a, b), x| (a.min(*x), b.max(*x)));
    let (steps, scale) = codes::steps(Range { least, greatest, finite: true });
    let code = |x: &f32| (x * steps.factor + steps.zero).clamp(0.0, 255.0).round_ties_even() - steps.zero;
    x.iter().map(|x| f64::from(code(x)) * f64::from(scale)).collect()
}

const PLAIN: Epilogue<'_> = Epilogue { bias: None, normed: None, addend: None, relu: false };

fn check(x: &[i64], weight: &[i64], form: [&[i64]; 3], groups: i64) {
    let count = |shape: &[i64]| shape.iter().product::<i64>() as usize;
    let made = Made::of(x, weight, form, groups, &numbers(count(weight), 2));
    let numbers: Vec<f32> = numbers(count(x), 1).into_iter().map(|x| x + 0.25).collect();
    let wanted = made.wanted(&numbers);
    for (index, kernel) in kernels().into_iter().enumerate() {
        let got = made.run(kernel, &numbers, &PLAIN);
        for (at, (got, want)) in got.iter().zip(&wanted).enumerate() {
            assert!(
                (f64::from(*got) - want).abs() < 1e-3,
                "kernel {index}, {x:?} {weight:?} at {at}: {got} for {want}"
            );
        }
    }
}

#[test]
fn strides_padding_dilations_and_groups() {
    // One axis, two and three; channels that fours divide and that they do not, and panels of less than 16 and of several.
    check(&[1, 16, 40], &[20, 16, 3], [&[1], &[1, 1], &[1]], 1);
    check(&[2, 6, 9, 11], &[5, 6, 3, 3], [&[2, 1], &[1, 0, 2, 1], &[1, 2]], 1);
    check(&[1, 12, 7, 7], &[36, 6, 3, 3], [&[1, 1], &[1, 1, 1, 1], &[1, 1]], 2);
    check(&[1, 5, 4, 5, 6], &[17, 5, 2, 3, 2], [&[1, 2, 1], &[1, 0, 0, 0, 1, 1], &[1, 1, 2]], 1);
    check(&[1, 16, 3, 3], &[160, 16, 3, 3], [&[1, 1], &[0; 4], &[1, 1]], 1);
    // Windows that are pixels, of which there are more than are rounded at a time, and strides over them.
    check(&[2, 24, 20, 19], &[40, 24, 1, 1], [&[1, 1], &[0; 4], &[1, 1]], 1);
    check(&[1, 24, 20, 19], &[40, 24, 1, 1], [&[2, 2], &[0; 4], &[1, 1]], 1);
    check(&[1, 130, 6, 6], &[300, 130, 1, 1], [&[1, 1], &[0; 4], &[1, 1]], 1);
    check(&[1, 32, 9], &[32, 16, 1], [&[1], &[0, 0], &[1]], 2);
}

#[test]
fn numbers_by_hand() {
    // A window of two over three pixels: steps of one from -55 to 200, weights of one and minus a half in steps of a 127th.
    let made = Made::of(&[1, 1, 3], &[1, 1, 2], [&[1], &[0, 0], &[1]], 1, &[127.0, -64.0]);
    for kernel in kernels() {
        let got = made.run(kernel, &[-55.0, 200.0, 7.4], &PLAIN);
        assert_eq!(got, [-55.0 * 127.0 - 200.0 * 64.0, 200.0 * 127.0 - 7.0 * 64.0]);
    }
}

#[test]
fn what_follows_is_by_channel_and_place() {
    let made = Made::of(&[1, 1, 2], &[2, 1, 1], [&[1], &[0, 0], &[1]], 1, &[127.0, 254.0]);
    let (bias, addend) = ([10.0, -20.0], [0.5, 1.0, 2.0, -4e5]);
    let normed = Some(vec![(2.0, 1.0), (1.0, 0.0)]);
    let epilogue = Epilogue { bias: Some(&bias), normed, addend: Some(&addend), relu: true };
    for kernel in kernels() {
        let got = made.run(kernel, &[255.0, 0.0], &epilogue);
        assert_eq!(got, [255.0 * 254.0 + 20.0 + 1.0 + 0.5, 22.0, 255.0 * 254.0 - 20.0 + 2.0, 0.0]);
    }
}

#[test]
fn the_sigmoid_comes_behind_the_bias() {
    let made = Made::of(&[1, 1, 2], &[1, 1, 1], [&[1], &[0, 0], &[1]], 1, &[127.0]);
    let made = Made { silu: true, ..made };
    let epilogue = Epilogue { bias: Some(&[-127.0 * 254.0]), ..PLAIN };
    for kernel in kernels() {
        let got = made.run(kernel, &[255.0, 254.0], &epilogue);
        assert_eq!(got, [127.0, 0.0]);
        let mut numbers = [-100.0, -1.0, 0.5, 3.0, 0.0];
        (kernel.silu)(&mut numbers);
        for (got, x) in numbers.iter().zip([-100.0_f64, -1.0, 0.5, 3.0, 0.0]) {
            assert!((f64::from(*got) - x / (1.0 + (-x).exp())).abs() < 1e-6, "{got} for {x}");
        }
    }
}

#[test]
fn what_is_no_finite_number_is_none_in_all_of_its_image() {
    let made = Made::of(&[2, 1, 2], &[1, 1, 1], [&[1], &[0, 0], &[1]], 1, &[127.0]);
    for kernel in kernels() {
        let got = made.run(kernel, &[f32::NAN, 1.0, 255.0, 1.0], &PLAIN);
        assert!(got[..2].iter().all(|x| x.is_nan()), "{got:?}");
        assert_eq!(got[2..], [255.0 * 127.0, 127.0]);
    }
}

#[test]
fn nothing_to_convolve_is_nothing() {
    let made = Made::of(&[1, 16, 4], &[16, 16, 1], [&[1], &[0, 0], &[1]], 1, &[0.0; 256]);
    assert_eq!(made.run(tile::PORTABLE, &numbers(64, 1), &PLAIN), [0.0; 64]);
    assert_eq!(made.run(tile::PORTABLE, &[0.0; 64], &PLAIN), [0.0; 64]);
    let none = Made::of(&[0, 16, 4], &[16, 16, 1], [&[1], &[0, 0], &[1]], 1, &[0.0; 256]);
    assert_eq!(none.run(tile::PORTABLE, &[], &PLAIN), [0.0; 0]);
}

#[test]
fn a_weight_of_another_size_is_refused_by_its_numbers() {
    let geometry = Geometry::new(&[1, 16, 4], &[16, 16, 1], &[], &[], &[], 1).unwrap();
    let problem = Weight::new(&geometry, &[0; 3], &[1.0; 16], &[0.0; 16]).err().unwrap();
    assert_eq!(
        problem,
        "a convolution of 16 channels in 1 groups by windows of 64 got 3 codes, 16 scales and 16 sums"
    );
}

#[test]
fn all_kernels_give_the_same() {
    let all = kernels();
    let bytes = |count: usize, seed| numbers(count, seed).into_iter().map(|x| (x * 128.0) as i32 as u8);
    for (depth, stride, panels) in [(64, 64, 1), (128, 130, 2), (192, 192, 3), (576, 640, 8)] {
        let windows: Vec<u8> = bytes((ROWS - 1) * stride + depth, 1).collect();
        let codes: Vec<u8> = bytes(panels * depth * 16, 2).collect();
        let of = |kernel: &tile::Kernel| {
            let mut sums = vec![[[0; 16]; ROWS]; 8];
            (kernel.products)(&windows, stride, depth, &codes, &mut sums);
            sums.truncate(panels);
            sums
        };
        let want = of(&all[0]);
        assert!(all.iter().all(|kernel| of(kernel) == want), "{depth} {panels}");
    }
    let mut sums = [[0; 16]; 16];
    sums.as_flattened_mut().iter_mut().zip(0..).for_each(|(sum, at)| *sum = at * at - 300);
    let mut scales = Scales::default();
    for at in 0..16 {
        scales.zeros[at] = at as i32 * 3;
        (scales.factors[at], scales.summands[at]) = (0.25 * at as f32, at as f32 - 4.0);
    }
    let x: Vec<f32> = numbers(4 * 150, 3).into_iter().map(|x| 6.0 * x).collect();
    let steps = Steps { factor: 25.5, zero: 128.0 };
    let of = |kernel: &tile::Kernel| {
        let (mut scaled, mut codes) = ([[0.0; ROW]; 16], vec![0; 150 * 8]);
        (kernel.scaled)(&sums, &scales, &mut scaled, 16);
        (kernel.rounded)(&x, 150, 4, steps, &mut codes, 8);
        (scaled, codes, (kernel.range)(&x))
    };
    let want = of(&all[0]);
    assert_eq!(want.0[1][16 + 2], 0.25 * (33.0 * 33.0 - 300.0 - 3.0) - 3.0);
    assert!(all.iter().all(|kernel| of(kernel) == want));
    assert!(!(all[0].range)(&[1.0, f32::INFINITY]).finite);
}
