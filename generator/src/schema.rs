//! JSON schemas of everything that is written in YAML, for editors.

use indexmap::IndexMap;
use schemars::JsonSchema;

use crate::spec::architectures::Architectures;
use crate::spec::hardware::HardwareSpec;
use crate::spec::model::{ConfigField, ModelSpec};
use crate::spec::not_yet::NotYet;
use crate::spec::packages::Packages;
use crate::template::{Front, Uses};

/// File names under `schemas/`, and what they hold.
pub fn all() -> Vec<(&'static str, String)> {
    vec![
        ("model.schema.json", schema::<ModelSpec>()),
        ("architectures.schema.json", schema::<Architectures>()),
        ("hardware.schema.json", schema::<HardwareSpec>()),
        ("not_yet.schema.json", schema::<NotYet>()),
        ("packages.schema.json", schema::<Packages>()),
        ("fields.schema.json", schema::<IndexMap<String, ConfigField>>()),
        ("uses.schema.json", schema::<Uses>()),
        ("front-matter.schema.json", schema::<Front>()),
    ]
}

fn schema<T: JsonSchema>() -> String {
    let schema = schemars::schema_for!(T);
    serde_json::to_string_pretty(&schema).map(|text| text + "\n").unwrap_or_default()
}
