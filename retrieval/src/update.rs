//! An index brought up to date with a folder of text files: new and changed files are read again, vanished ones taken out.

use std::collections::BTreeMap;
use std::path::Path;

use ndarray::{ArrayView2, Axis, concatenate};
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
        let vectors = embed(embedding, &passages, progress)?;
        progress(Progress::Building);
        self.make_room(&passages, vectors.iter().map(ndarray::ArrayBase::len).sum())?;
        let mut txn = self.writing()?;
        let outdated = gone.iter().chain(changed.iter().map(|(_, name, _)| name));
        for name in outdated {
            if let Some(source) = known.get(name) {
                self.remove(&mut txn, &source.ids)?;
                self.sources.delete(&mut txn, name).map_err(|error| self.storage(error))?;
            }
        }
        let views: Vec<ArrayView2<'_, f32>> = vectors.iter().map(|rows| rows.view()).collect();
        let mut ids = match views.is_empty() {
            true => vec![],
            false => {
                let all = concatenate(Axis(0), &views).map_err(|error| self.storage(error))?;
                self.put(&mut txn, &passages, &all.view())?
            }
        }
        .into_iter();
        for (passages, name, sha256) in changed {
            let source = Source { sha256, ids: ids.by_ref().take(passages.len()).collect() };
            let stored = json(self.path(), &source)?;
            self.sources.put(&mut txn, &name, &stored).map_err(|error| self.storage(error))?;
        }
        self.build(&mut txn)?;
        txn.commit().map_err(|error| self.storage(error))?;
        Ok(updated)
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

fn embed(
    embedding: &dyn Embed,
    passages: &[Passage],
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<ndarray::Array2<f32>>> {
    // Texts of like lengths run together; vectors go back into their order.
    let mut order: Vec<usize> = (0..passages.len()).collect();
    order.sort_by_key(|&at| passages[at].text.len());
    let mut rows: Vec<Option<ndarray::Array1<f32>>> = vec![None; passages.len()];
    let mut done = 0;
    progress(Progress::Embedded(0, passages.len()));
    for batch in order.chunks(BATCH) {
        let texts: Vec<&str> = batch.iter().map(|&at| passages[at].text.as_str()).collect();
        let vectors = embedding.embed(&texts)?;
        for (&at, vector) in batch.iter().zip(vectors.outer_iter()) {
            rows[at] = Some(vector.to_owned());
        }
        done += batch.len();
        progress(Progress::Embedded(done, passages.len()));
    }
    Ok(rows.into_iter().flatten().map(|row| row.insert_axis(Axis(0))).collect())
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
