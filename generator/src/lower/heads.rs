//! `graph.heads` of a spec: the reference's classes, the part that builds each, and its options.

use serde::Serialize;
use serde_json::Value;

use super::config::Config;
use super::graph::{Graph, Lowering, check_input, find, nothing_at, split, visible};
use super::inputs::Input;
use super::options::options;
use crate::spec::check::join;
use crate::spec::yaml::Node;
use crate::template::{GraphKind, OutputSpec};

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
    /// The parts of other heads whose weights its checkpoints hold as well.
    pub holds: Vec<String>,
    /// The inputs that it takes; all of the model's if empty.
    pub takes: Vec<String>,
    /// The graphs that it builds: variants of `weft::GraphKind`; the whole model alone if empty.
    pub graphs: Vec<&'static str>,
    /// The symbols after `batch` that its inputs have and others' do not.
    pub axes: Vec<String>,
    /// The part's key.
    #[serde(skip)]
    pub key: String,
    /// The part's options.
    #[serde(skip)]
    pub options: Value,
}

/// Lowers the heads, and adds what they give to the graph.
pub(super) fn heads(
    node: &Node,
    class_prefix: &str,
    config: &Config,
    graph: &mut Graph,
    lowering: &mut Lowering<'_>,
) -> Vec<Head> {
    let entries = node.get("heads").map_or(&[][..], Node::entries);
    if entries.is_empty() {
        let message = "is missing; expected the reference's classes, without what all their names start with, \
                       such as `Model: base`";
        lowering.problems.push(node.at.problem("graph.heads", message));
    }
    let mut heads: Vec<Head> = vec![];
    for entry in entries {
        let path = join("graph.heads", &entry.key);
        let (name, own) = split(Some(&entry.value), &entry.value, &path, lowering.problems);
        let folder = "graph/parts/head/";
        let part = find(lowering.templates, folder, Some(name), &entry.at, &path, lowering.problems);
        let Some(part) = part else { continue };
        if !weft_code::is_name(&entry.key) || !entry.key.starts_with(|c: char| c.is_ascii_uppercase()) {
            let message = "must be a Rust name that starts with a capital";
            lowering.problems.push(entry.at.problem(&path, message));
        }
        let class = own.and_then(|own| own.get("class")).and_then(Node::text);
        let class = class.map_or_else(|| format!("{class_prefix}{}", entry.key), str::to_owned);
        let nothing = nothing_at(&entry.at);
        let own = own.unwrap_or(&nothing);
        graph.add(part, own);
        let own = options(part, own, &["part", "class"], &path, lowering.home, config, lowering.problems);
        let given = |option: &Option<String>| {
            option
                .as_ref()
                .is_none_or(|name| !matches!(own.get(name), None | Some(Value::Null | Value::Bool(false))))
        };
        let outputs: Vec<_> =
            part.front.outputs.iter().filter(|output| given(&output.when)).cloned().collect();
        for (input, from) in visible(part, &own) {
            match graph.inputs.iter_mut().find(|known| known.spec.name == input.name) {
                Some(known) if known.heads.is_empty() => {}
                Some(known) => known.heads.push(entry.key.clone()),
                None => {
                    check_input(input, from, lowering.home, config, lowering.problems);
                    let input = Input { heads: vec![entry.key.clone()], ..Input::new(input) };
                    graph.inputs.push(input.clone());
                    graph.own_inputs.push(input);
                }
            }
        }
        // Modules that something is wrong with have no inputs.
        let known = |name: &&String| {
            graph.modules.contains_key(*name) || graph.inputs.iter().any(|input| input.spec.name == **name)
        };
        let sound = lowering.problems.is_empty();
        for name in part.front.takes.iter().filter(|name| sound && !known(name)) {
            let message = format!("`{name}` is an input of no template of `{}`", graph.template);
            lowering.problems.push(part.place("takes").problem("takes", message));
        }
        // A module's name stands for all that it reads.
        let takes = part.front.takes.iter().flat_map(|name| match graph.modules.get(name) {
            Some(module) => module.graph.inputs.iter().map(|input| input.spec.name.clone()).collect(),
            None => vec![name.clone()],
        });
        let takes = takes.collect();
        let own = Value::Object(own);
        let part_name = name.text().unwrap_or_default().to_owned();
        let taken = heads.iter().any(|head| head.part == part_name && head.options != own);
        let function = if taken { snake(&entry.key) } else { part_name.clone() };
        for output in &outputs {
            if !graph.outputs.iter().any(|known| known.name == output.name) {
                graph.outputs.push(output.clone());
            }
        }
        let graphs = part.front.graphs.iter().map(|kind| kind.variant());
        heads.push(Head {
            variant: entry.key.clone(),
            class,
            part: part_name,
            function,
            about: part.front.about.clone(),
            outputs,
            holds: part.front.holds.clone(),
            takes,
            graphs: if part.front.graphs == [GraphKind::Forward] { vec![] } else { graphs.collect() },
            axes: part.front.axes.clone(),
            key: part.key.clone(),
            options: own,
        });
    }
    heads
}

/// The function that builds the graph of a head and a part: what graph templates put where `{{ build }}` stands.
pub fn build(heads: &[Head]) -> String {
    let kinds = heads.iter().any(|head| !head.graphs.is_empty());
    let mut arms = vec![];
    for Head { variant, function, graphs: own, .. } in heads {
        arms.push(match (kinds, own.as_slice()) {
            (false, _) => format!("Head::{variant} => {function}(g, c),"),
            (true, []) => format!("(Head::{variant}, GraphKind::Forward) => {function}(g, c),"),
            (true, own) => {
                let own: Vec<_> = own.iter().map(|kind| format!("GraphKind::{kind}")).collect();
                format!("(Head::{variant}, {}) => {function}(g, c, kind),", own.join(" | "))
            }
        });
    }
    let (what, arguments, on, errors) = if kinds {
        arms.push("(_, kind) => Err(kind.absent(g)),".to_owned());
        (
            "a graph of a head",
            "head: Head, kind: GraphKind",
            "(head, kind)",
            ", or the head has no such graph",
        )
    } else {
        ("one head", "head: Head", "head", "")
    };
    format!(
        "/// Builds the graph of {what}.\n///\n/// # Errors\n/// When the configuration asks for shapes that do not fit \
         together{errors}.\npub fn build(g: &mut Graph, c: &Config, {arguments}) -> Result<()> {{\n    match {on} {{\n        \
         {}\n    }}\n}}\n",
        arms.join("\n        ")
    )
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
