//! Whatever form an operation takes, the numbers are the same; and what a backend needs of a graph holds.

use std::collections::BTreeSet;

use ndarray::{ArrayD, IxDyn};

use super::passes::{Rule, activation, attention, linear};
use super::*;
use crate::engine::{self, Options};
use crate::graph::dims::{BATCH, SEQUENCE};
use crate::graph::{Input, InputDefault};
use crate::nn::{Activation, Attention, causal_padding_mask, padding_mask};
use crate::onnx::dimension;
use crate::weights::{Weights, rule};
use crate::{Hardware, Precision, Value, Values, dims};

const WIDTH: usize = 12;

/// What attention is asked for.
#[derive(Clone, Copy, Debug, Default)]
struct Ask {
    kv_heads: usize,
    mask: Mask,
    causal: bool,
    softcap: f64,
    act: Option<Activation>,
}

#[derive(Clone, Copy, Debug, Default)]
enum Mask {
    #[default]
    None,
    Padding,
    CausalPadding,
    /// Numbers to add.
    Bias,
}

/// Three linear layers, attention, another linear layer on two axes and an activation.
fn graph(ask: Ask) -> (Graph, Vec<WeightData>) {
    let mut g = Graph::new();
    let x = g.input(Input::f32("x", dims![BATCH, SEQUENCE, WIDTH]));
    let seen = g.input(Input::i64("attention_mask", dims![BATCH, SEQUENCE]).or(InputDefault::Ones));
    let bias = g.input(Input::f32("bias", dims![BATCH, 1, 1, SEQUENCE]));
    let w = g.scope("layer");
    let heads = 4;
    let narrow = WIDTH / heads * ask.kv_heads;
    let q = g.linear(&w.scope("query"), &x, WIDTH).unwrap();
    let k = g.linear_no_bias(&w.scope("key"), &x, narrow).unwrap();
    let v = g.linear(&w.scope("value"), &x, narrow).unwrap();
    let mask = match ask.mask {
        Mask::None => None,
        Mask::Padding => Some(padding_mask(&mut g, &seen).unwrap()),
        Mask::CausalPadding => Some(causal_padding_mask(&mut g, &seen).unwrap()),
        Mask::Bias => Some(bias),
    };
    let options = Attention {
        heads,
        kv_heads: ask.kv_heads,
        mask: mask.as_ref(),
        causal: ask.causal,
        softcap: ask.softcap,
        scale: None,
    };
    let mixed = g.attention(&q, &k, &v, &options).unwrap();
    let first = g.take(&mixed, 1, 0).unwrap();
    let pooled = g.linear(&w.scope("pooler"), &first, 5).unwrap();
    let act = ask.act.unwrap_or(Activation::Gelu);
    let (mixed, pooled) = (g.activation(act, &mixed).unwrap(), g.activation(act, &pooled).unwrap());
    g.output("mixed", &mixed).unwrap();
    g.output("pooled", &pooled).unwrap();
    let parameters = g.weights().iter().map(|weight| (weight.name.clone(), weight.shape.clone()));
    let weights = Weights::Rule(parameters.collect()).locate(g.weights(), &Default::default()).unwrap();
    (g, weights)
}

/// Two sequences of five positions, the second padded on the right; on the left as well, where that leaves positions
/// that see nothing to [`causal_padding_mask`].
fn inputs(ask: Ask) -> Values {
    let values = |name: &str, shape: &[usize]| {
        ArrayD::from_shape_vec(IxDyn(shape), rule::generate(name, shape)).unwrap()
    };
    let seen = ArrayD::from_shape_vec(IxDyn(&[2, 5]), vec![1, 1, 1, 1, 1, i64::from(ask.causal), 1, 1, 0, 0])
        .unwrap();
    Values::from([
        ("x".to_owned(), Value::F32(values("in", &[2, 5, WIDTH]) * 3.0)),
        ("attention_mask".to_owned(), Value::I64(seen)),
        ("bias".to_owned(), Value::F32(values("bias", &[2, 1, 1, 5]) * 20.0)),
    ])
}

fn run(ask: Ask, target: &Target) -> Values {
    let (graph, weights) = graph(ask);
    let lowered = lower(&graph, &weights, target).unwrap();
    let compiled = engine::compile(Hardware::Cpu, &lowered, &Options::default())
        .unwrap_or_else(|error| panic!("{ask:?} as {target:?}: {error}"));
    let taken = lowered.model.graph.iter().flat_map(|graph| &graph.input).map(|input| input.name.as_str());
    let mut given = inputs(ask);
    let taken: Vec<_> = taken.collect();
    given.retain(|name, _| taken.contains(&name.as_str()));
    compiled.run(&given).unwrap()
}

fn asks() -> Vec<Ask> {
    let plain = Ask { kv_heads: 4, ..Ask::default() };
    vec![
        plain,
        Ask { mask: Mask::Padding, ..plain },
        Ask { mask: Mask::CausalPadding, ..plain },
        Ask { mask: Mask::Bias, ..plain },
        Ask { causal: true, ..plain },
        Ask { causal: true, mask: Mask::Padding, ..plain },
        Ask { kv_heads: 2, ..plain },
        Ask { kv_heads: 1, mask: Mask::CausalPadding, ..plain },
        Ask { softcap: 2.0, ..plain },
        Ask { softcap: 2.0, mask: Mask::Padding, ..plain },
        Ask { act: Some(Activation::GeluNew), ..plain },
        Ask { act: Some(Activation::QuickGelu), ..plain },
    ]
}

