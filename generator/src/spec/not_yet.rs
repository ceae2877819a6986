//! `not_yet.yaml`: every architecture of the reference, and why what has no spec has none.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::document::{self, Problem, Problems, nearest_name};

/// The whole of `not_yet.yaml`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotYet {
    /// The releases of the reference that `reference` names everything of.
    pub releases: IndexMap<String, String>,
    /// Every architecture of theirs by its `model_type`, under the category that a spec of it would be filed under.
    pub reference: IndexMap<String, Vec<String>>,
    /// Those that no spec describes, by category. A spec takes an architecture off this list of itself: its name here
    /// says nothing any more.
    pub not_yet: IndexMap<String, Vec<Entry>>,
    /// Architectures that people ask for by name and that the reference does not have.
    #[serde(default)]
    pub elsewhere: Vec<Elsewhere>,
}

/// An architecture that no release of the reference has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Elsewhere {
    /// Its name in prose.
    pub title: String,
    /// The published implementation that it could be checked against; none where there is none.
    pub implementation: Option<String>,
    /// Why there is no spec.
    pub reason: String,
}

/// One architecture without a spec, or several for the same reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The architecture, where the entry is of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_type: Option<String>,
    /// Its name in prose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The architectures, where it is of several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub model_types: Vec<String>,
    /// Why there is no spec.
    pub reason: String,
}

impl Entry {
    /// The architectures that it is of.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.model_type.iter().chain(&self.model_types).map(String::as_str)
    }
}

impl NotYet {
    /// Reads `not_yet.yaml` in the folder of specs.
    ///
    /// # Errors
    /// It cannot be read, or does not say what it must.
    pub fn load(model_specs: &Path) -> Result<Self, Problems> {
        Ok(document::read::<Self>(&model_specs.join("not_yet.yaml"))?.0)
    }

    /// Whether specs and list name all of the reference's architectures between them; `described` has the
    /// `model_type`s of the specs, and `file` names the list in errors.
    ///
    /// # Errors
    /// Every architecture that neither names, or that is none of the reference.
    pub fn check(&self, described: &BTreeSet<String>, file: &Path) -> Result<(), Problems> {
        let mut found = Problems::default();
        let mut report = |message: String, nearest: Option<&str>| {
            let nearest = nearest.map(str::to_owned);
            found.0.push(Problem { nearest, ..Problem::new(file, message) });
        };
        let mut categories: BTreeMap<&str, &str> = BTreeMap::new();
        for (category, name) in named(&self.reference) {
            if let Some(other) = categories.insert(name, category) {
                report(
                    format!("`{name}` is named in `reference.{other}` and in `reference.{category}`"),
                    None,
                );
            }
        }
        let mut listed = BTreeSet::new();
        for (category, name) in self.listed() {
            if !listed.insert(name) {
                report(format!("`{name}` is listed twice; the second time in `not_yet.{category}`"), None);
            }
            match categories.get(name) {
                None => report(
                    format!("`{name}` in `not_yet.{category}` is no architecture that `reference` names"),
                    nearest_name(name, categories.keys().copied()),
                ),
                Some(own) if *own != category => {
                    report(format!("`{name}` belongs in `not_yet.{own}`, not in `not_yet.{category}`"), None);
                }
                Some(_) => {}
            }
        }
        for (name, category) in &categories {
            if !listed.contains(name) && !described.contains(*name) {
                report(
                    format!(
                        "`{name}` has neither a spec nor a reason why not: write its spec, or list it in \
                         `not_yet.{category}`"
                    ),
                    None,
                );
            }
        }
        found.or(())
    }

    fn listed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.not_yet.iter().flat_map(|(category, entries)| {
            entries.iter().flat_map(Entry::names).map(|name| (category.as_str(), name))
        })
    }
}

fn named(by_category: &IndexMap<String, Vec<String>>) -> impl Iterator<Item = (&str, &str)> {
    by_category
        .iter()
        .flat_map(|(category, names)| names.iter().map(|name| (category.as_str(), name.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
releases: {transformers: 5.23.0}
reference: {text-encoders: [bert, xlm, yoso], vision: [vit, beit]}
not_yet:
  text-encoders:
    - {model_type: yoso, title: YOSO, reason: needs custom kernels}
  vision:
    - {reason: not begun, model_types: [beit]}
";

    fn check(text: &str, described: &[&str]) -> String {
        let file = Path::new("not_yet.yaml");
        let list: NotYet = document::parse(file, text).unwrap();
        match list.check(&described.iter().map(ToString::to_string).collect(), file) {
            Ok(()) => String::new(),
            Err(problems) => problems.to_string(),
        }
    }

    #[test]
    fn a_spec_or_a_reason() {
        assert_eq!(check(LIST, &["bert", "xlm", "vit", "mine"]), "");
        assert_eq!(check(LIST, &["bert", "xlm", "vit", "yoso"]), "");
        insta::assert_snapshot!(check(LIST, &["bert", "vit", "yoso"]), @r"
        not_yet.yaml: `xlm` has neither a spec nor a reason why not: write its spec, or list it in `not_yet.text-encoders`
        ");
    }

    #[test]
    fn names_are_the_references() {
        let text = LIST.replace("model_types: [beit]", "model_types: [beitt, yoso]");
        insta::assert_snapshot!(check(&text, &["bert", "xlm", "vit", "beit"]), @r"
        not_yet.yaml: `beitt` in `not_yet.vision` is no architecture that `reference` names; did you mean `beit`?
        not_yet.yaml: `yoso` is listed twice; the second time in `not_yet.vision`
        not_yet.yaml: `yoso` belongs in `not_yet.text-encoders`, not in `not_yet.vision`
        ");
    }
}
