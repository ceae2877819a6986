//! An architecture that is known at run time only, and loading checkpoints of it (`AutoModel`).

#[cfg(not(target_family = "wasm"))]
mod commands;

use std::fmt;
use std::path::Path;

use crate::hub::Checkpoint;
use crate::session::Loader;
use crate::tasks::{JsonPipeline, json_pipeline};
use crate::weights::LoraRequest;
use crate::{Architecture, DynModel, Error, ExpertUsage, Hardware, Head, Precision, Result, Task};

/// An [`Architecture`] as a value: what commands and tables of models need of it, behind a few pointers.
#[derive(Clone, Copy)]
pub struct DynArchitecture {
    name: &'static str,
    model_types: &'static [&'static str],
    tasks: fn() -> Vec<Task>,
    classes: fn() -> Vec<&'static str>,
    task_of: fn(&DynLoader) -> Result<Task>,
    load: fn(&DynLoader, Option<Task>) -> Result<DynModel>,
    #[cfg(not(target_family = "wasm"))]
    commands: commands::Commands,
}

impl DynArchitecture {
    /// An architecture as a value.
    pub const fn of<A: Architecture>() -> Self {
        Self {
            name: A::NAME,
            model_types: A::MODEL_TYPES,
            tasks: || A::TASKS.iter().map(|served| served.task).collect(),
            classes: || A::Head::ALL.iter().map(|head| head.class()).collect(),
            task_of: |loader| typed::<A>(loader)?.task(),
            load: |loader, task| Ok(Box::new(for_task(typed::<A>(loader)?, task)?.load()?)),
            #[cfg(not(target_family = "wasm"))]
            commands: commands::Commands::of::<A>(),
        }
    }

    /// The name in the specs, such as `bert`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The values of `model_type` in `config.json` that it opens.
    pub fn model_types(&self) -> &'static [&'static str] {
        self.model_types
    }

    /// The tasks that its checkpoints are for.
    pub fn tasks(&self) -> Vec<Task> {
        (self.tasks)()
    }

    /// The names of the reference's classes; the base model first.
    pub fn classes(&self) -> Vec<&'static str> {
        (self.classes)()
    }

    /// A checkpoint of this architecture, before it is loaded.
    pub fn loader(&self, checkpoint: Checkpoint) -> DynLoader {
        DynLoader {
            architecture: *self,
            checkpoint,
            hardware: Hardware::Auto,
            precision: None,
            modules: vec![],
            threads: None,
            loras: vec![],
            class: None,
            usage: None,
            cache: false,
            kv_cache: None,
        }
    }
}

impl fmt::Debug for DynArchitecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DynArchitecture").field(&self.name).finish()
    }
}

/// A checkpoint that was found, of an architecture that is known at run time only: [`Loader`] without its type.
#[derive(Clone, Debug)]
pub struct DynLoader {
    architecture: DynArchitecture,
    checkpoint: Checkpoint,
    hardware: Hardware,
    precision: Option<Precision>,
    modules: Vec<(String, Precision)>,
    threads: Option<usize>,
    loras: Vec<LoraRequest>,
    class: Option<String>,
    usage: Option<ExpertUsage>,
    cache: bool,
    kv_cache: Option<Precision>,
}

impl DynLoader {
    /// [`Loader::hardware`].
    #[must_use]
    pub fn hardware(self, hardware: Hardware) -> Self {
        Self { hardware, ..self }
    }

    /// [`Loader::precision`].
    #[must_use]
    pub fn precision(self, precision: Precision) -> Self {
        Self { precision: Some(precision), ..self }
    }

    /// [`Loader::precision_of`].
    #[must_use]
    pub fn precision_of(mut self, module: &str, precision: Precision) -> Self {
        self.modules.push((module.to_owned(), precision));
        self
    }

    /// [`Loader::cache_quantized`].
    #[must_use]
    pub fn cache_quantized(self, cache: bool) -> Self {
        Self { cache, ..self }
    }

    /// [`Loader::kv_cache`].
    #[must_use]
    pub fn kv_cache(self, precision: Precision) -> Self {
        Self { kv_cache: Some(precision), ..self }
    }

