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

/// What a graph gives for one input x, and operations on it in half precision as lines.
fn halved(
    x: ArrayD<f32>,
    build: impl Fn(&mut Graph, &crate::graph::Tensor) -> Result<crate::graph::Tensor>,
) -> (ArrayD<f32>, Vec<String>) {
    let mut g = Graph::new();
    let shape = x.shape().iter().map(|&n| crate::Dim::Fixed(n)).collect();
    let given = g.input(Input::f32("x", shape));
    let y = build(&mut g, &given).unwrap();
    g.output("y", &y).unwrap();
    let half = Target { float: Dtype::F16, ..Target::of(Hardware::Openvino, Precision::F32) };
    let lowered = lower(&g, &[], &half).unwrap();
    precision::compute_in(&mut g, &half).unwrap();
    let compiled = engine::compile(Hardware::Cpu, &lowered, &Options::default()).unwrap();
    let got = compiled.run(&Values::from([("x".to_owned(), Value::F32(x))])).unwrap();
    let Value::F32(y) = &got["y"] else { panic!("{got:?}") };
    (y.clone(), g.lines())
}

#[test]
fn what_is_asked_for_in_single_precision_is_converted_at_its_edges() {
    if let Err(error) = engine::available(Hardware::Cpu) {
        eprintln!("skipped: {error}");
        return;
    }
    // 400² does not fit into half precision, and 1e-15 is 0 in it.
    let (y, lines) = halved(array![400.0, 0.0].into_dyn(), |g, x| {
        let two = g.scalar(2.0);
        let twice = g.mul(x, &two)?;
        let root = g.in_single(|g| {
            let squares = g.mul(&twice, x)?;
            let tiny = g.scalar(1e-15);
            let sum = g.add(&squares, &tiny)?;
            Ok(g.unary(crate::graph::Unary::Sqrt, &sum))
        })?;
        g.div(&twice, &root)
    });
    assert!((y[0] - 1.414).abs() < 1e-3 && y[1] == 0.0, "{y}");
    let want = [
        "f16 Cast(x) [2]",
        "f16 Mul(%0, 2.0) [2]",
        "f32 Cast(%1) [2]",
        "f32 Mul(%2, x) [2]",
        "f32 Add(%3, 1e-15) [2]",
        "f32 Sqrt(%4) [2]",
        "f16 Cast(%5) [2]",
        "f16 Div(%1, %6) [2]",
        "f32 Cast(%7) [2]",
    ];
    assert_eq!(lines, want);
}

#[test]
fn waves_are_those_of_angles_in_single_precision() {
    if let Err(error) = engine::available(Hardware::Cpu) {
        eprintln!("skipped: {error}");
        return;
    }
    // In half precision 1000 times 0.7 is 700, and 0.7 is 0.69995.
    let (y, lines) = halved(array![0.7, 0.4].into_dyn(), |g, x| {
        let thousand = g.scalar(1000.0);
        let angles = g.mul(x, &thousand)?;
        let (sines, cosines) =
            (g.unary(crate::graph::Unary::Sin, &angles), g.unary(crate::graph::Unary::Cos, &angles));
        g.concat(&[&sines, &cosines], 0)
    });
    let want = [700.0_f32.sin(), 400.0_f32.sin(), 700.0_f32.cos(), 400.0_f32.cos()];
    assert!(y.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-3), "{y}");
    assert_eq!(lines[0], "f32 Mul(x, 1000.0) [2]");
    // Of what is computed in half precision, waves are too.
    let (_, lines) = halved(array![0.7, 0.4].into_dyn(), |g, x| {
        let two = g.scalar(2.0);
        let twice = g.mul(x, &two)?;
        let wave = g.unary(crate::graph::Unary::Sin, &twice);
        g.add(&twice, &wave)
    });
    assert_eq!(lines[1..3], ["f16 Mul(%0, 2.0) [2]", "f16 Sin(%1) [2]"]);
}

#[test]
fn what_keeps_a_divisor_from_zero_is_not_zero() {
    if let Err(error) = engine::available(Hardware::Cpu) {
        eprintln!("skipped: {error}");
        return;
    }
    let (y, _) = halved(array![0.0, 8.0].into_dyn(), |g, x| {
        let tiny = g.scalar(1e-10);
        let divisor = g.add(x, &tiny)?;
        g.div(x, &divisor)
    });
    assert_eq!(y, array![0.0, 1.0].into_dyn());
}

