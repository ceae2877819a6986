//! A lowered model to the files of its crate.

mod graph;
pub mod header;

use std::collections::BTreeSet;

use serde_json::Value;
use tera::Context;
use weft_code::Code;

use crate::expression::unbound;
use crate::lower::config::Config;
use crate::lower::graph::Graph;
use crate::lower::tasks::Task;
use crate::lower::{Model, World};
use crate::spec::document::{Problem, nearest_name};
use crate::spec::yaml::Place;
use crate::template::{Feature, Template};

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

/// The example that a crate's pages open with: of the first task that is shown on a published checkpoint, or of the first.
fn opening(tasks: &[Task], checkpoints: &[String]) -> Vec<String> {
    let named = |task: &&Task| checkpoints.iter().any(|name| task.code.contains(&format!("{name:?}")));
    let task = tasks.iter().find(named).or(tasks.first());
    let lines = task.iter().flat_map(|task| task.code.lines());
    let lines = lines
        .filter_map(|line| line.trim_start().strip_prefix("///"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line));
    let shown =
        lines.skip_while(|line| !line.starts_with("```")).skip(1).take_while(|line| !line.starts_with("```"));
    shown.map(str::to_owned).collect()
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
    let mut renderer =
        Renderer { world, model, setting, at, problems: vec![], outputs: vec![], read: BTreeSet::new() };
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
    /// What graphs read of configurations that are one of several: the type and the field.
    read: BTreeSet<(String, String)>,
}

