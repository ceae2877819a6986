//! `tasks` of a spec: which head serves each.

use serde::Serialize;

use super::heads::Head;
use crate::spec::architectures::Pipeline;
use crate::spec::document::{Problem, nearest_name};
use crate::spec::load::Resolved;
use crate::template::{Feature, Template, Templates};

/// A task as templates see it.
#[derive(Clone, Debug, Serialize)]
pub struct Task {
    /// Its name, as `transformers.pipeline` has it.
    pub name: String,
    /// Its type in the crate's `tasks` module.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its variant of `weft::Task`.
    pub variant: String,
    /// What it does.
    pub about: String,
    /// What its example is run with on a command line.
    pub arguments: String,
    /// The heads that serve it, the preferred first.
    pub heads: Vec<Head>,
    /// Whether checkpoints of every class will do.
    pub any_class: bool,
    /// The heads besides these whose checkpoints hold all the weights of the preferred one.
    pub holders: Vec<Head>,
    /// Their classes as a sentence names them: "`A`, `B` and `C`".
    pub classes: String,
    /// The cargo features of the runtime that it needs.
    pub features: Vec<Feature>,
    /// The documentation and the type, rendered.
    pub code: String,
    /// The template's key.
    #[serde(skip)]
    pub key: String,
}

/// The order of tasks that a spec does not name itself; others follow by their names.
const ORDER: [&str; 10] = [
    "text-generation",
    "text2text-generation",
    "automatic-speech-recognition",
    "feature-extraction",
    "sentence-embedding",
    "fill-mask",
    "text-classification",
    "zero-shot-classification",
    "token-classification",
    // Of models of pictures and texts, which are published for this.
    "zero-shot-image-classification",
];

/// Lowers the tasks: those that the spec names, those of its inherited ones that its heads serve, or all of these.
pub fn lower(
    model: &Resolved,
    pipeline: Pipeline,
    heads: &[Head],
    templates: &Templates,
    problems: &mut Vec<Problem>,
) -> Vec<Task> {
    let tasks = named_or_served(model, heads, templates, problems);
    for template in tasks.iter().filter_map(|task| templates.get(&task.key)) {
        if !template.front.pipelines.contains(&pipeline) {
            let message = format!(
                "does not offer the pipeline `{}`, which `{}` is of; add it, or take the task from the spec",
                pipeline.name(),
                model.spec.model
            );
            problems.push(template.place("pipelines").problem("pipelines", message));
        }
    }
    tasks
}

fn named_or_served(
    model: &Resolved,
    heads: &[Head],
    templates: &Templates,
    problems: &mut Vec<Problem>,
) -> Vec<Task> {
    let mut tasks: Vec<Task> = vec![];
    let Some(named) = model.node.get("tasks") else {
        let mut served: Vec<&str> = templates.names("pipeline/").collect();
        let place = |name: &str| ORDER.iter().position(|first| *first == name).unwrap_or(ORDER.len());
        served.sort_by_key(|name| (place(name), *name));
        for name in served {
            let template = templates.get(&format!("pipeline/{name}.rs"));
            let offered = template.filter(|template| !template.front.named);
            tasks.extend(offered.and_then(|template| task(name, template, heads, problems)));
        }
        return tasks;
    };
    let inherited = named.at.file != model.node.at.file;
    for (index, item) in named.items().iter().enumerate() {
        let key = format!("tasks[{index}]");
        let Some(name) = item.text() else { continue };
        let Some(template) = templates.get(&format!("pipeline/{name}.rs")) else {
            let known: Vec<_> = templates.names("pipeline/").collect();
            let message =
                format!("there is no `{name}` in templates/pipeline/; expected one of {}", known.join(", "));
            let nearest = nearest_name(name, known).map(str::to_owned);
            problems.push(Problem { nearest, ..item.at.problem(key, message) });
            continue;
        };
        if tasks.iter().any(|task| task.name == name) {
            problems.push(item.at.problem(key, format!("`{name}` is given twice")));
            continue;
        }
        let task = task(name, template, heads, problems);
        if task.is_none() && !inherited && !heads.is_empty() {
            let message = format!(
                "`{name}` needs a head of the kind {}, and `graph.heads` has none",
                template.front.heads.join(" or ")
            );
            problems.push(item.at.problem(key, message));
        }
        tasks.extend(task);
    }
    tasks
}

/// A task with the heads that serve it; nothing if none does.
fn task(name: &str, template: &Template, heads: &[Head], problems: &mut Vec<Problem>) -> Option<Task> {
    let of = |part: &String| heads.iter().filter(|head| head.part == *part).cloned().collect::<Vec<_>>();
    let serving: Vec<_> = template.front.heads.iter().flat_map(of).collect();
    let preferred = serving.first()?;
    let holders = heads.iter().filter(|head| head.holds.contains(&preferred.part)).cloned().collect();
    let Some(type_name) = template.front.type_name.clone() else {
        let message = "is missing; expected the name of a Rust type";
        problems.push(template.place("type").problem("type", message));
        return None;
    };
    Some(Task {
        arguments: template.front.arguments.clone().unwrap_or_else(|| "\"A text.\"".to_owned()),
        name: name.to_owned(),
        variant: variant(name),
        any_class: template.front.any_class,
        holders,
        type_name,
        about: template.front.about.clone(),
        classes: enumerated(&serving),
        heads: serving,
        features: template.front.features.clone(),
        code: String::new(),
        key: template.key.clone(),
    })
}

/// `text2text-generation` as `Text2TextGeneration`.
fn variant(name: &str) -> String {
    let mut starts = true;
    let mut text = String::new();
    for c in name.chars() {
        if c.is_ascii_alphanumeric() {
            text.push(if starts { c.to_ascii_uppercase() } else { c });
        }
        starts = !c.is_ascii_alphabetic();
    }
    text
}

/// "`A`, `B` and `C`".
pub(super) fn enumerated(heads: &[Head]) -> String {
    let names: Vec<_> = heads.iter().map(|head| format!("`{}`", head.class)).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}
