//! Z-Image as `ZImageTransformer2DModel` (`convert_z_image_transformer_checkpoint_to_diffusers`).

use serde_json::{Value as Json, json};

use super::Tensor;
use super::rules::{self, Cut, Rule};
use super::shapes::Shapes;
use crate::Result;

macro_rules! attention {
    ($stack:literal) => {
        [
            Rule(
                concat!($stack, ".*.attention.qkv"),
                &[
                    concat!($stack, ".*.attention.to_q"),
                    concat!($stack, ".*.attention.to_k"),
                    concat!($stack, ".*.attention.to_v"),
                ],
                Cut::Equal,
            ),
            Rule(
                concat!($stack, ".*.attention.out"),
                &[concat!($stack, ".*.attention.to_out.0")],
                Cut::Equal,
            ),
            Rule(
                concat!($stack, ".*.attention.q_norm"),
                &[concat!($stack, ".*.attention.norm_q")],
                Cut::Equal,
            ),
            Rule(
                concat!($stack, ".*.attention.k_norm"),
                &[concat!($stack, ".*.attention.norm_k")],
                Cut::Equal,
            ),
        ]
    };
}

pub(super) fn tensors(shapes: &Shapes) -> Result<Vec<Tensor>> {
    let stacks = [attention!("layers"), attention!("noise_refiner"), attention!("context_refiner")];
    let mut rules: Vec<Rule> = stacks.into_iter().flatten().collect();
    rules.push(Rule("final_layer.linear", &["all_final_layer.2-1.linear"], Cut::Equal));
    rules.push(Rule(
        "final_layer.adaLN_modulation.1",
        &["all_final_layer.2-1.adaLN_modulation.1"],
        Cut::Equal,
    ));
    rules.push(Rule("x_embedder", &["all_x_embedder.2-1"], Cut::Equal));
    let mut all = rules::tensors(shapes, &rules, 0, true)?;
    all.retain(|tensor| tensor.stored != "norm_final.weight");
    Ok(all)
}

/// `transformer/config.json`.
pub(super) fn config(shapes: &Shapes) -> Result<Json> {
    let width = shapes.axis("layers.0.attention.qkv.weight", 1)?;
    let head = shapes.axis("layers.0.attention.k_norm.weight", 0)?.max(1);
    // The places' axes share a head's width as in the published one, 32, 48 and 48 of 128.
    let first = head / 4;
    let others = (head - first) / 2;
    Ok(json!({
        "_class_name": "ZImageTransformer2DModel",
        "in_channels": shapes.axis("x_embedder.weight", 1)? / 4,
        "dim": width,
        "n_layers": shapes.layers("layers.")?,
        "n_refiner_layers": shapes.layers("noise_refiner.")?,
        "n_heads": width / head,
        "n_kv_heads": width / head,
        "cap_feat_dim": shapes.axis("cap_embedder.1.weight", 1)?,
        "axes_dims": [first, others, others],
    }))
}
