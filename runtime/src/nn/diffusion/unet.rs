//! Blocks of U-Nets that a timestep and a text condition (`CrossAttnDownBlock2D`, `UNetMidBlock2DCrossAttn`, `CrossAttnUpBlock2D`).

use super::{Downsample2d, ResnetBlock2d, SpatialTransformer, upsample_2d};
use crate::Result;
use crate::graph::{Graph, Scope, Tensor};

/// One block of a U-Net: residual blocks, each followed by a transformer where the block has cross-attention
/// (`CrossAttnDownBlock2D`, or `DownBlock2D` without).
#[derive(Clone, Copy, Debug)]
pub struct UnetBlock<'a> {
    /// The number of residual blocks on the way down; there is one more on the way up.
    pub layers: usize,
    /// What they are like.
    pub resnet: ResnetBlock2d<'a>,
    /// What transformers are like; none without cross-attention.
    pub transformer: Option<SpatialTransformer<'a>>,
}

impl UnetBlock<'_> {
    /// The block with the sums of its residual blocks divided by this.
    #[must_use]
    pub fn scaled(mut self, output_scale_factor: f64) -> Self {
        self.resnet.output_scale_factor = output_scale_factor;
        self
    }

    /// On the way down (`CrossAttnDownBlock2D`): x `[batch, in, rows, columns]` to `[batch, channels, …]`, of half the resolution
    /// where `downsample` says so. Everything that the way up concatenates is appended to `skips`.
    ///
    /// # Errors
    /// As [`ResnetBlock2d::forward`] and [`SpatialTransformer::forward`].
    pub fn down(
        &self,
        g: &mut Graph,
        w: &Scope,
        x: &Tensor,
        downsample: bool,
        skips: &mut Vec<Tensor>,
    ) -> Result<Tensor> {
        let mut x = x.clone();
        for index in 0..self.layers {
            x = self.layer(g, w, &x, index)?;
            skips.push(x.clone());
        }
        if downsample {
            let w = w.scope("downsamplers.0");
            x = Downsample2d::Symmetric.forward(g, &w, &x, self.resnet.channels)?;
            skips.push(x.clone());
        }
        Ok(x)
    }

    /// In the middle (`UNetMidBlock2DCrossAttn`): a residual block, then a transformer and another residual block.
    ///
    /// # Errors
    /// As [`UnetBlock::down`].
    pub fn middle(&self, g: &mut Graph, w: &Scope, x: &Tensor) -> Result<Tensor> {
        let mut x = self.resnet.forward(g, &w.scope("resnets.0"), x)?;
        for index in 0..self.layers {
            if let Some(transformer) = &self.transformer {
                x = transformer.forward(g, &w.scope("attentions").index(index), &x)?;
            }
            x = self.resnet.forward(g, &w.scope("resnets").index(index + 1), &x)?;
        }
        Ok(x)
    }

    /// On the way up (`CrossAttnUpBlock2D`): the last of `skips` is concatenated before each residual block, and the result gets
    /// the resolution of the next one where `upsample` says so.
    ///
    /// # Errors
    /// As [`UnetBlock::down`], and when the skips are used up.
    pub fn up(
        &self,
        g: &mut Graph,
        w: &Scope,
        x: &Tensor,
        upsample: bool,
        skips: &mut Vec<Tensor>,
    ) -> Result<Tensor> {
        let mut x = x.clone();
        let missing = |g: &Graph| g.error("UNet", "fewer feature maps on the way down than the way up takes");
        for index in 0..=self.layers {
            let skip = skips.pop().ok_or_else(|| missing(g))?;
            let joined = g.concat(&[&x, &skip], 1)?;
            x = self.layer(g, w, &joined, index)?;
        }
        if upsample {
            let next = skips.last().ok_or_else(|| missing(g))?;
            let size = [next.shape()[2].clone(), next.shape()[3].clone()];
            x = upsample_2d(g, &w.scope("upsamplers.0"), &x, size, self.resnet.channels)?;
        }
        Ok(x)
    }

    fn layer(&self, g: &mut Graph, w: &Scope, x: &Tensor, index: usize) -> Result<Tensor> {
        let x = self.resnet.forward(g, &w.scope("resnets").index(index), x)?;
        match &self.transformer {
            Some(transformer) => transformer.forward(g, &w.scope("attentions").index(index), &x),
            None => Ok(x),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::dims::{BATCH, HEIGHT, WIDTH};
    use crate::graph::{Activation, Input, show};
    use crate::{dims, nn::testing::refusal};

    fn block(channels: usize) -> UnetBlock<'static> {
        let resnet = ResnetBlock2d {
            channels,
            groups: 2,
            eps: 1e-5,
            act: Activation::Silu,
            time_embedding: None,
            scale_shift: false,
            output_scale_factor: 1.0,
        };
        UnetBlock { layers: 2, resnet, transformer: None }
    }

    #[test]
    fn what_goes_up_has_the_sizes_of_what_went_down() {
        let mut g = Graph::new();
        let x = g.input(Input::f32("sample", dims![BATCH, 4, HEIGHT, WIDTH]));
        let (g, mut skips) = (&mut g, vec![]);
        let h = block(4).down(g, &Scope::root().scope("down"), &x, true, &mut skips).unwrap();
        assert_eq!(skips.len(), 3);
        skips.insert(0, x.clone());
        let h = block(8).down(g, &Scope::root().scope("deep"), &h, false, &mut skips).unwrap();
        let h = block(8).middle(g, &Scope::root().scope("mid"), &h).unwrap();
        let h = block(8).up(g, &Scope::root().scope("up.0"), &h, true, &mut skips).unwrap();
        assert_eq!(h.shape()[2..], x.shape()[2..]);
        let h = block(4).up(g, &Scope::root().scope("up.1"), &h, false, &mut skips).unwrap();
        assert_eq!(show(h.shape()), "[batch, 4, height, width]");
        assert!(skips.is_empty());
        let weight =
            |name: &str| g.weights().iter().find(|weight| weight.name == name).unwrap().shape.clone();
        // 8 channels and the 4 of the first block's end; then 8 and 4.
        assert_eq!(weight("up.0.resnets.2.conv1.weight"), [8, 12, 3, 3]);
        assert_eq!(weight("up.1.resnets.0.conv_shortcut.weight"), [4, 12, 1, 1]);
        assert_eq!(weight("mid.resnets.2.conv2.weight"), [8, 8, 3, 3]);
    }

    #[test]
    fn feature_maps_may_run_out() {
        let problem = refusal(|g| {
            let x = g.input(Input::f32("sample", dims![BATCH, 4, 8, 8]));
            block(4).up(g, &Scope::root().scope("up"), &x, false, &mut vec![x.clone()])
        });
        insta::assert_snapshot!(problem, @"UNet in up.resnets.0.conv_shortcut: fewer feature maps on the way down than the way up takes");
    }
}
