//! Strided convolutions over a waveform, and which of the frames that they give are no padding (wav2vec 2.0).

use crate::Result;
use crate::graph::{Activation, Binary, Conv, Dim, Graph, Reduction, Scope, Tensor, show};

/// The feature encoder (`Wav2Vec2FeatureEncoder`): convolutions, each with an activation function; group norm after the first
/// (`feat_extract_norm` `group`), or layer norm after each (`layer`).
#[derive(Clone, Copy, Debug)]
pub struct FeatureEncoder<'a> {
    /// The channels that each convolution gives.
    pub channels: &'a [usize],
    /// Their kernels, in samples or frames.
    pub kernels: &'a [usize],
    /// Their strides.
    pub strides: &'a [usize],
    /// Whether they have biases.
    pub bias: bool,
    /// Whether there is group norm after the first in place of layer norm after each.
    pub group_norm: bool,
    /// The activation function.
    pub activation: Activation,
}

impl FeatureEncoder<'_> {
    /// A waveform `[batch, samples]` to frames `[batch, frames, channels]`, by weights at `w`.
    ///
    /// # Errors
    /// When the waveform has not two axes, or is shorter than a kernel.
    pub fn build(&self, g: &mut Graph, w: &Scope, x: &Tensor) -> Result<Tensor> {
        if x.rank() != 2 {
            g.enter(w);
            return Err(g.error("FeatureEncoder", format!("{} is not [batch, samples]", show(x.shape()))));
        }
        let mut x = g.unsqueeze(x, 1)?;
        let layers = self.channels.iter().zip(self.kernels).zip(self.strides);
        for (index, ((&channels, &kernel), &stride)) in layers.enumerate() {
            let w = w.scope("conv_layers").index(index);
            let conv = Conv::new(channels, &[kernel]).stride(&[stride]);
            let conv = if self.bias { conv } else { conv.no_bias() };
            x = g.conv(&w.scope("conv"), &x, &conv)?;
            if !self.group_norm {
                let h = g.transpose(&x, &[0, 2, 1])?;
                let h = g.layer_norm(&w.scope("layer_norm"), &h, 1e-5)?;
                x = g.transpose(&h, &[0, 2, 1])?;
            } else if index == 0 {
                x = g.group_norm(&w.scope("layer_norm"), &x, channels, 1e-5)?;
            }
            x = g.activation(self.activation, &x)?;
        }
        g.transpose(&x, &[0, 2, 1])
    }

    /// The samples that a frame sees.
    pub fn receptive_field(&self) -> ReceptiveField {
        let layers = self.kernels.iter().zip(self.strides);
        layers.fold(ReceptiveField { stride: 1, kernel: 1 }, |field, (&kernel, &stride)| {
            field.then(kernel, stride)
        })
    }
}

/// The samples that a frame sees: `kernel` of them, from `stride` times its index on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceptiveField {
    /// Samples from one frame to the next.
    pub stride: usize,
    /// Samples of a frame.
    pub kernel: usize,
}

impl ReceptiveField {
    /// That of one convolution more, over the frames.
    #[must_use]
    pub fn then(self, kernel: usize, stride: usize) -> Self {
        Self { stride: self.stride * stride, kernel: self.kernel + self.stride * kernel.saturating_sub(1) }
    }

