//! What does not fit is refused when the graph is built: the message names the operation, the scope and both shapes.

use insta::assert_snapshot;
use proptest::prelude::*;

use super::dims::{BATCH, SEQUENCE};
use super::shape::broadcast;
use super::*;
use crate::dims;
use crate::graph::{Activation, Attention};

/// A graph inside `bert.encoder.layer.3`, with values of these shapes.
fn place(shapes: &[Vec<Dim>]) -> (Graph, Vec<Tensor>) {
    let mut g = Graph::new();
    let scope = g.scope("bert").scope("encoder").scope("layer").index(3);
    let inputs =
        shapes.iter().enumerate().map(|(i, shape)| g.input(Input::f32(&format!("x{i}"), shape.clone())));
    let tensors = inputs.collect();
    g.enter(&scope);
    (g, tensors)
}

/// What an operation on such values says; it must fail.
fn refusal<T: std::fmt::Debug>(
    shapes: &[Vec<Dim>],
    operation: impl FnOnce(&mut Graph, &[Tensor]) -> Result<T>,
) -> String {
    let (mut g, tensors) = place(shapes);
    operation(&mut g, &tensors).unwrap_err().to_string()
}

#[test]
fn element_wise() {
    let (two, three) = (dims![2], dims![3]);
    assert_snapshot!(refusal(&[dims![BATCH, 4], dims![SEQUENCE, 4]], |g, x| g.add(&x[0], &x[1])), @"Add in bert.encoder.layer.3: [batch, 4] and [sequence, 4] do not broadcast");
    assert_snapshot!(refusal(&[dims![2, 3], dims![3, 2]], |g, x| g.mul(&x[0], &x[1])), @"Mul in bert.encoder.layer.3: [2, 3] and [3, 2] do not broadcast");
    let mixed = |g: &mut Graph, x: &[Tensor]| {
        let n = g.integer(1);
        g.sub(&x[0], &n)
    };
    assert_snapshot!(refusal(std::slice::from_ref(&two), mixed), @"Sub in bert.encoder.layer.3: f32 and i64 do not mix");
    let select = |g: &mut Graph, x: &[Tensor]| {
        let condition = g.cast(&x[0], Dtype::Bool);
        g.select(&condition, &x[0], &x[1])
    };
    assert_snapshot!(refusal(&[two.clone(), three], select), @"Where in bert.encoder.layer.3: bool [2], f32 [2], f32 [3]: a condition and two of one type that broadcast are needed");
    let integers = |g: &mut Graph, x: &[Tensor]| {
        let n = g.cast(&x[0], Dtype::I64);
        g.activation(Activation::Gelu, &n)
    };
    assert_snapshot!(refusal(&[two], integers), @"Gelu in bert.encoder.layer.3: needs floating point, not i64 [2]");
}

#[test]
fn products() {
    let linear = |g: &mut Graph, x: &[Tensor]| g.linear(&Scope::root().scope("cls.decoder"), &x[0], 8);
    let norm = |g: &mut Graph, x: &[Tensor]| g.layer_norm(&Scope::root().scope("norm"), &x[0], 1e-5);
    assert_snapshot!(refusal(&[dims![BATCH, 2, 3], dims![BATCH, 4, 5]], |g, x| g.matmul(&x[0], &x[1])), @"MatMul in bert.encoder.layer.3: [batch, 2, 3] · [batch, 4, 5]: the inner lengths must be equal and the outer ones broadcast");
    assert_snapshot!(refusal(&[dims![3], dims![3, 2]], |g, x| g.matmul(&x[0], &x[1])), @"MatMul in bert.encoder.layer.3: [3] · [3, 2]: the inner lengths must be equal and the outer ones broadcast");
    assert_snapshot!(refusal(&[dims![BATCH, SEQUENCE]], linear), @"Linear in cls.decoder: the last axis of x [batch, sequence] must have a fixed length");
    assert_snapshot!(refusal(&[dims![]], norm), @"LayerNormalization in norm: the last axis of [] must have a fixed length");
    assert_snapshot!(refusal(&[dims![]], |g, x| g.softmax(&x[0])), @"Softmax in bert.encoder.layer.3: a number has no axis");
}

#[test]
fn samples() {
    let sample = |g: &mut Graph, x: &[Tensor]| g.grid_sample(&x[0], &x[1], false);
    let map = dims![BATCH, 3, 4, 5];
    assert_snapshot!(refusal(&[map.clone(), dims![BATCH, 2, 2, 3]], sample), @"GridSample in bert.encoder.layer.3: [batch, 3, 4, 5] and [batch, 2, 2, 3] are not [batch, channels, height, width] and [batch, rows, columns, 2]");
    assert_snapshot!(refusal(&[map, dims![SEQUENCE, 2, 2, 2]], sample), @"GridSample in bert.encoder.layer.3: [batch, 3, 4, 5] and [sequence, 2, 2, 2] are not [batch, channels, height, width] and [batch, rows, columns, 2]");
}

