//! The cache folder: which packages are there, and putting one there all at once or not at all.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::packages::{Artifact, Platform};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

/// The file that makes a package count: written last, with what it was made from.
const COMPLETE: &str = ".complete";

/// What the marker of a package says.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Marker {
    name: String,
    version: String,
    filename: String,
    sha256: String,
}

/// A folder of unpacked packages.
#[derive(Clone, Debug)]
pub struct Cache {
    packages: PathBuf,
}

impl Cache {
    /// The cache of this machine, for its own platform or, prefetched, for another one.
    ///
    /// What is prefetched for a platform lies in a folder of its own, to be copied to a machine of that
    /// platform and named there in `WEFT_CACHE`.
    pub fn open(platform: Platform) -> Result<Self> {
        let root = root()?;
        let own = Platform::host() == Some(platform);
        let root = if own { root } else { root.join("prefetched").join(platform.name()) };
        Ok(Self::at(&root))
    }

    /// A cache in a folder of choice.
    pub fn at(root: &Path) -> Self {
        Self { packages: root.join("packages") }
    }

    /// Where the unpacked packages are.
    pub fn packages(&self) -> &Path {
        &self.packages
    }

    /// Where a package is unpacked to, there or not.
    pub fn folder(&self, artifact: &Artifact<'_>) -> PathBuf {
        self.packages.join(artifact.package.folder())
    }

    /// Whether a package is there: whole, and made from the pinned file.
    pub fn has(&self, artifact: &Artifact<'_>) -> bool {
        let folder = self.folder(artifact);
        let marker = fs::read(folder.join(COMPLETE)).ok();
        let marker: Option<Marker> = marker.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        marker.is_some_and(|marker| marker.sha256 == artifact.sha256)
            && folder.join(artifact.library).exists()
    }

    /// A folder beside the packages to work in, removed when dropped. Leftovers of killed runs go first.
    pub fn workspace(&self) -> Result<TempDir> {
        let unwritable = || {
            format!(
                "cannot write to the cache folder {}: make room, correct its permissions, or name another folder \
                 in WEFT_CACHE",
                self.packages.display()
            )
        };
        fs::create_dir_all(&self.packages).with_context(unwritable)?;
        self.sweep();
        tempfile::Builder::new().prefix(PARTIAL).tempdir_in(&self.packages).with_context(unwritable)
    }

    /// Moves a finished folder to its place. A half-unpacked or outdated folder there is replaced.
    pub fn install(&self, artifact: &Artifact<'_>, content: &Path, work: &Path) -> Result<PathBuf> {
        for member in artifact.pin.companions.iter().map(String::as_str).chain([artifact.library]) {
            if !content.join(member).exists() {
                bail!(
                    "{} {} has no `{member}`, which its pin promises: correct the pin",
                    artifact.package.name,
                    artifact.package.version
                );
            }
        }
        let marker = Marker {
            name: artifact.package.name.clone(),
            version: artifact.package.version.clone(),
            filename: artifact.filename.to_owned(),
            sha256: artifact.sha256.to_owned(),
        };
        let file = fs::File::create(content.join(COMPLETE))?;
        serde_json::to_writer_pretty(&file, &marker)?;
        file.sync_all()?;

        let folder = self.folder(artifact);
        if folder.exists() {
            fs::rename(&folder, work.join("replaced"))
                .with_context(|| format!("cannot replace {}: is it in use?", folder.display()))?;
        }
        match fs::rename(content, &folder) {
            Err(_) if self.has(artifact) => {} // Another process was faster.
            moved => moved.with_context(|| format!("cannot move the package to {}", folder.display()))?,
        }
        Ok(folder)
    }

    /// Removes what runs that were killed have left behind, once it is old enough to be nobody's.
    fn sweep(&self) {
        let day = std::time::Duration::from_secs(24 * 60 * 60);
        for entry in fs::read_dir(&self.packages).into_iter().flatten().flatten() {
            let old = entry
                .metadata()
                .and_then(|meta| meta.modified())
                .is_ok_and(|at| at.elapsed().is_ok_and(|age| age > day));
            if old && entry.file_name().to_string_lossy().starts_with(PARTIAL) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

const PARTIAL: &str = ".partial-";

/// `WEFT_CACHE`, or `weft` in the platform's cache folder.
pub fn root() -> Result<PathBuf> {
    let named = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = named("WEFT_CACHE") {
        return Ok(folder);
    }
    let home = || named(if cfg!(windows) { "USERPROFILE" } else { "HOME" });
    let platform = if cfg!(windows) {
        named("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        home().map(|home| home.join("Library/Caches"))
    } else {
        named("XDG_CACHE_HOME")
            .filter(|path| path.is_absolute())
            .or_else(|| home().map(|home| home.join(".cache")))
    };
    let platform = platform.context("this account has no cache folder: name one in WEFT_CACHE")?;
    Ok(platform.join("weft"))
}
