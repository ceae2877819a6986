//! `weft cache`: quantized weights that are kept on disk.

use serde_json::json;
use weft::{Result, cached_weights, remove_cached_weights};

use crate::terminal::{bytes, say};

/// Tells how much `--cache` has kept of quantized weights, and removes it.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  weft cache\n  weft cache --remove")]
pub struct Args {
    /// Remove all of it.
    #[arg(long)]
    remove: bool,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub fn run(args: &Args) -> Result<bool> {
    let size = if args.remove { remove_cached_weights()? } else { cached_weights()? };
    let verb = if args.remove { "removed" } else { "kept" };
    say(match args.json {
        true => json!({ "weights": size.weights, "bytes": size.bytes, "removed": args.remove }).to_string(),
        false => format!("{verb}: {} quantized weights, {}", size.weights, bytes(size.bytes)),
    });
    Ok(true)
}
