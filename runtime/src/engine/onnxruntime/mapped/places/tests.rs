//! Experts that are found by their places give what those do that an engine is told of one by one.

use half::bf16;
use ndarray::ArrayD;

use super::super::tests::open;
use super::super::{Stay, stored_weights};
use crate::engine::{Compiled, Options};
use crate::graph::dims::BATCH;
use crate::graph::{Dtype, Graph, Input};
use crate::lower::{Lowered, Target, lower};
use crate::weights::{Bytes, WeightData, rule};
use crate::{Hardware, Precision, Value, Values, dims};

const EXPERTS: usize = 5;
const WIDTH: usize = 32;
const OUT: usize = 48;

/// Two layers of experts of the same x and one behind them, whose weights are in two files, in another order than that of the experts.
fn lowered(stored: Dtype, folder: &std::path::Path) -> Lowered {
    let mut g = Graph::new();
    let x = g.input(Input::f32("x", dims![BATCH, 1, WIDTH]));
    let indices = g.input(Input::i64("indices", dims![BATCH, 2]));
    let weights = |g: &mut Graph, of: &str, shape: [usize; 2]| {
        (0..EXPERTS).map(|index| g.weight(&format!("{of}.{index}"), &shape).unwrap()).collect::<Vec<_>>()
    };
    let [gate, up, down] = ["gate", "up", "down"].map(|of| weights(&mut g, of, [OUT, WIDTH]));
    let [gate, up] = [gate, up].map(|weights| g.expert_linear(&x, &indices, &weights, false).unwrap());
    let h = g.mul(&gate, &up).unwrap();
    let down = g.expert_linear(&h, &indices, &down, true).unwrap();
    g.output("y", &down).unwrap();
    let mut files = [vec![0_u8; 8], vec![0_u8; 16]];
    let mut located: Vec<Option<WeightData>> = vec![None; g.weights().len()];
    for (index, weight) in g.weights().iter().enumerate().rev() {
        let (file, values) = (index % 2, rule::generate(&weight.name, &weight.shape));
        let bytes: Vec<u8> = match stored {
            Dtype::Bf16 => values.iter().flat_map(|x| bf16::from_f32(*x).to_le_bytes()).collect(),
            _ => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
        };
        let (offset, length) = (files[file].len() as u64, bytes.len() as u64);
        files[file].extend(bytes);
        located[index] = Some(WeightData {
            dtype: stored,
            shape: weight.shape.clone(),
            stored_as: weight.name.clone(),
            bytes: Bytes::File { path: folder.join(format!("{file}.bin")), offset, length },
        });
    }
    for (index, bytes) in files.iter().enumerate() {
        std::fs::write(folder.join(format!("{index}.bin")), bytes).unwrap();
    }
    let located: Vec<WeightData> = located.into_iter().flatten().collect();
    lower(&g, &located, &Target::of(Hardware::Cpu, Precision::F32)).unwrap()
}

fn inputs(rows: usize) -> Values {
    let x = rule::generate("x", &[rows, 1, WIDTH]);
    let x = ArrayD::from_shape_vec(vec![rows, 1, WIDTH], x).unwrap();
    let indices = (0..2 * rows).map(|i| (i * 3 % EXPERTS) as i64).collect();
    let indices = ArrayD::from_shape_vec(vec![rows, 2], indices).unwrap();
    [("x".to_owned(), Value::F32(x)), ("indices".to_owned(), Value::I64(indices))].into()
}

#[test]
fn experts_are_found_by_their_places() {
    for stored in [Dtype::F32, Dtype::Bf16] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let one_by_one = lowered(stored, &folder);
        let model = stored_weights(&one_by_one.model, Stay::All, false).unwrap();
        let graph = model.graph.clone().unwrap();
        let operands: Vec<usize> = graph.node.iter().map(|node| node.input.len()).collect();
        assert_eq!((operands, graph.initializer.len()), (vec![4, 2, 4], 2), "x, indices and two files");
        assert_eq!(graph.node[0].output.len(), 2, "gates and what they are factors of are one operator's");
        let placed = open(&one_by_one, &Options { map_weights: Some(true), ..Options::default() });
        // The same operator with all weights among its operands.
        let (environment, _) = super::super::super::environment(Hardware::Cpu).unwrap();
        let provider = super::super::super::provider::Provider::of(environment, Hardware::Cpu).unwrap();
        let told =
            super::super::super::session::create(environment, &provider, &one_by_one, &Options::default());
        let mut told = told.unwrap().0;
        for rows in [1, 2, 9] {
            let inputs = inputs(rows);
            let (Value::F32(x), Value::I64(indices)) = (&inputs["x"], &inputs["indices"]) else { panic!() };
            let x = ort::value::TensorRef::from_array_view(x).unwrap();
            let indices = ort::value::TensorRef::from_array_view(indices).unwrap();
            let want = told.run(ort::inputs!["x" => x, "indices" => indices]).unwrap();
            let want = want["y"].try_extract_array::<f32>().unwrap().to_owned();
            let Value::F32(got) = &placed.run(&inputs).unwrap()["y"] else { panic!() };
            assert!(want.iter().any(|x| x.abs() > 1e-3), "all is nothing");
            assert_eq!(*got, want, "{stored:?} {rows}");
        }
    }
}

#[test]
fn experts_in_memory_stay() {
    let mut memory = crate::onnx::Graph::default();
    assert!(!super::experts_by_place(&mut memory));
}
