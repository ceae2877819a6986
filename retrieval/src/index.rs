//! An index on disk: vectors in an HNSW graph, their passages beside them, both in one LMDB environment.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::path::{Path, PathBuf};

use hannoy::distances::Cosine;
use hannoy::{Reader, Writer};
use heed::byteorder::BigEndian;
use heed::types::{Bytes, Str, U32};
use heed::{CommitOrAbort, Env, EnvOpenOptions, RoTxn, RwTxn, WithoutTls};
use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

use crate::{Embed, Error, Passage, Result};

/// Edges of a node in the upper layers of the graph, and in the lowest.
const EDGES: usize = 16;
const LOWEST_EDGES: usize = 32;
/// Candidates that are kept while a node finds its edges, and while a query finds its nodes.
const BUILD_CANDIDATES: usize = 200;
const SEARCH_CANDIDATES: usize = 200;
/// The first size of the memory map; it grows with what is added.
const MAP: usize = 1 << 30;

/// Entries of JSON.
type Entries<'t, K> = heed::Database<'t, K, Bytes>;

/// Passages and their vectors in a folder, searched by cosine similarity.
pub struct Index {
    path: PathBuf,
    env: Env<WithoutTls>,
    vectors: hannoy::Database<'static, Cosine>,
    pub(crate) passages: Entries<'static, U32<BigEndian>>,
    /// What was indexed of each file.
    pub(crate) sources: Entries<'static, Str>,
    about: About,
}

/// What an index is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The model that made the vectors.
    pub model: String,
    /// How many numbers a vector has.
    pub dimension: usize,
}

/// A passage that was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Found {
    /// The passage.
    pub passage: Passage,
    /// The cosine of its vector and the query's, −1 to 1.
    pub score: f32,
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index").field("path", &self.path).field("about", &self.about).finish_non_exhaustive()
    }
}

