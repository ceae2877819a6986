//! Where OpenVINO's C library is: `OPENVINO_INSTALL_DIR`, else the package that `weft setup` unpacked.

use std::path::{Path, PathBuf};

use crate::engine::library;
use crate::{Error, Hardware, Result};

/// The variable that names a folder to use in place of the package.
const OVERRIDE: &str = "OPENVINO_INSTALL_DIR";

/// Where the library lies below an installation: the folder itself, a Python package, an archive.
const FOLDERS: [&str; 10] = [
    "",
    "libs",
    "openvino/libs",
    "runtime/lib/intel64",
    "runtime/lib/aarch64",
    "runtime/lib/arm64",
    "runtime/lib/intel64/Release",
    "runtime/lib/arm64/Release",
    "runtime/bin/intel64/Release",
    "runtime/bin/arm64/Release",
];

/// OpenVINO's C library, under whatever version its name carries.
///
/// # Errors
/// When `OPENVINO_INSTALL_DIR` names a folder without it, or nothing is set up.
pub(super) fn library() -> Result<PathBuf> {
    let chosen = std::env::var_os(OVERRIDE).filter(|value| !value.is_empty()).map(PathBuf::from);
    find(chosen.as_deref(), library::package("openvino").as_deref())
}

fn find(chosen: Option<&Path>, package: Option<&Path>) -> Result<PathBuf> {
    let below =
        |folder: &Path| FOLDERS.iter().find_map(|sub| library::within(&folder.join(sub), "openvino_c"));
    match chosen {
        Some(folder) => below(folder).ok_or_else(|| {
            let problem = format!("{OVERRIDE} is {}, which holds no OpenVINO C library", folder.display());
            let help = format!(
                "point it at an OpenVINO installation, or unset it and {}",
                library::set_up("openvino")
            );
            Error::unavailable(Hardware::Openvino, problem, help)
        }),
        None => package.and_then(below).ok_or_else(|| library::missing(Hardware::Openvino)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installation(file: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join(file);
        std::fs::create_dir_all(file.parent().expect("a parent")).expect("folders");
        std::fs::write(file, "").expect("a file");
        folder
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn takes_the_override_before_the_package_and_any_version() {
        let archive = installation("runtime/lib/intel64/libopenvino_c.so.2641");
        let package = installation("openvino/libs/libopenvino_c.so.2640");
        let found = find(Some(archive.path()), Some(package.path())).expect("a library");
        assert_eq!(found, archive.path().join("runtime/lib/intel64/libopenvino_c.so.2641"));
        let found = find(None, Some(package.path())).expect("a library");
        assert_eq!(found, package.path().join("openvino/libs/libopenvino_c.so.2640"));
    }

    #[test]
    fn what_is_missing_is_named_with_the_way_to_get_it() {
        let empty = tempfile::tempdir().expect("a folder");
        let error = find(Some(empty.path()), None).expect_err("nothing there").to_string();
        assert!(error.contains(OVERRIDE) && error.contains(&*empty.path().to_string_lossy()), "{error}");
        for package in [None, Some(empty.path())] {
            let error = find(None, package).expect_err("nothing there");
            assert!(matches!(error, Error::Unavailable { hardware: Hardware::Openvino, .. }), "{error}");
            assert!(error.to_string().contains("cargo xtask setup --hw openvino"), "{error}");
        }
    }
}
