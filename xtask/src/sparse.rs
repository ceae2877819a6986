//! `cargo xtask sparse`: a checkpoint of full size whose files take no room.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result};

use crate::binaries::{self, Profile};
use crate::specs::Catalog;
use crate::terminal::note;

/// Write a checkpoint of the size that a config.json says, as sparse files of zeros.
///
/// It has the names, shapes and dtype of the published checkpoint's tensors, in shards of 5 GB, and opens like it; what is not
/// written takes no room on a disk that has sparse files.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  cargo xtask sparse ~/models/Qwen3-0.6B/config.json target/sparse/qwen3-0.6b
  cargo run -p weft-qwen3 --release --example run -- target/sparse/qwen3-0.6b --help")]
pub struct Args {
    /// The config.json of a checkpoint.
    #[arg(value_name = "CONFIG")]
    config: PathBuf,
    /// The folder to write.
    #[arg(value_name = "OUT")]
    out: PathBuf,
}

/// Runs the verb; whether the checkpoint was written.
pub fn run(args: &Args) -> Result<bool> {
    let member = Catalog::load()?.crate_of(&args.config)?;
    note(format!("building {} …", member.package));
    let binary = binaries::build_one(&member, Profile::Dev)?;
    let mut command = binaries::command(&binary);
    command.arg("--sparse").arg(&args.config).arg(&args.out).stdin(Stdio::null());
    let status = command.status().with_context(|| format!("starting {}", binary.display()))?;
    Ok(status.success())
}
