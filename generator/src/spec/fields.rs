//! The rule that no field of `config.json` is passed over in silence: what the reference reads is read, refused, or listed
//! as without effect.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::defaults::Defaults;
use super::document::{Problem, nearest_name};
use super::load::Resolved;
use super::model::{ConfigEntry, ConfigField, ConfigType};
use super::yaml::Node;
use crate::spec::check::join;

/// The configuration class whose fields all others have.
const BASE: &str = "PreTrainedConfig";

/// What the runtime reads of rotary position embeddings besides a field of the type `rope`.
const ROPE: [&str; 7] = [
    "rope_parameters",
    "rope_scaling",
    "rope_theta",
    "rotary_emb_base",
    "partial_rotary_factor",
    "rotary_pct",
    "original_max_position_embeddings",
];

/// The configuration classes of a release of the reference, and which of their fields it reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferenceFields {
    /// The release.
    pub transformers: String,
    /// For each `model_type`, the classes of its configuration and of those within it, by their paths.
    pub model_types: BTreeMap<String, BTreeMap<String, String>>,
    /// For each class its fields.
    pub classes: BTreeMap<String, Class>,
    /// For each class what its fields are where a file does not say.
    #[serde(default)]
    pub defaults: BTreeMap<String, Defaults>,
}

/// The fields of a configuration class, with the places of the reference that read them where they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "ClassForm", into = "ClassForm")]
pub struct Class {
    /// Those that the reference reads.
    pub read: BTreeMap<String, Vec<String>>,
    /// Those that it reads nowhere.
    pub unread: BTreeSet<String>,
}

/// A class as files have it: names alone, or with places.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum ClassForm {
    Names { read: String, unread: String },
    Places(BTreeMap<String, Vec<String>>),
}

impl From<ClassForm> for Class {
    fn from(form: ClassForm) -> Self {
        let names = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        match form {
            ClassForm::Names { read, unread } => Self {
                read: names(&read).into_iter().map(|name| (name, vec![])).collect(),
                unread: names(&unread).into_iter().collect(),
            },
            ClassForm::Places(fields) => {
                let (read, unread): (BTreeMap<_, _>, BTreeMap<_, _>) =
                    fields.into_iter().partition(|(_, places)| !places.is_empty());
                Self { read, unread: unread.into_keys().collect() }
            }
        }
    }
}

impl From<Class> for ClassForm {
    fn from(class: Class) -> Self {
        let text = |names: Vec<String>| names.join(" ");
        Self::Names {
            read: text(class.read.into_keys().collect()),
            unread: text(class.unread.into_iter().collect()),
        }
    }
}

impl ReferenceFields {
    /// These with what is said of some models alone: theirs are put in place of what was known, and a class that they share with others
    /// keeps what those read of it.
    #[must_use]
    pub fn with(mut self, some: Self) -> Self {
        self.transformers = some.transformers;
        self.model_types.extend(some.model_types);
        self.defaults.extend(some.defaults);
        for (name, class) in some.classes {
            let known = self.classes.entry(name).or_default();
            known.read.extend(class.read);
            known.unread.extend(class.unread);
            known.unread.retain(|field| !known.read.contains_key(field));
        }
        self
    }

    /// The text of the file that keeps it, a class a line, without places.
    ///
    /// # Errors
    /// None that can occur; it is JSON.
    pub fn text(&self) -> serde_json::Result<String> {
        let lines = |entries: Vec<(&String, serde_json::Result<String>)>| {
            let line = |(name, value): (&String, serde_json::Result<String>)| {
                value.map(|value| format!("    \"{name}\": {value}"))
            };
            Ok(entries.into_iter().map(line).collect::<serde_json::Result<Vec<_>>>()?.join(",\n"))
        };
        let types = self.model_types.iter().map(|(name, paths)| (name, serde_json::to_string(paths)));
        let classes = self.classes.iter().map(|(name, class)| (name, serde_json::to_string(class)));
        let defaults = self.defaults.iter().map(|(name, class)| (name, serde_json::to_string(class)));
        let parts = [
            ("model_types", lines(types.collect())?),
            ("classes", lines(classes.collect())?),
            ("defaults", lines(defaults.collect())?),
        ];
        let parts = parts.map(|(name, lines)| format!("  \"{name}\": {{\n{lines}\n  }}")).join(",\n");
        Ok(format!("{{\n  \"transformers\": \"{}\",\n{parts}\n}}\n", self.transformers))
    }
}

type Fields = IndexMap<String, ConfigEntry>;

/// What a spec says of the fields of one configuration.
#[derive(Default)]
struct Told<'a> {
    /// The names in `config.json` that are read.
    read: BTreeSet<&'a str>,
    /// Those that are listed as without effect.
    listed: BTreeSet<&'a str>,
}

impl<'a> Told<'a> {
    fn of(fields: &'a Fields) -> Self {
        let mut told = Self::default();
        for (name, entry) in fields {
            let ConfigEntry::Explicit(field) = entry else {
                told.read.insert(name);
                continue;
            };
            if field.no_effect.is_some() {
                told.listed.insert(name);
                continue;
            }
            let names = field.aliases.iter().chain(&field.overridden_by).chain(&field.key);
            told.read.extend(names.map(String::as_str).chain([name.as_str()]));
            if name == "rope_parameters" || matches!(field.kind, Some(ConfigType::Rope | ConfigType::Ropes)) {
                told.read.extend(ROPE);
            }
        }
        if told.read.contains("rope_parameters") {
            told.read.extend(ROPE);
        }
        told
    }
}

