//! Blocks of the mask decoders of promptable segmentation (Segment Anything, arXiv:2304.02643).

use super::{Activation, Mlp, MultiHead};
use crate::Result;
use crate::graph::{Graph, Scope, Tensor};

/// The two-way transformer of a mask decoder (`SamTwoWayTransformer`): tokens attend to each other and to the image, and the image
/// to the tokens.
#[derive(Clone, Copy, Debug)]
pub struct TwoWayTransformer<'a> {
    /// The number of layers.
    pub layers: usize,
    /// The number of heads.
    pub heads: usize,
    /// The width of tokens and image.
    pub width: usize,
    /// How much narrower the attention between tokens and image is.
    pub downsample: usize,
    /// The same of the attention behind all layers (`attention_downsample_rate`).
    pub last_downsample: usize,
    /// The intermediate size of the MLPs.
    pub mlp_width: usize,
    /// The activation function of the MLPs.
    pub act: Activation,
    /// The epsilon of the layers' norms.
    pub epsilon: f64,
    /// The name of attention's output projection.
    pub output: &'a str,
    /// The names of the MLP's projections, up and down.
    pub mlp: [&'a str; 2],
    /// Which tokens count, broadcast to `[batch, heads, positions, tokens]`: bool.
    pub mask: Option<&'a Tensor>,
}

impl TwoWayTransformer<'_> {
    /// Tokens `[batch, tokens, width]` and image `[batch, positions, width]` behind all layers; `positions` are the image's
    /// position embeddings, which broadcast to it.
    ///
    /// # Errors
    /// When the shapes do not fit.
    pub fn forward(
        &self,
        g: &mut Graph,
        w: &Scope,
        tokens: &Tensor,
        image: &Tensor,
        positions: &Tensor,
    ) -> Result<[Tensor; 2]> {
        let (mut queries, mut keys) = (tokens.clone(), image.clone());
        for index in 0..self.layers {
            let w = w.scope("layers").index(index);
            let own = w.scope("self_attn");
            if index == 0 {
                queries = self.attend(g, &own, 1, self.mask, [&queries, &queries, &queries])?;
            } else {
                let placed = g.add(&queries, tokens)?;
                let h = self.attend(g, &own, 1, self.mask, [&placed, &placed, &queries])?;
                queries = g.add(&queries, &h)?;
            }
            queries = g.layer_norm(&w.scope("layer_norm1"), &queries, self.epsilon)?;
            let rate = self.downsample;
            let (query, key) = (g.add(&queries, tokens)?, g.add(&keys, positions)?);
            let h =
                self.attend(g, &w.scope("cross_attn_token_to_image"), rate, None, [&query, &key, &keys])?;
            queries = g.add(&queries, &h)?;
            queries = g.layer_norm(&w.scope("layer_norm2"), &queries, self.epsilon)?;
            let [up, down] = self.mlp;
            let mlp = Mlp { up, down, width: self.mlp_width, act: self.act, bias: true };
            let h = mlp.forward(g, &w.scope("mlp"), &queries)?;
            queries = g.add(&queries, &h)?;
            queries = g.layer_norm(&w.scope("layer_norm3"), &queries, self.epsilon)?;
            let (query, key) = (g.add(&keys, positions)?, g.add(&queries, tokens)?);
            let back = w.scope("cross_attn_image_to_token");
            let h = self.attend(g, &back, self.downsample, self.mask, [&query, &key, &queries])?;
            keys = g.add(&keys, &h)?;
            keys = g.layer_norm(&w.scope("layer_norm4"), &keys, self.epsilon)?;
        }
        let last = w.scope("final_attn_token_to_image");
        let (query, key) = (g.add(&queries, tokens)?, g.add(&keys, positions)?);
        let h = self.attend(g, &last, self.last_downsample, None, [&query, &key, &keys])?;
        let queries = g.add(&queries, &h)?;
        Ok([g.layer_norm(&w.scope("layer_norm_final_attn"), &queries, 1e-5)?, keys])
    }

    fn attend(
        &self,
        g: &mut Graph,
        w: &Scope,
        downsample: usize,
        mask: Option<&Tensor>,
        inputs: [&Tensor; 3],
    ) -> Result<Tensor> {
        let attention = MultiHead {
            projections: ["q_proj", "k_proj", "v_proj", self.output],
            output_width: self.width,
            mask,
            ..MultiHead::new(self.heads, self.width / downsample.max(1))
        };
        attention.attend(g, w, inputs)
    }
}

