//! The graph of a model and of its modules: `src/graph.rs`, `src/graph/<module>.rs`, `src/graph/<module>/<inner>.rs`.

use std::collections::BTreeSet;

use tera::Context;
use weft_code::{Choice, Code};

use super::Renderer;
use crate::lower::config::{Config, Read};
use crate::lower::graph::{Graph, Module};
use crate::lower::heads::{Head, build};
use crate::spec::document::Problem;
use crate::template::Template;

/// The graph of the model, or of a module: one file.
struct Unit<'a> {
    /// The module's name after those of the modules that it is in; none for the model's own.
    path: Vec<&'a str>,
    /// What it is a module of.
    parent: Option<usize>,
    graph: &'a Graph,
    config: &'a Config,
    /// The model that it is taken from.
    model: Option<&'a str>,
    /// Whether it is one of its modules.
    one_of: bool,
    template: &'a Template,
    text: String,
}

/// What others name of a unit: what its siblings and its parent call, and what its modules reach for.
#[derive(Clone, Default)]
struct Named {
    seen: BTreeSet<String>,
    kept: BTreeSet<String>,
}

impl<'a> Renderer<'a> {
    pub(super) fn graph(&mut self, context: &Context) {
        let model = self.model;
        let before = self.problems.len();
        let Some(template) = self.world.templates.get(&model.graph.template) else { return };
        let mut context = context.clone();
        context.insert("o", &model.graph.options);
        context.insert("module", "");
        context.insert("build", &build(&model.heads));
        let mut functions: Vec<&str> = vec![];
        let mut heads = vec![];
        for head in &model.heads {
            if !functions.contains(&head.function.as_str()) {
                functions.push(&head.function);
                heads.push(self.head(head, &context));
            }
        }
        context.insert("head_functions", &heads.join("\n"));
        let text = self.text(&template.key, &context, &model.graph);
        let (graph, config) = (&model.graph, &model.config);
        let top =
            Unit { path: vec![], parent: None, graph, config, model: None, one_of: false, template, text };
        let mut units = vec![top];
        self.modules(0, &context, &mut units);
        let (codes, shared) = self.codes(&units);
        if self.problems.len() > before {
            return;
        }
        for (index, (unit, code)) in units.iter().zip(codes).enumerate() {
            let Some(mut code) = code else {
                let Some(parent) = unit.parent else { continue };
                let (name, parent) = (unit.path.last().copied().unwrap_or_default(), &units[parent]);
                let message =
                    format!("declares the module `{name}` and calls nothing of it in `{}`", model.name);
                let at = parent.template.place("modules");
                self.problems.push(at.problem(format!("modules.{name}"), message));
                continue;
            };
            let modules = units.iter().filter(|other| other.parent == Some(index));
            code.declare(modules.filter_map(|module| module.path.last().copied()));
            let types = unit.parent.map(|parent| shared[parent].clone()).unwrap_or_default();
            self.finish(unit, code, types);
        }
    }

    fn head(&mut self, head: &Head, context: &Context) -> String {
        let mut context = context.clone();
        context.insert("head", head);
        context.insert("o", &head.options);
        self.text(&head.key, &context, &self.model.graph)
    }

    /// Adds the modules of a unit, each with its own after it.
    fn modules(&mut self, parent: usize, context: &Context, units: &mut Vec<Unit<'a>>) {
        let (graph, config, path) = (units[parent].graph, units[parent].config, units[parent].path.clone());
        for module in graph.modules.values() {
            let Some(template) = self.world.templates.get(&module.graph.template) else { continue };
            let variant =
                config.variants.iter().find(|variant| units[parent].one_of && variant.module == module.name);
            let config = variant.map_or_else(|| within(config, &module.config), |variant| &variant.config);
            let text = if module.one_of { String::new() } else { self.module_text(module, config, context) };
            let path = [path.as_slice(), &[module.name.as_str()]].concat();
            let (graph, model) = (&module.graph, module.model.as_deref());
            let one_of = module.one_of;
            units.push(Unit { path, parent: Some(parent), graph, config, model, one_of, template, text });
            self.modules(units.len() - 1, context, units);
        }
    }

