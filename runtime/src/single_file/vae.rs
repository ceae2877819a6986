//! The autoencoder of CompVis's release as `AutoencoderKL` (`convert_ldm_vae_checkpoint`).

use serde_json::{Value as Json, json};

use super::layout::Layout;
use super::shapes::Shapes;
use super::{Piece, Tensor};
use crate::Result;

pub(super) fn tensors(shapes: &Shapes) -> Result<Vec<Tensor>> {
    let blocks = shapes.layers("decoder.up.")?;
    let mut all = vec![];
    for (name, _) in shapes.iter().filter(|(name, _)| !name.starts_with("loss.")) {
        let today = today(name, blocks).ok_or_else(|| shapes.unknown(name))?;
        let piece = if today.contains(".attentions.") { Piece::Squeezed } else { Piece::Whole };
        all.push(Tensor { name: today, stored: name.to_owned(), piece });
    }
    Ok(all)
}

/// Today's name; the file counts the decoder's blocks from the last one.
fn today(name: &str, blocks: usize) -> Option<String> {
    if name.starts_with("quant_conv.") || name.starts_with("post_quant_conv.") {
        return Some(name.to_owned());
    }
    let (half, rest) = name.split_once('.')?;
    let pieces: Vec<&str> = rest.split('.').collect();
    let today = match pieces[..] {
        ["norm_out", kind] => format!("conv_norm_out.{kind}"),
        ["conv_in" | "conv_out", _] => rest.to_owned(),
        ["mid", "block_1", ref rest @ ..] => format!("mid_block.resnets.0.{}", resnet(rest)),
        ["mid", "block_2", ref rest @ ..] => format!("mid_block.resnets.1.{}", resnet(rest)),
        ["mid", "attn_1", module, kind] => {
            let module = match module {
                "norm" => "group_norm",
                "q" => "to_q",
                "k" => "to_k",
                "v" => "to_v",
                "proj_out" => "to_out.0",
                _ => return None,
            };
            format!("mid_block.attentions.0.{module}.{kind}")
        }
        ["down", block, "block", layer, ref rest @ ..] => {
            format!("down_blocks.{block}.resnets.{layer}.{}", resnet(rest))
        }
        ["down", block, "downsample", ref rest @ ..] => {
            format!("down_blocks.{block}.downsamplers.0.{}", rest.join("."))
        }
        ["up", block, "block", layer, ref rest @ ..] => {
            format!("up_blocks.{}.resnets.{layer}.{}", reversed(block, blocks)?, resnet(rest))
        }
        ["up", block, "upsample", ref rest @ ..] => {
            format!("up_blocks.{}.upsamplers.0.{}", reversed(block, blocks)?, rest.join("."))
        }
        _ => return None,
    };
    Some(format!("{half}.{today}"))
}

fn reversed(block: &str, blocks: usize) -> Option<usize> {
    blocks.checked_sub(block.parse::<usize>().ok()? + 1)
}

fn resnet(pieces: &[&str]) -> String {
    pieces.join(".").replace("nin_shortcut", "conv_shortcut")
}

/// `vae/config.json`.
pub(super) fn config(shapes: &Shapes, layout: Layout) -> Result<Json> {
    let blocks = shapes.layers("encoder.down.")?;
    let channels = (0..blocks)
        .map(|block| shapes.axis(&format!("encoder.down.{block}.block.0.conv1.weight"), 0))
        .collect::<Result<Vec<_>>>()?;
    let (scaling_factor, shift_factor) = layout.latents();
    Ok(json!({
        "_class_name": "AutoencoderKL",
        "sample_size": layout.image_size(),
        "in_channels": shapes.axis("encoder.conv_in.weight", 1)?,
        "out_channels": shapes.axis("decoder.conv_out.weight", 0)?,
        "down_block_types": vec!["DownEncoderBlock2D"; blocks],
        "up_block_types": vec!["UpDecoderBlock2D"; blocks],
        "block_out_channels": channels,
        "latent_channels": shapes.axis("decoder.conv_in.weight", 1)?,
        "layers_per_block": shapes.layers("encoder.down.0.block.")?,
        "scaling_factor": scaling_factor,
        "shift_factor": shift_factor,
        "use_quant_conv": shapes.has("quant_conv.weight"),
        "use_post_quant_conv": shapes.has("post_quant_conv.weight"),
    }))
}
