//! Where a checkpoint keeps its chat templates.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value as Json;

use super::DEFAULT;
use crate::hub::Checkpoint;
use crate::{Error, Result};

const FILE: &str = "chat_template.jinja";
const FOLDER: &str = "additional_chat_templates";

/// The templates by name, and the file that holds the first of them.
pub(super) fn sources(checkpoint: &Checkpoint) -> Result<Option<(BTreeMap<String, String>, PathBuf)>> {
    let mut found = BTreeMap::new();
    let mut place = checkpoint.dir().join(FILE);
    if let Some(file) = checkpoint.path(FILE)? {
        found.insert(DEFAULT.to_owned(), read(&file)?);
        place = file;
    }
    let folder = checkpoint.dir().join(FOLDER);
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(name) = name.strip_suffix(".jinja") {
            found.insert(name.to_owned(), read(&entry.path())?);
        }
    }
    if !found.is_empty() {
        return Ok(Some((found, place)));
    }
    for file in ["tokenizer_config.json", "chat_template.json"] {
        let json = checkpoint.json(file)?.unwrap_or_default();
        let place = checkpoint.dir().join(file);
        match &json["chat_template"] {
            Json::Null => {}
            Json::String(source) => {
                return Ok(Some((BTreeMap::from([(DEFAULT.into(), source.clone())]), place)));
            }
            Json::Array(list) => {
                let named = list.iter().map(|item| {
                    Some((item["name"].as_str()?.to_owned(), item["template"].as_str()?.to_owned()))
                });
                let named: Option<BTreeMap<_, _>> = named.collect();
                return named.map(|named| Some((named, place.clone()))).ok_or_else(|| wrong(&place));
            }
            Json::Object(named) => {
                let named =
                    named.iter().map(|(name, source)| Some((name.clone(), source.as_str()?.to_owned())));
                let named: Option<BTreeMap<_, _>> = named.collect();
                return named.map(|named| Some((named, place.clone()))).ok_or_else(|| wrong(&place));
            }
            _ => return Err(wrong(&place)),
        }
    }
    Ok(None)
}

fn read(file: &PathBuf) -> Result<String> {
    crate::files::read_to_string(file).map_err(|e| Error::io(file, e))
}

fn wrong(place: &PathBuf) -> Error {
    Error::tokenizer(
        place,
        "`chat_template` is neither a text nor a list of names and templates",
        "compare the file with the published one",
    )
}
