//! 64-bit integers as 32-bit ones, for engines whose kernels have no others.

use crate::Result;
use crate::graph::{Dim, Dtype, Graph, Op, TopKOp, TopKResult};
use crate::lower::Target;

/// Gives ids, masks and positions the type that the target counts in, and at the edges the one it is given them in. Lengths and axes
/// are no values of the graph: they are printed as ONNX demands them.
pub(in crate::lower) fn compute_in(g: &mut Graph, target: &Target) -> Result<()> {
    let narrow = target.integers;
    if narrow == Dtype::I64 {
        return Ok(());
    }
    let edges = target.integers_at_edges;
    let wide = |g: &Graph, id: usize| g.tensor(id).dtype() == Dtype::I64;
    let converted = |is: bool| is && edges != narrow;
    let inputs: Vec<_> =
        (0..g.inputs.len()).filter(|&input| converted(g.inputs[input].dtype == Dtype::I64)).collect();
    let outputs: Vec<_> =
        (0..g.outputs.len()).filter(|&output| converted(wide(g, g.outputs[output].1))).collect();
    for id in 0..g.values.len() {
        if wide(g, id) && (edges == narrow || !g.is_input(id)) {
            g.retype(id, narrow);
        }
    }
    for input in g.inputs.iter_mut().filter(|input| input.dtype == Dtype::I64) {
        input.dtype = edges;
    }
    for input in inputs {
        g.convert_input(input, narrow, |_| false);
    }
    for output in outputs {
        g.convert_output(output, edges);
    }
    for node in &mut g.nodes {
        match &mut node.op {
            Op::Cast { to } if *to == Dtype::I64 && g.values[node.output].tensor.dtype() == narrow => {
                *to = narrow;
            }
            _ => {}
        }
    }
    g.rewrite(|g, it| {
        let wide = match it.op {
            // What it already is.
            Op::Cast { to } if *to == it.operands[0].dtype() => return Ok(Some(it.operands[0].clone())),
            Op::ArgMax { .. } | Op::TopK(TopKOp { gives: TopKResult::Indices, .. }) => true,
            // A length that is computed is one of 64 bits.
            Op::Positions => it.result.dim(0).and_then(Dim::fixed).is_none(),
            _ => false,
        };
        if !wide {
            return Ok(None);
        }
        let operands: Vec<_> = it.operands.iter().collect();
        let wide = it.again(g, &operands, Dtype::I64);
        Ok(Some(g.cast(&wide, narrow)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::dims::{BATCH, SEQUENCE};
    use crate::graph::{Input, Reduction};
    use crate::{Hardware, Precision, dims};

    fn narrow(g: &mut Graph) -> Vec<String> {
        compute_in(g, &Target::in_browser(Hardware::Webgpu, Precision::F32)).unwrap();
        g.lines()
    }

    #[test]
    fn edges_computation_and_literals_become_narrow() -> Result<()> {
        let mut g = Graph::new();
        let ids = g.input(Input::i64("ids", dims![BATCH, SEQUENCE]));
        let (pad, lowest) = (g.integer(-7), g.integer(i64::MIN));
        let sum = g.add(&ids, &pad)?;
        let most = g.reduce(Reduction::Max, &sum, &[0, 1], false)?;
        let kept = g.binary(crate::graph::Binary::Max, &most, &lowest)?;
        g.output("kept", &kept)?;
        let want = [
            "i32 Add(ids, -7) [batch, sequence]",
            "i32 ReduceMax(%0) []",
            &format!("i32 Max(%1, {}) []", i64::MIN),
        ];
        assert_eq!(narrow(&mut g), want);
        assert_eq!(g.inputs()[0].dtype, Dtype::I32);
        assert_eq!(g.outputs().next().map(|(_, kept)| kept.dtype()), Some(Dtype::I32));
        Ok(())
    }

    #[test]
    fn edges_stay_wide_where_the_target_says_so() -> Result<()> {
        let mut g = Graph::new();
        let ids = g.input(Input::i64("ids", dims![BATCH]));
        let sum = g.add(&ids, &ids)?;
        g.output("ids_again", &ids)?;
        g.output("sum", &sum)?;
        compute_in(&mut g, &Target::of(Hardware::Webgpu, Precision::F32))?;
        let want = [
            "i32 Cast(ids) [batch]",
            "i32 Add(%0, %0) [batch]",
            "i64 Cast(%0) [batch]",
            "i64 Cast(%1) [batch]",
        ];
        assert_eq!(g.lines(), want);
        assert_eq!(g.inputs()[0].dtype, Dtype::I64);
        assert!(g.outputs().all(|(_, given)| given.dtype() == Dtype::I64));
        Ok(())
    }

    #[test]
    fn what_is_of_64_bits_whatever_it_is_given_is_converted() -> Result<()> {
        let mut g = Graph::new();
        let x = g.input(Input::f32("x", dims![BATCH, SEQUENCE]));
        let first = g.argmax(&x, 1)?;
        let known = g.arange(&Dim::Fixed(3));
        let computed = g.arange(&SEQUENCE);
        for (name, x) in [("first", &first), ("known", &known), ("computed", &computed)] {
            g.output(name, x)?;
        }
        let want = [
            "i64 ArgMax(x) [batch]",
            "i32 Cast(%0) [batch]",
            "i32 Range() [3]",
            "i64 Range() [sequence]",
            "i32 Cast(%3) [sequence]",
        ];
        assert_eq!(narrow(&mut g), want);
        Ok(())
    }

    #[test]
    fn conversions_to_integers_are_narrowed_and_those_to_narrow_ones_dropped() -> Result<()> {
        let mut g = Graph::new();
        let x = g.input(Input::f32("x", dims![BATCH]));
        let wide = g.cast(&x, Dtype::I64);
        let narrow_already = g.cast(&wide, Dtype::I32);
        g.output("out", &narrow_already)?;
        assert_eq!(narrow(&mut g), ["i32 Cast(x) [batch]"]);
        Ok(())
    }
}
