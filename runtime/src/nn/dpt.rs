//! The neck of dense prediction transformers (DPT, arXiv:2103.13413): reassembled feature maps, fused from the last to the first.

use super::Activation;
use crate::Result;
use crate::graph::{Conv, Dim, Graph, Interpolation, Scope, Tensor};

/// A reassembled feature map (`DPTReassembleLayer`): `projection` of x `[batch, channels, rows, columns]` to `width` channels, and
/// `resize` by `factor`, a transposed convolution from 1 up or one with a stride below.
///
/// # Errors
/// When x has not these axes.
pub fn reassemble(g: &mut Graph, w: &Scope, x: &Tensor, width: usize, factor: f64) -> Result<Tensor> {
    let x = g.conv(&w.scope("projection"), x, &Conv::new(width, &[1, 1]))?;
    let resize = w.scope("resize");
    if factor > 1.0 {
        return g.conv_transpose(&resize, &x, &Conv::patches(width, factor as usize));
    }
    if factor < 1.0 {
        let stride = ((1.0 / factor) as usize).max(1);
        return g.conv(&resize, &x, &Conv::new(width, &[3, 3]).stride(&[stride; 2]).padding(&[1, 1]));
    }
    Ok(x)
}

/// Feature fusion (`DPTFeatureFusionStage`): each map is added to what was fused of the smaller ones.
#[derive(Clone, Copy, Debug)]
pub struct FeatureFusion {
    /// The channels of all maps.
    pub width: usize,
    /// Whether the convolutions of residual layers have a bias.
    pub bias: bool,
    /// Whether batch normalisation is behind these.
    pub batch_norm: bool,
    /// Whether a fused map gets the size of the next, and only the last twice its own (Depth Anything); or each twice its own.
    pub next_size: bool,
}

impl FeatureFusion {
    /// The fused maps, the smallest first, of maps `[batch, width, rows, columns]`, the largest first, by layers at `w`.
    ///
    /// # Errors
    /// When maps have not these axes.
    pub fn forward(&self, g: &mut Graph, w: &Scope, maps: &[Tensor]) -> Result<Vec<Tensor>> {
        self.forward_prompted(g, w, maps, None)
    }

    /// The same, with features of a depth map `[batch, 1, rows, columns]` added to each map (`PromptDepthAnythingLayer`).
    ///
    /// # Errors
    /// As [`FeatureFusion::forward`].
    pub fn forward_prompted(
        &self,
        g: &mut Graph,
        w: &Scope,
        maps: &[Tensor],
        prompt: Option<&Tensor>,
    ) -> Result<Vec<Tensor>> {
        let mut fused: Vec<Tensor> = vec![];
        for (index, map) in maps.iter().rev().enumerate() {
            let w = w.index(index);
            let mut x = map.clone();
            if let Some(before) = fused.last() {
                let map = match before.shape() == map.shape() {
                    true => map.clone(),
                    false => g.resize(map, size(before), Interpolation::Bilinear, false)?,
                };
                let residual = self.residual(g, &w.scope("residual_layer1"), &map)?;
                x = g.add(before, &residual)?;
            } else {
                // The first has nothing to fuse.
                g.unused_scope(&w.scope("residual_layer1"));
            }
            let mut x = self.residual(g, &w.scope("residual_layer2"), &x)?;
            if let Some(prompt) = prompt {
                let depth = g.resize(prompt, size(&x), Interpolation::Bilinear, false)?;
                let features = self.prompt_features(g, &w.scope("prompt_depth_layer"), &depth)?;
                x = g.add(&x, &features)?;
            }
            let next = maps.len().checked_sub(index + 2).and_then(|next| maps.get(next));
            let larger = match next.filter(|_| self.next_size) {
                Some(next) => size(next),
                None => size(&x).map(|length| length * Dim::Fixed(2)),
            };
            let x = g.resize(&x, larger, Interpolation::Bilinear, true)?;
            fused.push(g.conv(&w.scope("projection"), &x, &Conv::new(self.width, &[1, 1]))?);
        }
        Ok(fused)
    }

    /// Three convolutions of a depth map (`PromptDepthAnythingLayer`).
    fn prompt_features(&self, g: &mut Graph, w: &Scope, depth: &Tensor) -> Result<Tensor> {
        let conv = Conv::new(self.width, &[3, 3]).padding(&[1, 1]);
        let x = g.conv(&w.scope("convolution1"), depth, &conv)?;
        let x = g.activation(Activation::Relu, &x)?;
        let x = g.conv(&w.scope("convolution2"), &x, &conv)?;
        let x = g.activation(Activation::Relu, &x)?;
        g.conv(&w.scope("convolution3"), &x, &conv)
    }

    /// Two convolutions, pre-activation, added to x `[batch, width, rows, columns]` (`DPTPreActResidualLayer`).
    ///
    /// # Errors
    /// When x has not these axes.
    pub fn residual(&self, g: &mut Graph, w: &Scope, x: &Tensor) -> Result<Tensor> {
        let conv = Conv::new(self.width, &[3, 3]).padding(&[1, 1]);
        let conv = if self.bias { conv } else { conv.no_bias() };
        let mut h = x.clone();
        for index in 1..=2 {
            h = g.activation(Activation::Relu, &h)?;
            h = g.conv(&w.scope(&format!("convolution{index}")), &h, &conv)?;
            if self.batch_norm {
                h = g.batch_norm(&w.scope(&format!("batch_norm{index}")), &h, 1e-5)?;
            }
        }
        g.add(&h, x)
    }
}

