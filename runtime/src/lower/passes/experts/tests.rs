//! All experts one after the other give what the kernel of selected experts gives.

use std::borrow::Cow;

use super::*;
use crate::lower::{Kernels, Target, lower};
use crate::nn::testing::{evaluate, refusal};
use crate::nn::{
    Activation, BatchedExperts, GatedMlp, Mlp, Routing, clamped_swiglu, combine_experts,
    combine_weighted_inputs, experts, glu, softmax_topk, ungated_experts,
};
use crate::weights::{Bytes, WeightData};
use crate::{Dtype, Hardware, Precision};

/// Numbers between -1 and 1 that follow no pattern.
fn drawn(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7919 + seed * 104_729) % 2003) as f32 / 1001.5 - 1.0).collect()
}

const EXPERT: GatedMlp<'static> =
    GatedMlp { gate: "gate", up: "up", down: "down", width: 3, act: Activation::Silu, bias: true };

/// Positions that each select some of four experts.
fn mixture(g: &mut Graph, form: &str) -> Result<Tensor> {
    // Of few positions fewer experts are selected than there are.
    let (rows, top_k, form) = match form.strip_prefix("few ") {
        Some(form) => (3, 1, form),
        None => (12, 2, form),
    };
    let x = g.constant(&[1, rows, 4], drawn(4 * rows, 1))?;
    let logits = g.constant(&[1, rows, 4], drawn(4 * rows, 2))?;
    let routing = softmax_topk(g, &logits, top_k, true)?;
    match form {
        "modules" => experts(g, &g.scope("experts"), &x, &routing, &EXPERT),
        "plain" => experts(g, &g.scope("experts"), &x, &routing, &GatedMlp { bias: false, ..EXPERT }),
        "ungated" => {
            let mlp = Mlp { up: "up", down: "down", width: 3, act: Activation::Relu, bias: false };
            ungated_experts(g, &g.scope("experts"), &x, &routing, &mlp)
        }
        "clamped" => {
            let [gate_up, down] = [g.weight("gate_up", &[4, 6, 4])?, g.weight("down", &[4, 4, 3])?];
            let [bias, down_bias] = [g.weight("bias", &[4, 6])?, g.weight("down_bias", &[4, 4])?];
            combine_experts(g, &x, &routing, |g, x, selected| {
                let h = selected.linear(g, x, &gate_up, false)?;
                let bias = selected.rows(g, &bias)?;
                let h = g.add(&h, &bias)?;
                let (gate, up) = (g.slice_step(&h, 2, 0, 2)?, g.slice_step(&h, 2, 1, 2)?);
                let h = clamped_swiglu(g, &gate, &up, 1.702, 0.4)?;
                let h = selected.linear(g, &h, &down, false)?;
                let bias = selected.rows(g, &down_bias)?;
                g.add(&h, &bias)
            })
        }
        "weighted" => {
            let [gate_up, down] = [g.weight("gate_up", &[4, 6, 4])?, g.weight("down", &[4, 4, 3])?];
            let routing = softmax_topk(g, &logits, 1, false)?;
            combine_weighted_inputs(g, &x, &routing, |g, x, selected| {
                let h = selected.linear(g, x, &gate_up, false)?;
                let h = glu(g, &h, Activation::Silu)?;
                selected.linear(g, &h, &down, false)
            })
        }
        "batched" => {
            let experts =
                BatchedExperts { gate_up: "gate_up", down: "down", width: 3, act: Activation::Gelu };
            experts.forward(g, &g.scope("experts"), &x, &routing)
        }
        _ => {
            let up = g.weight("up", &[4 * 4, 3])?;
            let up = g.reshape(&up, crate::dims![4, 4, 3])?;
            let bias = g.weight("bias", &[4, 3])?;
            let down = g.weight("down", &[4, 4, 3])?;
            combine_experts(g, &x, &routing, |g, x, selected| {
                let h = selected.linear(g, x, &up, true)?;
                let bias = selected.rows(g, &bias)?;
                let h = g.add(&h, &bias)?;
                let h = g.clip(&h, -0.5, 0.5)?;
                let doubled = g.slice_step(&h, 2, 0, 1)?;
                let h = g.add(&h, &doubled)?;
                selected.linear(g, &h, &down, false)
            })
        }
    }
}

/// Weights of no quantization.
fn floats() -> Cow<'static, [WeightData]> {
    let float = WeightData {
        dtype: Dtype::F32,
        shape: vec![],
        stored_as: String::new(),
        bytes: Bytes::memory(vec![]),
    };
    Cow::Owned(vec![float; 64])
}

fn weights(form: &str) -> Vec<(String, Vec<f32>)> {
    let mut g = Graph::new();
    mixture(&mut g, form).unwrap();
    let weights = g.weights().iter().enumerate();
    weights.map(|(seed, w)| (w.name.clone(), drawn(w.shape.iter().product(), seed + 3))).collect()
}

#[test]
fn one_after_the_other_they_give_what_selected_experts_give() {
    for form in ["modules", "batched", "transposed", "clamped", "weighted"] {
        let weights = weights(form);
        let weights: Vec<_> =
            weights.iter().map(|(name, values)| (name.as_str(), values.as_slice())).collect();
        let Some((shape, want)) = evaluate(&weights, |g| mixture(g, form)) else { return };
        let dense = |g: &mut Graph| {
            let y = mixture(g, form)?;
            g.output("out", &y)?;
            one_by_one(g)?;
            g.prune();
            assert!(g.lines().iter().all(|line| !line.contains("ExpertLinear") && !line.contains("TopK(")));
            let (_, id) = g.outputs.pop().unwrap();
            Ok(g.tensor(id).clone())
        };
        let Some((got_shape, got)) = evaluate(&weights, dense) else { return };
        assert_eq!(got_shape, shape);
        let most = got.iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(most < 1e-6, "{form}: {most}");
        assert!(want.iter().any(|x| x.abs() > 0.1), "{form}: {want:?}");
    }
}

