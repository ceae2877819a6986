//! Selected experts with quantized weights give what their dequantized values give.

use std::sync::Arc;

use ndarray::{ArrayD, IxDyn};

use crate::dims;
use crate::engine::{self, Options};
use crate::graph::dims::BATCH;
use crate::graph::{Graph, Input};
use crate::lower::{Kernels, Lowered, Target, lower};
use crate::weights::testing::{KINDS, sample};
use crate::weights::{BlockQuantized, Bytes, WeightData};
use crate::{Dtype, Hardware, Precision, Value, Values};

const WIDTH: usize = 96;

/// Rows that select two of three experts each: the first is selected by so many that rows are gathered in tiles, the second by one.
const INDICES: [i64; 16] = [0, 2, 0, 1, 2, 0, 0, 2, 2, 0, 0, 2, 0, 2, 0, 2];

fn graph() -> Graph {
    let mut g = Graph::new();
    let x = g.input(Input::f32("x", dims![BATCH, 1, WIDTH]));
    let indices = g.input(Input::i64("indices", dims![BATCH, 2]));
    let weights: Vec<_> = (0..3).map(|index| g.weight(&format!("w{index}"), &[6, WIDTH]).unwrap()).collect();
    let y = g.expert_linear(&x, &indices, &weights, false).unwrap();
    g.output("y", &y).unwrap();
    g
}

/// Whole numbers of which the largest of each block is 127, which rounding to 8 bits leaves as they are.
fn given() -> Values {
    let x =
        (0..8 * WIDTH).map(|i| if i % 16 == 5 { 127.0 } else { ((i * 37) % 201) as f32 - 100.0 }).collect();
    Values::from([
        ("x".to_owned(), Value::F32(ArrayD::from_shape_vec(IxDyn(&[8, 1, WIDTH]), x).unwrap())),
        ("indices".to_owned(), Value::I64(ArrayD::from_shape_vec(IxDyn(&[8, 2]), INDICES.to_vec()).unwrap())),
    ])
}

fn stored(blocks: &[BlockQuantized]) -> Vec<WeightData> {
    let of = |(index, blocks): (usize, &BlockQuantized)| WeightData {
        dtype: Dtype::F32,
        shape: blocks.shape.to_vec(),
        stored_as: format!("w{index}"),
        bytes: Bytes::Quantized(Arc::new(blocks.clone())),
    };
    blocks.iter().enumerate().map(of).collect()
}

fn run(lowered: &Lowered) -> Values {
    let mut inputs = given();
    let graph = lowered.model.graph.as_ref().unwrap();
    inputs.retain(|name, _| graph.input.iter().any(|input| input.name == *name));
    engine::compile(Hardware::Cpu, lowered, &Options::default()).unwrap().run(&inputs).unwrap()
}

#[test]
fn codes_are_multiplied_where_they_lie() {
    if engine::available(Hardware::Cpu).is_err() {
        return;
    }
    let all = [2, 4, 8].into_iter().flat_map(|bits| KINDS.map(|kind| (bits, kind)));
    for (bits, kind) in all.filter(|(_, kind)| *kind != "order") {
        let blocks: Vec<_> = [1, 2, 3]
            .map(|seed| {
                let mut blocks = sample([6, WIDTH], bits, 32, kind);
                let scale = |x: f32| Dtype::F16.encoded(&[x / seed as f32]);
                let scales = blocks.scales_in_single().unwrap();
                blocks.scales = Bytes::memory(scales.into_iter().flat_map(scale).collect());
                blocks
            })
            .to_vec();
        let (graph, target) = (graph(), Target::of(Hardware::Cpu, Precision::F32));
        let lowered = lower(&graph, &stored(&blocks), &target).unwrap();
        assert_eq!(lowered.operators["weft.ExpertLinearQuantizedF16"], 1, "{:?}", lowered.operators);
        let values: Vec<WeightData> = stored(&blocks)
            .into_iter()
            .zip(&blocks)
            .map(|(weight, blocks)| {
                let bytes = Bytes::memory(Dtype::F32.encoded(&blocks.dequantize().unwrap()));
                WeightData { bytes, ..weight }
            })
            .collect();
        let plain = lower(&graph, &values, &target).unwrap();
        assert_eq!(plain.operators["weft.ExpertLinearF32"], 1);
        for report in crate::golden::compare(&run(&lowered), &run(&plain), 1e-5) {
            assert!(report.passed, "{bits} bits, {kind}: {report:?}");
        }
    }
}

