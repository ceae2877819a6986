//! `cargo xtask lint`: clippy over what people write, and over generated crates that hold every template and part.

use std::collections::BTreeSet;

use anyhow::{Context, Result};

use crate::terminal::note;
use crate::test::cover;
use crate::workspace::{Member, cargo, generated, root};

/// Lint what people write, and of the generated crates as few as use every template and part between them.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Warnings are errors. The tests of all generated crates are compiled by `cargo xtask test`, \
which takes warnings for errors where CI is set."
)]
pub struct Args {
    /// Every generated crate.
    #[arg(long)]
    all: bool,
}

/// Runs the verb; whether nothing is to be mended.
pub fn run(args: &Args) -> Result<bool> {
    let members = generated(root())?;
    let samples = of_each_category(&members);
    let mut command = cargo();
    command.args(["clippy", "--quiet", "--workspace", "--all-targets"]);
    for member in members.iter().filter(|member| !samples.contains(&member.package)) {
        command.args(["--exclude", &member.package]);
    }
    // Without its default features, which build every model.
    let command = command.args(["--no-default-features", "--features", COMMAND]).args(DENY);
    if !command.status().context(STARTING)?.success() {
        return Ok(false);
    }

    let mut kept = members;
    if !args.all {
        cover::reduce(&mut kept, &crate::generate::parts()?);
    }
    note(format!("{} generated crates", kept.len()));
    let mut command = cargo();
    command.args(["clippy", "--quiet", "--lib", "--package", "weft", "--package", "weft-unified"]);
    command.args(["--features", "weft/conformance,weft/hub"]);
    for member in &kept {
        command.args(["--package", &member.package]);
    }
    Ok(command.args(DENY).status().context(STARTING)?.success())
}

/// All of `weft`, the command, but most of its models.
const COMMAND: &str =
    "weft-cli/browser,weft-cli/hub,weft-cli/openvino,weft-models/speech-text,weft-models/video";
const DENY: [&str; 3] = ["--", "--deny", "warnings"];
const STARTING: &str = "starting cargo: is it on the PATH?";

/// A crate of each category, for its tests and example: these differ between models by data alone.
fn of_each_category(members: &[Member]) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let first = members.iter().filter(|member| seen.insert(&member.category));
    first.map(|member| member.package.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_of_each_category_is_linted_whole() {
        let member = |category: &str, model: &str| Member {
            category: category.into(),
            model: model.into(),
            package: format!("weft-{model}"),
            dir: model.into(),
        };
        let members = [member("audio", "clap"), member("audio", "hubert"), member("vision", "vit")];
        let kept: Vec<_> = of_each_category(&members).into_iter().collect();
        assert_eq!(kept, ["weft-clap", "weft-vit"]);
    }
}
