//! Codes are those of the algorithm as it is published, with the inverse of H, in double precision
//! (`tests/reference/weft_reference/gptq.py` prints them).

use super::*;
use crate::Dtype;

fn solve(weight: &[f32], gram: &[f32], rounding: Rounding) -> Option<Codes> {
    Inputs::new(gram)?.codes(weight, rounding)
}

const OUT: usize = 6;
const COLUMNS: usize = 64;
const ROWS: usize = 160;

const SYMMETRIC: [&str; OUT] = [
    "f26ad046be238be2b851eb741d9640eaad057ae037be167bf248cf278cf36ad0",
    "dccceffff0222332feeccaa779433220deedff0111233355ba98877755432110",
    "6430eca7530fca87cf1357abe12579bd0eca8531eda8631fdb9642fcc97510ec",
    "d28d16c06af4be383ea4fa50b71d72d8c16c05af69e28b174f950b61d72ea3f9",
    "f6f6f8f819181a29f5e4d4c2c3c2b1a06f7f809081a2a1b34d4d3c3c2a1a0a08",
    "9e6af5b15b06c27df83e81d71e71c60baf5e05b19c17c17de83e82d81c61d60a",
];

const ASYMMETRIC: [&str; OUT] = [
    "0b852fc862eb851dc741ec840ea630da52fe841ea840eb731d9730c9630c762f",
    "442221000fdeddccfedcba9876653220221000fecdccbaaafeecba9776541110",
    "9bcf1458ace03578df1357abe12579aef1457ace23579de02469bd03368aef13",
    "e28d17c16ae39e37c16b159e48d28d27c16d05af6af38e37b049f49d38d14b06",
    "08190707f7e5d5d6f5e4c2d2c4b2b1c080708f7e4d6d5b4c5f4e4d3e2c1b090a",
    "70950a5e94e94d81f93e81e71d80c60b50a3e94e94d83f82f93f92e91d71e70c",
];

fn weight() -> Vec<f32> {
    let at = |i: usize, j: usize| ((i * 37 + j * 23 + i * j * 5) % 29) as f32 / 29.0 - 0.48;
    (0..OUT * COLUMNS).map(|place| at(place / COLUMNS, place % COLUMNS)).collect()
}

/// Inputs of columns that are of different sizes and go together.
fn inputs() -> Array2<f32> {
    Array2::from_shape_fn((ROWS, COLUMNS), |(i, j)| {
        let own = ((i * 41 + j * 13 + i * j * 7) % 31) as f32 / 31.0 - 0.45;
        own * (1 + j % 5) as f32 + if (i * 3 + j / 4) % 4 == 0 { 0.8 } else { 0.0 }
    })
}

fn rounding(symmetric: bool) -> Rounding {
    Rounding { bits: 4, stored: 4, group: 16, symmetric, search: false, scales: Dtype::F32 }
}

fn gram() -> Vec<f32> {
    inputs().t().dot(&inputs()).iter().copied().collect()
}

/// What outputs are off by, squared, in all.
fn error(made: &Codes) -> f32 {
    let value = |place: usize| {
        (f32::from(made.codes[place]) - f32::from(made.zeros[place / 16])) * made.scales[place / 16]
    };
    let off: Vec<f32> = weight().iter().enumerate().map(|(place, w)| w - value(place)).collect();
    let off = Array2::from_shape_vec((OUT, COLUMNS), off).unwrap();
    off.dot(&inputs().t()).iter().map(|off| off * off).sum()
}

#[test]
fn codes_are_those_of_the_published_algorithm() {
    for (symmetric, want, off) in [(true, SYMMETRIC, 4.2184), (false, ASYMMETRIC, 3.3725)] {
        let made = solve(&weight(), &gram(), rounding(symmetric)).unwrap();
        let hex = |row: &[u8]| row.iter().map(|code| format!("{code:x}")).collect::<String>();
        let got: Vec<String> = made.codes.chunks(COLUMNS).map(hex).collect();
        assert_eq!(got, want, "symmetric: {symmetric}");
        let got = error(&made);
        assert!((got - off).abs() < 1e-2, "{got}, the reference's {off}");
        let nearest = error(&scaled(&weight(), COLUMNS, rounding(symmetric)).unwrap());
        assert!(got < 0.25 * nearest, "{got} of {nearest}");
    }
}

#[test]
fn more_columns_than_a_block_carry_errors_on() {
    let (columns, out) = (6 * BLOCK, 3);
    let x = Array2::from_shape_fn((400, columns), |(i, j)| {
        ((i * 7 + j * 3 + i * j) % 17) as f32 / 17.0 - 0.4 + ((i * 5) % 11) as f32 / 11.0
    });
    let weight: Vec<f32> = (0..out * columns).map(|at| ((at * 31) % 43) as f32 / 43.0 - 0.51).collect();
    let gram: Vec<f32> = x.t().dot(&x).iter().copied().collect();
    let made = solve(&weight, &gram, rounding(true)).unwrap();
    let nearest = scaled(&weight, columns, rounding(true)).unwrap();
    let error = |made: &Codes| {
        let value = |at: usize| {
            (f32::from(made.codes[at]) - 8.0) * made.scales[at / columns * columns / 16 + at % columns / 16]
        };
        let off = Array2::from_shape_fn((out, columns), |(row, j)| {
            weight[row * columns + j] - value(row * columns + j)
        });
        off.dot(&x.t()).iter().map(|off| off * off).sum::<f32>()
    };
    assert!(error(&made) < 0.1 * error(&nearest), "{} of {}", error(&made), error(&nearest));
}

#[test]
fn inputs_that_tell_nothing_and_weights_that_are_no_numbers_have_no_codes() {
    let mut dead = gram();
    for j in 0..COLUMNS {
        (dead[j], dead[j * COLUMNS]) = (0.0, 0.0);
    }
    // A column that is always zero is as any other.
    assert!(solve(&weight(), &dead, rounding(true)).is_some());
    assert_eq!(solve(&weight(), &vec![0.0; COLUMNS * COLUMNS], rounding(true)), None);
    let mut spoilt = weight();
    spoilt[70] = f32::NAN;
    assert_eq!(solve(&spoilt, &gram(), rounding(true)), None);
}
