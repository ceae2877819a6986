//! Linear layers of few selected experts by the weights of these alone, which are gathered: for shapes that are fixed, where fewer
//! experts are selected in all than there are. That is what a step of generation has.

use super::{count, stacked};
use crate::Result;
use crate::graph::{Dim, ExpertLinearOp, Graph, Op, Operation, Tensor};
use crate::weights::{Bytes, WeightData};

/// Linear layers of selected experts by gathered weights; those of more rows stay, and so do quantized ones.
pub(in crate::lower) fn gathered(g: &mut Graph, stored: &[WeightData]) -> Result<()> {
    g.rewrite(|g, it| by_gathered_weights(g, it, stored))
}

fn by_gathered_weights(g: &mut Graph, it: &Operation<'_>, stored: &[WeightData]) -> Result<Option<Tensor>> {
    let (Op::ExpertLinear(ExpertLinearOp { transposed, .. }), [x, indices, weights @ ..]) =
        (it.op, it.operands)
    else {
        return Ok(None);
    };
    let [Dim::Fixed(rows), Dim::Fixed(selected)] = *indices.shape() else { return Ok(None) };
    let all = rows * selected;
    let quantized = |weight: &Tensor| {
        let index = g.weight_index(weight);
        index.is_some_and(|index| matches!(stored[index].bytes, Bytes::Quantized(_)))
    };
    if all >= count(weights) || weights.iter().any(quantized) {
        return Ok(None);
    }
    let width = x.shape()[2].clone();
    let of_all = vec![Dim::Fixed(rows), Dim::Fixed(selected), width.clone()];
    let x = if x.shape() == of_all { x.clone() } else { g.expand(x, of_all)? };
    let weight = stacked(g, weights)?;
    let indices = g.reshape(indices, vec![Dim::Fixed(all)])?;
    let weight = g.gather(&weight, &indices, 0)?;
    let y = if *transposed {
        let x = g.reshape(&x, vec![Dim::Fixed(all), Dim::Fixed(1), width])?;
        g.matmul(&x, &weight)?
    } else {
        let x = g.reshape(&x, vec![Dim::Fixed(all), width, Dim::Fixed(1)])?;
        g.matmul(&weight, &x)?
    };
    g.reshape(&y, it.result.shape().to_vec()).map(Some)
}