/// The MLP of a mask decoder's heads (`SamFeedForward`): `proj_in`, `layers` and `proj_out`, of `depth` together, with ReLU between
/// them; x `[…, in]` to `[…, out]`.
///
/// # Errors
/// When the last axis of x has no fixed length.
pub fn mask_decoder_mlp(
    g: &mut Graph,
    w: &Scope,
    x: &Tensor,
    [hidden, out]: [usize; 2],
    depth: usize,
) -> Result<Tensor> {
    let h = g.linear(&w.scope("proj_in"), x, hidden)?;
    let mut h = g.activation(Activation::Relu, &h)?;
    for index in 0..depth.saturating_sub(2) {
        h = g.linear(&w.scope("layers").index(index), &h, hidden)?;
        h = g.activation(Activation::Relu, &h)?;
    }
    g.linear(&w.scope("proj_out"), &h, out)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{evaluate, expect};
    use super::*;
    use crate::graph::Binary;

    #[test]
    fn the_heads_mlp_has_relu_before_all_but_the_first_layer() {
        let weights: [(&str, &[f32]); 6] = [
            ("proj_in.weight", &[2.0]),
            ("proj_in.bias", &[1.0]),
            ("layers.0.weight", &[-1.0]),
            ("layers.0.bias", &[4.0]),
            ("proj_out.weight", &[3.0]),
            ("proj_out.bias", &[-20.0]),
        ];
        let build = |g: &mut Graph| {
            let x = g.constant(&[3, 1], vec![0.5, 3.0, -9.0])?;
            mask_decoder_mlp(g, &Scope::root(), &x, [1, 1], 3)
        };
        // 2, 7 and 0; then 2, 0 and 4.
        expect(&weights, build, &[3, 1], &[-14.0, -20.0, -8.0]);
    }

    /// What becomes of two tokens, of which the second does not count, in one layer where projections are the identity.
    fn tokens(second: [f32; 2]) -> Option<Vec<f32>> {
        let mut names: Vec<(String, Vec<f32>)> = vec![];
        let attentions = ["self_attn", "cross_attn_token_to_image", "cross_attn_image_to_token"];
        let attentions = attentions.map(|name| format!("layers.0.{name}"));
        for attention in attentions.into_iter().chain(["final_attn_token_to_image".to_owned()]) {
            for projection in ["q_proj", "k_proj", "v_proj", "o_proj"] {
                names.push((format!("{attention}.{projection}.weight"), vec![1.0, 0.0, 0.0, 1.0]));
                names.push((format!("{attention}.{projection}.bias"), vec![0.0, 0.5]));
            }
        }
        let norms =
            ["layers.0.layer_norm1", "layers.0.layer_norm2", "layers.0.layer_norm3", "layers.0.layer_norm4"];
        for norm in norms.into_iter().chain(["layer_norm_final_attn"]) {
            names.push((format!("{norm}.weight"), vec![1.0, 2.0]));
            names.push((format!("{norm}.bias"), vec![0.5, 0.0]));
        }
        for layer in ["up", "down"] {
            names.push((format!("layers.0.mlp.{layer}.weight"), vec![1.0, 0.0, 0.0, 1.0]));
            names.push((format!("layers.0.mlp.{layer}.bias"), vec![0.0; 2]));
        }
        let weights: Vec<_> = names.iter().map(|(name, values)| (name.as_str(), values.as_slice())).collect();
        let build = |g: &mut Graph| {
            let all = g.constant(&[1, 2, 2], [[1.0, -2.0], second].concat())?;
            let image = g.constant(&[1, 2, 2], vec![3.0, 1.0, -1.0, 4.0])?;
            let positions = g.constant(&[1, 2, 2], vec![0.1, 0.2, 0.3, 0.4])?;
            let [one, zero] = [g.scalar(1.0), g.scalar(0.0)];
            let counts = g.constant(&[1, 1, 1, 2], vec![1.0, 0.0])?;
            let mask = g.binary(Binary::Greater, &counts, &zero)?;
            let transformer = TwoWayTransformer {
                layers: 1,
                heads: 1,
                width: 2,
                downsample: 1,
                last_downsample: 1,
                mlp_width: 2,
                act: Activation::Relu,
                epsilon: 1e-6,
                output: "o_proj",
                mlp: ["up", "down"],
                mask: Some(&mask),
            };
            let [found, _] = transformer.forward(g, &Scope::root(), &all, &image, &positions)?;
            g.mul(&found, &one)
        };
        evaluate(&weights, build).map(|(_, values)| values)
    }

    #[test]
    fn tokens_that_do_not_count_are_seen_by_none() {
        let (Some(first), Some(other)) = (tokens([0.5, 3.0]), tokens([-7.0, 1.0])) else { return };
        assert!(
            (first[0] - other[0]).abs() < 1e-6 && (first[1] - other[1]).abs() < 1e-6,
            "{first:?} {other:?}"
        );
    }
}
