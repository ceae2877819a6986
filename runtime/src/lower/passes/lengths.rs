//! Symbols that become numbers, and operations that nothing reads.

use crate::Result;
use crate::graph::Graph;
use crate::lower::Target;

/// Puts the numbers that the target gives in the place of symbols, for backends that need fixed shapes.
pub(in crate::lower) fn fix(g: &mut Graph, target: &Target) -> Result<()> {
    if !target.dims.is_empty() {
        g.map_lengths(|dim| dim.substitute(&|name| target.dims.get(name).copied()));
    }
    Ok(())
}

/// Leaves out operations that lead to no output.
pub(in crate::lower) fn prune(g: &mut Graph, _: &Target) -> Result<()> {
    g.prune();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::dims::{BATCH, SEQUENCE};
    use crate::graph::{Dim, Input};
    use crate::{Hardware, Precision, dims};

    #[test]
    fn symbols_become_numbers_in_shapes_and_ranges() -> Result<()> {
        let mut g = Graph::new();
        let x = g.input(Input::f32("x", dims![BATCH, SEQUENCE + Dim::Fixed(1)]));
        let y = g.slice_dims(&x, 1, Dim::Fixed(1), SEQUENCE + Dim::Fixed(1))?;
        g.output("y", &y)?;
        let dims = [("sequence".to_owned(), 5)].into();
        fix(&mut g, &Target { dims, ..Target::of(Hardware::Cpu, Precision::F32) })?;
        assert_eq!(g.inputs()[0].shape, dims![BATCH, 6]);
        assert_eq!(g.tensor(y.id).shape(), dims![BATCH, 5]);
        let crate::graph::Op::Slice { end, .. } = &g.nodes[0].op else { panic!("no range") };
        assert_eq!(*end, Dim::Fixed(6));
        Ok(())
    }
}
