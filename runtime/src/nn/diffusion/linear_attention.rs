//! Linear attention by ReLU and gated convolutions (`SanaLinearAttnProcessor2_0`, `GLUMBConv`; Xie et al., 2024, arXiv:2410.10629).

use crate::graph::{Activation, Conv, Graph, Reduction, Scope, Tensor};
use crate::{Dtype, Result};

/// What keeps a sum of scores from 0.
const EPS: f32 = 1e-15;

/// The epsilon of norms over channels.
const NORM_EPS: f64 = 1e-5;

/// Attention whose scores are products of ReLU of queries and keys, divided by their sum: q, k and v `[batch, heads, positions, size]`
/// to the same shape. No position is compared with another one: keys and values are summed first. In single precision, as in the
/// reference: half precision has no number as small as its epsilon.
///
/// # Errors
/// When the shapes do not go together.
pub fn relu_linear_attention(g: &mut Graph, qkv: [&Tensor; 3]) -> Result<Tensor> {
    g.in_single(|g| by_sums(g, qkv))
}

fn by_sums(g: &mut Graph, [q, k, v]: [&Tensor; 3]) -> Result<Tensor> {
    let q = g.activation(Activation::Relu, q)?;
    let k = g.activation(Activation::Relu, k)?;
    let across = g.transpose(&k, &[0, 1, 3, 2])?;
    let states = g.matmul(&across, v)?;
    let y = g.matmul(&q, &states)?;
    let sums = g.reduce(Reduction::Sum, &k, &[2], true)?;
    let weights = g.mul(&q, &sums)?;
    let weights = g.reduce(Reduction::Sum, &weights, &[3], true)?;
    let eps = g.scalar(EPS);
    let weights = g.add(&weights, &eps)?;
    g.div(&y, &weights)
}

/// RMS normalisation over the channels of a feature map, with `weight` and `bias` (`RMSNorm` with a bias): x
/// `[batch, channels, rows, columns]` to the same shape.
///
/// # Errors
/// When x has not four axes, or no fixed number of channels.
pub fn channel_rms_norm(g: &mut Graph, w: &Scope, x: &Tensor) -> Result<Tensor> {
    let x = g.transpose(x, &[0, 2, 3, 1])?;
    let x = biased_rms_norm(g, w, &x)?;
    g.transpose(&x, &[0, 3, 1, 2])
}

fn biased_rms_norm(g: &mut Graph, w: &Scope, x: &Tensor) -> Result<Tensor> {
    let x = g.rms_norm(w, x, NORM_EPS)?;
    let width = x.dim(-1).and_then(crate::Dim::fixed).unwrap_or_default();
    let bias = g.weight(&w.name("bias"), &[width])?;
    g.add(&x, &bias)
}

/// Inverted bottleneck of a pointwise, a depthwise and a pointwise convolution, gated by half of its channels (`GLUMBConv`): x
/// `[batch, in, rows, columns]` to `[batch, channels, rows, columns]`, by `hidden` channels twice between them.
///
/// # Errors
/// When x has not four axes, or no fixed number of channels.
pub fn glu_mb_conv(g: &mut Graph, w: &Scope, x: &Tensor, [hidden, channels]: [usize; 2]) -> Result<Tensor> {
    let h = g.conv(&w.scope("conv_inverted"), x, &Conv::new(2 * hidden, &[1, 1]))?;
    let h = g.activation(Activation::Silu, &h)?;
    let depthwise = Conv::new(2 * hidden, &[3, 3]).half_padding().groups(2 * hidden);
    let h = g.conv(&w.scope("conv_depth"), &h, &depthwise)?;
    let parts = g.split(&h, 1, &[hidden; 2])?;
    let gate = g.activation(Activation::Silu, &parts[1])?;
    let h = g.mul(&parts[0], &gate)?;
    g.conv(&w.scope("conv_point"), &h, &Conv::new(channels, &[1, 1]).no_bias())
}

