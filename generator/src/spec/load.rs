//! Finds the specs in a folder, reads them, and resolves `extends`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use walkdir::WalkDir;

use super::check::{check, check_difference};
use super::derive;
use super::document::{Problem, nearest_name};
use super::merge::extend;
use super::model::{ConfigType, ModelSpec};
use super::nested;
use super::removals;
use super::yaml::{self, Data, Node, Place};

/// What generated headers call the folder of this repository's specs.
pub const BUILT_IN: &str = "model_specs";

/// A folder of specs.
#[derive(Clone, Debug)]
pub struct Folder {
    /// Where it is.
    pub dir: PathBuf,
    /// What generated headers call it.
    pub label: String,
    /// What errors call it.
    pub shown: PathBuf,
    /// Whether crates are generated from it; otherwise its specs can only be extended.
    pub generate: bool,
}

/// A file with one spec.
#[derive(Clone, Debug)]
pub struct SpecFile {
    /// Its path as generated headers give it.
    pub label: String,
    /// What errors call it.
    pub shown: PathBuf,
    /// The model's name: the file's.
    pub name: String,
    /// The folder it is in; none if it is at the top.
    pub folder: Option<String>,
    /// Whether it is one of this repository's, which name their models as the reference does.
    pub built_in: bool,
    /// Whether a crate is generated from it.
    pub generate: bool,
    /// Its text.
    pub text: String,
}

/// A spec with everything it inherits.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The spec.
    pub spec: ModelSpec,
    /// The same as a tree with places.
    pub node: Node,
    /// The files it comes from: its own first, then the ones it extends, then those of its modules.
    pub chain: Vec<usize>,
    /// The types of fields of `config` that inherited defaults show, by their dotted paths.
    pub types: BTreeMap<String, ConfigType>,
}

/// The tree of a spec with everything it inherits.
pub(super) struct Merged {
    pub node: Node,
    pub types: BTreeMap<String, ConfigType>,
    pub chain: Vec<usize>,
}

/// All specs of a run, read but not yet resolved.
#[derive(Debug, Default)]
pub struct Specs {
    /// The files.
    pub files: Vec<SpecFile>,
    nodes: Vec<Option<Node>>,
    problems: Vec<Vec<Problem>>,
    pub(super) by_name: BTreeMap<String, usize>,
}

