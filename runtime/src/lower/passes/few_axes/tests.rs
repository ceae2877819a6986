//! Fewer axes give the same numbers.

use super::*;
use crate::graph::{Input, Scope};
use crate::lower::passes::{Pass, Rule, testing};
use crate::nn::testing::evaluate;

/// 0, 1, 2 … of a shape.
fn counted(g: &mut Graph, shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    g.constant(shape, (0..count).map(|i| i as f32).collect()).unwrap()
}

/// What a rule makes of a graph, each line without its operands, once it was found to give the same numbers.
#[track_caller]
fn lowered(rule: Rule, build: impl Fn(&mut Graph) -> Result<Tensor>) -> Vec<String> {
    let rewritten = |g: &mut Graph| {
        let y = build(g)?;
        g.output("y", &y)?;
        g.rewrite(rule)?;
        let (_, id) = g.outputs.pop().unwrap();
        Ok(g.tensor(id).clone())
    };
    let weights: &[(&str, &[f32])] = &[];
    if let Some(want) = evaluate(weights, &build) {
        assert_eq!(evaluate(weights, rewritten), Some(want));
    }
    let mut g = Graph::new();
    let y = build(&mut g).unwrap();
    lines(rule, &mut g, &y)
}

fn lines(rule: Rule, g: &mut Graph, y: &Tensor) -> Vec<String> {
    let lines = testing::after(Pass::each("few", rule), g, &[y]);
    lines
        .iter()
        .map(|line| format!("{}{}", line.split('(').next().unwrap(), &line[line.rfind(" [").unwrap()..]))
        .collect()
}

#[test]
fn transpositions_change_blocks() {
    // Windows of a map: rows and columns of windows before those within each.
    let windows = |g: &mut Graph| {
        let x = counted(g, &[2, 3, 4, 5, 2, 3]);
        g.transpose(&x, &[0, 2, 4, 1, 3, 5])
    };
    let want = [
        "f32 Reshape [2, 3, 4, 30]",
        "f32 Transpose [2, 4, 3, 30]",
        "f32 Reshape [8, 15, 2, 3]",
        "f32 Transpose [8, 2, 15, 3]",
        "f32 Reshape [2, 4, 2, 3, 5, 3]",
    ];
    assert_eq!(lowered(transpose_by_blocks, windows), want);
    let ones = |g: &mut Graph| {
        let x = counted(g, &[1, 3, 1, 5, 2, 3]);
        g.transpose(&x, &[4, 0, 5, 3, 2, 1])
    };
    let want = ["f32 Reshape [3, 5, 2, 3]", "f32 Transpose [2, 3, 5, 3]", "f32 Reshape [2, 1, 3, 5, 1, 3]"];
    assert_eq!(lowered(transpose_by_blocks, ones), want);
    for order in [[5, 4, 3, 2, 1, 0], [3, 1, 5, 0, 4, 2], [1, 2, 3, 4, 5, 0]] {
        let turned = |g: &mut Graph| {
            let x = counted(g, &[2, 3, 4, 2, 2, 3]);
            g.transpose(&x, &order)
        };
        let lines = lowered(transpose_by_blocks, turned);
        assert!(lines[..lines.len() - 1].iter().all(|line| line.matches(',').count() == 3), "{lines:?}");
    }
    let five = |g: &mut Graph| {
        let x = counted(g, &[2, 3, 4, 5, 2]);
        g.transpose(&x, &[0, 2, 4, 1, 3])
    };
    assert_eq!(lowered(transpose_by_blocks, five), ["f32 Transpose [2, 4, 2, 3, 5]"]);
    let integers = |g: &mut Graph| {
        let x = g.integers(&[1, 2, 1, 2, 2], (0..8).collect())?;
        g.transpose(&x, &[4, 3, 2, 1, 0])
    };
    let want = ["i64 Reshape [2, 2, 2]", "i64 Transpose [2, 2, 2]", "i64 Reshape [2, 2, 1, 2, 1]"];
    assert_eq!(lowered(transpose_by_blocks, integers), want, "integers have four axes");
}

