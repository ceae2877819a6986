use super::*;
use crate::dims;
use crate::graph::Input;
use crate::graph::dims::BATCH;
use crate::nn::testing::{expect, refusal};

/// 0, 1, 2 … of this shape.
fn counted(g: &mut Graph, shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    g.constant(shape, (0..count).map(|n| n as f32).collect()).unwrap()
}

#[test]
fn heads_are_parts_of_the_last_axis() {
    let transposed = |g: &mut Graph| {
        let x = counted(g, &[1, 2, 4]);
        let x = split_heads(g, &x, 2)?;
        g.transpose(&x, &[0, 2, 1, 3])
    };
    expect(&[], transposed, &[1, 2, 2, 2], &[0.0, 1.0, 4.0, 5.0, 2.0, 3.0, 6.0, 7.0]);
    let merged = |g: &mut Graph| {
        let x = counted(g, &[1, 2, 2, 2]);
        merge_heads(g, &x)
    };
    expect(&[], merged, &[1, 2, 4], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
}

#[test]
fn each_head_has_a_gate() {
    let gated = |g: &mut Graph| {
        let x = counted(g, &[1, 2, 4]);
        let gate = g.constant(&[1, 2, 2], vec![1.0, 10.0, 100.0, 0.5])?;
        gate_heads(g, &x, &gate, 2)
    };
    expect(&[], gated, &[1, 2, 4], &[0.0, 1.0, 20.0, 30.0, 400.0, 500.0, 3.0, 3.5]);
}

#[test]
fn each_head_is_normalised_alone() {
    let build = |g: &mut Graph| {
        let x = g.constant(&[1, 1, 4], vec![1.0, 3.0, 10.0, 6.0])?;
        norm_per_head(g, &x, 2, |g, x| g.layer_norm(&g.scope("norm"), x, 0.0))
    };
    let weights: [(&str, &[f32]); 2] = [("norm.weight", &[2.0, 3.0]), ("norm.bias", &[0.0, 0.5])];
    expect(&weights, build, &[1, 1, 4], &[-2.0, 3.5, 2.0, -2.5]);
}

#[test]
fn fused_projections_are_split_by_width_or_by_group() {
    for (index, want) in [vec![0.0], vec![1.0, 2.0], vec![3.0]].into_iter().enumerate() {
        let build = |g: &mut Graph| {
            let x = counted(g, &[1, 4]);
            Ok(split_last(g, &x, [1, 2, 1])?[index].clone())
        };
        expect(&[], build, &[1, want.len()], &want);
    }
    // Two key/value heads of size 1: two queries, a key and a value each.
    for (index, want) in [vec![0.0, 1.0, 4.0, 5.0], vec![2.0, 6.0], vec![3.0, 7.0]].into_iter().enumerate() {
        let build = |g: &mut Graph| {
            let x = counted(g, &[1, 1, 8]);
            Ok(split_qkv_groups(g, &x, 4, 2)?[index].clone())
        };
        expect(&[], build, &[1, 1, want.len()], &want);
    }
}

#[test]
fn each_group_has_a_linear_layer() {
    let build = |g: &mut Graph| {
        let x = g.constant(&[1, 1, 2], vec![2.0, 3.0])?;
        let weight = g.weight("weight", &[2, 1, 2])?;
        grouped_linear(g, &x, &weight)
    };
    expect(&[("weight", &[1.0, 10.0, 100.0, 1000.0])], build, &[1, 1, 4], &[2.0, 20.0, 300.0, 3000.0]);
}

#[test]
fn caps_bound_where_they_are_given() {
    let x = |g: &mut Graph| g.constant(&[3], vec![0.5, 10.0, -1e3]);
    for (most, want) in [(Some(10.0), [0.499_583_75, 7.615_941_6, -10.0]), (None, [0.5, 10.0, -1e3])] {
        let build = |g: &mut Graph| {
            let x = x(g)?;
            let x = softcap(g, &x, most)?;
            g.scale(&x, 1.0)
        };
        expect(&[], build, &[3], &want);
    }
    for (most, want) in [(Some(8.0), [0.5, 8.0, -8.0]), (None, [0.5, 10.0, -1e3])] {
        let build = |g: &mut Graph| {
            let x = x(g)?;
            let [x] = clip_qkv(g, [x], most)?;
            g.scale(&x, 1.0)
        };
        expect(&[], build, &[3], &want);
    }
}

#[test]
fn widths_that_do_not_divide_are_refused() {
    let of = |split: fn(&mut Graph, &Tensor) -> Result<Tensor>| {
        refusal(|g| {
            let x = g.input(Input::f32("x", dims![BATCH, 2, 10]));
            split(g, &x)
        })
    };
    insta::assert_snapshot!(of(|g, x| split_heads(g, x, 0)), @"split_heads in the root: [batch, 2, 10] into 0 heads");
    insta::assert_snapshot!(of(|g, x| split_heads(g, x, 3)), @"Reshape in the root: [batch, 2, 10] does not hold as many elements as [batch, 2, 3, 3]");
    insta::assert_snapshot!(of(|g, x| Ok(split_last(g, x, [4, 4])?[0].clone())), @"split_last in the root: [batch, 2, 10] into [4, 4] along its last axis");
    insta::assert_snapshot!(of(|g, x| Ok(split_qkv_groups(g, x, 4, 2)?[0].clone())), @"split_last in the root: [batch, 2, 2, 5] into [2, 1, 1] along its last axis");
}
