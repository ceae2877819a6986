//! GGUF files, as `llama.cpp` reads and publishes them: a whole checkpoint in one file or its shards.
//!
//! Metadata become the files that checkpoints of the reference have (`config.json`, `tokenizer.json` and so on), and tensors
//! get the checkpoint's names; what the converter did to their order or values is undone. Blocks of quantized types stay
//! quantized ([`BlockQuantized`](crate::weights::BlockQuantized)).

pub(crate) mod architectures;
pub(crate) mod config;
pub(crate) mod file;
mod pooling;
mod tokenizer;
pub(crate) mod types;
mod unpack;
mod value;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value as Json;

use architectures::Architecture;
use file::File;
use value::Value;

use crate::{Error, Result};

/// The ending of file names.
pub const ENDING: &str = ".gguf";

/// A GGUF file and its other shards.
#[derive(Debug)]
pub struct Gguf {
    /// The first has the metadata.
    pub(crate) files: Vec<Arc<File>>,
    pub(crate) architecture: &'static Architecture,
}

impl Gguf {
    /// Opens a file, or all shards of one.
    ///
    /// # Errors
    /// When a file is damaged, a shard is missing, or it is of an architecture that is not known.
    pub(crate) fn open(shards: &[PathBuf]) -> Result<Self> {
        let files = shards.iter().map(|path| File::open(path).map(Arc::new)).collect::<Result<Vec<_>>>()?;
        let first = &files[0];
        let counted = first.metadata.get("split.count").and_then(Value::whole).unwrap_or(1).max(1);
        if counted != files.len() as u64 {
            let problem = format!("is one of {counted} shards, but its name counts {}", files.len());
            let help = "give the shards their names again: NAME-00001-of-00003.gguf";
            return Err(Error::weights(&first.path, problem, help));
        }
        let wrong = |problem: String| {
            let known = architectures::all().join(", ");
            Error::weights(&first.path, problem, format!("files of these architectures are read: {known}"))
        };
        let Some(named) = first.metadata.get("general.architecture").and_then(Value::text) else {
            return Err(wrong("has no `general.architecture`".to_owned()));
        };
        let mut rows = architectures::of(named).collect::<Vec<_>>().into_iter();
        if architectures::TEXT_HALVES.contains(&named) {
            let problem = format!(
                "is of the architecture `{named}`, and holds the text half of a vision-language model alone; the other is in a file of its own (mmproj)"
            );
            return Err(Error::weights(
                &first.path,
                problem,
                "open the checkpoint that it was converted from",
            ));
        }
        let architecture = rows.next().ok_or_else(|| wrong(format!("is of the architecture `{named}`")))?;
        let mut gguf = Self { architecture, files };
        // The first row of this name that has a model for the file.
        while config::model(&gguf, &[]).is_none() {
            let Some(other) = rows.next() else { break };
            gguf.architecture = other;
        }
        Ok(gguf)
    }

    /// The file with the metadata.
    pub fn path(&self) -> &Path {
        &self.files[0].path
    }

    /// One of the JSON files that a checkpoint of the reference has, made of the metadata; none where this stands for none
    /// of that name.
    ///
    /// # Errors
    /// When a key that it needs is missing or of another type.
    pub(crate) fn json(&self, name: &str) -> Result<Option<Json>> {
        match name {
            "config.json" => self.config(&[]).map(Some),
            "generation_config.json" => Ok(Some(tokenizer::generation(self))),
            "tokenizer_config.json" => tokenizer::settings(self).map(Some),
            "tokenizer.json" => tokenizer::json(self),
            "modules.json" => pooling::modules(self),
            pooling::CONFIG => Ok(pooling::config(self)),
            _ => Ok(None),
        }
    }

    /// `config.json`, of one of these models where the file can be of several (Mistral's is Llama's).
    pub(crate) fn config(&self, models: &[&str]) -> Result<Json> {
        config::json(self, models)
    }

    /// `vocab.txt` of a vocabulary of WordPiece.
    ///
    /// # Errors
    /// When the file has no vocabulary.
    pub(crate) fn word_pieces(&self) -> Result<String> {
        tokenizer::word_pieces(self)
    }

    /// A value of the metadata, by its key without the architecture's name.
    fn value(&self, key: &str) -> Option<&Value> {
        self.files[0].metadata.get(&format!("{}.{key}", self.architecture.name))
    }

    fn tensor(&self, name: &str) -> Option<(&File, &file::Tensor)> {
        self.files.iter().find_map(|file| {
            file.tensors.iter().find(|tensor| tensor.name == name).map(|tensor| (&**file, tensor))
        })
    }

    pub(crate) fn wrong(&self, problem: impl Into<String>) -> Error {
        let help = "convert the model again by llama.cpp's convert_hf_to_gguf.py";
        Error::weights(self.path(), problem, help)
    }
}

/// The names of all shards of which this file is one; itself where it is whole.
pub(crate) fn shards(name: &str) -> Vec<String> {
    let numbered = || {
        let stem = name.strip_suffix(ENDING)?;
        let (rest, count) = stem.rsplit_once("-of-")?;
        let (stem, number) = rest.rsplit_once('-')?;
        let five = |text: &str| text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
        let count: usize = count.parse().ok().filter(|_| five(count) && five(number))?;
        (count > 1).then(|| (1..=count).map(|n| format!("{stem}-{n:05}-of-{count:05}{ENDING}")).collect())
    };
    numbered().unwrap_or_else(|| vec![name.to_owned()])
}

/// The file of a folder that holds one and no other weights; none where it holds none.
///
/// # Errors
/// When it holds several.
pub(crate) fn only(folder: &Path) -> Result<Option<String>> {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(ENDING) && !name.starts_with("mmproj"))
        .collect();
    names.sort();
    let Some(first) = names.first().cloned() else { return Ok(None) };
    let apart: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| !shards(&first).iter().any(|shard| shard == name))
        .collect();
    if apart.is_empty() {
        return Ok(Some(first));
    }
    let problem = format!("holds several GGUF files: {}", names.join(", "));
    Err(Error::weights(
        folder,
        problem,
        format!("open one of them by its path: {}", folder.join(first).display()),
    ))
}

#[cfg(test)]
mod tests;
