//! A lowered model to the files of its crate.

pub mod header;
mod layout;
mod prune;
pub mod rust;

use serde_json::Value;
use tera::Context;

use crate::lower::graph::Head;
use crate::lower::{Model, World};
use crate::spec::document::{Problem, nearest_name};
use crate::spec::yaml::Place;
use crate::template::Template;

pub use header::{Header, is_generated};

/// What the crate is for: where `weft` comes from, where its cases are, which command makes it again.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The dependency on `weft`, as TOML: `workspace = true`.
    pub weft: String,
    /// Whether the crate is a member of Weft's own workspace.
    pub member: bool,
    /// The folder of its cases, from the crate's own.
    pub goldens: String,
    /// The command, without the model.
    pub command: String,
}

/// A generated file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Its path from the folder of all crates, with `/`.
    pub path: String,
    /// What it holds.
    pub text: String,
}

/// Renders all files of a crate, in the order of their paths.
///
/// # Errors
/// What templates or the code they gave are wrong about.
pub fn render(
    world: &World,
    model: &Model,
    setting: &Setting,
    at: &Place,
) -> Result<Vec<Output>, Vec<Problem>> {
    let mut renderer = Renderer { world, model, setting, at, problems: vec![], outputs: vec![] };
    renderer.run();
    let Renderer { mut outputs, problems, .. } = renderer;
    outputs.sort_by(|a, b| a.path.cmp(&b.path));
    if problems.is_empty() { Ok(outputs) } else { Err(problems) }
}

struct Renderer<'a> {
    world: &'a World,
    model: &'a Model,
    setting: &'a Setting,
    at: &'a Place,
    problems: Vec<Problem>,
    outputs: Vec<Output>,
}

impl Renderer<'_> {
    fn run(&mut self) {
        let templates = &self.world.templates;
        let mut model = self.model.clone();
        let mut context = Context::new();
        context.insert("model", &model);
        context.insert("weft", &self.setting.weft);
        context.insert("member", &self.setting.member);
        context.insert("goldens", &self.setting.goldens);
        for task in &mut model.tasks {
            let mut context = context.clone();
            context.insert("task", task);
            task.code = self.text(&task.key, &context);
        }
        context.insert("model", &model);
        for (path, template) in templates.under("crate/") {
            let mut label = template.label.clone();
            if path == "src/tasks.rs" {
                label.push_str(" with those in templates/pipeline");
            }
            self.file(path, template, &label, &context, None);
        }
        for (name, template) in templates.under("tests/") {
            if name == "backend.rs" {
                for backend in &model.hardware {
                    let mut context = context.clone();
                    context.insert("backend", backend);
                    let path = format!("tests/hardware/{}.rs", backend.name);
                    self.file(&path, template, &template.label, &context, None);
                }
            } else {
                let path = format!("tests/hardware/{name}");
                self.file(&path, template, &template.label, &context, None);
            }
        }
        if let Some(template) = templates.get(&model.graph.template) {
            context.insert("o", &model.graph.options);
            let mut functions: Vec<&str> = vec![];
            let mut heads = vec![];
            for head in &model.heads {
                if !functions.contains(&head.function.as_str()) {
                    functions.push(&head.function);
                    heads.push(self.head(head, &context));
                }
            }
            context.insert("head_functions", &heads.join("\n"));
            let label = format!("{} with its parts", template.label);
            self.file("src/graph.rs", template, &label, &context, Some(&model.graph.uses));
        }
    }

    fn head(&mut self, head: &Head, context: &Context) -> String {
        let mut context = context.clone();
        context.insert("graph", &self.model.graph.options);
        context.insert("head", head);
        context.insert("o", &head.options);
        self.text(&head.key, &context)
    }

    /// A template and the parts it calls, as text.
    fn text(&mut self, key: &str, context: &Context) -> String {
        let mut context = context.clone();
        context.insert("graph", &self.model.graph.options);
        context.insert("slot", &self.model.graph.slots);
        let part = |slot: &str| -> Option<(String, Value)> { self.model.graph.parts.get(slot).cloned() };
        self.world.templates.render(key, &context, &part).unwrap_or_else(|problem| {
            self.problems.push(problem);
            String::new()
        })
    }

    /// One file: rendered, and as Rust parsed and printed; `uses` is what a graph may import.
    fn file(
        &mut self,
        path: &str,
        template: &Template,
        label: &str,
        context: &Context,
        uses: Option<&[String]>,
    ) {
        let before = self.problems.len();
        let text = self.text(&template.key, context);
        if self.problems.len() > before {
            return;
        }
        let specs: Vec<_> = [&self.model.source].into_iter().chain(&self.model.parents).cloned().collect();
        let command = format!("{} --model {}", self.setting.command, self.model.name);
        let header = Header { command: &command, specs: &specs, template: label };
        let body = if path.ends_with(".rs") {
            match self.rust(&text, template, uses) {
                Ok(body) => body,
                Err(problem) => return self.problems.push(problem),
            }
        } else {
            format!("{}\n", text.trim())
        };
        let text = format!("{}\n{body}", header.text(path));
        let path = format!("{}/{}/{path}", self.model.category, self.model.name);
        self.outputs.push(Output { path, text });
    }

    fn rust(&mut self, text: &str, template: &Template, uses: Option<&[String]>) -> Result<String, Problem> {
        let mut code = rust::parse(text).map_err(|invalid| {
            let message = format!(
                "gives no valid Rust for `{}`: {} in the line `{}`",
                self.model.name, invalid.message, invalid.line
            );
            Place::start(&template.shown).problem("", message)
        })?;
        if let Some(uses) = uses {
            code.prune();
            self.config_names(&code, template);
            code.import(uses);
        }
        Ok(code.print())
    }

    /// Reports fields that the graph reads and the spec does not have.
    fn config_names(&mut self, code: &rust::Code, template: &Template) {
        let config = &self.model.config;
        for (name, called) in code.config_names() {
            let known =
                if called { name == "num_labels" && config.labels.is_some() } else { config.has(&name) };
            if known {
                continue;
            }
            let message = if called && name == "num_labels" {
                format!(
                    "{} counts labels, and config has no field of the type labels: add `id2label`",
                    template.label
                )
            } else {
                format!("{} reads `c.{name}`, which is not a field of config", template.label)
            };
            let nearest = nearest_name(&name, config.names()).filter(|_| !called).map(str::to_owned);
            self.problems.push(Problem { nearest, ..self.at.problem("config", message) });
        }
    }
}
