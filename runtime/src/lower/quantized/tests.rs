//! Whatever stands for a quantized weight, the numbers are those of its dequantized values.

use std::collections::BTreeMap;

use ndarray::{ArrayD, IxDyn};

use super::*;
use crate::engine::{self, Options};
use crate::graph::Input;
use crate::graph::dims::{BATCH, SEQUENCE};
use crate::lower::{Lowered, lower};
use crate::weights::rule;
use crate::weights::testing::{KINDS, sample};
use crate::{Hardware, Precision, Value, Values};

const ROWS: usize = 6;

/// A linear layer over three axes, one over two with no bias, and rows of a table, all of one weight; a layer beside the second, of
/// another.
fn graph(width: usize) -> Graph {
    let mut g = Graph::new();
    let x = g.input(Input::f32("x", dims![BATCH, SEQUENCE, width]));
    let ids = g.input(Input::i64("ids", dims![BATCH, SEQUENCE]));
    let y = g.linear_with("w", Some("b"), &x, ROWS).unwrap();
    let first = g.take(&x, 1, 0).unwrap();
    let plain = g.linear_with("w", None, &first, ROWS).unwrap();
    let beside = g.linear_with("v", Some("b"), &first, ROWS).unwrap();
    let table = g.weight("w", &[ROWS, width]).unwrap();
    let rows = g.gather(&table, &ids, 0).unwrap();
    g.output("y", &y).unwrap();
    g.output("plain", &plain).unwrap();
    g.output("beside", &beside).unwrap();
    g.output("rows", &rows).unwrap();
    g
}

fn weights(graph: &Graph, blocks: &BlockQuantized) -> Vec<WeightData> {
    let bias: Vec<f32> = (0..blocks.shape[0]).map(|row| row as f32 - 2.5).collect();
    let of = |weight: &crate::graph::Weight| WeightData {
        dtype: Dtype::F32,
        shape: weight.shape.clone(),
        stored_as: weight.name.clone(),
        bytes: match weight.name.as_str() {
            "w" | "v" => Bytes::Quantized(Arc::new(blocks.clone())),
            _ => Bytes::memory(bias.iter().flat_map(|x| x.to_le_bytes()).collect()),
        },
    };
    graph.weights().iter().map(of).collect()
}

fn given(width: usize) -> Values {
    let x = rule::generate("x", &[2, 3, width]).into_iter().map(|x| 20.0 * x).collect();
    let ids = vec![5, 0, 1, 2, 4, 3];
    Values::from([
        ("x".to_owned(), Value::F32(ArrayD::from_shape_vec(IxDyn(&[2, 3, width]), x).unwrap())),
        ("ids".to_owned(), Value::I64(ArrayD::from_shape_vec(IxDyn(&[2, 3]), ids).unwrap())),
    ])
}

/// A target for the CPU that forms quantized weights as these kernels need it.
fn target(kernels: Kernels) -> Target {
    let dims = BTreeMap::from([("batch".to_owned(), 2), ("sequence".to_owned(), 3)]);
    Target { kernels, dims, ..Target::of(Hardware::Cpu, Precision::F32) }
}

const EXACT: Kernels = Kernels { accuracy_level: 0, ..Kernels::of(Hardware::Cpu) };

fn run(on: Hardware, blocks: &BlockQuantized, target: &Target) -> (Lowered, Values) {
    let graph = graph(blocks.shape[1]);
    let lowered = lower(&graph, &weights(&graph, blocks), target).unwrap();
    let options = Options { threads: Some(1), ..Options::default() };
    let outputs =
        engine::compile(on, &lowered, &options).and_then(|compiled| compiled.run(&given(blocks.shape[1])));
    let outputs =
        outputs.unwrap_or_else(|error| panic!("{} {:?} on {on}: {error}", blocks.bits, blocks.shape));
    (lowered, outputs)
}

