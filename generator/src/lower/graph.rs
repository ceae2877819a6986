//! `graph` of a spec: which template, which part in each slot, which modules and heads, and the options of each.

use std::collections::BTreeMap;
use std::path::PathBuf;

use indexmap::IndexMap;
use serde::Serialize;
use serde_json::{Map, Value};

use super::config::Config;
use super::heads::{Head, heads};
use super::inputs::Input;
use super::options::options;
use crate::spec::check::join;
use crate::spec::document::{Problem, nearest_name};
use crate::spec::load::Resolved;
use crate::spec::yaml::{Data, Node, Place};
use crate::template::{GivesSpec, InputSpec, OutputSpec, Template, Templates};

/// The graph of a model, or of one of its modules, as templates see it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Graph {
    /// The template's key.
    pub template: String,
    /// What the template is for.
    pub about: String,
    /// The template's options.
    pub options: Map<String, Value>,
    /// The part in each slot, by name.
    pub slots: BTreeMap<String, String>,
    /// What the part in each slot leaves behind, where it says so.
    pub gives: BTreeMap<String, GivesSpec>,
    /// What the model reads: by its own template and parts, then by its modules and theirs.
    pub inputs: Vec<Input>,
    /// What its own template and parts read.
    pub own_inputs: Vec<Input>,
    /// What heads give, each name once.
    pub outputs: Vec<OutputSpec>,
    /// The modules, by name.
    pub modules: IndexMap<String, Module>,
    /// The part in each slot: its key and its options.
    #[serde(skip)]
    pub parts: BTreeMap<String, (String, Value)>,
    /// What specs say of the template, of its parts and of the parts of heads.
    #[serde(skip)]
    pub set: SetOptions,
}

/// A part of the model with a graph template of its own.
#[derive(Clone, Debug, Serialize)]
pub struct Module {
    /// Its name: the Rust module's.
    pub name: String,
    /// The field that holds its configuration, within that of what it is a module of; nothing if it reads that.
    pub config: String,
    /// The model that it is taken from.
    pub model: Option<String>,
    /// The values of `model_type` that its configuration may have; any if empty.
    pub model_types: Vec<String>,
    /// Whether it is one of its modules, by the `model_type` of its configuration.
    pub one_of: bool,
    /// Its graph.
    pub graph: Graph,
}

/// Templates and parts by their keys, and the options of each that a spec sets, with its file.
pub type SetOptions = BTreeMap<String, BTreeMap<String, PathBuf>>;

/// Lowers `graph`.
pub fn lower(
    model: &Resolved,
    class_prefix: &str,
    config: &Config,
    templates: &Templates,
    problems: &mut Vec<Problem>,
) -> (Graph, Vec<Head>) {
    let nothing = nothing_at(&model.node.at);
    let node = model.node.get("graph").unwrap_or(&nothing);
    // What is missing can be added in the spec itself, whatever it inherits.
    let home = if node.at.file == model.node.at.file { &node.at } else { &model.node.at };
    let mut lowering = Lowering { templates, home, problems };
    let Some(template) = lowering.template(node, None, "graph") else { return (Graph::default(), vec![]) };
    let mut graph = lowering.unit(template, node, "graph", &["template", "heads", "modules"], config);
    lowering.modules(template, node, "graph", config, &mut graph);
    let heads = heads(node, class_prefix, config, &mut graph, &mut lowering);
    (graph, heads)
}

/// What all graphs of a model are lowered with.
pub(super) struct Lowering<'a> {
    pub templates: &'a Templates,
    /// Where what is missing can be added.
    pub home: &'a Place,
    pub problems: &'a mut Vec<Problem>,
}

impl Graph {
    /// The fields of `config` that hold the configurations of modules, as paths, and the values of `model_type` there.
    pub fn module_types(&self) -> Vec<(String, Vec<String>)> {
        let mut found: Vec<(String, Vec<String>)> = vec![];
        for module in self.modules.values() {
            let types = (String::new(), module.model_types.clone());
            let own = (!module.config.is_empty() && !module.model_types.is_empty()).then_some(types);
            for (path, types) in own.into_iter().chain(module.graph.module_types()) {
                let found_at = [module.config.as_str(), &path].into_iter().filter(|name| !name.is_empty());
                let path = found_at.collect::<Vec<_>>().join(".");
                match found.iter_mut().find(|(known, _)| *known == path) {
                    // Several models that a module may be have each its own there.
                    Some((_, known)) => known
                        .extend(types.into_iter().filter(|name| !known.contains(name)).collect::<Vec<_>>()),
                    None => found.push((path, types)),
                }
            }
        }
        found
    }

    /// This graph, then those of its modules and of theirs.
    pub fn all(&self) -> Vec<&Self> {
        [self].into_iter().chain(self.modules.values().flat_map(|module| module.graph.all())).collect()
    }

    /// Adds a template or a part that it is made of, and what a spec says of it.
    pub(super) fn add(&mut self, template: &Template, given: &Node) {
        let entries = given.entries().iter().filter(|entry| template.front.options.contains_key(&entry.key));
        let set = entries.map(|entry| (entry.key.clone(), entry.at.file.to_path_buf()));
        self.set.entry(template.key.clone()).or_default().extend(set);
    }
}

