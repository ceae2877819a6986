//! Attention over text and image together, each with projections of its own (`FluxAttention`, `JointAttnProcessor2_0`; Esser et
//! al., 2024, arXiv:2403.03206).

use crate::Result;
use crate::graph::dims::BATCH;
use crate::graph::{Activation, Attention, Dim, Graph, Scope, Tensor};
use crate::nn::{Rotary, layer_norm_no_affine, norm_per_head, padding_mask};

/// Attention of a multimodal diffusion transformer: text first, then the image.
#[derive(Clone, Copy, Debug)]
pub struct JointAttention<'a> {
    /// The number of heads.
    pub heads: usize,
    /// The width of each.
    pub head_size: usize,
    /// Whether projections have biases.
    pub bias: bool,
    /// The normalisation of queries and keys, head by head; none where they are taken as they are.
    pub qk_norm: Option<QkNorm>,
    /// The rotary position embeddings of text and image together.
    pub rotary: Option<&'a Rotary>,
    /// The mask of text and image together, as [`Attention`] takes it.
    pub mask: Option<&'a Tensor>,
}

/// Normalisation of queries and keys, head by head, with its epsilon (`qk_norm`).
#[derive(Clone, Copy, Debug)]
pub enum QkNorm {
    /// RMS normalisation with weights (`rms_norm`).
    Rms(f64),
    /// Layer normalisation without weights (`fp32_layer_norm`, `layer_norm` without `elementwise_affine`).
    Layer(f64),
}

impl QkNorm {
    /// Queries or keys `[batch, positions, heads·size]` by the norm at `w`.
    fn forward(self, g: &mut Graph, w: &Scope, x: &Tensor, heads: usize) -> Result<Tensor> {
        norm_per_head(g, x, heads, |g, x| match self {
            Self::Rms(epsilon) => g.rms_norm(w, x, epsilon),
            Self::Layer(epsilon) => layer_norm_no_affine(g, x, epsilon),
        })
    }
}

/// The names of projections of queries, keys and values, and of the norms of queries and keys.
type Names<'a> = ([&'a str; 3], [&'a str; 2]);

const IMAGE: Names<'static> = (["to_q", "to_k", "to_v"], ["norm_q", "norm_k"]);
const TEXT: Names<'static> = (["add_q_proj", "add_k_proj", "add_v_proj"], ["norm_added_q", "norm_added_k"]);

impl JointAttention<'_> {
    /// Projections with biases; no normalisation of queries and keys, no rotary position embeddings, no mask.
    pub fn new(heads: usize, head_size: usize) -> Self {
        Self { heads, head_size, bias: true, qk_norm: None, rotary: None, mask: None }
    }

    /// The width of all heads together.
    pub fn width(&self) -> usize {
        self.heads * self.head_size
    }

    fn project(
        &self,
        g: &mut Graph,
        w: &Scope,
        x: &Tensor,
        (names, norms): Names<'_>,
    ) -> Result<[Tensor; 3]> {
        let mut projected = [x.clone(), x.clone(), x.clone()];
        for (place, name) in projected.iter_mut().zip(names) {
            *place = g.linear_biased(&w.scope(name), x, self.width(), self.bias)?;
        }
        self.normed(g, w, projected, norms)
    }

    fn normed(
        &self,
        g: &mut Graph,
        w: &Scope,
        mut projected: [Tensor; 3],
        norms: [&str; 2],
    ) -> Result<[Tensor; 3]> {
        if let Some(norm) = self.qk_norm {
            for (place, name) in projected.iter_mut().zip(norms) {
                *place = norm.forward(g, &w.scope(name), place, self.heads)?;
            }
        }
        Ok(projected)
    }

    /// Attention of queries, keys and values that are projected already, each `[batch, positions, heads·head_size]`, to the same
    /// shape: normalised by `norm_q` and `norm_k` at `w` and rotated, without a projection of the result.
    ///
    /// # Errors
    /// As [`JointAttention::alone`].
    pub fn projected(&self, g: &mut Graph, w: &Scope, qkv: [Tensor; 3]) -> Result<Tensor> {
        let qkv = self.normed(g, w, qkv, IMAGE.1)?;
        self.attend(g, w, qkv)
    }

    fn attend(&self, g: &mut Graph, w: &Scope, [q, k, v]: [Tensor; 3]) -> Result<Tensor> {
        g.enter(w);
        let heads = self.heads;
        let (q, k) = match self.rotary {
            Some(rotary) => rotary.apply_qk(g, [&q, &k], [heads, heads])?,
            None => (q, k),
        };
        let options = Attention { heads, kv_heads: heads, mask: self.mask, ..Attention::default() };
        g.attention(&q, &k, &v, &options)
    }

    /// Self-attention of x `[batch, positions, …]` to `[batch, positions, heads·head_size]`, without a projection of the result.
    ///
    /// # Errors
    /// When the last axis of x has no fixed length, or the rotary position embeddings do not fit.
    pub fn alone(&self, g: &mut Graph, w: &Scope, x: &Tensor) -> Result<Tensor> {
        let projected = self.project(g, w, x, IMAGE)?;
        self.attend(g, w, projected)
    }

    /// Attention of text and image together, each projected back: `[batch, positions, width]` of the text, where `to_add_out` is
    /// there, and of the image.
    ///
    /// # Errors
    /// As [`JointAttention::alone`].
    pub fn forward(
        &self,
        g: &mut Graph,
        w: &Scope,
        [text, image]: [&Tensor; 2],
        projects_text: bool,
    ) -> Result<(Option<Tensor>, Tensor)> {
        let of_text = self.project(g, w, text, TEXT)?;
        let of_image = self.project(g, w, image, IMAGE)?;
        let mut joined = of_text.clone();
        for (index, place) in joined.iter_mut().enumerate() {
            *place = g.concat(&[&of_text[index], &of_image[index]], 1)?;
        }
        let h = self.attend(g, w, joined)?;
        let (words, positions) = (text.shape()[1].clone(), h.shape()[1].clone());
        let image = g.slice_dims(&h, 1, words.clone(), positions)?;
        let image = g.linear_biased(&w.scope("to_out.0"), &image, self.width(), self.bias)?;
        if !projects_text {
            return Ok((None, image));
        }
        let text = g.slice_dims(&h, 1, Dim::Fixed(0), words)?;
        Ok((Some(g.linear_biased(&w.scope("to_add_out"), &text, self.width(), self.bias)?), image))
    }
}