#[test]
fn attention() {
    let [q, k, v] = [0; 3].map(|_| dims![BATCH, SEQUENCE, 12]);
    let run = |shapes: &[&Vec<Dim>], heads, kv_heads| {
        let shapes: Vec<_> = shapes.iter().map(|shape| (*shape).clone()).collect();
        refusal(&shapes, |g, x| {
            let options = Attention { heads, kv_heads, mask: x.get(3), ..Attention::default() };
            g.attention(&x[0], &x[1], &x[2], &options)
        })
    };
    assert_snapshot!(run(&[&q, &k, &v], 5, 5), @"Attention in bert.encoder.layer.3: 5 heads and 5 key/value heads do not divide q [batch, sequence, 12], k [batch, sequence, 12], v [batch, sequence, 12]");
    assert_snapshot!(run(&[&q, &k, &v], 4, 3), @"Attention in bert.encoder.layer.3: 4 heads and 3 key/value heads do not divide q [batch, sequence, 12], k [batch, sequence, 12], v [batch, sequence, 12]");
    assert_snapshot!(run(&[&q, &k, &v], 0, 0), @"Attention in bert.encoder.layer.3: 0 heads and 0 key/value heads do not divide q [batch, sequence, 12], k [batch, sequence, 12], v [batch, sequence, 12]");
    assert_snapshot!(run(&[&q, &k, &v, &dims![BATCH, 1, 1, 7]], 4, 4), @"Attention in bert.encoder.layer.3: mask [batch, 1, 1, 7] does not fit scores [batch, 4, sequence, sequence]");
    assert_snapshot!(run(&[&q, &k, &dims![BATCH, 7, 12]], 4, 4), @"Attention in bert.encoder.layer.3: batch or length differ: q [batch, sequence, 12], k [batch, sequence, 12], v [batch, 7, 12]");
}

#[test]
fn element_types() {
    let [ids, mask] =
        [Dtype::I64, Dtype::Bool].map(|dtype| move |g: &mut Graph, x: &Tensor| g.cast(x, dtype));
    let square = [dims![BATCH, 4, 4]];
    let product = |g: &mut Graph, x: &[Tensor]| {
        let ids = ids(g, &x[0]);
        g.matmul(&x[0], &ids)
    };
    assert_snapshot!(refusal(&square, product), @"MatMul in bert.encoder.layer.3: f32 and i64 do not mix");
    let rows = |g: &mut Graph, x: &[Tensor]| {
        let mask = mask(g, &x[0]);
        g.gather(&x[0], &mask, 0)
    };
    assert_snapshot!(refusal(&square, rows), @"Gather in bert.encoder.layer.3: ids are integers, not bool [batch, 4, 4]");
    let both = |g: &mut Graph, x: &[Tensor]| g.binary(Binary::And, &x[0], &x[0]);
    assert_snapshot!(refusal(&square, both), @"And in bert.encoder.layer.3: needs booleans, not f32");
    let masked = |g: &mut Graph, x: &[Tensor]| {
        let ids = ids(g, &x[0]);
        g.attention(&x[0], &x[0], &x[0], &Attention { mask: Some(&ids), ..Attention::default() })
    };
    assert_snapshot!(refusal(&square, masked), @"Attention in bert.encoder.layer.3: a mask is bool or f32, not i64");
}

#[test]
fn shapes() {
    let three = [dims![BATCH, 3]];
    assert_snapshot!(refusal(&[dims![BATCH, 12]], |g, x| g.reshape(&x[0], dims![BATCH, 5, 2])), @"Reshape in bert.encoder.layer.3: [batch, 12] does not hold as many elements as [batch, 5, 2]");
    assert_snapshot!(refusal(&three, |g, x| g.transpose(&x[0], &[0, 0])), @"Transpose in bert.encoder.layer.3: [0, 0] does not reorder [batch, 3]");
    assert_snapshot!(refusal(&three, |g, x| g.expand(&x[0], dims![BATCH, 6])), @"Expand in bert.encoder.layer.3: [batch, 3] does not grow to [batch, 6]");
    assert_snapshot!(refusal(&[dims![BATCH, 3], dims![BATCH, 4]], |g, x| g.concat(&[&x[0], &x[1]], 0)), @"Concat in bert.encoder.layer.3: [batch, 3], [batch, 4] differ elsewhere than in axis 0, or in type");
    assert_snapshot!(refusal(&three, |g, _| g.concat(&[], 0)), @"Concat in bert.encoder.layer.3: there is nothing to join");
    assert_snapshot!(refusal(&three, |g, x| g.slice(&x[0], 1, 2..4)), @"Slice in bert.encoder.layer.3: 2..4 does not lie in axis 1 of [batch, 3], whose length must be fixed");
    assert_snapshot!(refusal(&three, |g, x| g.slice(&x[0], 0, 0..1)), @"Slice in bert.encoder.layer.3: 0..1 does not lie in axis 0 of [batch, 3], whose length must be fixed");
    assert_snapshot!(refusal(&three, |g, x| g.take(&x[0], 2, 0)), @"Gather in bert.encoder.layer.3: [batch, 3] has no axis 2");
    assert_snapshot!(refusal(&three, |g, x| g.top_k(&x[0], 4)), @"TopK in bert.encoder.layer.3: [batch, 3] has no 4 largest along its last axis");
    assert_snapshot!(refusal(&three, |g, x| g.top_k(&x[0], 0)), @"TopK in bert.encoder.layer.3: [batch, 3] has no 0 largest along its last axis");
    let ids = |g: &mut Graph, x: &[Tensor]| {
        let ids = g.cast(&x[0], Dtype::I64);
        g.top_k(&ids, 1)
    };
    let scattered = |g: &mut Graph, x: &[Tensor]| g.scatter_elements(&x[0], &x[0], &x[0]);
    assert_snapshot!(refusal(&three, scattered), @"ScatterElements in bert.encoder.layer.3: f32 [batch, 3] cannot be put at f32 [batch, 3] of f32 [batch, 3]");
    assert_snapshot!(refusal(&three, ids), @"TopK in bert.encoder.layer.3: needs floating point, not i64 [batch, 3]");
    assert_snapshot!(refusal(&three, |g, x| g.reduce(Reduction::Mean, &x[0], &[2], true)), @"ReduceMean in bert.encoder.layer.3: [batch, 3] has no axis 2");
}

