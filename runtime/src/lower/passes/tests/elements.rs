//! Passes of types, choices, element-wise arithmetic and axes.

use super::super::testing::after;
use super::super::{arithmetic, axes, bfloat16, floats, precision, select, share, types};
use super::{Pass, with_x};
use crate::dims;
use crate::graph::dims::{BATCH, SEQUENCE};
use crate::graph::{Binary, Conv, Dtype, Graph, Input, PadMode, Reduction, Tensor, Unary};
use crate::lower::Target;

#[test]
fn types_that_kernels_lack_are_gone_round() {
    let (mut g, x) = with_x(Dtype::I64);
    let row = g.slice(&x, 2, 0..1).unwrap();
    let most = g.reduce(Reduction::Max, &x, &[0, 1, 2], false).unwrap();
    assert_eq!(
        after(Pass::each("reads", types::read_as_numbers), &mut g, &[&row, &most]),
        [
            "f32 Cast(x) [batch, sequence, 4]",
            "f32 Slice(%0) [batch, sequence, 1]",
            "i64 Cast(%1) [batch, sequence, 1]",
            "i32 Cast(x) [batch, sequence, 4]",
            "i32 ReduceMax(%3) []",
            "i64 Cast(%4) []",
        ]
    );
    let (mut g, x) = with_x(Dtype::I64);
    let turned = g.transpose(&x, &[0, 2, 1]).unwrap();
    assert_eq!(
        after(Pass::each("moves", types::move_in_32_bits), &mut g, &[&turned]),
        [
            "i32 Cast(x) [batch, sequence, 4]",
            "i32 Transpose(%0) [batch, 4, sequence]",
            "i64 Cast(%1) [batch, 4, sequence]",
        ]
    );
    let (mut g, x) = with_x(Dtype::F32);
    let truth = g.cast(&x, Dtype::Bool);
    assert_eq!(
        after(Pass::each("truth", precision::truth_by_comparison), &mut g, &[&truth]),
        ["bool Equal(x, 0.0) [batch, sequence, 4]", "bool Not(%0) [batch, sequence, 4]"]
    );
}

#[test]
fn slices_that_are_all_of_an_axis_are_parts_of_a_split() {
    let lines = |ranges: &[std::ops::Range<usize>]| {
        let (mut g, x) = with_x(Dtype::F32);
        let parts: Vec<_> = ranges.iter().map(|range| g.slice(&x, 2, range.clone()).unwrap()).collect();
        let pass = Pass::whole("split", select::slices_by_split);
        after(pass, &mut g, &parts.iter().collect::<Vec<_>>())
    };
    let split = ["f32 Split(x) [batch, sequence, 3]", "f32 Split(x) [batch, sequence, 1]"];
    assert_eq!(lines(&[0..3, 3..4]), split);
    assert_eq!(lines(&[3..4, 0..3]), [split[1], split[0]]);
    assert_eq!(lines(&[0..3, 3..4, 0..3]), [split[0], split[1], split[0]]);
    // A gap, what lies in two, no end.
    for ranges in [&[0..2, 3..4], &[0..3, 2..4], &[0..1, 1..3]] {
        assert!(lines(ranges).iter().all(|line| line.starts_with("f32 Slice")), "{ranges:?}");
    }
    let whole = 0..4;
    assert_eq!(lines(std::slice::from_ref(&whole)), ["f32 Slice(x) [batch, sequence, 4]"]);
}

#[test]
fn choices_are_products_beside_convolutions_and_behind_transpositions() {
    let chosen = |convolves, transposed| {
        let mut g = Graph::new();
        let x = g.input(Input::f32("x", dims![BATCH, 2, 5]));
        let x = match transposed {
            true => {
                let back = g.transpose(&x, &[0, 2, 1]).unwrap();
                let doubled = g.add(&back, &back).unwrap();
                g.transpose(&doubled, &[0, 2, 1]).unwrap()
            }
            false => x,
        };
        let chosen = g.input(Input::bool("chosen", dims![BATCH, 2, 5]));
        let one = g.scalar(1.0);
        let y = g.select(&chosen, &x, &one).unwrap();
        let y = if convolves { g.conv(&g.scope("w"), &y, &Conv::new(2, &[1])).unwrap() } else { y };
        after(Pass::whole("choices", types::choose_by_product), &mut g, &[&y]).len()
    };
    assert_eq!([chosen(false, false), chosen(true, false), chosen(false, true)], [1, 7, 9]);
}

