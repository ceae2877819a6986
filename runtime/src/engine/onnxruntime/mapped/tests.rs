//! Weights as they are stored give what converted ones do, and stay where they are.

use half::{bf16, f16};
use ndarray::ArrayD;

use super::super::session::Running;
use super::super::{environment, operators};
use super::*;
use crate::engine::{Compiled, KvState, Options};
use crate::graph::dims::{BATCH, SEQUENCE};
use crate::graph::{Dtype, Graph, Input, LinearAttention, Unary};
use crate::lower::{Lowered, Target, lower};
use crate::weights::{Bytes, Weights};
use crate::{Hardware, Precision, Value, Values, dims};

/// What a number becomes where it is stored.
pub(super) type Rounding = fn(f32) -> f32;

const WIDTH: usize = 128;
const WORDS: usize = 300;

/// A looked-up row, and linear layers with a bias and without; the last has the looked-up weights. Weights are what `round`
/// makes of them, stored as `stored`.
fn lowered(stored: Dtype, round: Rounding) -> Lowered {
    let mut g = Graph::new();
    let ids = g.input(Input::i64("input_ids", dims![BATCH, SEQUENCE]));
    let w = g.scope("layer");
    let x = g.embedding(&w.scope("words"), &ids, WORDS, WIDTH).unwrap();
    let inner = g.linear(&w.scope("up"), &x, 3 * WIDTH).unwrap();
    let inner = g.linear_no_bias(&w.scope("down"), &inner, WIDTH).unwrap();
    let scale = g.weight("scale", &[WORDS, WIDTH]).unwrap();
    let scale = g.softmax(&scale).unwrap();
    let y = g.linear_no_bias(&w.scope("words"), &inner, WORDS).unwrap();
    let z = g.matmul(&y, &scale).unwrap();
    g.output("y", &y).unwrap();
    g.output("z", &z).unwrap();
    with_stored_weights(&g, stored, round)
}

/// The graph with random weights, which are what `round` makes of them, stored as `stored`.
pub(super) fn with_stored_weights(g: &Graph, stored: Dtype, round: Rounding) -> Lowered {
    let parameters = g.weights().iter().map(|weight| (weight.name.clone(), weight.shape.clone()));
    let mut weights = Weights::Rule(parameters.collect()).locate(g.weights(), &Default::default()).unwrap();
    for weight in &mut weights {
        let Bytes::Memory(bytes) = &weight.bytes else { panic!() };
        let numbers = bytes.as_chunks().0.iter().map(|bytes| round(f32::from_le_bytes(*bytes)));
        let narrowed: Vec<u8> = match stored {
            Dtype::Bf16 => numbers.flat_map(|x| bf16::from_f32(x).to_le_bytes()).collect(),
            Dtype::F16 => numbers.flat_map(|x| f16::from_f32(x).to_le_bytes()).collect(),
            _ => numbers.flat_map(f32::to_le_bytes).collect(),
        };
        weight.bytes = Bytes::memory(narrowed);
        weight.dtype = stored;
    }
    lower(g, &weights, &Target::of(Hardware::Cpu, Precision::F32)).unwrap()
}

fn inputs(batch: usize, sequence: usize) -> Values {
    let ids = (0..batch * sequence).map(|i| (i * 37 % WORDS) as i64).collect();
    let ids = ArrayD::from_shape_vec(vec![batch, sequence], ids).unwrap();
    [("input_ids".to_owned(), Value::I64(ids))].into()
}

pub(super) fn open(lowered: &Lowered, options: &Options) -> Running {
    let (environment, _) = environment(Hardware::Cpu).unwrap();
    Running::new(environment, Hardware::Cpu, lowered, options).unwrap()
}

/// The largest difference, relative to the largest value.
#[track_caller]
pub(super) fn difference(got: &Values, want: &Values) -> f32 {
    let mut most = 0.0_f32;
    for name in ["y", "z"] {
        let (Value::F32(got), Value::F32(want)) = (&got[name], &want[name]) else { panic!() };
        assert_eq!(got.shape(), want.shape());
        let largest = want.iter().fold(1e-9_f32, |most, x| most.max(x.abs()));
        most = most.max((got - want).iter().fold(0.0, |most, d| d.abs().max(most)) / largest);
    }
    most
}

