//! The rule that a field which `config.json` leaves out is what the reference's configuration class makes of it.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::check::join;
use super::document::Problem;
use super::fields::{ReferenceFields, within};
use super::load::Resolved;
use super::model::{ConfigEntry, ConfigField, ConfigType, Scalar};
use crate::expression::Expression;
use crate::lower::config::activation;

/// What the fields of a configuration class are where a file does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Defaults {
    /// As the class declares them.
    #[serde(default)]
    pub declared: Map<String, Json>,
    /// As the class settles them once all fields are known, where that differs.
    #[serde(default)]
    pub settled: Map<String, Json>,
    /// What the fields of a configuration within it are where a file has none of them, by its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub within: BTreeMap<String, Map<String, Json>>,
}

type Fields = IndexMap<String, ConfigEntry>;

/// Every field that a spec reads and of which it supposes something else than the reference where a file does not say.
pub fn check(model: &Resolved, reference: &ReferenceFields) -> Vec<Problem> {
    let spec = &model.spec;
    let config = model.node.get("config");
    let at = config.map_or(&model.node.at, |node| &node.at);
    let name = spec.model_types.first().unwrap_or(&spec.model);
    let none = BTreeMap::new();
    let empty = Map::new();
    let modules = modules(model);
    let mut problems = vec![];
    let paths = reference.model_types.get(name).unwrap_or(&none);
    for (path, class_name) in paths {
        let Some((fields, _)) = within(&spec.config, config, path) else { continue };
        // Where any model may be within, the module may be of another one than the reference's default.
        let any = reference.model_types.values().any(|paths| paths.get("") == Some(class_name));
        let own = modules.get(path.as_str()).and_then(|model| reference.model_types.get(*model)?.get(""));
        let class_name = own.filter(|_| any).unwrap_or(class_name);
        let Some(defaults) = reference.defaults.get(class_name) else { continue };
        let (outer, last) = path.rsplit_once('.').unwrap_or(("", path));
        let holder = paths.get(outer).and_then(|class| reference.defaults.get(class));
        let absent = holder.and_then(|holder| holder.within.get(last)).unwrap_or(&empty);
        let key = if path.is_empty() { "config".to_owned() } else { join("config", path) };
        let standard = |name: &str| standard(fields, name);
        for (name, entry) in fields {
            let path = join(path, name);
            let kind = kind(entry).or_else(|| model.types.get(path.trim_start_matches('.')).copied());
            let other = difference(name, entry, kind, (defaults, absent), &standard);
            problems.extend(other.map(|(here, there)| {
                let message = format!("is {here} where a file does not say, and {there} in {class_name}");
                at.problem(join(&key, name), message)
            }));
        }
    }
    problems
}

/// The `model_type`s of modules, by the paths of their configurations.
fn modules(model: &Resolved) -> BTreeMap<&str, &str> {
    let modules = model.spec.graph.get("modules").and_then(Json::as_object);
    let of = |(_, module)| {
        let module: &Json = module;
        let known_as =
            module.get("model_types").and_then(|names| names.get(0)).or_else(|| module.get("model"))?;
        Some((module.get("config")?.as_str()?, known_as.as_str()?))
    };
    modules.into_iter().flatten().filter_map(of).collect()
}

/// The type that an entry gives or its default shows.
fn kind(entry: &ConfigEntry) -> Option<ConfigType> {
    match entry {
        ConfigEntry::Default(scalar) => scalar.kind(),
        ConfigEntry::Explicit(field) => field.kind.or_else(|| field.default.as_ref().and_then(Scalar::kind)),
    }
}

fn json(scalar: &Scalar) -> Json {
    serde_json::to_value(scalar).unwrap_or_default()
}

/// What a spec makes of a field that a file does not give, null for nothing; none where it must be given or is unknown.
fn standard(fields: &Fields, name: &str) -> Option<Json> {
    match fields.get(name)? {
        ConfigEntry::Default(scalar) => Some(json(scalar)),
        ConfigEntry::Explicit(field) => match (&field.default, &field.otherwise) {
            (Some(scalar), _) => Some(json(scalar)),
            (None, Some(text)) => Expression::parse(text).ok()?.value(&|name| standard(fields, name)),
            (None, None) => (field.optional == Some(true)).then_some(Json::Null),
        },
    }
}