impl Renderer<'_> {
    fn run(&mut self) {
        let templates = &self.world.templates;
        let model = self.model;
        let mut context = Context::new();
        context.insert("model", model);
        context.insert("weft", &self.setting.weft);
        context.insert("member", &self.setting.member);
        context.insert("goldens", &self.setting.goldens);
        context.insert("configs", &model.config.all());
        let types: BTreeSet<_> = model.config.all().iter().map(|config| config.name.clone()).collect();
        context.insert("config_types", &types);
        context.insert("graph", &model.graph.options);
        context.insert("slot", &model.graph.slots);
        context.insert("gives", &model.graph.gives);
        let mut tasks = model.tasks.clone();
        for task in &mut tasks {
            let mut context = context.clone();
            context.insert("task", task);
            task.code = self.text(&task.key, &context, &model.graph);
        }
        context.insert("tasks", &tasks);
        let opening = opening(&tasks, &model.checkpoints);
        let shown: Vec<_> = opening.iter().filter(|line| !line.starts_with("# ")).collect();
        context.insert("opening_shown", &shown);
        context.insert("opening", &opening);
        self.graph(&context);
        let features = tasks.iter().flat_map(|task| &task.features).copied();
        let features: BTreeSet<_> = features.chain(self.computed_with()).collect();
        context.insert("features", &features);
        context.insert("configs", &self.configs());
        context.insert("refused", &model.config.refused());
        for (path, template) in templates.under("crate/") {
            let mut label = template.label.clone();
            if path == "src/tasks.rs" {
                label.push_str(" with those in templates/pipeline");
            }
            self.file(path, template, &label, &context);
        }
        for (name, template) in templates.under("tests/") {
            if name == "backend.rs" {
                for backend in &model.hardware {
                    let mut context = context.clone();
                    context.insert("backend", backend);
                    let path = format!("tests/hardware/{}.rs", backend.name);
                    self.file(&path, template, &template.label, &context);
                }
            } else {
                let path = format!("tests/hardware/{name}");
                self.file(&path, template, &template.label, &context);
            }
        }
    }

    /// The runtime's features whose modules the graphs that were written compute inputs with.
    fn computed_with(&self) -> Vec<Feature> {
        let names = |feature: &Feature| format!("weft::{}::", feature.name());
        let calls = |name: String| self.outputs.iter().any(|output| output.text.contains(&name));
        Feature::ALL.into_iter().filter(|feature| calls(names(feature))).collect()
    }

    /// The configurations; those that are one of several with the methods that something reads.
    fn configs(&self) -> Vec<Config> {
        let all: Vec<_> = self.model.config.all().into_iter().cloned().collect();
        let processing = self.model.processing.as_ref().and_then(|processing| processing.max_length.clone());
        let bodies =
            all.iter().filter(|config| config.variants.is_empty()).flat_map(|config| &config.methods);
        let expressions: Vec<_> = bodies.map(|method| method.body.clone()).chain(processing).collect();
        let mut configs = all;
        for config in configs.iter_mut().filter(|config| !config.variants.is_empty()) {
            let name = &config.name;
            config.methods.retain(|method| {
                let call = format!(".{}()", method.name);
                self.read.contains(&(name.clone(), method.name.clone()))
                    || expressions.iter().any(|expression| expression.contains(&call))
            });
        }
        configs
    }

    /// A template and the parts it calls, as text.
    fn text(&mut self, key: &str, context: &Context, graph: &Graph) -> String {
        let templates = &self.world.templates;
        let part = |slot: &str| -> Option<(String, Value)> { graph.parts.get(slot).cloned() };
        let text = templates.render(key, context, &part).and_then(|text| match unbound(&text) {
            None => Ok(text),
            Some(name) => {
                let shown = templates.get(key).map(|template| template.shown.clone()).unwrap_or_default();
                let message = format!(
                    "or one of its parts puts an expression over `{name}` and does not say what that is; expected \
                     `| at({name}=\"…\")` behind the option"
                );
                Err(Place::start(&shown).problem("", message))
            }
        });
        text.unwrap_or_else(|problem| {
            self.problems.push(problem);
            String::new()
        })
    }

    /// One file: rendered, and as Rust parsed and printed.
    fn file(&mut self, path: &str, template: &Template, label: &str, context: &Context) {
        let before = self.problems.len();
        let templates = &self.world.templates;
        let text = self.text(&template.key, context, &self.model.graph);
        if self.problems.len() > before {
            return;
        }
        let body = if path.ends_with(".rs") {
            match self.parse(&text, template) {
                Ok(mut code) => {
                    code.import(templates.uses());
                    self.unknown(&code, template, &[]);
                    code.print()
                }
                Err(problem) => return self.problems.push(problem),
            }
        } else {
            format!("{}\n", text.trim())
        };
        self.write(path, label, &body);
    }

    /// Reports names that nothing stands for, in the first of the template and these parts that has them.
    fn unknown(&mut self, code: &Code, template: &Template, parts: &[&str]) {
        let templates = &self.world.templates;
        for name in code.unknown() {
            let parts = parts.iter().filter_map(|key| templates.get(key));
            let place = [template].into_iter().chain(parts).find_map(|template| template.line(name));
            let message = "is neither defined in the code nor listed in templates/uses.yaml; write its whole path, or \
                           list what it is imported from";
            let nearest = nearest_name(name, templates.uses().keys().map(String::as_str)).map(str::to_owned);
            let place = place.unwrap_or_else(|| Place::start(&template.shown));
            self.problems.push(Problem { nearest, ..place.problem(name, message) });
        }
    }

    fn write(&mut self, path: &str, label: &str, body: &str) {
        let specs: Vec<_> = [&self.model.source].into_iter().chain(&self.model.parents).cloned().collect();
        let command = format!("{} --model {}", self.setting.command, self.model.name);
        let header = Header { command: &command, specs: &specs, template: label };
        let text = format!("{}\n{body}", header.text(path));
        let path = format!("{}/{}/{path}", self.model.category, self.model.name);
        self.outputs.push(Output { path, text });
    }

    fn parse(&self, text: &str, template: &Template) -> Result<Code, Problem> {
        weft_code::parse(text).map_err(|invalid| {
            let message = format!(
                "gives no valid Rust for `{}`: {} in the line `{}`",
                self.model.name, invalid.message, invalid.line
            );
            Place::start(&template.shown).problem("", message)
        })
    }
}
