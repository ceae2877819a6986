//! The templates: found in one or more folders, their front matter read, parsed once for all models.

mod expand;
mod filters;
mod front;
mod links;
mod uses;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use rayon::prelude::*;
use tera::{Context, ErrorKind, Kwargs, State, Tera, TeraResult};
use walkdir::WalkDir;

pub use front::{
    Example, ExampleValue, Feature, FillWith, Front, GivesSpec, GraphKind, InputSpec, InputType, ModuleSpec,
    OptionSpec, OptionType, OutputSpec, SlotSpec, VariableType,
};

pub(crate) use uses::Uses;

use crate::spec::check::check;
use crate::spec::document::Problem;
use crate::spec::model::ConfigField;
use crate::spec::yaml::{self, Node, Place};

/// What is known of a field of `config` by its name alone: type, documentation, bounds.
const FIELDS: &str = "fields.yaml";

/// The folder of what templates include.
const INCLUDED: &str = "config/";

/// What templates may name without its path.
const USES: &str = "uses.yaml";

/// A folder of templates; a later one overrides and adds to an earlier one.
#[derive(Clone, Debug)]
pub struct Folder {
    /// Where it is.
    pub dir: PathBuf,
    /// What generated headers call it.
    pub label: String,
    /// What errors call it.
    pub shown: PathBuf,
}

/// A template as it was found.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its path in the folder without `.tera`: `graph/parts/norm/layer_norm.rs`.
    pub key: String,
    /// Its path as generated headers give it.
    pub label: String,
    /// Its path as errors give it.
    pub shown: PathBuf,
    /// Its text.
    pub text: String,
}

/// A template and what it says of itself.
#[derive(Clone, Debug)]
pub struct Template {
    /// Its path in the folder without `.tera`.
    pub key: String,
    /// Its path as generated headers give it.
    pub label: String,
    /// Its path as errors give it.
    pub shown: PathBuf,
    /// Its front matter.
    pub front: Front,
    node: Option<Node>,
    /// Its text after the front matter, for which a comment of as many lines stands.
    body: String,
}

impl Template {
    /// Where an entry of the front matter stands.
    pub fn place(&self, key: &str) -> Place {
        let entry = self.node.as_ref().and_then(|node| node.entry(key));
        entry.map_or_else(|| Place::start(&self.shown), |entry| entry.at.clone())
    }

    /// The first line that has this name, as a whole word.
    pub fn line(&self, name: &str) -> Option<Place> {
        let words =
            |line: &str| line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name);
        let line = self.body.lines().position(words)? + 1;
        Some(Place { line, ..Place::start(&self.shown) })
    }
}

/// All templates.
#[derive(Debug)]
pub struct Templates {
    tera: Tera,
    by_key: BTreeMap<String, Template>,
    fields: IndexMap<String, ConfigField>,
    uses: BTreeMap<String, String>,
}

/// Reads the texts of all templates, by key; a folder's own override those of the folders before it.
///
/// # Errors
/// A folder or a file cannot be read.
pub fn find(folders: &[Folder]) -> Result<Vec<Source>, Vec<Problem>> {
    let mut sources = BTreeMap::new();
    let mut problems = vec![];
    for folder in folders {
        for entry in WalkDir::new(&folder.dir).sort_by_file_name() {
            let entry = match entry {
                Ok(entry) if entry.file_type().is_file() => entry,
                Ok(_) => continue,
                Err(error) => {
                    problems.push(Problem::new(&folder.shown, format!("cannot be read: {error}")));
                    continue;
                }
            };
            let path = entry.path().strip_prefix(&folder.dir).unwrap_or(entry.path());
            let inside = path.to_string_lossy().replace('\\', "/");
            let data = [FIELDS, USES].into_iter().find(|name| inside == *name);
            let Some(key) = inside.strip_suffix(".tera").or(data) else { continue };
            let shown = folder.shown.join(path);
            match std::fs::read_to_string(entry.path()) {
                Ok(text) => {
                    let label = format!("{}/{inside}", folder.label);
                    sources.insert(key.to_owned(), Source { key: key.to_owned(), label, shown, text });
                }
                Err(error) => problems.push(Problem::new(&shown, format!("cannot be read: {error}"))),
            }
        }
    }
    if problems.is_empty() { Ok(sources.into_values().collect()) } else { Err(problems) }
}

