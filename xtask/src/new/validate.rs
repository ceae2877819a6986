//! Whether the generator accepts a draft, tried out in a folder of its own.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use weft_generator::render::Setting;
use weft_generator::spec::load::Folder;
use weft_generator::{Error, Request, template};

use super::draft::Draft;
use crate::workspace::root;

/// Everything that the generator has against it, one by one.
pub fn problems(name: &str, draft: &Draft) -> Result<Vec<String>> {
    let work = tempfile::tempdir().context("making a folder to try the draft in")?;
    let folder = work.path().join("specs").join(&draft.category);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(format!("{name}.yaml")), &draft.text)?;
    let model_specs = root().join("model_specs");
    let specs = |dir: &Path, label: &str, generate| Folder {
        dir: dir.to_owned(),
        label: label.into(),
        shown: label.into(),
        generate,
    };
    let request = Request {
        specs: vec![
            specs(&model_specs, "model_specs", false),
            specs(&work.path().join("specs"), "draft", true),
        ],
        templates: vec![template::Folder {
            dir: root().join("templates"),
            label: "templates".into(),
            shown: "templates".into(),
        }],
        model_specs,
        out: work.path().join("generated"),
        out_shown: "generated".into(),
        categories: Vec::new(),
        models: Vec::new(),
        check: true,
        setting: Setting {
            weft: "workspace = true".into(),
            member: true,
            goldens: "../../../tests/goldens".into(),
            command: "cargo xtask generate".into(),
        },
        cache: None,
        staging: work.path().join("staging"),
        identity: String::new(),
    };
    match weft_generator::generate(&request) {
        Ok(_) => Ok(Vec::new()),
        Err(Error::Problems(problems)) => Ok(problems.0.iter().map(ToString::to_string).collect()),
        Err(other) => Err(other.into()),
    }
}
