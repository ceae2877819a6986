//! `weft quantize`: a checkpoint with its linear layers in 4 or 8 bits.

use std::path::PathBuf;

use weft::Result;
use weft::quantization::Recipe;

use crate::terminal::{bytes, say};

/// Writes a checkpoint again with its linear layers quantized, in the format of compressed-tensors.
///
/// `transformers` loads what it writes: codes with a scale for each group of a row, config.json with a
/// `quantization_config`, and the tokenizer's and processors' files. Heads, embeddings and routers stay.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example: weft quantize ~/models/Qwen3-0.6B Qwen3-0.6B-4bit")]
pub struct Args {
    /// A folder, or an id of the Hugging Face hub.
    checkpoint: String,
    /// The folder to write, which is whole or not there.
    out: PathBuf,
    /// Bits of a weight.
    #[arg(long, default_value = "4", value_parser = ["4", "8"])]
    bits: String,
    /// How many weights of a row share a scale.
    #[arg(long, default_value = "32", value_parser = ["16", "32", "64", "128", "256"])]
    group: String,
    /// Give each group a zero point: a little more accurate.
    #[arg(long)]
    asymmetric: bool,
}

/// Runs the verb; true where the checkpoint was written.
pub fn run(args: &Args) -> Result<bool> {
    let number = |text: &str| text.parse().unwrap_or_default();
    let recipe = Recipe { bits: number(&args.bits), group: number(&args.group), symmetric: !args.asymmetric };
    let written = weft_models::loader(&args.checkpoint)?.quantize(recipe, &args.out)?;
    say(format!(
        "{}: {} weights in {} bits, {} tensors as they were: {} are {}",
        args.out.display(),
        written.quantized,
        args.bits,
        written.kept,
        bytes(written.before),
        bytes(written.after)
    ));
    Ok(true)
}