/// The forms as a list of passes can combine them; the first is the plainest.
fn forms() -> Vec<Target> {
    let linear = [linear::by_product, linear::flatten];
    let attention = [attention::by_products, attention::multi_head, attention::standard];
    let gelu = [Some(activation::gelu_by_operators as Rule), Some(activation::gelu_by_kernel), None];
    let mut all = vec![];
    for linear in linear {
        for attention in attention {
            for gelu in gelu {
                let own = [Some(attention), Some(linear as Rule), gelu];
                let own: Vec<Pass> = own.into_iter().flatten().map(|rule| Pass::each("form", rule)).collect();
                all.push(Target::by(&own));
            }
        }
    }
    all
}

#[test]
fn all_forms_give_the_same_numbers() {
    if let Err(error) = engine::available(Hardware::Cpu) {
        eprintln!("skipped: {error}");
        return;
    }
    for ask in asks() {
        let forms = forms();
        let want = run(ask, &forms[0]);
        for target in &forms[1..] {
            for report in crate::golden::compare(&run(ask, target), &want, 2e-6) {
                assert!(report.passed, "{ask:?} as {target:?}: {report:?}");
            }
        }
    }
}

#[test]
fn fixed_lengths_change_no_number() {
    if let Err(error) = engine::available(Hardware::Cpu) {
        eprintln!("skipped: {error}");
        return;
    }
    for ask in asks() {
        for target in forms() {
            let want = run(ask, &target);
            let fixed = Target { dims: lengths(), ..target };
            for report in crate::golden::compare(&run(ask, &fixed), &want, 2e-6) {
                assert!(report.passed, "{ask:?} as {fixed:?}: {report:?}");
            }
        }
    }
}

#[test]
fn queries_that_see_nothing_weigh_all_keys_alike_in_half_precision() {
    if let Err(error) = engine::available(Hardware::Cpu) {
        eprintln!("skipped: {error}");
        return;
    }
    for kv_heads in [4, 2] {
        let ask = Ask { kv_heads, mask: Mask::CausalPadding, ..Ask::default() };
        let want = run(ask, &Target::of(Hardware::Cpu, Precision::F32));
        for hardware in [Hardware::Cuda, Hardware::Rocm, Hardware::Metal] {
            let target = Target { dims: lengths(), ..Target::of(hardware, Precision::F16) };
            for report in crate::golden::compare(&run(ask, &target), &want, 1e-2) {
                assert!(report.passed, "{ask:?} for {hardware}: {report:?}");
            }
        }
    }
}

#[test]
fn fixed_lengths_leave_no_symbol_and_nothing_to_compute() {
    for ask in asks() {
        for hardware in Hardware::ALL {
            let (graph, weights) = graph(ask);
            let target = Target { dims: lengths(), ..Target::of(hardware, Precision::F32) };
            let lowered = lower(&graph, &weights, &target).unwrap();
            assert!(!lowered.operators.contains_key("Shape"), "{hardware} {ask:?}: {:?}", lowered.operators);
            let model = lowered.model.graph.unwrap();
            for value in model.input.iter().chain(&model.output) {
                let shape =
                    value.kind.as_ref().and_then(|kind| kind.tensor.as_ref()?.shape.as_ref()).unwrap();
                let fixed =
                    |dim: &dimension::Dimension| matches!(dim.value, Some(dimension::Value::Number(_)));
                assert!(shape.dim.iter().all(fixed), "{hardware}: {} {shape:?}", value.name);
            }
        }
    }
}

#[test]
fn the_same_graph_gives_the_same_bytes() {
    for hardware in Hardware::ALL {
        for dims in [BTreeMap::new(), lengths()] {
            let bytes = || {
                let (graph, weights) =
                    graph(Ask { kv_heads: 2, mask: Mask::CausalPadding, ..Ask::default() });
                let target = Target { dims: dims.clone(), ..Target::of(hardware, Precision::F32) };
                lower(&graph, &weights, &target).unwrap().bytes()
            };
            assert!(bytes() == bytes(), "{hardware}");
        }
    }
}

#[test]
fn names_are_used_once() {
    for ask in asks() {
        for target in forms() {
            let (graph, weights) = graph(ask);
            let model = lower(&graph, &weights, &target).unwrap().model.graph.unwrap();
            let weights = model.initializer.iter().map(|tensor| tensor.name.as_str());
            let inputs = model.input.iter().map(|input| input.name.as_str());
            let results = model.node.iter().flat_map(|node| node.output.iter().map(String::as_str));
            let mut defined = BTreeSet::new();
            for name in weights.chain(inputs).chain(results) {
                assert!(defined.insert(name), "{ask:?}: {name} is defined twice");
            }
            let mut nodes = BTreeSet::new();
            assert!(
                model.node.iter().all(|node| nodes.insert(&node.name)),
                "{ask:?}: two nodes have one name"
            );
            for operand in
                model.node.iter().flat_map(|node| &node.input).filter(|operand| !operand.is_empty())
            {
                assert!(defined.contains(operand.as_str()), "{ask:?}: {operand} is not defined");
            }
        }
    }
}

fn lengths() -> BTreeMap<String, usize> {
    BTreeMap::from([("batch".to_owned(), 2), ("sequence".to_owned(), 5)])
}