/// Experts in one tensor `[experts, in, out]`, whose codes lie the other way.
#[test]
fn a_batch_of_experts_runs_by_its_codes() {
    if engine::available(Hardware::Cpu).is_err() {
        return;
    }
    for (kind, nested) in
        [("e2m1", false), ("iq4_nl", false), ("iq4_nl", true), ("middle", false), ("minimums", false)]
    {
        let outer: Vec<f32> = (0..18).map(|row| (row % 5) as f32 - 1.5).collect();
        let outer = nested.then(|| Bytes::memory(Dtype::F16.encoded(&outer)));
        let blocks = BlockQuantized { batch: Some(3), outer, ..sample([3 * 6, WIDTH], 4, 32, kind) };
        let mut g = Graph::new();
        let x = g.input(Input::f32("x", dims![BATCH, 1, WIDTH]));
        let indices = g.input(Input::i64("indices", dims![BATCH, 2]));
        let weights = g.weight("w", &[3, WIDTH, 6]).unwrap();
        let y = g.expert_linear(&x, &indices, &[weights], true).unwrap();
        g.output("y", &y).unwrap();
        let with = |bytes: Bytes| {
            let (shape, stored_as) = (vec![3, WIDTH, 6], "w".to_owned());
            [WeightData { dtype: Dtype::F32, shape, stored_as, bytes }]
        };
        let target = Target::of(Hardware::Cpu, Precision::F32);
        let lowered = lower(&g, &with(Bytes::Quantized(Arc::new(blocks.clone()))), &target).unwrap();
        let operator = if kind == "e2m1" { "E8m0" } else { "F16" };
        assert_eq!(lowered.operators[&format!("weft.ExpertLinearQuantized{operator}")], 1);
        let values = Bytes::memory(Dtype::F32.encoded(&blocks.dequantize().unwrap()));
        let plain = lower(&g, &with(values), &target).unwrap();
        for report in crate::golden::compare(&run(&lowered), &run(&plain), 1e-5) {
            assert!(report.passed, "{kind}: {report:?}");
        }
        // One expert after the other where x must not be rounded.
        let kernels = Kernels { accuracy_level: 0, ..target.kernels };
        let exact = lower(&g, &with(Bytes::Quantized(Arc::new(blocks))), &Target { kernels, ..target });
        // A layer by itself is no mixture that this could be done to.
        assert!(
            exact.is_err() || exact.is_ok_and(|it| !it.operators.keys().any(|op| op.contains("Quantized")))
        );
    }
}

