//! The recurrent block of Griffin: a causal convolution and a real-gated linear recurrent unit (RG-LRU).

use super::{CausalConv, RecurrentLayer, grouped_linear};
use crate::dims;
use crate::graph::{Activation, Binary, Dim, Graph, LinearAttention, Scope, Tensor, Unary};
use crate::{Dtype, Result};

/// What the logarithm of a decay is where a text begins: all but nothing is left.
const FORGOTTEN: f32 = -30.0;

/// The scale of embeddings, √`hidden_size` in bfloat16 whatever weights are in (`RecurrentGemmaModel.normalizer`).
pub fn bfloat16_normalizer(hidden_size: usize) -> f64 {
    half::bf16::from_f64((hidden_size as f64).sqrt()).to_f64()
}

/// The recurrent block of Griffin (`RecurrentGemmaRecurrentBlock`, `RecurrentGemmaRglru`; De et al., 2024, arXiv:2402.19427).
///
/// Its recurrence is [`Graph::linear_attention`] with a head for each channel, of which the key and the query are 1, and the value
/// the gated input; the logarithms of decays are `-8·σ(gate)·softplus(recurrent_param)`.
#[derive(Clone, Copy, Debug)]
pub struct RgLru {
    /// Channels of the recurrence (`lru_width`).
    pub width: usize,
    /// Blocks of channels with gates of their own (`num_attention_heads`).
    pub heads: usize,
    /// The length of the convolution's kernel (`conv1d_width`).
    pub kernel: usize,
    /// The activation function of the gate beside the recurrence.
    pub act: Activation,
}

impl RgLru {
    /// x `[batch, sequence, hidden]`, mixed over time, by the weights at `w`; where `position_ids` `[batch, sequence]` are 0 a
    /// text begins. The layer's states are `conv` and `recurrent`.
    ///
    /// # Errors
    /// When the shapes do not go together.
    pub fn forward(
        &self,
        g: &mut Graph,
        w: &Scope,
        x: &Tensor,
        position_ids: &Tensor,
        layer: &RecurrentLayer<'_>,
    ) -> Result<Tensor> {
        let hidden = x.dim(-1).and_then(Dim::fixed).unwrap_or_default();
        let gate = g.linear(&w.scope("linear_y"), x, self.width)?;
        let gate = g.activation(self.act, &gate)?;
        let x = g.linear(&w.scope("linear_x"), x, self.width)?;
        let conv = CausalConv { kernel: self.kernel, bias: true, act: None };
        let x = conv.forward(g, &w.scope("conv_1d"), &x, layer, "conv")?;
        let past = layer.state(g, "recurrent", &[self.width, 1, 1])?;
        let (y, state) = self.recur(g, &w.scope("rg_lru"), &x, position_ids, &past)?;
        layer.cache.keep_state(g, layer.index, "recurrent", &state)?;
        let y = g.mul(&y, &gate)?;
        g.linear(&w.scope("linear_out"), &y, hidden)
    }

    /// The recurrence over x `[batch, sequence, width]` behind a state `[batch, width, 1, 1]`, and the state behind the last
    /// position.
    fn recur(
        &self,
        g: &mut Graph,
        w: &Scope,
        x: &Tensor,
        position_ids: &Tensor,
        state: &Tensor,
    ) -> Result<(Tensor, Tensor)> {
        g.enter(w);
        let zero = g.integer(0);
        let begins = g.binary(Binary::Equal, position_ids, &zero)?;
        let begins = g.unsqueeze(&begins, 2)?;
        let rate = g.weight(&w.name("recurrent_param"), &[self.width])?;
        let rate = g.unary(Unary::Softplus, &rate);
        let decay = self.gate(g, w, "recurrent_gate", x)?;
        let decay = g.mul(&decay, &rate)?;
        let decay = g.scale(&decay, -8.0)?;

        // 1 − a² by which inputs are scaled, but for the first of a text.
        let square = g.scale(&decay, 2.0)?;
        let square = g.unary(Unary::Exp, &square);
        let one = g.number(Dtype::F32, 1.0);
        let rest = g.sub(&one, &square)?;
        let rest = g.unary(Unary::Sqrt, &rest);
        let rest = g.select(&begins, &one, &rest)?;
        let input = self.gate(g, w, "input_gate", x)?;
        let input = g.mul(&input, x)?;
        let input = g.mul(&input, &rest)?;

        let forgotten = g.number(Dtype::F32, FORGOTTEN);
        let decay = g.select(&begins, &forgotten, &decay)?;
        let k = g.full(x.shape().to_vec(), 1.0)?;
        let q = g.full(dims![&x.shape()[0], &x.shape()[1], 1], 1.0)?;
        let unit = LinearAttention {
            q: &q,
            k: &k,
            v: &input,
            state,
            decay: Some(&decay),
            beta: None,
            heads: self.width,
            query_heads: 1,
            scale: 1.0,
        };
        g.linear_attention(&unit)
    }