#[test]
fn stored_weights_give_what_converted_ones_do() {
    let rounds: [(Dtype, Rounding); 3] = [
        (Dtype::F32, |x| x),
        (Dtype::Bf16, |x| bf16::from_f32(x).to_f32()),
        (Dtype::F16, |x| f16::from_f32(x).to_f32()),
    ];
    for (stored, round) in rounds {
        let converted = open(&lowered(Dtype::F32, round), &Options::default());
        for map in [None, Some(true)] {
            let options = Options { map_weights: map, ..Options::default() };
            let kept = open(&lowered(stored, round), &options);
            for (batch, sequence) in [(1, 1), (3, 1), (2, 2), (1, 7), (3, 9)] {
                let inputs = inputs(batch, sequence);
                let want = converted.run(&inputs).unwrap();
                let step = kept.run_with_state(inputs.clone(), &mut KvState::default()).unwrap();
                for got in [kept.run(&inputs).unwrap(), step] {
                    let off = difference(&got, &want);
                    assert!(off < 1e-5, "{stored:?} {map:?} {batch} x {sequence}: {off}");
                }
            }
        }
    }
}

#[test]
fn bfloat16_is_computed_in_when_asked_for_or_refused() {
    let single = lowered(Dtype::F32, |x| x);
    let options = Options { precision: Precision::Bf16, ..Options::default() };
    if !operators::computes_in_bf16() {
        let (environment, _) = environment(Hardware::Cpu).unwrap();
        let refused = Running::new(environment, Hardware::Cpu, &single, &options).err().unwrap();
        assert!(refused.to_string().contains("does not compute in bfloat16"), "{refused}");
        return;
    }
    let inputs = inputs(2, 9);
    let want = open(&single, &Options::default()).run(&inputs).unwrap();
    let off = difference(&open(&single, &options).run(&inputs).unwrap(), &want);
    assert!(off > 1e-6 && off < 2e-2, "{off}: neither in single precision nor wrong");
}

#[test]
fn weights_of_16_bits_stay_where_linear_layers_and_embeddings_read_them() {
    let operators = |stored, stay| -> Vec<String> {
        let model = stored_weights(&lowered(stored, |x| x).model, stay, false).unwrap();
        model.graph.unwrap().node.into_iter().map(|node| node.op_type).collect()
    };
    assert!(stored_weights(&lowered(Dtype::F32, |x| x).model, Stay::Narrow, false).is_none());
    let count = |all: &[String], wanted: &str| all.iter().filter(|operator| *operator == wanted).count();
    let all = operators(Dtype::F32, Stay::All);
    assert_eq!((count(&all, "LinearF32"), count(&all, "Reshape")), (3, 0), "{all:?}");
    let narrow = operators(Dtype::Bf16, Stay::Narrow);
    assert_eq!(
        (count(&narrow, "LinearBf16"), count(&narrow, "Cast"), count(&narrow, "WidenBf16")),
        (3, 3, 0),
        "the casts of the bias, of the rows that were looked up and of what is neither: {narrow:?}"
    );
    let all = operators(Dtype::F16, Stay::All);
    assert_eq!(
        (count(&all, "LinearF16"), count(&all, "Cast"), count(&all, "WidenF16")),
        (3, 2, 1),
        "{all:?}"
    );
}

