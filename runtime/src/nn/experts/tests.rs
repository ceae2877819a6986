use std::path::PathBuf;
use std::sync::Arc;

use super::*;
use crate::dims;
use crate::graph::dims::BATCH;
use crate::graph::{Input, Op, Stored};
use crate::nn::testing::{expect, refusal};

/// Two positions `[1, 2, 2]`.
fn x(g: &mut Graph) -> Tensor {
    g.constant(&[1, 2, 2], vec![1.0, 2.0, 3.0, -1.0]).unwrap()
}

/// The first position goes to the second expert alone, the second to both.
fn routing(g: &mut Graph) -> Routing {
    let weights = g.constant(&[1, 2, 2], vec![0.0, 1.0, 0.25, 0.75]).unwrap();
    Routing { weights, top_k: 2 }
}

const EXPERT: GatedMlp<'static> =
    GatedMlp { gate: "w1", up: "w3", down: "w2", width: 1, act: Activation::Relu, bias: false };

/// Gates of `x₀`, up projections of 1 and 10 times `x₁`; both outputs are alike but for their signs.
const WEIGHTS: [(&str, &[f32]); 6] = [
    ("experts.0.w1.weight", &[1.0, 0.0]),
    ("experts.0.w3.weight", &[0.0, 1.0]),
    ("experts.0.w2.weight", &[1.0, -1.0]),
    ("experts.1.w1.weight", &[1.0, 0.0]),
    ("experts.1.w3.weight", &[0.0, 10.0]),
    ("experts.1.w2.weight", &[1.0, 1.0]),
];

#[test]
fn experts_are_summed_by_routing_weights() {
    let build = |g: &mut Graph| {
        let (x, routing) = (x(g), routing(g));
        experts(g, &g.scope("experts"), &x, &routing, &EXPERT)
    };
    // The experts' products are 2 and 20, then -3 and -30.
    expect(&WEIGHTS, build, &[1, 2, 2], &[20.0, 20.0, -23.25, -21.75]);
}

#[test]
fn a_list_may_hold_the_experts_of_several_routers() {
    let build = |g: &mut Graph| {
        let (x, weights) = (x(g), g.constant(&[1, 2, 1], vec![1.0, 0.5])?);
        experts_from(g, &g.scope("experts"), &x, &Routing { weights, top_k: 1 }, &EXPERT, 1)
    };
    // The second module is the only expert: 20, then half of -30.
    expect(&WEIGHTS[3..], build, &[1, 2, 2], &[20.0, 20.0, -15.0, -15.0]);
}

#[test]
fn inputs_may_be_weighted_in_place_of_outputs() {
    let build = |g: &mut Graph| {
        let (x, routing) = (x(g), routing(g));
        let [up, down] = [vec![1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 10.0], vec![1.0, -1.0, 1.0, 1.0]];
        let (up, down) = (g.constant(&[2, 2, 2], up)?, g.constant(&[2, 2, 1], down)?);
        combine_weighted_inputs(g, &x, &routing, |g, x, selected| {
            let h = selected.linear(g, x, &up, false)?;
            let h = glu(g, &h, Activation::Relu)?;
            selected.linear(g, &h, &down, false)
        })
    };
    // The products have the squares of routing weights: 20, then -3 / 16 and -30 · 9 / 16.
    expect(&[], build, &[1, 2, 2], &[20.0, 20.0, -17.0625, -16.6875]);
}

#[test]
fn of_all_experts_those_with_the_largest_weights_are_computed() {
    let build = |g: &mut Graph| {
        let (x, routing) = (x(g), routing(g));
        experts(g, &g.scope("experts"), &x, &Routing { top_k: 1, ..routing }, &EXPERT)
    };
    expect(&WEIGHTS, build, &[1, 2, 2], &[20.0, 20.0, -22.5, -22.5]);
}

#[test]
fn selected_experts_are_counted_where_that_is_asked_for() {
    let layer = |g: &mut Graph| {
        let (x, routing) = (x(g), routing(g));
        g.enter(&g.scope("layers").index(3).scope("mlp.router"));
        experts(g, &g.scope("experts"), &x, &routing, &EXPERT)
    };
    let count = |g: &mut Graph| {
        g.counts_experts = true;
        let h = layer(g)?;
        g.output("h", &h)?;
        assert_eq!(g.expert_counts[0].0, "layers.3");
        Ok(g.expert_counts[0].1.clone())
    };
    expect(&WEIGHTS, count, &[2], &[1.0, 2.0]);
    let mut g = Graph::new();
    layer(&mut g).unwrap();
    assert!(g.expert_counts.is_empty());
}