impl Templates {
    /// Parses all templates.
    ///
    /// # Errors
    /// Everything wrong with any of them: front matter that does not fit, template syntax, unknown functions.
    pub fn parse(sources: &[Source]) -> Result<Self, Vec<Problem>> {
        let mut problems = vec![];
        let mut by_key = BTreeMap::new();
        let of = |key| sources.iter().find(|source| source.key == key);
        let fields = of(FIELDS).map_or_else(|| Ok(IndexMap::new()), read_fields);
        let fields = fields.unwrap_or_else(|wrong| {
            problems.extend(wrong);
            IndexMap::new()
        });
        let uses = of(USES).map_or_else(|| Ok(BTreeMap::new()), uses::read);
        let uses = uses.unwrap_or_else(|wrong| {
            problems.extend(wrong);
            BTreeMap::new()
        });
        let templates = sources.par_iter().filter(|source| ![FIELDS, USES].contains(&source.key.as_str()));
        for read in templates.map(split).collect::<Vec<_>>() {
            match read {
                Ok(template) => drop(by_key.insert(template.key.clone(), template)),
                Err(wrong) => problems.extend(wrong),
            }
        }
        let body = |source: &Source| by_key.get(&source.key).map(|template| template.body.as_str());
        let bodies: Vec<_> = sources.iter().filter_map(|source| Some((source, body(source)?))).collect();
        if problems.is_empty() {
            problems.extend(links::check(&by_key));
        }
        let mut tera = Tera::new();
        tera.autoescape_on(Vec::<String>::new());
        filters::register(&mut tera);
        for slot in slots(&by_key) {
            let name = slot.clone();
            tera.register_function(slot, move |arguments: Kwargs, _: &State<'_>| -> TeraResult<String> {
                expand::call(&name, &arguments)
            });
        }
        let mut together = tera.clone();
        let all = bodies.iter().map(|(source, body)| (source.key.as_str(), *body));
        if together.add_raw_templates(all).is_ok() {
            return if problems.is_empty() {
                Ok(Self { tera: together, by_key, fields, uses })
            } else {
                Err(problems)
            };
        }
        // Tera stops at the first template it cannot read: ask for each on its own, and those that it includes.
        let included = bodies.iter().filter(|(source, _)| source.key.starts_with(INCLUDED));
        let included: Vec<_> = included.map(|(source, body)| (source.key.as_str(), *body)).collect();
        for &(source, body) in &bodies {
            let others = included.iter().copied().filter(|(key, _)| *key != source.key);
            if let Err(error) = tera.clone().add_raw_templates(others.chain([(source.key.as_str(), body)])) {
                problems.extend(self::problems(&error, &by_key, source));
            }
        }
        if problems.is_empty() {
            let first = bodies.first().map(|(source, _)| *source);
            let error = together.add_raw_templates(bodies.iter().map(|(s, b)| (s.key.as_str(), *b))).err();
            problems.extend(
                error.zip(first).into_iter().flat_map(|(e, source)| self::problems(&e, &by_key, source)),
            );
        }
        Err(problems)
    }

    /// What is known of a field of `config` by its name alone.
    pub fn fields(&self) -> &IndexMap<String, ConfigField> {
        &self.fields
    }

    /// What templates may name without its path: each name, and the path that it is imported from.
    pub fn uses(&self) -> &BTreeMap<String, String> {
        &self.uses
    }

    /// The template of that key.
    pub fn get(&self, key: &str) -> Option<&Template> {
        self.by_key.get(key)
    }

    /// The templates whose key starts so, with the rest of the key.
    pub fn under<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a Template)> {
        self.by_key.iter().filter_map(move |(key, template)| Some((key.strip_prefix(prefix)?, template)))
    }

    /// The names of the templates directly in a folder: `graph/parts/norm/` has `layer_norm`, `rms_norm`.
    pub fn names<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = &'a str> {
        self.under(folder).filter_map(|(rest, _)| rest.strip_suffix(".rs").filter(|name| !name.contains('/')))
    }

    /// Renders a template and the parts it calls; `part` gives key and options of the part in a slot.
    ///
    /// # Errors
    /// The template's own, naming it and the line.
    pub fn render(
        &self,
        key: &str,
        context: &Context,
        part: &dyn Fn(&str) -> Option<(String, serde_json::Value)>,
    ) -> Result<String, Problem> {
        expand::render(self, key, context, part, 0)
    }

    fn render_one(&self, key: &str, context: &Context) -> Result<String, Problem> {
        self.tera.render(key, context).map_err(|error| match self.by_key.get(key) {
            Some(template) => self.problem(&error, template),
            None => Problem::new(Path::new(key), error.to_string()),
        })
    }

    fn problem(&self, error: &tera::Error, template: &Template) -> Problem {
        let source = Source {
            key: template.key.clone(),
            label: template.label.clone(),
            shown: template.shown.clone(),
            text: String::new(),
        };
        let problems = problems(error, &self.by_key, &source);
        problems.into_iter().next().unwrap_or_else(|| Problem::new(&template.shown, error.to_string()))
    }
}

