//! T5's encoder, under the names of `transformers`.

use serde_json::{Value as Json, json};

use super::Tensor;
use super::shapes::Shapes;
use crate::Result;

pub(super) fn tensors(shapes: &Shapes) -> Vec<Tensor> {
    let read = |name: &str| name != "logit_scale" && name != "encoder.embed_tokens.weight";
    shapes.iter().filter(|(name, _)| read(name)).map(|(name, _)| Tensor::whole(name, name)).collect()
}

/// `text_encoder_2/config.json` or `text_encoder_3/config.json`, of version 1.1.
pub(super) fn config(shapes: &Shapes) -> Result<Json> {
    let first = "encoder.block.0.layer.0.SelfAttention.";
    let heads = shapes.axis(&format!("{first}relative_attention_bias.weight"), 1)?.max(1);
    Ok(json!({
        "model_type": "t5",
        "architectures": ["T5EncoderModel"],
        "vocab_size": shapes.axis("shared.weight", 0)?,
        "d_model": shapes.axis("shared.weight", 1)?,
        "d_kv": shapes.axis(&format!("{first}q.weight"), 0)? / heads,
        "d_ff": shapes.axis("encoder.block.0.layer.1.DenseReluDense.wo.weight", 1)?,
        "num_layers": shapes.layers("encoder.block.")?,
        "num_heads": heads,
        "relative_attention_num_buckets": shapes.axis(&format!("{first}relative_attention_bias.weight"), 0)?,
        "feed_forward_proj": "gated-gelu",
        "tie_word_embeddings": false,
    }))
}
