//! A folder that is there when all of it is.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// A folder beside the one that is wanted, removed when it is dropped before it is finished.
pub(super) struct Folder {
    temporary: PathBuf,
    out: PathBuf,
    finished: bool,
}

/// Endings of files of weights, which the new ones stand for.
const WEIGHTS: [&str; 10] =
    ["safetensors", "bin", "pt", "pth", "h5", "msgpack", "onnx", "onnx_data", "gguf", "ot"];

impl Folder {
    pub(super) fn new(out: &Path) -> Result<Self> {
        let name = out.file_name().map(|name| name.to_string_lossy().into_owned());
        let Some(name) = name else {
            let problem = format!("{} is no name of a folder", out.display());
            return Err(Error::input("OUT", problem, "name the folder to be made"));
        };
        let empty = |out: &Path| fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_none());
        if out.symlink_metadata().is_ok() && !empty(out) {
            let problem = format!("{} is there already", out.display());
            return Err(Error::input("OUT", problem, "name another folder, or remove that one"));
        }
        let temporary = out.with_file_name(format!(".{name}.partial-{}", std::process::id()));
        fs::create_dir_all(&temporary).map_err(|e| Error::io(&temporary, e))?;
        Ok(Self { temporary, out: out.to_path_buf(), finished: false })
    }

    /// The place of one of its files.
    pub(super) fn path(&self, file: &str) -> PathBuf {
        self.temporary.join(file)
    }

    pub(super) fn put(&self, file: &str, text: &str) -> Result<()> {
        let path = self.path(file);
        fs::write(&path, text).map_err(|e| Error::io(path, e))
    }

    /// Copies the files of a checkpoint that hold no weights: tokenizer, processors, generation, its modules' folders.
    pub(super) fn copy_others(&self, from: &Path) -> Result<()> {
        copy(from, &self.temporary)
    }

    /// Gives it its name.
    pub(super) fn finish(mut self) -> Result<()> {
        if self.out.is_dir() {
            fs::remove_dir(&self.out).map_err(|e| Error::io(&self.out, e))?;
        }
        fs::rename(&self.temporary, &self.out).map_err(|e| Error::io(&self.out, e))?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.finished {
            let _ = fs::remove_dir_all(&self.temporary);
        }
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let entries = fs::read_dir(from).map_err(|e| Error::io(from, e))?;
    for entry in entries {
        let path = entry.map_err(|e| Error::io(from, e))?.path();
        let Some(name) = path.file_name().map(|name| name.to_string_lossy().into_owned()) else { continue };
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        let weights = ending.is_some_and(|ending| WEIGHTS.contains(&ending.as_str()))
            || name.ends_with(".safetensors.index.json")
            || name.ends_with(".bin.index.json");
        if weights || name.starts_with('.') {
            continue;
        }
        let into = to.join(&name);
        if path.is_dir() {
            if !["onnx", "openvino"].contains(&name.as_str()) {
                fs::create_dir_all(&into).map_err(|e| Error::io(&into, e))?;
                copy(&path, &into)?;
            }
            continue;
        }
        fs::copy(&path, &into).map(|_| ()).map_err(|e| Error::io(&path, e))?;
    }
    Ok(())
}
