//! Targets of other passes than a backend's own, and graphs as lines, for tests.

use super::Pass;
use crate::graph::{Graph, Tensor};
use crate::lower::Target;
use crate::lower::target::{FIRST, LAST};
use crate::{Hardware, Precision};

impl Target {
    /// For ONNX Runtime on the CPU, by these passes between those that every graph begins and ends with.
    pub(in crate::lower) fn by(own: &[Pass]) -> Self {
        Self { passes: [FIRST, own, LAST].concat(), ..Self::of(Hardware::Cpu, Precision::F32) }
    }

    /// The same with a pass before a backend's own.
    pub(in crate::lower) fn and(mut self, pass: Pass) -> Self {
        self.passes.insert(FIRST.len(), pass);
        self
    }
}

/// What a pass makes of a graph, operation by operation: `f32 Add(x, 1) [batch, 3]`; literals of one number as numbers.
pub(in crate::lower) fn after(pass: Pass, g: &mut Graph, outputs: &[&Tensor]) -> Vec<String> {
    for (index, tensor) in outputs.iter().enumerate() {
        g.output(&format!("out.{index}"), tensor).unwrap();
    }
    pass.run(g, &Target::of(Hardware::Cpu, Precision::F32)).unwrap();
    g.prune();
    g.lines()
}
