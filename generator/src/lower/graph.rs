//! `graph` of a spec: which template, which part in each slot, which heads, and the options of each.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::config::Config;
use super::options::options;
use crate::spec::check::join;
use crate::spec::document::{Problem, nearest_name};
use crate::spec::load::Resolved;
use crate::spec::yaml::{Data, Node, Place};
use crate::template::{InputSpec, OutputSpec, Template, Templates};

/// The graph as templates see it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Graph {
    /// The template's key.
    pub template: String,
    /// The template's options.
    pub options: Map<String, Value>,
    /// The part in each slot, by name.
    pub slots: BTreeMap<String, String>,
    /// What the model reads.
    pub inputs: Vec<InputSpec>,
    /// What heads give, each name once.
    pub outputs: Vec<OutputSpec>,
    /// The part in each slot: its key and its options.
    #[serde(skip)]
    pub parts: BTreeMap<String, (String, Value)>,
    /// What the code may import.
    #[serde(skip)]
    pub uses: Vec<String>,
}

/// One of the reference's classes.
#[derive(Clone, Debug, Serialize)]
pub struct Head {
    /// Its name in the crate's `Head`.
    pub variant: String,
    /// Its name in the reference.
    pub class: String,
    /// The part that builds it.
    pub part: String,
    /// The function that builds it.
    pub function: String,
    /// What it does.
    pub about: String,
    /// What it gives.
    pub outputs: Vec<OutputSpec>,
    /// The symbols after `batch` that its inputs have and others' do not.
    pub axes: Vec<String>,
    /// The part's key.
    #[serde(skip)]
    pub key: String,
    /// The part's options.
    #[serde(skip)]
    pub options: Value,
}

/// Lowers `graph`.
pub fn lower(
    model: &Resolved,
    class_prefix: &str,
    config: &Config,
    templates: &Templates,
    problems: &mut Vec<Problem>,
) -> (Graph, Vec<Head>) {
    let nothing = Node { at: model.node.at.clone(), data: Data::Map(vec![]) };
    let node = model.node.get("graph").unwrap_or(&nothing);
    // What is missing can be added in the spec itself, whatever it inherits.
    let home = if node.at.file == model.node.at.file { &node.at } else { &model.node.at };
    let Some(template) =
        find(templates, "graph/", node.get("template"), &node.at, "graph.template", problems)
    else {
        return (Graph::default(), vec![]);
    };
    let front = &template.front;
    let other: Vec<_> =
        ["template", "heads"].into_iter().chain(front.slots.keys().map(String::as_str)).collect();
    let mut graph = Graph {
        template: template.key.clone(),
        options: options(template, node, &other, "graph", home, config, problems),
        uses: front.uses.clone(),
        ..Graph::default()
    };
    let mut inputs: Vec<_> = visible(template, &graph.options).collect();
    for (slot, spec) in &front.slots {
        let path = join("graph", slot);
        let given = node.get(slot);
        let standard = text(&template.place("slots"), &spec.default);
        let (name, own) = split(given, &standard, &path, problems);
        let folder = format!("graph/parts/{}/", spec.from.as_deref().unwrap_or(slot));
        let Some(part) = find(templates, &folder, Some(name), &node.at, &path, problems) else { continue };
        let own = options(part, own.unwrap_or(&nothing), &["part"], &path, home, config, problems);
        inputs.extend(visible(part, &own));
        graph.uses.extend(part.front.uses.iter().cloned());
        graph.slots.insert(slot.clone(), name.text().unwrap_or_default().to_owned());
        graph.parts.insert(slot.clone(), (part.key.clone(), Value::Object(own)));
    }
    for (input, from) in inputs {
        add_input(input, from, home, config, &mut graph, problems);
    }
    let heads = heads(node, class_prefix, home, config, templates, &mut graph, problems);
    (graph, heads)
}

