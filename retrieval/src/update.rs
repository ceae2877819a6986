//! An index brought up to date with a folder of text files: new and changed files are read again, vanished ones taken out.

use std::collections::BTreeMap;
use std::path::Path;

use ndarray::Array2;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use walkdir::WalkDir;

use crate::index::{json, read_json};
use crate::{Embed, Error, Index, Passage, Result, Splitting};

/// Files of these endings are texts.
const ENDINGS: [&str; 4] = ["txt", "md", "markdown", "rst"];
/// Passages that are embedded at once, between two reports of progress.
const BATCH: usize = 64;
/// A file that is longer is no text that somebody wrote.
const LARGEST: u64 = 256 << 20;

/// How far an update is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Passages embedded, of how many.
    Embedded(usize, usize),
    /// The graph is being built.
    Building,
}

/// What an update did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Updated {
    /// Files that were new or changed.
    pub read: usize,
    /// Files that were as they are in the index.
    pub unchanged: usize,
    /// Files that are no more.
    pub removed: usize,
    /// Files of other kinds, or that are not UTF-8, by their paths.
    pub skipped: Vec<String>,
    /// Passages that were added.
    pub passages: usize,
}

/// What was indexed of a file.
#[derive(Serialize, Deserialize)]
struct Source {
    sha256: String,
    ids: Vec<u32>,
}

impl Index {
    /// Brings the index up to date with a folder's text files (`.txt`, `.md`, `.markdown`, `.rst`), in one transaction: where it
    /// fails or is killed, the index is as it was.
    ///
    /// # Errors
    /// When the folder cannot be read, the model fails or the disk is full.
    pub fn update(
        &mut self,
        folder: &Path,
        embedding: &dyn Embed,
        splitting: &Splitting,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Updated> {
        let mut updated = Updated::default();
        let known = self.known()?;
        let (mut changed, mut present) = (Vec::new(), Vec::new());
        for entry in WalkDir::new(folder).sort_by_file_name() {
            let entry = entry.map_err(|error| Error::Io { path: folder.to_owned(), source: error.into() })?;
            if !entry.file_type().is_file() {
                continue;
            }
            let name = name(folder, entry.path());
            let Some(text) = text(entry.path())? else {
                updated.skipped.push(name);
                continue;
            };
            let sha256 = hex(&Sha256::digest(text.as_bytes()));
            present.push(name.clone());
            match known.get(&name) {
                Some(source) if source.sha256 == sha256 => updated.unchanged += 1,
                _ => changed.push((splitting.passages(&name, &text), name, sha256)),
            }
        }
        updated.read = changed.len();
        let passages: Vec<Passage> =
            changed.iter().flat_map(|(passages, ..)| passages.iter().cloned()).collect();
        updated.passages = passages.len();
        let gone: Vec<_> =
            known.keys().filter(|name| present.binary_search(name).is_err()).cloned().collect();
        updated.removed = gone.len();
        if changed.is_empty() && gone.is_empty() {
            return Ok(updated);
        }
        let vectors = self.embed(embedding, &passages, progress)?;
        progress(Progress::Building);
        self.make_room(&passages, vectors.len())?;
        let mut txn = self.writing()?;
        let outdated = gone.iter().chain(changed.iter().map(|(_, name, _)| name));
        for name in outdated {
            if let Some(source) = known.get(name) {
                self.remove(&mut txn, &source.ids)?;
                self.sources.delete(&mut txn, name).map_err(|error| self.storage(error))?;
            }
        }
        let mut ids = self.put(&mut txn, &passages, &vectors.view())?.into_iter();
        for (passages, name, sha256) in changed {
            let source = Source { sha256, ids: ids.by_ref().take(passages.len()).collect() };
            let stored = json(self.path(), &source)?;
            self.sources.put(&mut txn, &name, &stored).map_err(|error| self.storage(error))?;
        }
        self.build(&mut txn)?;
        txn.commit().map_err(|error| self.storage(error))?;
        Ok(updated)
    }

    /// The vectors of passages, in their order.
    fn embed(
        &self,
        embedding: &dyn Embed,
        passages: &[Passage],
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Array2<f32>> {
        // Texts of like lengths run together.
        let mut order: Vec<usize> = (0..passages.len()).collect();
        order.sort_by_key(|&at| passages[at].text.len());
        let mut vectors = Array2::zeros((passages.len(), self.about().dimension));
        progress(Progress::Embedded(0, passages.len()));
        for (done, batch) in (0..).step_by(BATCH).zip(order.chunks(BATCH)) {
            let texts: Vec<&str> = batch.iter().map(|&at| passages[at].text.as_str()).collect();
            let rows = embedding.embed(&texts)?;
            self.check(rows.ncols())?;
            for (&at, row) in batch.iter().zip(rows.outer_iter()) {
                vectors.row_mut(at).assign(&row);
            }
            progress(Progress::Embedded(done + batch.len(), passages.len()));
        }
        Ok(vectors)
    }

    fn known(&self) -> Result<BTreeMap<String, Source>> {
        let txn = self.reading()?;
        let mut known = BTreeMap::new();
        for entry in self.sources.iter(&txn).map_err(|error| self.storage(error))? {
            let (name, stored) = entry.map_err(|error| self.storage(error))?;
            known.insert(name.to_owned(), read_json(self.path(), stored)?);
        }
        Ok(known)
    }
}

/// A file's path from the folder, with `/`.
fn name(folder: &Path, path: &Path) -> String {
    let path = path.strip_prefix(folder).unwrap_or(path);
    let parts: Vec<_> = path.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    parts.join("/")
}

/// A file's text; none where its ending is not a text's, or it is not UTF-8.
fn text(path: &Path) -> Result<Option<String>> {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase()).unwrap_or_default();
    let failed = |source| Error::Io { path: path.to_owned(), source };
    if !ENDINGS.contains(&ending.as_str()) || std::fs::metadata(path).map_err(failed)?.len() > LARGEST {
        return Ok(None);
    }
    Ok(String::from_utf8(std::fs::read(path).map_err(failed)?).ok())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
