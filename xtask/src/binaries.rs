//! Builds the test binaries of generated crates, all in one cargo invocation, and starts them.

use std::collections::BTreeMap;
use std::env::{self, consts};
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};

use crate::workspace::{Member, cargo, root};

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

/// The runtime as a shared library, which the test binaries of a folder have in common.
pub fn runtime(binary: &Path) -> PathBuf {
    binary.with_file_name(format!("{}weft_dylib{}", consts::DLL_PREFIX, consts::DLL_SUFFIX))
}

/// The shared libraries that a test binary needs beside it on a machine that builds nothing: the runtime and Rust's own.
pub fn shared(binary: &Path) -> Vec<PathBuf> {
    let own = |entry: &Path| {
        let name = entry.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        name.starts_with(&format!("{}std-", consts::DLL_PREFIX)) && name.ends_with(consts::DLL_SUFFIX)
    };
    let rust = standard_library().and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten();
    let rust = rust.flatten().map(|entry| entry.path()).filter(|path| own(path));
    std::iter::once(runtime(binary)).chain(rust).collect()
}

/// A process of a test binary: it is told where the shared libraries are that it is linked to.
pub fn command(binary: &Path) -> Command {
    let mut command = Command::new(binary);
    let own = binary.parent().map(Path::to_path_buf);
    let given = env::var_os(LIBRARIES).unwrap_or_default();
    let folders = own.into_iter().chain(standard_library()).chain(env::split_paths(&given));
    // A folder whose name holds the separator cannot be told: the loader says what it misses.
    if let Ok(folders) = env::join_paths(folders) {
        command.env(LIBRARIES, folders);
    }
    command
}

/// Where the loader of shared libraries looks first.
const LIBRARIES: &str = match consts::OS.as_bytes() {
    b"windows" => "PATH",
    b"macos" => "DYLD_FALLBACK_LIBRARY_PATH",
    _ => "LD_LIBRARY_PATH",
};

/// The folder of Rust's own shared library, by the compiler that builds here.
fn standard_library() -> Option<PathBuf> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let ask = || {
        let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| OsString::from("rustc")));
        let output = rustc.args(["--print", "target-libdir"]).current_dir(root()).output().ok()?;
        let printed = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| PathBuf::from(printed.trim()))
    };
    FOLDER.get_or_init(ask).clone()
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
    fn a_process_looks_for_the_runtime_beside_its_binary_first() {
        let command = command(Path::new("/t/debug/deps/hardware-1"));
        let (_, folders) = command.get_envs().find(|(name, _)| *name == LIBRARIES).unwrap();
        let folders: Vec<_> = env::split_paths(folders.unwrap()).collect();
        assert_eq!(folders[0], Path::new("/t/debug/deps"));
        assert!(folders[1].join("../lib").is_dir(), "{folders:?}");
        assert_eq!(runtime(Path::new("/t/debug/deps/hardware-1")).parent(), Some(folders[0].as_path()));
    }

    #[test]
    fn the_executable_is_read_from_cargos_messages() {
        let line = r#"{"reason":"compiler-artifact","manifest_path":"/a/Cargo.toml","target":{"name":"hardware","kind":["test"]},"executable":"/t/hardware-1"}"#;
        assert_eq!(artifact(line), Some(("/a/Cargo.toml".into(), "/t/hardware-1".into())));
        assert_eq!(artifact(r#"{"reason":"build-finished","success":true}"#), None);
        assert_eq!(artifact("not json"), None);
    }
}
