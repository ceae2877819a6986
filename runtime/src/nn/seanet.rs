//! SEANet's convolutional encoder and decoder of waveforms, as neural audio codecs have them.

use super::{Activation, Lstm, pad_edges, weight_norm_by_channel};
use crate::Result;
use crate::graph::{Conv, Dim, Graph, Scope, Tensor};

/// What a convolution sees beyond the ends of a waveform (`pad_mode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgePadding {
    /// Zeros.
    Constant,
    /// The waveform mirrored at its ends.
    Reflect,
    /// The first and the last sample.
    Replicate,
}

/// How convolutions are normalised (`norm_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeanetNorm {
    /// Not at all.
    None,
    /// Weights by weight normalisation.
    Weight,
    /// Results by group normalisation of all channels and positions (`time_group_norm`).
    TimeGroup,
}

/// A convolution over time that covers all samples (`EncodecConv1d`, `MimiConv1d`).
#[derive(Clone, Copy, Debug)]
pub struct SeanetConv {
    /// Whether it sees nothing behind a position.
    pub causal: bool,
    /// What it sees beyond the ends.
    pub padding: EdgePadding,
    /// How it is normalised.
    pub norm: SeanetNorm,
    /// Which share of what a causal transposed convolution gives too much is cut off behind.
    pub trim_right_ratio: f64,
}

impl SeanetConv {
    /// x `[batch, channels, samples]` convolved by `conv` at `w`, with the norm at `norm`: to `[batch, out, ⌈samples / stride⌉]`.
    ///
    /// # Errors
    /// When the convolution does not fit x.
    pub fn forward(&self, g: &mut Graph, w: &Scope, x: &Tensor, it: SeanetKernel) -> Result<Tensor> {
        let SeanetKernel { out, kernel, stride, dilation, groups, bias } = it;
        let total = ((kernel - 1) * dilation + 1).saturating_sub(stride);
        let (left, right) = if self.causal { (total, 0) } else { (total - total / 2, total / 2) };
        let length = x.shape()[2].clone();
        // So many that the last window is whole.
        let lacks = match stride {
            1 => Dim::Fixed(0),
            _ => length.ceil_div(stride) * stride.into() - length,
        };
        let x = pad_edges(g, x, left, lacks + right.into(), self.padding)?;
        let conv = Conv::new(out, &[kernel]).stride(&[stride]).dilation(&[dilation]).groups(groups);
        let conv = if bias { conv } else { conv.no_bias() };
        let scope = w.scope("conv");
        match self.norm {
            SeanetNorm::None => g.conv(&scope, &x, &conv),
            SeanetNorm::Weight => {
                g.enter(&scope);
                let channels = x.dim(1).and_then(Dim::fixed).unwrap_or_default();
                let weight = weight_norm_by_channel(g, &scope, &[out, channels / groups, kernel])?;
                let bias = bias.then(|| g.weight(&scope.name("bias"), &[out])).transpose()?;
                g.conv_with(&x, &weight, bias.as_ref(), &conv)
            }
            SeanetNorm::TimeGroup => {
                let x = g.conv(&scope, &x, &conv)?;
                g.group_norm(&w.scope("norm"), &x, 1, 1e-5)
            }
        }
    }

    /// The transposed convolution by `conv` at `w`, less what it gives beyond the ends (`EncodecConvTranspose1d`, `MimiConvTranspose1d`):
    /// x `[batch, channels, samples]` to `[batch, out, samples · stride]`.
    ///
    /// # Errors
    /// When the convolution does not fit x, or one that is not causal is cut off otherwise than on both sides.
    pub fn transposed(&self, g: &mut Graph, w: &Scope, x: &Tensor, it: SeanetKernel) -> Result<Tensor> {
        let SeanetKernel { out, kernel, stride, groups, bias, .. } = it;
        if !self.causal && self.trim_right_ratio != 1.0 {
            g.enter(w);
            return Err(g.error("Seanet", "trim_right_ratio: must be 1 where use_causal_conv is false"));
        }
        let total = kernel.saturating_sub(stride);
        let right = match self.causal {
            true => ((total as f64 * self.trim_right_ratio).ceil() as usize).min(total),
            false => total / 2,
        };
        let conv = Conv::new(out, &[kernel]).stride(&[stride]).groups(groups);
        let conv = if bias { conv } else { conv.no_bias() };
        let cut = conv.clone().padding_around(&[(total - right, right)]);
        let scope = w.scope("conv");
        match self.norm {
            SeanetNorm::None => g.conv_transpose(&scope, x, &cut),
            SeanetNorm::Weight => {
                g.enter(&scope);
                let channels = x.dim(1).and_then(Dim::fixed).unwrap_or_default();
                let weight = weight_norm_by_channel(g, &scope, &[channels, out / groups, kernel])?;
                let bias = bias.then(|| g.weight(&scope.name("bias"), &[out])).transpose()?;
                g.conv_transpose_with(x, &weight, bias.as_ref(), &cut)
            }
            // The norm is of what is cut off too.
            SeanetNorm::TimeGroup => {
                let x = g.conv_transpose(&scope, x, &conv)?;
                let x = g.group_norm(&w.scope("norm"), &x, 1, 1e-5)?;
                let end = x.shape()[2].clone() - right.into();
                g.slice_dims(&x, 2, Dim::Fixed(total - right), end)
            }
        }
    }
}