/// Queries, keys and values `[batch, positions, heads * size]` by [`relu_linear_attention`], to the same shape.
///
/// # Errors
/// When the heads do not divide the width.
pub fn linear_attention_of_heads(g: &mut Graph, qkv: [&Tensor; 3], heads: usize) -> Result<Tensor> {
    let mut split = [(); 3].map(|()| qkv[0].clone());
    for (place, x) in split.iter_mut().zip(qkv) {
        let x = crate::nn::split_heads(g, x, heads)?;
        *place = g.transpose(&x, &[0, 2, 1, 3])?;
    }
    let dtype = qkv[0].dtype();
    let y = relu_linear_attention(g, [&split[0], &split[1], &split[2]])?;
    let y = g.transpose(&y, &[0, 2, 1, 3])?;
    let y = crate::nn::merge_heads(g, &y)?;
    Ok(if dtype == Dtype::F32 { y } else { g.cast(&y, dtype) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::expect;

    #[test]
    fn scores_are_products_of_what_is_above_zero() {
        // The query (1, 2) and keys (1, -1) and (0, 1): scores 1 and 2.
        let build = |g: &mut Graph| {
            let q = g.constant(&[1, 1, 1, 2], vec![1.0, 2.0])?;
            let k = g.constant(&[1, 1, 2, 2], vec![1.0, -1.0, 0.0, 1.0])?;
            let v = g.constant(&[1, 1, 2, 2], vec![3.0, 30.0, 6.0, 90.0])?;
            relu_linear_attention(g, [&q, &k, &v])
        };
        expect(&[], build, &[1, 1, 1, 2], &[5.0, 70.0]);
    }

    #[test]
    fn heads_attend_apart() {
        let build = |g: &mut Graph| {
            let q = g.constant(&[1, 2, 2], vec![1.0; 4])?;
            let v = g.constant(&[1, 2, 2], vec![1.0, 10.0, 3.0, 30.0])?;
            linear_attention_of_heads(g, [&q, &q, &v], 2)
        };
        expect(&[], build, &[1, 2, 2], &[2.0, 20.0, 2.0, 20.0]);
    }

    #[test]
    fn half_of_the_channels_is_the_gate() {
        let build = |g: &mut Graph| {
            let x = g.constant(&[1, 1, 1, 1], vec![1.0])?;
            glu_mb_conv(g, &Scope::root().scope("m"), &x, [1, 1])
        };
        let middle =
            |value: f32| (0..9).map(|index| if index == 4 { value } else { 0.0 }).collect::<Vec<_>>();
        let depth = [middle(2.0), middle(0.0)].concat();
        let weights: [(&str, &[f32]); 5] = [
            ("m.conv_inverted.weight", &[100.0, 0.0]),
            ("m.conv_inverted.bias", &[0.0, 0.0]),
            ("m.conv_depth.weight", &depth),
            ("m.conv_depth.bias", &[0.0, 100.0]),
            ("m.conv_point.weight", &[0.5]),
        ];
        // SiLU(100) is 100: twice that, times the gate of 100, halved.
        expect(&weights, build, &[1, 1, 1, 1], &[10_000.0]);
    }

    #[test]
    fn channels_are_normed_at_each_position() {
        let build = |g: &mut Graph| {
            let x = g.constant(&[1, 2, 1, 2], vec![1.0, 6.0, 7.0, 8.0])?;
            channel_rms_norm(g, &Scope::root().scope("n"), &x)
        };
        // Root mean squares 5 and √50.
        let weights: [(&str, &[f32]); 2] = [("n.weight", &[1.0, 10.0]), ("n.bias", &[0.0, 1.0])];
        let want = [0.2, 0.848_528_1, 15.0, 12.313_708];
        let near = crate::nn::testing::evaluate(&weights, build).map(|(_, y)| y).unwrap_or_default();
        assert!(near.iter().zip(want).all(|(got, want): (&f32, f32)| (got - want).abs() < 1e-4), "{near:?}");
    }
}
