//! The runtime libraries of Weft's backends: which files of which releases, and putting them into a cache folder.
//!
//! Every file is pinned by name, version and SHA-256, and downloaded with the machine's own pip or npm. Without features
//! there are the types of the pins alone; `fetch` downloads and unpacks, `pins` has those of this release.

#[cfg(feature = "fetch")]
mod cache;
#[cfg(feature = "fetch")]
mod fetch;
#[cfg(feature = "fetch")]
mod install;
pub mod packages;
#[cfg(feature = "pins")]
mod pinned;
#[cfg(feature = "pins")]
mod pins;
#[cfg(feature = "fetch")]
mod unpack;

#[cfg(feature = "pins")]
pub use pinned::Pins;
#[cfg(feature = "fetch")]
pub use {
    cache::{Cache, root as cache_folder},
    fetch::pythons,
    install::{Installed, State, Watch, install},
};

#[cfg(test)]
#[cfg(feature = "fetch")]
mod testing {
    //! A package to try things on.

    use std::path::{Path, PathBuf};

    use crate::packages::{Artifact, Index, Package, Platform, PlatformPin};
    use sha2::{Digest, Sha256};

    /// A package whose pinned file has this content.
    pub fn package(content: &[u8]) -> Package {
        let pin = PlatformPin {
            filename: Some("thing-1.0-py3-none-any.whl".into()),
            sha256: Some(Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()),
            library: Some("thing/libthing.so".into()),
            ..PlatformPin::default()
        };
        Package {
            name: "thing".into(),
            version: "1.0".into(),
            index: Index::Pypi,
            purpose: "tests".into(),
            optional: false,
            platforms: [(Platform::Any, pin)].into_iter().collect(),
            license: None,
        }
    }

    pub fn artifact(package: &Package) -> Artifact<'_> {
        package.artifact(Platform::LinuxX86).unwrap()
    }

    /// A wheel with one library in it.
    pub fn wheel(folder: &Path) -> (PathBuf, Vec<u8>) {
        use std::io::Write;
        let path = folder.join("thing-1.0-py3-none-any.whl");
        let mut zip = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
        zip.start_file("thing/libthing.so", zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(b"library").unwrap();
        zip.finish().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        (path, bytes)
    }
}
