//! `cargo xtask quantize`: a checkpoint with its linear layers in 4 or 8 bits.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result};

use crate::binaries::{self, Profile};
use crate::specs::Catalog;
use crate::terminal::note;
use crate::verify::{LARGE, weights};

/// Write a checkpoint again with its linear layers quantized, in the format of compressed-tensors.
///
/// `transformers` loads what it writes: codes with a scale for each group of a row (`pack-quantized`, or `int-quantized`
/// of 8 bits), config.json with a `quantization_config`, and the tokenizer's and processors' files. Heads, embeddings and the
/// routers of experts stay. OUT is whole or not there.
///
/// With --calibrate, the checkpoint runs on inputs of its task, and codes are those by which layers err least on them (GPTQ):
/// 4 bits gain much by it. It takes a model of a billion parameters some minutes.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  cargo xtask quantize ~/models/Qwen3-0.6B target/Qwen3-0.6B-4bit
  cargo xtask quantize ~/models/Qwen3-0.6B target/Qwen3-0.6B-8bit --bits 8 --group 128
  cargo xtask quantize ~/models/Qwen3-0.6B target/Qwen3-0.6B-4bit --calibrate texts.txt")]
pub struct Args {
    /// The folder of a checkpoint.
    #[arg(value_name = "CHECKPOINT")]
    checkpoint: PathBuf,
    /// The folder to write.
    #[arg(value_name = "OUT")]
    out: PathBuf,
    /// Bits of a weight.
    #[arg(long, default_value = "4", value_parser = ["4", "8"])]
    bits: String,
    /// How many weights of a row share a scale.
    #[arg(long, default_value = "32", value_parser = ["16", "32", "64", "128", "256"])]
    group: String,
    /// Give each group a zero point: a little more accurate. compressed-tensors 0.20 fails to load such weights of 4 bits from
    /// `transformers`, of whatever tool.
    #[arg(long)]
    asymmetric: bool,
    /// A file with a text, the path of an image or JSON on each line, or a folder of images: some hundred of what the model is
    /// for.
    #[arg(long, value_name = "FILE")]
    calibrate: Option<PathBuf>,
}

/// Runs the verb; whether the checkpoint was written.
pub fn run(args: &Args) -> Result<bool> {
    let member = Catalog::load()?.crate_of(&args.checkpoint.join("config.json"))?;
    // Rounding takes an unoptimized build many times as long.
    let profile = if weights(&args.checkpoint) > LARGE { Profile::Release } else { Profile::Dev };
    note(format!("building {} …", member.package));
    let binary = binaries::build_one(&member, profile)?;
    let mut command = binaries::command(&binary);
    command.arg("--quantize").arg(&args.checkpoint).arg(&args.out).stdin(Stdio::null());
    command.args([args.bits.as_str(), &args.group, if args.asymmetric { "false" } else { "true" }]);
    if let Some(file) = &args.calibrate {
        command.arg("--calibrate").arg(file);
    }
    let status = command.status().with_context(|| format!("starting {}", binary.display()))?;
    Ok(status.success())
}
