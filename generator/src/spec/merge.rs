//! `extends`: lays a spec over the one it is a difference to.

use super::nested::NO_EFFECT;
use super::yaml::{Data, Entry, Node};

/// The keys that say which model a spec is: they are a spec's own, never inherited.
const OWN: [&str; 9] = [
    "model",
    "title",
    "extends",
    "category",
    "summary",
    "checkpoints",
    "model_types",
    "class_prefix",
    "reference",
];

/// `child` with everything from `parent` that it does not say itself.
///
/// Maps are merged key by key, everything else is replaced. `null` takes a key away, except in `config` and
/// among the options of `graph` and its parts, where it is a value.
pub fn extend(parent: &Node, child: &Node) -> Node {
    let inherited = parent.entries().iter().filter(|entry| !OWN.contains(&entry.key.as_str()));
    let entries = merge(inherited, child, Nulls::Remove, |key, old, new| match key {
        "config" => fields(old, new),
        "graph" => graph(old, new),
        _ => deep(old, new),
    });
    Node { at: child.at.clone(), data: Data::Map(entries) }
}

/// What `null` in a child does to an inherited key.
#[derive(Clone, Copy, PartialEq)]
enum Nulls {
    Remove,
    Keep,
}

/// Lays the entries of `child` over `parent`'s, by `combine` where both have a key.
fn merge<'a>(
    parent: impl Iterator<Item = &'a Entry>,
    child: &Node,
    nulls: Nulls,
    combine: impl Fn(&str, &Node, &Node) -> Node,
) -> Vec<Entry> {
    let mut entries: Vec<Entry> = parent.cloned().collect();
    for new in child.entries() {
        match entries.iter().position(|old| old.key == new.key) {
            Some(index) if nulls == Nulls::Remove && new.value.data == Data::Null => {
                entries.remove(index);
            }
            Some(index) => {
                let value = combine(&new.key, &entries[index].value, &new.value);
                entries[index] = Entry { key: new.key.clone(), at: new.at.clone(), value };
            }
            None if nulls == Nulls::Remove && new.value.data == Data::Null => {}
            None => entries.push(new.clone()),
        }
    }
    entries
}

fn deep(old: &Node, new: &Node) -> Node {
    match (&old.data, &new.data) {
        (Data::Map(parent), Data::Map(_)) => {
            let entries = merge(parent.iter(), new, Nulls::Remove, |_, old, new| deep(old, new));
            Node { at: new.at.clone(), data: Data::Map(entries) }
        }
        _ => new.clone(),
    }
}

/// Like [`deep`], one level down by another rule.
fn map(old: &Node, new: &Node, rule: impl Fn(&str, &Node, &Node) -> Node) -> Node {
    match (&old.data, &new.data) {
        (Data::Map(parent), Data::Map(_)) => {
            Node { at: new.at.clone(), data: Data::Map(merge(parent.iter(), new, Nulls::Remove, rule)) }
        }
        _ => new.clone(),
    }
}

/// `config`: fields are merged one by one; `remove: true` takes one away.
pub fn fields(old: &Node, new: &Node) -> Node {
    let (Data::Map(parent), Data::Map(_)) = (&old.data, &new.data) else { return new.clone() };
    let mut entries = merge(parent.iter(), new, Nulls::Keep, config);
    entries.retain(|entry| entry.value.get("remove").is_none_or(|remove| remove.data != Data::Bool(true)));
    Node { at: new.at.clone(), data: Data::Map(entries) }
}

/// A field of `config`: a plain value replaces the default and keeps type, bounds and documentation. One without effect
/// and one that has some replace each other.
fn config(_name: &str, old: &Node, new: &Node) -> Node {
    if old.get(NO_EFFECT).is_some() || new.get(NO_EFFECT).is_some() {
        return new.clone();
    }
    let explicit = |node: &Node| match &node.data {
        Data::Map(entries) => entries.clone(),
        _ => vec![Entry { key: "default".to_owned(), at: node.at.clone(), value: node.clone() }],
    };
    let new = Node { at: new.at.clone(), data: Data::Map(explicit(new)) };
    let entries = merge(explicit(old).iter(), &new, Nulls::Remove, |key, old, new| match key {
        "fields" => fields(old, new),
        "one_of" => map(old, new, config),
        _ => deep(old, new),
    });
    Node { at: new.at, data: Data::Map(entries) }
}

/// The options of a part: `null` is a value.
fn options(old: &Node, new: &Node) -> Node {
    let entries = merge(old.entries().iter(), new, Nulls::Keep, |_, old, new| deep(old, new));
    Node { at: new.at.clone(), data: Data::Map(entries) }
}

/// `graph`, or a module of it: slots are merged one by one.
pub fn graph(old: &Node, new: &Node) -> Node {
    match (&old.data, &new.data) {
        (Data::Map(parent), Data::Map(_)) => {
            let entries = merge(parent.iter(), new, Nulls::Keep, slot);
            Node { at: new.at.clone(), data: Data::Map(entries) }
        }
        _ => new.clone(),
    }
}

/// A module of `graph`: another model stands for the inherited ones, and several for an inherited one.
fn module(old: &Node, new: &Node) -> Node {
    let replaced = match (new.get("model"), new.get("one_of")) {
        (Some(_), None) => "one_of",
        (None, Some(_)) => "model",
        _ => return graph(old, new),
    };
    let entries = old.entries().iter().filter(|entry| entry.key != replaced);
    graph(&Node { at: old.at.clone(), data: Data::Map(entries.cloned().collect()) }, new)
}

/// A slot of `graph`: another part replaces the inherited one with all its options.
fn slot(name: &str, old: &Node, new: &Node) -> Node {
    let part = |node: &Node| match &node.data {
        Data::Text(text) => Some(text.clone()),
        _ => node.get("part").and_then(Node::text).map(str::to_owned),
    };
    match (&old.data, &new.data) {
        (Data::Map(_), Data::Map(_)) if part(new).is_none_or(|new| part(old) == Some(new)) => match name {
            "heads" => map(old, new, slot),
            "modules" => map(old, new, |_, old, new| module(old, new)),
            _ => options(old, new),
        },
        (Data::Text(_), Data::Map(entries)) if name != "template" && part(new).is_none() => {
            let mut entries = entries.clone();
            entries.insert(0, Entry { key: "part".to_owned(), at: old.at.clone(), value: old.clone() });
            Node { at: new.at.clone(), data: Data::Map(entries) }
        }
        _ => new.clone(),
    }
}
