//! Splitting and merging heads, splitting fused projections, clipping and soft-capping.

use crate::Result;
use crate::graph::{Dim, Graph, Tensor, show};

/// Splits heads: `[batch, sequence, heads·size]` to `[batch, sequence, heads, size]`.
///
/// # Errors
/// When the width is not a multiple of the heads.
pub fn split_heads(g: &mut Graph, x: &Tensor, heads: usize) -> Result<Tensor> {
    let ([batch, sequence, width], true) = (x.shape(), heads > 0) else {
        return Err(g.error("split_heads", format!("{} into {heads} heads", show(x.shape()))));
    };
    let size = width.fixed().unwrap_or_default() / heads;
    g.reshape(x, crate::dims![batch, sequence, heads, size])
}

/// Merges heads: `[batch, sequence, heads, size]` to `[batch, sequence, heads·size]`.
///
/// # Errors
/// When there are not four axes.
pub fn merge_heads(g: &mut Graph, x: &Tensor) -> Result<Tensor> {
    g.flatten(x, 2..4)
}

/// Normalisation of queries or keys head by head (`q_norm` of `Qwen3Attention`): x `[batch, sequence, heads·size]` by `norm`,
/// which gets `[batch, sequence, heads, size]`.
///
/// # Errors
/// When the width is not a multiple of the heads, or `norm` fails.
pub fn norm_per_head(
    g: &mut Graph,
    x: &Tensor,
    heads: usize,
    norm: impl FnOnce(&mut Graph, &Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let x = split_heads(g, x, heads)?;
    let x = norm(g, &x)?;
    merge_heads(g, &x)
}

/// Heads times a number each: x `[batch, sequence, heads·size]` and gates `[batch, sequence, heads]` to the shape of x.
///
/// # Errors
/// When the width is no multiple of the heads.
pub fn gate_heads(g: &mut Graph, x: &Tensor, gate: &Tensor, heads: usize) -> Result<Tensor> {
    let gate = g.unsqueeze(gate, 3)?;
    let x = split_heads(g, x, heads)?;
    let x = g.mul(&x, &gate)?;
    merge_heads(g, &x)
}

/// Grouped linear layer without bias (`ConvBertModel`'s `GroupedLinearLayer`): x `[batch, sequence, groups·in]` and the
/// weight `[groups, in, out]` to `[batch, sequence, groups·out]`.
///
/// # Errors
/// When the shapes do not go together.
pub fn grouped_linear(g: &mut Graph, x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let groups = weight.dim(0).and_then(Dim::fixed).unwrap_or_default();
    let h = split_heads(g, x, groups)?;
    let h = g.transpose(&h, &[0, 2, 1, 3])?;
    let h = g.matmul(&h, weight)?;
    let h = g.transpose(&h, &[0, 2, 1, 3])?;
    merge_heads(g, &h)
}

/// Splits the last axis into these widths (`torch.split`).
///
/// # Errors
/// When they do not add up to it.
pub fn split_last<const N: usize>(g: &mut Graph, x: &Tensor, sizes: [usize; N]) -> Result<[Tensor; N]> {
    if x.dim(-1).and_then(Dim::fixed) != Some(sizes.iter().sum()) {
        return Err(g.error("split_last", format!("{} into {sizes:?} along its last axis", show(x.shape()))));
    }
    let parts = g.split(x, x.rank() - 1, &sizes)?;
    parts.try_into().map_err(|_| g.error("split_last", format!("{} into {sizes:?}", show(x.shape()))))
}

/// Clips queries, keys and values to `-most..=most`, where that is given (`clip_qkv` of OLMo, DBRX and MPT).
///
/// # Errors
/// When they are not floating point.
pub fn clip_qkv<const N: usize>(g: &mut Graph, x: [Tensor; N], most: Option<f64>) -> Result<[Tensor; N]> {
    let Some(most) = most else { return Ok(x) };
    let clipped = x.iter().map(|x| g.clip(x, -most as f32, most as f32)).collect::<Result<Vec<_>>>()?;
    clipped.try_into().map_err(|_| g.error("clip_qkv", "too few"))
}

/// Soft cap (`attn_logit_softcapping`, `final_logit_softcapping`): `most · tanh(x / most)`, where that is given.
///
/// # Errors
/// When x is not floating point.
pub fn softcap(g: &mut Graph, x: &Tensor, most: Option<f64>) -> Result<Tensor> {
    let Some(most) = most else { return Ok(x.clone()) };
    let x = g.scale(x, most.recip())?;
    let x = g.tanh(&x);
    g.scale(&x, most)
}

/// Splits a fused projection that is interleaved by key/value head (`FalconAttention._split_heads`, `InternLM2`'s `wqkv`): for
/// each the queries that share it, its key and its value.
/// `[batch, sequence, (heads + 2·kv_heads)·size]` to three of `[batch, sequence, …·size]`.
///
/// # Errors
/// When the width is not a multiple of the heads.
pub fn split_qkv_groups(g: &mut Graph, x: &Tensor, heads: usize, kv_heads: usize) -> Result<[Tensor; 3]> {
    let x = split_heads(g, x, kv_heads)?;
    let shared = heads / kv_heads.max(1);
    let size = x.dim(-1).and_then(Dim::fixed).unwrap_or_default() / (shared + 2);
    let [q, k, v] = split_last(g, &x, [shared * size, size, size])?;
    Ok([merge_heads(g, &q)?, merge_heads(g, &k)?, merge_heads(g, &v)?])
}

#[cfg(test)]
mod tests;
