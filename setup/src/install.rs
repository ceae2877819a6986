//! Puts packages into the cache: each whole, or not at all.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Serialize;

use crate::cache::Cache;
use crate::packages::{Artifact, Package, Platform};
use crate::{fetch, unpack};

/// Who watches an installation, and may stop it between packages.
pub trait Watch {
    /// How many packages will be downloaded.
    fn begin(&self, packages: usize);
    /// What is being done.
    fn line(&self, text: &str);
    /// One more package is there.
    fn step(&self, package: &str);
    /// Whether no more are to be begun.
    fn stopped(&self) -> bool;
}

/// What became of one package.
#[derive(Clone, Debug, Serialize)]
pub struct Installed {
    /// Its name.
    pub name: String,
    /// Its release.
    pub version: String,
    /// What was done.
    pub state: State,
    /// The folder it is unpacked in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// What is loaded, run or opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<PathBuf>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl fmt::Display for Installed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.as_deref().map(|path| path.display().to_string()).unwrap_or_default();
        let reason = self.reason.as_deref().unwrap_or_default();
        write!(f, "{} {}: ", self.name, self.version)?;
        match self.state {
            State::Present => write!(f, "there already, {path}"),
            State::Fetched => write!(f, "fetched, {path}"),
            State::None => write!(f, "none for this platform: {reason}"),
            State::Failed => write!(f, "failed: {reason}"),
        }
    }
}

/// What was done about a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It was there.
    Present,
    /// It was downloaded, verified and unpacked.
    Fetched,
    /// This platform has none.
    None,
    /// It could not be had.
    Failed,
}

/// Puts packages into the cache, and says of each what became of it; those after a stop are left out.
pub fn install(
    cache: &Cache,
    platform: Platform,
    packages: &[&Package],
    force: bool,
    watch: &dyn Watch,
) -> Vec<Installed> {
    let missing =
        |package: &&&Package| package.artifact(platform).is_ok_and(|artifact| force || !cache.has(&artifact));
    watch.begin(packages.iter().filter(missing).count());
    let mut done = Vec::new();
    for package in packages {
        if watch.stopped() {
            break;
        }
        done.push(install_one(cache, platform, package, force, watch));
    }
    done
}

fn install_one(
    cache: &Cache,
    platform: Platform,
    package: &Package,
    force: bool,
    watch: &dyn Watch,
) -> Installed {
    let blank = Installed {
        name: package.name.clone(),
        version: package.version.clone(),
        state: State::Present,
        path: None,
        library: None,
        reason: None,
    };
    let artifact = match package.artifact(platform) {
        Ok(artifact) => artifact,
        Err(reason) => return Installed { state: State::None, reason: Some(reason), ..blank },
    };
    let at = |folder: PathBuf, state| {
        let library = Some(folder.join(artifact.library));
        Installed { state, path: Some(folder), library, ..blank.clone() }
    };
    if !force && cache.has(&artifact) {
        return at(cache.folder(&artifact), State::Present);
    }
    match download(cache, &artifact, watch) {
        Ok(folder) => at(folder, State::Fetched),
        Err(error) => Installed { state: State::Failed, reason: Some(format!("{error:#}")), ..blank },
    }
}

/// Downloads, verifies, unpacks and installs; nothing is left behind when any of it fails.
fn download(cache: &Cache, artifact: &Artifact<'_>, watch: &dyn Watch) -> Result<PathBuf> {
    let package = format!("{} {}", artifact.package.name, artifact.package.version);
    let size =
        artifact.pin.bytes.map(|bytes| format!(" ({} MB)", bytes.div_ceil(1_000_000))).unwrap_or_default();
    let work = cache.workspace()?;
    watch.line(&format!("{package}: downloading{size}"));
    let file = fetch::fetch(artifact, &work.path().join("download"))?;
    watch.line(&format!("{package}: verified, unpacking"));
    let folder = place(cache, artifact, &file, work.path())?;
    watch.step(&package);
    Ok(folder)
}

fn place(cache: &Cache, artifact: &Artifact<'_>, file: &Path, work: &Path) -> Result<PathBuf> {
    let content = work.join("content");
    unpack::unpack(artifact, file, &content)?;
    cache.install(artifact, &content, work)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn a_package_counts_only_when_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path());
        let (file, bytes) = testing::wheel(dir.path());
        let package = testing::package(&bytes);
        let artifact = testing::artifact(&package);

        // A folder that a killed run left half-unpacked.
        let folder = cache.folder(&artifact);
        std::fs::create_dir_all(folder.join("thing")).unwrap();
        std::fs::write(folder.join("thing/libthing.so"), "half").unwrap();
        assert!(!cache.has(&artifact));

        let work = cache.workspace().unwrap();
        fetch::verify(&file, &artifact).unwrap();
        place(&cache, &artifact, &file, work.path()).unwrap();
        assert!(cache.has(&artifact));
        assert_eq!(std::fs::read(folder.join("thing/libthing.so")).unwrap(), b"library");

        // Another file pinned: what is there no longer counts.
        let package = testing::package(b"another");
        assert!(!cache.has(&testing::artifact(&package)));
    }

    #[test]
    fn a_promised_member_that_is_missing_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path());
        let (file, bytes) = testing::wheel(dir.path());
        let mut package = testing::package(&bytes);
        package.platforms[0].companions.push("thing/other.so".into());
        let work = cache.workspace().unwrap();
        let error = place(&cache, &testing::artifact(&package), &file, work.path()).unwrap_err();
        assert!(error.to_string().contains("`thing/other.so`"), "{error}");
        assert!(!cache.folder(&testing::artifact(&package)).exists());
    }
}
