//! Where the engines' libraries are: environment variables first, then the cache that `cargo xtask setup` fills.

use std::path::{Path, PathBuf};

use crate::{Error, Hardware, Result};

/// The folder of unpacked packages: `$WEFT_CACHE`, else `weft` in the platform's cache folder.
pub fn packages() -> Option<PathBuf> {
    let cache = match std::env::var_os("WEFT_CACHE").filter(|value| !value.is_empty()) {
        Some(cache) => PathBuf::from(cache),
        None => platform_cache()?.join("weft"),
    };
    Some(cache.join("packages"))
}

#[cfg(target_os = "macos")]
fn platform_cache() -> Option<PathBuf> {
    Some(Path::new(&std::env::var_os("HOME")?).join("Library/Caches"))
}

#[cfg(windows)]
fn platform_cache() -> Option<PathBuf> {
    std::env::var_os("LOCALAPPDATA").map(PathBuf::from)
}

#[cfg(not(any(target_os = "macos", windows)))]
fn platform_cache() -> Option<PathBuf> {
    let xdg = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    xdg.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cache")))
}

/// The newest complete version of a package.
pub fn package(name: &str) -> Option<PathBuf> {
    let prefix = format!("{name}-");
    let mut found: Vec<(Vec<u64>, PathBuf)> = std::fs::read_dir(packages()?)
        .ok()?
        .flatten()
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.strip_prefix(&prefix)?.to_owned();
            let numbers = version.split('.').map(str::parse).collect::<Result<Vec<u64>, _>>().ok()?;
            entry.path().join(".complete").is_file().then(|| (numbers, entry.path()))
        })
        .collect();
    found.sort();
    found.pop().map(|(_, path)| path)
}

/// A library within a folder: the file whose name begins with `stem` and is one for this platform.
pub fn within(folder: &Path, stem: &str) -> Option<PathBuf> {
    let (prefix, marker) = match std::env::consts::OS {
        "windows" => ("", ".dll"),
        "macos" => ("lib", ".dylib"),
        _ => ("lib", ".so"),
    };
    let start = format!("{prefix}{stem}");
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let rest = name.strip_prefix(&start);
            rest.is_some_and(|rest| rest.starts_with('.') && name.contains(marker))
        })
        .collect();
    found.sort();
    found.pop()
}

/// ONNX Runtime's library: the build that holds the backend's provider, else the plain one.
///
/// # Errors
/// When `ORT_DYLIB_PATH` names no file, or nothing is set up.
pub fn onnxruntime(hardware: Hardware) -> Result<PathBuf> {
    if let Some(path) =
        std::env::var_os("ORT_DYLIB_PATH").filter(|value| !value.is_empty()).map(PathBuf::from)
    {
        if path.is_file() {
            return Ok(path);
        }
        let problem = format!("ORT_DYLIB_PATH is {}, which is no file", path.display());
        let help = "point it at libonnxruntime, or unset it and run `cargo xtask setup --hw cpu`";
        return Err(Error::unavailable(Hardware::Cpu, problem, help));
    }
    let name = match hardware {
        Hardware::Cuda => "onnxruntime-gpu",
        Hardware::Rocm => "onnxruntime-migraphx",
        _ => "onnxruntime",
    };
    let library = package(name).and_then(|folder| within(&folder.join("onnxruntime/capi"), "onnxruntime"));
    library.ok_or_else(|| missing(if name == "onnxruntime" { Hardware::Cpu } else { hardware }))
}

/// The error for a backend whose library is not set up.
pub fn missing(hardware: Hardware) -> Error {
    let place = packages().map_or_else(|| "the cache folder".to_owned(), |path| path.display().to_string());
    let problem = format!("its runtime library is not in {place}");
    Error::unavailable(hardware, problem, format!("run `cargo xtask setup --hw {hardware}`"))
}
