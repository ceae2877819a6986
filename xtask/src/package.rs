//! `cargo xtask package`: the crates as a registry takes them, each with all of its sources, packed without publishing.
//!
//! In the repository, a category's crate re-exports the crates of its models, so that nothing is compiled twice. A registry
//! takes one new crate in ten minutes: there, the models' sources are modules of their category's crate.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::terminal::{note, say};
use crate::workspace::{cargo, generated, root, target_dir};

/// Pack the crates that a registry would get, and check what it would refuse; nothing is published.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Compile what was packed, too.
    #[arg(long)]
    verify: bool,
    /// Only print the files that each crate would have.
    #[arg(long, conflicts_with = "verify")]
    list: bool,
}

/// The most features that a crate of the registry may have, and the most bytes of its file.
const MOST_FEATURES: usize = 300;
const MOST_BYTES: u64 = 10 << 20;

/// Runs the verb; whether the registry would take all of it.
pub fn run(args: &Args) -> Result<bool> {
    let house = target_dir().join("weft-package");
    let _ = fs::remove_dir_all(&house);
    let crates = stage(&house)?;
    if !args.list {
        note(format!("packing {} crates in {}", crates.len(), house.display()));
    }
    let mut command = cargo();
    command.current_dir(&house).args(["package", "--workspace", "--allow-dirty", "--quiet", "--offline"]);
    command.arg("--target-dir").arg(house.join("target"));
    match (args.list, args.verify) {
        (true, _) => drop(command.arg("--list")),
        (_, true) => forget_unpacked()?,
        (_, false) => drop(command.arg("--no-verify")),
    }
    if !command.status().context("starting cargo: is it on the PATH?")?.success() {
        return Ok(false);
    }
    if args.list {
        return Ok(true);
    }
    let mut sound = true;
    for folder in &crates {
        let manifest = fs::read_to_string(folder.join("Cargo.toml"))?;
        let name = value(&manifest, "name").context("a manifest has no name")?;
        let features = features(&manifest).len();
        let start = format!("{name}-");
        let packed = fs::read_dir(house.join("target/package"))?.flatten().find(|entry| {
            let file = entry.file_name().to_string_lossy().into_owned();
            let version = file.strip_prefix(&start).and_then(|rest| rest.strip_suffix(".crate"));
            version.is_some_and(|version| version.starts_with(|first: char| first.is_ascii_digit()))
        });
        let bytes = packed.with_context(|| format!("{name} was not packed"))?.metadata()?.len();
        let fits = features <= MOST_FEATURES && bytes <= MOST_BYTES;
        sound &= fits;
        let verdict = if fits { "" } else { ": more than a registry takes" };
        say(format!("{name:<26} {:>6.0} kB {features:>4} features{verdict}", bytes as f64 / 1e3))?;
    }
    Ok(sound)
}

/// Removes what cargo unpacked of these crates before: it goes by their version, and would compile that in place of what is
/// packed now.
fn forget_unpacked() -> Result<()> {
    let own = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = own.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let home = home.context("there is no home folder: set CARGO_HOME")?;
    let within = |folder: &Path, start: &str| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(start));
        named.map(|entry| entry.path()).collect()
    };
    // Cargo names a registry by its host, and one on this machine has none.
    for registry in within(&home.join("registry/src"), "-") {
        for unpacked in within(&registry, "weft-") {
            fs::remove_dir_all(&unpacked).with_context(|| format!("removing {}", unpacked.display()))?;
        }
    }
    Ok(())
}