#[test]
fn experts_of_several_forms_run_one_after_the_other() {
    let of = |blocks: [BlockQuantized; 3], kernels: Kernels| {
        let target = Target { kernels, ..Target::of(Hardware::Cpu, Precision::F32) };
        let mut g = Graph::new();
        let x = g.input(Input::f32("x", dims![BATCH, WIDTH]));
        let weights = g.input(Input::f32("weights", dims![BATCH, 3]));
        let routing = crate::nn::Routing { weights, top_k: 1 };
        let expert = crate::nn::Mlp {
            up: "up",
            down: "down",
            width: 6,
            act: crate::nn::Activation::Relu,
            bias: false,
        };
        let y =
            crate::nn::ungated_experts(&mut g, &crate::graph::Scope::root(), &x, &routing, &expert).unwrap();
        g.output("y", &y).unwrap();
        let located: Vec<WeightData> = g
            .weights()
            .iter()
            .map(|weight| {
                let place = weight.name[..1].parse::<usize>().unwrap();
                let bytes = match weight.name.ends_with("up.weight") {
                    true => Bytes::Quantized(Arc::new(blocks[place].clone())),
                    false => Bytes::memory(vec![0; 4 * 6 * WIDTH]),
                };
                let (shape, stored_as) = (weight.shape.clone(), weight.name.clone());
                WeightData { dtype: Dtype::F32, shape, stored_as, bytes }
            })
            .collect();
        lower(&g, &located, &target).unwrap().operators
    };
    let blocks = |bits, kind| sample([6, WIDTH], bits, 32, kind);
    let [four, eight, ordered] = [blocks(4, "middle"), blocks(8, "middle"), blocks(4, "order")];
    let kernels = Kernels::of(Hardware::Cpu);
    let alike = of([four.clone(), four.clone(), four.clone()], kernels);
    assert_eq!(alike["weft.ExpertLinearQuantizedF16"], 1);
    for (blocks, kernels) in [
        ([four.clone(), eight, four.clone()], kernels),
        ([four.clone(), four.clone(), ordered], kernels),
        ([four.clone(), four.clone(), four], Kernels { accuracy_level: 0, ..kernels }),
    ] {
        let operators = of(blocks, kernels);
        assert_eq!(operators["com.microsoft.MatMulNBits"], 3, "{operators:?}");
    }
}

/// All experts at once, as OpenVINO takes them, give what their values give; ONNX Runtime has the operators too.
#[test]
fn all_experts_at_once_are_dequantized_block_by_block() {
    if engine::available(Hardware::Cpu).is_err() {
        return;
    }
    let expert = crate::nn::GatedMlp {
        gate: "gate",
        up: "up",
        down: "down",
        width: WIDTH,
        act: crate::nn::Activation::Silu,
        bias: false,
    };
    let graph = || {
        let mut g = Graph::new();
        let x = g.input(Input::f32("x", dims![8, 1, WIDTH]));
        let logits: Vec<f32> = (0..24).map(|i| (i * 7 % 5) as f32).collect();
        let logits = g.constant(&[8, 1, 3], logits).unwrap();
        let routing = crate::nn::softmax_topk(&mut g, &logits, 2, true).unwrap();
        let y = crate::nn::experts(&mut g, &crate::graph::Scope::root(), &x, &routing, &expert).unwrap();
        g.output("y", &y).unwrap();
        g
    };
    for (bits, kind) in
        [(4, "middle"), (4, "codes"), (8, "middle"), (2, "codes"), (4, "e2m1"), (4, "minimums")]
    {
        let blocks = sample([WIDTH, WIDTH], bits, 32, kind);
        let g = graph();
        let with = |bytes: Bytes| -> Vec<WeightData> {
            let of = |weight: &crate::graph::Weight| WeightData {
                dtype: Dtype::F32,
                shape: weight.shape.clone(),
                stored_as: weight.name.clone(),
                bytes: bytes.clone(),
            };
            g.weights().iter().map(of).collect()
        };
        let target = Target::of(Hardware::Openvino, Precision::F32);
        let lowered = lower(&g, &with(Bytes::Quantized(Arc::new(blocks.clone()))), &target).unwrap();
        let at_once = lowered.operators.get("DequantizeLinear").copied();
        assert_eq!(
            at_once,
            (kind != "minimums").then_some(3),
            "{bits} bits, {kind}: {:?}",
            lowered.operators
        );
        let values = Bytes::memory(Dtype::F32.encoded(&blocks.dequantize().unwrap()));
        let plain = lower(&g, &with(values), &Target::of(Hardware::Cpu, Precision::F32)).unwrap();
        for report in crate::golden::compare(&run(&lowered), &run(&plain), 1e-5) {
            assert!(report.passed, "{bits} bits, {kind}: {report:?}");
        }
    }
}
