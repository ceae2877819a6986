//! `cargo xtask web`: the crates for pages, by WebAssembly: type-checked, or packed for npm.

mod pack;
mod toolchain;
mod tools;
mod types;

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::terminal::note;
use crate::workspace::{root, select, target_dir};
use toolchain::Toolchain;

/// Type-check generated crates and the runtime for pages (wasm32-unknown-unknown), or pack a category for npm.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  cargo xtask web                                          # type-checks all of them
  cargo xtask web --category text-encoders
  cargo xtask web --pack text-encoders                     # target/npm/text-encoders
  cargo xtask web --pack text-encoders --model bert        # with one model only
  cargo xtask web --pack text-encoders --model bert --task sentence-embedding")]
pub struct Args {
    /// The crates of a category; all where neither this nor `--model` is given.
    #[arg(long, value_name = "CATEGORY", conflicts_with = "pack")]
    category: Vec<String>,
    /// The crate of a model.
    #[arg(long, value_name = "MODEL")]
    model: Vec<String>,
    /// Build the npm package of a category, or of several: WebAssembly, scripts, types, and ONNX Runtime Web.
    #[arg(long, value_name = "CATEGORY")]
    pack: Vec<String>,
    /// The tasks that the package is for, by the names of `transformers.pipeline`; all where not given.
    #[arg(long, value_name = "TASK", requires = "pack")]
    task: Vec<String>,
    /// Where the package goes; `target/npm/CATEGORY` where not given.
    #[arg(long, value_name = "DIR", requires = "pack")]
    out: Option<PathBuf>,
    /// Write the types of the tasks, `web/npm/tasks.d.ts`, from the runtime's.
    #[arg(long, exclusive = true)]
    types: bool,
    /// Build it fast, not optimized and several times as large.
    #[arg(long, requires = "pack")]
    quick: bool,
}

/// Runs the verb; whether all of them compile.
pub fn run(args: &Args) -> Result<bool> {
    if args.types {
        std::fs::write(types::file(), types::declarations()?).context("writing the types")?;
        return Ok(true);
    }
    let toolchain = Toolchain::find()?;
    if let Some(first) = args.pack.first() {
        let members = select(root(), &args.pack, &args.model)?;
        // What takes from several categories is made for one page.
        let name = if args.pack.len() == 1 { first } else { "page" };
        let out = args.out.clone().unwrap_or_else(|| target_dir().join("npm").join(name));
        let whole = args.model.is_empty();
        let (tasks, quick) = (&args.task, args.quick);
        let (categories, members) = (&args.pack, &members);
        return pack::Packing { toolchain, name, categories, members, tasks, whole, quick, out: &out }.run();
    }
    let members = select(root(), &args.category, &args.model)?;
    let categories: BTreeSet<_> = members.iter().map(|member| &member.category).collect();
    note(format!("{} crates of {} categories, by {toolchain}", members.len(), categories.len()));
    let mut command = toolchain.cargo("check");
    // What the worker calls, too, which is nothing on other platforms.
    command.args(["--quiet", "--package", pack::PACKAGE]);
    for member in &members {
        command.args(["--package", &member.package]);
    }
    let status = command.status().with_context(|| format!("starting {toolchain}"))?;
    if status.success() {
        note(format!("type-checked for {}", toolchain::TARGET));
    }
    Ok(status.success())
}