/// Feed-forward layer of two linear layers, four times as wide between them (`FeedForward` without a gate): x `[…, width]` to the
/// same shape.
///
/// # Errors
/// When the last axis of x has no fixed length.
pub fn plain_feed_forward(g: &mut Graph, w: &Scope, x: &Tensor, act: Activation) -> Result<Tensor> {
    let width = x.dim(-1).and_then(Dim::fixed).unwrap_or_default();
    let h = g.linear(&w.scope("net.0.proj"), x, 4 * width)?;
    let h = g.activation(act, &h)?;
    g.linear(&w.scope("net.2"), &h, width)
}

/// What text and image together see: `mask` `[batch, words]` i64, 1 for tokens of the text and 0 for padding, and all positions of the
/// image after it, to bool `[batch, 1, 1, words + positions]`.
///
/// # Errors
/// When the mask has not two axes.
pub fn joint_mask(g: &mut Graph, mask: &Tensor, positions: &Dim) -> Result<Tensor> {
    let ones = g.full(crate::dims![mask.shape()[0].clone(), positions], 1.0)?;
    let ones = g.cast(&ones, crate::Dtype::I64);
    let both = g.concat(&[mask, &ones], 1)?;
    padding_mask(g, &both)
}

/// Rotary position embeddings of text and image together (`FluxPosEmbed`): from `txt_ids` and `img_ids` `[positions, axes]` i64, as
/// [`axial_rotary`].
///
/// # Errors
/// As [`axial_rotary`].
pub fn joint_rotary(g: &mut Graph, ids: [&Tensor; 2], dims: &[usize], theta: f64) -> Result<Rotary> {
    let ids = g.concat(&ids, 0)?;
    let ids = g.transpose(&ids, &[1, 0])?;
    let ids = g.unsqueeze(&ids, 1)?;
    let shape = crate::dims![dims.len(), BATCH, ids.shape()[2].clone()];
    let ids = g.expand(&ids, shape)?;
    axial_rotary(g, &ids, dims, theta)
}