/// Writes the workspace of what is published; the folders of its crates.
fn stage(house: &Path) -> Result<Vec<PathBuf>> {
    let text = read(&root().join("Cargo.toml"))?;
    let (_, rest) =
        text.split_once("[workspace.package]").context("Cargo.toml has no [workspace.package]")?;
    let version = value(rest, "version").context("Cargo.toml has no version")?;
    let rest = rest.replace(
        "weft = { path = \"runtime\" }",
        &format!("weft = {{ path = \"runtime\", version = \"{version}\" }}"),
    );
    // Of the paths, only the runtime's stays: others are named where they are used, or are not published.
    let paths = ["weft-code", "weft-dylib", "weft-generator", "weft-setup", "weft-unified"]
        .map(|name| format!("{name} = {{ path"));
    let kept: Vec<_> =
        rest.lines().filter(|line| !paths.iter().any(|path| line.starts_with(path.as_str()))).collect();
    let kept: Vec<_> = without_profiles(&kept);
    let head = "[workspace]\nresolver = \"3\"\nmembers = [\"runtime\", \"packages/*\", \"setup\", \"cli\"]\n\n[workspace.package]";
    write(&house.join("Cargo.toml"), &format!("{head}{}\n", kept.join("\n")))?;
    copy(&root().join("Cargo.lock"), &house.join("Cargo.lock"))?;
    for folder in ["runtime", "setup", "cli"] {
        copy_folder(&root().join(folder), &house.join(folder), &|text, _| text)?;
    }
    let mut crates = vec![house.join("runtime"), house.join("setup"), house.join("cli")];
    for entry in fs::read_dir(root().join("packages"))?.flatten().filter(|entry| entry.path().is_dir()) {
        let to = house.join("packages").join(entry.file_name());
        copy_folder(&entry.path(), &to, &|text, _| text)?;
        crates.push(to);
    }
    for member in generated(root())? {
        inline(&member.dir, &house.join("packages").join(&member.category), &member.category, &member.model)?;
    }
    for folder in &crates {
        publishable(folder, &version)?;
    }
    crates.sort();
    Ok(crates)
}

/// Makes a model's sources a module of its category's crate.
fn inline(model: &Path, category: &Path, category_name: &str, name: &str) -> Result<()> {
    let (module, library) = (name.replace('-', "_"), format!("weft_{}", name.replace('-', "_")));
    let home = format!("weft_{}::{module}", category_name.replace('-', "_"));
    copy_folder(&model.join("src"), &category.join("src").join(&module), &|text, _| {
        // Within macros, paths are printed token by token.
        text.replace("crate ::", "crate::")
            .replace("crate::", &format!("crate::{module}::"))
            .replace(&format!("{library}::"), &format!("{home}::"))
    })?;
    let folder = category.join("src").join(&module);
    fs::rename(folder.join("lib.rs"), folder.join("mod.rs"))?;
    let lib = category.join("src/lib.rs");
    let text = read(&lib)?.replace(&format!("pub use {library} as {module};"), &format!("pub mod {module};"));
    write(&lib, &text)?;
    // The features of the runtime that the model's own crate asks for.
    let manifest = read(&model.join("Cargo.toml"))?;
    let asked = manifest.lines().find(|line| line.starts_with("weft = ")).unwrap_or_default();
    let asked: Vec<_> = asked.split('[').nth(1).unwrap_or_default().split('"').skip(1).step_by(2).collect();
    let asked: Vec<_> = asked.iter().map(|feature| format!("\"weft/{feature}\"")).collect();
    let path = category.join("Cargo.toml");
    let text = read(&path)?;
    let dependency = format!("weft-{name} = {{ path = ");
    let lines = text.lines().filter(|line| !line.starts_with(&dependency));
    let feature = format!("[\"dep:weft-{name}\"]");
    let lines: Vec<_> =
        lines.map(|line| line.replace(&feature, &format!("[{}]", asked.join(", ")))).collect();
    write(&path, &format!("{}\n", lines.join("\n")))
}

/// A manifest that may be published: versions beside paths, and what the sources of models need.
fn publishable(folder: &Path, version: &str) -> Result<()> {
    let path = folder.join("Cargo.toml");
    let text = read(&path)?.replace("publish = false\n", "");
    let lines = text.lines().filter(|line| !line.starts_with("weft-unified"));
    let lines = lines.map(|line| match line.strip_prefix("weft-") {
        Some(rest) if rest.contains("{ path = \"../") => {
            line.replace("{ path = \"", &format!("{{ version = \"{version}\", path = \""))
        }
        _ => line.to_owned(),
    });
    let text = format!("{}\n", lines.collect::<Vec<_>>().join("\n"));
    let has_models = text.contains("\n[lib]\ndoctest = false\n");
    let needed = "[dependencies]\nndarray.workspace = true\nserde.workspace = true\n";
    let text = if has_models { text.replace("[dependencies]\n", needed) } else { text };
    if text.contains("{ path = \"../../generated") {
        bail!("{} still names a crate of the repository", path.display());
    }
    write(&path, &text)
}

