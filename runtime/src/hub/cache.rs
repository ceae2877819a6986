//! The cache that `huggingface_hub` keeps: `models--org--name/{refs, snapshots, blobs}`.

use std::path::{Path, PathBuf};

use super::RepoId;
use crate::{Error, Result};

/// `models--org--name`.
pub(super) fn folder_name(repo: &RepoId) -> String {
    format!("models--{}", repo.name().replace('/', "--"))
}

/// What [`snapshot`] looks for, in words.
pub(super) fn wanted(repo: &RepoId) -> String {
    format!("refs/{0} or snapshots/{0}", repo.revision())
}

/// The folder of the revision's snapshot, if the cache has it.
///
/// A revision is a branch or tag, whose commit is written in `refs/<revision>`, or a commit itself.
pub(super) fn snapshot(cache: &Path, repo: &RepoId) -> Result<Option<PathBuf>> {
    let folder = cache.join(folder_name(repo));
    let reference = folder.join("refs").join(repo.revision());
    let commit = match std::fs::read_to_string(&reference) {
        Ok(text) => text.trim().to_string(),
        Err(_) => repo.revision().to_string(),
    };
    let plain = !commit.is_empty()
        && commit.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    if !plain || commit.starts_with('.') {
        if reference.is_file() {
            return Err(Error::hub(
                repo.name(),
                format!("{} does not hold the name of a commit", reference.display()),
                "the cache is damaged: remove that file and download the repository again",
            ));
        }
        return Ok(None);
    }
    let snapshot = folder.join("snapshots").join(commit);
    Ok(snapshot.is_dir().then_some(snapshot))
}

/// The marker by which `huggingface_hub` remembers that a commit has no such file.
#[cfg(feature = "hub")]
pub(super) fn absence_marker(snapshot: &Path, file: &str) -> Option<PathBuf> {
    let commit = snapshot.file_name()?;
    let folder = snapshot.parent()?.parent()?;
    Some(folder.join(".no_exist").join(commit).join(file))
}