/// Holds a target's numbers to those of dequantized values on the CPU.
#[track_caller]
fn agree(on: Hardware, blocks: &BlockQuantized, kind: &str, target: &Target, tolerance: f64) -> Lowered {
    let plain = Kernels { linear_bits: &[], embedding_bits: &[], ..EXACT };
    let (_, want) = run(Hardware::Cpu, blocks, &self::target(plain));
    let (lowered, got) = run(on, blocks, target);
    for report in crate::golden::compare(&got, &want, tolerance) {
        let BlockQuantized { shape, bits, group, .. } = blocks;
        assert!(report.passed, "{bits} bits, {shape:?} by {group}, {kind}: {report:?}");
    }
    lowered
}

fn samples() -> impl Iterator<Item = (BlockQuantized, &'static str)> {
    let sizes = [(64, 32), (48, 16), (40, 32), (20, 16), (256, 256), (130, 64)];
    let all = [2, 4, 8].into_iter().flat_map(move |bits| sizes.map(|(width, group)| (bits, width, group)));
    all.flat_map(|(bits, width, group)| KINDS.map(|kind| (sample([ROWS, width], bits, group, kind), kind)))
}

/// ONNX Runtime's kernels of level 4 differ from exact ones by what [`rounded`] does to x, and by nothing else.
#[test]
fn emulated_kernels_round_x_as_those_of_the_cpu_do() {
    if !is_here(Hardware::Cpu) {
        return;
    }
    let rounding = Kernels::of(Hardware::Cpu);
    for (blocks, kind) in samples() {
        let (emulated, want) = run(Hardware::Cpu, &blocks, &target(rounding.by_values()));
        assert_eq!(emulated.operators.get("com.microsoft.MatMulNBits"), None, "{:?}", emulated.operators);
        let (_, got) = run(Hardware::Cpu, &blocks, &target(rounding));
        for report in crate::golden::compare(&got, &want, 5e-6) {
            assert!(
                report.passed,
                "{} bits, {:?} by {}, {kind}: {report:?}",
                blocks.bits, blocks.shape, blocks.group
            );
        }
    }
}

fn is_here(hardware: Hardware) -> bool {
    engine::available(hardware).inspect_err(|error| eprintln!("skipped: {error}")).is_ok()
}

#[test]
fn every_form_of_block_gives_the_numbers_of_its_values() {
    if !is_here(Hardware::Cpu) {
        return;
    }
    for (blocks, kind) in samples() {
        let lowered = agree(Hardware::Cpu, &blocks, kind, &target(EXACT), 2e-6);
        assert_eq!(lowered.operators["com.microsoft.MatMulNBits"], 3, "{:?}", lowered.operators);
        let rows = lowered.operators.get("com.microsoft.GatherBlockQuantized");
        assert_eq!(rows.is_some(), kind != "order", "columns of a table are in their order or dequantized");
    }
}

#[test]
fn rounded_activations_are_as_near_as_8_bits_allow() {
    if !is_here(Hardware::Cpu) {
        return;
    }
    for (blocks, kind) in samples() {
        agree(Hardware::Cpu, &blocks, kind, &Target::of(Hardware::Cpu, Precision::F32), 1.5e-2);
    }
}

#[test]
fn the_runtimes_own_kernels_are_as_near() {
    if !is_here(Hardware::Cpu) {
        return;
    }
    let plain = target(Kernels { linear_bits: &[], embedding_bits: &[], ..EXACT });
    for (blocks, kind) in samples() {
        let (_, want) = run(Hardware::Cpu, &blocks, &plain);
        let (lowered, _) = run(Hardware::Cpu, &blocks, &Target::of(Hardware::Cpu, Precision::F32));
        // Weights where they lie: layers of these are the runtime's own operators, as in optimized builds.
        let options = Options { threads: Some(1), map_weights: Some(true), ..Options::default() };
        let compiled = engine::compile(Hardware::Cpu, &lowered, &options).unwrap();
        let placement = compiled.placement().devices.values().flatten();
        let own = placement.filter(|(operator, _)| operator.contains("LinearQuantized"));
        let own: usize = own.map(|(_, count)| count).sum();
        // Those of the same x are one.
        assert!(own == 2 || cfg!(not(target_arch = "x86_64")), "{own} of {kind}");
        for report in crate::golden::compare(&compiled.run(&given(blocks.shape[1])).unwrap(), &want, 1.5e-2) {
            let BlockQuantized { shape, bits, group, .. } = &blocks;
            assert!(report.passed, "{bits} bits, {shape:?} by {group}, {kind}: {report:?}");
        }
    }
}