#[test]
fn element_wise_operations_have_few_axes() {
    let least = |g: &mut Graph| {
        let (x, most) = (counted(g, &[2, 3, 4, 4, 2]), counted(g, &[4, 4, 1]));
        g.binary(Binary::Min, &x, &most)
    };
    let want = [
        "f32 Reshape [6, 4, 4, 2]",
        "f32 Reshape [1, 4, 4, 1]",
        "f32 Min [6, 4, 4, 2]",
        "f32 Reshape [2, 3, 4, 4, 2]",
    ];
    assert_eq!(lowered(elementwise, least), want);
    let sum = |g: &mut Graph| {
        let (rows, columns) = (counted(g, &[2, 3, 2, 2, 4, 1]), counted(g, &[2, 3, 2, 2, 1, 3]));
        g.add(&rows, &columns)
    };
    let want = [
        "f32 Reshape [6, 2, 2, 4, 1]",
        "f32 Reshape [6, 2, 2, 1, 3]",
        "f32 Add [6, 2, 2, 4, 3]",
        "f32 Reshape [2, 3, 2, 2, 4, 3]",
    ];
    assert_eq!(lowered(elementwise, sum), want);
    let five = |g: &mut Graph| {
        let (x, two) = (counted(g, &[2, 3, 4, 4, 2]), g.scalar(2.0));
        g.mul(&x, &two)
    };
    assert_eq!(lowered(elementwise, five), ["f32 Mul [2, 3, 4, 4, 2]"], "five are few for products");
    let choice = |g: &mut Graph| {
        let (x, two) = (counted(g, &[2, 1, 2, 3, 2, 2]), g.scalar(2.0));
        let small = g.binary(Binary::Less, &x, &two)?;
        g.select(&small, &two, &x)
    };
    let want = [
        "f32 Reshape [2, 2, 3, 2, 2]",
        "bool Less [2, 2, 3, 2, 2]",
        "bool Reshape [2, 1, 2, 3, 2, 2]",
        "bool Reshape [2, 2, 3, 2, 2]",
        "f32 Reshape [2, 2, 3, 2, 2]",
        "f32 Where [2, 2, 3, 2, 2]",
        "f32 Reshape [2, 1, 2, 3, 2, 2]",
    ];
    assert_eq!(lowered(elementwise, choice), want);
    let negated = |g: &mut Graph| {
        let x = counted(g, &[2, 1, 2, 3, 2]);
        Ok(g.unary(Unary::Neg, &x))
    };
    let want = ["f32 Reshape [2, 2, 3, 2]", "f32 Neg [2, 2, 3, 2]", "f32 Reshape [2, 1, 2, 3, 2]"];
    assert_eq!(lowered(elementwise, negated), want);
}

#[test]
fn axes_that_no_others_go_with_stay() {
    let mut g = Graph::new();
    let x = g.input(Input::f32("x", dims![2, 1, 3, 1, 4]));
    let y = g.input(Input::f32("y", dims![1, 5, 1, 6, 1]));
    let most = g.binary(Binary::Max, &x, &y).unwrap();
    assert_eq!(lines(elementwise, &mut g, &most), ["f32 Max [2, 5, 3, 6, 4]"]);
}

#[test]
fn an_axis_has_one_before_and_one_behind() {
    let part = |g: &mut Graph| {
        let x = counted(g, &[2, 3, 4, 2, 2, 1]);
        g.slice(&x, 2, 1..3)
    };
    let want = ["f32 Reshape [6, 4, 4]", "f32 Slice [6, 2, 4]", "f32 Reshape [2, 3, 2, 2, 2, 1]"];
    assert_eq!(lowered(along_an_axis, part), want);
    let windows = |g: &mut Graph| {
        let (x, ids) = (counted(g, &[2, 3, 2, 2, 4]), g.integers(&[2, 2], vec![0, 1, 2, 3])?);
        g.gather(&x, &ids, 4)
    };
    let want = ["f32 Reshape [24, 4, 1]", "f32 Gather [24, 2, 2, 1]", "f32 Reshape [2, 3, 2, 2, 2, 2]"];
    assert_eq!(lowered(along_an_axis, windows), want);
    let joined = |g: &mut Graph| {
        let (x, y) = (counted(g, &[2, 1, 2, 2, 2, 2]), counted(g, &[2, 1, 2, 1, 2, 2]));
        g.concat(&[&x, &y], 3)
    };
    let want = [
        "f32 Reshape [4, 2, 4]",
        "f32 Reshape [4, 1, 4]",
        "f32 Concat [4, 3, 4]",
        "f32 Reshape [2, 1, 2, 3, 2, 2]",
    ];
    assert_eq!(lowered(along_an_axis, joined), want);
}

#[test]
fn batch_norm_has_four_axes() {
    let normed = |rank: usize| {
        let mut g = Graph::new();
        let x = g.input(Input::f32("x", [2, 3, 4, 5, 6][..rank].iter().map(|&n| Dim::Fixed(n)).collect()));
        let y = g.batch_norm(&Scope::root().scope("w"), &x, 1e-5).unwrap();
        lines(batch_norm, &mut g, &y)
    };
    let want =
        ["f32 Reshape [2, 3, 4, 30]", "f32 BatchNormalization [2, 3, 4, 30]", "f32 Reshape [2, 3, 4, 5, 6]"];
    assert_eq!(normed(5), want);
    assert_eq!(normed(4), ["f32 BatchNormalization [2, 3, 4, 5]"]);
}

#[test]
fn truths_are_handed_out_by_32_bits() {
    let mut g = Graph::new();
    let seen = g.input(Input::bool("seen", dims![2]));
    let count = g.input(Input::i64("count", dims![2]));
    let mask = g.cast(&seen, Dtype::I64);
    let sum = g.add(&mask, &count).unwrap();
    let inner = testing::after(Pass::whole("outputs", whole_outputs), &mut g.clone(), &[&sum]);
    assert_eq!(inner, ["i64 Cast(seen) [2]", "i64 Add(%0, count) [2]"]);
    let lines = testing::after(Pass::whole("outputs", whole_outputs), &mut g, &[&mask, &sum]);
    assert_eq!(lines, ["i32 Cast(seen) [2]", "i64 Cast(%0) [2]", "i64 Add(%1, count) [2]"]);
}
