//! A decoder layer with rotary embeddings: all forms agree, and steps from a cache give what the whole text gives.

use ndarray::{Array2, ArrayD, Axis, IxDyn, concatenate, s};

use super::*;
use crate::GraphKind;
use crate::engine::{self, KvState, Options};
use crate::graph::dims::{BATCH, PAST, SEQUENCE};
use crate::graph::{Input, InputDefault};
use crate::nn::{Attention, Cache, Rotary, causal_mask};
use crate::weights::{Weights, rule};
use crate::{Hardware, Precision, Value, Values, dims};

const WIDTH: usize = 16;

#[derive(Clone, Copy, Debug)]
struct Ask {
    pairs: usize,
    interleaved: bool,
    window: Option<usize>,
}

const ASKS: [Ask; 4] = [
    Ask { pairs: 2, interleaved: false, window: None },
    Ask { pairs: 1, interleaved: false, window: Some(2) },
    Ask { pairs: 2, interleaved: true, window: None },
    Ask { pairs: 1, interleaved: true, window: None },
];

fn graph(ask: Ask, kind: GraphKind) -> (Graph, Vec<WeightData>) {
    let mut g = Graph::new();
    let mut cache = Cache::new(&mut g, kind);
    if kind == GraphKind::Encoder {
        cache = cache.within("decoder");
    }
    let x = g.input(Input::f32("x", dims![BATCH, SEQUENCE, WIDTH]));
    let positions = g.input(Input::i64("position_ids", dims![BATCH, SEQUENCE]).or(InputDefault::Positions));
    let seen = g.input(Input::i64("attention_mask", dims![BATCH, cache.keys()]).or(InputDefault::Ones));
    let mask = causal_mask(&mut g, &seen, &cache.past(), ask.window).unwrap();
    let frequencies: Vec<f32> = (0..ask.pairs).map(|i| 0.5 / (i as f32 + 1.0)).collect();
    let mut rotary = Rotary::new(&mut g, &positions, &frequencies, 1.5).unwrap();
    if ask.interleaved {
        rotary = rotary.interleaved();
    }
    let w = g.scope("layer");
    let (heads, kv_heads) = (4, 2);
    let q = g.linear(&w.scope("query"), &x, WIDTH).unwrap();
    let k = g.linear(&w.scope("key"), &x, WIDTH / 2).unwrap();
    let v = g.linear(&w.scope("value"), &x, WIDTH / 2).unwrap();
    let q = rotary.apply(&mut g, &q, heads).unwrap();
    let k = rotary.apply(&mut g, &k, kv_heads).unwrap();
    let (k, v) = cache.update(&mut g, 0, k, v, kv_heads).unwrap();
    let options = Attention { heads, kv_heads, mask: Some(&mask), ..Attention::default() };
    let mixed = g.attention(&q, &k, &v, &options).unwrap();
    g.output("mixed", &mixed).unwrap();
    let parameters = g.weights().iter().map(|weight| (weight.name.clone(), weight.shape.clone()));
    let weights = Weights::Rule(parameters.collect()).locate(g.weights(), &Default::default()).unwrap();
    (g, weights)
}

fn forms() -> Vec<Target> {
    [Hardware::Openvino, Hardware::Cpu, Hardware::Cuda].map(|of| Target::of(of, Precision::F32)).into()
}

fn x() -> ArrayD<f32> {
    ArrayD::from_shape_vec(IxDyn(&[2, 5, WIDTH]), rule::generate("in", &[2, 5, WIDTH])).unwrap() * 3.0
}

fn mask() -> Array2<i64> {
    Array2::from_shape_vec((2, 5), vec![1, 1, 1, 1, 1, 1, 0, 1, 1, 1]).unwrap()
}

fn inputs(start: usize, end: usize) -> Values {
    let x = x().slice(s![.., start..end, ..]).to_owned().into_dyn();
    let positions = Array2::from_shape_fn((2, end - start), |(_, i)| (start + i) as i64).into_dyn();
    let mask = mask().slice(s![.., ..end]).to_owned().into_dyn();
    Values::from([
        ("x".to_owned(), Value::F32(x)),
        ("position_ids".to_owned(), Value::I64(positions)),
        ("attention_mask".to_owned(), Value::I64(mask)),
    ])
}

fn compiled(ask: Ask, kind: GraphKind, target: &Target) -> Box<dyn engine::Compiled> {
    let (graph, weights) = graph(ask, kind);
    let lowered = lower(&graph, &weights, target).unwrap();
    engine::compile(Hardware::Cpu, &lowered, &Options::default())
        .unwrap_or_else(|error| panic!("{ask:?} {kind:?} as {target:?}: {error}"))
}

#[test]
fn steps_from_a_cache_give_what_the_whole_gives() {
    if let Err(error) = engine::available(Hardware::Cpu) {
        eprintln!("skipped: {error}");
        return;
    }
    for ask in ASKS {
        let want = compiled(ask, GraphKind::Forward, &forms()[0]).run(&inputs(0, 5)).unwrap();
        for target in forms() {
            let whole = compiled(ask, GraphKind::Forward, &target).run(&inputs(0, 5)).unwrap();
            for report in crate::golden::compare(&whole, &want, 2e-6) {
                assert!(report.passed, "{ask:?} as {target:?}: {report:?}");
            }
            let step = compiled(ask, GraphKind::Decode, &target);
            let mut kept = KvState::default();
            let mut all = vec![];
            for (start, end) in [(0, 3), (3, 4), (4, 5)] {
                let mut given = inputs(start, end);
                if start == 0 {
                    for what in ["key", "value"] {
                        let empty = ArrayD::<f32>::zeros(IxDyn(&[2, 2, 0, 4]));
                        given.insert(format!("past_key_values.0.{what}"), Value::F32(empty));
                    }
                }
                let outputs = step.run_with_state(given, &mut kept).unwrap();
                assert_eq!(outputs.len(), 1, "the cache stays in the engine");
                all.push(outputs["mixed"].f32("mixed").unwrap().clone());
            }
            let views: Vec<_> = all.iter().map(|a| a.view()).collect();
            let joined = concatenate(Axis(1), &views).unwrap().as_standard_layout().into_owned();
            let got = Values::from([("mixed".to_owned(), Value::F32(joined))]);
            for report in crate::golden::compare(&got, &want, 2e-6) {
                assert!(report.passed, "steps of {ask:?} as {target:?}: {report:?}");
            }
        }
    }
}

#[test]
fn fixed_lengths_leave_nothing_to_compute() {
    let dims = [("batch", 2), ("sequence", 1), (PAST.to_string().as_str(), 4)]
        .map(|(name, length)| (name.to_owned(), length));
    for hardware in Hardware::ALL {
        let (graph, weights) = graph(ASKS[1], GraphKind::Decode);
        let target = Target { dims: dims.clone().into(), ..Target::of(hardware, Precision::F32) };
        let lowered = lower(&graph, &weights, &target).unwrap();
        assert!(!lowered.operators.contains_key("Shape"), "{hardware}: {:?}", lowered.operators);
    }
}