/// The fields of the configuration at a path, and the spec's text of them.
pub(super) fn within<'a>(
    fields: &'a Fields,
    node: Option<&'a Node>,
    path: &str,
) -> Option<(&'a Fields, Option<&'a Node>)> {
    if path.is_empty() {
        return Some((fields, node));
    }
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let ConfigEntry::Explicit(field) = fields.get(first)? else { return None };
    // Each of several models is held to its own class by its own spec.
    if !field.one_of.is_empty() {
        return None;
    }
    let node = node.and_then(|node| node.get(first)).and_then(|node| node.get("fields"));
    within(field.fields.as_ref()?, node, rest)
}

/// Everything that a spec passes over in silence, or lists without need; `shared` says what holds for all models.
pub fn check(
    model: &Resolved,
    shared: &IndexMap<String, ConfigField>,
    reference: &ReferenceFields,
) -> Vec<Problem> {
    let spec = &model.spec;
    let config = model.node.get("config");
    let at = config.map_or(&model.node.at, |node| &node.at);
    let name = spec.model_types.first().unwrap_or(&spec.model);
    let Some(paths) = reference.model_types.get(name) else {
        let message = format!(
            "the fields of `{name}` are not known: run `cargo xtask reference --fields`, which asks transformers {}",
            reference.transformers
        );
        return vec![at.problem("config", message)];
    };
    let everywhere = |name: &str| {
        shared.get(name).is_some_and(|field| field.no_effect.is_some() || field.read_by.is_some())
    };
    let none = Class::default();
    let base = reference.classes.get(BASE).unwrap_or(&none);
    let mut problems = vec![];
    for (path, class_name) in paths {
        let Some((fields, node)) = within(&spec.config, config, path) else { continue };
        let Some(class) = reference.classes.get(class_name) else { continue };
        let told = Told::of(fields);
        let key = if path.is_empty() { "config".to_owned() } else { join("config", path) };
        for (name, places) in &class.read {
            if told.read.contains(name.as_str()) || told.listed.contains(name.as_str()) || everywhere(name) {
                continue;
            }
            let place = match places.first() {
                Some(place) => format!(" in {place}"),
                None => String::new(),
            };
            let message = format!(
                "the reference reads it{place} ({class_name}), and this crate passes over it: read it, refuse what is not \
                 supported by `only`, or say `{{no_effect: why}}` if inference does not depend on it"
            );
            problems.push(at.problem(join(&key, name), message));
        }
        let own = |name: &str| {
            node.and_then(|node| node.entry(name)).filter(|entry| entry.at.file == model.node.at.file)
        };
        for name in &told.listed {
            let Some(entry) = own(name) else { continue };
            let (message, nearest) = if told.read.contains(name) {
                ("is read under another name, and listed as without effect".to_owned(), None)
            } else if class.read.contains_key(*name) || base.read.contains_key(*name) {
                continue;
            } else if class.unread.contains(*name) {
                ("is read nowhere in the reference: leave it out".to_owned(), None)
            } else {
                let nearest = nearest_name(name, class.read.keys().map(String::as_str));
                (format!("is no field of {class_name}: leave it out"), nearest.map(str::to_owned))
            };
            problems.push(Problem { nearest, ..entry.at.problem(join(&key, name), message) });
        }
    }
    problems
}

/// Everything that `shared` lists without need, or does not list of what all configurations have.
pub fn check_shared(shared: &IndexMap<String, ConfigField>, reference: &ReferenceFields) -> Vec<String> {
    let listed = |field: &ConfigField| field.no_effect.is_some() || field.read_by.is_some();
    let read = |name: &String| reference.classes.values().any(|class| class.read.contains_key(name));
    let stale = shared.iter().filter(|(name, field)| listed(field) && !read(name));
    let stale = stale.map(|(name, _)| format!("`{name}` is read by no class of the reference: leave it out"));
    let base = reference.classes.get(BASE).into_iter().flat_map(|class| class.read.keys());
    let missing =
        base.filter(|name| !shared.contains_key(*name) && !ROPE.contains(&name.as_str())).map(|name| {
            format!(
                "`{name}` is read of every configuration: say what it means, or `no_effect` with the reason"
            )
        });
    stale.chain(missing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_some_models_leaves_the_others_as_they_were() {
        let read = |json: &str| serde_json::from_str::<ReferenceFields>(json).unwrap();
        let all = read(
            r#"{"transformers": "5", "model_types": {"a": {"": "A"}, "b": {"": "B", "text_config": "Text"}},
                "classes": {"A": {"read": "x", "unread": "y"}, "Text": {"read": "p", "unread": "q r"}}}"#,
        );
        let some = read(
            r#"{"transformers": "5", "model_types": {"b": {"": "B2", "text_config": "Text"}},
                "classes": {"Text": {"q": ["b.py:1"], "p": [], "r": []}}}"#,
        );
        let both = all.with(some);
        assert_eq!(both.model_types["a"][""], "A");
        assert_eq!(both.model_types["b"][""], "B2");
        assert_eq!(both.classes["A"].unread, BTreeSet::from(["y".to_owned()]));
        assert_eq!(both.classes["Text"].read.keys().collect::<Vec<_>>(), ["p", "q"]);
        assert_eq!(both.classes["Text"].read["q"], ["b.py:1"]);
        assert_eq!(both.classes["Text"].unread, BTreeSet::from(["r".to_owned()]));
    }
}