    /// [`Loader::threads`].
    #[must_use]
    pub fn threads(self, threads: usize) -> Self {
        Self { threads: Some(threads), ..self }
    }

    /// [`Loader::lora`].
    #[must_use]
    pub fn lora(mut self, path: &Path, scale: f32) -> Self {
        self.loras.push(LoraRequest::new(path, scale));
        self
    }

    /// Which of the reference's classes to load; the one that `architectures` in `config.json` names where not given.
    #[must_use]
    pub fn class(self, class: &str) -> Self {
        Self { class: Some(class.to_owned()), ..self }
    }

    /// [`Loader::expert_usage`].
    #[must_use]
    pub fn expert_usage(self, usage: &ExpertUsage) -> Self {
        Self { usage: Some(usage.clone()), ..self }
    }

    /// The architecture.
    pub fn architecture(&self) -> DynArchitecture {
        self.architecture
    }

    /// The checkpoint that was found.
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// The task that the checkpoint's class is for.
    ///
    /// # Errors
    /// When none is known.
    pub fn task(&self) -> Result<Task> {
        (self.architecture.task_of)(self)
    }

    /// Loads the class.
    ///
    /// # Errors
    /// As [`Loader::load`], and when the architecture has no such class.
    pub fn load(&self) -> Result<DynModel> {
        (self.architecture.load)(self, None)
    }

    /// Loads the pipeline of a task, with the class that serves it.
    ///
    /// # Errors
    /// As [`DynLoader::load`], and when the checkpoint does not fit the task.
    pub fn pipeline(&self, task: Task) -> Result<Box<dyn JsonPipeline>> {
        self.load_for(task).and_then(|model| json_pipeline(task, model))
    }

    /// Loads an assistant for a task (`assistant_model`): the class that serves it, or of a drafter that reads the model it drafts for, and
    /// serves no task by itself, its own.
    ///
    /// # Errors
    /// As [`DynLoader::pipeline`].
    pub fn load_assistant(&self, task: Task) -> Result<DynModel> {
        if self.architecture.tasks().contains(&task) { self.load_for(task) } else { self.load() }
    }

    /// Loads the class that serves a task.
    ///
    /// # Errors
    /// As [`DynLoader::pipeline`].
    pub fn load_for(&self, task: Task) -> Result<DynModel> {
        (self.architecture.load)(self, Some(task))
    }
}

/// The same with its type.
fn typed<A: Architecture>(untyped: &DynLoader) -> Result<Loader<A>> {
    let mut loader =
        Loader::<A>::of(untyped.checkpoint.clone()).hardware(untyped.hardware).cache_quantized(untyped.cache);
    if let Some(precision) = untyped.precision {
        loader = loader.precision(precision);
    }
    for (module, precision) in &untyped.modules {
        loader = loader.precision_of(module, *precision);
    }
    if let Some(precision) = untyped.kv_cache {
        loader = loader.kv_cache(precision);
    }
    if let Some(threads) = untyped.threads {
        loader = loader.threads(threads);
    }
    loader = loader.with_loras(&untyped.loras);
    if let Some(usage) = &untyped.usage {
        loader = loader.expert_usage(usage);
    }
    let Some(class) = &untyped.class else { return Ok(loader) };
    match A::Head::ALL.iter().find(|head| head.class() == class) {
        Some(head) => Ok(loader.head(*head)),
        None => {
            let classes: Vec<_> = A::Head::ALL.iter().map(|head| head.class()).collect();
            let problem = format!("{} has no class `{class}`", A::NAME);
            Err(Error::input("class", problem, format!("one of {}", classes.join(", "))))
        }
    }
}

/// With the class that serves a task.
fn for_task<A: Architecture>(loader: Loader<A>, task: Option<Task>) -> Result<Loader<A>> {
    let Some(task) = task else { return Ok(loader) };
    let head = task.head::<A>(loader.checkpoint(), loader.requested_head())?;
    Ok(loader.head(head).ready(task.first_graphs()))
}