impl Index {
    /// Opens the index in a folder, or begins one for a model's vectors where there is none.
    ///
    /// # Errors
    /// When the folder has another model's index or cannot be written, or the model fails.
    pub fn create(path: &Path, embedding: &dyn Embed) -> Result<Self> {
        if path.join("data.mdb").exists() {
            return Self::open(path)?.of(embedding);
        }
        std::fs::create_dir_all(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
        let dimension = embedding.embed(&["dimension"])?.ncols();
        Self::at(path, Some(&About { model: embedding.name(), dimension }))
    }

    /// Opens the index in a folder.
    ///
    /// # Errors
    /// When there is none, or it is not one of these.
    pub fn open(path: &Path) -> Result<Self> {
        if !path.join("data.mdb").exists() {
            let help = "name the folder of an index, or make one: `Index::create`";
            return Err(problem(path, "there is no index", help));
        }
        Self::at(path, None)
    }

    /// The index, if its vectors are this model's.
    ///
    /// # Errors
    /// When they are another's.
    pub fn of(self, embedding: &dyn Embed) -> Result<Self> {
        let name = embedding.name();
        if self.about.model == name {
            return Ok(self);
        }
        let said = format!("its vectors are of {}, and those asked with of {name}", self.about.model);
        Err(problem(&self.path, &said, "ask with the model that it was made with, or make another index"))
    }

    fn at(path: &Path, begun: Option<&About>) -> Result<Self> {
        let stored = |error: heed::Error| storage(path, error);
        let size = std::fs::metadata(path.join("data.mdb")).map_or(0, |file| file.len() as usize);
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        options.map_size(page_aligned(MAP.max(2 * size))).max_dbs(4);
        // SAFETY: the file is mapped. Other processes change it by LMDB's transactions alone, which leave the pages of a reader
        // as they are; a file that something else overwrites is no index.
        #[allow(unsafe_code)]
        let env = unsafe { options.open(path) }.map_err(stored)?;
        let mut about_read = None;
        let begun = begun.map(|about| json(path, about)).transpose()?;
        let txn = env.write_txn().map_err(stored)?;
        let opened = env.create_databases_and_commit(txn, |opener, txn| -> heed::Result<_> {
            let about: Entries<'_, Str> = opener.create_database(txn, Some("about"))?;
            if let Some(begun) = &begun {
                about.put(txn, "index", begun)?;
            }
            let Some(known) = about.get(txn, "index")?.map(<[u8]>::to_vec) else {
                return Ok(CommitOrAbort::Abort(()));
            };
            let vectors: hannoy::Database<'_, Cosine> = opener.create_database(txn, Some("vectors"))?;
            let passages: Entries<'_, U32<BigEndian>> = opener.create_database(txn, Some("passages"))?;
            let sources: Entries<'_, Str> = opener.create_database(txn, Some("sources"))?;
            about_read.replace(known);
            Ok(CommitOrAbort::Commit((vectors, passages, sources)))
        });
        let no_index = || problem(path, "is a database, and no index", "name another folder");
        let CommitOrAbort::Commit((vectors, passages, sources)) = opened.map_err(stored)? else {
            return Err(no_index());
        };
        let about = read_json(path, &about_read.ok_or_else(no_index)?)?;
        Ok(Self { path: path.to_owned(), env, vectors, passages, sources, about })
    }

    /// What it is of.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many passages it holds.
    ///
    /// # Errors
    /// When the database fails.
    pub fn len(&self) -> Result<u64> {
        let txn = self.reading()?;
        self.passages.len(&txn).map_err(|error| self.storage(error))
    }

    /// Whether it holds none.
    ///
    /// # Errors
    /// When the database fails.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Adds passages with their vectors, `[passages, dimension]`, and builds the graph; all of them or, where that fails, none.
    ///
    /// # Errors
    /// When there is not a vector of the index's dimension for each, or the disk is full.
    pub fn add(&mut self, passages: &[Passage], vectors: &ArrayView2<'_, f32>) -> Result<()> {
        self.make_room(passages, vectors.len())?;
        let mut txn = self.writing()?;
        self.put(&mut txn, passages, vectors)?;
        self.build(&mut txn)?;
        txn.commit().map_err(|error| self.storage(error))
    }

    /// The passages nearest to a vector, the nearest first.
    ///
    /// # Errors
    /// When the vector has another dimension than the index's.
    pub fn search(&self, vector: &[f32], count: usize) -> Result<Vec<Found>> {
        let txn = self.reading()?;
        let Some(reader) = self.reader(&txn, vector, count)? else { return Ok(vec![]) };
        let mut query = reader.nns(count);
        let near = query.ef_search(SEARCH_CANDIDATES.max(2 * count)).by_vector(&txn, vector);
        let near = near.map_err(|error| self.storage(error))?.into_nns();
        // The distance is half of what the cosine lacks of one.
        near.into_iter().map(|(id, distance)| self.found(&txn, id, 1.0 - 2.0 * distance)).collect()
    }

    /// The same by comparing with every vector: what the recall of [`Index::search`] is measured against.
    ///
    /// # Errors
    /// As [`Index::search`].
    pub fn search_exactly(&self, vector: &[f32], count: usize) -> Result<Vec<Found>> {
        let txn = self.reading()?;
        let Some(reader) = self.reader(&txn, vector, count)? else { return Ok(vec![]) };
        let mut nearest = BinaryHeap::new();
        for item in reader.iter(&txn).map_err(|error| self.storage(error))? {
            let (id, own) = item.map_err(|error| self.storage(error))?;
            nearest.push(Reverse((Score(cosine(vector, &own)), Reverse(id))));
            if nearest.len() > count {
                nearest.pop();
            }
        }
        let ordered = nearest.into_sorted_vec();
        ordered.into_iter().map(|Reverse((score, Reverse(id)))| self.found(&txn, id, score.0)).collect()
    }

    /// What searches the graph; none where there is nothing to find.
    fn reader<'t>(
        &self,
        txn: &RoTxn<'t, WithoutTls>,
        vector: &[f32],
        count: usize,
    ) -> Result<Option<Reader<'t, Cosine>>> {
        self.check(vector.len())?;
        if count == 0 || self.passages.is_empty(txn).map_err(|error| self.storage(error))? {
            return Ok(None);
        }
        Reader::open(txn, 0, self.vectors).map(Some).map_err(|error| self.storage(error))
    }

    fn found(&self, txn: &RoTxn<'_, WithoutTls>, id: u32, score: f32) -> Result<Found> {
        let stored = self.passages.get(txn, &id).map_err(|error| self.storage(error))?;
        let missing = || problem(&self.path, &format!("passage {id} is missing"), "make the index again");
        Ok(Found { passage: read_json(&self.path, stored.ok_or_else(missing)?)?, score })
    }

    /// Refuses vectors of another dimension than the index's.
    pub(crate) fn check(&self, dimension: usize) -> Result<()> {
        if dimension == self.about.dimension {
            return Ok(());
        }
        let said =
            format!("a vector has {dimension} numbers, and those of the index {}", self.about.dimension);
        Err(problem(&self.path, &said, "ask with the model that it was made with"))
    }

    /// Adds passages under the next free ids, which it gives.
    pub(crate) fn put(
        &self,
        txn: &mut RwTxn<'_>,
        passages: &[Passage],
        vectors: &ArrayView2<'_, f32>,
    ) -> Result<Vec<u32>> {
        self.check(vectors.ncols())?;
        if passages.len() != vectors.nrows() {
            let said = format!("{} passages have {} vectors", passages.len(), vectors.nrows());
            return Err(problem(&self.path, &said, "give one for each"));
        }
        let last = self.passages.last(txn).map_err(|error| self.storage(error))?;
        let first = last.map_or(0, |(id, _)| id + 1);
        let writer = self.writer();
        let mut ids = Vec::with_capacity(passages.len());
        for (id, (passage, vector)) in (first..).zip(passages.iter().zip(vectors.outer_iter())) {
            let vector = vector.to_vec();
            if vector.iter().any(|x| !x.is_finite()) {
                let said =
                    format!("the vector of a passage of {} has numbers that are not finite", passage.source);
                return Err(problem(&self.path, &said, "see what the model gives for it"));
            }
            writer.add_item(txn, id, &vector).map_err(|error| self.storage(error))?;
            let stored = json(&self.path, passage)?;
            self.passages.put(txn, &id, &stored).map_err(|error| self.storage(error))?;
            ids.push(id);
        }
        Ok(ids)
    }

    /// Takes passages out.
    pub(crate) fn remove(&self, txn: &mut RwTxn<'_>, ids: &[u32]) -> Result<()> {
        let writer = self.writer();
        for id in ids {
            writer.del_item(txn, *id).map_err(|error| self.storage(error))?;
            self.passages.delete(txn, id).map_err(|error| self.storage(error))?;
        }
        Ok(())
    }

    /// Links what was added into the graph.
    pub(crate) fn build(&self, txn: &mut RwTxn<'_>) -> Result<()> {
        use rand::SeedableRng;
        let mut random = rand::rngs::StdRng::seed_from_u64(0);
        let writer = self.writer();
        let mut builder = writer.builder(&mut random);
        builder.ef_construction(BUILD_CANDIDATES);
        builder.build::<EDGES, LOWEST_EDGES>(txn).map_err(|error| self.storage(error))
    }

    fn writer(&self) -> Writer<'static, Cosine> {
        Writer::new(self.vectors, 0, self.about.dimension)
    }

    /// Widens the map for what is about to be added: vectors, passages, and their edges.
    pub(crate) fn make_room(&mut self, passages: &[Passage], numbers: usize) -> Result<()> {
        let text: usize = passages.iter().map(|passage| passage.text.len() + passage.source.len() + 64).sum();
        let needed = 2 * (text + 4 * numbers) + 4096 * passages.len();
        let used = self.env.real_disk_size().map_err(|error| self.storage(error))? as usize;
        let wanted = page_aligned(2 * (used + needed) + MAP);
        if wanted > self.env.info().map_size {
            // SAFETY: there is no transaction, as `&mut self` says.
            #[allow(unsafe_code)]
            unsafe { self.env.resize(wanted) }.map_err(|error| self.storage(error))?;
        }
        Ok(())
    }

    pub(crate) fn reading(&self) -> Result<RoTxn<'_, WithoutTls>> {
        self.env.read_txn().map_err(|error| self.storage(error))
    }

    pub(crate) fn writing(&self) -> Result<RwTxn<'_>> {
        self.env.write_txn().map_err(|error| self.storage(error))
    }

    pub(crate) fn storage(&self, error: impl fmt::Display) -> Error {
        storage(&self.path, error)
    }
}

fn storage(path: &Path, error: impl fmt::Display) -> Error {
    Error::Storage { path: path.to_owned(), problem: error.to_string() }
}

fn problem(path: &Path, problem: &str, help: &str) -> Error {
    Error::Index { path: path.to_owned(), problem: problem.to_owned(), help: help.to_owned() }
}

pub(crate) fn json(path: &Path, value: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|error| storage(path, error))
}

pub(crate) fn read_json<T: for<'a> Deserialize<'a>>(path: &Path, stored: &[u8]) -> Result<T> {
    let spoilt = |error| problem(path, &format!("an entry cannot be read ({error})"), "make the index again");
    serde_json::from_slice(stored).map_err(spoilt)
}

/// Memory maps are of whole pages; 64 KB is one everywhere.
fn page_aligned(size: usize) -> usize {
    size.next_multiple_of(1 << 16)
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let sizes = (dot(a, a) * dot(b, b)).sqrt();
    if sizes > f32::EPSILON { dot(a, b) / sizes } else { 1.0 }
}

/// A score in its order.
#[derive(Clone, Copy, PartialEq)]
struct Score(f32);

impl Eq for Score {}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}
