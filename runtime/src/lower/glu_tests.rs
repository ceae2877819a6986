//! Gated linear units: one operator of the runtime's own gives what several of ONNX's do.

use ndarray::{ArrayD, IxDyn};

use super::*;
use crate::engine::{self, Options};
use crate::graph::dims::{BATCH, SEQUENCE};
use crate::graph::{Activation, Input};
use crate::weights::{Weights, rule};
use crate::{Hardware, Precision, Value, Values, dims};

const WIDTH: usize = 20;

/// Three layers, of which the second and the third have gates and factors by one projection.
fn graph(act: Activation) -> (Graph, Vec<WeightData>) {
    let mut g = Graph::new();
    let mut x = g.input(Input::f32("x", dims![BATCH, SEQUENCE, WIDTH]));
    let mut normed = x.clone();
    for (layer, factors_first) in [(0, false), (1, false), (2, true)] {
        let w = g.scope(&format!("layers.{layer}"));
        let (gate, up) = if layer == 0 {
            let gate = g.linear_no_bias(&w.scope("gate"), &normed, 24).unwrap();
            (gate, g.linear_no_bias(&w.scope("up"), &normed, 24).unwrap())
        } else {
            let both = g.linear(&w.scope("gate_up"), &normed, 48).unwrap();
            let halves = g.split(&both, 2, &[24, 24]).unwrap();
            let [first, second] = [halves[0].clone(), halves[1].clone()];
            if factors_first { (second, first) } else { (first, second) }
        };
        let gate = g.activation(act, &gate).unwrap();
        let mixed = g.mul(&gate, &up).unwrap();
        let mixed = g.linear(&w.scope("down"), &mixed, WIDTH).unwrap();
        x = g.add(&x, &mixed).unwrap();
        normed = g.rms_norm(&w.scope("norm"), &x, 1e-6).unwrap();
    }
    g.output("normed", &normed).unwrap();
    g.output("x", &x).unwrap();
    let parameters = g.weights().iter().map(|weight| (weight.name.clone(), weight.shape.clone()));
    let weights = Weights::Rule(parameters.collect()).locate(g.weights(), &Default::default()).unwrap();
    (g, weights)
}

fn run(act: Activation, target: &Target) -> Values {
    let (graph, weights) = graph(act);
    let lowered = lower(&graph, &weights, target).unwrap();
    let compiled = engine::compile(Hardware::Cpu, &lowered, &Options::default()).unwrap();
    let x = ArrayD::from_shape_vec(IxDyn(&[2, 3, WIDTH]), rule::generate("in", &[2, 3, WIDTH])).unwrap();
    compiled.run(&Values::from([("x".to_owned(), Value::F32(x * 3.0))])).unwrap()
}

const ACTS: [Activation; 4] =
    [Activation::Silu, Activation::QuickGelu, Activation::GeluNew, Activation::Gelu];

#[test]
fn own_operators_give_the_same_numbers() {
    if let Err(error) = engine::available(Hardware::Cpu) {
        eprintln!("skipped: {error}");
        return;
    }
    for act in ACTS {
        let [plain, own] =
            [Hardware::Openvino, Hardware::Cpu].map(|of| run(act, &Target::of(of, Precision::F32)));
        for report in crate::golden::compare(&own, &plain, 2e-6) {
            assert!(report.passed, "{act:?}: {report:?}");
        }
    }
}

#[test]
fn they_are_where_they_run() {
    let operators = |act, target: &Target| {
        let (graph, weights) = graph(act);
        let operators = lower(&graph, &weights, target).unwrap().operators;
        ["weft.Glu", "Mul", "Split"].map(|name| operators.get(name).copied().unwrap_or(0))
    };
    let own = Target::of(Hardware::Cpu, Precision::F32);
    assert_eq!(ACTS.map(|act| operators(act, &own)), [[3, 0, 0], [3, 0, 0], [0, 3, 2], [3, 0, 0]]);
    let others = Hardware::ALL.into_iter().filter(|of| !matches!(of, Hardware::Cpu | Hardware::Auto));
    let others = others.map(|of| Target::of(of, Precision::F32));
    let halved =
        [Target::of(Hardware::Cpu, Precision::F16), Target::in_browser(Hardware::Cpu, Precision::F32)];
    for target in others.chain(halved) {
        assert_eq!(operators(Activation::Silu, &target)[0], 0, "{target:?}");
    }
}
