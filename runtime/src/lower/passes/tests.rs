//! What each pass makes of the smallest graph that it is for: here those of layers.

mod elements;
mod numbers;
mod top_k;

use super::testing::after;
use super::{Pass, Rule, activation, attention, linear, norm, resize, rotary, spatial};
use crate::dims;
use crate::graph::dims::{BATCH, SEQUENCE};
use crate::graph::{Conv, Dim, Dtype, Graph, Input, Interpolation, Tensor, Unary};
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
fn weights_have_three_axes_beside_a_batch_of_long_sequences() {
    let lines = |batch: usize, positions: usize| {
        let (mut g, x) = with_x(Dtype::F32);
        g.map_lengths(|dim| dim.substitute(&|name| Some(if name == "batch" { batch } else { positions })));
        let x = g.tensor(x.id).clone();
        let y = g.linear(&g.scope("w"), &x, 3).unwrap();
        after(Pass::each("linear", linear::long_by_batched_product), &mut g, &[&y])
    };
    assert_eq!(
        lines(2, 1500),
        [
            "f32 Transpose(w.weight) [4, 3]",
            "f32 Reshape(%0) [1, 4, 3]",
            "f32 MatMul(x, %1) [2, 1500, 3]",
            "f32 Add(%2, w.bias) [2, 1500, 3]",
        ]
    );
    for (batch, positions) in [(1, 1500), (2, 1024), (2, 1504), (2, 20)] {
        let want = format!("f32 Linear(x, w.weight, w.bias) [{batch}, {positions}, 3]");
        assert_eq!(lines(batch, positions), [want]);
    }
}

#[test]
fn rows_of_a_fixed_number_have_three_axes() {
    let lines = |rows: Dim| {
        let mut g = Graph::new();
        let x = g.input(Input::f32("x", dims![rows, 4]));
        let y = g.linear(&g.scope("w"), &x, 3).unwrap();
        after(Pass::each("rows", linear::rows_on_three_axes), &mut g, &[&y])
    };
    let want =
        ["f32 Reshape(x) [1, 2, 4]", "f32 Linear(%0, w.weight, w.bias) [1, 2, 3]", "f32 Reshape(%1) [2, 3]"];
    assert_eq!(lines(Dim::Fixed(2)), want);
    assert_eq!(lines(BATCH), ["f32 Linear(x, w.weight, w.bias) [batch, 3]"]);
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
fn pools_of_one_axis_have_a_second_of_one_place() {
    let mut g = Graph::new();
    let x = g.input(Input::f32("x", dims![BATCH, 6, 9]));
    let y = g.avg_pool(&x, &[3], &[2], &[1]).unwrap();
    assert_eq!(
        after(Pass::each("pools", spatial::pool_on_two_axes), &mut g, &[&y]),
        [
            "f32 Reshape(x) [batch, 6, 9, 1]",
            "f32 AveragePool(%0) [batch, 6, 5, 1]",
            "f32 Reshape(%1) [batch, 6, 5]"
        ]
    );
    let mut g = Graph::new();
    let x = g.input(Input::f32("x", dims![BATCH, 6, 9, 9]));
    let y = g.max_pool(&x, &[3, 3], &[2, 2], &[1, 1]).unwrap();
    assert_eq!(
        after(Pass::each("pools", spatial::pool_on_two_axes), &mut g, &[&y]),
        ["f32 MaxPool(x) [batch, 6, 5, 5]"]
    );
}
