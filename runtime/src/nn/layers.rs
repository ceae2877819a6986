//! What each layer is, by `layer_types` of `config.json`.

use std::collections::BTreeMap;

use super::RopeParameters;

/// Whether a layer sees a window only, where the types say so.
pub fn slides(layer_types: &Option<Vec<String>>, index: usize) -> Option<bool> {
    let kind = layer_types.as_ref()?.get(index)?;
    Some(kind == "sliding_attention" || kind == "local")
}

/// What scores are multiplied by where `scale_attn_weights` and `scale_attn_by_inverse_layer_idx` say so.
pub fn layer_scale(size: usize, by_size: bool, by_layer: bool, index: usize) -> f64 {
    let scale = if by_size { (size as f64).powf(-0.5) } else { 1.0 };
    if by_layer { scale / (index + 1) as f64 } else { scale }
}

/// The rotary embeddings of a kind of layer, or plain ones of this base.
pub fn rope_of(ropes: &BTreeMap<String, RopeParameters>, kind: &str, theta: f64) -> RopeParameters {
    ropes.get(kind).cloned().unwrap_or_else(|| RopeParameters::of(theta))
}

/// Rotary embeddings with the base of a layer, where that is given.
pub fn layer_rope(rope: &RopeParameters, bases: &Option<Vec<f64>>, index: usize) -> RopeParameters {
    let base = bases.as_ref().and_then(|bases| bases.get(index)).copied();
    RopeParameters { rope_theta: base.unwrap_or(rope.rope_theta), ..rope.clone() }
}
