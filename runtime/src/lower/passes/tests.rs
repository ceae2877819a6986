//! What each pass makes of the smallest graph that it is for.

use super::testing::after;
use super::{
    Pass, Rule, activation, arithmetic, attention, axes, bfloat16, floats, linear, norm, precision, resize,
    rotary,
};
use super::{select, share, spatial, types};
use crate::dims;
use crate::graph::dims::{BATCH, SEQUENCE};
use crate::graph::{
    Binary, Conv, Dim, Dtype, Graph, Input, Interpolation, PadMode, Reduction, Tensor, Unary,
};
use crate::lower::Target;
use crate::nn::{Activation, Attention, Rotary};

/// A graph with x `[batch, sequence, 4]` of a type.
fn with_x(dtype: Dtype) -> (Graph, Tensor) {
    let mut g = Graph::new();
    let x = match dtype {
        Dtype::I64 => Input::i64("x", dims![BATCH, SEQUENCE, 4]),
        Dtype::Bool => Input::bool("x", dims![BATCH, SEQUENCE, 4]),
        _ => Input::f32("x", dims![BATCH, SEQUENCE, 4]),
    };
    let x = g.input(x);
    (g, x)
}

#[test]
fn linear_layers_are_flattened_or_products() {
    for (rule, want) in [
        (
            linear::flatten as Rule,
            vec![
                "f32 Reshape(x) [batch*sequence, 4]",
                "f32 Linear(%0, w.weight, w.bias) [batch*sequence, 3]",
                "f32 Reshape(%1) [batch, sequence, 3]",
            ],
        ),
        (
            linear::by_product,
            vec![
                "f32 Transpose(w.weight) [4, 3]",
                "f32 MatMul(x, %0) [batch, sequence, 3]",
                "f32 Add(%1, w.bias) [batch, sequence, 3]",
            ],
        ),
    ] {
        let (mut g, x) = with_x(Dtype::F32);
        let y = g.linear(&g.scope("w"), &x, 3).unwrap();
        assert_eq!(after(Pass::each("linear", rule), &mut g, &[&y]), want);
    }
}

#[test]
fn activations_are_what_backends_have() {
    let lines = |act, rule| {
        let (mut g, x) = with_x(Dtype::F32);
        let y = g.activation(act, &x).unwrap();
        let lines = after(Pass::each("activation", rule), &mut g, &[&y]);
        lines.into_iter().map(|line| line.replace(" [batch, sequence, 4]", "")).collect::<Vec<_>>()
    };
    assert_eq!(lines(Activation::Silu, activation::by_operators), ["f32 Sigmoid(x)", "f32 Mul(x, %0)"]);
    assert_eq!(lines(Activation::Relu6, activation::by_operators), ["f32 Clip(x)"]);
    assert_eq!(lines(Activation::Gelu, activation::by_operators), ["f32 Gelu(x)"]);
    assert_eq!(lines(Activation::GeluNew, activation::gelu_by_kernel), ["f32 FastGelu(x)"]);
    let erf =
        ["f32 Div(x, 1.4142135)", "f32 Erf(%0)", "f32 Add(%1, 1.0)", "f32 Mul(x, %2)", "f32 Mul(%3, 0.5)"];
    assert_eq!(lines(Activation::Gelu, activation::gelu_by_operators), erf);
}

#[test]
fn norms_are_kernels_or_arithmetic() {
    let (mut g, x) = with_x(Dtype::F32);
    let y = g.rms_norm(&g.scope("w"), &x, 1e-6).unwrap();
    let lines = after(Pass::each("norm", norm::rms_by_kernel), &mut g.clone(), &[&y]);
    assert_eq!(lines, ["f32 SimplifiedLayerNormalization(x, w.weight) [batch, sequence, 4]"]);
    let lines = after(Pass::each("norm", norm::rms_by_operators), &mut g, &[&y]);
    let operators: Vec<_> = lines.iter().map(|line| line.split([' ', '(']).nth(1).unwrap()).collect();
    assert_eq!(operators, ["Mul", "ReduceMean", "Add", "Sqrt", "Div", "Mul"]);
}

#[test]
fn only_whole_heads_keep_their_rotation() {
    let rotated = |pairs: usize| {
        let (mut g, x) = with_x(Dtype::F32);
        let positions = g.input(Input::i64("positions", dims![BATCH, SEQUENCE]));
        let rotary = Rotary::new(&mut g, &positions, &vec![0.5; pairs], 1.0).unwrap();
        let y = rotary.apply(&mut g, &x, 1).unwrap();
        after(Pass::each("rotary", rotary::partly_by_product), &mut g, &[&y])
    };
    assert!(rotated(2).iter().any(|line| line.starts_with("f32 RotaryEmbedding")));
    assert!(rotated(1).iter().all(|line| !line.starts_with("f32 RotaryEmbedding")));
}

#[test]
fn angles_are_in_single_precision() {
    let mut g = Graph::new();
    let positions = g.input(Input::i64("p", dims![BATCH]));
    let op = crate::graph::Op::Angles { of: Unary::Sin, frequencies: vec![1.0, 0.5], scaling: 2.0 };
    let y = g.node(op, &[&positions], Dtype::F16, dims![BATCH, 2]);
    assert_eq!(
        after(Pass::each("angles", rotary::angles), &mut g, &[&y]),
        [
            "f32 Cast(p) [batch]",
            "f32 Reshape(%0) [batch, 1]",
            "f32 Mul(%1, literal [2]) [batch, 2]",
            "f32 Sin(%2) [batch, 2]",
            "f32 Mul(%3, 2.0) [batch, 2]",
            "f16 Cast(%4) [batch, 2]",
        ]
    );
}

