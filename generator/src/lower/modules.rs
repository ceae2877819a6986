//! `graph.modules` of a spec: parts of the model that have a graph template, and often a configuration, of their own.

use super::config::{Config, Read};
use super::graph::{Graph, Lowering, Module, text};
use crate::spec::check::join;
use crate::spec::document::{Problem, nearest_name};
use crate::spec::yaml::{Data, Entry, Node};
use crate::template::{ModuleSpec, Template};

/// The keys of a module besides those of its template.
const KEYS: [&str; 5] = ["template", "config", "model", "model_types", "modules"];

impl<'a> Lowering<'a> {
    /// Lowers the modules and those within them, and adds what they read to what the model reads.
    pub(super) fn modules(
        &mut self,
        template: &'a Template,
        node: &Node,
        key: &str,
        config: &Config,
        graph: &mut Graph,
    ) {
        let key = join(key, "modules");
        let declared = &template.front.modules;
        let entries = node.get("modules").map_or(&[][..], Node::entries);
        for entry in entries.iter().filter(|entry| !declared.contains_key(&entry.key)) {
            let names: Vec<_> = declared.keys().map(String::as_str).collect();
            let expected = match names.as_slice() {
                [] => "it has none".to_owned(),
                names => format!("expected one of {}", names.join(", ")),
            };
            let nearest = nearest_name(&entry.key, names).map(str::to_owned);
            let message = format!("unknown module for {}; {expected}", template.label);
            self.problems.push(Problem { nearest, ..entry.at.problem(join(&key, &entry.key), message) });
        }
        for (name, spec) in declared {
            let found = entries.iter().find(|entry| entry.key == *name);
            let nothing = Entry {
                key: name.clone(),
                at: self.home.clone(),
                value: Node { at: self.home.clone(), data: Data::Map(vec![]) },
            };
            let entry = match found {
                Some(entry) => entry,
                None if spec.optional => continue,
                None => &nothing,
            };
            let Some(module) = self.module(entry, spec, template, &key, config) else { continue };
            for input in &module.graph.inputs {
                if !graph.inputs.iter().any(|known| known.spec.name == input.spec.name) {
                    graph.inputs.push(input.clone());
                }
            }
            graph.modules.insert(name.clone(), module);
        }
    }

    fn module(
        &mut self,
        entry: &Entry,
        spec: &ModuleSpec,
        outer: &Template,
        key: &str,
        config: &Config,
    ) -> Option<Module> {
        let key = join(key, &entry.key);
        let node = &entry.value;
        if !matches!(node.data, Data::Map(_)) {
            let message =
                format!("expected a map with the module's template and its options, found {}", node.found());
            self.problems.push(node.at.problem(key, message));
            return None;
        }
        let place = outer.place("modules");
        let (field, own) = match (node.get("config"), &spec.config) {
            (Some(field), _) => (Some(field.clone()), config),
            (None, Some(field)) => (Some(text(&place, field)), config),
            (None, None) => (None, config),
        };
        let (path, config) = match field.filter(|field| field.text() != Some(".")) {
            None => (String::new(), own),
            Some(field) => {
                let name = field.text().unwrap_or_default();
                let within = name.split('.').try_fold(config, |config, name| match config.read(name) {
                    Some(Read::Nested(within)) => Some(within),
                    _ => None,
                });
                let Some(within) = within else {
                    let at = if node.get("config").is_some() { &field.at } else { self.home };
                    let message = match config.has(name) {
                        true => format!(
                            "`{name}` is a plain field of config; expected one that holds a configuration"
                        ),
                        false => format!("`{name}` is not a field of config that holds a configuration"),
                    };
                    let known = config.nested.keys().map(String::as_str);
                    let nearest = nearest_name(name, known).map(str::to_owned);
                    self.problems.push(Problem { nearest, ..at.problem(join(&key, "config"), message) });
                    return None;
                };
                (name.to_owned(), within)
            }
        };
        let standard = spec.template.as_ref().map(|name| text(&place, name));
        match node.get("one_of") {
            Some(several) => self.one_of(entry, several, standard.as_ref(), &key, path, config),
            None => self.one(entry, standard.as_ref(), &key, path, config),
        }
    }

    /// A module that is one model, or one of those that another may be.
    fn one(
        &mut self,
        entry: &Entry,
        standard: Option<&Node>,
        key: &str,
        path: String,
        config: &Config,
    ) -> Option<Module> {
        let node = &entry.value;
        let template = self.template(node, standard, key)?;
        let mut graph = self.unit(template, node, key, &KEYS, config);
        self.modules(template, node, key, config, &mut graph);
        let types = node.get("model_types").map_or(&[][..], Node::items).iter().filter_map(Node::text);
        Some(Module {
            name: entry.key.clone(),
            config: path,
            model: node.get("model").and_then(Node::text).map(str::to_owned),
            model_types: types.map(str::to_owned).collect(),
            one_of: false,
            graph,
        })
    }

    /// A module that is one of several models, which are its modules.
    fn one_of(
        &mut self,
        entry: &Entry,
        several: &Node,
        standard: Option<&Node>,
        key: &str,
        path: String,
        config: &Config,
    ) -> Option<Module> {
        let mut graph = Graph::default();
        let mut model_types = vec![];
        for (model, variant) in several.entries().iter().zip(&config.variants) {
            let key = join(&join(key, "one_of"), &model.key);
            let module = self.one(model, standard, &key, String::new(), &variant.config)?;
            for input in &module.graph.inputs {
                if !graph.inputs.iter().any(|known| known.spec.name == input.spec.name) {
                    graph.inputs.push(input.clone());
                }
            }
            graph.template.clone_from(&module.graph.template);
            model_types.extend(module.model_types.clone());
            graph.modules.insert(model.key.clone(), module);
        }
        Some(Module { name: entry.key.clone(), config: path, model: None, model_types, one_of: true, graph })
    }
}
