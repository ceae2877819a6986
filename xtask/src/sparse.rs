//! `cargo xtask sparse`: a checkpoint of full size whose files take no room.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result};

use crate::binaries::{self, Profile};
use crate::specs::Catalog;
use crate::table::Table;
use crate::terminal::{Usage, note, say};
use crate::workspace;

/// Write a checkpoint of the size that a config.json says, as sparse files of zeros.
///
/// It has the names, shapes and dtype of the published checkpoint's tensors, in shards of 5 GB, and opens like it; what is not
/// written takes no room on a disk that has sparse files.
///
/// Of a folder of configurations, `NAME.json` each, or folders with a config.json, it tells which ones a crate opens and why
/// the others are refused, and keeps nothing.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  cargo xtask sparse ~/models/Qwen3-0.6B/config.json target/sparse/qwen3-0.6b
  cargo run -p weft-qwen3 --release --example run -- target/sparse/qwen3-0.6b --help
  cargo xtask sparse ~/configurations")]
pub struct Args {
    /// The config.json of a checkpoint, or a folder of such files.
    #[arg(value_name = "CONFIG")]
    config: PathBuf,
    /// The folder to write.
    #[arg(value_name = "OUT")]
    out: Option<PathBuf>,
}

/// Runs the verb; whether the checkpoint was written, or every configuration opened or refused within bounds.
pub fn run(args: &Args) -> Result<bool> {
    let catalog = Catalog::load()?;
    if args.config.is_dir() {
        return opened(&catalog, &args.config);
    }
    let Some(out) = &args.out else {
        return Err(Usage("name the folder to write, behind the config.json".into()).into());
    };
    let member = catalog.crate_of(&args.config)?;
    note(format!("building {} …", member.package));
    let binary = binaries::build_one(&member, Profile::Dev)?;
    let mut command = binaries::command(&binary);
    command.arg("--sparse").arg(&args.config).arg(out).stdin(Stdio::null());
    let status = command.status().with_context(|| format!("starting {}", binary.display()))?;
    Ok(status.success())
}

/// The configurations of a folder, by their names.
fn configurations(folder: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut found = BTreeMap::new();
    for entry in entries {
        let path = entry.with_context(|| format!("reading {}", folder.display()))?.path();
        let within = path.join("config.json");
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if within.is_file() {
            found.insert(name, within);
        } else if path.extension().is_some_and(|ending| ending == "json") {
            found.insert(name, path);
        }
    }
    match found.is_empty() {
        true => Err(Usage(format!("{} has no configurations", folder.display())).into()),
        false => Ok(found),
    }
}

/// Tells what becomes of each configuration; false where a crate ends otherwise than by opening or refusing it.
fn opened(catalog: &Catalog, folder: &Path) -> Result<bool> {
    let configurations = configurations(folder)?;
    let crates: BTreeMap<_, _> =
        configurations.iter().map(|(name, path)| (name, catalog.crate_of(path))).collect();
    let members: BTreeSet<_> = crates.values().flatten().cloned().collect();
    note(format!("building {} crates …", members.len()));
    let binaries = binaries::build(&members.into_iter().collect::<Vec<_>>(), Profile::Dev)?;
    let scratch = workspace::target_dir().join("weft-sparse");
    let mut table = Table::new(["configuration", "crate", "", ""]);
    let (mut opens, mut bounded) = (0, true);
    for (name, path) in &configurations {
        let (package, verdict, said) = match &crates[name] {
            Err(error) => ("-".to_owned(), "refused", format!("{error:#}")),
            Ok(member) => {
                let binary = binaries
                    .get(&member.package)
                    .with_context(|| format!("{} was not built", member.package))?;
                let mut command = binaries::command(binary);
                command.arg("--sparse").arg(path).arg(&scratch).stdin(Stdio::null());
                let output = command.output().with_context(|| format!("starting {}", binary.display()))?;
                let said = [output.stdout, output.stderr].concat();
                let said = String::from_utf8_lossy(&said).replace(&*scratch.to_string_lossy(), "");
                let verdict = match output.status.code() {
                    Some(0) => "opens",
                    Some(2) => "refused",
                    _ => "ended",
                };
                bounded &= verdict != "ended";
                fs::remove_dir_all(&scratch).ok();
                (member.package.clone(), verdict, said)
            }
        };
        opens += usize::from(verdict == "opens");
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        table.row([name.clone(), package, verdict.to_owned(), said]);
    }
    say(table.text())?;
    note(format!("{opens} of {} open", configurations.len()));
    Ok(bounded)
}
