//! What stands in for chat templates in a build without them.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

use serde_json::{Map, Value as Json};

use crate::{Error, Result};

/// Templates that nobody can fill in.
#[derive(Clone, Debug)]
pub(super) struct Rendering;

impl Rendering {
    /// Takes any: a checkpoint that has templates continues plain texts as well.
    #[allow(clippy::unnecessary_wraps, reason = "as `rendering.rs`, which parses them")]
    pub(super) fn new(_sources: &BTreeMap<String, String>, _file: &Path) -> Result<Self> {
        Ok(Self)
    }

    /// Refuses.
    pub(super) fn apply(
        &self,
        name: &str,
        _variables: &Map<String, Json>,
        _now: Option<SystemTime>,
        _file: &Path,
    ) -> Result<String> {
        let problem = format!("this build cannot fill in the chat template `{name}`");
        Err(Error::input("messages", problem, "build weft with the feature `chat`"))
    }
}
