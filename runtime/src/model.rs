//! The typed parts of an architecture: its configuration, its classes, and the tasks that these serve.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Task;

/// A typed `config.json`.
pub trait Configuration: DeserializeOwned + Serialize + fmt::Debug + Clone + Send + Sync {
    /// Checks what types alone cannot: the problem, starting with the field's name.
    fn check(&self) -> Result<(), String>;
    /// Brings what older files say into the form that the type reads.
    fn prepare(raw: &mut serde_json::Value) {
        let _ = raw;
    }
}

/// One of the reference's classes for an architecture.
pub trait Head: Copy + fmt::Debug + PartialEq + Send + Sync + 'static {
    /// All of them; the base model first.
    const ALL: &'static [Self];
    /// The class's name, as `architectures` in `config.json` gives it.
    fn class(self) -> &'static str;
}

/// A task that an architecture's checkpoints are for, and the classes that serve it.
#[derive(Clone, Copy, Debug)]
pub struct TaskHeads<H: 'static> {
    pub(crate) task: Task,
    pub(crate) heads: &'static [H],
    /// Other classes whose checkpoints hold all the weights of the first head.
    pub(crate) holders: &'static [H],
    /// Whether checkpoints of every class hold them.
    pub(crate) from_any: bool,
}

impl<H: 'static> TaskHeads<H> {
    /// A task and its classes, the preferred first: that one is loaded where a checkpoint names none.
    pub const fn new(task: Task, heads: &'static [H]) -> Self {
        Self { task, heads, holders: &[], from_any: false }
    }

    /// Also takes checkpoints of these classes, which hold all the weights of the preferred one.
    #[must_use]
    pub const fn also_from(self, holders: &'static [H]) -> Self {
        Self { holders, ..self }
    }

    /// Takes checkpoints of every class, as they hold the base model, which serves the task.
    #[must_use]
    pub const fn from_any(self) -> Self {
        Self { from_any: true, ..self }
    }
}
