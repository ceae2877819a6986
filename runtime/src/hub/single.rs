//! Checkpoints that were opened by one file of all components.

use std::sync::Arc;

use super::{Checkpoint, Environment, INDEX, RepoId, Source};
use crate::single_file::SingleFile;
use crate::{Result, files};

impl Checkpoint {
    /// A file of all components; what it does not say is beside it, or in the repository that its kind was published in.
    pub(super) fn of_single(
        id: &str,
        beside: Self,
        single: SingleFile,
        environment: &Environment,
    ) -> Result<Self> {
        let own = [INDEX, "tokenizer"].map(|name| beside.dir.join(name));
        let known = files::is_file(&own[0]) || files::is_dir(&own[1]);
        let elsewhere =
            |repository: &str| Self::open_repo(id, &RepoId::parse(repository)?, None, environment);
        let place = match known {
            true => beside,
            false => elsewhere(single.repository()).unwrap_or(beside),
        };
        Ok(Self { single: Some(Arc::new(single)), ..place })
    }

    /// The file that it was opened by, where that holds all components; a component has none of its own.
    pub(crate) fn single(&self) -> Option<&SingleFile> {
        self.whole().filter(|_| self.component.is_empty())
    }

    /// The file that holds all components; in a page none does.
    pub(super) fn whole(&self) -> Option<&SingleFile> {
        self.single.as_deref().filter(|_| cfg!(not(target_family = "wasm")))
    }

    /// What the single file has in place of a file: after a folder's own files where it lies among them, before those of a
    /// repository, which may be of another size.
    pub(super) fn implied(&self, file: &str) -> Result<Option<serde_json::Value>> {
        let Some(single) = self.whole() else { return Ok(None) };
        let Some(json) = single.json(&format!("{}{file}", self.component)) else { return Ok(None) };
        let own = matches!(self.source, Source::Folder) && self.path(file)?.is_some();
        Ok((!own).then(|| json.clone()))
    }
}
