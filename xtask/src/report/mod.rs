//! `cargo xtask report`: what was declared and what was observed, side by side.

mod covered;
mod csv;
mod gather;
mod groups;
mod html;
mod markdown;
mod precisions;
mod svg;

use std::fs;
use std::path::PathBuf;

use anyhow::Result;

use crate::record;
use crate::specs::Catalog;
use crate::terminal::{Usage, note, say};
use crate::workspace;

/// Draw the matrices of models and backends from the records of test runs.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  cargo xtask report --format html --out report.html
  cargo xtask report --format md results/ gpu-machine/results.jsonl
  cargo xtask report --docs                         draws docs/results.* from results/ again
  cargo xtask report --compact gpu-machine/         takes another machine's newest records into results/")]
pub struct Args {
    /// `md` to read, `html` to show, `svg` for a picture, `csv` for spreadsheets, `json` for programs.
    #[arg(long, value_enum, default_value_t = Format::Md)]
    format: Format,
    /// Where to write it; to standard output if left out.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write docs/results.md, .html and .svg from the committed records in results/.
    #[arg(long, conflicts_with_all = ["format", "out", "results"])]
    docs: bool,
    /// With `--docs`: write nothing, name the files that are not as drawn, and exit with 1 when there are any.
    #[arg(long, requires = "docs")]
    check: bool,
    /// Take the newest record of each cell into the compact files of results/; records of runs that lie there are taken
    /// in and removed.
    #[arg(long, conflicts_with_all = ["format", "out", "docs"])]
    compact: bool,
    /// Files or folders of records [default: results/ and the local runs of `cargo xtask test`].
    #[arg(value_name = "RESULTS")]
    results: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Md,
    Html,
    Svg,
    Csv,
    Json,
}

impl Format {
    fn draw(self, report: &gather::Report) -> Result<String> {
        Ok(match self {
            Self::Md => markdown::text(report),
            Self::Html => html::page(report)?,
            Self::Svg => svg::text(report),
            Self::Csv => csv::text(report),
            Self::Json => serde_json::to_string_pretty(report)?,
        })
    }
}

/// Runs the verb; false when `--check` found a file that is not as drawn.
pub fn run(args: &Args) -> Result<bool> {
    if args.docs {
        return docs(args.check);
    }
    if args.compact {
        return compact(&args.results);
    }
    let report = gathered(&sources(&args.results)?)?;
    let text = args.format.draw(&report)?;
    match &args.out {
        Some(path) => {
            record::write(path, &text)?;
            note(format!("wrote {}", path.display()));
        }
        None => say(text)?,
    }
    Ok(true)
}

fn gathered(paths: &[PathBuf]) -> Result<gather::Report> {
    let records = record::read_all(paths)?;
    if records.is_empty() {
        note("no records yet: the report shows declarations only; run `cargo xtask test` first");
    }
    Ok(gather::Report::new(&Catalog::load()?, records))
}

/// Merges what lies in results/ and what is given.
fn compact(given: &[PathBuf]) -> Result<bool> {
    let dir = workspace::root().join("results");
    let inside = if dir.exists() { record::files(std::slice::from_ref(&dir))? } else { Vec::new() };
    let others = if given.is_empty() { Vec::new() } else { sources(given)? };
    let records = record::read_all(&[inside.clone(), others].concat())?;
    let written = record::merge_into(&dir, records, &inside)?;
    for path in &written {
        note(format!("wrote results/{}", path.file_name().unwrap_or_default().to_string_lossy()));
    }
    if written.is_empty() {
        note("results/ has the newest of these records already");
    }
    Ok(true)
}

/// The committed report: of the committed records alone, so that it is the same on every machine.
fn docs(check: bool) -> Result<bool> {
    let report = gathered(&[workspace::root().join("results")])?;
    let mut same = true;
    for (name, format) in [("md", Format::Md), ("html", Format::Html), ("svg", Format::Svg)] {
        let path = workspace::root().join("docs/results").with_extension(name);
        let text = format.draw(&report)?;
        if fs::read_to_string(&path).is_ok_and(|committed| committed == text) {
            continue;
        }
        same = false;
        if check {
            note(format!(
                "docs/results.{name} is not what results/ and the specs say: run `cargo xtask report --docs`"
            ));
        } else {
            record::write(&path, &text)?;
            note(format!("wrote docs/results.{name}"));
        }
    }
    Ok(same || !check)
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
