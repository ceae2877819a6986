//! Forms for backends whose kernels see fewer channels, types or roundings than ONNX has.

use ndarray::{ArrayD, IxDyn};

use super::passes::{resize, spatial, types};
use super::*;
use crate::engine::{self, Options};
use crate::graph::dims::{BATCH, HEIGHT, WIDTH};
use crate::graph::{Conv, Dim, Dtype, Input, Interpolation, Reduction};
use crate::weights::{Weights, rule};
use crate::{Hardware, Precision, Value, Values, dims};

const PADS_CHANNELS: Pass = Pass::each("channels in fours", spatial::pad_channels);
const READS_AS_NUMBERS: Pass = Pass::each("integers as numbers", types::read_as_numbers);
const PICKS_NEAREST: Pass = Pass::each("nearest by index", resize::nearest_by_gather);
const MULTIPLIES_CUBIC: Pass = Pass::each("cubic by products", resize::cubic_by_products);

/// Convolutions over six channels, two of them skipping places, then the map and its mask in other sizes.
fn graph() -> (Graph, Vec<WeightData>) {
    let mut g = Graph::new();
    let x = g.input(Input::f32("x", dims![BATCH, 6, HEIGHT, WIDTH]));
    let mask = g.input(Input::i64("mask", dims![BATCH, HEIGHT, WIDTH]));
    let w = g.scope("layer");
    let wide = g.conv(&w.scope("wide"), &x, &Conv::new(8, &[3, 3]).stride(&[2, 2]).padding(&[1, 1])).unwrap();
    let point = g.conv(&w.scope("point"), &x, &Conv::new(8, &[1, 1]).stride(&[2, 2])).unwrap();
    let map = g.add(&wide, &point).unwrap();
    let larger = g.resize(&map, [Dim::Fixed(7), Dim::Fixed(5)], Interpolation::Bicubic, false).unwrap();
    let corners = g.resize(&map, [Dim::Fixed(2), Dim::Fixed(9)], Interpolation::Bicubic, true).unwrap();
    let seen = g.cast(&mask, Dtype::F32);
    let seen = g.unsqueeze(&seen, 1).unwrap();
    let sizes = [map.shape()[2].clone(), map.shape()[3].clone()];
    let seen = g.resize(&seen, sizes, Interpolation::Nearest, false).unwrap();
    let row = g.slice_dims(&mask, 1, Dim::Fixed(1), HEIGHT).unwrap();
    let most = g.reduce(Reduction::Max, &row, &[1, 2], false).unwrap();
    g.output("corners", &corners).unwrap();
    for (name, x) in [("map", &map), ("larger", &larger), ("seen", &seen), ("row", &row), ("most", &most)] {
        g.output(name, x).unwrap();
    }
    let parameters = g.weights().iter().map(|weight| (weight.name.clone(), weight.shape.clone()));
    let weights = Weights::Rule(parameters.collect()).locate(g.weights(), &Default::default()).unwrap();
    (g, weights)
}

fn run(target: &Target) -> Values {
    let (graph, weights) = graph();
    let lowered = lower(&graph, &weights, target).unwrap();
    let compiled = engine::compile(Hardware::Cpu, &lowered, &Options::default()).unwrap();
    let x = ArrayD::from_shape_vec(IxDyn(&[2, 6, 6, 8]), rule::generate("x", &[2, 6, 6, 8])).unwrap();
    let mask = (0..96).map(|place| (place * 7) % 13).collect();
    let mask = ArrayD::from_shape_vec(IxDyn(&[2, 6, 8]), mask).unwrap();
    let given = Values::from([("x".to_owned(), Value::F32(x)), ("mask".to_owned(), Value::I64(mask))]);
    compiled.run(&given).unwrap()
}

#[test]
fn added_channels_narrow_reads_picked_places_and_products_change_no_number() {
    if let Err(error) = engine::available(Hardware::Cpu) {
        eprintln!("skipped: {error}");
        return;
    }
    let base = Target::of(Hardware::Cpu, Precision::F32);
    let want = run(&base);
    let lengths = [("batch", 2), ("height", 6), ("width", 8)];
    let dims: BTreeMap<_, _> = lengths.into_iter().map(|(name, n)| (name.to_owned(), n)).collect();
    for target in [
        base.clone().and(PADS_CHANNELS),
        base.clone().and(READS_AS_NUMBERS),
        Target { dims: dims.clone(), ..base.clone().and(PICKS_NEAREST) },
        Target { dims: dims.clone(), ..base.clone().and(MULTIPLIES_CUBIC) },
    ] {
        for report in crate::golden::compare(&run(&target), &want, 2e-6) {
            assert!(report.passed, "{target:?}: {report:?}");
        }
    }
    let half = Target { float: Dtype::F16, ..base };
    for half in [Target { dims, ..half.clone().and(MULTIPLIES_CUBIC) }, half] {
        for report in crate::golden::compare(&run(&half), &want, 1e-2) {
            assert!(report.passed, "{half:?}: {report:?}");
        }
    }
}

#[test]
fn each_form_is_taken() {
    let (graph, weights) = graph();
    let count = |target: &Target, name: &str| {
        let lowered = lower(&graph, &weights, target).unwrap();
        lowered.operators.get(name).copied().unwrap_or_default()
    };
    let base = Target::of(Hardware::Openvino, Precision::F32);
    assert_eq!([count(&base, "Pad"), count(&base, "Resize"), count(&base, "Cast")], [0, 3, 1]);
    // What both convolutions take is padded once, and each one's weight.
    assert_eq!(count(&base.clone().and(PADS_CHANNELS), "Pad"), 3);
    // The mask as numbers serves its range too.
    assert_eq!(count(&base.clone().and(READS_AS_NUMBERS), "Cast"), 4);
    let lengths = [("batch", 2), ("height", 6), ("width", 8)];
    let dims = lengths.into_iter().map(|(name, n)| (name.to_owned(), n)).collect();
    let fixed = Target { dims, ..base.and(PICKS_NEAREST) };
    assert_eq!([count(&fixed, "Resize"), count(&fixed, "Gather")], [2, 2]);
    let products = fixed.and(MULTIPLIES_CUBIC);
    assert_eq!([count(&products, "Resize"), count(&products, "MatMul")], [0, 4]);
}

#[test]
fn tables_of_ids_are_narrowed_for_engines_that_count_in_32_bits() {
    let mut g = Graph::new();
    let ids = g.integer_weight("ids", &[3]).unwrap();
    let one = g.integer(1);
    let next = g.add(&ids, &one).unwrap();
    g.output("next", &next).unwrap();
    let bytes = [5_i64, -1, 1 << 40].iter().flat_map(|id| id.to_le_bytes()).collect();
    let bytes = Bytes::memory(bytes);
    let table = WeightData { dtype: Dtype::I64, shape: vec![3], stored_as: "ids".to_owned(), bytes };
    for (hardware, name, length) in [(Hardware::Cpu, "ids", 24), (Hardware::Webgpu, "ids/Cast", 12)] {
        let lowered = lower(&g, std::slice::from_ref(&table), &Target::of(hardware, Precision::F32)).unwrap();
        let weights = &lowered.model.graph.as_ref().unwrap().initializer;
        let found = weights.iter().find(|weight| weight.name == name).unwrap();
        assert_eq!(found.raw_data.as_ref().map(Vec::len), Some(length), "{hardware:?}");
    }
}
