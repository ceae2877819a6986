//! Modules of a graph that are taken from another model: `text: {config: text_config, model: llama}`.

use std::collections::BTreeMap;

use super::document::{Problem, nearest_name};
use super::load::{Merged, Specs};
use super::merge::{fields, graph};
use super::model::ConfigType;
use super::yaml::{Data, Entry, Node, Place};

/// What a module does not take of the model that it names.
const OWN: &str = "heads";

/// What the configuration of a module has as its `model_type`: what the model that it names has, unless it says so itself.
pub(super) const MODEL_TYPES: &str = "model_types";

/// The models that a module may be.
pub(super) const ONE_OF: &str = "one_of";

/// What a module says of itself alone.
const SAID: [&str; 2] = ["config", "model"];

/// Where the graph and the configuration of a model or of one of its modules stand in the tree of a spec.
#[derive(Clone)]
pub(super) struct Site {
    pub graph: Vec<String>,
    pub config: Vec<String>,
}

/// The graph and the configuration that a module is laid over.
pub(super) struct Source {
    graph: Node,
    config: Node,
    types: BTreeMap<String, ConfigType>,
    /// The files they come from.
    chain: Vec<usize>,
    /// The specs that were gone through.
    pub through: Vec<usize>,
}

impl Specs {
    /// Lays every module over the graph of the model that it names, and its configuration over that model's; then the
    /// modules that it has of that model, so that a spec may say of them what differs.
    pub(super) fn adopt(&self, merged: &mut Merged, index: usize) -> Result<(), Vec<Problem>> {
        let site = Site { graph: vec!["graph".to_owned()], config: vec!["config".to_owned()] };
        let mut problems = vec![];
        self.adopt_at(merged, &site, &mut vec![index], &mut problems);
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// `within` are the specs whose modules lead here.
    fn adopt_at(
        &self,
        merged: &mut Merged,
        site: &Site,
        within: &mut Vec<usize>,
        problems: &mut Vec<Problem>,
    ) {
        let modules = find(&merged.node, &site.graph).and_then(|graph| graph.get("modules"));
        let modules: Vec<Entry> = modules.map_or(&[][..], Node::entries).to_vec();
        for module in modules {
            match self.adopt_module(merged, site, &module, within) {
                Ok(adopted) => {
                    for (inner, through) in adopted {
                        let before = within.len();
                        within.extend(through);
                        self.adopt_at(merged, &inner, within, problems);
                        within.truncate(before);
                    }
                }
                Err(wrong) => problems.extend(wrong),
            }
        }
    }

    /// Lays one module over what it names; where it stands, and each of those that it is one of, for their own modules,
    /// with the specs that lead there.
    fn adopt_module(
        &self,
        merged: &mut Merged,
        site: &Site,
        module: &Entry,
        within: &[usize],
    ) -> Result<Vec<(Site, Vec<usize>)>, Vec<Problem>> {
        let mut inner = site.clone();
        inner.graph.extend(["modules".to_owned(), module.key.clone()]);
        let key = inner.graph.join(".");
        let field = module.value.get("config").and_then(Node::text);
        let names = field.into_iter().flat_map(|field| field.split('.')).filter(|name| !name.is_empty());
        inner.config.extend(names.flat_map(|name| [name.to_owned(), "fields".to_owned()]));
        if let Some(several) = module.value.get(ONE_OF) {
            return self.adopt_one_of(merged, site, &inner, module, several, within);
        }
        let Some(named) = module.value.get("model") else { return Ok(vec![(inner, vec![])]) };
        let source = self.source(named, &format!("{key}.model"), within)?;
        let name = named.text().unwrap_or_default();
        holds(merged, site, &inner, module, name)?;
        let through = source.through.clone();
        lay(merged, module, &inner, source);
        Ok(vec![(inner, through)])
    }

    /// What a name under `model` stands for: a spec, `llama`, or a module of one, `clip.text`.
    pub(super) fn source(&self, named: &Node, key: &str, within: &[usize]) -> Result<Source, Vec<Problem>> {
        let Some(path) = named.text() else {
            let message = format!("expected the name of a spec, found {}", named.found());
            return Err(vec![named.at.problem(key, message)]);
        };
        let mut names = path.split('.');
        let name = names.next().unwrap_or_default();
        let Some(&index) = self.by_name.get(name) else {
            let nearest = nearest_name(name, self.names()).map(str::to_owned);
            let message = format!("there is no spec `{name}` to take a module from");
            return Err(vec![Problem { nearest, ..named.at.problem(key, message) }]);
        };
        if within.contains(&index) {
            let message = format!("`{name}` has this module itself; a model must not be a part of itself");
            return Err(vec![named.at.problem(key, message)]);
        }
        let Merged { node, types, chain } = self.inherited(index)?;
        let nothing = Node { at: node.at.clone(), data: Data::Map(vec![]) };
        let mut graph = without(node.get("graph").unwrap_or(&nothing), &[OWN]);
        if let Data::Map(entries) = &mut graph.data {
            let at = node.at.clone();
            let own = Node { at: at.clone(), data: Data::Text(name.to_owned()) };
            let own = Node { at: at.clone(), data: Data::List(vec![own]) };
            let value = node.get(MODEL_TYPES).cloned().unwrap_or(own);
            entries.push(Entry { key: MODEL_TYPES.to_owned(), at, value });
        }
        let config = node.get("config").cloned().unwrap_or(nothing);
        let mut source = Source { graph, config, types, chain, through: vec![index] };
        let mut whole = name.to_owned();
        for module in names {
            source = self.step(source, &whole, module, (named, key), within)?;
            whole = format!("{whole}.{module}");
        }
        Ok(source)
    }

    /// From a model, which is called `whole`, to one of its modules.
    fn step(
        &self,
        whole: Source,
        name: &str,
        module: &str,
        (named, key): (&Node, &str),
        within: &[usize],
    ) -> Result<Source, Vec<Problem>> {
        let modules = whole.graph.get("modules").map_or(&[][..], Node::entries);
        let Some(found) = modules.iter().find(|entry| entry.key == module) else {
            let known: Vec<_> = modules.iter().map(|entry| entry.key.as_str()).collect();
            let expected = if known.is_empty() {
                "it has none".to_owned()
            } else {
                format!("expected one of {}", known.join(", "))
            };
            let message = format!("`{name}` has no module `{module}`; {expected}");
            let nearest = nearest_name(module, known).map(str::to_owned);
            return Err(vec![Problem { nearest, ..named.at.problem(key, message) }]);
        };
        if found.value.get(ONE_OF).is_some() {
            let message = format!(
                "`{module}` of `{name}` is one of several models; name one of them, or list them under `one_of`"
            );
            return Err(vec![named.at.problem(key, message)]);
        }
        let Some(field) = found.value.get("config").and_then(Node::text) else {
            let message = format!(
                "`{module}` of `{name}` does not say which field of config holds its configuration; add `config` \
                 there, or take the whole of `{name}`"
            );
            return Err(vec![named.at.problem(key, message)]);
        };
        let names = field.split('.').filter(|name| !name.is_empty());
        let path: Vec<_> = names.flat_map(|name| [name.to_owned(), "fields".to_owned()]).collect();
        let nothing = Node { at: found.at.clone(), data: Data::Map(vec![]) };
        let config = find(&whole.config, &path).cloned().unwrap_or(nothing);
        let prefix = if path.is_empty() { String::new() } else { format!("{field}.") };
        let types = whole.types.into_iter();
        let types =
            types.filter_map(|(path, kind)| path.strip_prefix(&prefix).map(|path| (path.to_owned(), kind)));
        let graph = without(&found.value, &SAID);
        let mut part = Source { graph, config, types: types.collect(), ..whole };
        if let Some(model) = found.value.get("model") {
            let within: Vec<_> = within.iter().chain(&part.through).copied().collect();
            let below = self.source(model, &format!("graph.modules.{module}.model"), &within)?;
            part.graph = self::graph(&below.graph, &part.graph);
            part.config = fields(&below.config, &part.config);
            for (path, kind) in below.types {
                part.types.entry(path).or_insert(kind);
            }
            part.chain.extend(below.chain);
            part.through.extend(below.through);
        }
        Ok(part)
    }
}

/// Refuses a module that does not say where the configuration of the model is that it names, or names no such field.
pub(super) fn holds(
    merged: &Merged,
    site: &Site,
    inner: &Site,
    module: &Entry,
    name: &str,
) -> Result<(), Vec<Problem>> {
    let key = format!("{}.config", inner.graph.join("."));
    let Some(field) = module.value.get("config").and_then(Node::text) else {
        let message = format!(
            "is missing; expected the field of config that holds `{name}`'s configuration, or `.` for config itself"
        );
        return Err(vec![module.at.problem(key, message)]);
    };
    let holder = inner.config.strip_suffix(&["fields".to_owned()]).unwrap_or(&inner.config);
    if inner.config == site.config || find(&merged.node, holder).is_some() {
        return Ok(());
    }
    let known = find(&merged.node, &site.config).map_or(&[][..], Node::entries).iter();
    let nearest = nearest_name(field, known.map(|entry| entry.key.as_str())).map(str::to_owned);
    let message = format!(
        "`{field}` is not a field of {}; add it, with what differs from `{name}`'s",
        shown(&site.config)
    );
    Err(vec![Problem { nearest, ..module.at.problem(key, message) }])
}

/// Puts the graph and the configuration of another model below what a spec says of a module.
pub(super) fn lay(merged: &mut Merged, module: &Entry, site: &Site, source: Source) {
    let inherited = Node { at: module.value.at.clone(), ..source.graph };
    let whole = graph(&inherited, &module.value);
    if let Some(node) = descend(&mut merged.node, &site.graph) {
        *node = whole;
    }
    if let Some(config) = descend(&mut merged.node, &site.config) {
        *config = fields(&source.config, config);
    }
    let config = shown(&site.config);
    let field = config.strip_prefix("config.");
    for (path, kind) in source.types {
        let path = field.map_or_else(|| path.clone(), |field| format!("{field}.{path}"));
        merged.types.entry(path).or_insert(kind);
    }
    for link in source.chain {
        if !merged.chain.contains(&link) {
            merged.chain.push(link);
        }
    }
}

/// The path of a configuration as a person writes it: `config.text_config`.
pub(super) fn shown(path: &[String]) -> String {
    path.iter().filter(|name| *name != "fields").map(String::as_str).collect::<Vec<_>>().join(".")
}

/// A map without these keys.
fn without(node: &Node, keys: &[&str]) -> Node {
    let entries = node.entries().iter().filter(|entry| !keys.contains(&entry.key.as_str()));
    Node { at: node.at.clone(), data: Data::Map(entries.cloned().collect()) }
}

/// The value at a path.
pub(super) fn find<'a>(node: &'a Node, path: &[String]) -> Option<&'a Node> {
    path.iter().try_fold(node, |node, key| node.get(key))
}

/// The value at a path; keys that are missing are added.
pub(super) fn descend<'a>(node: &'a mut Node, path: &[String]) -> Option<&'a mut Node> {
    let Some((key, rest)) = path.split_first() else { return Some(node) };
    let at: Place = node.at.clone();
    if !matches!(node.data, Data::Map(_)) {
        node.data = Data::Map(vec![]);
    }
    let Data::Map(entries) = &mut node.data else { return None };
    let index = entries.iter().position(|entry| entry.key == *key).unwrap_or_else(|| {
        let value = Node { at: at.clone(), data: Data::Map(vec![]) };
        entries.push(Entry { key: key.clone(), at, value });
        entries.len() - 1
    });
    descend(&mut entries.get_mut(index)?.value, rest)
}
