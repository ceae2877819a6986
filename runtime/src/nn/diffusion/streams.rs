//! Double and single stream blocks of multimodal diffusion transformers (`FluxTransformerBlock`, `FluxSingleTransformerBlock`).

use super::{JointAttention, gated_residual, modulated_norm};
use crate::Result;
use crate::graph::{Graph, Scope, Tensor};

/// Block of text and image with weights of their own, which see each other (`FluxTransformerBlock`, `QwenImageTransformerBlock`).
#[derive(Clone, Copy, Debug)]
pub struct DoubleStream<'a> {
    /// The attention over both, at `attn`.
    pub attention: JointAttention<'a>,
    /// The scopes of the feed-forward layers of text and image.
    pub feed_forward: [&'a str; 2],
    /// The epsilon of the norms.
    pub eps: f64,
}

impl DoubleStream<'_> {
    /// The block with weights at `w`: text and image `[batch, positions, width]`, each with its shift, scale and gate of attention
    /// and of the feed-forward layer `[batch, 1, width]`, to the same shapes.
    ///
    /// # Errors
    /// When the shapes do not go together.
    pub fn forward(
        &self,
        g: &mut Graph,
        w: &Scope,
        [text, image]: [&Tensor; 2],
        [of_text, of_image]: [&[Tensor; 6]; 2],
        feed_forward: impl Fn(&mut Graph, &Scope, &Tensor) -> Result<Tensor>,
    ) -> Result<[Tensor; 2]> {
        let seen_text = modulated_norm(g, text, &of_text[0], &of_text[1], self.eps)?;
        let seen_image = modulated_norm(g, image, &of_image[0], &of_image[1], self.eps)?;
        let seen = [&seen_text, &seen_image];
        let (h_text, h_image) = self.attention.forward(g, &w.scope("attn"), seen, true)?;
        let text = match h_text {
            Some(h) => gated_residual(g, text, &of_text[2], &h)?,
            None => text.clone(),
        };
        let image = gated_residual(g, image, &of_image[2], &h_image)?;
        let [of_words, of_patches] = self.feed_forward.map(|name| w.scope(name));
        Ok([
            modulated_feed_forward(g, &of_words, &text, &of_text[3..], self.eps, &feed_forward)?,
            modulated_feed_forward(g, &of_patches, &image, &of_image[3..], self.eps, &feed_forward)?,
        ])
    }
}

