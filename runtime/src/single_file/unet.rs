//! The U-Net of CompVis's release (`input_blocks`, `middle_block`, `output_blocks`) as `UNet2DConditionModel`
//! (`convert_ldm_unet_checkpoint`).

use serde_json::{Value as Json, json};

use super::layout::Layout;
use super::shapes::Shapes;
use super::{Piece, Tensor};
use crate::Result;

/// The modules outside of blocks: in the file, today.
const PLAIN: [(&str, &str); 7] = [
    ("time_embed.0", "time_embedding.linear_1"),
    ("time_embed.2", "time_embedding.linear_2"),
    ("label_emb.0.0", "add_embedding.linear_1"),
    ("label_emb.0.2", "add_embedding.linear_2"),
    ("input_blocks.0.0", "conv_in"),
    ("out.0", "conv_norm_out"),
    ("out.2", "conv_out"),
];
/// The modules of residual blocks.
const RESNET: [(&str, &str); 6] = [
    ("in_layers.0", "norm1"),
    ("in_layers.2", "conv1"),
    ("emb_layers.1", "time_emb_proj"),
    ("out_layers.0", "norm2"),
    ("out_layers.3", "conv2"),
    ("skip_connection", "conv_shortcut"),
];

/// The residual blocks of each block on the way down: the first thing of another kind is behind them.
fn layers(shapes: &Shapes) -> usize {
    let blocks = shapes.count("input_blocks.");
    let down = (1..blocks).find(|index| shapes.has(&format!("input_blocks.{index}.0.op.weight")));
    down.unwrap_or(blocks).saturating_sub(1).max(1)
}

pub(super) fn tensors(shapes: &Shapes) -> Result<Vec<Tensor>> {
    let layers = layers(shapes);
    let today = |name: &str| today(name, layers).ok_or_else(|| shapes.unknown(name));
    shapes
        .iter()
        .map(|(name, _)| Ok(Tensor { name: today(name)?, stored: name.to_owned(), piece: Piece::Whole }))
        .collect()
}

/// Today's name.
fn today(name: &str, layers: usize) -> Option<String> {
    let (module, kind) = name.rsplit_once('.')?;
    if let Some((_, today)) = PLAIN.iter().find(|(stored, _)| *stored == module) {
        return Some(format!("{today}.{kind}"));
    }
    let (way, rest) = module.split_once('.')?;
    let (number, rest) = rest.split_once('.')?;
    let number: usize = number.parse().ok()?;
    if way == "middle_block" {
        return Some(match number {
            0 | 2 => format!("mid_block.resnets.{}.{}.{kind}", number / 2, resnet(rest)?),
            1 => format!("mid_block.attentions.0.{rest}.{kind}"),
            _ => return None,
        });
    }
    let (place, rest) = rest.split_once('.')?;
    let (way, number) = match way {
        "input_blocks" => ("down_blocks", number.checked_sub(1)?),
        "output_blocks" => ("up_blocks", number),
        _ => return None,
    };
    let (block, layer) = (number / (layers + 1), number % (layers + 1));
    Some(match (place, rest) {
        ("0", "op") => format!("{way}.{block}.downsamplers.0.conv.{kind}"),
        ("1" | "2", "conv") => format!("{way}.{block}.upsamplers.0.conv.{kind}"),
        ("0", rest) => format!("{way}.{block}.resnets.{layer}.{}.{kind}", resnet(rest)?),
        ("1", rest) => format!("{way}.{block}.attentions.{layer}.{rest}.{kind}"),
        _ => return None,
    })
}

fn resnet(module: &str) -> Option<&'static str> {
    RESNET.iter().find(|(stored, _)| *stored == module).map(|(_, today)| *today)
}

/// `unet/config.json`.
pub(super) fn config(shapes: &Shapes, layout: Layout) -> Result<Json> {
    let layers = layers(shapes);
    let inputs = shapes.layers("input_blocks.")?;
    let blocks = (inputs / (layers + 1)).max(1);
    let first = |way: &str, block: usize| {
        format!("{way}.{}.", block * (layers + 1) + usize::from(way == "input_blocks"))
    };
    // Which blocks attend, and by how many layers.
    let depth =
        |way: &str, block: usize| shapes.count(&format!("{}1.transformer_blocks.", first(way, block)));
    let channels = (0..blocks)
        .map(|block| shapes.axis(&format!("{}0.out_layers.3.weight", first("input_blocks", block)), 0))
        .collect::<Result<Vec<_>>>()?;
    let depths: Vec<usize> = (0..blocks).map(|block| depth("input_blocks", block)).collect();
    let middle = shapes.count("middle_block.1.transformer_blocks.");
    let block_types = |attends: &dyn Fn(usize) -> bool, kinds: [&'static str; 2]| -> Vec<&str> {
        (0..blocks).map(|block| kinds[usize::from(attends(block))]).collect()
    };
    // A block that attends nowhere has the number of the middle's, which is by the last one.
    let written: Vec<usize> = depths
        .iter()
        .enumerate()
        .map(|(block, depth)| match depth {
            0 if block + 1 == blocks => middle.max(1),
            depth => (*depth).max(1),
        })
        .collect();
    let attention = shapes.iter().find(|(name, _)| name.ends_with("attn2.to_k.weight"));
    let context = attention.and_then(|(_, shape)| shape.get(1).copied());
    let linear = shapes.get("middle_block.1.proj_in.weight").is_some_and(|shape| shape.len() == 2);
    let heads: Json = match layout.unet_heads() {
        Some(heads) => heads.into(),
        None => channels.iter().map(|channels| (channels / 64).max(1)).collect::<Vec<_>>().into(),
    };
    let mut config = json!({
        "_class_name": "UNet2DConditionModel",
        "sample_size": layout.sample_size(),
        "in_channels": shapes.axis("input_blocks.0.0.weight", 1)?,
        "out_channels": shapes.axis("out.2.weight", 0)?,
        "block_out_channels": channels,
        "layers_per_block": layers,
        "down_block_types": block_types(&|block| depths[block] > 0, ["DownBlock2D", "CrossAttnDownBlock2D"]),
        "up_block_types": block_types(&|block| depth("output_blocks", block) > 0, ["UpBlock2D", "CrossAttnUpBlock2D"]),
        "transformer_layers_per_block": written,
        "cross_attention_dim": context,
        "attention_head_dim": heads,
        "use_linear_projection": linear,
        "upcast_attention": layout.upcasts_attention(),
    });
    if let Some(&[_, width]) = shapes.get("label_emb.0.0.weight") {
        config["addition_embed_type"] = "text_time".into();
        config["addition_time_embed_dim"] = 256.into();
        config["projection_class_embeddings_input_dim"] = width.into();
    }
    Ok(config)
}
