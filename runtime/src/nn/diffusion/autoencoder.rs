//! Blocks of image autoencoders (`DownEncoderBlock2D`, `UNetMidBlock2D`, `UpDecoderBlock2D`).

use super::{Downsample2d, ResnetBlock2d, upsample_2d};
use crate::Result;
use crate::graph::{Activation, Dim, Graph, Scope, Tensor};
use crate::nn::{MultiHead, flatten_feature_map, unflatten_feature_map};

/// The epsilon of all norms of an image autoencoder.
const EPS: f64 = 1e-6;

/// The residual blocks of an image autoencoder: all of one kind (`AutoencoderKL`).
#[derive(Clone, Copy, Debug)]
pub struct AutoencoderBlocks {
    /// The groups of normalisation.
    pub groups: usize,
    /// The activation function of residual blocks.
    pub act: Activation,
}

impl AutoencoderBlocks {
    /// Residual blocks, and half the resolution where `downsample` says so (`DownEncoderBlock2D`): x `[batch, in, rows, columns]` to
    /// `[batch, channels, …]`.
    ///
    /// # Errors
    /// As [`ResnetBlock2d::forward`].
    pub fn down(
        self,
        g: &mut Graph,
        w: &Scope,
        x: &Tensor,
        [channels, layers]: [usize; 2],
        downsample: bool,
    ) -> Result<Tensor> {
        let x = self.layers(g, w, x, channels, layers)?;
        match downsample {
            true => Downsample2d::BottomRight.forward(g, &w.scope("downsamplers.0"), &x, channels),
            false => Ok(x),
        }
    }

    /// Two residual blocks, with attention over all positions between them where `attention` says so (`UNetMidBlock2D`):
    /// x `[batch, channels, rows, columns]` to the same shape.
    ///
    /// # Errors
    /// As [`ResnetBlock2d::forward`].
    pub fn middle(self, g: &mut Graph, w: &Scope, x: &Tensor, attention: bool) -> Result<Tensor> {
        let channels = x.dim(1).and_then(Dim::fixed).unwrap_or_default();
        let x = self.resnet(g, &w.scope("resnets.0"), x, channels)?;
        let x = if attention { spatial_attention(g, &w.scope("attentions.0"), &x, self.groups)? } else { x };
        self.resnet(g, &w.scope("resnets.1"), &x, channels)
    }

    /// Residual blocks, and twice the resolution where `upsample` says so (`UpDecoderBlock2D`): x `[batch, in, rows, columns]` to
    /// `[batch, channels, …]`.
    ///
    /// # Errors
    /// As [`ResnetBlock2d::forward`].
    pub fn up(
        self,
        g: &mut Graph,
        w: &Scope,
        x: &Tensor,
        [channels, layers]: [usize; 2],
        upsample: bool,
    ) -> Result<Tensor> {
        let x = self.layers(g, w, x, channels, layers)?;
        if !upsample {
            return Ok(x);
        }
        let size = [2, 3].map(|axis: usize| x.shape()[axis].clone() * Dim::Fixed(2));
        upsample_2d(g, &w.scope("upsamplers.0"), &x, size, channels)
    }

    /// Group normalisation and SiLU before the last convolution.
    ///
    /// # Errors
    /// As [`ResnetBlock2d::forward`].
    pub fn norm_out(self, g: &mut Graph, w: &Scope, x: &Tensor) -> Result<Tensor> {
        let x = g.group_norm(w, x, self.groups, EPS)?;
        g.activation(Activation::Silu, &x)
    }

    fn layers(self, g: &mut Graph, w: &Scope, x: &Tensor, channels: usize, layers: usize) -> Result<Tensor> {
        let mut x = x.clone();
        for index in 0..layers {
            x = self.resnet(g, &w.scope("resnets").index(index), &x, channels)?;
        }
        Ok(x)
    }

    fn resnet(self, g: &mut Graph, w: &Scope, x: &Tensor, channels: usize) -> Result<Tensor> {
        let block = ResnetBlock2d {
            channels,
            groups: self.groups,
            eps: EPS,
            act: self.act,
            time_embedding: None,
            scale_shift: false,
            output_scale_factor: 1.0,
        };
        block.forward(g, w, x)
    }
}

/// Attention of one head over all positions of a feature map, added to it (`Attention` of `UNetMidBlock2D`): x
/// `[batch, channels, rows, columns]` to the same shape.
///
/// # Errors
/// When x has not four axes, or no fixed number of channels that the groups divide.
pub fn spatial_attention(g: &mut Graph, w: &Scope, x: &Tensor, groups: usize) -> Result<Tensor> {
    let h = g.group_norm(&w.scope("group_norm"), x, groups, EPS)?;
    let h = flatten_feature_map(g, &h)?;
    let width = h.dim(-1).and_then(Dim::fixed).unwrap_or_default();
    let attention =
        MultiHead { projections: ["to_q", "to_k", "to_v", "to_out.0"], ..MultiHead::new(1, width) };
    let h = attention.forward(g, w, &h)?;
    let h = unflatten_feature_map(g, &h, &[x.shape()[2].clone(), x.shape()[3].clone()])?;
    g.add(&h, x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::dims::{BATCH, HEIGHT, WIDTH};
    use crate::graph::{Input, show};
    use crate::{dims, nn::testing::expect};

    #[test]
    fn all_positions_are_seen_and_added() {
        // Two positions of one channel: norms (-1, 1), scores ±ln 2 with these queries; values are ten times the norms.
        let build = |g: &mut Graph| {
            let x = g.constant(&[1, 1, 1, 2], vec![1.0, 3.0])?;
            spatial_attention(g, &Scope::root().scope("a"), &x, 1)
        };
        let weights: [(&str, &[f32]); 10] = [
            ("a.group_norm.weight", &[1.0]),
            ("a.group_norm.bias", &[0.0]),
            ("a.to_q.weight", &[0.0]),
            ("a.to_q.bias", &[std::f32::consts::LN_2 / 2.0]),
            ("a.to_k.weight", &[1.0]),
            ("a.to_k.bias", &[0.0]),
            ("a.to_v.weight", &[30.0]),
            ("a.to_v.bias", &[0.0]),
            ("a.to_out.0.weight", &[1.0]),
            ("a.to_out.0.bias", &[0.5]),
        ];
        // Weights 1/3 and 2/3: 30 · (−1/3 + 2/3) = 10.
        expect(&weights, build, &[1, 1, 1, 2], &[11.5, 13.5]);
    }

    #[test]
    fn resolutions_are_halved_and_doubled() {
        let blocks = AutoencoderBlocks { groups: 2, act: Activation::Silu };
        let mut g = Graph::new();
        let x = g.input(Input::f32("sample", dims![BATCH, 4, HEIGHT, WIDTH]));
        let w = |name: &str| Scope::root().scope(name);
        let h = blocks.down(&mut g, &w("down"), &x, [8, 2], true).unwrap();
        assert_eq!(show(h.shape()), "[batch, 8, height/2, width/2]");
        let h = blocks.middle(&mut g, &w("mid"), &h, true).unwrap();
        let up = blocks.up(&mut g, &w("up"), &h, [4, 1], true).unwrap();
        assert_eq!(up.dim(1).and_then(Dim::fixed), Some(4));
        assert_eq!(up.shape()[2], h.shape()[2].clone() * Dim::Fixed(2));
        let same = blocks.up(&mut g, &w("last"), &up, [4, 1], false).unwrap();
        assert_eq!(same.shape(), up.shape());
    }
}