#[test]
fn high_scores_are_lost_where_all_keys_are_hidden() {
    if let Err(error) = engine::available(Hardware::Cpu) {
        eprintln!("skipped: {error}");
        return;
    }
    let mut g = Graph::new();
    let x = g.input(Input::f32("x", dims![BATCH, SEQUENCE, 1]));
    let seen = g.input(Input::i64("attention_mask", dims![BATCH, SEQUENCE]));
    let mask = padding_mask(&mut g, &seen).unwrap();
    let mask = block_local_mask(&mut g, &mask, 2).unwrap();
    let options = Attention { mask: Some(&mask), scale: Some(1.0), ..Attention::default() };
    let mixed = g.attention(&x, &x, &x, &options).unwrap();
    g.output("mixed", &mixed).unwrap();
    let given = Values::from([
        ("x".to_owned(), Value::F32(array![[[1.0], [0.0], [10.0], [2.0]]].into_dyn())),
        ("attention_mask".to_owned(), Value::I64(array![[1, 0, 0, 0]].into_dyn())),
    ]);
    let half = Target { float: Dtype::F16, ..Target::of(Hardware::Openvino, Precision::F32) };
    for target in [half, Target::of(Hardware::Cuda, Precision::F16)] {
        let lowered = lower(&g, &[], &target).unwrap();
        let compiled = engine::compile(Hardware::Cpu, &lowered, &Options::default()).unwrap();
        let got = compiled.run(&given).unwrap();
        let Value::F32(mixed) = &got["mixed"] else { panic!("{got:?}") };
        // The second block is padding: its scores of up to 100 are lost, and it gets the mean of its values.
        assert_eq!(mixed.iter().copied().collect::<Vec<_>>(), [1.0, 1.0, 6.0, 6.0]);
    }
}

#[test]
fn waves_of_what_is_given_are_outputs_for_openvino() {
    let mut g = Graph::new();
    let x = g.input(Input::f32("x", dims![BATCH, 2]));
    let thousandfold = g.scale(&x, 1000.0).unwrap();
    let of_given = g.unary(crate::graph::Unary::Sin, &thousandfold);
    let hidden = g.linear_no_bias(&g.scope("w"), &of_given, 2).unwrap();
    let of_computed = g.unary(crate::graph::Unary::Sin, &hidden);
    g.output("y", &of_computed).unwrap();
    let parameters = g.weights().iter().map(|weight| (weight.name.clone(), weight.shape.clone()));
    let weights = Weights::Rule(parameters.collect()).locate(g.weights(), &Default::default()).unwrap();
    let outputs = |precision| {
        let lowered = lower(&g, &weights, &Target::of(Hardware::Openvino, precision)).unwrap();
        let graph = lowered.model.graph.unwrap();
        graph.output.into_iter().map(|output| output.name).collect::<Vec<_>>()
    };
    assert_eq!(outputs(Precision::Bf16), ["y".to_owned(), format!("{UNASKED}0")]);
    assert_eq!(outputs(Precision::F32), ["y"]);
}

#[test]
fn outputs_keep_numbers_beyond_half_precision() {
    if let Err(error) = engine::available(Hardware::Cpu) {
        eprintln!("skipped: {error}");
        return;
    }
    let (y, lines) = halved(array![1.0, -1.0].into_dyn(), |g, x| {
        let (zero, least) = (g.scalar(0.0), g.scalar(f32::MIN));
        let twice = g.add(x, x)?;
        let above = g.binary(crate::graph::Binary::Greater, &twice, &zero)?;
        let picked = g.select(&above, &twice, &least)?;
        let padded = g.pad(&picked, &[(0, 0, 1)], crate::graph::PadMode::Constant(1.0))?;
        // What is computed of the number stays in half precision.
        let hidden = g.binary(crate::graph::Binary::Max, &twice, &least)?;
        let hidden = g.scale(&hidden, 0.5)?;
        g.concat(&[&padded, &hidden], 0)
    });
    assert_eq!(y, array![2.0, f32::MIN, 1.0, 1.0, -1.0].into_dyn());
    assert!(lines.iter().any(|line| line.starts_with("f16 Max")), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("f32 Where")), "{lines:?}");
}
