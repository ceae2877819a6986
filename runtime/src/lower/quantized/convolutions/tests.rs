//! Convolutions in 8 bits give what their rounded weights give of rounded inputs, and near to what they were rounded from.

use std::sync::Arc;

use ndarray::ArrayD;

use crate::engine::{self, Options};
use crate::graph::dims::BATCH;
use crate::graph::{Activation, Conv, Dim, Graph, Input};
use crate::lower::{Kernels, Lowered, Readers, Target, lower};
use crate::quantization::quantize_by_row;
use crate::weights::{Bytes, WeightData, Weights};
use crate::{Hardware, Precision, Value, Values, dims};

const CHANNELS: usize = 32;

/// A convolution over strides with batch normalisation, one in groups with what it is added to, a pointwise one with its
/// activation, and one of each channel alone.
fn graph() -> Graph {
    let mut g = Graph::new();
    let [height, width] = ["height", "width"].map(Dim::symbol);
    let x = g.input(Input::f32("x", dims![BATCH, CHANNELS, height, width]));
    let conv = Conv::new(48, &[3, 3]).stride(&[2, 2]).padding(&[1, 1]);
    let h = g.conv(&g.scope("first"), &x, &conv).unwrap();
    let h = g.batch_norm(&g.scope("norm"), &h, 1e-3).unwrap();
    let h = g.activation(Activation::Relu, &h).unwrap();
    let conv = Conv::new(48, &[3, 3]).half_padding().groups(3).no_bias();
    let y = g.conv(&g.scope("second"), &h, &conv).unwrap();
    let y = g.add(&y, &h).unwrap();
    let y = g.conv(&g.scope("third"), &y, &Conv::new(20, &[1, 1])).unwrap();
    let y = g.activation(Activation::Silu, &y).unwrap();
    let y = g.conv(&g.scope("alone"), &y, &Conv::new(20, &[3, 3]).half_padding().groups(20)).unwrap();
    g.output("y", &y).unwrap();
    g
}

fn weights(g: &Graph, quantized: bool) -> Vec<WeightData> {
    let parameters = g.weights().iter().map(|weight| (weight.name.clone(), weight.shape.clone()));
    let mut weights = Weights::Rule(parameters.collect()).locate(g.weights(), &Default::default()).unwrap();
    for (weight, readers) in weights.iter_mut().zip(Readers::of(g)) {
        if quantized && readers.convolution.is_some() {
            weight.bytes = Bytes::Quantized(Arc::new(quantize_by_row(weight).unwrap()));
        }
    }
    weights
}

fn run(quantized: bool, kernels: impl FnOnce(Kernels) -> Kernels, options: &Options) -> (Lowered, Vec<f32>) {
    let g = graph();
    let target = Target::of(Hardware::Cpu, Precision::F32);
    let own = Kernels { convolutions: true, ..target.kernels };
    let lowered = lower(&g, &weights(&g, quantized), &Target { kernels: kernels(own), ..target }).unwrap();
    let numbers = (0..2 * CHANNELS * 63).map(|i| ((i * 37 % 101) as f32 - 30.0) / 50.0).collect();
    let x = Value::F32(ArrayD::from_shape_vec(vec![2, CHANNELS, 9, 7], numbers).unwrap());
    let compiled = engine::compile(Hardware::Cpu, &lowered, options).unwrap();
    let outputs = compiled.run(&Values::from([("x".to_owned(), x)])).unwrap();
    let Value::F32(y) = &outputs["y"] else { panic!() };
    (lowered, y.iter().copied().collect())
}

/// The size of the difference over that of what is wanted.
fn off(got: &[f32], want: &[f32]) -> f64 {
    let size =
        |numbers: &mut dyn Iterator<Item = f32>| numbers.map(|x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    assert_eq!(got.len(), want.len());
    size(&mut got.iter().zip(want).map(|(a, b)| a - b)) / size(&mut want.iter().copied())
}

#[test]
fn kernels_give_what_codes_stand_for() {
    let plain = Options { threads: Some(2), ..Options::default() };
    // With what follows taken in, also where the build is not optimized.
    let fused = Options { map_weights: Some(true), ..plain.clone() };
    let (_, exact) = run(false, |kernels| kernels, &plain);
    let (values, want) = run(true, Kernels::by_values, &plain);
    assert!(!operators(&values).contains(&"ConvolutionQuantized".to_owned()));
    assert!(off(&want, &exact) < 0.02, "{}", off(&want, &exact));
    for options in [plain, fused] {
        let (lowered, got) = run(true, |kernels| kernels, &options);
        let named = |name: &str| operators(&lowered).iter().filter(|operator| *operator == name).count();
        assert_eq!((named("ConvolutionQuantized"), named("Conv")), (3, 1));
        // Nothing but what lies between two steps is rounded otherwise.
        assert!(off(&got, &want) < 2e-3, "{}", off(&got, &want));
    }
}

#[test]
fn other_backends_get_values() {
    let (lowered, got) = run(true, |_| Kernels::of(Hardware::Openvino), &Options::default());
    let (_, exact) = run(false, |kernels| kernels, &Options::default());
    assert!(!operators(&lowered).contains(&"ConvolutionQuantized".to_owned()));
    assert!(off(&got, &exact) < 0.02);
}

#[test]
fn weights_take_a_quarter_of_the_memory() {
    let bytes = |lowered: &Lowered| -> i64 {
        let lengths = lowered.model.graph.iter().flat_map(|graph| &graph.initializer).map(|weight| {
            let inline = weight.raw_data.as_ref().map_or(0, Vec::len) as i64;
            let entry = weight.external_data.iter().find(|entry| entry.key == "length");
            inline + entry.map_or(0, |entry| entry.value.parse::<i64>().unwrap())
        });
        lengths.sum()
    };
    let options = Options::default();
    let (narrow, wide) =
        (run(true, |kernels| kernels, &options).0, run(false, |kernels| kernels, &options).0);
    // Depths of 288, 144 and 48 are filled up to 320, 192 and 64, channels of 20 to 32, and each has a scale and a sum.
    let codes = 48 * 320 + 48 * 192 + 32 * 64;
    let saved = 4 * (48 * 288 + 48 * 144 + 20 * 48) - (codes + 8 * (48 + 48 + 20));
    assert_eq!(bytes(&wide) - bytes(&narrow), saved);
}

fn operators(lowered: &Lowered) -> Vec<String> {
    let nodes = lowered.model.graph.iter().flat_map(|graph| &graph.node);
    nodes.map(|node| node.op_type.clone()).collect()
}

#[test]
fn only_convolutions_of_many_channels_are_quantized() {
    let g = graph();
    let named: Vec<_> = g.weights().iter().zip(Readers::of(&g)).collect();
    let groups = |name: &str| named.iter().find(|(weight, _)| weight.name == name).unwrap().1.convolution;
    let of = ["first.weight", "second.weight", "third.weight", "alone.weight"].map(groups);
    assert_eq!(of, [Some(1), Some(3), Some(1), None]);
}
