//! Builds the test binaries of generated crates, all in one cargo invocation.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use crate::workspace::{Member, cargo};

/// The name of the one test target that every generated crate has.
const TARGET: &str = "hardware";

/// Which of cargo's profiles to build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    Dev,
    Release,
}

/// The test binary of each crate, by package; a crate that does not compile is left out (cargo has said why).
pub fn build(members: &[Member], profile: Profile) -> Result<BTreeMap<String, PathBuf>> {
    let mut command = cargo();
    command.args(["build", "--keep-going", "--message-format=json-render-diagnostics"]);
    command.args(["--test", TARGET]);
    if profile == Profile::Release {
        command.arg("--release");
    }
    for member in members {
        command.args(["--package", &member.package]);
    }
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting cargo: is it on the PATH?")?;
    let stdout = child.stdout.take().context("cargo has no standard output")?;
    let mut built = BTreeMap::new();
    for line in BufReader::new(stdout).lines() {
        if let Some((manifest, executable)) = artifact(&line?)
            && let Some(member) = members.iter().find(|member| member.dir.join("Cargo.toml") == manifest)
        {
            built.insert(member.package.clone(), executable);
        }
    }
    let status = child.wait()?;
    if built.is_empty() && !members.is_empty() {
        bail!("no test binary was built ({status}): cargo's messages above say why");
    }
    Ok(built)
}

/// The test binary of one crate.
pub fn build_one(member: &Member, profile: Profile) -> Result<PathBuf> {
    build(std::slice::from_ref(member), profile)?
        .remove(&member.package)
        .with_context(|| format!("{} has no test binary `{TARGET}`", member.package))
}

/// The manifest and executable that a line of cargo's JSON messages announces.
fn artifact(line: &str) -> Option<(PathBuf, PathBuf)> {
    let message: serde_json::Value = serde_json::from_str(line).ok()?;
    let is_test = message["reason"] == "compiler-artifact" && message["target"]["name"] == TARGET;
    let text = |key: &str| Some(Path::new(message[key].as_str()?).to_owned());
    if is_test { Some((text("manifest_path")?, text("executable")?)) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_executable_is_read_from_cargos_messages() {
        let line = r#"{"reason":"compiler-artifact","manifest_path":"/a/Cargo.toml","target":{"name":"hardware","kind":["test"]},"executable":"/t/hardware-1"}"#;
        assert_eq!(artifact(line), Some(("/a/Cargo.toml".into(), "/t/hardware-1".into())));
        assert_eq!(artifact(r#"{"reason":"build-finished","success":true}"#), None);
        assert_eq!(artifact("not json"), None);
    }
}
