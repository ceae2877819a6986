//! One run of the generator: find, read, resolve, check, lower, render, write.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use rayon::prelude::*;

use crate::lower::graph::SetOptions;
use crate::lower::{Model, World, lower};
use crate::render::{Output, Setting, render};
use crate::spec::architectures::Architectures;
use crate::spec::defaults;
use crate::spec::document::{Problem, Problems, nearest_name};
use crate::spec::fields::{self, ReferenceFields};
use crate::spec::hardware::HardwareSpecs;
use crate::spec::load::{self, Folder, Resolved, SpecFile, Specs};
use crate::spec::vocabulary::Hardware;
use crate::spec::yaml::Place;
use crate::template::{self, Source, Templates};
use crate::write::cache::{Cache, Made, digest, stamp_of};
use crate::write::{Difference, plan};

/// What to generate, from what, and where.
#[derive(Clone, Debug)]
pub struct Request {
    /// The folders of specs.
    pub specs: Vec<Folder>,
    /// The folders of templates; a later one overrides and adds to an earlier one.
    pub templates: Vec<template::Folder>,
    /// The folder with `architectures.yaml` and `hardware/`.
    pub model_specs: PathBuf,
    /// The folder that crates go to.
    pub out: PathBuf,
    /// What errors call it.
    pub out_shown: PathBuf,
    /// Only these categories; all if empty.
    pub categories: Vec<String>,
    /// Only these models; all if empty.
    pub models: Vec<String>,
    /// Only compare.
    pub check: bool,
    /// What the crates are for.
    pub setting: Setting,
    /// Where the record of the last run is; none to do without.
    pub cache: Option<PathBuf>,
    /// A folder that new files are made in before they are moved to where they belong; on the same disk, and no part
    /// of any workspace.
    pub staging: PathBuf,
    /// What tells this build of the generator from others.
    pub identity: String,
}

/// What a run did, or would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The models of the run.
    pub models: Vec<String>,
    /// Those that were rendered; the others had not changed.
    pub rendered: Vec<String>,
    /// Files that differ or differed, by path.
    pub changes: Vec<(String, Difference)>,
    /// Files of rendered models that were as they should be.
    pub same: usize,
}

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Specs, templates or files in the way: everything that is wrong.
    #[error("{0}")]
    Problems(Problems),
    /// `--model` or `--category` names something that does not exist.
    #[error("{0}")]
    Unknown(String),
    /// The file system refused.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl From<Vec<Problem>> for Error {
    fn from(problems: Vec<Problem>) -> Self {
        let mut seen = vec![];
        for problem in problems {
            if !seen.contains(&problem) {
                seen.push(problem);
            }
        }
        seen.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
        Self::Problems(Problems(seen))
    }
}

/// Runs the generator.
///
/// # Errors
/// Everything that is wrong, all together; then nothing was written.
pub fn generate(request: &Request) -> Result<Report, Error> {
    let _lock = lock(request)?;
    let files = load::find(&request.specs)?;
    let sources = template::find(&request.templates)?;
    let shared = shared_digest(request, &sources)?;
    let cache = request.cache.as_deref().map(Cache::load).unwrap_or_default();
    if let Some(report) = unchanged(request, &files, &shared, &cache) {
        return Ok(report);
    }

    let Prepared { specs, selected, resolved, world, mut problems } = prepare(request, files, &sources)?;
    let digested = |(index, model): (usize, Resolved)| {
        let chain: Vec<_> = model.chain.iter().map(|&link| &specs.files[link]).collect();
        (inputs_digest(&chain, &shared), index, model)
    };
    let resolved: Vec<_> = resolved.into_iter().map(digested).collect();
    let stale = |model: &str, inputs: &str| {
        request.check
            || cache.models.get(model).is_none_or(|made| made.inputs != inputs)
            || !cache.is_fresh(model, &request.out)
    };
    let results: Vec<_> = resolved
        .par_iter()
        .filter(|(inputs, _, model)| stale(&model.spec.model, inputs))
        .map(|(inputs, index, resolved)| {
            let model = lower(&world, resolved, &specs.files)?;
            let at = Place::start(&specs.files[*index].shown);
            let outputs = render(&world, &model, &request.setting, &at)?;
            let chain = resolved.chain.iter().map(|&link| specs.files[link].name.clone()).collect();
            Ok::<_, Vec<Problem>>(Crate { inputs: inputs.clone(), chain, model, outputs })
        })
        .collect();
    let mut crates = vec![];
    for result in results {
        match result {
            Ok(made) => crates.push(made),
            Err(wrong) => problems.extend(wrong),
        }
    }
    if !problems.is_empty() {
        return Err(problems.into());
    }
    let names: Vec<_> = selected.iter().map(|&index| specs.files[index].name.clone()).collect();
    finish(request, names, crates, cache)
}

/// Everything that models are lowered from.
struct Prepared {
    specs: Specs,
    /// The models asked for.
    selected: Vec<usize>,
    /// Those of them that could be resolved.
    resolved: Vec<(usize, Resolved)>,
    world: World,
    problems: Vec<Problem>,
}

