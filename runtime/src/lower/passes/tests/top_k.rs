//! The largest elements: by the kernel and one after the other they are the same, and each backend gets its form.

use super::super::testing::after;
use super::super::{Pass, integers, select};
use crate::dims;
use crate::graph::dims::{BATCH, SEQUENCE};
use crate::graph::{Dtype, Graph, Input, Operation, Tensor};
use crate::lower::{Target, lower};
use crate::nn::testing::expect;
use crate::{Hardware, Precision, Result};

/// Two rows, of which the first has its largest element twice.
const ROWS: [f32; 10] = [1.0, 7.0, -2.0, 7.0, 3.0, -5.0, -1.0, -4.0, -3.0, -2.0];

fn selected(g: &mut Graph, indices: bool) -> Result<Tensor> {
    let x = g.constant(&[2, 1, 5], ROWS.to_vec())?;
    let (values, at) = g.top_k(&x, 3)?;
    Ok(if indices { at } else { values })
}

#[test]
fn of_equal_elements_the_first_comes_first() {
    for (indices, want) in
        [(false, [7.0, 7.0, 3.0, -1.0, -2.0, -3.0]), (true, [1.0, 3.0, 4.0, 1.0, 4.0, 3.0])]
    {
        expect(&[], |g| selected(g, indices), &[2, 1, 3], &want);
        let by_argmax = |g: &mut Graph| {
            let found = selected(g, indices)?;
            rewritten(g, &found, "TopK", select::top_k_by_argmax)
        };
        expect(&[], by_argmax, &[2, 1, 3], &want);
        let by_comparison = |g: &mut Graph| {
            let found = selected(g, indices)?;
            rewritten(g, &found, "i64 TopK", select::top_k_by_comparison)
        };
        expect(&[], by_comparison, &[2, 1, 3], &want);
    }
}

#[test]
fn a_mask_is_the_same_by_the_operator_and_by_argmax() {
    let lowest = f32::MIN;
    let rows = [1.0, 7.0, -2.0, 7.0, 3.0, lowest, -1.0, lowest, lowest, lowest];
    let want = [0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0];
    for by_argmax in [false, true] {
        let build = |g: &mut Graph| {
            let x = g.constant(&[2, 1, 5], rows.to_vec())?;
            let mut mask = g.top_k_mask(&x, 3)?;
            if by_argmax {
                mask = rewritten(g, &mask, "bool TopKMask", select::top_k_mask_by_argmax)?;
            }
            Ok(g.cast(&mask, Dtype::F32))
        };
        expect(&[], build, &[2, 1, 5], &want);
    }
}

/// What a tensor is without operations of this kind.
fn rewritten(
    g: &mut Graph,
    found: &Tensor,
    without: &str,
    by: fn(&mut Graph, &Operation<'_>) -> Result<Option<Tensor>>,
) -> Result<Tensor> {
    g.output("found", found)?;
    g.rewrite(by)?;
    g.prune();
    assert!(g.lines().iter().all(|line| !line.starts_with(without)), "{:?}", g.lines());
    let (_, id) = g.outputs.pop().unwrap();
    Ok(g.tensor(id).clone())
}

#[test]
fn the_first_of_the_largest_is_found_by_comparison() {
    for (axis, shape, want) in [(2, [2, 1], vec![1.0, 1.0]), (0, [1, 5], vec![0.0; 5])] {
        let build = |g: &mut Graph| {
            let x = g.constant(&[2, 1, 5], ROWS.to_vec())?;
            let first = g.argmax(&x, axis)?;
            rewritten(g, &first, "i64 ArgMax", select::argmax_by_comparison)
        };
        expect(&[], build, &shape, &want);
    }
}

#[test]
fn both_results_are_one_node() {
    let mut g = Graph::new();
    let x = g.input(Input::f32("x", dims![BATCH, SEQUENCE]));
    let (values, indices) = g.top_k(&x, 2).unwrap();
    for (name, tensor) in [("indices", &indices), ("values", &values)] {
        g.output(name, tensor).unwrap();
    }
    let of = |hardware| {
        let lowered = lower(&g, &[], &Target::of(hardware, Precision::F32)).unwrap();
        lowered.operators
    };
    for hardware in [Hardware::Cpu, Hardware::Openvino, Hardware::Cuda, Hardware::Qnn] {
        assert_eq!(of(hardware)["TopK"], 1, "{hardware}");
    }
    for hardware in [Hardware::Metal, Hardware::Webnn] {
        assert_eq!(of(hardware)["ArgMax"], 2, "{hardware}");
    }
    let lowered = lower(&g, &[], &Target::of(Hardware::Cpu, Precision::F32)).unwrap();
    let graph = lowered.model.graph.unwrap();
    assert_eq!(graph.node[0].output, ["values", "indices"]);
}

#[test]
fn indices_are_narrowed_and_bfloat16_is_widened() {
    let lines = |pass: Pass, target: &Target, dtype| {
        let mut g = Graph::new();
        let x = g.input(Input::f32("x", dims![BATCH, 5]));
        let x = g.cast(&x, dtype);
        let (values, indices) = g.top_k(&x, 2).unwrap();
        g.output("values", &values).unwrap();
        g.output("indices", &indices).unwrap();
        pass.run(&mut g, target).unwrap();
        g.prune();
        g.lines()
    };
    let narrow = Target { integers: Dtype::I32, integers_at_edges: Dtype::I32, ..Target::by(&[]) };
    assert_eq!(
        lines(Pass::whole("integers", integers::compute_in), &narrow, Dtype::F32),
        ["f32 TopK(x) [batch, 2]", "i64 TopK(x) [batch, 2]", "i32 Cast(%1) [batch, 2]"]
    );
    assert_eq!(
        lines(Pass::each("single", select::top_k_in_single), &narrow, Dtype::Bf16),
        [
            "bf16 Cast(x) [batch, 5]",
            "f32 Cast(%0) [batch, 5]",
            "f32 TopK(%1) [batch, 2]",
            "bf16 Cast(%2) [batch, 2]",
            "f32 Cast(%0) [batch, 5]",
            "i64 TopK(%4) [batch, 2]",
        ]
    );
}

#[test]
fn one_element_is_where_the_largest_is() {
    let mut g = Graph::new();
    let x = g.input(Input::f32("x", dims![BATCH, SEQUENCE, 4]));
    let (_, indices) = g.top_k(&x, 1).unwrap();
    assert_eq!(
        after(Pass::each("top-k", select::top_k_by_argmax), &mut g, &[&indices]),
        ["i64 ArgMax(x) [batch, sequence]", "i64 Reshape(%0) [batch, sequence, 1]"]
    );
}
