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

const CACHED: [&str; 2] = ["past_key_values.0.key", "past_key_values.0.value"];

/// Runs the next positions, from nothing where nothing is kept.
fn step(of: &dyn engine::Compiled, kept: &mut KvState, start: usize, end: usize) -> Values {
    let mut given = inputs(start, end);
    for name in CACHED.into_iter().filter(|name| !kept.holds(name)) {
        given.insert(name.to_owned(), Value::F32(ArrayD::zeros(IxDyn(&[2, 2, 0, 4]))));
    }
    of.run_with_state(given, kept).unwrap()
}

fn same(got: &Values, want: &Values) {
    for report in crate::golden::compare(got, want, 2e-6) {
        assert!(report.passed, "{report:?}");
    }
}

/// Keys and values as they are told, heads first.
fn told(kept: &KvState) -> Values {
    let copy = |name: &str| kept.copy(Hardware::Cpu, name).unwrap().unwrap();
    CACHED.map(|name| (name.to_owned(), copy(name))).into()
}

#[test]
fn a_cache_that_is_appended_to_where_it_lies_is_what_others_are() {
    if let Err(error) = engine::available(Hardware::Cpu) {
        eprintln!("skipped: {error}");
        return;
    }
    let [plain, own] = [Hardware::Openvino, Hardware::Cpu].map(|of| Target::of(of, Precision::F32));
    let [plain, own] = [plain, own].map(|target| compiled(ASKS[0], GraphKind::Decode, &target));
    let mut kept = [KvState::default(), KvState::default()];
    for (start, end) in [(0, 2), (2, 3), (3, 5)] {
        let [want, got] = [(&plain, 0), (&own, 1)].map(|(of, at)| step(&**of, &mut kept[at], start, end));
        same(&got, &want);
        same(&told(&kept[1]), &told(&kept[0]));
        assert_eq!(told(&kept[1])[CACHED[0]].shape(), [2, 2, end, 4]);
        assert_eq!(kept[1].bytes(), kept[0].bytes());
    }
    // Some positions are taken back, and others come in their place.
    for kept in &mut kept {
        for name in CACHED {
            kept.crop(Hardware::Cpu, name, 2, 3).unwrap();
        }
    }
    same(&told(&kept[1]), &told(&kept[0]));
    let [want, got] = [(&plain, 0), (&own, 1)].map(|(of, at)| step(&**of, &mut kept[at], 2, 4));
    same(&got, &want);
    // A run that fails leaves what was there.
    let mut wrong = inputs(4, 5);
    wrong.insert("x".to_owned(), Value::F32(ArrayD::zeros(IxDyn(&[2, 1, WIDTH + 1]))));
    assert!(own.run_with_state(wrong, &mut kept[1]).is_err());
    same(&told(&kept[1]), &told(&kept[0]));
    // Each goes on from what the other left.
    kept.reverse();
    let [want, got] = [(&plain, 0), (&own, 1)].map(|(of, at)| step(&**of, &mut kept[at], 4, 5));
    same(&got, &want);
    same(&told(&kept[1]), &told(&kept[0]));
}

#[test]
fn a_run_without_state_tells_the_cache_heads_first() {
    if let Err(error) = engine::available(Hardware::Cpu) {
        eprintln!("skipped: {error}");
        return;
    }
    let of = [Hardware::Openvino, Hardware::Cpu].map(|of| {
        let mut given = inputs(0, 3);
        for name in CACHED {
            given.insert(name.to_owned(), Value::F32(ArrayD::zeros(IxDyn(&[2, 2, 0, 4]))));
        }
        compiled(ASKS[0], GraphKind::Decode, &Target::of(of, Precision::F32)).run(&given).unwrap()
    });
    assert_eq!(of[1].keys().collect::<Vec<_>>(), ["mixed", "present.0.key", "present.0.value"]);
    same(&of[1], &of[0]);
}

#[test]
fn one_operator_attends_and_appends_where_nothing_else_reads_the_cache() {
    let operators = |kind: GraphKind, target: &Target| {
        let (graph, weights) = graph(ASKS[0], kind);
        lower(&graph, &weights, target).unwrap().operators
    };
    let own = |kind: GraphKind| {
        let operators = operators(kind, &Target::of(Hardware::Cpu, Precision::F32));
        ["weft.CachedAttention", "weft.FlashAttention", "Attention"].map(|name| operators.contains_key(name))
    };
    assert_eq!(own(GraphKind::Decode), [true, false, false]);
    assert_eq!(own(GraphKind::Forward), [false, true, false]);
    // Beams choose among the rows of the cache.
    assert_eq!(own(GraphKind::BeamDecode), [false, true, false]);
    let others = Hardware::ALL.into_iter().filter(|of| !matches!(of, Hardware::Cpu | Hardware::Auto));
    let others = others.map(|of| Target::of(of, Precision::F32));
    let halved =
        [Target::of(Hardware::Cpu, Precision::F16), Target::in_browser(Hardware::Cpu, Precision::F32)];
    for target in others.chain(halved) {
        let operators = operators(GraphKind::Decode, &target);
        assert!(operators.keys().all(|name| !name.starts_with("weft.")), "{target:?}");
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
