//! Qwen-Image's transformer, whose names are today's (`QwenImageTransformer2DModel`).

use serde_json::{Value as Json, json};

use super::Tensor;
use super::shapes::Shapes;
use crate::Result;

pub(super) fn tensors(shapes: &Shapes) -> Vec<Tensor> {
    shapes.iter().map(|(name, _)| Tensor::whole(name, name)).collect()
}

/// `transformer/config.json`.
pub(super) fn config(shapes: &Shapes) -> Result<Json> {
    let head = shapes.axis("transformer_blocks.0.attn.norm_q.weight", 0)?.max(1);
    let first = head / 16 * 2;
    let others = (head - first) / 2;
    Ok(json!({
        "_class_name": "QwenImageTransformer2DModel",
        "patch_size": 2,
        "in_channels": shapes.axis("img_in.weight", 1)?,
        "out_channels": shapes.axis("proj_out.weight", 0)? / 4,
        "num_layers": shapes.layers("transformer_blocks.")?,
        "attention_head_dim": head,
        "num_attention_heads": shapes.axis("img_in.weight", 0)? / head,
        "joint_attention_dim": shapes.axis("txt_in.weight", 1)?,
        "axes_dims_rope": [first, others, others],
    }))
}
