//! Residual blocks of two convolutions with group normalisation (`ResnetBlock2D`).

use crate::graph::{Activation, Conv, Dim, Graph, Scope, Tensor, show};
use crate::{Result, dims};

/// Residual block of two 3 × 3 convolutions, which a timestep embedding is added between (`ResnetBlock2D`).
#[derive(Clone, Copy, Debug)]
pub struct ResnetBlock2d<'a> {
    /// The channels of the result; where x has others, `conv_shortcut` makes them.
    pub channels: usize,
    /// The groups of both normalisations.
    pub groups: usize,
    /// The epsilon of both.
    pub eps: f64,
    /// The activation function before both convolutions.
    pub act: Activation,
    /// The timestep embedding `[batch, width]`; none in autoencoders.
    pub time_embedding: Option<&'a Tensor>,
    /// Whether it scales and shifts (`scale_shift`) and is not only added.
    pub scale_shift: bool,
    /// What the sum is divided by.
    pub output_scale_factor: f64,
}

impl ResnetBlock2d<'_> {
    /// The block with weights at `w`: x `[batch, in, rows, columns]` to `[batch, channels, rows, columns]`.
    ///
    /// # Errors
    /// When x has not four axes, or no fixed number of channels that the groups divide.
    pub fn forward(&self, g: &mut Graph, w: &Scope, x: &Tensor) -> Result<Tensor> {
        let Some(width) = x.dim(1).and_then(Dim::fixed).filter(|_| x.rank() == 4) else {
            let problem = format!("{} is not [batch, channels, rows, columns]", show(x.shape()));
            return Err(g.error("ResnetBlock2D", problem));
        };
        let conv = Conv::new(self.channels, &[3, 3]).half_padding();
        let h = g.group_norm(&w.scope("norm1"), x, self.groups, self.eps)?;
        let h = g.activation(self.act, &h)?;
        let mut h = g.conv(&w.scope("conv1"), &h, &conv)?;
        let time = self.time(g, w)?;
        if let (Some(time), false) = (&time, self.scale_shift) {
            h = g.add(&h, time)?;
        }
        let mut h = g.group_norm(&w.scope("norm2"), &h, self.groups, self.eps)?;
        if let (Some(time), true) = (&time, self.scale_shift) {
            let parts = g.split(time, 1, &[self.channels; 2])?;
            let one = g.scalar(1.0);
            let scale = g.add(&parts[0], &one)?;
            h = g.mul(&h, &scale)?;
            h = g.add(&h, &parts[1])?;
        }
        let h = g.activation(self.act, &h)?;
        let h = g.conv(&w.scope("conv2"), &h, &conv)?;
        let shortcut = match width == self.channels {
            true => x.clone(),
            false => g.conv(&w.scope("conv_shortcut"), x, &Conv::new(self.channels, &[1, 1]))?,
        };
        let sum = g.add(&shortcut, &h)?;
        g.scale(&sum, self.output_scale_factor.recip())
    }

    /// The projected timestep embedding: `[batch, channels, 1, 1]`, twice as many channels where it scales and shifts.
    fn time(&self, g: &mut Graph, w: &Scope) -> Result<Option<Tensor>> {
        let Some(embedding) = self.time_embedding else { return Ok(None) };
        let width = if self.scale_shift { 2 * self.channels } else { self.channels };
        let h = g.activation(self.act, embedding)?;
        let h = g.linear(&w.scope("time_emb_proj"), &h, width)?;
        let batch = h.shape()[0].clone();
        g.reshape(&h, dims![batch, width, 1, 1]).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::{expect, refusal};

    const MIDDLE: [f32; 9] = [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0];

    /// One channel and one group: the norm of (1, 3) is (-1, 1).
    fn block<'a>(time_embedding: Option<&'a Tensor>, scale_shift: bool) -> ResnetBlock2d<'a> {
        ResnetBlock2d {
            channels: 1,
            groups: 1,
            eps: 0.0,
            act: Activation::Relu,
            time_embedding,
            scale_shift,
            output_scale_factor: 2.0,
        }
    }

    /// What the layers have without a timestep embedding; the second norm gets (10, 12), of which the rectified norm is (0, 1).
    const WEIGHTS: [(&str, &[f32]); 8] = [
        ("r.norm1.weight", &[2.0]),
        ("r.norm1.bias", &[0.0]),
        ("r.conv1.weight", &MIDDLE),
        ("r.conv1.bias", &[10.0]),
        ("r.norm2.weight", &[1.0]),
        ("r.norm2.bias", &[0.0]),
        ("r.conv2.weight", &MIDDLE),
        ("r.conv2.bias", &[7.0]),
    ];

    #[test]
    fn two_convolutions_are_added_to_the_input() {
        let build = |g: &mut Graph| {
            let x = g.constant(&[1, 1, 1, 2], vec![1.0, 3.0])?;
            block(None, false).forward(g, &Scope::root().scope("r"), &x)
        };
        // Half of (1 + 7 + 0) and (3 + 7 + 1).
        expect(&WEIGHTS, build, &[1, 1, 1, 2], &[4.0, 5.5]);
    }

    #[test]
    fn time_scales_and_shifts_what_is_normalised() {
        let build = |g: &mut Graph| {
            let x = g.constant(&[1, 1, 1, 2], vec![1.0, 3.0])?;
            let time = g.constant(&[1, 1], vec![4.0])?;
            block(Some(&time), true).forward(g, &Scope::root().scope("r"), &x)
        };
        // Scale 1 + 2, shift 3: (-3 + 3, 3 + 3).
        let time: [(&str, &[f32]); 2] =
            [("r.time_emb_proj.weight", &[0.5, 0.5]), ("r.time_emb_proj.bias", &[0.0, 1.0])];
        expect(&[&WEIGHTS[..], &time[..]].concat(), build, &[1, 1, 1, 2], &[4.0, 8.0]);
    }

    #[test]
    fn time_is_added_and_other_channels_have_a_shortcut() {
        // Two channels in two groups of a map of one element: norms are 0, their biases (1, 2) go through the convolution.
        let build = |g: &mut Graph| {
            let x = g.constant(&[1, 2, 1, 1], vec![5.0, 6.0])?;
            let time = g.constant(&[1, 1], vec![-4.0])?;
            let block = ResnetBlock2d { output_scale_factor: 1.0, eps: 1.0, ..block(Some(&time), false) };
            block.forward(g, &Scope::root().scope("r"), &x)
        };
        let problem = refusal(|g| {
            let x = g.constant(&[1, 2, 1], vec![5.0, 6.0])?;
            block(None, false).forward(g, &Scope::root().scope("r"), &x)
        });
        insta::assert_snapshot!(problem, @"ResnetBlock2D in the root: [1, 2, 1] is not [batch, channels, rows, columns]");
        let middles = [MIDDLE, MIDDLE].concat();
        let weights: [(&str, &[f32]); 12] = [
            ("r.norm1.weight", &[0.0, 0.0]),
            ("r.norm1.bias", &[1.0, 2.0]),
            ("r.conv1.weight", &middles),
            ("r.conv1.bias", &[0.0]),
            ("r.time_emb_proj.weight", &[1.0]),
            ("r.time_emb_proj.bias", &[3.0]),
            ("r.norm2.weight", &[5.0]),
            ("r.norm2.bias", &[1.0]),
            ("r.conv2.weight", &MIDDLE),
            ("r.conv2.bias", &[0.0]),
            ("r.conv_shortcut.weight", &[10.0, 1.0]),
            ("r.conv_shortcut.bias", &[0.0]),
        ];
        expect(&weights, build, &[1, 1, 1, 1], &[57.0]);
    }
}
