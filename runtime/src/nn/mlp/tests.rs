use super::*;
use crate::dims;
use crate::graph::Input;
use crate::graph::dims::{BATCH, SEQUENCE};
use crate::nn::testing::{expect, refusal};

/// One position, `[1, 2]`.
fn x(g: &mut Graph) -> Tensor {
    g.constant(&[1, 2], vec![1.0, 2.0]).unwrap()
}

const UP: (&str, &[f32]) = ("mlp.up.weight", &[2.0, 0.0, 0.0, 1.0]);
const GATE: (&str, &[f32]) = ("mlp.gate.weight", &[1.0, 1.0, 1.0, -1.0]);
const DOWN: (&str, &[f32]) = ("mlp.down.weight", &[1.0, 1.0, 2.0, 3.0]);

#[test]
fn two_linear_layers_have_the_activation_between_them() {
    let mlp = Mlp { up: "fc1", down: "fc2", width: 3, act: Activation::Relu, bias: true };
    let first: (&str, &[f32]) = ("mlp.fc1.weight", &[1.0, 0.0, 0.0, 1.0, -1.0, -1.0]);
    let second: (&str, &[f32]) = ("mlp.fc2.weight", &[2.0, 5.0, 7.0, 1.0, 1.0, 1.0]);
    let biases: [(&str, &[f32]); 2] = [("mlp.fc1.bias", &[0.5, -3.0, 0.0]), ("mlp.fc2.bias", &[0.25, -1.0])];
    let build = |mlp: Mlp<'static>| {
        move |g: &mut Graph| {
            let x = x(g);
            mlp.forward(g, &g.scope("mlp"), &x)
        }
    };
    // [1.5, -1, -3] before the activation, [1, 2, -3] without biases.
    expect(&[first, second, biases[0], biases[1]], build(mlp), &[1, 2], &[3.25, 0.5]);
    expect(&[first, second], build(Mlp { bias: false, ..mlp }), &[1, 2], &[12.0, 3.0]);
}

#[test]
fn the_gate_alone_goes_through_the_activation() {
    let mlp = GatedMlp { gate: "gate", up: "up", down: "down", width: 2, act: Activation::Relu, bias: false };
    // The gate is [3, -1], the up projection [2, 2].
    let gated = |g: &mut Graph| {
        let x = x(g);
        mlp.gated(g, &g.scope("mlp"), &x)
    };
    expect(&[GATE, UP], gated, &[1, 2], &[6.0, 0.0]);
    let build = |g: &mut Graph| {
        let x = x(g);
        mlp.forward(g, &g.scope("mlp"), &x)
    };
    expect(&[GATE, UP, DOWN], build, &[1, 2], &[6.0, 12.0]);
}

#[test]
fn a_gated_layer_with_biases_has_three() {
    let mlp = GatedMlp { gate: "gate", up: "up", down: "down", width: 2, act: Activation::Relu, bias: true };
    let biases: [(&str, &[f32]); 3] =
        [("mlp.gate.bias", &[-1.0, 2.0]), ("mlp.up.bias", &[1.0, -1.0]), ("mlp.down.bias", &[0.5, 10.0])];
    let build = |g: &mut Graph| {
        let x = x(g);
        mlp.forward(g, &g.scope("mlp"), &x)
    };
    // The gate is [2, 1], the up projection [3, 1], their product [6, 1].
    let weights = [GATE, UP, DOWN, biases[0], biases[1], biases[2]];
    expect(&weights, build, &[1, 2], &[7.5, 25.0]);
}

#[test]
fn the_gate_is_the_first_half_of_a_fused_projection() {
    let mlp =
        FusedGatedMlp { gate_up: "gate_up", down: "down", width: 2, act: Activation::Relu, bias: false };
    let fused: (&str, &[f32]) = ("mlp.gate_up.weight", &[1.0, 1.0, 1.0, -1.0, 2.0, 0.0, 0.0, 1.0]);
    let build = |mlp: FusedGatedMlp<'static>| {
        move |g: &mut Graph| {
            let x = x(g);
            mlp.forward(g, &g.scope("mlp"), &x)
        }
    };
    expect(&[fused, DOWN], build(mlp), &[1, 2], &[6.0, 12.0]);
    let biases: [(&str, &[f32]); 2] =
        [("mlp.gate_up.bias", &[-1.0, 2.0, 1.0, -1.0]), ("mlp.down.bias", &[0.5, 10.0])];
    let biased = FusedGatedMlp { bias: true, ..mlp };
    expect(&[fused, DOWN, biases[0], biases[1]], build(biased), &[1, 2], &[7.5, 25.0]);
}

#[test]
fn a_sigmoid_gate_is_one_number_a_position() {
    let build = |g: &mut Graph| {
        let x = g.constant(&[2, 2], vec![1.0, 2.0, 3.0, 3.0])?;
        let h = g.constant(&[2, 2], vec![4.0, 8.0, 2.0, 6.0])?;
        sigmoid_gate(g, &g.scope("gate"), &x, &h)
    };
    // Sigmoids of -1 and 0.
    let want = [1.075_765_7, 2.151_531_4, 1.0, 3.0];
    expect(&[("gate.weight", &[1.0, -1.0])], build, &[2, 2], &want);
}

#[test]
fn clamped_swiglu_keeps_gates_below_and_projections_within_its_limit() {
    let build = |g: &mut Graph| {
        let gate = g.constant(&[1, 3], vec![0.0, 5.0, -5.0])?;
        let up = g.constant(&[1, 3], vec![1.0, 9.0, -9.0])?;
        clamped_swiglu(g, &gate, &up, 1.0, 2.0)
    };
    // Gates of 2 and -5 times their sigmoids, projections of 2 and -2 plus 1.
    expect(&[], build, &[1, 3], &[0.0, 5.284_782_5, 0.033_464_255]);
}

#[test]
fn widths_that_do_not_fit_are_refused() {
    let odd = refusal(|g| {
        let x = g.constant(&[1, 3], vec![0.0; 3])?;
        glu(g, &x, Activation::Silu)
    });
    insta::assert_snapshot!(odd, @"split_last in the root: [1, 3] into [1, 1] along its last axis");
    let mlp = Mlp { up: "up", down: "down", width: 2, act: Activation::Relu, bias: false };
    let unknown = refusal(|g| {
        let x = g.input(Input::f32("x", dims![BATCH, SEQUENCE]));
        mlp.forward(g, &g.scope("mlp"), &x)
    });
    insta::assert_snapshot!(unknown, @"Mlp in mlp: the last axis of [batch, sequence] must have a fixed length");
}