    /// A module's template sees the module as its model.
    fn module_text(&mut self, module: &Module, config: &Config, context: &Context) -> String {
        let mut model = self.model.clone();
        model.graph = module.graph.clone();
        model.config = config.clone();
        model.heads.clear();
        let mut context = context.clone();
        context.insert("model", &model);
        context.insert("o", &module.graph.options);
        context.insert("graph", &module.graph.options);
        context.insert("slot", &module.graph.slots);
        context.insert("gives", &module.graph.gives);
        context.insert("module", &module.name);
        context.insert("build", "");
        context.insert("head_functions", "");
        self.text(&module.graph.template, &context, &module.graph)
    }

    /// Parses the units; each keeps what it builds and what the others call. Nothing for those that nobody calls. And the
    /// types that those share which a unit is one of.
    fn codes(&mut self, units: &[Unit<'_>]) -> (Vec<Option<Code>>, Vec<BTreeSet<String>>) {
        let mut parsed = vec![];
        for unit in units {
            match self.parse(&unit.text, unit.template) {
                Ok(code) => parsed.push(code),
                Err(problem) => self.problems.push(problem),
            }
        }
        let mut codes = vec![None; units.len()];
        let mut shared = vec![BTreeSet::new(); units.len()];
        if parsed.len() < units.len() {
            return (codes, shared);
        }
        let mut named = vec![Named::default(); units.len()];
        let mut waiting = BTreeSet::from([0]);
        while let Some(index) = waiting.pop_first() {
            let (unit, mut code) = (&units[index], parsed[index].clone());
            if unit.one_of {
                let types;
                (code, types) = self.dispatch(index, units, &parsed, &named[index].seen);
                if types != shared[index] {
                    shared[index] = types;
                    waiting.extend(
                        (0..units.len())
                            .filter(|&other| units[other].parent == Some(index) && codes[other].is_some()),
                    );
                }
            }
            if let Some(parent) = unit.parent {
                code.without(&shared[parent]);
                let depth = if units[parent].one_of { 1 } else { unit.path.len() };
                code.enclose(&self.module_doc(unit), &named[index].seen, depth);
            }
            code.prune_but(&named[index].kept);
            for (other, known) in named.iter_mut().enumerate().filter(|(other, _)| *other != index) {
                let before = known.seen.len() + known.kept.len();
                match units[other].path.last() {
                    Some(name) if units[other].parent == Some(index) => {
                        known.seen.extend(code.names_of(&[name]));
                    }
                    Some(name) if units[other].parent == unit.parent => {
                        known.seen.extend(code.names_of(&["super", name]));
                    }
                    _ if unit.parent == Some(other) => known.kept.extend(code.names_of(&["super"])),
                    _ => {}
                }
                if known.seen.len() + known.kept.len() > before {
                    waiting.insert(other);
                }
            }
            codes[index] = Some(code);
        }
        (codes, shared)
    }

    /// What stands for a unit that is one of its modules, where others name these of its items; and its types.
    fn dispatch(
        &mut self,
        index: usize,
        units: &[Unit<'_>],
        parsed: &[Code],
        named: &BTreeSet<String>,
    ) -> (Code, BTreeSet<String>) {
        let unit = &units[index];
        let modules = units.iter().zip(parsed).filter(|(module, _)| module.parent == Some(index));
        let choices: Vec<_> = modules
            .zip(&unit.config.variants)
            .map(|((_, code), variant)| Choice { module: &variant.module, variant: &variant.name, code })
            .collect();
        Code::dispatch(&choices, named).unwrap_or_else(|differs| {
            let key = format!("graph.modules.{}.one_of", unit.path.join(".modules."));
            let message = format!("`{}` cannot stand here: it {}", differs.module, differs.problem);
            let problem = self.at.problem(key, message);
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
            (parsed[index].clone(), BTreeSet::new())
        })
    }

    fn module_doc(&self, unit: &Unit<'_>) -> Vec<String> {
        let from = match unit.model {
            _ if unit.one_of => {
                ": one of several models, by the `model_type` of its configuration".to_owned()
            }
            Some(model) => format!(", as in `{model}`"),
            None => String::new(),
        };
        let mut doc = vec![format!("{}'s `{}`{from}.", self.model.title, unit.path.join("::"))];
        if !unit.graph.about.is_empty() {
            doc.extend([String::new(), unit.graph.about.clone()]);
        }
        doc
    }

    /// Reads of the configuration and imports settled, and written; `types` are those of its parent.
    fn finish(&mut self, unit: &Unit<'_>, mut code: Code, types: BTreeSet<String>) {
        self.config_names(&code, unit.template, unit.config);
        code.settle(unit.config);
        let mut uses = self.world.templates.uses().clone();
        uses.extend(unit.config.structs().into_iter().map(|(called, name)| match called == name {
            true => (called, format!("crate::{name}")),
            false => (called.clone(), format!("crate::{name} as {called}")),
        }));
        uses.extend(types.into_iter().map(|name| (name.clone(), format!("super::{name}"))));
        code.import(&uses);
        let parts = unit.graph.parts.values().map(|(key, _)| key.as_str());
        let heads = self.model.heads.iter().map(|head| head.key.as_str()).filter(|_| unit.parent.is_none());
        self.unknown(&code, unit.template, &parts.chain(heads).collect::<Vec<_>>());
        let label = format!("{} with its parts", unit.template.label);
        let path: String = unit.path.iter().map(|name| format!("/{name}")).collect();
        self.write(&format!("src/graph{path}.rs"), &label, &code.print());
    }

    /// Reports fields that a graph reads and the spec does not have.
    fn config_names(&mut self, code: &Code, template: &Template, config: &Config) {
        for (path, called) in code.config_names() {
            let mut at = config;
            for (index, name) in path.iter().enumerate() {
                let last = index + 1 == path.len();
                let counts = last && called && name == "num_labels";
                match at.read(name).filter(|_| !counts || at.labels.is_some()) {
                    Some(Read::Nested(within)) => at = within,
                    Some(_) => {
                        if !at.variants.is_empty() {
                            self.read.insert((at.name.clone(), name.clone()));
                        }
                        break;
                    }
                    None => {
                        self.problems.push(self.no_field(
                            at,
                            name,
                            &path[..=index],
                            called && last,
                            template,
                        ));
                        break;
                    }
                }
            }
        }
    }

    fn no_field(
        &self,
        config: &Config,
        name: &str,
        path: &[String],
        called: bool,
        template: &Template,
    ) -> Problem {
        let place =
            if config.path.is_empty() { "config".to_owned() } else { format!("config.{}", config.path) };
        if called && name == "num_labels" {
            let message = format!(
                "{} counts labels, and {place} has no field of the type labels: add `id2label`",
                template.label
            );
            return self.at.problem(place, message);
        }
        let lacking = config.variants.iter().filter(|variant| variant.config.field(name).is_none());
        let lacking: Vec<_> = lacking.map(|variant| format!("`{}`", variant.module)).collect();
        let of = match (config.variants.is_empty(), lacking.as_slice()) {
            (true, _) => place.clone(),
            (false, []) => format!("one type in all models that {place} may be"),
            (false, lacking) => format!("{place} where that is {}", lacking.join(" or ")),
        };
        let message =
            format!("{} reads `c.{}`, which is not a field of {of}", template.label, path.join("."));
        Problem { nearest: config.nearest(name), ..self.at.problem(place, message) }
    }
}

/// The configuration that a module reads.
fn within<'a>(config: &'a Config, path: &str) -> &'a Config {
    path.split('.').filter(|name| !name.is_empty()).fold(config, |config, name| match config.read(name) {
        Some(Read::Nested(within)) => within,
        _ => config,
    })
}