/// The shape of a [`SeanetConv`].
#[derive(Clone, Copy, Debug)]
pub struct SeanetKernel {
    /// Its channels.
    pub out: usize,
    /// Its length.
    pub kernel: usize,
    /// From one window to the next.
    pub stride: usize,
    /// From one element of a window to the next.
    pub dilation: usize,
    /// Independent groups of channels.
    pub groups: usize,
    /// Whether it has a bias.
    pub bias: bool,
}

impl SeanetKernel {
    /// With a bias, windows next to each other sample by sample.
    pub fn new(out: usize, kernel: usize) -> Self {
        Self { out, kernel, stride: 1, dilation: 1, groups: 1, bias: true }
    }

    /// From one window to the next.
    #[must_use]
    pub fn stride(self, stride: usize) -> Self {
        Self { stride, ..self }
    }
}

/// SEANet (`EncodecEncoder`, `EncodecDecoder`, `MimiEncoder`, `MimiDecoder`; Tagliasacchi et al., 2020, arXiv:2009.02095).
#[derive(Clone, Copy, Debug)]
pub struct Seanet<'a> {
    /// The convolutions.
    pub conv: SeanetConv,
    /// Channels of waveforms.
    pub audio_channels: usize,
    /// The width of latents.
    pub hidden_size: usize,
    /// Channels at the rate of waveforms, twice as many behind each stride.
    pub num_filters: usize,
    /// Residual blocks at each rate.
    pub num_residual_layers: usize,
    /// Strides, the decoder's first one first.
    pub upsampling_ratios: &'a [usize],
    /// The kernel of the first convolution.
    pub kernel_size: usize,
    /// The kernel of the last convolution.
    pub last_kernel_size: usize,
    /// The kernel of residual blocks.
    pub residual_kernel_size: usize,
    /// How much dilations grow from one residual block to the next.
    pub dilation_growth_rate: usize,
    /// What the channels of residual blocks are divided by.
    pub compress: usize,
    /// Whether the other way around a residual block is a convolution.
    pub use_conv_shortcut: bool,
    /// LSTM layers beside the latents, of which there may be none.
    pub num_lstm_layers: usize,
}

