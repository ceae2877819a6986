//! Modules of a graph that are taken from another model: `text: {config: text_config, model: llama}`.

use super::document::{Problem, nearest_name};
use super::load::{Merged, Specs};
use super::merge::{fields, graph};
use super::yaml::{Data, Entry, Node};

/// What a module does not take of the model that it names.
const OWN: [&str; 2] = ["heads", "modules"];

impl Specs {
    /// Lays every module over the graph of the model that it names, and its configuration over that model's.
    pub(super) fn adopt(&self, merged: &mut Merged, within: &mut Vec<usize>) -> Result<(), Vec<Problem>> {
        let modules = merged.node.get("graph").and_then(|graph| graph.get("modules"));
        let modules: Vec<Entry> = modules.map_or(&[][..], Node::entries).to_vec();
        let mut problems = vec![];
        for module in modules {
            let Some(named) = module.value.get("model") else { continue };
            let key = format!("graph.modules.{}.model", module.key);
            let Some(name) = named.text() else {
                let message = format!("expected the name of a spec, found {}", named.found());
                problems.push(named.at.problem(key, message));
                continue;
            };
            let Some(&index) = self.by_name.get(name) else {
                let nearest = nearest_name(name, self.names()).map(str::to_owned);
                let message = format!("there is no spec `{name}` to take a module from");
                problems.push(Problem { nearest, ..named.at.problem(key, message) });
                continue;
            };
            if within.contains(&index) {
                let message =
                    format!("`{name}` has this module itself; a model must not be a part of itself");
                problems.push(named.at.problem(key, message));
                continue;
            }
            let Some(field) = module.value.get("config").and_then(Node::text) else {
                let key = format!("graph.modules.{}.config", module.key);
                let message =
                    format!("is missing; expected the field of config that holds `{name}`'s configuration");
                problems.push(module.at.problem(key, message));
                continue;
            };
            if merged.node.get("config").and_then(|config| config.get(field)).is_none() {
                let key = format!("graph.modules.{}.config", module.key);
                let known = merged.node.get("config").map_or(&[][..], Node::entries).iter();
                let nearest = nearest_name(field, known.map(|entry| entry.key.as_str())).map(str::to_owned);
                let message =
                    format!("`{field}` is not a field of config; add it, with what differs from `{name}`'s");
                problems.push(Problem { nearest, ..module.at.problem(key, message) });
                continue;
            }
            match self.merged(index, within) {
                Ok(other) if other.node.get("graph").is_some_and(|graph| graph.get("modules").is_some()) => {
                    let message = format!("`{name}` has modules of its own; expected a model that has none");
                    problems.push(named.at.problem(key, message));
                }
                Ok(other) => lay(merged, &module, field, other),
                Err(wrong) => problems.extend(wrong),
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }
}

/// Puts the graph and the configuration of another model below what a spec says of a module.
fn lay(merged: &mut Merged, module: &Entry, field: &str, other: Merged) {
    let inherited = other.node.get("graph").map_or(&[][..], Node::entries).iter();
    let inherited = inherited.filter(|entry| !OWN.contains(&entry.key.as_str())).cloned().collect();
    let inherited = Node { at: module.value.at.clone(), data: Data::Map(inherited) };
    let whole = graph(&inherited, &module.value);
    if let Some(node) = descend(&mut merged.node, &["graph", "modules", &module.key]) {
        *node = whole;
    }
    let at = module.at.clone();
    let empty = Node { at: at.clone(), data: Data::Map(vec![]) };
    let inherited = other.node.get("config").cloned().unwrap_or(empty.clone());
    let Some(config) = descend(&mut merged.node, &["config", field]) else { return };
    let own = config.get("fields").cloned().unwrap_or(empty);
    let whole = fields(&inherited, &own);
    match config.data {
        Data::Map(ref mut entries) => {
            entries.retain(|entry| entry.key != "fields");
            entries.push(Entry { key: "fields".to_owned(), at, value: whole });
        }
        _ => config.data = Data::Map(vec![Entry { key: "fields".to_owned(), at, value: whole }]),
    }
    for (path, kind) in other.types {
        merged.types.entry(format!("{field}.{path}")).or_insert(kind);
    }
    merged
        .chain
        .extend(other.chain.into_iter().filter(|link| !merged.chain.contains(link)).collect::<Vec<_>>());
}

/// The value at a path; keys that are missing are added.
fn descend<'a>(node: &'a mut Node, path: &[&str]) -> Option<&'a mut Node> {
    let Some((key, rest)) = path.split_first() else { return Some(node) };
    let at = node.at.clone();
    if node.data == Data::Null {
        node.data = Data::Map(vec![]);
    }
    let Data::Map(entries) = &mut node.data else { return None };
    let index = entries.iter().position(|entry| entry.key == *key).unwrap_or_else(|| {
        let value = Node { at: at.clone(), data: Data::Map(vec![]) };
        entries.push(Entry { key: (*key).to_owned(), at, value });
        entries.len() - 1
    });
    descend(&mut entries.get_mut(index)?.value, rest)
}