/// Every slot that a graph template has, and every folder of parts.
fn slots(templates: &BTreeMap<String, Template>) -> BTreeSet<String> {
    let folders = templates.keys().filter_map(|key| key.strip_prefix("graph/parts/")?.split('/').next());
    let slots = templates.values().flat_map(|template| template.front.slots.keys().map(String::as_str));
    folders.chain(slots).map(str::to_owned).collect()
}

fn read_fields(source: &Source) -> Result<IndexMap<String, ConfigField>, Vec<Problem>> {
    let node = yaml::parse(&source.shown, &source.text, 0).map_err(|problem| vec![problem])?;
    let problems = check::<IndexMap<String, ConfigField>>(&node);
    if !problems.is_empty() {
        return Err(problems);
    }
    serde_json::from_value(node.to_json())
        .map_err(|error| vec![node.at.problem("", format!("does not fit: {error}"))])
}

/// Front matter and body, which keeps its line numbers.
fn split(source: &Source) -> Result<Template, Vec<Problem>> {
    let template = |front, node, body| Template {
        key: source.key.clone(),
        label: source.label.clone(),
        shown: source.shown.clone(),
        front,
        node,
        body,
    };
    let Some(rest) = source.text.strip_prefix("---\n") else {
        return Ok(template(Front::default(), None, source.text.clone()));
    };
    let Some((head, body)) = rest.split_once("\n---\n") else {
        let message = "opens front matter with `---` and never closes it; expected a second line `---`";
        return Err(vec![Place::start(&source.shown).problem("", message)]);
    };
    let node = yaml::parse(&source.shown, head, 1).map_err(|problem| vec![problem])?;
    let problems = check::<Front>(&node);
    if !problems.is_empty() {
        return Err(problems);
    }
    let front = serde_json::from_value(node.to_json())
        .map_err(|error| vec![node.at.problem("", format!("does not fit: {error}"))])?;
    let lines = head.lines().count() + 2;
    Ok(template(front, Some(node), format!("{{#-{}-#}}{body}", "\n".repeat(lines))))
}

/// A template error as problems: the template each is in, the line, the message.
fn problems(error: &tera::Error, by_key: &BTreeMap<String, Template>, source: &Source) -> Vec<Problem> {
    let place = |key: &str, line| {
        let shown = by_key.get(key).map_or(&source.shown, |template| &template.shown);
        Place { file: shown.as_path().into(), line }
    };
    if let ErrorKind::SyntaxError(report) | ErrorKind::RenderingError(report) = error.kind() {
        return vec![place(report.filename(), report.span().start_line).problem("", report.message())];
    }
    let text = error.to_string();
    let mut problems = vec![];
    // Names that no template can know come as one text of several reports: `error: …`, `--> key:line:column`, the line.
    for report in text.split("error: ").skip(1) {
        let Some((message, rest)) = report.split_once('\n') else { continue };
        let at = rest.trim_start().trim_start_matches("--> ").lines().next().unwrap_or_default();
        let mut parts = at.rsplitn(3, ':').skip(1);
        let (line, key) = (parts.next().and_then(|line| line.parse().ok()), parts.next());
        problems.push(place(key.unwrap_or_default(), line.unwrap_or(1)).problem("", message));
    }
    if problems.is_empty() {
        let mut message = text;
        let mut cause = std::error::Error::source(error);
        while let Some(inner) = cause {
            message = format!("{message}: {inner}");
            cause = inner.source();
        }
        problems.push(Place::start(&source.shown).problem("", message));
    }
    problems
}
