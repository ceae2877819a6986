//! Configurations that are one of several, by their `model_type`: an enum, and what all of its variants have.

use indexmap::IndexMap;
use serde::Serialize;

use super::literal::{literal, rust};
use super::methods::Method;
use super::rust_names::{camel, ident, no_name, type_name};
use super::{Config, Field, Lowering};
use crate::spec::check::join;
use crate::spec::document::Problem;
use crate::spec::model::{ConfigEntry, ConfigField, ConfigType};
use crate::spec::yaml::{Node, Place};

/// One of several configurations.
#[derive(Clone, Debug, Serialize)]
pub struct Variant {
    /// The module of the graph that reads it: `clip_vision`.
    pub module: String,
    /// Its name in the enum: `ClipVision`.
    pub name: String,
    /// What it is.
    pub doc: String,
    /// The values of `model_type` that choose it.
    pub model_types: Vec<String>,
    /// The struct that it holds.
    pub holds: String,
    /// The configuration.
    #[serde(skip)]
    pub config: Config,
}

impl Lowering<'_> {
    /// A field that holds one of several configurations.
    pub(super) fn one_of(
        &mut self,
        config: &mut Config,
        name: &str,
        field: &ConfigField,
        node: &Node,
    ) -> Result<(), Problem> {
        let path = join(&config.path, name);
        let ident = ident(name).ok_or_else(|| no_name(&node.at, &path))?;
        let enum_name = self.take(name, &config.name);
        let mut variants = vec![];
        for (module, variant) in &field.one_of {
            let holds = self.take(module, &enum_name);
            let types = variant.model_types.join("`, `");
            let mut own = Config {
                name: holds.clone(),
                defaults: format!("{}_{module}_default", path.replace('.', "_")),
                site: format!("{}.one_of.{module}", join(&config.site, name)),
                path: path.clone(),
                doc: format!("`{name}` of `config.json` with the `model_type` `{types}`."),
                complete: true,
                ..Config::default()
            };
            let fields = node.get("one_of").and_then(|several| several.get(module)?.get("fields"));
            self.fields(&mut own, &variant.fields, fields.unwrap_or(node));
            let (name, model_types) = (camel(module), variant.model_types.clone());
            let doc = format!("Where it is `{types}`.");
            variants.push(Variant { module: module.clone(), name, doc, model_types, holds, config: own });
        }
        let doc = field.doc.clone().unwrap_or_else(|| {
            let first = variants[0].model_types.first().map_or("", String::as_str);
            format!("`{name}` of `config.json`: one of several, by its `model_type`; `{first}` where it says none.")
        });
        let (fields, methods) = common(&variants);
        let variants_prepare = variants.iter().any(|variant| variant.config.prepares);
        let complete = variants[0].config.complete;
        let nothing = IndexMap::new();
        let given = field.fields.as_ref().unwrap_or(&nothing);
        let initial = initial(&variants[0], given, &path, &node.at).unwrap_or_else(|problem| {
            self.problems.push(problem);
            String::new()
        });
        let site = join(&config.site, name);
        let within = Config {
            name: enum_name,
            path,
            doc: doc.clone(),
            fields,
            methods,
            complete,
            prepares: true,
            variants,
            variants_prepare,
            initial,
            site,
            ..Config::default()
        };
        config.hold(name, ident, field, within, doc);
        Ok(())
    }

    /// A name for the struct that a field holds, which is taken from now on.
    pub(super) fn take(&mut self, field: &str, within: &str) -> String {
        let name = type_name(field, within, |name| self.taken.iter().any(|taken| taken == name));
        self.taken.push(name.clone());
        name
    }
}

/// What all variants have, of the same type: as fields that are read by methods, and these.
fn common(variants: &[Variant]) -> (Vec<Field>, Vec<Method>) {
    let mut found = (vec![], vec![]);
    for field in &variants[0].config.fields {
        let read = |variant: &Variant| read(variant.config.field(&field.name)?);
        let Some(reads) = variants.iter().map(read).collect::<Option<Vec<_>>>() else { continue };
        if reads.iter().any(|(kind, _)| *kind != reads[0].0) {
            continue;
        }
        let arms = variants
            .iter()
            .zip(&reads)
            .map(|(Variant { name, .. }, (_, read))| format!("Self::{name}(c) => {read},"));
        let body = format!("match self {{ {} }}", arms.collect::<Vec<_>>().join(" "));
        let min = variants
            .iter()
            .filter_map(|variant| variant.config.field(&field.name))
            .map(|field| field.min)
            .min();
        found.1.push(Method {
            name: field.name.clone(),
            doc: field.doc.clone(),
            rust: reads[0].0.clone(),
            body,
        });
        found.0.push(Field {
            method: true,
            optional: false,
            min: min.unwrap_or_default(),
            of: vec![],
            ..field.clone()
        });
    }
    found
}

/// The type of a field that code reads by value, never null, and how it reads it from `c`.
fn read(field: &Field) -> Option<(String, String)> {
    use ConfigType::{Activation, Bool, Edge, F64, FeedForward, I64, Pair, Period, Usize};
    let kind = field.kind.filter(|kind| {
        matches!(kind, Activation | Bool | Edge | F64 | FeedForward | I64 | Pair | Period | Usize)
    })?;
    match (field.method, field.optional) {
        (true, _) => Some((rust(kind).to_owned(), format!("c.{}()", field.name))),
        (false, false) => Some((field.rust.clone(), format!("c.{}", field.ident))),
        (false, true) => None,
    }
}

/// What the reference takes where `config.json` has no such configuration: the first, with what a spec says of its fields.
fn initial(
    first: &Variant,
    given: &IndexMap<String, ConfigEntry>,
    path: &str,
    at: &Place,
) -> Result<String, Problem> {
    let Variant { name, holds, config, .. } = first;
    let mut values = vec![];
    for (field, entry) in given {
        let key = format!("config.{}", join(path, field));
        let value = match entry {
            ConfigEntry::Default(value) => Some(value),
            ConfigEntry::Explicit(field) => field.default.as_ref(),
        };
        let (Some(known), Some(value)) = (config.field(field), value) else {
            let message =
                format!("expected the value of a field of `{}`, the first of `one_of`", first.module);
            return Err(Problem { nearest: config.nearest(field), ..at.problem(key, message) });
        };
        let Some(kind) = known.kind else {
            return Err(at.problem(key, "is a configuration, of which only plain fields can be given here"));
        };
        let value = literal(kind, value)
            .map_err(|(message, nearest)| Problem { nearest, ..at.problem(&key, message) })?;
        let value = if known.optional { format!("Some({value})") } else { value };
        if known.default.as_ref() != Some(&value) {
            values.push(format!("{}: {value}", known.ident));
        }
    }
    let rest =
        if values.len() < config.fields.len() { format!("..{holds}::default()") } else { String::new() };
    Ok(match values.as_slice() {
        [] => format!("Self::{name}({holds}::default())"),
        values => format!("Self::{name}({holds} {{ {}, {rest} }})", values.join(", ")),
    })
}