/// What a field is here and in the reference where a file does not say, where that differs.
fn difference(
    name: &str,
    entry: &ConfigEntry,
    kind: Option<ConfigType>,
    (defaults, absent): (&Defaults, &Map<String, Json>),
    standard: &dyn Fn(&str) -> Option<Json>,
) -> Option<(String, String)> {
    let explicit = match entry {
        ConfigEntry::Explicit(field) => Some(field.as_ref()),
        ConfigEntry::Default(_) => None,
    };
    if explicit
        .is_some_and(|field| field.no_effect.is_some() || field.fields.is_some() || !field.one_of.is_empty())
    {
        return None;
    }
    // By the name in files first; older ones mean the same. What code alone asks for has a standard of its own there.
    let key = explicit.and_then(|field| field.key.as_deref()).unwrap_or(name);
    let older = explicit.into_iter().flat_map(|field| field.aliases.iter().chain(&field.overridden_by));
    let mut names = [key].into_iter().chain(older.map(String::as_str));
    let known = names.find(|name| defaults.declared.contains_key(*name))?;
    let declared = defaults.declared.get(known)?;
    let settled = defaults.settled.get(known).unwrap_or(declared);
    match kind {
        Some(ConfigType::Rope) if absent.contains_key("rope_theta") => return None,
        Some(ConfigType::Rope) => return rope(explicit?, settled),
        // Each kind of layers has its own, in the options of the graph.
        Some(ConfigType::Ropes) => return None,
        _ => {}
    }
    let here = standard(name)?;
    let here = if kind == Some(ConfigType::Counts) { by_name(&here) } else { here };
    // What code computes where the class leaves a field null, the class cannot tell.
    if settled.is_null() && explicit.is_some_and(|field| field.otherwise.is_some() && field.default.is_none())
    {
        return None;
    }
    let same = [declared, settled].into_iter().chain(absent.get(known)).any(|there| alike(&here, there));
    (!same).then(|| (here.to_string(), settled.to_string()))
}

/// Pairs of names and counts as the map that files have.
fn by_name(pairs: &Json) -> Json {
    let Some(pairs) = pairs.as_array() else { return pairs.clone() };
    let pair = |pair: &Json| Some((pair.get(0)?.as_str()?.to_owned(), pair.get(1)?.clone()));
    Json::Object(pairs.iter().filter_map(pair).collect())
}

/// What rotary position embeddings are here and in the reference where a file does not say, where that differs.
fn rope(field: &ConfigField, there: &Json) -> Option<(String, String)> {
    let mut here = Map::from_iter([
        ("rope_theta".to_owned(), field.default.as_ref().map_or(Json::from(10_000.0), json)),
        ("partial_rotary_factor".to_owned(), Json::from(field.partial_rotary_factor.unwrap_or(1.0))),
        ("rope_type".to_owned(), Json::from("default")),
    ]);
    here.extend(field.rope_scaling.iter().flatten().map(|(name, value)| (name.clone(), json(value))));
    let mut all = there.as_object()?.clone();
    // A copy of another field, and an older name.
    all.retain(|name, _| name != "max_position_embeddings" && name != "type");
    all.entry("partial_rotary_factor").or_insert(Json::from(1.0));
    // Where a file does not say how pairs are divided among axes, graphs divide them so.
    if all.get("mrope_section").is_some_and(|sections| *sections == Json::from(vec![24, 20, 20])) {
        all.remove("mrope_section");
    }
    // Two axes turn by the graph of the model, whatever the kind is called.
    if all.get("rope_type").is_some_and(|kind| kind == "axial") {
        all.insert("rope_type".to_owned(), Json::from("default"));
    }
    let same = all.len() == here.len()
        && all.iter().all(|(name, value)| here.get(name).is_some_and(|other| alike(other, value)));
    (!same).then(|| (Json::from(here).to_string(), there.to_string()))
}

/// Whether two values of a type mean the same.
fn alike(here: &Json, there: &Json) -> bool {
    match (here, there) {
        (Json::Number(_), Json::Number(_)) => here.as_f64() == there.as_f64(),
        (Json::Array(here), Json::Array(there)) => {
            here.len() == there.len() && here.iter().zip(there).all(|(here, there)| alike(here, there))
        }
        // One number for all of a list.
        (Json::Number(_), Json::Array(all)) | (Json::Array(all), Json::Number(_)) => {
            let one = if here.is_number() { here } else { there };
            !all.is_empty() && all.iter().all(|each| alike(each, one))
        }
        (Json::String(here), Json::String(there)) => {
            here == there || activation(here).is_some_and(|variant| activation(there) == Some(variant))
        }
        // A switch that is not given is off, and a list has no elements.
        (Json::Null, Json::Array(list)) | (Json::Array(list), Json::Null) => list.is_empty(),
        (Json::Null, Json::Bool(false)) | (Json::Bool(false), Json::Null) => true,
        _ => here == there,
    }
}
