//! Downloads from the hub into the cache, through the crate `hf-hub`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hf_hub::api::sync::{ApiBuilder, ApiError, ApiRepo};
use hf_hub::{Repo, RepoType};

use super::{Environment, RepoId, cache};
use crate::{Error, Result};

/// One commit of a repository on the hub.
///
/// Files are asked for by commit, so that a branch that moves between two files cannot mix two versions.
#[derive(Clone, Debug)]
pub(super) struct Remote {
    repo: RepoId,
    snapshot: PathBuf,
    environment: Environment,
    /// Set once the hub could not be reached: what follows then does not wait for it again.
    unreachable: Arc<AtomicBool>,
}

impl Remote {
    /// The commit of a snapshot that is in the cache already.
    pub(super) fn pinned(repo: &RepoId, snapshot: &Path, environment: &Environment) -> Self {
        Self {
            repo: repo.clone(),
            snapshot: snapshot.into(),
            environment: environment.clone(),
            unreachable: Arc::default(),
        }
    }

    /// Finds out the revision's commit by fetching its first file: the one that is wanted, or one that repositories have.
    pub(super) fn connect(
        id: &str,
        repo: &RepoId,
        wanted: Option<&str>,
        environment: &Environment,
    ) -> Result<(PathBuf, Self)> {
        // A repository of sentence-transformers may keep its config.json in a subfolder only.
        for first in wanted.into_iter().chain(["config.json", "modules.json"]) {
            match repository(id, repo.name(), repo.revision(), environment)?.get(first) {
                Ok(path) => {
                    let folders = first.split('/').count();
                    let snapshot = path.ancestors().nth(folders).map(Path::to_path_buf).unwrap_or_default();
                    let remote = Self::pinned(repo, &snapshot, environment);
                    return Ok((snapshot, remote));
                }
                Err(e) if status(&e) == Some(404) => {}
                Err(e) => return Err(failure(id, first, &e, environment)),
            }
        }
        Err(Error::hub(
            id,
            format!(
                "no folder of that name, not in the cache {}, and {} has no such repository, no revision `{}` of it, \
                 or no config.json in it",
                environment.cache.display(),
                environment.endpoint,
                repo.revision()
            ),
            "check the spelling; for a private or gated repository set HF_TOKEN",
        ))
    }

    /// What to do about a file that is not there.
    pub(super) fn why_missing(&self) -> String {
        if self.unreachable.load(Ordering::Relaxed) {
            format!("{} could not be reached: connect and try again", self.environment.endpoint)
        } else {
            "the repository does not have it either: choose one that does".into()
        }
    }

    /// The path of a file in the snapshot; `None` when the commit has no such file.
    pub(super) fn get(&self, id: &str, file: &str) -> Result<Option<PathBuf>> {
        let marker = cache::absence_marker(&self.snapshot, file);
        if marker.as_ref().is_some_and(|m| m.exists()) || self.unreachable.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let commit = self.snapshot.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        match repository(id, self.repo.name(), &commit, &self.environment)?.get(file) {
            Ok(path) => Ok(Some(path)),
            Err(e) if status(&e) == Some(404) => {
                remember_absence(marker.as_deref());
                Ok(None)
            }
            Err(e) if status(&e).is_none() && is_network(&e) => {
                tracing::warn!(%id, file, "{} cannot be reached ({e}): going on with the cache", self.environment.endpoint);
                self.unreachable.store(true, Ordering::Relaxed);
                Ok(None)
            }
            Err(e) => Err(failure(id, file, &e, &self.environment)),
        }
    }
}

fn repository(id: &str, name: &str, revision: &str, environment: &Environment) -> Result<ApiRepo> {
    let api = ApiBuilder::from_cache(hf_hub::Cache::new(environment.cache.clone()))
        .with_endpoint(environment.endpoint.clone())
        .with_token(environment.token.clone())
        .with_progress(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_user_agent("weft", env!("CARGO_PKG_VERSION"))
        .build()
        .map_err(|e| failure(id, "", &e, environment))?;
    Ok(api.repo(Repo::with_revision(name.into(), RepoType::Model, revision.into())))
}

/// Later runs need not ask again; a cache that cannot be written only costs that.
fn remember_absence(marker: Option<&Path>) {
    if let Some(marker) = marker
        && let Some(folder) = marker.parent()
    {
        let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(marker, b""));
        if let Err(e) = written {
            tracing::debug!("{}: {e}", marker.display());
        }
    }
}

fn status(error: &ApiError) -> Option<u16> {
    match error {
        ApiError::RequestError(e) => match e.as_ref() {
            ureq::Error::StatusCode(code) => Some(*code),
            _ => None,
        },
        ApiError::TooManyRetries(e) => status(e),
        _ => None,
    }
}

fn is_network(error: &ApiError) -> bool {
    matches!(error, ApiError::RequestError(_) | ApiError::TooManyRetries(_))
}

fn failure(id: &str, file: &str, error: &ApiError, environment: &Environment) -> Error {
    let help = match status(error) {
        Some(401 | 403) => "the repository is private or gated: accept its terms and set HF_TOKEN".into(),
        Some(429) => "the hub asks to wait: try again later, or set HF_TOKEN".into(),
        Some(_) => "try again later, or set HF_ENDPOINT to a mirror".into(),
        None => format!(
            "check the network and the space in {}; with the files in the cache or in a folder, no network is needed",
            environment.cache.display()
        ),
    };
    Error::hub(id, format!("{file} could not be fetched from {}: {error}", environment.endpoint), help)
}

#[cfg(test)]
mod tests;