#[test]
fn attention_is_one_kernel_where_it_fits() {
    let of = |rule, softcap, kv_heads| {
        let (mut g, x) = with_x(Dtype::F32);
        let k = g.slice(&x, 2, 0..2 * kv_heads).unwrap();
        let options = Attention { heads: 2, kv_heads, softcap, ..Attention::default() };
        let y = g.attention(&x, &k, &k, &options).unwrap();
        let lines = after(Pass::each("attention", rule), &mut g, &[&y]);
        let operators = lines.iter().map(|line| line.split([' ', '(']).nth(1).unwrap().to_owned());
        operators.skip(1).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(of(attention::standard, 0.0, 1), "Attention");
    assert_eq!(of(attention::multi_head, 0.0, 2), "MultiHeadAttention");
    assert_eq!(
        of(attention::multi_head, 0.0, 1),
        "Reshape Transpose Reshape Transpose Reshape Tile Reshape Reshape Tile Reshape MultiHeadAttention"
    );
    let products = of(attention::by_products, 3.0, 2);
    assert_eq!(of(attention::multi_head, 3.0, 2), products, "the kernel knows no soft cap");
    assert!(products.ends_with("Mul MatMul Div Tanh Mul Softmax MatMul Transpose Reshape"), "{products}");
}

#[test]
fn images_are_resized_by_indices_and_products() {
    let resized = |by, rule| {
        let mut g = Graph::new();
        let x = g.input(Input::f32("x", dims![BATCH, 3, 2, 2]));
        let x = g.slice(&x, 1, 0..1).unwrap();
        let x = g.reshape(&x, dims![BATCH, 1, 2, 2]).unwrap();
        let y = g.resize(&x, [Dim::Fixed(4), Dim::Fixed(6)], by, false).unwrap();
        g.map_lengths(|dim| dim.substitute(&|_| Some(1)));
        after(Pass::each("resize", rule), &mut g, &[&y]).split_off(2)
    };
    assert_eq!(
        resized(Interpolation::Nearest, resize::nearest_by_gather),
        ["f32 Gather(%1, literal [4]) [1, 1, 4, 2]", "f32 Gather(%2, literal [6]) [1, 1, 4, 6]"]
    );
    assert_eq!(
        resized(Interpolation::Bicubic, resize::cubic_by_products),
        ["f32 MatMul(%1, literal [2, 6]) [1, 1, 2, 6]", "f32 MatMul(literal [4, 2], %2) [1, 1, 4, 6]"]
    );
    assert_eq!(resized(Interpolation::Bilinear, resize::nearest_by_gather), ["f32 Resize(%1) [1, 1, 4, 6]"]);
}

#[test]
fn channels_in_threes_get_zeros() {
    let convolved = |channels: usize| {
        let mut g = Graph::new();
        let x = g.input(Input::f32("x", dims![BATCH, channels, 5]));
        let y = g.conv(&g.scope("w"), &x, &Conv::new(2, &[1])).unwrap();
        after(Pass::each("channels", spatial::pad_channels), &mut g, &[&y])
    };
    let conv = |x: &str| format!("f32 Conv({x}, w.bias) [batch, 2, 5]");
    assert_eq!(
        convolved(6),
        ["f32 Pad(x) [batch, 8, 5]".to_owned(), "f32 Pad(w.weight) [2, 8, 1]".to_owned(), conv("%0, %1")]
    );
    for channels in [3, 4, 12] {
        assert_eq!(convolved(channels), [conv("x, w.weight")], "{channels}");
    }
}

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
    let (mut g, x) = with_x(Dtype::F32);
    let truth = g.cast(&x, Dtype::Bool);
    assert_eq!(
        after(Pass::each("truth", precision::truth_by_comparison), &mut g, &[&truth]),
        ["bool Equal(x, 0.0) [batch, sequence, 4]", "bool Not(%0) [batch, sequence, 4]"]
    );
}

#[test]
fn choices_are_products_beside_convolutions_only() {
    let chosen = |convolves| {
        let mut g = Graph::new();
        let x = g.input(Input::f32("x", dims![BATCH, 2, 5]));
        let chosen = g.input(Input::bool("chosen", dims![BATCH, 2, 5]));
        let one = g.scalar(1.0);
        let y = g.select(&chosen, &x, &one).unwrap();
        let y = if convolves { g.conv(&g.scope("w"), &y, &Conv::new(2, &[1])).unwrap() } else { y };
        after(Pass::whole("choices", types::choose_by_product), &mut g, &[&y]).len()
    };
    assert_eq!([chosen(false), chosen(true)], [1, 7]);
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
fn fractions_are_compared_as_they_are() {
    let (mut g, x) = with_x(Dtype::F32);
    let half = g.scalar(0.5);
    let less = g.binary(Binary::Less, &x, &half).unwrap();
    let number = g.cast(&less, Dtype::F32);
    assert_eq!(
        after(Pass::whole("floats", floats::compute_in_floats), &mut g, &[&number]),
        ["bool Less(x, 0.5) [batch, sequence, 4]", "f32 Cast(%0) [batch, sequence, 4]"]
    );
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