/// A feed-forward layer between a shift, a scale and a gate, the `modulation`: x `[batch, positions, width]` to the same shape.
///
/// # Errors
/// When the modulation is not these three, or the shapes do not go together.
pub fn modulated_feed_forward(
    g: &mut Graph,
    w: &Scope,
    x: &Tensor,
    modulation: &[Tensor],
    eps: f64,
    feed_forward: impl Fn(&mut Graph, &Scope, &Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let [shift, scale, gate] = modulation else {
        return Err(g.error("FeedForward", "a shift, a scale and a gate are needed"));
    };
    let h = modulated_norm(g, x, shift, scale, eps)?;
    let h = feed_forward(g, w, &h)?;
    gated_residual(g, x, gate, &h)
}

/// Block of text and image in one, whose attention and MLP stand side by side (`FluxSingleTransformerBlock`): x
/// `[batch, positions, width]`, with its shift, scale and gate `[batch, 1, width]`, to the same shape. `mlp` is what the weights at
/// `proj_mlp` make of x.
///
/// # Errors
/// When the shapes do not go together.
pub fn single_stream(
    g: &mut Graph,
    w: &Scope,
    x: &Tensor,
    [shift, scale, gate]: &[Tensor; 3],
    (attention, eps): (&JointAttention<'_>, f64),
    mlp: impl Fn(&mut Graph, &Scope, &Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let h = modulated_norm(g, x, shift, scale, eps)?;
    let wide = mlp(g, &w.scope("proj_mlp"), &h)?;
    let seen = attention.alone(g, &w.scope("attn"), &h)?;
    let h = g.concat(&[&seen, &wide], 2)?;
    let h = g.linear(&w.scope("proj_out"), &h, attention.width())?;
    gated_residual(g, x, gate, &h)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::{expect, refusal};

    /// Numbers of one channel.
    fn numbers<const N: usize>(g: &mut Graph, values: [f32; N]) -> Result<[Tensor; N]> {
        let mut made = [(); N].map(|()| g.scalar(0.0));
        for (place, value) in made.iter_mut().zip(values) {
            *place = g.constant(&[1, 1, 1], vec![value])?;
        }
        Ok(made)
    }

    /// The norm of one channel is 0, so that what is seen is the shift.
    #[test]
    fn attention_and_mlp_stand_side_by_side() {
        let build = |g: &mut Graph| {
            let [x] = numbers(g, [5.0])?;
            let modulation = numbers(g, [2.0, 7.0, 10.0])?;
            let attention = JointAttention::new(1, 1);
            let mlp = |g: &mut Graph, w: &Scope, x: &Tensor| g.linear(w, x, 1);
            single_stream(g, &Scope::root().scope("s"), &x, &modulation, (&attention, 1e-6), mlp)
        };
        let weights: [(&str, &[f32]); 10] = [
            ("s.attn.to_q.weight", &[0.0]),
            ("s.attn.to_q.bias", &[0.0]),
            ("s.attn.to_k.weight", &[0.0]),
            ("s.attn.to_k.bias", &[0.0]),
            ("s.attn.to_v.weight", &[3.0]),
            ("s.attn.to_v.bias", &[0.0]),
            ("s.proj_mlp.weight", &[4.0]),
            ("s.proj_mlp.bias", &[0.0]),
            ("s.proj_out.weight", &[1.0, 100.0]),
            ("s.proj_out.bias", &[0.5]),
        ];
        // The values 6 and, by the MLP, 8: 6 + 800.5, ten times, and x.
        expect(&weights, build, &[1, 1, 1], &[8070.0]);
    }

    #[test]
    fn each_stream_has_its_feed_forward_layer() {
        let build = |image: usize| {
            move |g: &mut Graph| {
                let [text, picture] = numbers(g, [1.0, 2.0])?;
                let of_text = numbers(g, [0.0, 0.0, 0.0, 1.0, 0.0, 1.0])?;
                let of_image = numbers(g, [0.0, 0.0, 0.0, 2.0, 0.0, 1.0])?;
                let block = DoubleStream {
                    attention: JointAttention { bias: false, ..JointAttention::new(1, 1) },
                    feed_forward: ["words", "patches"],
                    eps: 1e-6,
                };
                let feed_forward = |g: &mut Graph, w: &Scope, x: &Tensor| g.linear_no_bias(w, x, 1);
                let w = Scope::root().scope("b");
                let streams = [&text, &picture];
                let both = block.forward(g, &w, streams, [&of_text, &of_image], feed_forward)?;
                Ok(both[image].clone())
            }
        };
        let attention =
            ["to_q", "to_k", "to_v", "to_out.0", "add_q_proj", "add_k_proj", "add_v_proj", "to_add_out"];
        let names = attention.map(|name| format!("b.attn.{name}.weight"));
        let mut weights: Vec<(&str, &[f32])> = names.iter().map(|name| (name.as_str(), &[1.0][..])).collect();
        weights.extend([("b.words.weight", &[10.0][..]), ("b.patches.weight", &[100.0][..])]);
        expect(&weights, build(0), &[1, 1, 1], &[1.0 + 10.0]);
        expect(&weights, build(1), &[1, 1, 1], &[2.0 + 200.0]);
    }

    #[test]
    fn three_parts_modulate_a_feed_forward_layer() {
        let problem = refusal(|g| {
            let [x] = numbers(g, [1.0])?;
            let same = |_: &mut Graph, _: &Scope, x: &Tensor| Ok(x.clone());
            modulated_feed_forward(g, &Scope::root(), &x, std::slice::from_ref(&x), 1e-6, same)
        });
        insta::assert_snapshot!(problem, @"FeedForward in the root: a shift, a scale and a gate are needed");
    }
}
