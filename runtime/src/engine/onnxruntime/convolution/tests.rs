//! Convolutions of every form give what the sum of their products in double precision is.

use std::convert::Infallible;

use half::{bf16, f16};

use super::super::panel::{PORTABLE, kernel, kernels, pairs};
use super::super::product::testing::numbers;
use super::super::stored::rounded;
use super::windows::Task;
use super::*;
use crate::graph::Dtype;

struct Case {
    x: Vec<i64>,
    weight: Vec<i64>,
    strides: Vec<i64>,
    pads: Vec<i64>,
    dilations: Vec<i64>,
    groups: i64,
}

impl Case {
    fn new(x: &[i64], weight: &[i64]) -> Self {
        let (strides, pads, dilations) = (vec![], vec![], vec![]);
        Self { x: x.to_vec(), weight: weight.to_vec(), strides, pads, dilations, groups: 1 }
    }

    fn geometry(&self) -> Result<Geometry, String> {
        Geometry::new(&self.x, &self.weight, &self.strides, &self.pads, &self.dilations, self.groups)
    }

    /// The result and its channels' positions, product by product.
    fn wanted<W: Stored>(&self, x: &[f32], weight: &[W]) -> Vec<f64> {
        let axes = self.x.len() - 2;
        let at = |list: &[i64], axis: usize, default| list.get(axis).copied().unwrap_or(default);
        let geometry = self.geometry().unwrap();
        let positions: Vec<i64> = geometry.positions[3 - axes..].iter().map(|it| *it as i64).collect();
        let [out, within] = [self.weight[0], self.weight[1]];
        let mut all = vec![];
        for image in 0..self.x[0] {
            for channel in 0..out {
                for position in places(&positions) {
                    let mut sum = 0.0;
                    for input in 0..within {
                        for tap in places(&self.weight[2..]) {
                            let place: Option<Vec<i64>> = (0..axes)
                                .map(|axis| {
                                    let place = position[axis] * at(&self.strides, axis, 1)
                                        + tap[axis] * at(&self.dilations, axis, 1)
                                        - at(&self.pads, axis, 0);
                                    (0..self.x[2 + axis]).contains(&place).then_some(place)
                                })
                                .collect();
                            let Some(place) = place else { continue };
                            let group = channel / (out / self.groups);
                            let from = [image, group * within + input].into_iter().chain(place);
                            let by = [channel, input].into_iter().chain(tap);
                            sum += f64::from(x[index(&self.x, from)])
                                * f64::from(weight[index(&self.weight, by)].single());
                        }
                    }
                    all.push(sum);
                }
            }
        }
        all
    }

    #[track_caller]
    fn check<W: Stored>(&self, of: fn(f32) -> W) {
        let count = |shape: &[i64]| shape.iter().product::<i64>() as usize;
        // That bfloat16 holds exactly.
        let x: Vec<f32> = numbers(count(&self.x), 1).into_iter().map(|x| rounded(x).single()).collect();
        let weight: Vec<W> = numbers(count(&self.weight), 2).into_iter().map(of).collect();
        let (geometry, wanted) = (self.geometry().unwrap(), self.wanted(&x, &weight));
        let out = self.weight[0] as usize;
        let bias = numbers(out, 3);
        let addend = numbers(wanted.len(), 6);
        let normed = numbers(out, 4).into_iter().zip(numbers(out, 5)).collect();
        let epilogues = [
            Epilogue { bias: None, normed: None, addend: None, relu: false },
            Epilogue { bias: Some(&bias), normed: Some(normed), addend: None, relu: false },
            Epilogue { bias: Some(&bias), normed: None, addend: Some(&addend), relu: true },
        ];
        let in_single = [(kernel(), CHUNK), (kernel(), 1), (PORTABLE, 1)];
        let pairs = pairs().filter(|_| W::DTYPE == Dtype::Bf16 && geometry.depth().is_multiple_of(2));
        let in_bf16 = pairs.into_iter().flat_map(|kernel| [(kernel, CHUNK), (kernel, 1)]);
        // Chunks of one panel, and all in one.
        let all = in_single
            .map(|(kernel, most)| (Multiplied::in_single(kernel), most))
            .into_iter()
            .chain(in_bf16.map(|(kernel, most)| (Multiplied::in_bf16(kernel), most)));
        for (multiplied, most) in all {
            let kernel = multiplied.kernel;
            for epilogue in &epilogues {
                let mut result = vec![f32::NAN; wanted.len()];
                let Scratch { mut padded, mut laid } = Scratch::default();
                let each = |parts: usize, task: Task<'_>| {
                    (0..parts).rev().for_each(task);
                    Ok::<_, Infallible>(())
                };
                let windows = Windows::new(&geometry, &x, &mut padded, each).unwrap();
                for group in 0..geometry.groups {
                    for chunk in &Chunk::all(&geometry, kernel, most) {
                        windows.lay(group, chunk, kernel, &mut laid, each).unwrap();
                        if multiplied.of_pairs {
                            laid.pair(chunk.panels.len(), kernel, geometry.depth(), each).unwrap();
                        }
                        let product = Product::new(
                            &geometry,
                            multiplied,
                            &weight,
                            group,
                            epilogue,
                            chunk,
                            &laid,
                            &mut result,
                        );
                        (0..product.blocks()).rev().for_each(|block| product.compute(block));
                    }
                }
                for (at, (got, want)) in result.iter().zip(&wanted).enumerate() {
                    let channel = at / geometry.places() % out;
                    let bias = epilogue.bias.map_or(0.0, |bias| f64::from(bias[channel]));
                    let normed = epilogue.normed.as_ref().map_or((1.0, 0.0), |it| it[channel]);
                    let addend = epilogue.addend.map_or(0.0, |addend| f64::from(addend[at]));
                    let want = (want + bias) * f64::from(normed.0) + f64::from(normed.1) + addend;
                    let want = if epilogue.relu { want.max(0.0) } else { want };
                    assert!((f64::from(*got) - want).abs() < 1e-4, "{at}: {got} for {want}");
                }
            }
        }
    }
}

