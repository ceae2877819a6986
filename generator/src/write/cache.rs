//! What the last run was made from and what it wrote, so that a run without changes costs next to nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The record of the last runs into one folder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cache {
    /// By model.
    pub models: BTreeMap<String, Made>,
}

/// What one crate was made from, and its files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Made {
    /// The digest of everything it was made from.
    pub inputs: String,
    /// The specs it comes from: its own first, then the ones it extends.
    pub chain: Vec<String>,
    /// Its files: length and time of change, to the nanosecond.
    pub files: BTreeMap<String, (u64, u64)>,
}

impl Cache {
    /// Reads the record; an unreadable one counts as none.
    pub fn load(file: &Path) -> Self {
        fs::read(file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Writes the record. A record that cannot be written only makes the next run slower.
    pub fn save(&self, file: &Path) {
        let Ok(text) = serde_json::to_vec(self) else { return };
        if let Some(folder) = file.parent() {
            let _ = fs::create_dir_all(folder);
        }
        let unfinished = file.with_extension("unfinished");
        if fs::write(&unfinished, text).is_ok() {
            let _ = fs::rename(&unfinished, file);
        }
    }

    /// Whether a crate's files are as they were left.
    pub fn is_fresh(&self, model: &str, out: &Path) -> bool {
        let Some(made) = self.models.get(model) else { return false };
        made.files.iter().all(|(path, stamp)| stamp_of(&out.join(path)) == Some(*stamp))
    }
}

/// A file's length and time of change.
pub fn stamp_of(path: &Path) -> Option<(u64, u64)> {
    let metadata = fs::metadata(path).ok()?;
    let changed = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some((metadata.len(), u64::try_from(changed.as_nanos()).ok()?))
}

/// The digest of several texts; each is delimited, so that moving a byte from one to the next shows.
pub fn digest<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
