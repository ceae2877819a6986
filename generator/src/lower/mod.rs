//! From a checked spec to the plain values that templates are rendered with.

mod classes;
pub mod config;
mod expressions;
pub mod graph;
pub mod hardware;
pub mod heads;
pub mod inputs;
mod modules;
mod options;
mod processing;
pub mod tasks;

use serde::Serialize;

use crate::spec::architectures::Architectures;
use crate::spec::document::{Problem, nearest_name};
use crate::spec::hardware::HardwareSpecs;
use crate::spec::load::{Resolved, SpecFile};
use crate::template::Templates;

/// What all models of a run share.
#[derive(Debug)]
pub struct World {
    /// The architecture types.
    pub architectures: Architectures,
    /// The backends.
    pub hardware: HardwareSpecs,
    /// The templates.
    pub templates: Templates,
}

/// A model as templates see it.
#[derive(Clone, Debug, Serialize)]
pub struct Model {
    /// Its name in specs.
    pub name: String,
    /// Its name in prose.
    pub title: String,
    /// What it is.
    pub summary: String,
    /// The folder it is filed under.
    pub category: String,
    /// The architecture type's name.
    pub architecture: String,
    /// The architecture type's name in prose.
    pub architecture_title: String,
    /// What to run such a model on, in words.
    pub recommendation: String,
    /// The package's name.
    pub package: String,
    /// The library's name in Rust.
    pub library: String,
    /// Published checkpoints.
    pub checkpoints: Vec<String>,
    /// The values of `model_type` in `config.json`.
    pub model_types: Vec<String>,
    /// The fields of `config.json` that hold configurations of modules, and the values of `model_type` there.
    pub module_types: Vec<(String, Vec<String>)>,
    /// What the reference's class names start with.
    pub class_prefix: String,
    /// The reference's file.
    pub reference: Option<String>,
    /// What head classes put before the base model's tensor names.
    pub prefix: String,
    /// Endings of old tensor names, and today's.
    pub legacy_suffixes: Vec<(String, String)>,
    /// Pieces of tensor names in published checkpoints, and today's.
    pub key_mapping: Vec<Vec<(String, String)>>,
    /// Pieces of names of tensors that published checkpoints hold as one, and today's of its rows.
    pub fused_weights: Vec<(String, Vec<String>)>,
    /// Patterns of names of tensors that nothing reads.
    pub ignore_unexpected: Vec<String>,
    /// `config.json`.
    pub config: config::Config,
    /// The graph.
    pub graph: graph::Graph,
    /// Whether a head builds more graphs than that of the whole model.
    pub graph_kinds: bool,
    /// The reference's classes.
    pub heads: Vec<heads::Head>,
    /// The structs of inputs that they take.
    pub inputs: Vec<classes::Struct>,
    /// They as types.
    pub classes: Vec<classes::Class>,
    /// The statements of an example that runs the first head.
    pub example: Vec<String>,
    /// What the example imports.
    pub example_import: &'static str,
    /// How pipelines prepare what it reads, where the spec says so.
    pub processing: Option<processing::Processing>,
    /// The tasks.
    pub tasks: Vec<tasks::Task>,
    /// The backends, in the order of the matrices.
    pub hardware: Vec<hardware::Backend>,
    /// The names of the backends that the model runs on.
    pub supported: Vec<String>,
    /// The fallback route: names of backends.
    pub route: Vec<String>,
    /// The fallback route: names of types in the runtime.
    pub route_types: Vec<String>,
    /// The spec's path as generated headers give it.
    pub source: String,
    /// The paths of the specs it extends.
    pub parents: Vec<String>,
}

/// Lowers one spec.
///
/// # Errors
/// Everything in it that the architecture types, the templates or its own fields do not allow.
pub fn lower(world: &World, model: &Resolved, files: &[SpecFile]) -> Result<Model, Vec<Problem>> {
    let spec = &model.spec;
    let node = &model.node;
    let mut problems = vec![];
    let mut need = |key: &str, value: &Option<String>, expected: &str| match value {
        Some(value) if !value.trim().is_empty() => value.clone(),
        _ => {
            problems.push(node.at.problem(key, format!("is missing; expected {expected}")));
            String::new()
        }
    };
    let title = need("title", &spec.title, "the model's name in prose");
    let architecture = need("architecture", &spec.architecture, "one of the types in architectures.yaml");
    let Some(kind) = world.architectures.get(&architecture) else {
        if !architecture.is_empty() {
            let at = node.get("architecture").map_or(&node.at, |node| &node.at);
            let known: Vec<_> = world.architectures.architectures.keys().map(String::as_str).collect();
            let message = format!("`{architecture}` is not a type; expected one of {}", known.join(", "));
            let nearest = nearest_name(&architecture, known).map(str::to_owned);
            problems.push(Problem { nearest, ..at.problem("architecture", message) });
        }
        return Err(problems);
    };
    let class_prefix = spec.class_prefix();
    let config = config::lower(model, world.templates.fields(), &mut problems);
    let (graph, heads) = graph::lower(model, &class_prefix, &config, &world.templates, &mut problems);
    let processing = processing::lower(model, &config, &mut problems);
    let tasks = tasks::lower(model, kind.pipeline, &heads, &world.templates, &mut problems);
    let hardware = hardware::lower(model, kind, &world.hardware, &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    let file = &files[model.chain[0]];
    let supported = |name: &&str| hardware.iter().any(|backend| backend.name == **name && backend.supported);
    let route: Vec<_> = kind.preferred.iter().map(|hardware| hardware.name()).filter(supported).collect();
    let types = route.iter().filter_map(|name| hardware.iter().find(|backend| backend.name == **name));
    let (inputs, classes) = classes::classes(&graph.inputs, &heads);
    let example = classes.first().map(|class| classes::example(&inputs, class)).unwrap_or_default();
    let package = format!("weft-{}", spec.model);
    Ok(Model {
        name: spec.model.clone(),
        summary: spec.summary.clone().unwrap_or_else(|| kind.summary.clone()),
        category: spec.category.clone().or_else(|| file.folder.clone()).unwrap_or_default(),
        architecture,
        architecture_title: kind.title.clone(),
        recommendation: kind.recommendation.clone(),
        library: package.replace('-', "_"),
        package,
        checkpoints: spec.checkpoints.clone(),
        model_types: if spec.model_types.is_empty() {
            vec![spec.model.clone()]
        } else {
            spec.model_types.clone()
        },
        module_types: graph.module_types(),
        class_prefix,
        reference: spec.reference.clone(),
        prefix: spec.weights.prefix.clone(),
        legacy_suffixes: spec.weights.legacy_suffixes.clone().into_iter().collect(),
        key_mapping: spec
            .weights
            .key_mapping
            .iter()
            .map(|pieces| pieces.clone().into_iter().collect())
            .collect(),
        fused_weights: spec.weights.fused_weights.clone().into_iter().collect(),
        ignore_unexpected: spec.weights.ignore_unexpected.clone(),
        config,
        classes,
        example_import: inputs::example_import(&example),
        example,
        inputs,
        graph,
        graph_kinds: heads.iter().any(|head| !head.graphs.is_empty()),
        heads,
        processing,
        tasks,
        supported: hardware
            .iter()
            .filter(|backend| backend.supported)
            .map(|backend| backend.name.clone())
            .collect(),
        route_types: types.map(|backend| backend.type_name.clone()).collect(),
        route: route.iter().map(|&name| name.to_owned()).collect(),
        hardware,
        source: file.label.clone(),
        parents: model.chain[1..].iter().map(|&link| files[link].label.clone()).collect(),
        title,
    })
}
