//! Builds the test binaries of generated crates, all in one cargo invocation, and starts them.

use std::collections::BTreeMap;
use std::env::{self, consts};
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, IsTerminal};
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

/// A repository that is built, and the folder that takes what is made of it.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub folder: &'a Path,
    pub target: &'a Path,
}

/// The test binary of each crate, by package; a crate that does not compile is left out (the compiler has said why).
/// Where `CI` is set, a warning is an error: of most generated crates nothing else looks at the tests.
pub fn build(members: &[Member], profile: Profile) -> Result<BTreeMap<String, PathBuf>> {
    build_with(cargo(), members, profile)
}

/// The same of another repository than this one.
pub fn build_in(place: Place<'_>, members: &[Member], profile: Profile) -> Result<BTreeMap<String, PathBuf>> {
    let mut command = cargo();
    command.current_dir(place.folder).env("CARGO_TARGET_DIR", place.target);
    build_with(command, members, profile)
}

fn build_with(
    mut command: Command,
    members: &[Member],
    profile: Profile,
) -> Result<BTreeMap<String, PathBuf>> {
    let colour = if io::stderr().is_terminal() { "json-diagnostic-rendered-ansi" } else { "json" };
    command.args(["build", "--keep-going", "--message-format", colour]);
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
    let mut warnings = 0;
    for line in BufReader::new(stdout).lines() {
        match message(&line?) {
            Some(Message::Said { text, warning }) => {
                eprint!("{text}");
                warnings += usize::from(warning);
            }
            Some(Message::Built { manifest, executable }) => {
                if let Some(member) = members.iter().find(|member| member.dir.join("Cargo.toml") == manifest)
                {
                    built.insert(member.package.clone(), executable);
                }
            }
            None => {}
        }
    }
    let status = child.wait()?;
    if warnings > 0 && env::var_os("CI").is_some() {
        bail!("the compiler warns, as is written above, which `CI` forbids ({warnings} in all)");
    }
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

/// What a line of cargo's JSON messages tells.
#[derive(Debug, PartialEq, Eq)]
enum Message {
    /// The compiler's own text.
    Said { text: String, warning: bool },
    /// The manifest and executable of a crate's tests.
    Built { manifest: PathBuf, executable: PathBuf },
}

fn message(line: &str) -> Option<Message> {
    let message: serde_json::Value = serde_json::from_str(line).ok()?;
    let path = |key: &str| Some(Path::new(message[key].as_str()?).to_owned());
    match message["reason"].as_str()? {
        "compiler-message" => Some(Message::Said {
            text: message["message"]["rendered"].as_str()?.to_owned(),
            warning: message["message"]["level"] == "warning",
        }),
        "compiler-artifact" if message["target"]["name"] == TARGET => {
            Some(Message::Built { manifest: path("manifest_path")?, executable: path("executable")? })
        }
        _ => None,
    }
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
        let built = Message::Built { manifest: "/a/Cargo.toml".into(), executable: "/t/hardware-1".into() };
        assert_eq!(message(line), Some(built));
        assert_eq!(message(r#"{"reason":"build-finished","success":true}"#), None);
        assert_eq!(message("not json"), None);
    }

    #[test]
    fn warnings_are_told_from_errors() {
        let said = |level: &str| {
            let message = serde_json::json!({"rendered": "unused variable\n", "level": level});
            serde_json::json!({"reason": "compiler-message", "message": message}).to_string()
        };
        let told = |warning| Some(Message::Said { text: "unused variable\n".into(), warning });
        assert_eq!(message(&said("warning")), told(true));
        assert_eq!(message(&said("error")), told(false));
    }
}
