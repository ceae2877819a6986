use half::{bf16, f16};

use super::super::product::testing::{numbers, wanted};
use super::rows::{Group, groups};
use super::*;

#[test]
fn rows_are_grouped_by_expert() {
    let group = |expert, first, rows: &[usize]| Group { expert, first, rows: rows.to_vec() };
    // Two positions that select experts 4 and 1, then 1 and 7.
    let want = [group(1, 0, &[1, 2]), group(4, 2, &[0]), group(7, 3, &[3])];
    assert_eq!(groups(&[4, 1, 1, 7]).unwrap(), want);
    assert!(groups(&[]).unwrap().is_empty());
    assert_eq!(groups(&[0, -1]), None);
}

#[test]
fn weights_that_lie_the_other_way_are_read_by_rows() {
    fn check<W: Stored>(of: fn(f32) -> W) {
        for (rows, width, out) in [(1, 5, 3), (3, 37, 300), (2, 64, 256)] {
            let (x, weight) = (numbers(rows * width, 1), numbers(out * width, 2));
            let weight: Vec<W> = weight.into_iter().map(of).collect();
            let turned: Vec<W> = (0..width)
                .flat_map(|i| (0..out).map(move |o| (o, i)))
                .map(|(o, i)| weight[o * width + i])
                .collect();
            let mut result = vec![0.0; rows * out];
            let product = Transposed::new(&x, &turned, width, result.as_mut_slice());
            (0..product.blocks()).rev().for_each(|block| product.compute(block));
            for (got, want) in result.iter().zip(wanted(&x, &weight, None, width)) {
                assert!((f64::from(*got) - want).abs() < 1e-4, "{rows} {width} {out}: {got} for {want}");
            }
        }
    }
    check::<f32>(|x| x);
    check::<bf16>(bf16::from_f32);
    check::<f16>(f16::from_f32);
}
