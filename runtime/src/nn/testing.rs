//! Evaluates small graphs on ONNX Runtime's CPU, for tests that check the numbers of blocks by hand.

use crate::engine::{self, Options};
use crate::graph::{Graph, Tensor};
use crate::lower::{Target, lower};
use crate::weights::{Bytes, WeightData};
use crate::{Dtype, Hardware, Precision, Result, Values};

/// What `build` makes of constants and of these weights, as f32 with its shape; nothing where ONNX Runtime is absent.
///
/// Every weight of the graph must be given with as many numbers as its shape has, and none else.
#[track_caller]
pub(crate) fn evaluate(
    weights: &[(&str, &[f32])],
    build: impl FnOnce(&mut Graph) -> Result<Tensor>,
) -> Option<(Vec<usize>, Vec<f32>)> {
    let mut g = Graph::new();
    let y = build(&mut g).unwrap_or_else(|error| panic!("{error}"));
    let y = g.cast(&y, Dtype::F32);
    g.output("y", &y).unwrap();
    let mut names: Vec<_> = g.weights().iter().map(|weight| weight.name.as_str()).collect();
    let mut given: Vec<_> = weights.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    given.sort_unstable();
    assert_eq!(names, given, "the weights of the graph and those given");
    let located = g.weights().iter().map(|weight| {
        let (_, values) = weights.iter().find(|(name, _)| *name == weight.name).unwrap();
        let count: usize = weight.shape.iter().product();
        assert_eq!(values.len(), count, "{} is {:?}", weight.name, weight.shape);
        let (dtype, bytes) = match weight.integers {
            true => (Dtype::I64, values.iter().flat_map(|value| (*value as i64).to_le_bytes()).collect()),
            false => (Dtype::F32, values.iter().flat_map(|value| value.to_le_bytes()).collect()),
        };
        WeightData {
            dtype,
            shape: weight.shape.clone(),
            stored_as: weight.name.clone(),
            bytes: Bytes::memory(bytes),
        }
    });
    let located: Vec<_> = located.collect();
    if let Err(error) = engine::available(Hardware::Cpu) {
        eprintln!("skipped: {error}");
        return None;
    }
    let lowered = lower(&g, &located, &Target::of(Hardware::Cpu, Precision::F32)).unwrap();
    let compiled = engine::compile(Hardware::Cpu, &lowered, &Options::default()).unwrap();
    let outputs = compiled.run(&Values::new()).unwrap();
    let y = outputs["y"].f32("y").unwrap();
    Some((y.shape().to_vec(), y.iter().copied().collect()))
}

/// Asserts that [`evaluate`] gives these numbers, to a relative 1e-5.
#[track_caller]
pub(crate) fn expect(
    weights: &[(&str, &[f32])],
    build: impl FnOnce(&mut Graph) -> Result<Tensor>,
    shape: &[usize],
    want: &[f32],
) {
    let Some((got_shape, got)) = evaluate(weights, build) else { return };
    assert_eq!(got_shape, shape);
    assert_eq!(got.len(), want.len());
    let near = |(got, want): (&f32, &f32)| got == want || (got - want).abs() <= 1e-5 * want.abs().max(1.0);
    assert!(got.iter().zip(want).all(near), "got {got:?}, want {want:?}");
}

/// The message of the error that `build` ends with.
#[track_caller]
pub(crate) fn refusal<T>(build: impl FnOnce(&mut Graph) -> Result<T>) -> String {
    match build(&mut Graph::new()) {
        Ok(_) => panic!("it was built"),
        Err(error) => error.to_string(),
    }
}