#[test]
fn names() {
    let twice =
        |g: &mut Graph, x: &[Tensor]| g.output("logits", &x[0]).and_then(|()| g.output("logits", &x[0]));
    assert_snapshot!(refusal(&[dims![2]], twice), @"Output in bert.encoder.layer.3: `logits` is named twice");
    let shapes = |g: &mut Graph, _: &[Tensor]| g.weight("w", &[2, 3]).and_then(|_| g.weight("w", &[3, 2]));
    assert_snapshot!(refusal(&[], shapes), @"Weight in bert.encoder.layer.3: `w` is used with two shapes: [2, 3] and [3, 2]");
    let types = |g: &mut Graph, _: &[Tensor]| g.weight("w", &[2]).and_then(|_| g.integer_weight("w", &[2]));
    assert_snapshot!(refusal(&[], types), @"Weight in bert.encoder.layer.3: `w` is used as f32 and as i64");
}

fn any_dim() -> impl Strategy<Value = Dim> {
    let leaf = prop_oneof![(0..5_usize).prop_map(Dim::Fixed), Just(BATCH), Just(SEQUENCE)];
    leaf.prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| a + b),
            (inner.clone(), inner).prop_map(|(a, b)| a * b),
        ]
    })
}

fn any_shape() -> impl Strategy<Value = Shape> {
    prop::collection::vec(prop_oneof![Just(Dim::Fixed(1)), Just(Dim::Fixed(3)), Just(BATCH)], 0..4)
}

proptest! {
    #[test]
    fn lengths_form_a_ring(a in any_dim(), b in any_dim(), c in any_dim()) {
        prop_assert_eq!(a.clone() + b.clone(), b.clone() + a.clone());
        prop_assert_eq!(a.clone() * b.clone(), b.clone() * a.clone());
        prop_assert_eq!((a.clone() + b.clone()) + c.clone(), a.clone() + (b.clone() + c.clone()));
        prop_assert_eq!((a.clone() * b.clone()) * c.clone(), a.clone() * (b.clone() * c.clone()));
        prop_assert_eq!(a.clone() * (b.clone() + c.clone()), a.clone() * b + a.clone() * c);
        prop_assert_eq!(a.clone() + Dim::Fixed(0), a.clone());
        prop_assert_eq!(a.clone() * Dim::Fixed(1), a);
    }

    #[test]
    fn symbols_are_replaced_at_once_or_one_by_one(dim in any_dim(), batch in 0..9_usize, sequence in 0..9_usize) {
        let both = |name: &str| Some(if name == "batch" { batch } else { sequence });
        let first = |name: &str| (name == "batch").then_some(batch);
        let value = dim.evaluate(&both).unwrap();
        prop_assert_eq!(dim.substitute(&both), Dim::Fixed(value));
        prop_assert_eq!(dim.substitute(&first).substitute(&both), Dim::Fixed(value));
        prop_assert_eq!(dim.substitute(&first).evaluate(&both), Some(value));
    }

    #[test]
    fn broadcasting_has_no_sides(a in any_shape(), b in any_shape()) {
        prop_assert_eq!(broadcast(&a, &b), broadcast(&b, &a));
        prop_assert_eq!(broadcast(&a, &a), Some(a.clone()));
        if let Some(both) = broadcast(&a, &b) {
            prop_assert_eq!(both.len(), a.len().max(b.len()));
            prop_assert_eq!(broadcast(&a, &both), Some(both));
        }
    }

    #[test]
    fn reshaping_keeps_the_number_of_elements(a in 1..5_usize, b in 1..5_usize, c in 1..9_usize) {
        let (mut g, x) = place(&[dims![BATCH, a, b]]);
        prop_assert_eq!(g.reshape(&x[0], dims![BATCH, c]).is_ok(), a * b == c);
    }
}
