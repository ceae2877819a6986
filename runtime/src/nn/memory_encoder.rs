//! Memory of a frame and of an object's mask in it (SAM 2, arXiv:2408.00714).

use super::{Activation, layer_norm_2d, layer_scale};
use crate::graph::{Conv, Dim, Graph, Interpolation, Scope, Tensor};
use crate::{Result, dims};

/// The memory encoder (`Sam2VideoMemoryEncoder`): a mask is made as small as the frame's features, added to them, and convolved.
#[derive(Clone, Debug)]
pub struct MemoryEncoder {
    /// How many convolutions make masks smaller.
    pub downsampler_layers: usize,
    /// Their kernel, stride and padding.
    pub downsampler: [usize; 3],
    /// Their activation function.
    pub downsampler_act: Activation,
    /// The channels of features.
    pub width: usize,
    /// The blocks of the fuser.
    pub fuser_layers: usize,
    /// The kernel and padding of its depthwise convolutions.
    pub fuser: [usize; 2],
    /// The intermediate size of its blocks.
    pub fuser_width: usize,
    /// Their activation function.
    pub fuser_act: Activation,
    /// The channels of memory.
    pub out: usize,
}

impl MemoryEncoder {
    /// Memory `[batch, out, rows, columns]` of features `[batch, width, rows, columns]` and masks `[batch, 1, height, width]`.
    ///
    /// # Errors
    /// When the shapes do not fit.
    pub fn forward(&self, g: &mut Graph, w: &Scope, features: &Tensor, masks: &Tensor) -> Result<Tensor> {
        let masks = self.downsample(g, &w.scope("mask_downsampler"), masks)?;
        let x = g.conv(&w.scope("feature_projection"), features, &Conv::new(self.width, &[1, 1]))?;
        let mut x = g.add(&x, &masks)?;
        for index in 0..self.fuser_layers {
            x = self.fuse(g, &w.scope("memory_fuser").scope("layers").index(index), &x)?;
        }
        g.conv(&w.scope("projection"), &x, &Conv::new(self.out, &[1, 1]))
    }

    /// `Sam2VideoMaskDownSampler`: each convolution has as many times more channels as it gives fewer places.
    fn downsample(&self, g: &mut Graph, w: &Scope, masks: &Tensor) -> Result<Tensor> {
        let ([kernel, stride, padding], mut x, mut channels) = (self.downsampler, masks.clone(), 1);
        for index in 0..self.downsampler_layers {
            let w = w.scope("layers").index(index);
            channels *= stride * stride;
            let conv = Conv::new(channels, &[kernel; 2]).stride(&[stride; 2]).padding(&[padding; 2]);
            x = g.conv(&w.scope("conv"), &x, &conv)?;
            x = layer_norm_2d(g, &w.scope("layer_norm"), &x, EPSILON)?;
            x = g.activation(self.downsampler_act, &x)?;
        }
        g.conv(&w.scope("final_conv"), &x, &Conv::new(self.width, &[1, 1]))
    }

    /// A block of ConvNeXt (`Sam2VideoMemoryFuserCXBlock`).
    fn fuse(&self, g: &mut Graph, w: &Scope, x: &Tensor) -> Result<Tensor> {
        let [kernel, padding] = self.fuser;
        let conv = Conv::new(self.width, &[kernel; 2]).padding(&[padding; 2]).groups(self.width);
        let h = g.conv(&w.scope("depthwise_conv"), x, &conv)?;
        let h = layer_norm_2d(g, &w.scope("layer_norm"), &h, EPSILON)?;
        let h = g.transpose(&h, &[0, 2, 3, 1])?;
        let h = g.linear(&w.scope("pointwise_conv1"), &h, self.fuser_width)?;
        let h = g.activation(self.fuser_act, &h)?;
        let h = g.linear(&w.scope("pointwise_conv2"), &h, self.width)?;
        let h = layer_scale(g, &w.name("scale"), &h)?;
        let h = g.transpose(&h, &[0, 3, 1, 2])?;
        g.add(x, &h)
    }
}

const EPSILON: f64 = 1e-6;