impl<'a> Lowering<'a> {
    /// The graph template that a spec names.
    pub(super) fn template(
        &mut self,
        node: &Node,
        standard: Option<&Node>,
        key: &str,
    ) -> Option<&'a Template> {
        let name = node.get("template").or(standard);
        find(self.templates, "graph/", name, &node.at, &join(key, "template"), self.problems)
    }

    /// A graph template with its options and the parts in its slots; `other` names keys that are neither.
    pub(super) fn unit(
        &mut self,
        template: &Template,
        node: &Node,
        key: &str,
        other: &[&str],
        config: &Config,
    ) -> Graph {
        let front = &template.front;
        let nothing = nothing_at(&node.at);
        let keys: Vec<_> = other.iter().copied().chain(front.slots.keys().map(String::as_str)).collect();
        let mut graph = Graph {
            template: template.key.clone(),
            about: front.about.clone(),
            options: options(template, node, &keys, key, self.home, config, self.problems),
            ..Graph::default()
        };
        graph.add(template, node);
        let mut inputs: Vec<_> = visible(template, &graph.options).collect();
        for (slot, spec) in &front.slots {
            let path = join(key, slot);
            let given = node.get(slot);
            let standard = text(&template.place("slots"), &spec.default);
            let (name, own) = split(given, &standard, &path, self.problems);
            let folder = format!("graph/parts/{}/", spec.from.as_deref().unwrap_or(slot));
            let part = find(self.templates, &folder, Some(name), &node.at, &path, self.problems);
            let Some(part) = part else { continue };
            let own = own.unwrap_or(&nothing);
            graph.add(part, own);
            let own = options(part, own, &["part"], &path, self.home, config, self.problems);
            inputs.extend(visible(part, &own));
            graph.gives.extend(part.front.gives.iter().map(|gives| (slot.clone(), gives.clone())));
            graph.slots.insert(slot.clone(), name.text().unwrap_or_default().to_owned());
            graph.parts.insert(slot.clone(), (part.key.clone(), Value::Object(own)));
        }
        for (input, from) in inputs {
            let known = graph.inputs.iter_mut().find(|known| known.spec.name == input.name);
            // A part that reads it too may know better how much of it there is.
            if known.is_some() && input.example.is_none() {
                continue;
            }
            check_input(input, from, self.home, config, self.problems);
            match known {
                Some(known) => *known = Input::new(input),
                None => graph.inputs.push(Input::new(input)),
            }
        }
        graph.own_inputs.clone_from(&graph.inputs);
        graph
    }
}

/// The template that a value names, in a folder of templates.
pub(super) fn find<'a>(
    templates: &'a Templates,
    folder: &str,
    name: Option<&Node>,
    at: &Place,
    key: &str,
    problems: &mut Vec<Problem>,
) -> Option<&'a Template> {
    let list = || templates.names(folder).collect::<Vec<_>>().join(", ");
    let Some(name) = name else {
        problems.push(at.problem(key, format!("is missing; expected one of {}", list())));
        return None;
    };
    let Some(text) = name.text() else {
        let message = format!("expected one of {}, found {}", list(), name.found());
        problems.push(name.at.problem(key, message));
        return None;
    };
    let template = templates.get(&format!("{folder}{text}.rs")).filter(|_| !text.contains('/'));
    if template.is_none() {
        let message = format!("there is no `{text}` in templates/{folder}; expected one of {}", list());
        let nearest = nearest_name(text, templates.names(folder)).map(str::to_owned);
        problems.push(Problem { nearest, ..name.at.problem(key, message) });
    }
    template
}

/// The name of the part that a slot is given, and the map with its options: `self`, or `{part: self, bias: false}`.
pub(super) fn split<'a>(
    given: Option<&'a Node>,
    standard: &'a Node,
    key: &str,
    problems: &mut Vec<Problem>,
) -> (&'a Node, Option<&'a Node>) {
    match given {
        None => (standard, None),
        Some(node) => match &node.data {
            Data::Text(_) => (node, None),
            Data::Map(_) => (node.get("part").unwrap_or(standard), Some(node)),
            _ => {
                let message =
                    format!("expected the name of a part or a map with its options, found {}", node.found());
                problems.push(node.at.problem(key, message));
                (standard, None)
            }
        },
    }
}

/// The inputs that a template reads with these options.
pub(super) fn visible<'a>(
    template: &'a Template,
    options: &Map<String, Value>,
) -> impl Iterator<Item = (&'a InputSpec, &'a Template)> {
    let unset = |value: Option<&Value>| matches!(value, None | Some(Value::Null | Value::Bool(false)));
    let seen = |input: &&InputSpec| input.when.as_ref().is_none_or(|name| !unset(options.get(name)));
    let inputs: Vec<_> = template.front.inputs.iter().filter(seen).collect();
    inputs.into_iter().map(move |input| (input, template))
}

pub(super) fn check_input(
    input: &InputSpec,
    template: &Template,
    home: &Place,
    config: &Config,
    problems: &mut Vec<Problem>,
) {
    let Some(field) = input.below.as_ref().filter(|field| !config.has(field)) else { return };
    let message = format!(
        "`{field}` is not a field of config, and the input `{}` of {} must stay below it",
        input.name, template.label
    );
    let key = if config.path.is_empty() { "config".to_owned() } else { join("config", &config.path) };
    problems.push(Problem { nearest: config.nearest(field), ..home.problem(key, message) });
}

pub(super) fn text(at: &Place, text: &str) -> Node {
    Node { at: at.clone(), data: Data::Text(text.to_owned()) }
}

pub(super) fn nothing_at(at: &Place) -> Node {
    Node { at: at.clone(), data: Data::Map(vec![]) }
}