fn prepare(request: &Request, files: Vec<SpecFile>, sources: &[Source]) -> Result<Prepared, Error> {
    // One thread is enough for each of these, and all wait for them.
    let load = || rayon::join(|| HardwareSpecs::load(&request.model_specs), || Templates::parse(sources));
    let (read, loaded) = rayon::join(|| read(request, files), load);
    let Read { architectures, specs, selected, results } = read?;
    let mut problems = vec![];
    let mut resolved = vec![];
    for (index, result) in results {
        match result {
            Ok(model) => resolved.push((index, model)),
            Err(wrong) => problems.extend(wrong),
        }
    }
    let (hardware, templates) = match loaded {
        (Ok(hardware), Ok(templates)) => (hardware, templates),
        (hardware, templates) => {
            problems.extend(hardware.err().map(|problems| problems.0).into_iter().flatten());
            problems.extend(templates.err().into_iter().flatten());
            return Err(problems.into());
        }
    };
    Ok(Prepared { specs, selected, resolved, world: World { architectures, hardware, templates }, problems })
}

/// The specs, those asked for, and each of these with what it inherits.
struct Read {
    architectures: Architectures,
    specs: Specs,
    selected: Vec<usize>,
    results: Vec<(usize, Result<Resolved, Vec<Problem>>)>,
}

fn read(request: &Request, files: Vec<SpecFile>) -> Result<Read, Error> {
    let architectures = Architectures::load(&request.model_specs).map_err(|problems| problems.0)?;
    let categories: Vec<_> = architectures.categories.keys().map(String::as_str).collect();
    let specs = Specs::read(files, &categories);
    let selected = select(request, &specs, &categories)?;
    let results = selected.par_iter().map(|&index| (index, specs.resolve(index))).collect();
    Ok(Read { architectures, specs, selected, results })
}

/// The templates and parts that each model is made of, by their keys: `graph/decoder.rs`,
/// `graph/parts/norm/rms_norm.rs`, `pipeline/fill-mask.rs`; and the options of each that its specs set.
///
/// # Errors
/// Everything that is wrong with specs and templates, all together.
pub fn parts(request: &Request) -> Result<BTreeMap<String, SetOptions>, Error> {
    let sources = template::find(&request.templates)?;
    let prepared = prepare(request, load::find(&request.specs)?, &sources)?;
    let Prepared { specs, resolved, world, mut problems, .. } = prepared;
    let mut models = BTreeMap::new();
    for (_, resolved) in &resolved {
        match lower(&world, resolved, &specs.files) {
            Ok(model) => {
                let mut parts = SetOptions::new();
                for (key, set) in model.graph.all().into_iter().flat_map(|graph| &graph.set) {
                    parts.entry(key.clone()).or_default().extend(set.clone());
                }
                parts.extend(model.tasks.into_iter().map(|task| (task.key, BTreeMap::new())));
                models.insert(model.name, parts);
            }
            Err(wrong) => problems.extend(wrong),
        }
    }
    if problems.is_empty() { Ok(models) } else { Err(problems.into()) }
}

/// The fields of `config.json` that the reference reads and the models of a request pass over in silence, and those that
/// are listed as without effect and need not be.
///
/// # Errors
/// Everything that is wrong with specs and templates, all together.
pub fn unlisted_fields(request: &Request, reference: &ReferenceFields) -> Result<Vec<String>, Error> {
    let sources = template::find(&request.templates)?;
    let Prepared { resolved, world, problems, .. } = prepare(request, load::find(&request.specs)?, &sources)?;
    if !problems.is_empty() {
        return Err(problems.into());
    }
    let shared = world.templates.fields();
    let own = resolved.iter().flat_map(|(_, model)| {
        let unlisted = fields::check(model, shared, reference);
        unlisted.into_iter().chain(defaults::check(model, reference))
    });
    Ok(own.map(|problem| problem.to_string()).chain(fields::check_shared(shared, reference)).collect())
}

/// A rendered crate: the digest of what it was made from, the specs it comes from, the model, the files.
struct Crate {
    inputs: String,
    chain: Vec<String>,
    model: Model,
    outputs: Vec<Output>,
}

/// Compares, writes, and records what was done.
fn finish(
    request: &Request,
    models: Vec<String>,
    crates: Vec<Crate>,
    mut cache: Cache,
) -> Result<Report, Error> {
    let rendered: Vec<_> = crates.iter().map(|made| made.model.name.clone()).collect();
    // Crates that were not rendered again keep their files.
    let fresh = cache.models.iter().filter(|(name, _)| models.contains(name) && !rendered.contains(name));
    let kept: BTreeSet<String> = fresh.flat_map(|(_, made)| made.files.keys().cloned()).collect();
    let scopes: Vec<String> = match (request.models.is_empty(), request.categories.is_empty()) {
        (true, true) => vec![String::new()],
        (true, false) => request.categories.clone(),
        (false, _) => {
            crates.iter().map(|made| format!("{}/{}", made.model.category, made.model.name)).collect()
        }
    };
    let outputs = crates.iter().flat_map(|made| made.outputs.clone()).collect();
    let plan = plan(&request.out, &request.out_shown, outputs, &kept, &scopes)?;
    let report = Report { models, rendered, changes: plan.changes.clone(), same: plan.same };
    if request.check {
        return Ok(report);
    }
    plan.apply(&request.out, &request.staging)?;
    if let Some(file) = &request.cache {
        if request.models.is_empty() && request.categories.is_empty() {
            cache.models.retain(|name, _| report.models.contains(name));
        }
        let made = crates.into_par_iter().map(|Crate { inputs, chain, model, outputs }| {
            let stamps = outputs
                .into_iter()
                .filter_map(|output| Some((stamp_of(&request.out.join(&output.path))?, output.path)));
            let files = stamps.map(|(stamp, path)| (path, stamp)).collect();
            (model.name, Made { inputs, chain, files })
        });
        cache.models.extend(made.collect::<Vec<_>>());
        cache.save(file);
    }
    Ok(report)
}

