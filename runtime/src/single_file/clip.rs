//! CLIP's text encoders: under the names of `transformers`, or of OpenCLIP (`convert_open_clip_checkpoint`).

use serde_json::{Value as Json, json};

use super::rules::{self, Cut, Rule};
use super::shapes::Shapes;
use super::{Piece, Tensor};
use crate::Result;

const OPEN: &[Rule] = &[
    Rule("positional_embedding", &["text_model.embeddings.position_embedding.weight"], Cut::Equal),
    Rule("token_embedding", &["text_model.embeddings.token_embedding"], Cut::Equal),
    Rule("ln_final", &["text_model.final_layer_norm"], Cut::Equal),
    Rule("transformer.resblocks.*.ln_1", &["text_model.encoder.layers.*.layer_norm1"], Cut::Equal),
    Rule("transformer.resblocks.*.ln_2", &["text_model.encoder.layers.*.layer_norm2"], Cut::Equal),
    Rule("transformer.resblocks.*.mlp.c_fc", &["text_model.encoder.layers.*.mlp.fc1"], Cut::Equal),
    Rule("transformer.resblocks.*.mlp.c_proj", &["text_model.encoder.layers.*.mlp.fc2"], Cut::Equal),
    Rule(
        "transformer.resblocks.*.attn.out_proj",
        &["text_model.encoder.layers.*.self_attn.out_proj"],
        Cut::Equal,
    ),
    Rule(
        "transformer.resblocks.*.attn.in_proj_weight",
        &[
            "text_model.encoder.layers.*.self_attn.q_proj.weight",
            "text_model.encoder.layers.*.self_attn.k_proj.weight",
            "text_model.encoder.layers.*.self_attn.v_proj.weight",
        ],
        Cut::Equal,
    ),
    Rule(
        "transformer.resblocks.*.attn.in_proj_bias",
        &[
            "text_model.encoder.layers.*.self_attn.q_proj.bias",
            "text_model.encoder.layers.*.self_attn.k_proj.bias",
            "text_model.encoder.layers.*.self_attn.v_proj.bias",
        ],
        Cut::Equal,
    ),
];

/// How a text encoder is stored and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clip {
    /// Under the names of `transformers`; the pooled text is projected by its own matrix, by none, or by the identity.
    Plain(Projection),
    /// Under those of OpenCLIP, with all its layers.
    Open,
    /// The same, without its last layer and its projection (`SD_2_TEXT_ENCODER_KEYS_TO_IGNORE`).
    Penultimate,
}

/// What projects the pooled text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Projection {
    None,
    Own,
    Identity,
}

pub(super) fn tensors(shapes: &Shapes, clip: Clip) -> Result<Vec<Tensor>> {
    let Clip::Plain(projection) = clip else { return open(shapes, clip == Clip::Penultimate) };
    let read = |name: &str| match name {
        "text_projection.weight" => projection == Projection::Own,
        // Merged files have these besides.
        "logit_scale" | "text_model.embeddings.position_ids" => false,
        _ => true,
    };
    let mut all: Vec<Tensor> =
        shapes.iter().filter(|(name, _)| read(name)).map(|(name, _)| Tensor::whole(name, name)).collect();
    if let (Projection::Identity, Some((name, shape))) =
        (projection, shapes.iter().find(|(name, _)| *name == TOKENS))
    {
        let piece = Piece::Identity(shape.get(1).copied().unwrap_or_default());
        all.push(Tensor { name: "text_projection.weight".to_owned(), stored: name.to_owned(), piece });
    }
    Ok(all)
}

const TOKENS: &str = "text_model.embeddings.token_embedding.weight";

fn open(shapes: &Shapes, penultimate: bool) -> Result<Vec<Tensor>> {
    let last = shapes.layers("transformer.resblocks.")? - 1;
    let last = format!("transformer.resblocks.{last}.");
    let mut all = vec![];
    let rest: Vec<(&str, &[usize])> = shapes
        .iter()
        .filter(|(name, _)| !matches!(*name, "logit_scale" | "attn_mask" | "text_projection"))
        .filter(|(name, _)| !(penultimate && name.starts_with(&last)))
        .collect();
    all.extend(rules::tensors(&shapes.only(&rest), OPEN, 0, false)?);
    if !penultimate && shapes.has("text_projection") {
        let stored = "text_projection".to_owned();
        all.push(Tensor { name: "text_projection.weight".to_owned(), stored, piece: Piece::Transposed });
    }
    Ok(all)
}

/// `text_encoder/config.json`.
pub(super) fn config(shapes: &Shapes, clip: Clip) -> Result<Json> {
    let (tokens, positions, fc1, layers) = match clip {
        Clip::Plain(_) => (
            TOKENS,
            "text_model.embeddings.position_embedding.weight",
            "text_model.encoder.layers.0.mlp.fc1.weight",
            shapes.layers("text_model.encoder.layers.")?,
        ),
        Clip::Open | Clip::Penultimate => (
            "token_embedding.weight",
            "positional_embedding",
            "transformer.resblocks.0.mlp.c_fc.weight",
            shapes.layers("transformer.resblocks.")? - usize::from(clip == Clip::Penultimate),
        ),
    };
    let width = shapes.axis(tokens, 1)?;
    let vocabulary = shapes.axis(tokens, 0)?;
    let projection = match clip {
        Clip::Plain(Projection::None) | Clip::Penultimate => None,
        Clip::Plain(Projection::Own) => Some(shapes.axis("text_projection.weight", 0)?),
        Clip::Plain(Projection::Identity) => Some(width),
        Clip::Open => Some(shapes.axis("text_projection", 1)?),
    };
    // OpenCLIP's have the exact GELU: the one whose own matrix projects its texts is one, whatever its names.
    let quick = matches!(clip, Clip::Plain(Projection::None | Projection::Identity));
    Ok(json!({
        "model_type": "clip_text_model",
        "architectures": [if projection.is_some() { "CLIPTextModelWithProjection" } else { "CLIPTextModel" }],
        "vocab_size": vocabulary,
        "hidden_size": width,
        "intermediate_size": shapes.axis(fc1, 0)?,
        "num_hidden_layers": layers,
        "num_attention_heads": (width / 64).max(1),
        "max_position_embeddings": shapes.axis(positions, 0)?,
        "projection_dim": projection.unwrap_or(768),
        "hidden_act": if quick { "quick_gelu" } else { "gelu" },
        "layer_norm_eps": 1e-5,
        "bos_token_id": vocabulary.saturating_sub(2),
        "eos_token_id": vocabulary.saturating_sub(1),
        "pad_token_id": 1,
    }))
}
