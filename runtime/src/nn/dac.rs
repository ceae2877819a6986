//! The Descript Audio Codec's convolutional encoder and decoder of waveforms.

use super::anti_aliased_snake;
use crate::Result;
use crate::graph::{Conv, Graph, Scope, Tensor, Unary};

/// Strided convolutions with residual units from waveforms to latents (`DacEncoder`; arXiv:2306.06546).
#[derive(Clone, Debug)]
pub struct DacEncoder<'a> {
    /// The channels of the first convolution, twice as many behind each stride.
    pub encoder_hidden_size: usize,
    /// The stride of each block.
    pub downsampling_ratios: &'a [usize],
    /// The width of latents.
    pub hidden_size: usize,
    /// The activation function.
    pub snake: Snake,
}

/// The same from latents to waveforms, transposed (`DacDecoder`).
#[derive(Clone, Debug)]
pub struct DacDecoder {
    /// The channels of the first convolution, half as many behind each stride.
    pub decoder_hidden_size: usize,
    /// The stride of each block.
    pub upsampling_ratios: Vec<usize>,
    /// Whether transposed convolutions of odd strides give one sample more, so that all give `stride` times as many.
    pub output_padding: bool,
}

/// A snake activation function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snake {
    /// With a factor for each channel (`Snake1d`).
    ByChannel,
    /// Between upsampling and downsampling ([`anti_aliased_snake`]).
    AntiAliased,
}

impl DacEncoder<'_> {
    /// The latents of a waveform at `w`: x `[batch, 1, samples]` to `[batch, hidden_size, frames]`.
    ///
    /// # Errors
    /// When widths do not fit together.
    pub fn forward(&self, g: &mut Graph, w: &Scope, x: &Tensor) -> Result<Tensor> {
        let mut width = self.encoder_hidden_size;
        let mut x = g.conv(&w.scope("conv1"), x, &Conv::new(width, &[7]).padding(&[3]))?;
        for (index, &stride) in self.downsampling_ratios.iter().enumerate() {
            let w = w.scope("block").index(index);
            x = residual_units(g, &w, &x, (width, self.snake))?;
            x = self.snake.forward(g, &w.scope("snake1"), &x, width)?;
            width = width.saturating_mul(2);
            x = g.conv(&w.scope("conv1"), &x, &strided(width, stride))?;
        }
        let x = self.snake.forward(g, &w.scope("snake1"), &x, width)?;
        g.conv(&w.scope("conv2"), &x, &Conv::new(self.hidden_size, &[3]).padding(&[1]))
    }
}

impl DacDecoder {
    /// The waveform of latents at `w`, before what bounds it: x `[batch, hidden_size, frames]` to `[batch, 1, samples]`.
    ///
    /// # Errors
    /// When widths do not fit together.
    pub fn forward(&self, g: &mut Graph, w: &Scope, x: &Tensor) -> Result<Tensor> {
        let snake = Snake::ByChannel;
        let mut width = self.decoder_hidden_size;
        let mut x = g.conv(&w.scope("conv1"), x, &Conv::new(width, &[7]).padding(&[3]))?;
        for (index, &stride) in self.upsampling_ratios.iter().enumerate() {
            let w = w.scope("block").index(index);
            x = snake.forward(g, &w.scope("snake1"), &x, width)?;
            width /= 2;
            let more = if self.output_padding { stride % 2 } else { 0 };
            x = g.conv_transpose(&w.scope("conv_t1"), &x, &strided(width, stride).output_padding(&[more]))?;
            x = residual_units(g, &w, &x, (width, snake))?;
        }
        let x = snake.forward(g, &w.scope("snake1"), &x, width)?;
        g.conv(&w.scope("conv2"), &x, &Conv::new(1, &[7]).padding(&[3]))
    }
}

impl Snake {
    /// Of x `[batch, width, samples]`.
    fn forward(self, g: &mut Graph, w: &Scope, x: &Tensor, width: usize) -> Result<Tensor> {
        match self {
            Self::ByChannel => snake(g, w, x, width),
            Self::AntiAliased => anti_aliased_snake(g, w, x),
        }
    }
}

/// A convolution over two strides.
fn strided(width: usize, stride: usize) -> Conv {
    Conv::new(width, &[2 * stride]).stride(&[stride]).padding(&[stride.div_ceil(2)])
}