    /// Frames without padding (`_get_feature_vector_attention_mask`): bool `[batch, frames]`, of the samples' attention mask
    /// `[batch, samples]`, which is 0 at the end alone.
    ///
    /// # Errors
    /// When the mask has not two axes.
    pub fn frame_mask(self, g: &mut Graph, attention_mask: &Tensor, frames: &Dim) -> Result<Tensor> {
        if attention_mask.rank() != 2 {
            let problem = format!("{} is not [batch, samples]", show(attention_mask.shape()));
            return Err(g.error("frame_mask", problem));
        }
        let samples = g.reduce(Reduction::Sum, attention_mask, &[1], true)?;
        let (stride, kernel) = (g.integer(self.stride as i64), g.integer(self.kernel as i64));
        let positions = g.arange(frames);
        let positions = g.reshape(&positions, crate::dims![1, frames])?;
        let starts = g.mul(&positions, &stride)?;
        let ends = g.add(&starts, &kernel)?;
        g.binary(Binary::LessOrEqual, &ends, &samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::{expect, refusal};

    const ENCODER: FeatureEncoder<'_> = FeatureEncoder {
        channels: &[2, 1],
        kernels: &[2, 2],
        strides: &[2, 1],
        bias: true,
        group_norm: true,
        activation: Activation::Linear,
    };

    fn build(g: &mut Graph, encoder: &FeatureEncoder<'_>) -> Result<Tensor> {
        let x = g.constant(&[1, 6], vec![1.0, 2.0, 3.0, 4.0, 5.0, 9.0])?;
        encoder.build(g, &g.scope("feature_extractor"), &x)
    }

    /// Pairs' sums 3, 7, 14 and differences -1, -1, -4.
    const SUM_AND_DIFFERENCE: [f32; 4] = [1.0, 1.0, 1.0, -1.0];

    #[test]
    fn group_norm_is_over_the_frames_of_a_channel_of_the_first() {
        let weights: [(&str, &[f32]); 6] = [
            ("feature_extractor.conv_layers.0.conv.weight", &SUM_AND_DIFFERENCE),
            ("feature_extractor.conv_layers.0.conv.bias", &[0.0, 7.0]),
            ("feature_extractor.conv_layers.0.layer_norm.weight", &[1.0, 2.0]),
            ("feature_extractor.conv_layers.0.layer_norm.bias", &[0.0, 1.0]),
            ("feature_extractor.conv_layers.1.conv.weight", &[1.0, 0.0, 0.0, 1.0]),
            ("feature_extractor.conv_layers.1.conv.bias", &[10.0]),
        ];
        // The first channel of one frame and the second of the next: (3, 7, 14) less 8 by the deviation 4.546…, and twice
        // (6, 6, 3) less 5 by 1.414…, plus 1.
        let (first, second) = ((62.0_f32 / 3.0).sqrt(), 2.0_f32.sqrt());
        let want = [-5.0 / first + 2.0 / second + 11.0, -1.0 / first - 4.0 / second + 11.0];
        expect(&weights, |g| build(g, &ENCODER), &[1, 2, 1], &want);
    }

    #[test]
    fn layer_norm_is_over_the_channels_of_a_frame() {
        let encoder = FeatureEncoder {
            channels: &[2],
            bias: false,
            group_norm: false,
            activation: Activation::Relu,
            ..ENCODER
        };
        let weights: [(&str, &[f32]); 3] = [
            ("feature_extractor.conv_layers.0.conv.weight", &SUM_AND_DIFFERENCE),
            ("feature_extractor.conv_layers.0.layer_norm.weight", &[1.0, 3.0]),
            ("feature_extractor.conv_layers.0.layer_norm.bias", &[0.5, 4.0]),
        ];
        // Of two channels the larger is 1 and the other -1.
        expect(&weights, |g| build(g, &encoder), &[1, 3, 2], &[1.5, 1.0, 1.5, 1.0, 1.5, 1.0]);
    }

    #[test]
    fn frames_that_reach_into_padding_are_masked() {
        let field = ENCODER.receptive_field();
        assert_eq!(field, ReceptiveField { stride: 2, kernel: 4 });
        assert_eq!(field.then(3, 2), ReceptiveField { stride: 4, kernel: 8 });
        let build = |g: &mut Graph| {
            let mask = g.integers(&[2, 8], [[1; 8], [1, 1, 1, 1, 1, 0, 0, 0]].concat())?;
            field.frame_mask(g, &mask, &Dim::Fixed(3))
        };
        expect(&[], build, &[2, 3], &[1.0, 1.0, 1.0, 1.0, 0.0, 0.0]);
    }

    #[test]
    fn a_waveform_has_two_axes() {
        let problem = refusal(|g| {
            let x = g.constant(&[4], vec![0.0; 4])?;
            ENCODER.build(g, &g.scope("feature_extractor"), &x)
        });
        insta::assert_snapshot!(problem, @"FeatureEncoder in feature_extractor: [4] is not [batch, samples]");
        let problem = refusal(|g| {
            let mask = g.integers(&[4], vec![1; 4])?;
            ENCODER.receptive_field().frame_mask(g, &mask, &Dim::Fixed(2))
        });
        insta::assert_snapshot!(problem, @"frame_mask in the root: [4] is not [batch, samples]");
    }
}