/// As [`Case::check`], by tiles; whether a convolution is one that is computed so.
#[track_caller]
fn check_by_tiles<W: Stored>(case: &Case, of: fn(f32) -> W) -> bool {
    let count = |shape: &[i64]| shape.iter().product::<i64>() as usize;
    let x = numbers(count(&case.x), 1);
    let weight: Vec<W> = numbers(count(&case.weight), 2).into_iter().map(of).collect();
    let geometry = case.geometry().unwrap();
    if !winograd::fits(&geometry) {
        return false;
    }
    let wanted = case.wanted(&x, &weight);
    let most = wanted.iter().fold(0.0_f64, |most, number| most.max(number.abs()));
    let out = case.weight[0] as usize;
    let (bias, addend) = (numbers(out, 3), numbers(wanted.len(), 6));
    let plain = Epilogue { bias: None, normed: None, addend: None, relu: false };
    let full = Epilogue { bias: Some(&bias), normed: None, addend: Some(&addend), relu: true };
    let each = |parts: usize, task: Task<'_>| {
        (0..parts).rev().for_each(task);
        Ok::<_, Infallible>(())
    };
    for (kernel, room) in kernels().into_iter().map(|kernel| (kernel, 1)).chain([(kernel(), CHUNK)]) {
        for epilogue in [&plain, &full] {
            let all = Winograd::new(&geometry, kernel, (&x, &weight), epilogue);
            let (mut laid, mut result) = (vec![f32::NAN; 64], vec![f32::NAN; wanted.len()]);
            for tiles in &all.chunks(room) {
                all.lay(tiles, &mut laid, each).unwrap();
                all.multiply(tiles, &laid, &mut result, each).unwrap();
            }
            for (at, (got, want)) in result.iter().zip(&wanted).enumerate() {
                let channel = at / geometry.places() % out;
                let bias = epilogue.bias.map_or(0.0, |bias| f64::from(bias[channel]));
                let want = want + bias + epilogue.addend.map_or(0.0, |addend| f64::from(addend[at]));
                let want = if epilogue.relu { want.max(0.0) } else { want };
                assert!((f64::from(*got) - want).abs() < 5e-6 * most, "{at}: {got} for {want}");
            }
        }
    }
    true
}

#[test]
fn tiles_give_what_windows_do() {
    let all = [
        // Many tiles beside each other, few, and results that end within one.
        Case { pads: vec![1; 4], ..Case::new(&[1, 16, 7, 150], &[24, 16, 3, 3]) },
        Case { pads: vec![1; 4], ..Case::new(&[2, 131, 10, 15], &[26, 131, 3, 3]) },
        Case { pads: vec![1; 4], ..Case::new(&[4, 17, 7, 10], &[25, 17, 3, 3]) },
        // Without zeros around it, with more of them than the window is large, and on some sides alone.
        Case::new(&[1, 16, 22, 19], &[24, 16, 3, 3]),
        Case { pads: vec![5, 6, 2, 9], ..Case::new(&[1, 16, 18, 11], &[24, 16, 3, 3]) },
        Case { pads: vec![0, 2, 1, 0], ..Case::new(&[3, 16, 14, 12], &[24, 16, 3, 3]) },
        Case { pads: vec![9, 9, 9, 9], ..Case::new(&[2, 16, 1, 1], &[24, 16, 3, 3]) },
    ];
    for case in &all {
        assert!(check_by_tiles(case, |x| x));
    }
    assert!(check_by_tiles(&all[2], bf16::from_f32));
    let others = [
        Case { strides: vec![2, 2], ..Case::new(&[1, 16, 50, 50], &[24, 16, 3, 3]) },
        Case { dilations: vec![2, 2], ..Case::new(&[1, 16, 50, 50], &[24, 16, 3, 3]) },
        Case { groups: 2, ..Case::new(&[1, 32, 50, 50], &[48, 16, 3, 3]) },
        Case::new(&[1, 16, 50, 50], &[24, 16, 5, 5]),
        Case::new(&[1, 16, 3, 50, 50], &[24, 16, 3, 3, 3]),
        Case::new(&[1, 16, 9, 9], &[24, 16, 3, 3]),
    ];
    for case in &others {
        assert!(!check_by_tiles(case, |x| x));
    }
}