/// Linear attention with decays by key and the delta rule, of what a linear layer makes of x.
fn recurrent(queries: usize, value: usize, delta: bool) -> Lowered {
    let (heads, key) = (4, 8);
    let mut g = Graph::new();
    let x = g.input(Input::f32("x", dims![BATCH, SEQUENCE, 16]));
    let state = g.input(Input::f32("state", dims![BATCH, heads, key, value]));
    let w = g.scope("layer");
    let mut made = |name: &str, width| g.linear(&w.scope(name), &x, width).unwrap();
    let (q, k, v) = (made("q", queries * key), made("k", heads * key), made("v", heads * value));
    let (decay, beta) = (made("decay", heads * key), made("beta", heads));
    let decay = g.unary(Unary::Softplus, &decay);
    let decay = g.scale(&decay, -1.0).unwrap();
    let beta = g.unary(Unary::Sigmoid, &beta);
    let attention = LinearAttention {
        q: &q,
        k: &k,
        v: &v,
        state: &state,
        decay: Some(&decay),
        beta: delta.then_some(&beta),
        heads,
        query_heads: queries,
        scale: 0.5,
    };
    let (y, z) = g.linear_attention(&attention).unwrap();
    g.output("y", &y).unwrap();
    g.output("z", &z).unwrap();
    with_stored_weights(&g, Dtype::F32, |x| x)
}

#[test]
fn the_runtimes_own_linear_attention_gives_what_onnx_runtimes_does() {
    for (queries, value, delta) in [(1, 1, false), (4, 1, false), (2, 6, false), (4, 6, true)] {
        let lowered = recurrent(queries, value, delta);
        let own = Options { map_weights: Some(true), ..Options::default() };
        let [theirs, ours] = [&Options::default(), &own].map(|options| open(&lowered, options));
        let model = stored_weights(&lowered.model, Stay::All, false).unwrap();
        let mut nodes = model.graph.unwrap().node.into_iter();
        let node = nodes.find(|node| node.op_type == "LinearAttention").unwrap();
        assert_eq!(node.domain, DOMAIN);
        for length in [1, 5] {
            let numbers = |shape: &[usize]| {
                let count = shape.iter().product::<usize>();
                let numbers = (0..count).map(|i| (i * 29 % 17) as f32 / 8.0 - 1.0).collect();
                Value::F32(ArrayD::from_shape_vec(shape.to_vec(), numbers).unwrap())
            };
            let x = ("x".to_owned(), numbers(&[2, length, 16]));
            let inputs: Values = [x, ("state".to_owned(), numbers(&[2, 4, 8, value]))].into();
            let [theirs, ours] = [&theirs, &ours].map(|session| session.run(&inputs).unwrap());
            let most = difference(&ours, &theirs);
            assert!(most < 2e-6, "{queries} heads of queries, values of {value}: {most}");
        }
    }
}

#[test]
fn the_runtimes_own_causal_convolution_gives_what_onnx_runtimes_does() {
    for (silu, bias) in [(false, false), (true, true)] {
        let mut g = Graph::new();
        let x = g.input(Input::f32("x", dims![BATCH, SEQUENCE, 6]));
        let past = g.input(Input::f32("state", dims![BATCH, 3, 6]));
        let w = g.scope("conv");
        g.enter(&w);
        let weight = g.weight(&w.name("weight"), &[6, 1, 4]).unwrap();
        let bias = bias.then(|| g.weight(&w.name("bias"), &[6]).unwrap());
        let (y, z) = g.causal_conv(&x, &past, &weight, bias.as_ref(), 1, silu).unwrap();
        g.output("y", &y).unwrap();
        g.output("z", &z).unwrap();
        let lowered = with_stored_weights(&g, Dtype::F32, |x| x);
        let own = Options { map_weights: Some(true), ..Options::default() };
        let [theirs, ours] = [&Options::default(), &own].map(|options| open(&lowered, options));
        let model = stored_weights(&lowered.model, Stay::All, false).unwrap();
        assert_eq!(model.graph.unwrap().node[0].domain, DOMAIN);
        for length in [1, 5] {
            let numbers = |length: usize| {
                let numbers = (0..12 * length).map(|i| (i * 29 % 17) as f32 / 8.0 - 1.0).collect();
                Value::F32(ArrayD::from_shape_vec(vec![2, length, 6], numbers).unwrap())
            };
            let inputs: Values = [("x".to_owned(), numbers(length)), ("state".to_owned(), numbers(3))].into();
            let [theirs, ours] = [&theirs, &ours].map(|session| session.run(&inputs).unwrap());
            let most = difference(&ours, &theirs);
            assert!(most < 2e-6, "{silu} {length}: {most}");
        }
    }
}
