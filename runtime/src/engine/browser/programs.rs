//! Which browser and which ONNX Runtime Web are used, and what is missing otherwise.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::engine::library;
use crate::{Error, Hardware, Result};

/// The files of ONNX Runtime Web that a page needs.
pub(super) const BUNDLE: &str = "ort.webgpu.bundle.min.mjs";
pub(super) const WASM: &str = "ort-wasm-simd-threaded.asyncify.wasm";

/// A headless Chromium whose WebNN has a CPU device.
const PACKAGE: &str = "sparticuz-chromium";

/// Browsers that a system may have; their WebNN seldom has a device on Linux.
const INSTALLED: [&str; 5] =
    ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "msedge"];

/// What is needed to run a graph in a browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Programs {
    /// The browser.
    pub browser: PathBuf,
    /// The package it belongs to, whose libraries and fonts it uses.
    pub package: Option<PathBuf>,
    /// `Chromium 153`.
    pub name: String,
    /// The folder of ONNX Runtime Web's files.
    pub web: PathBuf,
    /// ONNX Runtime Web's version.
    pub version: String,
}

/// Finds both: `$WEFT_BROWSER` first, then what `weft setup` unpacked or the system has.
pub(super) fn find(hardware: Hardware) -> Result<Programs> {
    let setup = library::set_up(hardware.name());
    let (web, version) = web().ok_or_else(|| {
        let place =
            library::packages().map_or_else(|| "the cache folder".to_owned(), |p| p.display().to_string());
        Error::unavailable(hardware, format!("ONNX Runtime Web is not in {place}"), setup.clone())
    })?;
    let found = |browser, package, name| Programs { browser, package, name, web, version };
    if let Some(asked) = std::env::var_os("WEFT_BROWSER").filter(|value| !value.is_empty()) {
        let browser = PathBuf::from(&asked);
        let browser = if browser.is_file() { Some(browser) } else { in_path(&asked.to_string_lossy()) };
        let browser = browser.ok_or_else(|| {
            let problem = format!("WEFT_BROWSER is {}, which is no file", Path::new(&asked).display());
            Error::unavailable(hardware, problem, format!("point it at a Chromium, or unset it and {setup}"))
        })?;
        let name = ask(&browser);
        return Ok(found(browser, None, name));
    }
    // Debian's Chromium draws with WebGPU but has no WebNN; the package has both.
    if hardware == Hardware::Webgpu
        && let Some(browser) = INSTALLED.iter().find_map(|name| in_path(name))
    {
        let name = ask(&browser);
        return Ok(found(browser, None, name));
    }
    let package = library::package(PACKAGE).filter(|package| package.join("bin/chromium").is_file());
    let package = package.ok_or_else(|| {
        let problem = if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            "the browser is not set up"
        } else {
            "the browser that is packaged is for Linux on x86-64 only, and WEFT_BROWSER names no other"
        };
        let help = format!("{setup}, or name a Chromium that has it in WEFT_BROWSER");
        Error::unavailable(hardware, problem, help)
    })?;
    let name = format!("Chromium {}", major(&version_of(&package)));
    Ok(found(package.join("bin/chromium"), Some(package), name))
}

fn web() -> Option<(PathBuf, String)> {
    let package = library::package("onnxruntime-web")?;
    let dist = package.join("dist");
    let whole = [BUNDLE, WASM].iter().all(|file| dist.join(file).is_file());
    whole.then(|| (dist, version_of(&package)))
}

/// The version at the end of a package's folder name.
fn version_of(package: &Path) -> String {
    let name = package.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.rsplit('-').next().unwrap_or_default().to_owned()
}

fn in_path(name: &str) -> Option<PathBuf> {
    let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(&name))
        .find(|path| path.is_file())
}

/// The name and version that a browser tells; asked once per browser.
fn ask(browser: &Path) -> String {
    static VERSIONS: Mutex<Option<HashMap<PathBuf, String>>> = Mutex::new(None);
    let mut versions = VERSIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let versions = versions.get_or_insert_default();
    if let Some(name) = versions.get(browser) {
        return name.clone();
    }
    // On Windows browsers open a window instead of telling.
    let output = (!cfg!(windows)).then(|| Command::new(browser).arg("--version").output().ok()).flatten();
    let output =
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let name = short(&output).unwrap_or_else(|| browser.display().to_string());
    versions.insert(browser.to_path_buf(), name.clone());
    name
}

/// `Chromium 156` of `Chromium 156.0.8078.79 built on Debian`.
fn short(told: &str) -> Option<String> {
    let words: Vec<&str> = told.split_whitespace().collect();
    let version = words.iter().position(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    Some(format!("{} {}", words[..version].join(" "), major(words[version])))
}

fn major(version: &str) -> &str {
    version.split('.').next().unwrap_or(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_shortened() {
        let told = "Chromium 156.0.8078.79 built on Debian GNU/Linux 12 (bookworm)\n";
        assert_eq!(short(told).as_deref(), Some("Chromium 156"));
        assert_eq!(short("Google Chrome 121.0.6167.85").as_deref(), Some("Google Chrome 121"));
        assert_eq!(short(""), None);
        assert_eq!(version_of(Path::new("/cache/packages/onnxruntime-web-1.30.0")), "1.30.0");
    }
}