#[test]
fn biases_are_those_of_the_selected_experts() {
    let build = |g: &mut Graph| {
        let (x, routing) = (x(g), routing(g));
        let expert = Mlp { up: "fc1", down: "fc2", width: 1, act: Activation::Relu, bias: true };
        ungated_experts(g, &g.scope("experts"), &x, &Routing { top_k: 1, ..routing }, &expert)
    };
    // Of the second expert alone: 1 - 0.5 and 3 - 0.5, which 2 and -2 times and 10 and 20 more are.
    let weights: [(&str, &[f32]); 8] = [
        ("experts.0.fc1.weight", &[7.0, 7.0]),
        ("experts.0.fc1.bias", &[7.0]),
        ("experts.0.fc2.weight", &[7.0, 7.0]),
        ("experts.0.fc2.bias", &[7.0, 7.0]),
        ("experts.1.fc1.weight", &[1.0, 0.0]),
        ("experts.1.fc1.bias", &[-0.5]),
        ("experts.1.fc2.weight", &[2.0, -2.0]),
        ("experts.1.fc2.bias", &[10.0, 20.0]),
    ];
    expect(&weights, build, &[1, 2, 2], &[11.0, 19.0, 0.75 * 15.0, 0.75 * 15.0]);
}

#[test]
fn batched_experts_are_a_list_of_them() {
    let build = |g: &mut Graph| {
        let (x, routing) = (x(g), routing(g));
        let experts = BatchedExperts { gate_up: "input", down: "output", width: 1, act: Activation::Relu };
        experts.forward(g, &g.scope("moe"), &x, &routing)
    };
    let weights: [(&str, &[f32]); 2] =
        [("moe.input", &[1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 10.0]), ("moe.output", &[1.0, -1.0, 1.0, 1.0])];
    expect(&weights, build, &[1, 2, 2], &[20.0, 20.0, -23.25, -21.75]);
}

#[test]
fn gates_and_up_projections_are_clamped() {
    let build = |g: &mut Graph| {
        let (x, routing) = (x(g), routing(g));
        let experts = BatchedExperts { gate_up: "input", down: "output", width: 1, act: Activation::Relu };
        experts.forward_clamped(g, &g.scope("moe"), &x, &routing, 2.0)
    };
    let weights: [(&str, &[f32]); 2] =
        [("moe.input", &[1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 10.0]), ("moe.output", &[1.0, -1.0, 1.0, 1.0])];
    // Products are 2 for the first position, where the up projection is 20, and -2 and -4 for the second.
    expect(&weights, build, &[1, 2, 2], &[2.0, 2.0, -3.5, -2.5]);
}

#[test]
fn batched_weights_lie_either_way() {
    for (transposed, want) in [(false, [5.0, 11.0]), (true, [7.0, 10.0])] {
        let build = |g: &mut Graph| {
            let x = g.constant(&[1, 2], vec![1.0, 2.0])?;
            let weights = g.weight("weights", &[2, 2, 2])?;
            let one = g.constant(&[1, 2], vec![0.0, 1.0])?;
            combine_experts(g, &x, &Routing { weights: one, top_k: 1 }, |g, x, selected| {
                selected.linear(g, x, &weights, transposed)
            })
        };
        expect(&[("weights", &[9.0, 9.0, 9.0, 9.0, 1.0, 2.0, 3.0, 4.0])], build, &[1, 2], &want);
    }
}

#[test]
fn a_shared_expert_is_added_where_it_has_a_width() {
    let build = |expert: GatedMlp<'static>| {
        move |g: &mut Graph| {
            let (x, h) = (x(g), g.constant(&[1, 2, 2], vec![100.0, 200.0, 300.0, 400.0])?);
            let h = add_shared_expert(g, &h, &g.scope("experts.0"), &x, &expert)?;
            g.scale(&h, 1.0)
        }
    };
    expect(&WEIGHTS[..3], build(EXPERT), &[1, 2, 2], &[102.0, 198.0, 297.0, 403.0]);
    let none = GatedMlp { width: 0, ..EXPERT };
    expect(&[], build(none), &[1, 2, 2], &[100.0, 200.0, 300.0, 400.0]);
}

#[test]
fn an_unknown_number_of_experts_is_refused() {
    let problem = refusal(|g| {
        let x = x(g);
        let weights = g.input(Input::f32("routing_weights", dims![1, 2, BATCH]));
        experts(g, &g.scope("experts"), &x, &Routing { weights, top_k: 1 }, &EXPERT)
    });
    insta::assert_snapshot!(problem, @"combine_experts in the root: [2, batch] has no fixed number of experts");
}

#[test]
fn square_weights_lie_as_the_other_of_their_layer_does() {
    for (down, transposed) in [([2, 2, 4], true), ([2, 4, 2], false)] {
        let mut g = Graph::new();
        let shape = move |name: &str| Some(if name == "down" { down.to_vec() } else { vec![2, 4, 4] });
        g.stored = Some(Stored {
            has: Arc::new(|_| true),
            shape: Arc::new(shape),
            tensors: 2,
            elements: 48,
            place: PathBuf::new(),
        });
        let x = g.constant(&[1, 2, 4], vec![1.0; 8]).unwrap();
        let routing = routing(&mut g);
        let batched = BatchedExperts { gate_up: "gate_up", down: "down", width: 2, act: Activation::Silu };
        batched.forward(&mut g, &Scope::root(), &x, &routing).unwrap();
        let layers = g.nodes.iter().filter_map(|node| match node.op {
            Op::ExpertLinear(op) => Some(op.transposed),
            _ => None,
        });
        assert_eq!(layers.collect::<Vec<_>>(), [transposed; 2]);
    }
}