fn heads(
    node: &Node,
    class_prefix: &str,
    home: &Place,
    config: &Config,
    templates: &Templates,
    graph: &mut Graph,
    problems: &mut Vec<Problem>,
) -> Vec<Head> {
    let entries = node.get("heads").map_or(&[][..], Node::entries);
    if entries.is_empty() {
        let message = "is missing; expected the reference's classes, without what all their names start with, \
                       such as `Model: base`";
        problems.push(node.at.problem("graph.heads", message));
    }
    let mut heads: Vec<Head> = vec![];
    for entry in entries {
        let path = join("graph.heads", &entry.key);
        let (name, own) = split(Some(&entry.value), &entry.value, &path, problems);
        let Some(part) = find(templates, "graph/parts/head/", Some(name), &entry.at, &path, problems) else {
            continue;
        };
        if syn::parse_str::<syn::Ident>(&entry.key).is_err()
            || !entry.key.starts_with(|c: char| c.is_ascii_uppercase())
        {
            problems.push(entry.at.problem(&path, "must be a Rust name that starts with a capital"));
        }
        let class = own.and_then(|own| own.get("class")).and_then(Node::text);
        let class = class.map_or_else(|| format!("{class_prefix}{}", entry.key), str::to_owned);
        let nothing = nothing_at(&entry.at);
        let own = options(part, own.unwrap_or(&nothing), &["part", "class"], &path, home, config, problems);
        let own = Value::Object(own);
        let part_name = name.text().unwrap_or_default().to_owned();
        let taken = heads.iter().any(|head| head.part == part_name && head.options != own);
        let function = if taken { snake(&entry.key) } else { part_name.clone() };
        for output in &part.front.outputs {
            if !graph.outputs.iter().any(|known| known.name == output.name) {
                graph.outputs.push(output.clone());
            }
        }
        graph.uses.extend(part.front.uses.iter().cloned());
        let shown = own.as_object().into_iter().flat_map(|own| visible(part, own)).collect::<Vec<_>>();
        for (input, from) in shown {
            add_input(input, from, home, config, graph, problems);
        }
        heads.push(Head {
            variant: entry.key.clone(),
            class,
            part: part_name,
            function,
            about: part.front.about.clone(),
            outputs: part.front.outputs.clone(),
            axes: part.front.axes.clone(),
            key: part.key.clone(),
            options: own,
        });
    }
    heads
}

/// The template that a value names, in a folder of templates.
fn find<'a>(
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
fn split<'a>(
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
fn visible<'a>(
    template: &'a Template,
    options: &Map<String, Value>,
) -> impl Iterator<Item = (&'a InputSpec, &'a Template)> {
    let unset = |value: Option<&Value>| matches!(value, None | Some(Value::Null | Value::Bool(false)));
    let seen = |input: &&InputSpec| input.when.as_ref().is_none_or(|name| !unset(options.get(name)));
    let inputs: Vec<_> = template.front.inputs.iter().filter(seen).collect();
    inputs.into_iter().map(move |input| (input, template))
}

/// Adds what a template reads, once.
fn add_input(
    input: &InputSpec,
    from: &Template,
    home: &Place,
    config: &Config,
    graph: &mut Graph,
    problems: &mut Vec<Problem>,
) {
    if !graph.inputs.iter().any(|known| known.name == input.name) {
        check_input(input, from, home, config, problems);
        graph.inputs.push(input.clone());
    }
}

fn check_input(
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
    let nearest = nearest_name(field, config.names()).map(str::to_owned);
    problems.push(Problem { nearest, ..home.problem("config", message) });
}

fn text(at: &Place, text: &str) -> Node {
    Node { at: at.clone(), data: Data::Text(text.to_owned()) }
}

fn nothing_at(at: &Place) -> Node {
    Node { at: at.clone(), data: Data::Map(vec![]) }
}

/// `ForMaskedLM` as `for_masked_lm`.
pub fn snake(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut text = String::new();
    for (index, c) in chars.iter().enumerate() {
        let starts = c.is_ascii_uppercase()
            && index > 0
            && (!chars[index - 1].is_ascii_uppercase()
                || chars.get(index + 1).is_some_and(char::is_ascii_lowercase));
        if starts {
            text.push('_');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}
