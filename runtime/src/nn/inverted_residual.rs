//! Inverted residuals of mobile networks (MobileNetV2, arXiv:1801.04381), and numbers of channels that divide well.

use super::{Activation, conv_bn, conv_bn_act};
use crate::Result;
use crate::graph::{Conv, Graph, Scope, Tensor};

/// The epsilon of batch normalisation.
const EPSILON: f64 = 1e-5;

/// The nearest multiple of `divisor`, at least `divisor` itself, that is at most a tenth less than `value` (`make_divisible`).
pub fn make_divisible(value: f64, divisor: usize) -> usize {
    let divisor = divisor.max(1);
    let near = ((value + divisor as f64 / 2.0) as usize / divisor * divisor).max(divisor);
    if (near as f64) < 0.9 * value { near + divisor } else { near }
}

/// Inverted residual (`MobileViTInvertedResidual`): expansion, depthwise convolution and projection, each with batch
/// normalisation; x is added where the shape stays.
#[derive(Clone, Copy, Debug)]
pub struct InvertedResidual {
    /// Input channels.
    pub from: usize,
    /// Output channels.
    pub out: usize,
    /// The stride of the depthwise convolution.
    pub stride: usize,
    /// Its dilation.
    pub dilation: usize,
    /// The expansion ratio of the channels between.
    pub expand_ratio: f64,
    /// The activation function after expansion and depthwise convolution.
    pub act: Activation,
}

impl InvertedResidual {
    /// x `[batch, from, rows, columns]` to `[batch, out, …]`, with weights at `expand_1x1`, `conv_3x3` and `reduce_1x1` of `w`.
    ///
    /// # Errors
    /// When x has not these axes.
    pub fn forward(&self, g: &mut Graph, w: &Scope, x: &Tensor) -> Result<Tensor> {
        let &Self { from, out, stride, dilation, expand_ratio, act } = self;
        let wide = make_divisible((from as f64 * expand_ratio).round_ties_even(), 8);
        let pointwise = |out: usize| Conv::new(out, &[1, 1]).no_bias();
        let h = conv_bn_act(g, &w.scope("expand_1x1"), x, &pointwise(wide), EPSILON, act)?;
        let depthwise = Conv::new(wide, &[3, 3]).stride(&[stride; 2]).dilation(&[dilation; 2]).groups(wide);
        let depthwise = depthwise.half_padding().no_bias();
        let h = conv_bn_act(g, &w.scope("conv_3x3"), &h, &depthwise, EPSILON, act)?;
        let h = conv_bn(g, &w.scope("reduce_1x1"), &h, &pointwise(out), EPSILON)?;
        if stride == 1 && from == out { g.add(x, &h) } else { Ok(h) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::expect;
    use super::*;

    #[test]
    fn channels_lose_at_most_a_tenth() {
        assert_eq!([1.0, 11.9, 12.0, 21.0, 22.4].map(|value| make_divisible(value, 8)), [8, 16, 16, 24, 24]);
        assert_eq!(make_divisible(70.0, 16), 64);
        assert_eq!(make_divisible(72.0, 16), 80);
    }

    #[test]
    fn what_keeps_its_shape_is_a_residual() {
        let norm = |name: &str, channels: usize| {
            let at = |weight: &str| format!("w.{name}.normalization.{weight}");
            let ones = vec![1.0 - EPSILON as f32; channels];
            [
                (at("weight"), vec![1.0; channels]),
                (at("bias"), vec![0.0; channels]),
                (at("running_mean"), vec![0.0; channels]),
                (at("running_var"), ones),
            ]
        };
        // Eight channels expand one; the depthwise convolutions keep the middle; the projection sums them.
        let mut middle = vec![0.0; 8 * 9];
        middle.iter_mut().skip(4).step_by(9).for_each(|weight| *weight = 1.0);
        let mut weights = vec![
            ("w.expand_1x1.convolution.weight".to_owned(), vec![1.0; 8]),
            ("w.conv_3x3.convolution.weight".to_owned(), middle),
            ("w.reduce_1x1.convolution.weight".to_owned(), vec![1.0; 8]),
        ];
        weights.extend(
            norm("expand_1x1", 8).into_iter().chain(norm("conv_3x3", 8)).chain(norm("reduce_1x1", 1)),
        );
        let weights: Vec<_> =
            weights.iter().map(|(name, values)| (name.as_str(), values.as_slice())).collect();
        let block = |stride: usize| {
            move |g: &mut Graph| {
                let x = g.constant(&[1, 1, 2, 2], vec![1.0, 2.0, -3.0, 4.0])?;
                let block = InvertedResidual {
                    from: 1,
                    out: 1,
                    stride,
                    dilation: 1,
                    expand_ratio: 8.0,
                    act: Activation::Relu,
                };
                block.forward(g, &Scope::root().scope("w"), &x)
            }
        };
        expect(&weights, block(1), &[1, 1, 2, 2], &[9.0, 18.0, -3.0, 36.0]);
        expect(&weights, block(2), &[1, 1, 1, 1], &[8.0]);
    }
}