/// Asserts that a mixture in another form, without `ExpertLinear`, gives what selected experts give.
fn same(form: &str, other: impl Fn(&mut Graph) -> Result<()>, has: &str) {
    let weights = weights(form);
    let weights: Vec<_> = weights.iter().map(|(name, values)| (name.as_str(), values.as_slice())).collect();
    let Some((shape, want)) = evaluate(&weights, |g| mixture(g, form)) else { return };
    let formed = |g: &mut Graph| {
        let y = mixture(g, form)?;
        g.output("out", &y)?;
        other(g)?;
        let lines = g.lines();
        let is = |line: &String, op: &str| line.contains(&format!(" {op}("));
        assert!(lines.iter().all(|line| !is(line, "ExpertLinear")), "{form}: {lines:#?}");
        assert!(lines.iter().any(|line| is(line, has)), "{form}: {lines:#?}");
        let (_, id) = g.outputs.pop().unwrap();
        Ok(g.tensor(id).clone())
    };
    let Some((got_shape, got)) = evaluate(&weights, formed) else { return };
    assert_eq!(got_shape, shape);
    let most = got.iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(most < 1e-6, "{form}: {most}");
}

#[test]
fn by_products_of_all_at_once_they_give_what_selected_experts_give() {
    for form in ["plain", "batched", "clamped", "weighted"] {
        same(form, |g| batched(g, &mut floats(), &Kernels::of(Hardware::Openvino)), "Tile");
    }
}

#[test]
fn by_the_kernel_they_give_what_selected_experts_give() {
    for form in ["ungated", "plain", "modules", "clamped", "weighted"] {
        let target = Target::of(Hardware::Cpu, Precision::F32);
        same(form, |g| by_kernel(g, &mut floats(), &target), "MoE");
    }
}

#[test]
fn by_gathered_weights_they_give_what_selected_experts_give() {
    for form in ["few modules", "few transposed"] {
        same(form, |g| gathered(g, &floats()), "Gather");
    }
}

#[test]
fn experts_of_another_form_are_left_to_the_others() {
    for form in ["modules", "transposed"] {
        let mut g = Graph::new();
        let y = mixture(&mut g, form).unwrap();
        g.output("y", &y).unwrap();
        let before = g.lines();
        batched(&mut g, &mut floats(), &Kernels::of(Hardware::Openvino)).unwrap();
        assert_eq!(g.lines(), before, "{form}");
    }
}

#[test]
fn each_backend_gets_its_form() {
    let of = |form, hardware, precision| {
        let mut g = Graph::new();
        let y = mixture(&mut g, form).unwrap();
        g.output("y", &y).unwrap();
        let located: Vec<WeightData> = g
            .weights()
            .iter()
            .map(|weight| WeightData {
                dtype: Dtype::Bf16,
                shape: weight.shape.clone(),
                stored_as: weight.name.clone(),
                bytes: Bytes::memory(vec![0; 2 * weight.shape.iter().product::<usize>()]),
            })
            .collect();
        lower(&g, &located, &Target::of(hardware, precision)).unwrap().operators
    };
    let cpu = of("modules", Hardware::Cpu, Precision::F32);
    assert_eq!(cpu["weft.ExpertLinearBf16"], 3);
    assert!(!cpu.contains_key("Gemm"));
    let half = of("modules", Hardware::Cpu, Precision::F16);
    assert_eq!(half["Gemm"], 12, "the kernel is for single precision");
    assert_eq!(of("modules", Hardware::Openvino, Precision::F32)["MatMul"], 12, "biases");
    let openvino = of("plain", Hardware::Openvino, Precision::F32);
    assert_eq!((openvino["MatMul"], openvino["Cast"], openvino["Concat"]), (3, 3, 3), "{openvino:?}");
    assert_eq!(of("plain", Hardware::Webgpu, Precision::F32)["MatMul"], 12);
    assert_eq!(of("few plain", Hardware::Webgpu, Precision::F32)["MatMul"], 3, "by gathered weights");
    assert_eq!(of("plain", Hardware::Cuda, Precision::F16)["com.microsoft.MoE"], 1);
    assert_eq!(of("modules", Hardware::Cuda, Precision::F16)["com.microsoft.MoE"], 1);
    assert_eq!(of("clamped", Hardware::Openvino, Precision::F32)["MatMul"], 2);
}

#[test]
fn what_mixes_the_outputs_of_an_expert_is_refused() {
    let problem = refusal(|g| {
        let x = g.constant(&[1, 2], vec![1.0, 2.0])?;
        let weights = g.constant(&[1, 2], vec![0.5, 0.5])?;
        let y = combine_experts(g, &x, &Routing { weights, top_k: 1 }, |g, x, selected| {
            let w = g.weight("w", &[2, 2, 2])?;
            let h = selected.linear(g, x, &w, false)?;
            g.softmax(&h)
        })?;
        g.output("y", &y)?;
        one_by_one(g)
    });
    insta::assert_snapshot!(problem, @"Softmax in Softmax.0: is not computed for one expert after the other: between linear layers of experts, operations are element by element");
}
