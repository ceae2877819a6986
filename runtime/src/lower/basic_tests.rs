//! What little more than arithmetic does: the numbers are those of the operators themselves, and Core ML has all of it.

use ndarray::{ArrayD, IxDyn};

use super::*;
use crate::engine::{self, Options};
use crate::graph::dims::{BATCH, SEQUENCE};
use crate::graph::{Binary, Dim, Dtype, Input, PadMode, Reduction, Tensor, Unary};
use crate::nn::last_token_pool;
use crate::weights::{Weights, rule};
use crate::{Hardware, Precision, Value, Values, dims};

/// Writes what a test is about, from x `[batch, sequence, 3]`, ids `[batch, sequence]` and chosen `[batch, sequence]`.
type Body = fn(&mut Graph, [Tensor; 3]) -> Vec<Tensor>;

fn graph(body: Body) -> (Graph, Vec<WeightData>) {
    let mut g = Graph::new();
    let x = g.input(Input::f32("x", dims![BATCH, SEQUENCE, 3]));
    let ids = g.input(Input::i64("ids", dims![BATCH, SEQUENCE]));
    let chosen = g.input(Input::bool("chosen", dims![BATCH, SEQUENCE]));
    for (index, tensor) in body(&mut g, [x, ids, chosen]).iter().enumerate() {
        g.output(&format!("out.{index}"), tensor).unwrap();
    }
    let parameters = g.weights().iter().map(|weight| (weight.name.clone(), weight.shape.clone()));
    let weights = Weights::Rule(parameters.collect()).locate(g.weights(), &Default::default()).unwrap();
    (g, weights)
}

fn run(body: Body, target: &Target) -> (Values, Lowered) {
    let (graph, weights) = graph(body);
    let dims = [("batch".to_owned(), 2), ("sequence".to_owned(), 5)].into();
    let lowered = lower(&graph, &weights, &Target { fixed_shapes: true, dims, ..target.clone() }).unwrap();
    let x = ArrayD::from_shape_vec(IxDyn(&[2, 5, 3]), rule::generate("in", &[2, 5, 3])).unwrap() * 3.0;
    let ids = ArrayD::from_shape_vec(IxDyn(&[2, 5]), vec![4, 7, -2, 0, 1, 0, 0, 3, 7, 0]).unwrap();
    let chosen = ids.mapv(|id: i64| id % 2 == 1);
    let mut given = Values::from([
        ("x".to_owned(), Value::F32(x)),
        ("ids".to_owned(), Value::I64(ids)),
        ("chosen".to_owned(), Value::Bool(chosen)),
    ]);
    let compiled = engine::compile(Hardware::Cpu, &lowered, &Options::default()).unwrap();
    let model = lowered.model.graph.as_ref().unwrap();
    given.retain(|name, _| model.input.iter().any(|input| input.name == *name));
    (compiled.run(&given).unwrap(), lowered)
}

/// Whether the basic forms give the same numbers by operators that Core ML has, in both precisions.
fn agree(body: Body) {
    if let Err(error) = engine::available(Hardware::Cpu) {
        eprintln!("skipped: {error}");
        return;
    }
    let (want, _) = run(body, &Target::of(Hardware::Cpu, Precision::F32));
    for (precision, tolerance) in [(Precision::F32, 2e-6), (Precision::F16, 1e-2)] {
        let (got, lowered) = run(body, &Target::of(Hardware::Metal, precision));
        assert_eq!(unsupported_ops(&lowered.model, Hardware::Metal), Default::default());
        for report in crate::golden::compare(&got, &want, tolerance) {
            assert!(report.passed, "{precision}: {report:?}");
        }
    }
}

#[test]
fn norms_by_running_statistics_are_products_and_sums() {
    agree(|g, [x, ..]| {
        let x = g.transpose(&x, &[0, 2, 1]).unwrap();
        let scope = g.scope("norm");
        vec![g.batch_norm(&scope, &x, 0.5).unwrap()]
    });
}

#[test]
fn sums_up_to_each_element_are_products_with_a_triangle() {
    agree(|g, [x, ids, _]| {
        let sums = [0, 1, 2].map(|axis| g.cumsum(&x, axis).unwrap());
        let counted = g.cumsum(&ids, 1).unwrap();
        [sums.as_slice(), &[counted]].concat()
    });
}