/// Rows and columns of a map.
fn size(map: &Tensor) -> [Dim; 2] {
    [2, 3].map(|axis| map.shape().get(axis).cloned().unwrap_or(Dim::Fixed(0)))
}

#[cfg(test)]
mod tests {
    use super::super::testing::expect;
    use super::*;

    #[test]
    fn maps_are_resized_by_their_factor() {
        let map = |g: &mut Graph| g.constant(&[1, 1, 2, 2], vec![1.0, 2.0, 3.0, 4.0]);
        let up: [(&str, &[f32]); 4] = [
            ("projection.weight", &[10.0]),
            ("projection.bias", &[1.0]),
            ("resize.weight", &[1.0, 2.0, 0.0, 0.0]),
            ("resize.bias", &[0.5]),
        ];
        // Each of 11, 21, 31 and 41 becomes a square whose upper row is it and twice it.
        let larger = [11.5, 22.5, 21.5, 42.5, 0.5, 0.5, 0.5, 0.5, 31.5, 62.5, 41.5, 82.5, 0.5, 0.5, 0.5, 0.5];
        expect(
            &up,
            |g| map(g).and_then(|x| reassemble(g, &Scope::root(), &x, 1, 2.0)),
            &[1, 1, 4, 4],
            &larger,
        );
        let down: [(&str, &[f32]); 4] = [
            ("projection.weight", &[10.0]),
            ("projection.bias", &[1.0]),
            ("resize.weight", &[0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]),
            ("resize.bias", &[0.0]),
        ];
        expect(
            &down,
            |g| map(g).and_then(|x| reassemble(g, &Scope::root(), &x, 1, 0.5)),
            &[1, 1, 1, 1],
            &[52.0],
        );
    }

    #[test]
    fn smaller_maps_are_fused_into_larger_ones() {
        let middle = |factor: f32| vec![0.0, 0.0, 0.0, 0.0, factor, 0.0, 0.0, 0.0, 0.0];
        let mut weights: Vec<(String, Vec<f32>)> = vec![];
        for (layer, residuals) in [(0, vec![2]), (1, vec![1, 2])] {
            for residual in residuals {
                for convolution in 1..=2 {
                    let name = format!("layers.{layer}.residual_layer{residual}.convolution{convolution}");
                    weights.push((format!("{name}.weight"), middle(if residual == 1 { 2.0 } else { 1.0 })));
                    weights.push((format!("{name}.bias"), vec![if layer == 1 { 1.0 } else { 0.0 }]));
                }
            }
            weights.push((format!("layers.{layer}.projection.weight"), vec![1.0]));
            weights.push((format!("layers.{layer}.projection.bias"), vec![0.0]));
        }
        let weights: Vec<(&str, &[f32])> =
            weights.iter().map(|(name, values)| (name.as_str(), &values[..])).collect();
        let build = |next_size: bool| {
            move |g: &mut Graph| {
                let large = g.constant(&[1, 1, 1, 3], vec![1.0, -2.0, 0.0])?;
                let small = g.constant(&[1, 1, 1, 1], vec![3.0])?;
                let fusion = FeatureFusion { width: 1, bias: true, batch_norm: false, next_size };
                Ok(fusion.forward(g, &Scope::root().scope("layers"), &[large, small])?.remove(0))
            }
        };
        // The small map is doubled by its residual layer.
        let names: Vec<_> =
            weights.iter().filter(|(name, _)| name.starts_with("layers.0")).copied().collect();
        let last = |next_size: bool| {
            move |g: &mut Graph| {
                let small = g.constant(&[1, 1, 1, 1], vec![3.0])?;
                let fusion = FeatureFusion { width: 1, bias: true, batch_norm: false, next_size };
                Ok(fusion.forward(g, &Scope::root().scope("layers"), &[small])?.remove(0))
            }
        };
        expect(&names, last(true), &[1, 1, 2, 2], &[6.0; 4]);
        expect(&weights, build(true), &[1, 1, 1, 3], &[6.0; 3]);
        expect(&weights, build(false), &[1, 1, 2, 2], &[6.0; 4]);
        let fused = |g: &mut Graph| {
            let large = g.constant(&[1, 1, 1, 3], vec![1.0, -2.0, 0.0])?;
            let small = g.constant(&[1, 1, 1, 1], vec![3.0])?;
            let fusion = FeatureFusion { width: 1, bias: true, batch_norm: false, next_size: true };
            Ok(fusion.forward(g, &Scope::root().scope("layers"), &[large, small])?.remove(1))
        };
        // Residuals of 1, -2 and 0 are 8, 1 and 3; with 6 that is 14, 7 and 9, and twice that and 2 the fused map, in two rows of six.
        let row = [30.0, 24.4, 18.8, 16.8, 18.4, 20.0];
        let twice: Vec<f32> = [row, row].concat();
        expect(&weights, fused, &[1, 1, 2, 6], &twice);
    }
}
