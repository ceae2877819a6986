//! Linear layers of selected experts.

use crate::Result;
use crate::graph::{Dim, Dtype, ExpertLinearOp, Graph, Op, Tensor, show};
use crate::lower::rare;

impl Graph {
    /// Linear layers of selected experts (`grouped_mm` of `transformers.integrations.moe`): x `[rows, selected, in]`, or
    /// `[rows, 1, in]` for all that are selected, by the weights of the experts `indices` `[rows, selected]`; to
    /// `[rows, selected, out]`. Weights are a tensor `[out, in]` for each expert, or one `[experts, out, in]`; `transposed` ones
    /// lie the other way.
    ///
    /// # Errors
    /// When the shapes do not go together, or no weights are given.
    pub fn expert_linear(
        &mut self,
        x: &Tensor,
        indices: &Tensor,
        weights: &[Tensor],
        transposed: bool,
    ) -> Result<Tensor> {
        self.rare.experts = Some(&rare::EXPERTS);
        self.float("ExpertLinear", x)?;
        let misfit = |g: &Self, why: &str| {
            let of = weights.first().map_or_else(|| "none".to_owned(), |weight| show(weight.shape()));
            let (x, indices) = (show(x.shape()), show(indices.shape()));
            g.error(
                "ExpertLinear",
                format!("x {x} by experts {indices} of {} weights {of}: {why}", weights.len()),
            )
        };
        let shape = match weights {
            [] => None,
            [all] if all.rank() == 3 => Some(&all.shape()[1..]),
            [first, rest @ ..] => {
                Some(first.shape()).filter(|shape| rest.iter().all(|weight| weight.shape() == *shape))
            }
        };
        let (out, width) = match (shape, transposed) {
            (Some([out, width]), false) | (Some([width, out]), true) => (out, width),
            _ => {
                return Err(misfit(self, "weights are of two axes and one shape, or in one tensor of three"));
            }
        };
        let ([rows, of_row, inner], [same, selected]) = (x.shape(), indices.shape()) else {
            return Err(misfit(self, "x has three axes and indices two"));
        };
        if inner != width || rows != same || (*of_row != Dim::Fixed(1) && of_row != selected) {
            return Err(misfit(self, "their lengths differ"));
        }
        if indices.dtype() != Dtype::I64 {
            return Err(misfit(self, "indices are i64"));
        }
        let shape = vec![rows.clone(), selected.clone(), out.clone()];
        let operands: Vec<&Tensor> = [x, indices].into_iter().chain(weights).collect();
        let op = ExpertLinearOp { transposed, quantized: None };
        Ok(self.node(Op::ExpertLinear(op), &operands, x.dtype(), shape))
    }
}

#[cfg(test)]
mod tests {
    use crate::dims;
    use crate::graph::dims::BATCH;
    use crate::graph::{Graph, Input, Tensor};
    use crate::nn::testing::refusal;

    #[test]
    fn what_does_not_fit_is_refused() {
        let try_with = |of_row: usize, weights: &[[usize; 2]]| {
            refusal(|g: &mut Graph| {
                let x = g.input(Input::f32("x", dims![BATCH, of_row, 4]));
                let indices = g.input(Input::i64("indices", dims![BATCH, 2]));
                let weights =
                    weights.iter().enumerate().map(|(index, shape)| g.weight(&format!("w{index}"), shape));
                let weights = weights.collect::<crate::Result<Vec<Tensor>>>()?;
                g.expert_linear(&x, &indices, &weights, false)
            })
        };
        insta::assert_snapshot!(try_with(3, &[[5, 4]]), @"ExpertLinear in the root: x [batch, 3, 4] by experts [batch, 2] of 1 weights [5, 4]: their lengths differ");
        insta::assert_snapshot!(try_with(1, &[[4, 5]]), @"ExpertLinear in the root: x [batch, 1, 4] by experts [batch, 2] of 1 weights [4, 5]: their lengths differ");
        insta::assert_snapshot!(try_with(2, &[[5, 4], [6, 4]]), @"ExpertLinear in the root: x [batch, 2, 4] by experts [batch, 2] of 2 weights [5, 4]: weights are of two axes and one shape, or in one tensor of three");
        insta::assert_snapshot!(try_with(2, &[]), @"ExpertLinear in the root: x [batch, 2, 4] by experts [batch, 2] of 0 weights none: weights are of two axes and one shape, or in one tensor of three");
    }
}