#[test]
fn borders_and_repeated_axes_are_joined_on() {
    agree(|g, [x, ids, _]| {
        let padded = g.pad(&x, &[(1, 2, 0), (2, 1, 3)], PadMode::Constant(0.5)).unwrap();
        let column = g.slice(&x, 2, 1..2).unwrap();
        let wide = g.expand(&column, dims![4, BATCH, SEQUENCE, 3]).unwrap();
        let first = g.slice_dims(&ids, 1, Dim::Fixed(0), Dim::Fixed(1)).unwrap();
        vec![padded, wide, g.expand(&first, dims![BATCH, SEQUENCE]).unwrap()]
    });
}

#[test]
fn logic_and_comparisons_are_arithmetic() {
    agree(|g, [x, ids, chosen]| {
        let three = g.integer(3);
        let zero = g.scalar(0.0);
        let mut all = vec![];
        let compared =
            [Binary::Equal, Binary::Less, Binary::LessOrEqual, Binary::Greater, Binary::GreaterOrEqual];
        for op in compared {
            let found = g.binary(op, &ids, &three).unwrap();
            let both = g.binary(Binary::And, &found, &chosen).unwrap();
            let either = g.binary(Binary::Or, &found, &chosen).unwrap();
            let not = g.unary(Unary::Not, &either);
            let some = g.cast(&ids, Dtype::Bool);
            let all_of = g.binary(Binary::And, &not, &some).unwrap();
            all.push(g.cast(&both, Dtype::F32));
            all.push(g.cast(&all_of, Dtype::I64));
            let column = g.unsqueeze(&either, 2).unwrap();
            all.push(g.select(&column, &x, &zero).unwrap());
            all.push(g.select(&column, &zero, &x).unwrap());
            all.push(g.select(&found, &three, &ids).unwrap());
        }
        all.push(last_token_pool(g, &x, &ids, Some(0)).unwrap());
        all
    });
}

#[test]
fn least_numbers_signs_and_powers_are_by_others() {
    agree(|g, [x, ids, _]| {
        let (half, two, one) = (g.scalar(0.5), g.scalar(2.0), g.integer(1));
        let units = [Unary::Neg, Unary::Abs, Unary::Floor].map(|op| g.unary(op, &x));
        let more = vec![
            g.binary(Binary::Min, &x, &half).unwrap(),
            g.binary(Binary::Min, &ids, &one).unwrap(),
            g.binary(Binary::Pow, &x, &two).unwrap(),
            g.reduce(Reduction::Min, &x, &[1], true).unwrap(),
            g.reduce(Reduction::Min, &ids, &[0], false).unwrap(),
        ];
        [units.as_slice(), &more].concat()
    });
}

#[test]
fn rows_of_tables_are_looked_up_as_they_are_stored_in_a_page() {
    let (graph, mut weights) = graph(|g, [_, ids, _]| {
        let table = g.weight("table", &[8, 3]).unwrap();
        vec![g.gather(&table, &ids, 0).unwrap()]
    });
    let bytes = weights[0].bytes.read().unwrap().into_owned();
    let narrow = Dtype::Bf16.encoded(&Dtype::F32.decoded(&bytes));
    weights[0] = WeightData { dtype: Dtype::Bf16, bytes: Bytes::memory(narrow), ..weights[0].clone() };
    let written = |hardware, bytes: &WeightData| {
        let lowered =
            lower(&graph, std::slice::from_ref(bytes), &Target::in_browser(hardware, Precision::F32));
        let nodes = lowered.unwrap().model.graph.unwrap().node;
        nodes.iter().map(|node| format!("{}({})", node.op_type, node.input[0])).collect::<Vec<_>>()
    };
    assert_eq!(written(Hardware::Cpu, &weights[0]), ["Gather(table)", "Cast(/Gather/Rows)"]);
    assert_eq!(written(Hardware::Webgpu, &weights[0])[0], "Cast(table)");
    let wide = WeightData { dtype: Dtype::F32, bytes: Bytes::memory(bytes), ..weights[0].clone() };
    assert_eq!(written(Hardware::Cpu, &wide)[0], "Gather(table)");
}
