//! `tasks` of a spec: which head serves each.

use serde::Serialize;

use super::heads::Head;
use crate::spec::document::{Problem, nearest_name};
use crate::spec::load::Resolved;
use crate::template::Templates;

/// A task as templates see it.
#[derive(Clone, Debug, Serialize)]
pub struct Task {
    /// Its name, as `transformers.pipeline` has it.
    pub name: String,
    /// Its type in the crate's `tasks` module.
    #[serde(rename = "type")]
    pub type_name: String,
    /// What it does.
    pub about: String,
    /// What it takes, as a sentence may begin.
    pub takes: &'static str,
    /// Inputs on a command line.
    pub shown: &'static str,
    /// The heads that serve it, the preferred first.
    pub heads: Vec<Head>,
    /// The documentation and the type, rendered.
    pub code: String,
    /// The template's key.
    #[serde(skip)]
    pub key: String,
}

/// Lowers the tasks.
pub fn lower(
    model: &Resolved,
    heads: &[Head],
    templates: &Templates,
    problems: &mut Vec<Problem>,
) -> Vec<Task> {
    let mut tasks: Vec<Task> = vec![];
    for (index, item) in model.node.get("tasks").map_or(&[][..], |node| node.items()).iter().enumerate() {
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
        let mut serving = vec![];
        for part in &template.front.heads {
            serving.extend(heads.iter().filter(|head| head.part == *part).cloned());
        }
        if serving.is_empty() && !heads.is_empty() {
            let message = format!(
                "`{name}` needs a head of the kind {}, and `graph.heads` has none",
                template.front.heads.join(" or ")
            );
            problems.push(item.at.problem(key, message));
            continue;
        }
        let Some(type_name) = template.front.type_name.clone() else {
            problems
                .push(template.place("type").problem("type", "is missing; expected the name of a Rust type"));
            continue;
        };
        let (takes, shown) = taken(name);
        tasks.push(Task {
            takes,
            shown,
            name: name.to_owned(),
            type_name,
            about: template.front.about.clone(),
            heads: serving,
            code: String::new(),
            key: template.key.clone(),
        });
    }
    tasks
}

/// What a task takes, in words and on a command line.
fn taken(name: &str) -> (&'static str, &'static str) {
    let kinds = [
        ("question-answering", "A question and a text", "\"Who?\" \"Ada did.\""),
        ("fill-mask", "Text", "\"A [MASK] text.\""),
        ("zero-shot-image", "Pictures and labels", "cat.jpg --label \"a cat\" --label \"a dog\""),
        ("zero-shot-video", "Videos and labels", "clip.gif --label \"a cat\" --label \"a dog\""),
        ("zero-shot-audio", "Sounds and labels", "sound.wav --label rain --label \"a dog\""),
        ("image-to-text", "Pictures", "cat.jpg"),
        ("image-text", "Pictures and text", "'{\"images\": \"cat.jpg\", \"text\": \"What is this?\"}'"),
        ("image", "Pictures", "cat.jpg"),
        ("object", "Pictures", "cat.jpg"),
        ("depth", "Pictures", "cat.jpg"),
        ("video", "Videos", "clip.gif"),
        ("audio", "Sounds", "sound.wav"),
        ("automatic-speech", "Sounds", "sound.wav"),
    ];
    let found = kinds.iter().find(|(start, ..)| name.starts_with(start));
    found.map_or(("Text", "\"A text.\""), |(_, takes, shown)| (*takes, *shown))
}