/// A square feature map of another size by antialiased bilinear interpolation (`interpolate` with `antialias`), which is plain
/// bilinear interpolation where maps become larger: `[batch, channels, side, side]` to `[batch, channels, out, out]`.
///
/// # Errors
/// When the map is no square of fixed sides.
pub fn resize_antialiased(g: &mut Graph, x: &Tensor, out: usize) -> Result<Tensor> {
    let sides = [x.dim(-2), x.dim(-1)].map(|side| side.and_then(Dim::fixed).unwrap_or_default());
    let [side, columns] = sides;
    if x.rank() != 4 || side == 0 || side != columns || out == 0 {
        let problem = format!("a map of {side} by {columns} is not resized to {out} by {out}");
        return Err(g.error("resize_antialiased", problem));
    }
    if out == side {
        return Ok(x.clone());
    }
    if out > side {
        return g.resize(x, [out.into(), out.into()], Interpolation::Bilinear, false);
    }
    let factor = side as f64 / out as f64;
    let mut weights = vec![0.0; out * side];
    for (index, row) in weights.chunks_mut(side).enumerate() {
        let centre = factor * (index as f64 + 0.5);
        let weight = |place: usize| (1.0 - (place as f64 + 0.5 - centre).abs() / factor).max(0.0);
        let sum: f64 = (0..side).map(weight).sum();
        for (place, value) in row.iter_mut().enumerate() {
            *value = (weight(place) / sum) as f32;
        }
    }
    let down = g.constant(&[out, side], weights)?;
    let across = g.transpose(&down, &[1, 0])?;
    let x = g.matmul(x, &across)?;
    let channels = x.shape()[..2].to_vec();
    let x = g.matmul(&down, &x)?;
    g.reshape(&x, dims![&channels[0], &channels[1], out, out])
}

#[cfg(test)]
mod tests {
    use super::super::testing::{expect, refusal};
    use super::*;

    #[test]
    fn places_are_weighed_by_their_distance_and_edges_by_what_is_there() {
        // Of four places by two: ¾ and ¼ of three at each end, normalised: 3, 3, 1 of 7.
        let build = |g: &mut Graph| {
            let map = (0..4)
                .flat_map(|row| [0.0, 7.0, 14.0, 28.0].map(|column| column + f32::from(row == 3) * 7.0));
            let map = g.constant(&[1, 1, 4, 4], map.collect())?;
            resize_antialiased(g, &map, 2)
        };
        let [left, right] = [(21.0 + 14.0) / 7.0, (7.0 + 42.0 + 84.0) / 7.0];
        expect(&[], build, &[1, 1, 2, 2], &[left, right, left + 3.0, right + 3.0]);
    }

    #[test]
    fn maps_become_smaller_by_parts_and_larger_without_antialiasing() {
        let map = |g: &mut Graph| g.constant(&[1, 1, 3, 3], [0.0, 8.0, 16.0].repeat(3));
        // Of three places by one and a half: ⅚ and ½, normalised: 5 and 3 of 8.
        let smaller = |g: &mut Graph| {
            let map = map(g)?;
            resize_antialiased(g, &map, 2)
        };
        expect(&[], smaller, &[1, 1, 2, 2], &[3.0, 13.0, 3.0, 13.0]);
        let larger = |g: &mut Graph| {
            let map = map(g)?;
            resize_antialiased(g, &map, 6)
        };
        expect(&[], larger, &[1, 1, 6, 6], &[0.0, 2.0, 6.0, 10.0, 14.0, 16.0].repeat(6));
    }

    #[test]
    fn a_map_of_other_sides_is_refused() {
        let message = refusal(|g| {
            let map = g.constant(&[1, 1, 2, 4], vec![0.0; 8])?;
            resize_antialiased(g, &map, 2)
        });
        assert!(message.contains("a map of 2 by 4"), "{message}");
    }

    #[test]
    fn memory_is_of_features_and_the_mask_together() {
        let weights: [(&str, &[f32]); 10] = [
            (
                "mask_downsampler.layers.0.conv.weight",
                &[1.0, 0.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            ),
            ("mask_downsampler.layers.0.conv.bias", &[0.0; 4]),
            ("mask_downsampler.layers.0.layer_norm.weight", &[0.0; 4]),
            ("mask_downsampler.layers.0.layer_norm.bias", &[1.0, 2.0, -3.0, 4.0]),
            ("mask_downsampler.final_conv.weight", &[1.0, 10.0, 100.0, 1000.0]),
            ("mask_downsampler.final_conv.bias", &[0.5]),
            ("feature_projection.weight", &[2.0]),
            ("feature_projection.bias", &[1.0]),
            ("projection.weight", &[1.0, -1.0]),
            ("projection.bias", &[0.0, 1.0]),
        ];
        let encoder = MemoryEncoder {
            downsampler_layers: 1,
            downsampler: [2, 2, 0],
            downsampler_act: Activation::Relu,
            width: 1,
            fuser_layers: 0,
            fuser: [1, 0],
            fuser_width: 1,
            fuser_act: Activation::Relu,
            out: 2,
        };
        let build = |g: &mut Graph| {
            let features = g.constant(&[1, 1, 1, 1], vec![3.0])?;
            let masks = g.constant(&[1, 1, 2, 2], vec![1.0, 2.0, 3.0, 4.0])?;
            encoder.forward(g, &Scope::root(), &features, &masks)
        };
        // The norm leaves its bias; of this 4021 and a half, and 7 of the feature.
        expect(&weights, build, &[1, 2, 1, 1], &[4028.5, -4027.5]);
    }
}
