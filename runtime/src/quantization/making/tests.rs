//! Codes and scales by hand, and errors as they are known of numbers with a normal distribution.

use std::io::Write;

use super::*;
use crate::Precision;

fn weight(shape: [usize; 2], values: &[f32]) -> WeightData {
    let bytes = Bytes::memory(Dtype::F32.encoded(values));
    WeightData { dtype: Dtype::F32, shape: shape.to_vec(), stored_as: "w".to_owned(), bytes }
}

fn settings(group: usize, symmetric: bool, search: bool) -> Quantization {
    Quantization { group, symmetric, search, ..Quantization::of(Precision::Int4).unwrap() }
}

/// Numbers with a normal distribution, by Box and Muller.
fn normal(count: usize) -> Vec<f32> {
    let mut state = 7_u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 40) as f32 + 0.5) / (1_u32 << 24) as f32
    };
    (0..count).map(|_| (-2.0 * uniform().ln()).sqrt() * (std::f32::consts::TAU * uniform()).cos()).collect()
}

#[test]
fn the_number_farthest_from_zero_is_the_lowest_code() {
    let row: Vec<f32> = (0..16).map(|i| (i as f32 - 8.0) / 2.0).collect();
    let other: Vec<f32> = row.iter().map(|x| -3.0 * x).collect();
    let both = [row, other].concat();
    let made = quantize(&weight([2, 16], &both), 4, &settings(16, true, false)).unwrap();
    assert_eq!(made.scales_in_single().unwrap(), [0.5, -1.5]);
    assert_eq!(made.codes.read().unwrap()[..2], [0x10, 0x32]);
    assert_eq!(made.dequantize().unwrap(), both);
}

#[test]
fn an_asymmetric_block_begins_at_its_least_number() {
    let row: Vec<f32> = (0..16).map(|i| i as f32 - 3.0).collect();
    let made = quantize(&weight([1, 16], &row), 4, &settings(16, false, false)).unwrap();
    assert_eq!((made.zeros.clone(), made.dequantize().unwrap()), (Zeros::Codes([3].into()), row));
}

#[test]
fn three_bits_are_stored_in_four() {
    let row: Vec<f32> = (0..16).map(|i| (i % 8) as f32 - 4.0).collect();
    let made = quantize(&weight([1, 16], &row), 3, &settings(16, true, true)).unwrap();
    assert_eq!((made.bits, made.zeros.clone(), made.dequantize().unwrap()), (4, Zeros::Middle, row));
}

#[test]
fn errors_are_those_of_the_literature() {
    let values = normal(64 * 1024);
    let size: f32 = values.iter().map(|x| x * x).sum();
    for (bits, group, symmetric, search, want) in [
        (4, 32, true, false, 0.086),
        (4, 32, true, true, 0.081),
        (4, 32, false, false, 0.081),
        (4, 128, true, false, 0.103),
        (3, 32, true, false, 0.174),
        (3, 32, true, true, 0.163),
        (2, 32, true, false, 0.362),
        (2, 32, true, true, 0.334),
        (2, 128, true, true, 0.369),
    ] {
        let made = quantize(&weight([64, 1024], &values), bits, &settings(group, symmetric, search)).unwrap();
        let off = made.dequantize().unwrap().iter().zip(&values).map(|(a, b)| (a - b) * (a - b)).sum::<f32>();
        let error = (off / size).sqrt();
        assert!((error - want).abs() < 0.02 * want, "{bits} bits by {group}: {error}, not {want}");
    }
}

#[test]
fn files_are_read_piece_by_piece() {
    let (rows, columns) = (700, 1024);
    let values: Vec<f32> = normal(rows * columns).iter().map(|x| Dtype::Bf16.nearest(*x)).collect();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&[0; 3]).unwrap();
    file.write_all(&Dtype::Bf16.encoded(&values)).unwrap();
    let (path, length) = (file.path().to_path_buf(), 2 * values.len() as u64);
    let memory = weight([rows, columns], &values);
    let stored =
        WeightData { dtype: Dtype::Bf16, bytes: Bytes::File { path, offset: 3, length }, ..memory.clone() };
    let settings = settings(32, true, false);
    assert!(quantize(&stored, 8, &settings).unwrap() == quantize(&memory, 8, &settings).unwrap());
}

#[test]
fn blocks_divide_rows_where_they_can() {
    for (columns, asked, want) in [(64, 32, 32), (48, 32, 16), (40, 32, 32), (20, 32, 16), (96, 128, 32)] {
        assert_eq!(group(columns, asked).unwrap(), want, "{columns}");
    }
    let made = quantize(&weight([1, 40], &normal(40)), 4, &settings(32, true, false)).unwrap();
    assert_eq!((made.blocks(), made.dequantize().unwrap().len()), (2, 40));
}

#[test]
fn scales_beyond_half_precision_are_in_single() {
    for factor in [1e-9, 1e8] {
        let values: Vec<f32> = normal(32).iter().map(|x| x * factor).collect();
        let made = quantize(&weight([1, 32], &values), 8, &settings(32, true, false)).unwrap();
        let near = made.dequantize().unwrap().iter().zip(&values).all(|(a, b)| (a - b).abs() < 0.02 * factor);
        assert!(made.scale_dtype == Dtype::F32 && near);
    }
    let zeros = quantize(&weight([1, 32], &[0.0; 32]), 4, &settings(32, true, true)).unwrap();
    assert_eq!((zeros.scale_dtype, zeros.dequantize().unwrap()), (Dtype::F16, vec![0.0; 32]));
}

#[test]
fn what_cannot_be_quantized_is_refused() {
    let refused = |weight: &WeightData, bits, group| {
        quantize(weight, bits, &settings(group, true, false)).unwrap_err().to_string()
    };
    let mut values = normal(32);
    assert!(refused(&weight([1, 32], &values), 5, 32).contains("no codes of 5 bits"));
    assert!(refused(&weight([1, 32], &values), 4, 24).contains("no blocks of 24"));
    for bad in [f32::NAN, f32::INFINITY] {
        values[7] = bad;
        let said = refused(&weight([1, 32], &values), 4, 32);
        assert!(said.contains("`w` holds what is no finite number"), "{said}");
    }
    let flat = WeightData { shape: vec![32], ..weight([1, 32], &values) };
    assert!(refused(&flat, 4, 32).contains("is no matrix"));
}