#[test]
fn arithmetic_is_all_that_is_needed() {
    let lines = |body: fn(&mut Graph, &Tensor) -> Tensor, rule| {
        let (mut g, x) = with_x(Dtype::F32);
        g.map_lengths(|dim| dim.substitute(&|_| Some(2)));
        let x = g.tensor(x.id).clone();
        let y = body(&mut g, &x);
        let lines = after(Pass::each("arithmetic", rule), &mut g, &[&y]);
        lines.into_iter().map(|line| line["f32 ".len()..].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        lines(|g, x| g.cumsum(x, 1).unwrap(), arithmetic::cumsum_by_product),
        [
            "Transpose(x) [2, 4, 2]",
            "Expand(1.0) [2, 2]",
            "Trilu(%1) [2, 2]",
            "MatMul(%0, %2) [2, 4, 2]",
            "Transpose(%3) [2, 2, 4]",
        ]
    );
    assert_eq!(
        lines(
            |g, x| g.pad(x, &[(1, 1, 0), (2, 0, 2)], PadMode::Constant(0.5)).unwrap(),
            arithmetic::pad_by_concat
        ),
        ["Concat(literal [2, 1, 4], x) [2, 3, 4]", "Concat(%0, literal [2, 3, 2]) [2, 3, 6]"]
    );
    assert_eq!(
        lines(|g, x| g.binary(Binary::Min, x, x).unwrap(), arithmetic::min_by_max),
        [
            "Mul(x, -1.0) [2, 2, 4]",
            "Mul(x, -1.0) [2, 2, 4]",
            "Max(%0, %1) [2, 2, 4]",
            "Mul(%2, -1.0) [2, 2, 4]"
        ]
    );
    assert_eq!(
        lines(|g, x| g.unary(Unary::Floor, x), arithmetic::signs_by_product),
        ["Mul(x, -1.0) [2, 2, 4]", "Ceil(%0) [2, 2, 4]", "Mul(%1, -1.0) [2, 2, 4]"]
    );
    assert_eq!(
        lines(
            |g, x| {
                let column = g.slice(x, 2, 0..1).unwrap();
                g.expand(&column, dims![3, 2, 2, 4]).unwrap()
            },
            arithmetic::expand_by_tile
        ),
        ["Slice(x) [2, 2, 1]", "Reshape(%0) [1, 2, 2, 1]", "Tile(%1) [3, 2, 2, 4]"]
    );
}

#[test]
fn truth_is_a_number() {
    let (mut g, x) = with_x(Dtype::I64);
    let three = g.integer(3);
    let less = g.binary(Binary::Less, &x, &three).unwrap();
    let not = g.unary(Unary::Not, &less);
    let chosen = g.select(&not, &x, &three).unwrap();
    let lines = after(Pass::whole("floats", floats::compute_in_floats), &mut g, &[&chosen]);
    let lines: Vec<_> = lines.iter().map(|line| line.replace(" [batch, sequence, 4]", "")).collect();
    assert_eq!(
        lines,
        [
            "f32 Cast(x)",
            "f32 Sub(3.0, %0)",
            "f32 Clip(%1)",
            "f32 Sub(1.0, %2)",
            "f32 Mul(%0, %3)",
            "f32 Sub(1.0, %3)",
            "f32 Mul(3.0, %5)",
            "f32 Add(%4, %6)",
            "i64 Cast(%7)",
        ]
    );
}

#[test]
fn an_integer_given_on_as_it_came_is_a_number_in_between() {
    let (mut g, x) = with_x(Dtype::I64);
    let lines = after(Pass::whole("floats", floats::compute_in_floats), &mut g, &[&x]);
    assert_eq!(lines, ["f32 Cast(x) [batch, sequence, 4]", "i64 Cast(%0) [batch, sequence, 4]"]);
    let (mut g, x) = with_x(Dtype::F32);
    assert!(after(Pass::whole("floats", floats::compute_in_floats), &mut g, &[&x]).is_empty());
}

#[test]
fn fractions_are_compared_by_the_sign_of_their_difference() {
    let lines = |op| {
        let (mut g, x) = with_x(Dtype::F32);
        let half = g.scalar(0.5);
        let compared = g.binary(op, &x, &half).unwrap();
        let number = g.cast(&compared, Dtype::F32);
        let lines = after(Pass::whole("floats", floats::compute_in_floats), &mut g, &[&number]);
        lines.iter().map(|line| line.replace(" [batch, sequence, 4]", "")).collect::<Vec<_>>()
    };
    assert_eq!(lines(Binary::Less), ["f32 Sub(0.5, x)", "f32 Clip(%0)", "f32 Ceil(%1)"]);
    assert_eq!(
        lines(Binary::LessOrEqual),
        ["f32 Sub(x, 0.5)", "f32 Clip(%0)", "f32 Ceil(%1)", "f32 Sub(1.0, %2)"]
    );
    assert_eq!(lines(Binary::Equal).last().unwrap(), "f32 Sub(1.0, %6)");
}

#[test]
fn equal_operations_are_one() {
    let (mut g, x) = with_x(Dtype::F32);
    let twice = [1.0, 1.0].map(|one| {
        let one = g.scalar(one);
        g.add(&x, &one).unwrap()
    });
    let two = g.scalar(2.0);
    let other = g.add(&x, &two).unwrap();
    let lines = after(Pass::whole("share", share::equal), &mut g, &[&twice[0], &twice[1], &other]);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(g.outputs[0].1, g.outputs[1].1);
}

#[test]
fn one_position_of_each_item_is_a_product() {
    let (mut g, x) = with_x(Dtype::F32);
    let index = g.input(Input::i64("index", dims![BATCH]));
    let picked = g.gather_batched(&x, &index).unwrap();
    assert_eq!(
        after(Pass::each("gather", select::gather_by_product), &mut g, &[&picked]),
        [
            "i64 Reshape(index) [batch, 1]",
            "i64 Range() [sequence]",
            "i64 Reshape(%1) [1, sequence]",
            "bool Equal(%2, %0) [batch, sequence]",
            "f32 Cast(%3) [batch, sequence]",
            "f32 Reshape(%4) [batch, 1, sequence]",
            "f32 Reshape(x) [batch, sequence, 4]",
            "f32 MatMul(%5, %6) [batch, 1, 4]",
            "f32 Reshape(%7) [batch, 4]",
        ]
    );
    let (mut g, x) = with_x(Dtype::I64);
    let index = g.input(Input::i64("index", dims![BATCH]));
    let picked = g.gather_batched(&x, &index).unwrap();
    let lines = after(Pass::each("gather", select::gather_by_product), &mut g, &[&picked]);
    assert_eq!(
        lines[4..],
        [
            "bool Reshape(%3) [batch, sequence, 1]",
            "i64 Where(%4, x, 0) [batch, sequence, 4]",
            "i64 ReduceSum(%5) [batch, 4]"
        ]
    );
}

#[test]
fn a_disjunction_is_no_conjunction_of_opposites() {
    let (mut g, x) = with_x(Dtype::Bool);
    let y = g.input(Input::bool("y", dims![BATCH, SEQUENCE, 4]));
    let or = g.binary(Binary::Or, &x, &y).unwrap();
    let lines = after(Pass::each("or", select::or_by_and), &mut g, &[&or]);
    let operators: Vec<_> = lines.iter().map(|line| line.trim_end_matches(" [batch, sequence, 4]")).collect();
    assert_eq!(operators, ["bool Not(x)", "bool Not(y)", "bool And(%0, %1)", "bool Not(%2)"]);
}

#[test]
fn logarithms_of_whole_numbers_are_looked_up() {
    let looked_up = |floor: bool| {
        let (mut g, x) = with_x(Dtype::F32);
        let one = g.scalar(1.0);
        let x = if floor { g.unary(Unary::Floor, &x) } else { x };
        let x = g.add(&x, &one).unwrap();
        let y = g.unary(Unary::Log, &x);
        let lines = after(Pass::each("log", select::logarithm_by_table), &mut g, &[&y]);
        lines.last().unwrap().replace(" [batch, sequence, 4]", "")
    };
    assert_eq!(looked_up(true), "f32 Gather(literal [4097], %3)");
    assert_eq!(looked_up(false), "f32 Log(%0)", "what may be a fraction is no row of a table");
}

#[test]
fn axes_that_stay_together_are_moved_as_one() {
    let mut g = Graph::new();
    let x = g.input(Input::f32("x", dims![BATCH, 2, 3, 4, 5, 6]));
    let y = g.transpose(&x, &[0, 1, 3, 2, 4, 5]).unwrap();
    let z = g.transpose(&x, &[5, 4, 3, 2, 1, 0]).unwrap();
    assert_eq!(
        after(Pass::each("axes", axes::transpose_runs), &mut g, &[&y, &z]),
        [
            "f32 Reshape(x) [2*batch, 3, 4, 30]",
            "f32 Transpose(%0) [2*batch, 4, 3, 30]",
            "f32 Reshape(%1) [batch, 2, 4, 3, 5, 6]",
            "f32 Transpose(x) [6, 5, 4, 3, 2, batch]",
        ]
    );
}

#[test]
fn waves_have_four_axes_and_reshapes_begin_with_the_first() {
    let mut g = Graph::new();
    let x = g.input(Input::f32("x", dims![BATCH, 2, 3, 4, 5]));
    let y = g.unary(Unary::Sin, &x);
    let y = g.reshape(&y, dims![BATCH, 120]).unwrap();
    let y = g.reshape(&y, dims![BATCH, 60, 2]).unwrap();
    g.output("y", &y).unwrap();
    Pass::each("waves", axes::flat_waves).run(&mut g, &Target::by(&[])).unwrap();
    Pass::whole("reshapes", axes::join_reshapes).run(&mut g, &Target::by(&[])).unwrap();
    g.prune();
    assert_eq!(
        g.lines(),
        [
            "f32 Reshape(x) [batch, 2, 12, 5]",
            "f32 Sin(%0) [batch, 2, 12, 5]",
            "f32 Reshape(%1) [batch, 60, 2]"
        ]
    );
}

#[test]
fn bfloat16_is_gone_round() {
    let (mut g, x) = with_x(Dtype::F32);
    let narrow = g.cast(&x, Dtype::Bf16);
    let y = g.cast(&narrow, Dtype::F32);
    let lines = after(Pass::each("bfloat16", bfloat16::by_arithmetic), &mut g, &[&y]);
    assert!(lines.iter().all(|line| !line.starts_with("bf16")), "{lines:?}");
}

#[test]
fn what_a_batch_shares_is_added_beside_an_axis_of_1() {
    let lines = |body: fn(&mut Graph, &Tensor) -> Tensor, batch: usize| {
        let (mut g, x) = with_x(Dtype::F32);
        g.map_lengths(|dim| dim.substitute(&|name| Some(if name == "batch" { batch } else { 3 })));
        let x = g.tensor(x.id).clone();
        let y = body(&mut g, &x);
        after(Pass::each("batch", axes::batch_apart), &mut g, &[&y])
    };
    let positions = |g: &mut Graph, x: &Tensor| {
        let positions = g.weight("positions", &[3, 4]).unwrap();
        g.add(x, &positions).unwrap()
    };
    assert_eq!(
        lines(positions, 2),
        ["f32 Reshape(x) [2, 1, 3, 4]", "f32 Add(%0, positions) [2, 1, 3, 4]", "f32 Reshape(%1) [2, 3, 4]"]
    );
    assert_eq!(lines(positions, 1), ["f32 Add(x, positions) [1, 3, 4]"], "a batch of one shares nothing");
    let mask = |g: &mut Graph, x: &Tensor| {
        let mask = g.weight("mask", &[1, 3, 1]).unwrap();
        g.mul(&mask, x).unwrap()
    };
    assert_eq!(lines(mask, 2)[1], "f32 Mul(mask, %0) [2, 1, 3, 4]", "operands keep their order");
    let bias = |g: &mut Graph, x: &Tensor| {
        let bias = g.weight("bias", &[4]).unwrap();
        g.add(x, &bias).unwrap()
    };
    assert_eq!(lines(bias, 2), ["f32 Add(x, bias) [2, 3, 4]"], "a row is no matrix");
}