fn places(lengths: &[i64]) -> Vec<Vec<i64>> {
    lengths.iter().fold(vec![vec![]], |all, length| {
        all.iter().flat_map(|front| (0..*length).map(|at| [front.clone(), vec![at]].concat())).collect()
    })
}

fn index(shape: &[i64], at: impl IntoIterator<Item = i64>) -> usize {
    shape.iter().zip(at).fold(0, |sum, (length, at)| sum * *length as usize + at as usize)
}

#[test]
fn axes_strides_pads_dilations_and_groups_are_as_conv_has_them() {
    let all = [
        // Pointwise: panels that registers fill, half of one, and single positions.
        Case::new(&[1, 40, 7, 7], &[30, 40, 1, 1]),
        Case::new(&[2, 40, 1, 1], &[50, 40, 1, 1]),
        Case::new(&[1, 300, 5, 9], &[7, 300, 1, 1]),
        Case { strides: vec![2, 2], ..Case::new(&[1, 8, 9, 9], &[7, 8, 1, 1]) },
        Case { pads: vec![1; 4], ..Case::new(&[2, 9, 14, 14], &[25, 9, 3, 3]) },
        Case { pads: vec![1; 4], strides: vec![2, 2], ..Case::new(&[1, 9, 13, 12], &[25, 9, 3, 3]) },
        Case { pads: vec![0, 2, 1, 0], ..Case::new(&[1, 3, 6, 40], &[5, 3, 3, 5]) },
        Case { dilations: vec![2, 3], pads: vec![2, 3, 2, 3], ..Case::new(&[1, 4, 8, 9], &[6, 4, 3, 3]) },
        Case { groups: 3, pads: vec![1; 4], ..Case::new(&[2, 12, 6, 6], &[9, 4, 3, 3]) },
        Case { strides: vec![4, 4], ..Case::new(&[2, 3, 16, 16], &[10, 3, 4, 4]) },
        Case { strides: vec![5], pads: vec![2, 1], ..Case::new(&[2, 6, 83], &[9, 6, 10]) },
        Case { pads: vec![2, 1, 1, 0, 1, 1], ..Case::new(&[1, 3, 4, 6, 6], &[8, 3, 3, 3, 3]) },
    ];
    for (at, case) in all.iter().enumerate() {
        case.check::<bf16>(bf16::from_f32);
        match at % 2 {
            0 => case.check::<f16>(f16::from_f32),
            _ => case.check::<f32>(|x| x),
        }
    }
}

#[test]
fn addends_of_channels_are_known_by_their_shape() {
    for (addend, apart) in [
        (&[1_i64, 5, 1, 1][..], Some(12)),
        (&[2, 5, 1, 1], Some(12)),
        (&[2, 5, 3, 4], None),
        (&[2, 1, 1, 1], None),
        (&[3, 5, 1, 1], None),
        (&[5, 1, 1], None),
    ] {
        assert_eq!(of_channels(&[2, 5, 3, 4], addend), apart, "{addend:?}");
    }
}

#[test]
fn what_no_convolution_is_is_refused() {
    let refused = [
        Case::new(&[1, 4, 2, 2], &[3, 4, 3, 3]),
        Case::new(&[1, 4, 8, 8], &[3, 5, 3, 3]),
        Case::new(&[1, 4, 8, 8], &[3, 4, 3]),
        Case { groups: 2, ..Case::new(&[1, 4, 8, 8], &[3, 2, 3, 3]) },
        Case { groups: 0, ..Case::new(&[1, 4, 8, 8], &[3, 4, 3, 3]) },
        Case { pads: vec![-1; 4], ..Case::new(&[1, 4, 8, 8], &[3, 4, 3, 3]) },
        Case::new(&[1, 4], &[3, 4]),
    ];
    for case in refused {
        let refused = case.geometry().unwrap_err();
        assert!(refused.contains("a convolution of"), "{refused}");
    }
}
