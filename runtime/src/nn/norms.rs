//! Variants of layer norm and RMS norm: zero-centred weights, no affine parameters, weights by head.

use crate::Result;
use crate::graph::{Graph, Op, Scope, Tensor, show};

/// RMS norm with zero-centred weights, `1 + weight` (`GemmaRMSNorm`).
///
/// # Errors
/// When the last axis has no fixed length; so for all of them.
pub fn rms_norm_offset(g: &mut Graph, w: &Scope, x: &Tensor, epsilon: f64) -> Result<Tensor> {
    let scale = offset(g, w, x)?;
    Ok(g.node(Op::RmsNorm { epsilon }, &[x, &scale], x.dtype(), x.shape().to_vec()))
}

/// RMS norm where its epsilon is given, and layer norm without bias elsewhere (`Cohere2MoeDecoderLayer`).
///
/// # Errors
/// As [`rms_norm_offset`].
pub fn rms_or_layer_norm(
    g: &mut Graph,
    w: &Scope,
    x: &Tensor,
    rms_norm_eps: Option<f64>,
    layer_norm_eps: f64,
) -> Result<Tensor> {
    match rms_norm_eps {
        Some(epsilon) => g.rms_norm(w, x, epsilon),
        None => g.layer_norm_biased(w, x, layer_norm_eps, false),
    }
}

/// RMS norm without affine parameters.
///
/// # Errors
/// As [`rms_norm_offset`].
pub fn rms_norm_no_affine(g: &mut Graph, x: &Tensor, epsilon: f64) -> Result<Tensor> {
    let scale = ones(g, x)?;
    Ok(g.node(Op::RmsNorm { epsilon }, &[x, &scale], x.dtype(), x.shape().to_vec()))
}

/// Layer norm with zero-centred weights, `1 + weight`, and `bias` (`NemotronLayerNorm1P`).
///
/// # Errors
/// As [`rms_norm_offset`].
pub fn layer_norm_offset(g: &mut Graph, w: &Scope, x: &Tensor, epsilon: f64) -> Result<Tensor> {
    let scale = offset(g, w, x)?;
    let width = width(g, x)?;
    let shift = g.weight(&w.name("bias"), &[width])?;
    Ok(g.node(Op::LayerNorm { epsilon }, &[x, &scale, &shift], x.dtype(), x.shape().to_vec()))
}

/// Layer norm over the channels of a feature map `[batch, channels, rows, columns]` (`ConvNextLayerNorm`, `LayerNorm2d`).
///
/// # Errors
/// When x has not these axes, or no fixed number of channels.
pub fn layer_norm_2d(g: &mut Graph, w: &Scope, x: &Tensor, epsilon: f64) -> Result<Tensor> {
    let x = g.transpose(x, &[0, 2, 3, 1])?;
    let x = g.layer_norm(w, &x, epsilon)?;
    g.transpose(&x, &[0, 3, 1, 2])
}

/// Layer norm without affine parameters (`elementwise_affine=False`).
///
/// # Errors
/// As [`rms_norm_offset`].
pub fn layer_norm_no_affine(g: &mut Graph, x: &Tensor, epsilon: f64) -> Result<Tensor> {
    let scale = ones(g, x)?;
    Ok(g.node(Op::LayerNorm { epsilon }, &[x, &scale], x.dtype(), x.shape().to_vec()))
}

/// Layer norm, with `weight` and `bias` where it is `weighted`.
///
/// # Errors
/// As [`rms_norm_offset`].
pub fn layer_norm_optional_affine(
    g: &mut Graph,
    weighted: bool,
    w: &Scope,
    x: &Tensor,
    epsilon: f64,
) -> Result<Tensor> {
    if weighted { g.layer_norm(w, x, epsilon) } else { layer_norm_no_affine(g, x, epsilon) }
}

/// Layer norm over each head of `[batch, sequence, heads, size]`, with a `weight` `[heads, size]` (`CohereLayerNorm`).
///
/// # Errors
/// As [`rms_norm_offset`].
pub fn layer_norm_by_head(g: &mut Graph, w: &Scope, x: &Tensor, epsilon: f64) -> Result<Tensor> {
    g.enter(w);
    let (heads, size) = heads(g, x)?;
    let h = layer_norm_no_affine(g, x, epsilon)?;
    let weight = g.weight(&w.name("weight"), &[heads, size])?;
    g.mul(&h, &weight)
}

/// As [`layer_norm_by_head`], with a `bias` `[heads, size]` too (`ChameleonLayerNorm`).
///
/// # Errors
/// As [`rms_norm_offset`].
pub fn layer_norm_by_head_biased(g: &mut Graph, w: &Scope, x: &Tensor, epsilon: f64) -> Result<Tensor> {
    let h = layer_norm_by_head(g, w, x, epsilon)?;
    let (heads, size) = heads(g, x)?;
    let bias = g.weight(&w.name("bias"), &[heads, size])?;
    g.add(&h, &bias)
}

/// Layer norm per head of `[batch, sequence, heads, size]`, with `norms.{head}.weight` (`StableLmLayerNormPerHead`).
///
/// # Errors
/// As [`rms_norm_offset`].
pub fn layer_norm_per_head(g: &mut Graph, w: &Scope, x: &Tensor, epsilon: f64) -> Result<Tensor> {
    g.enter(w);
    let (heads, size) = heads(g, x)?;
    let h = layer_norm_no_affine(g, x, epsilon)?;
    let mut weights = vec![];
    for head in 0..heads {
        weights.push(g.weight(&w.scope("norms").index(head).name("weight"), &[size])?);
    }
    let weights: Vec<_> = weights.iter().collect();
    let weight = g.concat(&weights, 0)?;
    let weight = g.reshape(&weight, crate::dims![heads, size])?;
    g.mul(&h, &weight)
}

fn heads(g: &Graph, x: &Tensor) -> Result<(usize, usize)> {
    let heads = x.dim(-2).and_then(crate::graph::Dim::fixed);
    let heads = heads.ok_or_else(|| g.error("norm", format!("{} has no heads", show(x.shape()))))?;
    Ok((heads, width(g, x)?))
}

fn offset(g: &mut Graph, w: &Scope, x: &Tensor) -> Result<Tensor> {
    g.enter(w);
    let width = width(g, x)?;
    let weight = g.weight(&w.name("weight"), &[width])?;
    let one = g.scalar(1.0);
    g.add(&weight, &one)
}

fn ones(g: &mut Graph, x: &Tensor) -> Result<Tensor> {
    let width = width(g, x)?;
    g.constant(&[width], vec![1.0; width])
}

fn width(g: &Graph, x: &Tensor) -> Result<usize> {
    x.dim(-1).and_then(crate::graph::Dim::fixed).ok_or_else(|| {
        g.error("norm", format!("the last axis of {} must have a fixed length", show(x.shape())))
    })
}

#[cfg(test)]
mod tests;
