//! The programs that a package is made with: a linker where the compiler brings none, `wasm-bindgen` and `wasm-opt`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::toolchain::Toolchain;
use crate::terminal::Usage;
use crate::workspace::root;

/// The linker that a compiler must be told of.
///
/// # Errors
/// Says what to install where there is none.
pub fn linker(toolchain: Toolchain) -> Result<Option<PathBuf>> {
    if toolchain == Toolchain::Rustup {
        return Ok(None);
    }
    let names = (14..=25).rev().map(|version| format!("wasm-ld-{version}"));
    let found = ["wasm-ld".to_owned()].into_iter().chain(names).find_map(|name| on_path(&name));
    let found = found.or_else(of_rustup);
    let help = "there is no linker for WebAssembly: on Debian `apt install lld-19`";
    found.map(Some).ok_or_else(|| Usage(help.to_owned()).into())
}

/// The one that rustup's toolchains bring.
fn of_rustup() -> Option<PathBuf> {
    let home = env::var_os("RUSTUP_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".rustup")))?;
    let below =
        |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let toolchains = below(&home.join("toolchains"));
    let mut hosts =
        toolchains.flat_map(|toolchain| below(&toolchain.join("lib/rustlib")).collect::<Vec<_>>());
    hosts.find_map(|host| Some(host.join("bin/rust-lld")).filter(|linker| linker.is_file()))
}

/// `wasm-bindgen` of the version that the library has: `$WEFT_WASM_BINDGEN`, or on the path.
///
/// # Errors
/// Says how to install it where it is not there, or is of another version.
pub fn wasm_bindgen() -> Result<PathBuf> {
    let lock = fs::read_to_string(root().join("Cargo.lock")).context("reading Cargo.lock")?;
    let wanted = locked(&lock, "wasm-bindgen").context("Cargo.lock has no wasm-bindgen")?;
    let help = format!("`cargo install wasm-bindgen-cli --version {wanted}`");
    let program = env::var_os("WEFT_WASM_BINDGEN").map(PathBuf::from).or_else(|| on_path("wasm-bindgen"));
    let program = program.ok_or_else(|| Usage(format!("there is no wasm-bindgen: {help}")))?;
    let output = Command::new(&program).arg("--version").output();
    let output = output.with_context(|| format!("starting {}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let found = text.split_whitespace().nth(1).unwrap_or_default();
    if found == wanted {
        return Ok(program);
    }
    let problem = format!("{} is of version {found}, and the library of {wanted}", program.display());
    Err(Usage(format!("{problem}: {help}")).into())
}

/// `wasm-opt` that takes these options: `$WEFT_WASM_OPT`, or on the path.
///
/// # Errors
/// Says what is left out, and how to install it.
pub fn wasm_opt(options: &[&str]) -> Result<PathBuf, String> {
    let help = "`npm install --global binaryen`";
    let program = env::var_os("WEFT_WASM_OPT").map(PathBuf::from).or_else(|| on_path("wasm-opt"));
    let program = program.ok_or_else(|| format!("left out: wasm-opt, which makes it smaller: {help}"))?;
    // An old one ends at what it does not know: Debian 12's, of 2022.
    let output = Command::new(&program).args(options).arg("--version").output();
    let known = output.is_ok_and(|output| output.status.success());
    known.then_some(program.clone()).ok_or_else(|| {
        format!("left out: {}, which does not know all that browsers have: {help}", program.display())
    })
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// The version of a package in `Cargo.lock`.
fn locked(lock: &str, name: &str) -> Option<String> {
    let (_, rest) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
    Some(rest.split('"').next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_locked_one() {
        let lock = "[[package]]\nname = \"wasm-bindgen-shared\"\nversion = \"9\"\n\n[[package]]\nname = \"wasm-bindgen\"\nversion = \"0.2.130\"\n";
        assert_eq!(locked(lock, "wasm-bindgen").as_deref(), Some("0.2.130"));
        assert_eq!(locked(lock, "wasm"), None);
    }
}