impl Seanet<'_> {
    /// Waveforms `[batch, audio_channels, samples]` to latents `[batch, hidden_size, frames]`, with weights at `w.layers`.
    ///
    /// # Errors
    /// When sizes are 0, or waveforms have other channels.
    pub fn encode(&self, g: &mut Graph, w: &Scope, x: &Tensor) -> Result<Tensor> {
        self.check(g, w)?;
        let mut layers = Layers { scope: w.scope("layers"), index: 0 };
        let mut width = self.num_filters;
        let mut x = self.conv.forward(g, &layers.next(), x, SeanetKernel::new(width, self.kernel_size))?;
        for &ratio in self.upsampling_ratios.iter().rev() {
            x = self.residual_blocks(g, &mut layers, x, width)?;
            x = elu(g, &mut layers, &x)?;
            width *= 2;
            x = self.conv.forward(
                g,
                &layers.next(),
                &x,
                SeanetKernel::new(width, 2 * ratio).stride(ratio),
            )?;
        }
        x = self.lstm(g, &mut layers, x, width)?;
        x = elu(g, &mut layers, &x)?;
        self.conv.forward(g, &layers.next(), &x, SeanetKernel::new(self.hidden_size, self.last_kernel_size))
    }

    /// Latents `[batch, hidden_size, frames]` to waveforms `[batch, audio_channels, samples]`, with weights at `w.layers`.
    ///
    /// # Errors
    /// As [`Seanet::encode`].
    pub fn decode(&self, g: &mut Graph, w: &Scope, x: &Tensor) -> Result<Tensor> {
        self.check(g, w)?;
        let mut layers = Layers { scope: w.scope("layers"), index: 0 };
        let mut width = self.num_filters << self.upsampling_ratios.len();
        let mut x = self.conv.forward(g, &layers.next(), x, SeanetKernel::new(width, self.kernel_size))?;
        x = self.lstm(g, &mut layers, x, width)?;
        for &ratio in self.upsampling_ratios {
            x = elu(g, &mut layers, &x)?;
            width /= 2;
            x = self.conv.transposed(
                g,
                &layers.next(),
                &x,
                SeanetKernel::new(width, 2 * ratio).stride(ratio),
            )?;
            x = self.residual_blocks(g, &mut layers, x, width)?;
        }
        x = elu(g, &mut layers, &x)?;
        self.conv.forward(
            g,
            &layers.next(),
            &x,
            SeanetKernel::new(self.audio_channels, self.last_kernel_size),
        )
    }

    fn check(&self, g: &mut Graph, w: &Scope) -> Result<()> {
        g.enter(w);
        let kernels = [self.kernel_size, self.last_kernel_size, self.residual_kernel_size, self.compress];
        if kernels.contains(&0) || self.upsampling_ratios.contains(&0) || self.upsampling_ratios.len() > 24 {
            let problem =
                "kernels, strides and what channels are divided by must be at least 1, of at most 24 strides";
            return Err(g.error("Seanet", problem));
        }
        Ok(())
    }

    /// Residual blocks of dilated convolutions (`EncodecResnetBlock`).
    fn residual_blocks(
        &self,
        g: &mut Graph,
        layers: &mut Layers,
        mut x: Tensor,
        width: usize,
    ) -> Result<Tensor> {
        let hidden = width / self.compress;
        for index in 0..self.num_residual_layers {
            let w = layers.next();
            let dilation = self.dilation_growth_rate.saturating_pow(index as u32).min(1 << 20);
            let h = g.activation(Activation::Elu, &x)?;
            let kernel = SeanetKernel { dilation, ..SeanetKernel::new(hidden, self.residual_kernel_size) };
            let h = self.conv.forward(g, &w.scope("block").index(1), &h, kernel)?;
            let h = g.activation(Activation::Elu, &h)?;
            let h = self.conv.forward(g, &w.scope("block").index(3), &h, SeanetKernel::new(width, 1))?;
            if self.use_conv_shortcut {
                x = self.conv.forward(g, &w.scope("shortcut"), &x, SeanetKernel::new(width, 1))?;
            }
            x = g.add(&x, &h)?;
        }
        Ok(x)
    }

    /// A residual LSTM over positions (`EncodecLSTM`).
    fn lstm(&self, g: &mut Graph, layers: &mut Layers, x: Tensor, width: usize) -> Result<Tensor> {
        if self.num_lstm_layers == 0 {
            return Ok(x);
        }
        let w = layers.next().scope("lstm");
        let lstm =
            Lstm { hidden_size: width, num_layers: self.num_lstm_layers, bidirectional: false, bias: true };
        let positions = g.transpose(&x, &[0, 2, 1])?;
        let (h, _) = lstm.forward(g, &w, &positions, None)?;
        let x = g.add(&positions, &h)?;
        g.transpose(&x, &[0, 2, 1])
    }
}

/// Which of a network's layers is next; activation functions count.
struct Layers {
    scope: Scope,
    index: usize,
}

impl Layers {
    fn next(&mut self) -> Scope {
        self.index += 1;
        self.scope.index(self.index - 1)
    }
}

