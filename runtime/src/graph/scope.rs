//! Where in a checkpoint a part of the graph finds its weights: `bert.encoder.layer.0`.

use std::fmt;
use std::sync::Arc;

/// A prefix of weight names; cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope(Arc<str>);

impl Scope {
    /// The start of every name.
    pub fn root() -> Self {
        Self(Arc::from(""))
    }

    /// One level further down.
    pub fn scope(&self, name: &str) -> Self {
        Self(Arc::from(self.name(name)))
    }

    /// The element of a list of modules.
    pub fn index(&self, index: usize) -> Self {
        self.scope(&index.to_string())
    }

    /// The full name of a weight in this scope.
    pub fn name(&self, weight: &str) -> String {
        if self.0.is_empty() { weight.to_owned() } else { format!("{}.{weight}", self.0) }
    }

    /// The name of the scope itself; empty at the root.
    pub fn path(&self) -> &str {
        &self.0
    }

    /// The scope around this one.
    pub(crate) fn parent(&self) -> Self {
        Self(Arc::from(self.0.rsplit_once('.').map_or("", |(parent, _)| parent)))
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "the root" } else { &self.0 })
    }
}
