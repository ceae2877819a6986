//! `cargo xtask web`: the crates for pages, by WebAssembly.

mod toolchain;

use std::collections::BTreeSet;

use anyhow::{Context, Result};

use crate::terminal::note;
use crate::workspace::{root, select};
use toolchain::Toolchain;

/// Type-check generated crates and the runtime for pages (wasm32-unknown-unknown).
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  cargo xtask web
  cargo xtask web --category text-encoders
  cargo xtask web --model bert")]
pub struct Args {
    /// The crates of a category; all where neither this nor `--model` is given.
    #[arg(long, value_name = "CATEGORY")]
    category: Vec<String>,
    /// The crate of a model.
    #[arg(long, value_name = "MODEL")]
    model: Vec<String>,
}

/// Runs the verb; whether all of them compile.
pub fn run(args: &Args) -> Result<bool> {
    let members = select(root(), &args.category, &args.model)?;
    let toolchain = Toolchain::find()?;
    let categories: BTreeSet<_> = members.iter().map(|member| &member.category).collect();
    note(format!("{} crates of {} categories, by {toolchain}", members.len(), categories.len()));
    let mut command = toolchain.cargo("check");
    command.arg("--quiet");
    for member in &members {
        command.args(["--package", &member.package]);
    }
    let status = command.status().with_context(|| format!("starting {toolchain}"))?;
    if status.success() {
        note(format!("type-checked for {}", toolchain::TARGET));
    }
    Ok(status.success())
}