fn elu(g: &mut Graph, layers: &mut Layers, x: &Tensor) -> Result<Tensor> {
    layers.index += 1;
    g.activation(Activation::Elu, x)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{expect, refusal};
    use super::*;

    const PLAIN: SeanetConv = SeanetConv {
        causal: true,
        padding: EdgePadding::Constant,
        norm: SeanetNorm::None,
        trim_right_ratio: 1.0,
    };

    #[test]
    fn the_last_window_is_whole() {
        let of = |causal: bool| {
            move |g: &mut Graph| {
                let x = g.constant(&[1, 1, 5], vec![1.0, 2.0, 3.0, 4.0, 5.0])?;
                let kernel = SeanetKernel { bias: false, ..SeanetKernel::new(1, 4).stride(2) };
                SeanetConv { causal, ..PLAIN }.forward(g, &g.scope("w"), &x, kernel)
            }
        };
        let weights: [(&str, &[f32]); 1] = [("w.conv.weight", &[1.0, 10.0, 100.0, 1000.0])];
        // Two zeros before, one behind; and one and two.
        expect(&weights, of(true), &[1, 1, 3], &[2100.0, 4321.0, 543.0]);
        expect(&weights, of(false), &[1, 1, 3], &[3210.0, 5432.0, 54.0]);
    }

    #[test]
    fn what_is_too_much_is_cut_off_by_the_ratio() {
        let of = |norm: SeanetNorm, trim_right_ratio: f64| {
            move |g: &mut Graph| {
                let x = g.constant(&[1, 1, 2], vec![1.0, 2.0])?;
                let kernel = SeanetKernel { bias: false, ..SeanetKernel::new(1, 4).stride(2) };
                SeanetConv { norm, trim_right_ratio, ..PLAIN }.transposed(g, &g.scope("w"), &x, kernel)
            }
        };
        // All of it: 1, 10, 102, 1020, 200, 2000.
        let weights: [(&str, &[f32]); 1] = [("w.conv.weight", &[1.0, 10.0, 100.0, 1000.0])];
        expect(&weights, of(SeanetNorm::None, 1.0), &[1, 1, 4], &[1.0, 10.0, 102.0, 1020.0]);
        expect(&weights, of(SeanetNorm::None, 0.5), &[1, 1, 4], &[10.0, 102.0, 1020.0, 200.0]);
        // The direction has a length of 2.
        let normed: [(&str, &[f32]); 2] = [
            ("w.conv.parametrizations.weight.original0", &[4.0]),
            ("w.conv.parametrizations.weight.original1", &[1.0, 1.0, -1.0, 1.0]),
        ];
        expect(&normed, of(SeanetNorm::Weight, 1.0), &[1, 1, 4], &[2.0, 2.0, 2.0, 6.0]);
        // All of it: -1, 1, 0, 0, 4, -4, with a mean of 0 and a variance of 34 / 6.
        let grouped: [(&str, &[f32]); 3] =
            [("w.conv.weight", &[-1.0, 1.0, 2.0, -2.0]), ("w.norm.weight", &[2.0]), ("w.norm.bias", &[1.0])];
        let one = 2.0 / (34.0_f32 / 6.0).sqrt();
        expect(&grouped, of(SeanetNorm::TimeGroup, 1.0), &[1, 1, 4], &[1.0 - one, 1.0 + one, 1.0, 1.0]);
    }

    #[test]
    fn only_what_is_causal_is_cut_off_by_a_ratio() {
        let problem = refusal(|g| {
            let x = g.constant(&[1, 1, 2], vec![1.0, 2.0])?;
            let conv = SeanetConv { causal: false, trim_right_ratio: 0.5, ..PLAIN };
            conv.transposed(g, &g.scope("w"), &x, SeanetKernel::new(1, 2))
        });
        insta::assert_snapshot!(problem, @"Seanet in w: trim_right_ratio: must be 1 where use_causal_conv is false");
    }

    #[test]
    fn sizes_of_nothing_are_refused() {
        let problem = refusal(|g| {
            let x = g.constant(&[1, 1, 4], vec![0.0; 4])?;
            let net = Seanet {
                conv: PLAIN,
                audio_channels: 1,
                hidden_size: 2,
                num_filters: 2,
                num_residual_layers: 1,
                upsampling_ratios: &[2, 0],
                kernel_size: 3,
                last_kernel_size: 3,
                residual_kernel_size: 3,
                dilation_growth_rate: 2,
                compress: 2,
                use_conv_shortcut: true,
                num_lstm_layers: 1,
            };
            net.encode(g, &g.scope("encoder"), &x)
        });
        insta::assert_snapshot!(problem, @"Seanet in encoder: kernels, strides and what channels are divided by must be at least 1, of at most 24 strides");
    }
}
