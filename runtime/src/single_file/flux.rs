//! Black Forest Labs' FLUX.1 as `FluxTransformer2DModel` (`convert_flux_transformer_checkpoint_to_diffusers`).

use serde_json::{Value as Json, json};

use super::Tensor;
use super::rules::{self, Cut, Rule};
use super::shapes::Shapes;
use crate::Result;

const RULES: &[Rule] = &[
    Rule("time_in.in_layer", &["time_text_embed.timestep_embedder.linear_1"], Cut::Equal),
    Rule("time_in.out_layer", &["time_text_embed.timestep_embedder.linear_2"], Cut::Equal),
    Rule("vector_in.in_layer", &["time_text_embed.text_embedder.linear_1"], Cut::Equal),
    Rule("vector_in.out_layer", &["time_text_embed.text_embedder.linear_2"], Cut::Equal),
    Rule("guidance_in.in_layer", &["time_text_embed.guidance_embedder.linear_1"], Cut::Equal),
    Rule("guidance_in.out_layer", &["time_text_embed.guidance_embedder.linear_2"], Cut::Equal),
    Rule("txt_in", &["context_embedder"], Cut::Equal),
    Rule("img_in", &["x_embedder"], Cut::Equal),
    Rule("double_blocks.*.img_mod.lin", &["transformer_blocks.*.norm1.linear"], Cut::Equal),
    Rule("double_blocks.*.txt_mod.lin", &["transformer_blocks.*.norm1_context.linear"], Cut::Equal),
    Rule(
        "double_blocks.*.img_attn.qkv",
        &[
            "transformer_blocks.*.attn.to_q",
            "transformer_blocks.*.attn.to_k",
            "transformer_blocks.*.attn.to_v",
        ],
        Cut::Equal,
    ),
    Rule(
        "double_blocks.*.txt_attn.qkv",
        &[
            "transformer_blocks.*.attn.add_q_proj",
            "transformer_blocks.*.attn.add_k_proj",
            "transformer_blocks.*.attn.add_v_proj",
        ],
        Cut::Equal,
    ),
    Rule(
        "double_blocks.*.img_attn.norm.query_norm.scale",
        &["transformer_blocks.*.attn.norm_q.weight"],
        Cut::Equal,
    ),
    Rule(
        "double_blocks.*.img_attn.norm.key_norm.scale",
        &["transformer_blocks.*.attn.norm_k.weight"],
        Cut::Equal,
    ),
    Rule(
        "double_blocks.*.txt_attn.norm.query_norm.scale",
        &["transformer_blocks.*.attn.norm_added_q.weight"],
        Cut::Equal,
    ),
    Rule(
        "double_blocks.*.txt_attn.norm.key_norm.scale",
        &["transformer_blocks.*.attn.norm_added_k.weight"],
        Cut::Equal,
    ),
    Rule("double_blocks.*.img_mlp.0", &["transformer_blocks.*.ff.net.0.proj"], Cut::Equal),
    Rule("double_blocks.*.img_mlp.2", &["transformer_blocks.*.ff.net.2"], Cut::Equal),
    Rule("double_blocks.*.txt_mlp.0", &["transformer_blocks.*.ff_context.net.0.proj"], Cut::Equal),
    Rule("double_blocks.*.txt_mlp.2", &["transformer_blocks.*.ff_context.net.2"], Cut::Equal),
    Rule("double_blocks.*.img_attn.proj", &["transformer_blocks.*.attn.to_out.0"], Cut::Equal),
    Rule("double_blocks.*.txt_attn.proj", &["transformer_blocks.*.attn.to_add_out"], Cut::Equal),
    Rule("single_blocks.*.modulation.lin", &["single_transformer_blocks.*.norm.linear"], Cut::Equal),
    Rule(
        "single_blocks.*.linear1",
        &[
            "single_transformer_blocks.*.attn.to_q",
            "single_transformer_blocks.*.attn.to_k",
            "single_transformer_blocks.*.attn.to_v",
            "single_transformer_blocks.*.proj_mlp",
        ],
        Cut::Rest,
    ),
    Rule(
        "single_blocks.*.norm.query_norm.scale",
        &["single_transformer_blocks.*.attn.norm_q.weight"],
        Cut::Equal,
    ),
    Rule(
        "single_blocks.*.norm.key_norm.scale",
        &["single_transformer_blocks.*.attn.norm_k.weight"],
        Cut::Equal,
    ),
    Rule("single_blocks.*.linear2", &["single_transformer_blocks.*.proj_out"], Cut::Equal),
    Rule("final_layer.linear", &["proj_out"], Cut::Equal),
    Rule("final_layer.adaLN_modulation.1", &["norm_out.linear"], Cut::Swapped),
];

pub(super) fn tensors(shapes: &Shapes) -> Result<Vec<Tensor>> {
    rules::tensors(shapes, RULES, shapes.axis("img_in.weight", 0)?, false)
}

/// `transformer/config.json`.
pub(super) fn config(shapes: &Shapes) -> Result<Json> {
    let head = shapes.axis("double_blocks.0.img_attn.norm.key_norm.scale", 0)?.max(1);
    // The places' axes share a head's width as in the published ones, 16, 56 and 56 of 128.
    let first = head / 16 * 2;
    let others = (head - first) / 2;
    Ok(json!({
        "_class_name": "FluxTransformer2DModel",
        "patch_size": 1,
        "in_channels": shapes.axis("img_in.weight", 1)?,
        "num_layers": shapes.layers("double_blocks.")?,
        "num_single_layers": shapes.layers("single_blocks.")?,
        "attention_head_dim": head,
        "num_attention_heads": shapes.axis("img_in.weight", 0)? / head,
        "joint_attention_dim": shapes.axis("txt_in.weight", 1)?,
        "pooled_projection_dim": shapes.axis("vector_in.in_layer.weight", 1)?,
        "guidance_embeds": shapes.has("guidance_in.in_layer.weight"),
        "axes_dims_rope": [first, others, others],
    }))
}