/// Rotary position embeddings of neighbouring pairs along several axes (`FluxPosEmbed`): from ids `[axes, batch, positions]` i64, of
/// which each turns as much of a head as `dims` says.
///
/// # Errors
/// When the ids have not as many axes, or a number of dimensions is odd.
pub fn axial_rotary(g: &mut Graph, ids: &Tensor, dims: &[usize], theta: f64) -> Result<Rotary> {
    if let Some(odd) = dims.iter().find(|dim| !dim.is_multiple_of(2)) {
        return Err(g.error("RotaryEmbedding", format!("pairs are turned, but an axis has {odd} dimensions")));
    }
    let (mut frequencies, mut axes) = (vec![], vec![]);
    for (axis, &dim) in dims.iter().enumerate() {
        frequencies.extend((0..dim / 2).map(|pair| theta.powf(-2.0 * pair as f64 / dim as f64) as f32));
        axes.resize(frequencies.len(), axis);
    }
    Ok(Rotary::by_axes(g, ids, &frequencies, &axes, 1.0)?.interleaved())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::expect;

    #[test]
    fn the_image_sees_the_text() {
        let build = |projects_text: bool| {
            move |g: &mut Graph| {
                let text = g.constant(&[1, 1, 1], vec![1.0])?;
                let image = g.constant(&[1, 1, 1], vec![2.0])?;
                let attention = JointAttention::new(1, 1);
                let w = Scope::root().scope("a");
                let (seen, image) = attention.forward(g, &w, [&text, &image], projects_text)?;
                Ok(seen.unwrap_or(image))
            }
        };
        // Scores are equal, so that both get the mean of the values 3 and 14.
        let named = |name: &str| {
            let values: [f32; 2] = match name {
                "add_v_proj" => [3.0, 0.0],
                "to_v" => [6.0, 2.0],
                "to_out.0" => [10.0, 1.0],
                "to_add_out" => [100.0, 2.0],
                _ => [0.0, 0.0],
            };
            [(format!("a.{name}.weight"), vec![values[0]]), (format!("a.{name}.bias"), vec![values[1]])]
        };
        let names = ["to_q", "to_k", "to_v", "add_q_proj", "add_k_proj", "add_v_proj", "to_out.0"];
        let weights: Vec<_> = names.into_iter().flat_map(named).collect();
        let image: Vec<_> = weights.iter().map(|(name, values)| (name.as_str(), &values[..])).collect();
        expect(&image, build(false), &[1, 1, 1], &[86.0]);
        let mut weights = weights;
        weights.extend(named("to_add_out"));
        let text: Vec<_> = weights.iter().map(|(name, values)| (name.as_str(), &values[..])).collect();
        expect(&text, build(true), &[1, 1, 1], &[852.0]);
    }

    #[test]
    fn heads_are_normalised_apart_and_masked() {
        // Two heads of two channels: each is normed to (-1, 1), so that scores are 2/√2 of the first position and -2/√2 of the
        // second, which the mask leaves out.
        let build = |g: &mut Graph| {
            let q = g.constant(&[1, 1, 4], vec![3.0, 5.0, 10.0, 30.0])?;
            let k = g.constant(&[1, 2, 4], vec![1.0, 2.0, 0.0, 7.0, 2.0, 1.0, 7.0, 0.0])?;
            let v = g.constant(&[1, 2, 4], vec![1.0, 2.0, 3.0, 4.0, 9.0, 9.0, 9.0, 9.0])?;
            let seen = g.integers(&[1, 1, 1, 2], vec![1, 0])?;
            let mask = g.cast(&seen, crate::Dtype::Bool);
            let attention = JointAttention {
                qk_norm: Some(QkNorm::Layer(0.0)),
                mask: Some(&mask),
                ..JointAttention::new(2, 2)
            };
            attention.projected(g, &Scope::root(), [q, k, v])
        };
        expect(&[], build, &[1, 1, 4], &[1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn all_of_the_image_is_seen() {
        let build = |g: &mut Graph| {
            let mask = g.integers(&[2, 2], vec![1, 1, 1, 0])?;
            joint_mask(g, &mask, &Dim::Fixed(1))
        };
        expect(&[], build, &[2, 1, 1, 3], &[1.0, 1.0, 1.0, 1.0, 0.0, 1.0]);
    }

    #[test]
    fn axes_turn_pairs_of_their_own() {
        let build = |g: &mut Graph| {
            let ids = g.integers(&[2, 1, 1], vec![1, 2])?;
            let rotary = axial_rotary(g, &ids, &[2, 2], 10_000.0)?;
            let x = g.constant(&[1, 1, 4], vec![1.0, 0.0, 0.0, 1.0])?;
            rotary.apply(g, &x, 1)
        };
        let (one, two) = (1.0_f32, 2.0_f32);
        expect(&[], build, &[1, 1, 4], &[one.cos(), one.sin(), -two.sin(), two.cos()]);
        let problem = crate::nn::testing::refusal(|g| {
            let ids = g.integers(&[1, 1, 1], vec![1])?;
            axial_rotary(g, &ids, &[3], 10_000.0).and_then(|rotary| rotary.apply(g, &ids, 1))
        });
        assert!(problem.contains("an axis has 3 dimensions"), "{problem}");
    }

    #[test]
    fn an_activation_function_stands_between_two_wide_layers() {
        let build = |g: &mut Graph| {
            let x = g.constant(&[1, 1, 1], vec![2.0])?;
            plain_feed_forward(g, &Scope::root().scope("ff"), &x, Activation::Relu)
        };
        let weights: [(&str, &[f32]); 4] = [
            ("ff.net.0.proj.weight", &[1.0, -1.0, 0.0, 2.0]),
            ("ff.net.0.proj.bias", &[0.0, 0.0, 1.0, 0.0]),
            ("ff.net.2.weight", &[1.0, 100.0, 10.0, 1.0]),
            ("ff.net.2.bias", &[0.5]),
        ];
        expect(&weights, build, &[1, 1, 1], &[16.5]);
    }
}
