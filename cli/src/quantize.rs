//! `weft quantize`: a checkpoint with its linear layers in 4 or 8 bits.

use std::path::PathBuf;

use weft::Result;
use weft::quantization::Recipe;
use weft::tasks::calibration_inputs;

use crate::terminal::{bytes, say};

/// Writes a checkpoint again with its linear layers quantized, in the format of compressed-tensors.
///
/// `transformers` loads what it writes: codes with a scale for each group of a row, config.json with a
/// `quantization_config`, and the tokenizer's and processors' files. Heads, embeddings and routers stay. With --calibrate, codes
/// are those by which layers err least on inputs of the checkpoint's task (GPTQ), which 4 bits gain much by.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  weft quantize ~/models/Qwen3-0.6B Qwen3-0.6B-4bit
  weft quantize ~/models/Qwen3-0.6B Qwen3-0.6B-4bit --calibrate texts.txt")]
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
    /// A file with a text, the path of an image or JSON on each line, or a folder of images: some hundred of what the model is
    /// for.
    #[arg(long, value_name = "FILE")]
    calibrate: Option<PathBuf>,
}

/// Runs the verb; true where the checkpoint was written.
pub fn run(args: &Args) -> Result<bool> {
    let number = |text: &str| text.parse().unwrap_or_default();
    let recipe = Recipe { bits: number(&args.bits), group: number(&args.group), symmetric: !args.asymmetric };
    let loader = weft_models::loader(&args.checkpoint)?;
    let written = match &args.calibrate {
        Some(file) => loader.quantize_on(recipe, &calibration_inputs(file)?, &args.out)?,
        None => loader.quantize(recipe, &args.out)?,
    };
    say(format!(
        "{}: {} weights in {} bits, {} of them calibrated, {} tensors as they were: {} are {}",
        args.out.display(),
        written.quantized,
        args.bits,
        written.calibrated,
        written.kept,
        bytes(written.before),
        bytes(written.after)
    ));
    Ok(true)
}