/// Three residual units of dilated convolutions (`DacResidualUnit`).
fn residual_units(g: &mut Graph, w: &Scope, x: &Tensor, (width, snake): (usize, Snake)) -> Result<Tensor> {
    let mut x = x.clone();
    for (name, dilation) in [("res_unit1", 1), ("res_unit2", 3), ("res_unit3", 9)] {
        let w = w.scope(name);
        let h = snake.forward(g, &w.scope("snake1"), &x, width)?;
        let dilated = Conv::new(width, &[7]).padding(&[3 * dilation]).dilation(&[dilation]);
        let h = g.conv(&w.scope("conv1"), &h, &dilated)?;
        let h = snake.forward(g, &w.scope("snake2"), &h, width)?;
        let h = g.conv(&w.scope("conv2"), &h, &Conv::new(width, &[1]))?;
        x = g.add(&x, &h)?;
    }
    Ok(x)
}

/// The snake activation function x + sin²(αx) / α, with an α for each channel (`Snake1d`; 2020, arXiv:2006.08195).
fn snake(g: &mut Graph, w: &Scope, x: &Tensor, width: usize) -> Result<Tensor> {
    let alpha = g.weight(&w.name("alpha"), &[1, width, 1])?;
    let tiny = g.scalar(1e-9);
    let divisor = g.add(&alpha, &tiny)?;
    let turned = g.mul(x, &alpha)?;
    let wave = g.unary(Unary::Sin, &turned);
    let wave = g.mul(&wave, &wave)?;
    let wave = g.div(&wave, &divisor)?;
    g.add(x, &wave)
}

#[cfg(test)]
mod tests {
    use super::super::testing::expect;
    use super::*;

    #[test]
    fn a_snake_stands_between_the_first_and_the_last_convolution() {
        let encode = |g: &mut Graph| {
            let x = g.constant(&[1, 1, 2], vec![1.0, 3.0])?;
            let snake = Snake::ByChannel;
            let encoder =
                DacEncoder { encoder_hidden_size: 1, downsampling_ratios: &[], hidden_size: 2, snake };
            encoder.forward(g, &g.scope("encoder"), &x)
        };
        let weights: [(&str, &[f32]); 5] = [
            ("encoder.conv1.weight", &[0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0]),
            ("encoder.conv1.bias", &[0.25]),
            ("encoder.snake1.alpha", &[2.0]),
            ("encoder.conv2.weight", &[0.0, 1.0, 0.0, 1.0, 0.0, 0.0]),
            ("encoder.conv2.bias", &[0.0, 10.0]),
        ];
        // 0.75 and 1.75, then x + sin²(2x) / 2; the second channel is that of the position before.
        let [a, b] = [0.75_f32, 1.75].map(|x| x + (2.0 * x).sin().powi(2) / 2.0);
        expect(&weights, encode, &[1, 2, 2], &[a, b, 10.0, 10.0 + a]);
    }

    #[test]
    fn odd_strides_give_a_sample_more_where_outputs_are_padded() {
        let names: Vec<_> = ["res_unit1", "res_unit2", "res_unit3"]
            .into_iter()
            .flat_map(|unit| {
                let of = |name: &str, count| (format!("decoder.block.0.{unit}.{name}"), vec![0.0; count]);
                [
                    of("snake1.alpha", 1),
                    of("conv1.weight", 7),
                    of("conv1.bias", 1),
                    of("snake2.alpha", 1),
                    of("conv2.weight", 1),
                    of("conv2.bias", 1),
                ]
            })
            .collect();
        let mut weights: Vec<(&str, &[f32])> = vec![
            ("decoder.conv1.weight", &[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
            ("decoder.conv1.bias", &[0.0, 0.0]),
            ("decoder.block.0.snake1.alpha", &[0.0, 0.0]),
            ("decoder.block.0.conv_t1.weight", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
            ("decoder.block.0.conv_t1.bias", &[0.0]),
            ("decoder.snake1.alpha", &[0.0]),
            ("decoder.conv2.weight", &[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]),
            ("decoder.conv2.bias", &[0.0]),
        ];
        weights.extend(names.iter().map(|(name, values)| (name.as_str(), values.as_slice())));
        let decode = |output_padding: bool| {
            move |g: &mut Graph| {
                let x = g.constant(&[1, 1, 1], vec![1.0])?;
                let decoder =
                    DacDecoder { decoder_hidden_size: 2, upsampling_ratios: vec![3], output_padding };
                decoder.forward(g, &g.scope("decoder"), &x)
            }
        };
        expect(&weights, decode(false), &[1, 1, 2], &[3.0, 4.0]);
        expect(&weights, decode(true), &[1, 1, 3], &[3.0, 4.0, 5.0]);
    }
}
