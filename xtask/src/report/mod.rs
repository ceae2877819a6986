//! `cargo xtask report`: what was declared and what was observed, side by side.

mod csv;
mod gather;
mod html;
mod markdown;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::record;
use crate::specs::Catalog;
use crate::terminal::{Usage, note, say};
use crate::workspace;

/// Draw the matrices of models and backends from the records of test runs.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  cargo xtask report --format html --out report.html
  cargo xtask report --format md results/ gpu-machine/results.jsonl")]
pub struct Args {
    /// `md` to read, `html` to show, `csv` for spreadsheets, `json` for programs.
    #[arg(long, value_enum, default_value_t = Format::Md)]
    format: Format,
    /// Where to write it; to standard output if left out.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Files or folders of records [default: results/ and the local runs of `cargo xtask test`].
    #[arg(value_name = "RESULTS")]
    results: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Md,
    Html,
    Csv,
    Json,
}

/// Runs the verb.
pub fn run(args: &Args) -> Result<bool> {
    let paths = sources(&args.results)?;
    let mut records = Vec::new();
    for path in record::files(&paths)? {
        records.extend(record::read(&path)?);
    }
    if records.is_empty() {
        note("no records yet: the report shows declarations only; run `cargo xtask test` first");
    }
    let report = gather::Report::new(&Catalog::load()?, records);
    let text = match args.format {
        Format::Md => markdown::text(&report),
        Format::Html => html::page(&report)?,
        Format::Csv => csv::text(&report),
        Format::Json => serde_json::to_string_pretty(&report)?,
    };
    match &args.out {
        Some(path) => {
            fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
            note(format!("wrote {}", path.display()));
        }
        None => say(text)?,
    }
    Ok(true)
}

/// The given paths, or the places where results are kept.
pub fn sources(given: &[PathBuf]) -> Result<Vec<PathBuf>> {
    if let Some(missing) = given.iter().find(|path| !path.exists()) {
        return Err(Usage(format!("{} does not exist", missing.display())).into());
    }
    if !given.is_empty() {
        return Ok(given.to_vec());
    }
    let usual = [workspace::root().join("results"), workspace::target_dir().join("weft-results")];
    Ok(usual.into_iter().filter(|path| path.exists()).collect())
}

#[cfg(test)]
mod tests;