/// Lines without the sections of profiles, which name packages that are not published.
fn without_profiles<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let mut inside = false;
    let mut kept = vec![];
    for line in lines {
        if line.starts_with('[') {
            inside = line.starts_with("[profile");
        }
        if !inside {
            kept.push(*line);
        }
    }
    kept
}

/// The features of a manifest.
fn features(manifest: &str) -> Vec<&str> {
    let section = manifest.split("\n[features]\n").nth(1).unwrap_or_default();
    let section = section.split("\n[").next().unwrap_or_default();
    let named = |line: &'_ str| !line.starts_with([' ', '#', ']']) && line.contains(" = [");
    section.lines().filter(|line| named(line)).filter_map(|line| line.split(" = ").next()).collect()
}

/// The text of a key.
fn value(manifest: &str, key: &str) -> Option<String> {
    let start = format!("{key} = \"");
    let line = manifest.lines().find_map(|line| line.strip_prefix(&start))?;
    Some(line.trim_end_matches('"').to_owned())
}

/// Copies a folder's files, with a change to those that are Rust.
fn copy_folder(from: &Path, to: &Path, change: &dyn Fn(String, &Path) -> String) -> Result<()> {
    for entry in fs::read_dir(from).with_context(|| format!("listing {}", from.display()))? {
        let (path, to) = {
            let entry = entry?;
            (entry.path(), to.join(entry.file_name()))
        };
        if path.is_dir() {
            // The shared library of tests is no part of the runtime's package.
            if !path.join("Cargo.toml").exists() {
                copy_folder(&path, &to, change)?;
            }
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            write(&to, &change(read(&path)?, &path))?;
        } else {
            copy(&path, &to)?;
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(from, to).map(drop).with_context(|| format!("writing {}", to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_models_sources_become_a_module_of_its_category() {
        let dir = tempfile::tempdir().unwrap();
        let (model, category) = (dir.path().join("xlm-roberta"), dir.path().join("text-encoders"));
        write(
            &model.join("Cargo.toml"),
            "[dependencies]\nweft = { workspace = true, features = [\"text\", \"chat\"] }\n",
        )
        .unwrap();
        write(
            &model.join("src/lib.rs"),
            "//! `weft_xlm_roberta::Model`.\nmod model;\npub use model::Model;\n",
        )
        .unwrap();
        write(&model.join("src/model.rs"), "use crate::{Config, heads};\n").unwrap();
        write(&category.join("src/lib.rs"), "pub use weft_xlm_roberta as xlm_roberta;\n").unwrap();
        let manifest = "[lib]\ndoctest = false\n\n[dependencies]\nweft-xlm-roberta = { path = \"../../generated/x\", optional = true }\n\n\
                        [features]\nall = [\n    \"xlm-roberta\",\n]\nxlm-roberta = [\"dep:weft-xlm-roberta\"]\n";
        write(
            &category.join("Cargo.toml"),
            &format!("[package]\nname = \"x\"\npublish = false\n\n{manifest}"),
        )
        .unwrap();
        inline(&model, &category, "text-encoders", "xlm-roberta").unwrap();
        publishable(&category, "1.0.0").unwrap();
        let text = |file: &str| read(&category.join(file)).unwrap();
        assert_eq!(text("src/lib.rs"), "pub mod xlm_roberta;\n");
        assert_eq!(text("src/xlm_roberta/model.rs"), "use crate::xlm_roberta::{Config, heads};\n");
        assert!(text("src/xlm_roberta/mod.rs").contains("`weft_text_encoders::xlm_roberta::Model`"));
        let manifest = text("Cargo.toml");
        assert!(manifest.contains("xlm-roberta = [\"weft/text\", \"weft/chat\"]\n"), "{manifest}");
        assert!(manifest.contains("serde.workspace = true") && !manifest.contains("publish"), "{manifest}");
        assert_eq!(features(&manifest), ["all", "xlm-roberta"]);
    }

    #[test]
    fn profiles_are_left_out() {
        let lines = ["a", "[profile.dev]", "debug = 0", "", "[workspace.lints.rust]", "b"];
        assert_eq!(without_profiles(&lines), ["a", "[workspace.lints.rust]", "b"]);
    }
}