#[test]
fn places_in_a_codebook_run_by_the_runtimes_own_operators() {
    if !is_here(Hardware::Cpu) {
        return;
    }
    let plain = target(Kernels { linear_bits: &[], embedding_bits: &[], ..EXACT });
    for (kind, scales, nested) in [("e2m1", "E8m0", false), ("iq4_nl", "F16", false), ("iq4_nl", "F16", true)]
    {
        for width in [32, 64, 160, 2080] {
            let mut blocks = sample([ROWS, width], 4, 32, kind);
            if nested {
                let outer: Vec<f32> = (0..ROWS * width.div_ceil(256)).map(|i| (i % 5) as f32 - 1.5).collect();
                blocks.outer = Some(Bytes::memory(Dtype::F16.encoded(&outer)));
            }
            let (_, want) = run(Hardware::Cpu, &blocks, &plain);
            let (lowered, got) = run(Hardware::Cpu, &blocks, &Target::of(Hardware::Cpu, Precision::F32));
            assert_eq!(lowered.operators[&format!("weft.LinearQuantized{scales}")], 3);
            assert_eq!(lowered.operators[&format!("weft.EmbeddingQuantized{scales}")], 1);
            for report in crate::golden::compare(&got, &want, 1.5e-2) {
                assert!(report.passed, "{kind}, {width}: {report:?}");
            }
            assert_eq!(got["rows"], want["rows"], "rows are not rounded");
            // Where x must not be rounded, and elsewhere, they are codes of 8 bits.
            let lowered = agree(Hardware::Cpu, &blocks, kind, &target(EXACT), 2e-6);
            assert_eq!(lowered.operators["com.microsoft.MatMulNBits"], 3, "{:?}", lowered.operators);
        }
    }
}

#[test]
fn the_forms_of_other_backends_mean_the_same() {
    if !is_here(Hardware::Cpu) {
        return;
    }
    for hardware in [
        Hardware::Cuda,
        Hardware::Openvino,
        Hardware::Qnn,
        Hardware::Webnn,
        Hardware::Webgpu,
        Hardware::Metal,
    ] {
        for (blocks, kind) in samples() {
            agree(Hardware::Cpu, &blocks, kind, &target(Kernels::of(hardware)), 2e-6);
        }
    }
}

#[test]
fn what_a_backend_has_no_kernel_for_is_widened_regrouped_or_dequantized() {
    let of_rows = |hardware, rows, width, bits, group| {
        let form = Kernels::of(hardware).linear(&sample([rows, width], bits, group, "codes")).unwrap();
        form.map(|form| (form.bits, form.group))
    };
    let form = |hardware, width, bits, group| of_rows(hardware, 2, width, bits, group);
    assert_eq!(of_rows(Hardware::Qnn, 1, 64, 4, 32), None, "its numbers are wrong");
    assert_eq!(of_rows(Hardware::Cpu, 1, 64, 4, 32), Some((4, 32)));
    assert_eq!(form(Hardware::Cpu, 64, 2, 16), Some((4, 16)), "2 bits by 16 are a cliff");
    assert_eq!(form(Hardware::Cpu, 256, 2, 256), Some((2, 128)));
    assert_eq!(form(Hardware::Webnn, 64, 2, 32), Some((8, 32)));
    assert_eq!(form(Hardware::Openvino, 48, 4, 32), Some((4, 16)), "whole blocks of half the size");
    assert_eq!(form(Hardware::Openvino, 40, 4, 32), None);
    assert_eq!(form(Hardware::Qnn, 64, 4, 32), Some((4, 32)));
    assert_eq!(form(Hardware::Rocm, 64, 2, 32), Some((4, 32)));
    assert_eq!(form(Hardware::Rocm, 64, 8, 32), None);
    assert_eq!(form(Hardware::Metal, 64, 4, 32), None);
}

