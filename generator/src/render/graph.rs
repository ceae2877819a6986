//! The graph of a model and of its modules: `src/graph.rs`, `src/graph/<module>.rs`.

use std::collections::{BTreeMap, BTreeSet};

use tera::Context;
use weft_code::Code;

use super::Renderer;
use crate::lower::config::{Config, Read};
use crate::lower::graph::{Graph, Module};
use crate::lower::heads::{Head, build};
use crate::spec::document::Problem;
use crate::template::Template;

impl Renderer<'_> {
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
        let modules: Vec<_> =
            model.graph.modules.values().map(|module| self.module_text(module, &context)).collect();
        let codes = self.codes(&text, template, &modules);
        if self.problems.len() > before {
            return;
        }
        let Some((mut outer, modules)) = codes else { return };
        outer.declare(model.graph.modules.keys().map(String::as_str));
        self.finish("src/graph.rs", outer, template, &model.graph, &model.config);
        for (module, code) in model.graph.modules.values().zip(modules) {
            let Some(template) = self.world.templates.get(&module.graph.template) else { continue };
            let config = within(&model.config, &module.config);
            self.finish(&format!("src/graph/{}.rs", module.name), code, template, &module.graph, config);
        }
    }

    fn head(&mut self, head: &Head, context: &Context) -> String {
        let mut context = context.clone();
        context.insert("head", head);
        context.insert("o", &head.options);
        self.text(&head.key, &context, &self.model.graph)
    }

    /// A module's template sees the module as its model.
    fn module_text(&mut self, module: &Module, context: &Context) -> String {
        let mut model = self.model.clone();
        model.graph = module.graph.clone();
        model.config = within(&self.model.config, &module.config).clone();
        model.heads.clear();
        let mut context = context.clone();
        context.insert("model", &model);
        context.insert("o", &module.graph.options);
        context.insert("graph", &module.graph.options);
        context.insert("slot", &module.graph.slots);
        context.insert("module", &module.name);
        context.insert("build", "");
        context.insert("head_functions", "");
        self.text(&module.graph.template, &context, &module.graph)
    }

    /// Parses the graph and its modules; each keeps what the others call.
    fn codes(&mut self, text: &str, template: &Template, modules: &[String]) -> Option<(Code, Vec<Code>)> {
        let graphs = &self.model.graph.modules;
        let mut parsed = vec![];
        for (module, text) in graphs.values().zip(modules) {
            let template = self.world.templates.get(&module.graph.template)?;
            parsed.push(self.parse(text, template));
        }
        let outer = self.parse(text, template);
        let mut codes = vec![];
        for code in parsed {
            codes.extend(code.map_err(|problem| self.problems.push(problem)).ok());
        }
        let mut outer = outer.map_err(|problem| self.problems.push(problem)).ok()?;
        if codes.len() < graphs.len() {
            return None;
        }
        let parents: BTreeSet<String> = codes.iter().flat_map(|code| code.names_of("super")).collect();
        outer.prune_but(&parents);
        let parsed = codes;
        let mut codes;
        let mut seen: BTreeMap<&str, BTreeSet<String>> =
            graphs.keys().map(|name| (name.as_str(), outer.names_of(name))).collect();
        loop {
            let before = seen.clone();
            codes = parsed.clone();
            for (module, code) in graphs.values().zip(&mut codes) {
                code.enclose(&self.module_doc(module), &before[module.name.as_str()]);
                code.prune();
                for (name, names) in &mut seen {
                    names.extend(if *name == module.name { BTreeSet::new() } else { code.names_of(name) });
                }
            }
            if before == seen {
                break;
            }
        }
        for name in seen.iter().filter(|(_, names)| names.is_empty()).map(|(name, _)| name) {
            let message =
                format!("declares the module `{name}` and calls nothing of it in `{}`", self.model.name);
            self.problems.push(template.place("modules").problem(format!("modules.{name}"), message));
        }
        Some((outer, codes))
    }

    fn module_doc(&self, module: &Module) -> Vec<String> {
        let from = module.model.as_ref().map(|model| format!(", as in `{model}`")).unwrap_or_default();
        let mut doc = vec![format!("{}'s `{}`{from}.", self.model.title, module.name)];
        if !module.graph.about.is_empty() {
            doc.extend([String::new(), module.graph.about.clone()]);
        }
        doc
    }

    /// Reads of the configuration and imports settled, and written.
    fn finish(&mut self, path: &str, mut code: Code, template: &Template, graph: &Graph, config: &Config) {
        self.config_names(&code, template, config);
        code.settle(config);
        let mut uses = graph.uses.clone();
        let nested = self.model.config.all().into_iter().filter(|config| !config.path.is_empty());
        uses.extend(nested.map(|config| format!("crate::{}", config.name)));
        uses.push("weft::Part".to_owned());
        code.import(&uses);
        let label = format!("{} with its parts", template.label);
        self.write(path, &label, &code.print());
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
                    Some(_) => break,
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
        let message =
            format!("{} reads `c.{}`, which is not a field of {place}", template.label, path.join("."));
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
