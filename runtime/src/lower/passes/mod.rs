//! The passes that lowering is made of: from a graph to one that means the same, in operations that a backend runs
//! better. [`Target::passes`](super::Target) lists those of each backend.

pub(super) mod activation;
pub(super) mod arithmetic;
pub(super) mod attention;
mod attention_mask;
pub(super) mod axes;
pub(super) mod bfloat16;
pub(super) mod cached_attention;
pub(super) mod experts;
pub(super) mod few_axes;
pub(super) mod floats;
pub(super) mod glu;
pub(super) mod integers;
pub(super) mod lengths;
pub(super) mod linear;
pub(super) mod lstm;
pub(super) mod norm;
pub(super) mod precision;
pub(crate) mod rare;
pub(super) mod recurrence;
pub(super) mod resize;
pub(super) mod rotary;
pub(super) mod sample;
pub(super) mod select;
pub(super) mod share;
pub(super) mod single;
pub(super) mod spatial;
pub(super) mod types;
pub(super) mod waves;

use super::Target;
use crate::Result;
pub(super) use crate::graph::Rule;
use crate::graph::{Graph, RarePasses};

/// One step of lowering.
#[derive(Clone, Copy)]
pub struct Pass {
    /// What it does, as the table of backends and errors tell.
    pub name: &'static str,
    step: Step,
}

/// How a pass goes over the graph.
#[derive(Clone, Copy)]
enum Step {
    /// Asks of each operation what stands for it.
    Each(Rule),
    /// The same, by what the graph's operations name.
    Rare(fn(&RarePasses) -> Option<Rule>),
    /// Sees the graph as a whole.
    Whole(fn(&mut Graph, &Target) -> Result<()>),
}

impl Pass {
    pub(super) const fn each(name: &'static str, rule: Rule) -> Self {
        Self { name, step: Step::Each(rule) }
    }

    pub(super) const fn rare(name: &'static str, rule: fn(&RarePasses) -> Option<Rule>) -> Self {
        Self { name, step: Step::Rare(rule) }
    }

    pub(super) const fn whole(name: &'static str, step: fn(&mut Graph, &Target) -> Result<()>) -> Self {
        Self { name, step: Step::Whole(step) }
    }

    pub(super) fn run(&self, g: &mut Graph, target: &Target) -> Result<()> {
        match self.step {
            Step::Each(rule) => g.rewrite(rule),
            Step::Rare(rule) => rule(&g.rare).map_or(Ok(()), |rule| g.rewrite(rule)),
            Step::Whole(step) => step(g, target),
        }
    }
}

impl std::fmt::Debug for Pass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Pass {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;