    /// A gate: the sigmoid of a linear layer of each block of channels, whose weight is `[heads, in, out]`.
    fn gate(&self, g: &mut Graph, w: &Scope, name: &str, x: &Tensor) -> Result<Tensor> {
        let size = self.width / self.heads.max(1);
        let weight = g.weight(&w.name(&format!("{name}_weight")), &[self.heads, size, size])?;
        let bias = g.weight(&w.name(&format!("{name}_bias")), &[self.heads, size])?;
        let h = grouped_linear(g, x, &weight)?;
        let bias = g.reshape(&bias, dims![self.width])?;
        let h = g.add(&h, &bias)?;
        Ok(g.unary(Unary::Sigmoid, &h))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::expect;

    const UNIT: RgLru = RgLru { width: 2, heads: 1, kernel: 1, act: Activation::Linear };

    #[test]
    fn scales_have_eight_bits() {
        assert_eq!(bfloat16_normalizer(2560), 50.5);
        assert_eq!(bfloat16_normalizer(32), 5.65625);
    }

    #[test]
    fn inputs_are_gated_and_texts_begin_anew() {
        // Gates are σ(0), a half. With softplus(p) = ln 2, a is exp(-4·ln 2), 1/16, and the root of 1 − 1/256 is 0.998045.
        let log = 2.0_f32.ln();
        let param = (log.exp() - 1.0).ln();
        let weights: [(&str, &[f32]); 5] = [
            ("recurrent_param", &[param, param]),
            ("recurrent_gate_weight", &[0.0; 4]),
            ("recurrent_gate_bias", &[0.0; 2]),
            ("input_gate_weight", &[0.0; 4]),
            ("input_gate_bias", &[0.0; 2]),
        ];
        let build = |keeps_state: bool| {
            move |g: &mut Graph| {
                let x = g.constant(&[1, 3, 2], vec![2.0, 4.0, 2.0, 4.0, 6.0, 8.0])?;
                let ids = g.constant(&[1, 3], vec![7.0, 8.0, 0.0])?;
                let ids = g.cast(&ids, Dtype::I64);
                let state = g.constant(&[1, 2, 1, 1], vec![16.0, 32.0])?;
                let (y, state) = UNIT.recur(g, &Scope::root(), &x, &ids, &state)?;
                Ok(if keeps_state { state } else { y })
            }
        };
        let root = (1.0_f32 - 1.0 / 256.0).sqrt();
        let first = [1.0 + root, 2.0 + 2.0 * root];
        let second = [first[0] / 16.0 + root, first[1] / 16.0 + 2.0 * root];
        let want = [first[0], first[1], second[0], second[1], 3.0, 4.0];
        expect(&weights, build(false), &[1, 3, 2], &want);
        expect(&weights, build(true), &[1, 2, 1, 1], &[3.0, 4.0]);
    }

    #[test]
    fn gates_go_over_blocks_of_channels() {
        let unit = RgLru { heads: 2, ..UNIT };
        let build = |g: &mut Graph| {
            let x = g.constant(&[1, 1, 2], vec![2.0, 3.0])?;
            unit.gate(g, &Scope::root(), "input_gate", &x)
        };
        let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
        let weights: [(&str, &[f32]); 2] =
            [("input_gate_weight", &[0.5, -1.0]), ("input_gate_bias", &[1.0, 0.0])];
        expect(&weights, build, &[1, 1, 2], &[sigmoid(2.0), sigmoid(-3.0)]);
    }
}