/// The report of a run for which nothing has changed since the last one; found without parsing anything.
fn unchanged(request: &Request, files: &[SpecFile], shared: &str, cache: &Cache) -> Option<Report> {
    if request.check {
        return None;
    }
    let by_name: BTreeMap<&str, &SpecFile> = files.iter().map(|file| (file.name.as_str(), file)).collect();
    if by_name.len() != files.len() {
        return None;
    }
    let wanted = |file: &&SpecFile| {
        let category = file.folder.as_ref().is_some_and(|folder| request.categories.contains(folder));
        file.generate
            && (request.models.is_empty() || request.models.contains(&file.name))
            && (request.categories.is_empty() || category)
    };
    let all = request.models.is_empty() && request.categories.is_empty();
    let models: Vec<&SpecFile> = files.iter().filter(wanted).collect();
    let removed = all && cache.models.len() != models.len();
    if removed || models.is_empty() || request.models.iter().any(|name| !by_name.contains_key(name.as_str()))
    {
        return None;
    }
    let fresh = models.par_iter().all(|file| {
        let Some(made) = cache.models.get(&file.name) else { return false };
        let chain: Option<Vec<_>> =
            made.chain.iter().map(|name| by_name.get(name.as_str()).copied()).collect();
        chain.is_some_and(|chain| {
            made.inputs == inputs_digest(&chain, shared) && cache.is_fresh(&file.name, &request.out)
        })
    });
    let models = models.into_iter().map(|file| file.name.clone()).collect();
    fresh.then(|| Report { models, ..Report::default() })
}

/// The files to generate from, by `--model` and `--category`.
fn select(request: &Request, specs: &Specs, categories: &[&str]) -> Result<Vec<usize>, Error> {
    let known: Vec<&str> =
        specs.files.iter().filter(|file| file.generate).map(|file| file.name.as_str()).collect();
    for (kind, asked, known) in
        [("category", &request.categories, categories), ("model", &request.models, known.as_slice())]
    {
        if let Some(name) = asked.iter().find(|name| !known.contains(&name.as_str())) {
            let nearest = nearest_name(name, known.iter().copied());
            let nearest = nearest.map_or_else(String::new, |nearest| format!("; did you mean `{nearest}`?"));
            return Err(Error::Unknown(format!("there is no {kind} `{name}`{nearest}")));
        }
    }
    let wanted = |(index, file): (usize, &SpecFile)| {
        let category =
            specs.category(index).is_some_and(|name| request.categories.iter().any(|asked| asked == name));
        let wanted = file.generate
            && (request.models.is_empty() || request.models.contains(&file.name))
            && (request.categories.is_empty() || category);
        wanted.then_some(index)
    };
    Ok(specs.files.iter().enumerate().filter_map(wanted).collect())
}

fn inputs_digest(chain: &[&SpecFile], shared: &str) -> String {
    digest(
        [shared].into_iter().chain(chain.iter().flat_map(|file| [file.label.as_str(), file.text.as_str()])),
    )
}

/// The digest of everything that all crates are made from.
fn shared_digest(request: &Request, sources: &[Source]) -> Result<String, Error> {
    let setting = format!("{:?} {}", request.setting, request.identity);
    let mut data = vec![];
    let folder = &request.model_specs;
    let mut files = vec![folder.join("architectures.yaml")];
    files.extend(Hardware::ALL.iter().map(|hardware| folder.join(format!("hardware/{hardware}.yaml"))));
    for file in files {
        // What cannot be read is reported where it is parsed.
        data.push(fs::read_to_string(&file).unwrap_or_default());
    }
    let templates = sources.iter().flat_map(|source| [source.label.as_str(), source.text.as_str()]);
    Ok(digest([setting.as_str()].into_iter().chain(templates).chain(data.iter().map(String::as_str))))
}

/// Keeps a second run into the same folder waiting until this one is done.
fn lock(request: &Request) -> Result<Option<fs::File>, Error> {
    let Some(cache) = request.cache.as_ref().filter(|_| !request.check) else { return Ok(None) };
    if let Some(folder) = cache.parent() {
        fs::create_dir_all(folder)?;
    }
    let file = fs::File::create(cache.with_extension("lock"))?;
    file.lock()?;
    Ok(Some(file))
}
