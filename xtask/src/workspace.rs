//! Where things are: the workspace root, its generated crates, and the cargo that builds them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result};
use clap::builder::PossibleValuesParser;
use weft_generator::spec::hardware::Hardware;

use crate::terminal::{Usage, unknown};

/// The values of `--hw`.
pub fn hw_parser() -> PossibleValuesParser {
    Hardware::ALL.iter().map(|hardware| hardware.name()).chain(["all"]).collect::<Vec<_>>().into()
}

/// Replaces `all` by every backend; the order of the matrices, each once.
pub fn backends(asked: &[String]) -> Vec<Hardware> {
    let wanted = |hardware: &Hardware| asked.iter().any(|name| name == "all" || name == hardware.name());
    Hardware::ALL.into_iter().filter(wanted).collect()
}

/// The repository this xtask belongs to.
pub fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let manifest = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        let manifest = PathBuf::from(manifest);
        manifest.parent().map_or_else(|| manifest.clone(), Path::to_path_buf)
    })
}

/// The cargo that started this process, run in the workspace root.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    for (name, _) in env::vars_os().filter(|(name, _)| is_of_this_package(&name.to_string_lossy())) {
        command.env_remove(name);
    }
    command
}

/// Whether cargo set a variable to tell of the package that it runs. Build scripts that watch these, as ring's does, would
/// run again, and all that stands on them be built again, whenever `cargo xtask` and plain `cargo` take turns.
fn is_of_this_package(name: &str) -> bool {
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}

/// Cargo's target folder, where local results go as well.
pub fn target_dir() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// One generated crate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    pub category: String,
    pub model: String,
    /// The package's name, `weft-bert`.
    pub package: String,
    pub dir: PathBuf,
}

/// Every generated crate, by category and model.
pub fn generated(root: &Path) -> Result<Vec<Member>> {
    let mut members = Vec::new();
    for category in folders(&root.join("generated"))? {
        for dir in folders(&category)? {
            let manifest = dir.join("Cargo.toml");
            if !manifest.is_file() {
                continue;
            }
            let text =
                fs::read_to_string(&manifest).with_context(|| format!("reading {}", manifest.display()))?;
            let package = package_name(&text).with_context(|| {
                format!("{} has no package name: run `cargo xtask generate`", manifest.display())
            })?;
            members.push(Member { category: file_name(&category), model: file_name(&dir), package, dir });
        }
    }
    members.sort();
    Ok(members)
}

/// The generated crates that `--category` and `--model` select; all of them where neither is given.
pub fn select(root: &Path, categories: &[String], models: &[String]) -> Result<Vec<Member>> {
    let members = generated(root)?;
    if members.is_empty() {
        return Err(Usage(format!(
            "no generated crate in {}: run `cargo xtask generate`",
            root.join("generated").display()
        ))
        .into());
    }
    for category in categories {
        if !members.iter().any(|member| member.category == *category) {
            return Err(unknown("category", category, members.iter().map(|m| m.category.as_str())).into());
        }
    }
    for model in models {
        if !members.iter().any(|member| member.model == *model) {
            return Err(unknown("model", model, members.iter().map(|m| m.model.as_str())).into());
        }
    }
    let wanted = |names: &[String], name: &String| names.is_empty() || names.contains(name);
    // Both narrow what is selected; a model that the categories leave out was not meant to be left out.
    let outside = |member: &&Member| models.contains(&member.model) && !wanted(categories, &member.category);
    let inside =
        |member: &Member, other: &Member| member.model == other.model && wanted(categories, &other.category);
    let lost = members.iter().filter(outside).find(|lost| !members.iter().any(|member| inside(lost, member)));
    if let Some(Member { model, category, .. }) = lost {
        let help = format!("leave out --category, or give --category {category}");
        return Err(Usage(format!("model `{model}` is of the category {category}: {help}")).into());
    }
    Ok(members
        .into_iter()
        .filter(|member| wanted(categories, &member.category) && wanted(models, &member.model))
        .collect())
}

fn folders(dir: &Path) -> Result<Vec<PathBuf>> {
    if !dir.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(dir).with_context(|| format!("listing {}", dir.display()))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            paths.push(path);
        }
    }
    Ok(paths)
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn package_name(manifest: &str) -> Option<String> {
    let line =
        manifest.lines().find_map(|line| line.trim().strip_prefix("name")?.trim().strip_prefix('='))?;
    Some(line.trim().trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (category, model) in [("text-encoders", "bert"), ("vision", "vit"), ("text-encoders", "albert")] {
            let path = dir.path().join("generated").join(category).join(model);
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join("Cargo.toml"), format!("[package]\nname = \"weft-{model}\"\n")).unwrap();
        }
        dir
    }

    #[test]
    fn crates_are_found_and_selected() {
        let dir = tree();
        let names = |categories: &[&str], models: &[&str]| -> Vec<String> {
            let own = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
            select(dir.path(), &own(categories), &own(models))
                .unwrap()
                .into_iter()
                .map(|m| m.package)
                .collect()
        };
        assert_eq!(names(&[], &[]), ["weft-albert", "weft-bert", "weft-vit"]);
        assert_eq!(names(&["text-encoders"], &[]), ["weft-albert", "weft-bert"]);
        assert_eq!(names(&[], &["vit"]), ["weft-vit"]);
        let error = select(dir.path(), &["vision".into()], &["vit".into(), "bert".into()]).unwrap_err();
        let help = "leave out --category, or give --category text-encoders";
        assert_eq!(error.to_string(), format!("model `bert` is of the category text-encoders: {help}"));
        let error = select(dir.path(), &[], &["bort".into()]).unwrap_err();
        assert_eq!(error.to_string(), "unknown model `bort`; did you mean `bert`?");
    }

    #[test]
    fn cargo_is_started_as_from_a_shell() {
        // `cargo test` tells this process, too, what it runs.
        assert!(env::var_os("CARGO_PKG_NAME").is_some());
        let removed: Vec<_> =
            cargo().get_envs().filter(|(_, value)| value.is_none()).map(|(n, _)| n.to_owned()).collect();
        assert!(removed.contains(&"CARGO_PKG_NAME".into()) && removed.contains(&"CARGO_MANIFEST_DIR".into()));
        assert!(!is_of_this_package("CARGO_TARGET_DIR") && !is_of_this_package("CARGO_HOME"));
    }

    #[test]
    fn all_means_every_backend_once() {
        let asked = ["qnn".into(), "cpu".into(), "qnn".into()];
        assert_eq!(backends(&asked), [Hardware::Cpu, Hardware::Qnn]);
        assert_eq!(backends(&["all".into(), "cpu".into()]), Hardware::ALL);
    }
}
