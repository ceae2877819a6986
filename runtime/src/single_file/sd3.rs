//! Stability AI's Stable Diffusion 3 as `SD3Transformer2DModel` (`convert_sd3_transformer_checkpoint_to_diffusers`).

use serde_json::{Value as Json, json};

use super::rules::{self, Cut, Rule};
use super::shapes::Shapes;
use super::{Piece, Tensor};
use crate::Result;

const RULES: &[Rule] = &[
    Rule("pos_embed", &["pos_embed.pos_embed"], Cut::Equal),
    Rule("x_embedder.proj", &["pos_embed.proj"], Cut::Equal),
    Rule("t_embedder.mlp.0", &["time_text_embed.timestep_embedder.linear_1"], Cut::Equal),
    Rule("t_embedder.mlp.2", &["time_text_embed.timestep_embedder.linear_2"], Cut::Equal),
    Rule("y_embedder.mlp.0", &["time_text_embed.text_embedder.linear_1"], Cut::Equal),
    Rule("y_embedder.mlp.2", &["time_text_embed.text_embedder.linear_2"], Cut::Equal),
    Rule("context_embedder", &["context_embedder"], Cut::Equal),
    Rule(
        "joint_blocks.*.x_block.attn.qkv",
        &[
            "transformer_blocks.*.attn.to_q",
            "transformer_blocks.*.attn.to_k",
            "transformer_blocks.*.attn.to_v",
        ],
        Cut::Equal,
    ),
    Rule(
        "joint_blocks.*.x_block.attn2.qkv",
        &[
            "transformer_blocks.*.attn2.to_q",
            "transformer_blocks.*.attn2.to_k",
            "transformer_blocks.*.attn2.to_v",
        ],
        Cut::Equal,
    ),
    Rule(
        "joint_blocks.*.context_block.attn.qkv",
        &[
            "transformer_blocks.*.attn.add_q_proj",
            "transformer_blocks.*.attn.add_k_proj",
            "transformer_blocks.*.attn.add_v_proj",
        ],
        Cut::Equal,
    ),
    Rule("joint_blocks.*.x_block.attn.ln_q", &["transformer_blocks.*.attn.norm_q"], Cut::Equal),
    Rule("joint_blocks.*.x_block.attn.ln_k", &["transformer_blocks.*.attn.norm_k"], Cut::Equal),
    Rule("joint_blocks.*.x_block.attn2.ln_q", &["transformer_blocks.*.attn2.norm_q"], Cut::Equal),
    Rule("joint_blocks.*.x_block.attn2.ln_k", &["transformer_blocks.*.attn2.norm_k"], Cut::Equal),
    Rule("joint_blocks.*.context_block.attn.ln_q", &["transformer_blocks.*.attn.norm_added_q"], Cut::Equal),
    Rule("joint_blocks.*.context_block.attn.ln_k", &["transformer_blocks.*.attn.norm_added_k"], Cut::Equal),
    Rule("joint_blocks.*.x_block.attn.proj", &["transformer_blocks.*.attn.to_out.0"], Cut::Equal),
    Rule("joint_blocks.*.x_block.attn2.proj", &["transformer_blocks.*.attn2.to_out.0"], Cut::Equal),
    Rule("joint_blocks.*.context_block.attn.proj", &["transformer_blocks.*.attn.to_add_out"], Cut::Equal),
    Rule("joint_blocks.*.x_block.adaLN_modulation.1", &["transformer_blocks.*.norm1.linear"], Cut::Equal),
    Rule(
        "joint_blocks.*.context_block.adaLN_modulation.1",
        &["transformer_blocks.*.norm1_context.linear"],
        Cut::Equal,
    ),
    Rule("joint_blocks.*.x_block.mlp.fc1", &["transformer_blocks.*.ff.net.0.proj"], Cut::Equal),
    Rule("joint_blocks.*.x_block.mlp.fc2", &["transformer_blocks.*.ff.net.2"], Cut::Equal),
    Rule("joint_blocks.*.context_block.mlp.fc1", &["transformer_blocks.*.ff_context.net.0.proj"], Cut::Equal),
    Rule("joint_blocks.*.context_block.mlp.fc2", &["transformer_blocks.*.ff_context.net.2"], Cut::Equal),
    Rule("final_layer.linear", &["proj_out"], Cut::Equal),
    Rule("final_layer.adaLN_modulation.1", &["norm_out.linear"], Cut::Swapped),
];

pub(super) fn tensors(shapes: &Shapes) -> Result<Vec<Tensor>> {
    let last = shapes.layers("joint_blocks.")? - 1;
    let mut all = rules::tensors(shapes, RULES, 0, false)?;
    // Texts have only a scale and a shift in the last block, which are the other way round there.
    let before = format!("joint_blocks.{last}.context_block.adaLN_modulation.");
    all.iter_mut()
        .filter(|tensor| tensor.stored.starts_with(&before))
        .for_each(|tensor| tensor.piece = Piece::Swapped);
    Ok(all)
}

/// `transformer/config.json`.
pub(super) fn config(shapes: &Shapes) -> Result<Json> {
    let width = shapes.axis("x_embedder.proj.weight", 0)?;
    let patch = shapes.axis("x_embedder.proj.weight", 2)?.max(1);
    let layers = shapes.layers("joint_blocks.")?;
    let twice: Vec<usize> =
        (0..layers).filter(|layer| shapes.begins(&format!("joint_blocks.{layer}.x_block.attn2."))).collect();
    let normed = shapes.has("joint_blocks.0.x_block.attn.ln_q.weight");
    Ok(json!({
        "_class_name": "SD3Transformer2DModel",
        "sample_size": 128,
        "patch_size": patch,
        "in_channels": shapes.axis("x_embedder.proj.weight", 1)?,
        "out_channels": shapes.axis("final_layer.linear.weight", 0)? / (patch * patch),
        "num_layers": layers,
        "attention_head_dim": 64,
        "num_attention_heads": (width / 64).max(1),
        "caption_projection_dim": shapes.axis("context_embedder.weight", 0)?,
        "joint_attention_dim": shapes.axis("context_embedder.weight", 1)?,
        "pooled_projection_dim": shapes.axis("y_embedder.mlp.0.weight", 1)?,
        "pos_embed_max_size": shapes.axis("pos_embed", 1)?.isqrt(),
        "dual_attention_layers": twice,
        "qk_norm": normed.then_some("rms_norm"),
    }))
}
