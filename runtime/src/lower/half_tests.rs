//! What half precision needs: masks that hide all scores alike, and types that it is not cast to or folded in.

use ndarray::{ArrayD, IxDyn, array};

use super::passes::precision;
use super::*;
use crate::engine::{self, Options};
use crate::graph::dims::{BATCH, SEQUENCE};
use crate::graph::{Dtype, Input};
use crate::nn::{
    Attention, block_local_mask, causal_and_padding_mask, causal_mask, causal_padding_mask, masked_bias,
    padding_mask,
};
use crate::weights::Weights;
use crate::{Hardware, Precision, Value, Values, dims};

const COMPARES_TO_ZERO: Pass = Pass::each("truth by comparison", precision::truth_by_comparison);

/// Attention with a mask of booleans or of numbers, by a share that is a parameter, and what is not zero.
fn graph(numbers: bool) -> (Graph, Vec<WeightData>) {
    let mut g = Graph::new();
    let x = g.input(Input::f32("x", dims![BATCH, SEQUENCE, 8]));
    let seen = g.input(Input::i64("attention_mask", dims![BATCH, SEQUENCE]));
    let mut mask = causal_padding_mask(&mut g, &seen).unwrap();
    if numbers {
        let near = g.scalar(0.25);
        mask = masked_bias(&mut g, &mask, &near).unwrap();
    }
    let options =
        Attention { heads: 2, kv_heads: 2, scale: Some(2.0), mask: Some(&mask), ..Attention::default() };
    let mixed = g.attention(&x, &x, &x, &options).unwrap();
    let shares = g.weight("shares", &[8]).unwrap();
    let shares = g.softmax(&shares).unwrap();
    let mixed = g.mul(&mixed, &shares).unwrap();
    g.output("mixed", &mixed).unwrap();
    let truths = g.cast(&x, Dtype::Bool);
    g.output("truths", &truths).unwrap();
    let parameters = g.weights().iter().map(|weight| (weight.name.clone(), weight.shape.clone()));
    let weights = Weights::Rule(parameters.collect()).locate(g.weights(), &Default::default()).unwrap();
    (g, weights)
}

/// The second row begins with two positions that see nothing.
fn run(numbers: bool, target: &Target) -> Values {
    let (graph, weights) = graph(numbers);
    let lowered = lower(&graph, &weights, target).unwrap();
    let compiled = engine::compile(Hardware::Cpu, &lowered, &Options::default()).unwrap();
    // Exact in half precision, as are the scores.
    let x = (0..64).map(|place| (place * 37 % 19 - 9) as f32 * 0.25).collect();
    let x = ArrayD::from_shape_vec(IxDyn(&[2, 4, 8]), x).unwrap();
    let mask = array![[1, 1, 1, 1], [0, 0, 1, 1]].into_dyn();
    let given =
        Values::from([("x".to_owned(), Value::F32(x)), ("attention_mask".to_owned(), Value::I64(mask))]);
    compiled.run(&given).unwrap()
}

#[test]
fn positions_that_see_nothing_get_the_mean() {
    if let Err(error) = engine::available(Hardware::Cpu) {
        eprintln!("skipped: {error}");
        return;
    }
    let plain = Target::of(Hardware::Openvino, Precision::F32);
    for numbers in [false, true] {
        let want = run(numbers, &plain);
        for compares_to_zero in [false, true] {
            let half = Target { float: Dtype::F16, ..plain.clone() };
            let half = if compares_to_zero { half.and(COMPARES_TO_ZERO) } else { half };
            for report in crate::golden::compare(&run(numbers, &half), &want, 4e-3) {
                assert!(report.passed, "{numbers} {compares_to_zero}: {report:?}");
            }
        }
    }
}

#[test]
fn each_form_is_taken() {
    let (graph, weights) = graph(false);
    let counts = |target: &Target| {
        let operators = lower(&graph, &weights, target).unwrap().operators;
        ["Where", "Add", "Not", "Cast"].map(|name| operators.get(name).copied().unwrap_or_default())
    };
    let single = Target::of(Hardware::Openvino, Precision::F32);
    assert_eq!(counts(&single), [1, 1, 0, 2]);
    // A parameter, an input and an output change their type, and shares are computed in single precision.
    let half = Target { float: Dtype::F16, ..single };
    assert_eq!(counts(&half), [1, 0, 0, 7]);
    assert_eq!(counts(&half.and(COMPARES_TO_ZERO)), [1, 0, 1, 6]);
}

#[test]
fn what_is_hidden_twice_is_finite() {
    if let Err(error) = engine::available(Hardware::Cpu) {
        eprintln!("skipped: {error}");
        return;
    }
    let mut g = Graph::new();
    let seen = g.input(Input::i64("attention_mask", dims![BATCH, SEQUENCE]));
    let mask = causal_mask(&mut g, &seen, &crate::Dim::Fixed(0), None).unwrap();
    let mask = causal_and_padding_mask(&mut g, &mask, &seen, &crate::Dim::Fixed(0), Some(2)).unwrap();
    g.output("mask", &mask).unwrap();
    let given = Values::from([("attention_mask".to_owned(), Value::I64(array![[0, 1, 1, 1]].into_dyn()))]);
    let single = Target::of(Hardware::Openvino, Precision::F32);
    for target in [Target { float: Dtype::F16, ..single.clone() }, single] {
        let lowered = lower(&g, &[], &target).unwrap();
        let compiled = engine::compile(Hardware::Cpu, &lowered, &Options::default()).unwrap();
        let got = compiled.run(&given).unwrap();
        let Value::F32(mask) = &got["mask"] else { panic!("{got:?}") };
        assert!(mask.iter().all(|number| number.is_finite()), "{mask}");
        let rows: Vec<Vec<bool>> =
            mask.rows().into_iter().map(|row| row.iter().map(|x| *x == 0.0).collect()).collect();
        assert_eq!(rows[0], [false; 4]);
        assert_eq!(rows[1], [false, true, false, false]);
        assert_eq!(rows[3], [false, false, true, true]);
    }
}

#[test]
fn padding_is_higher_than_other_blocks() {
    if let Err(error) = engine::available(Hardware::Cpu) {
        eprintln!("skipped: {error}");
        return;
    }
    let mut g = Graph::new();
    let seen = g.input(Input::i64("attention_mask", dims![BATCH, SEQUENCE]));
    let mask = padding_mask(&mut g, &seen).unwrap();
    let mask = block_local_mask(&mut g, &mask, 2).unwrap();
    let shares = g.softmax(&mask).unwrap();
    g.output("shares", &shares).unwrap();
    let given = Values::from([("attention_mask".to_owned(), Value::I64(array![[1, 1, 0, 0]].into_dyn()))]);
    let single = Target::of(Hardware::Openvino, Precision::F32);
    for float in [Dtype::F32, Dtype::F16] {
        let lowered = lower(&g, &[], &Target { float, ..single.clone() }).unwrap();
        let compiled = engine::compile(Hardware::Cpu, &lowered, &Options::default()).unwrap();
        let got = compiled.run(&given).unwrap();
        let Value::F32(shares) = &got["shares"] else { panic!("{got:?}") };
        let rows: Vec<Vec<f32>> = shares.rows().into_iter().map(|row| row.to_vec()).collect();
        assert_eq!(rows[0], [0.5, 0.5, 0.0, 0.0], "{float}");
        assert_eq!(rows[3], [0.0, 0.0, 0.5, 0.5], "{float}");
    }
}