/// Reads the texts of all specs in these folders, in the order of their paths.
///
/// # Errors
/// A folder or a file cannot be read.
pub fn find(folders: &[Folder]) -> Result<Vec<SpecFile>, Vec<Problem>> {
    let mut paths = vec![];
    let mut problems = vec![];
    for folder in folders {
        let walk = WalkDir::new(&folder.dir).min_depth(1).max_depth(2).sort_by_file_name();
        for entry in walk.into_iter().filter_entry(|entry| !is_shared(entry.path(), &folder.dir)) {
            match entry {
                Ok(entry) if entry.file_type().is_file() && is_yaml(entry.path()) => {
                    paths.push((folder, entry.into_path()));
                }
                Ok(_) => {}
                Err(error) => problems.push(Problem::new(&folder.shown, format!("cannot be read: {error}"))),
            }
        }
    }
    let read = |(folder, path): &(&Folder, PathBuf)| {
        let inside = path.strip_prefix(&folder.dir).unwrap_or(path);
        let shown = folder.shown.join(inside);
        let text = std::fs::read_to_string(path)
            .map_err(|error| Problem::new(&shown, format!("cannot be read: {error}")))?;
        let label = format!("{}/{}", folder.label, inside.to_string_lossy().replace('\\', "/"));
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let parent = inside.parent().filter(|parent| parent.components().count() > 0);
        let parent = parent.map(|parent| parent.to_string_lossy().into_owned());
        let built_in = folder.label == BUILT_IN;
        Ok(SpecFile { label, shown, name, folder: parent, built_in, generate: folder.generate, text })
    };
    let mut files = vec![];
    for file in paths.par_iter().map(read).collect::<Vec<_>>() {
        match file {
            Ok(file) => files.push(file),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(files) } else { Err(problems) }
}

/// What is in a folder of specs besides models.
fn is_shared(path: &Path, dir: &Path) -> bool {
    path.parent() == Some(dir)
        && path.file_name().is_some_and(|name| {
            ["architectures.yaml", "not_yet.yaml", "packages.yaml", "hardware", "templates"]
                .iter()
                .any(|shared| name == *shared)
        })
}

fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

impl Specs {
    /// Parses and checks each file for itself, and their names against each other.
    pub fn read(files: Vec<SpecFile>, categories: &[&str]) -> Self {
        let parsed: Vec<_> = files.par_iter().map(|file| read(file, categories)).collect();
        let mut specs = Self { files, ..Self::default() };
        for (node, problems) in parsed {
            specs.nodes.push(node);
            specs.problems.push(problems);
        }
        for (index, file) in specs.files.iter().enumerate() {
            let Some(&first) = specs.by_name.get(&file.name) else {
                specs.by_name.insert(file.name.clone(), index);
                continue;
            };
            let message = format!(
                "`{}` is the name of {} too; rename one of the files, and its `model`",
                file.name,
                specs.files[first].shown.display()
            );
            let at = specs.nodes[index].as_ref().and_then(|node| node.entry("model")).map(|entry| &entry.at);
            let at = at.cloned().unwrap_or_else(|| Place::start(&file.shown));
            specs.problems[index].push(at.problem("model", message));
        }
        specs
    }

    /// The names of all models.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// The file of a model.
    pub fn file_of(&self, name: &str) -> Option<&SpecFile> {
        self.by_name.get(name).map(|&index| &self.files[index])
    }

    /// The category of a file: what it says, or else its folder.
    pub fn category(&self, index: usize) -> Option<&str> {
        let given = self.nodes[index].as_ref().and_then(|node| node.get("category")).and_then(Node::text);
        given.or(self.files[index].folder.as_deref())
    }

    /// A spec with everything it inherits.
    ///
    /// # Errors
    /// Everything wrong with the files it comes from, one by one; a missing parent; a cycle.
    pub fn resolve(&self, index: usize) -> Result<Resolved, Vec<Problem>> {
        let mut merged = self.inherited(index)?;
        self.adopt(&mut merged, index)?;
        let Merged { node, types, chain } = merged;
        let problems = nested::checked(&node, check::<ModelSpec>);
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut spec = serde_json::from_value(node.to_json())
            .map_err(|error| vec![node.at.problem("", format!("does not fit: {error}"))])?;
        derive::derive(&mut spec, &self.files[index]);
        Ok(Resolved { spec, node, chain, types })
    }

    /// The tree of a spec with everything it inherits, but not yet what its modules are taken from.
    pub(super) fn inherited(&self, index: usize) -> Result<Merged, Vec<Problem>> {
        let chain = self.chain(index)?;
        let mut problems: Vec<_> = chain.iter().flat_map(|&link| self.problems[link].clone()).collect();
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut node: Option<Node> = None;
        let mut types = BTreeMap::new();
        for &link in chain.iter().rev() {
            let Some(own) = &self.nodes[link] else { continue };
            for (name, kind) in nested::shown_types(own.get("config"), "") {
                types.entry(name).or_insert(kind);
            }
            if let Some(parent) = &node {
                problems.extend(removals::check(parent, own));
            }
            node = Some(node.map_or_else(|| own.clone(), |parent| extend(&parent, own)));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let file = &self.files[index];
        let node = node.unwrap_or(Node { at: Place::start(&file.shown), data: Data::Map(vec![]) });
        Ok(Merged { node, types, chain })
    }

    /// A file and the ones it extends, in that order.
    fn chain(&self, index: usize) -> Result<Vec<usize>, Vec<Problem>> {
        let mut chain = vec![index];
        let mut current = index;
        while let Some(extends) = self.nodes[current].as_ref().and_then(|node| node.get("extends")) {
            let Some(name) = extends.text() else { break };
            let Some(&parent) = self.by_name.get(name) else {
                let mut problem =
                    extends.at.problem("extends", format!("there is no spec `{name}` to extend"));
                problem.nearest = nearest_name(name, self.names()).map(str::to_owned);
                let mut problems: Vec<_> =
                    chain.iter().flat_map(|&link: &usize| self.problems[link].clone()).collect();
                problems.push(problem);
                return Err(problems);
            };
            if let Some(start) = chain.iter().position(|&link| link == parent) {
                let names: Vec<_> = chain[start..].iter().chain([&parent]).collect();
                let names: Vec<_> = names.iter().map(|&&link| self.files[link].name.as_str()).collect();
                let message = format!("extends itself: {}; one of them must stand alone", names.join(" -> "));
                return Err(vec![extends.at.problem("extends", message)]);
            }
            chain.push(parent);
            current = parent;
        }
        Ok(chain)
    }
}

/// One file for itself: its tree, and everything wrong with it.
fn read(file: &SpecFile, categories: &[&str]) -> (Option<Node>, Vec<Problem>) {
    let mut node = match yaml::parse(&file.shown, &file.text, 0) {
        Ok(node) => node,
        Err(problem) => return (None, vec![problem]),
    };
    let mut problems = removals::spell_out(&mut node);
    nested::spell_out(&mut node);
    let check =
        if node.get("extends").is_some() { check_difference::<ModelSpec> } else { check::<ModelSpec> };
    problems.extend(nested::checked(&node, check));
    let given = node.get("model");
    let at = given.map_or_else(|| Place::start(&file.shown), |given| given.at.clone());
    let name = &file.name;
    if let Some(given) = given.and_then(Node::text)
        && given != name
    {
        let message = format!("is `{given}`, but the file is named `{name}`; they must be the same");
        problems.push(at.problem("model", message));
    } else if !name.starts_with(|c: char| c.is_ascii_lowercase())
        || !name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_')
    {
        let message = format!(
            "`{name}`, the file's name, must be lower-case letters, digits, `-` and `_`, and start with a letter"
        );
        problems.push(at.problem("model", message));
    }
    problems.extend(category(file, &node, categories));
    (Some(node), problems)
}

/// `category` must be the folder, and one that models are filed under.
fn category(file: &SpecFile, node: &Node, categories: &[&str]) -> Option<Problem> {
    let given = node.get("category");
    let at = given.map_or_else(|| node.at.clone(), |given| given.at.clone());
    let name = given.and_then(Node::text).or(file.folder.as_deref());
    let Some(name) = name else {
        let message = format!("is missing; expected one of {}", categories.join(", "));
        return Some(at.problem("category", message));
    };
    if let Some(folder) = &file.folder
        && folder != name
    {
        let message = format!("is `{name}`, but the file is in the folder `{folder}`; they must be the same");
        return Some(at.problem("category", message));
    }
    if !categories.contains(&name) {
        let message = format!("`{name}` is not a category; expected one of {}", categories.join(", "));
        let nearest = nearest_name(name, categories.iter().copied()).map(str::to_owned);
        return Some(Problem { nearest, ..at.problem("category", message) });
    }
    None
}