#[test]
fn the_operators_are_printed_as_backends_take_them() {
    let blocks = sample([ROWS, 64], 4, 32, "codes");
    let printed = |hardware| {
        let graph = graph(64);
        let target = Target { dims: target(EXACT).dims, ..Target::of(hardware, Precision::F32) };
        lower(&graph, &weights(&graph, &blocks), &target).unwrap().model.graph.unwrap()
    };
    let dims = |graph: &crate::onnx::Graph, name: &str| {
        graph.initializer.iter().find(|tensor| tensor.name == name).map(|tensor| tensor.dims.clone())
    };
    let inputs = |graph: &crate::onnx::Graph| {
        let layer = graph.node.iter().find(|node| node.op_type == "MatMulNBits").unwrap();
        layer.input.iter().map(|name| !name.is_empty()).collect::<Vec<_>>()
    };
    let cpu = printed(Hardware::Cpu);
    assert_eq!(dims(&cpu, "w.codes"), Some(vec![6, 2, 16]));
    assert_eq!(dims(&cpu, "w.rows"), Some(vec![6, 32]));
    assert_eq!(
        (dims(&cpu, "w.4x32.scales"), dims(&cpu, "w.4x32.zeros")),
        (Some(vec![6, 2]), Some(vec![6, 1]))
    );
    assert_eq!(inputs(&cpu), [true, true, true, true, false, true], "no order of columns, then the bias");
    let rocm = printed(Hardware::Rocm);
    assert_eq!((dims(&rocm, "w.4x32.scales"), dims(&rocm, "w.rows")), (Some(vec![12]), None));
    assert_eq!(inputs(&rocm), [true; 4]);
    let qnn = printed(Hardware::Qnn);
    let rank = |node: &crate::onnx::Node| {
        let of = |shape: &crate::onnx::TensorShape| shape.dim.len();
        let value = qnn.value_info.iter().chain(&qnn.input).find(|value| value.name == node.input[0]);
        value.and_then(|value| value.kind.as_ref()?.tensor.as_ref()?.shape.as_ref()).map(of)
    };
    let layers = qnn.node.iter().filter(|node| node.op_type == "MatMulNBits");
    assert!(layers.map(rank).all(|rank| rank.is_none_or(|rank| rank == 3)));
}

#[test]
fn what_else_reads_a_quantized_weight_gets_its_values() {
    let mut g = graph(64);
    let table = g.weight("w", &[ROWS, 64]).unwrap();
    let sum = g.reduce(Reduction::Sum, &table, &[1], false).unwrap();
    g.output("sum", &sum).unwrap();
    let blocks = sample([ROWS, 64], 8, 32, "middle");
    for (float, dtype) in [(Dtype::F32, 1), (Dtype::F16, 10)] {
        let target = Target { float, ..target(EXACT) };
        let model = lower(&g, &weights(&g, &blocks), &target).unwrap().model.graph.unwrap();
        let of =
            |name: &str| model.initializer.iter().find(|tensor| tensor.name == name).map(|t| t.data_type);
        assert_eq!((of("w"), of("w.codes")), (Some(dtype), Some(2)));
    }
}

#[test]
fn large_codes_stay_where_they_are_in_memory() {
    if !is_here(Hardware::Cpu) {
        return;
    }
    let width = 1 << 15;
    let blocks = sample([ROWS, width], 4, 32, "codes");
    let lowered = agree(Hardware::Cpu, &blocks, "codes", &target(EXACT), 2e-5);
    let Bytes::Memory(codes) = &blocks.codes else { panic!() };
    assert!(lowered.memory.values().any(|bytes| Arc::ptr_eq(bytes, codes)));
    assert!(lowered.bytes().len() < 100_000, "{}", lowered.bytes().len());
    if is_here(Hardware::Openvino) {
        let target = Target::of(Hardware::Openvino, Precision::F32);
        agree(Hardware::Openvino, &blocks, "codes", &target, 1.5e-2);
    }
}

#[test]
fn openvino_gives_the_numbers_of_the_values() {
    if !is_here(Hardware::Openvino) {
        return;
    }
    for (blocks, kind) in samples().filter(|(blocks, _)| blocks.group < 256) {
        agree(Hardware::Openvino, &blocks, kind, &Target::of(Hardware::Openvino, Precision::F32), 2e-5);
    }
}
