//! RWKV's blocks: tokens mixed with those before them, and attention that is a sum with decays.

use super::RecurrentLayer;
use crate::Result;
use crate::dims;
use crate::graph::{Dim, Graph, LinearAttention, Scope, Tensor, Unary};

/// Beyond this keys are cut off, so that the sum of their exponentials is finite.
const LARGEST_KEY: f32 = 70.0;

/// x `[batch, sequence, width]` one position later (`RwkvSelfAttention.time_shift`): first what the layer keeps as `what`, zeros before a
/// text.
///
/// # Errors
/// When x has not three axes.
pub fn time_shift(g: &mut Graph, x: &Tensor, layer: &RecurrentLayer<'_>, what: &str) -> Result<Tensor> {
    let width = x.dim(-1).and_then(Dim::fixed).unwrap_or_default();
    let past = layer.state(g, what, &[1, width])?;
    let whole = g.concat(&[&past, x], 1)?;
    let end = whole.shape()[1].clone();
    let last = g.slice_dims(&whole, 1, end.clone() - 1.into(), end.clone())?;
    let last = g.reshape(&last, past.shape().to_vec())?;
    layer.cache.keep_state(g, layer.index, what, &last)?;
    let shifted = g.slice_dims(&whole, 1, 0.into(), end - 1.into())?;
    g.reshape(&shifted, x.shape().to_vec())
}

/// Hidden states and those before them `[batch, sequence, hidden]`, mixed channel by channel by the weight `name` at `w`
/// (`time_mix_key`, …).
///
/// # Errors
/// When the shapes differ.
pub fn time_mix(g: &mut Graph, w: &Scope, name: &str, [x, shifted]: [&Tensor; 2]) -> Result<Tensor> {
    let width = x.dim(-1).and_then(Dim::fixed).unwrap_or_default();
    g.enter(w);
    let mix = g.weight(&w.name(name), &[1, 1, width])?;
    let change = g.sub(x, shifted)?;
    let change = g.mul(&change, &mix)?;
    g.add(shifted, &change)
}

/// RWKV's attention of keys and values `[batch, sequence, width]` (`rwkv_linear_attention`; Peng et al., 2023, arXiv:2305.13048): each channel's
/// mean of values by the exponentials of keys, which decay with `time_decay` but for the newest, which has the bonus `time_first`.
///
/// It is [`Graph::linear_attention`] over what is one position older, with two values for each channel: what is divided and by
/// what. The layer keeps `recurrent`, and the newest of both as `newest`.
///
/// # Errors
/// When the shapes differ.
pub fn wkv(g: &mut Graph, w: &Scope, [k, v]: [&Tensor; 2], layer: &RecurrentLayer<'_>) -> Result<Tensor> {
    let (batch, sequence) = (&k.shape()[0].clone(), &k.shape()[1].clone());
    let width = k.dim(-1).and_then(Dim::fixed).unwrap_or_default();
    g.enter(w);
    let k = g.clip(k, -LARGEST_KEY, LARGEST_KEY)?;
    let below = g.unary(Unary::Exp, &k);
    let above = g.mul(&below, v)?;
    let [one, other] = [g.unsqueeze(&above, 3)?, g.unsqueeze(&below, 3)?];
    let both = g.concat(&[&one, &other], 3)?;
    let both = g.reshape(&both, dims![batch, sequence, 2 * width])?;
    let older = time_shift(g, &both, layer, "newest")?;
    let decay = g.weight(&w.name("time_decay"), &[width])?;
    let decay = super::mamba::negative_exp(g, &decay);
    let decay = g.expand(&decay, dims![batch, sequence, width])?;
    let ones = g.full(dims![batch, sequence, width], 1.0)?;
    let q = g.full(dims![batch, sequence, 1], 1.0)?;
    let state = layer.state(g, "recurrent", &[width, 1, 2])?;
    let sums = LinearAttention {
        q: &q,
        k: &ones,
        v: &older,
        state: &state,
        decay: Some(&decay),
        beta: None,
        heads: width,
        query_heads: 1,
        scale: 1.0,
    };
    let sums = layer.attend(g, "recurrent", &sums)?;
    let bonus = g.weight(&w.name("time_first"), &[width])?;
    let bonus = g.unary(Unary::Exp, &bonus);
    let bonus = g.unsqueeze(&bonus, 1)?;
    let newest = g.reshape(&both, dims![batch, sequence, width, 2])?;
    let newest = g.mul(&newest, &bonus)?;
    let sums = g.reshape(&sums, dims![batch, sequence, width, 2])?;
    let sums = g.add(&sums, &newest)?;
    let [above, below] = [g.take(&sums, 3, 0)?, g.take(&sums, 3, 1)?];
    g.div(&above, &below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::expect;

    #[test]
    fn channels_are_mixed_with_those_before_them() {
        let weights: [(&str, &[f32]); 1] = [("time_mix_key", &[1.0, 0.25])];
        let build = |g: &mut Graph| {
            let x = g.constant(&[1, 1, 2], vec![8.0, 8.0])?;
            let shifted = g.constant(&[1, 1, 2], vec![4.0, 4.0])?;
            time_mix(g, &Scope::root(), "time_mix_key", [&x, &shifted])
        };
        expect(&weights, build, &[1, 1, 2], &[8.0, 5.0]);
    }
}
