//! Convolutions of stored weights give what converted ones do, with what they take in.

use half::{bf16, f16};
use ndarray::ArrayD;

use super::super::tests::{Rounding, difference, open, with_stored_weights};
use super::super::{Stay, stored_weights};
use crate::engine::{Compiled, Options};
use crate::graph::dims::BATCH;
use crate::graph::{Activation, Conv, Dim, Dtype, Graph, Input, Reduction};
use crate::lower::Lowered;
use crate::{Value, Values, dims};

const CHANNELS: usize = 64;
const OUT: usize = 256;

/// Two residual layers, of which the second adds one number a channel, a pointwise layer that is read twice, and one whose
/// result is smaller than what is added to it.
fn lowered(stored: Dtype, round: Rounding) -> Lowered {
    let mut g = Graph::new();
    let [height, width] = ["height", "width"].map(Dim::symbol);
    let x = g.input(Input::f32("x", dims![BATCH, CHANNELS, height, width]));
    let conv = Conv::new(OUT, &[3, 3]).padding(&[1, 1]).no_bias();
    let narrow = g.conv(&g.scope("first"), &x, &conv).unwrap();
    let narrow = g.batch_norm(&g.scope("first_norm"), &narrow, 1e-3).unwrap();
    let narrow = g.activation(Activation::Relu, &narrow).unwrap();
    let conv = Conv::new(OUT, &[3, 3]).half_padding();
    let h = g.conv(&g.scope("second"), &narrow, &conv).unwrap();
    let h = g.batch_norm(&g.scope("second_norm"), &h, 1e-5).unwrap();
    let h = g.add(&h, &narrow).unwrap();
    let h = g.activation(Activation::Relu, &h).unwrap();
    let mean = g.reduce(Reduction::Mean, &h, &[2, 3], true).unwrap();
    let pooled = g.conv(&g.scope("pooled"), &mean, &Conv::new(2 * OUT, &[1, 1])).unwrap();
    let wide = g.conv(&g.scope("third"), &h, &Conv::new(2 * OUT, &[1, 1])).unwrap();
    let y = g.add(&pooled, &wide).unwrap();
    let z = g.mul(&wide, &y).unwrap();
    g.output("y", &y).unwrap();
    g.output("z", &z).unwrap();
    with_stored_weights(&g, stored, round)
}

#[test]
fn convolutions_of_stored_weights_give_what_converted_ones_do() {
    let rounds: [(Dtype, Rounding); 3] = [
        (Dtype::F32, |x| x),
        (Dtype::Bf16, |x| bf16::from_f32(x).to_f32()),
        (Dtype::F16, |x| f16::from_f32(x).to_f32()),
    ];
    for (stored, round) in rounds {
        let converted = open(&lowered(Dtype::F32, round), &Options::default());
        let kept = Options { map_weights: Some(true), ..Options::default() };
        let kept = open(&lowered(stored, round), &kept);
        // By windows, and by tiles.
        for shape in [[1, CHANNELS, 7, 7], [2, CHANNELS, 1, 3], [2, CHANNELS, 8, 21]] {
            let numbers =
                (0..shape.iter().product()).map(|i| ((i * 37 % 101) as f32 - 50.0) / 50.0).collect();
            let x = Value::F32(ArrayD::from_shape_vec(shape.to_vec(), numbers).unwrap());
            let inputs: Values = [("x".to_owned(), x)].into();
            let (got, want) = (kept.run(&inputs).unwrap(), converted.run(&inputs).unwrap());
            let off = difference(&got, &want);
            assert!(off < 1e-5, "{stored:?} {shape:?}: {off}");
        }
    }
}

#[test]
fn normalisation_sums_and_activation_are_taken_in() {
    let operators = |stored, stay| -> Vec<String> {
        let model = stored_weights(&lowered(stored, |x| x).model, stay, false).unwrap();
        model.graph.unwrap().node.into_iter().map(|node| node.op_type).collect()
    };
    for (stored, stay, own) in [
        (Dtype::F16, Stay::Narrow, "ConvolutionF16"),
        (Dtype::Bf16, Stay::All, "ConvolutionBf16"),
        (Dtype::F32, Stay::All, "ConvolutionF32"),
    ] {
        let all = operators(stored, stay);
        let count = |wanted: &str| all.iter().filter(|operator| *operator == wanted).count();
        let rest = ["Conv", "BatchNormalization", "Add", "Relu"].map(count);
        assert_eq!((count(own), rest), (4, [0; 4]), "{all:?}");
    }
    // In single precision those of 3 x 3 alone, which are computed by tiles.
    let all = operators(Dtype::F32, Stay::Narrow);
    let count = |wanted: &str| all.iter().filter(|operator| *operator == wanted).count();
    assert_eq!(["ConvolutionF32", "Conv", "BatchNormalization", "Add", "Relu"].map(count), [2, 2, 0, 1, 0]);
    assert!(stored_weights(&lowered(Dtype::F32, |x| x).model, Stay::Linear, false).is_none());
    assert!(stored_weights(&lowered(Dtype::F16, |x| x).model, Stay::Linear, false).is_none());
}
