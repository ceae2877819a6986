//! Gram matrices of what linear layers take, which calibrated quantization weighs its errors by.

use std::collections::BTreeMap;

use super::{Graph, Op, Origin, Tensor};
use crate::Result;

/// Linear layers that take the same inputs: their weights' names, and the inputs, of which a layer that runs more than once
/// has several.
#[derive(Clone, Debug)]
pub(crate) struct SharedInputs {
    pub weights: Vec<String>,
    pub inputs: Vec<Tensor>,
    pub width: usize,
}

impl Graph {
    /// The inputs of all linear layers `[out, in]`, in the order of their first use; one entry for those that share them.
    pub(crate) fn linear_inputs(&self) -> Vec<SharedInputs> {
        let mut inputs: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for node in self.nodes.iter().filter(|node| node.op == Op::Linear) {
            if let [x, weight, ..] = node.inputs.as_slice()
                && let Origin::Weight(index) = self.values[*weight].origin
            {
                inputs.entry(index).or_default().push(*x);
            }
        }
        let mut shared: Vec<(Vec<usize>, SharedInputs)> = vec![];
        for (index, mut ids) in inputs {
            ids.sort_unstable();
            ids.dedup();
            let weight = &self.weights[index];
            if let Some((_, known)) = shared.iter_mut().find(|(known, _)| *known == ids) {
                known.weights.push(weight.name.clone());
                continue;
            }
            let inputs = ids.iter().map(|id| self.tensor(*id)).cloned().collect();
            let (weights, width) = (vec![weight.name.clone()], weight.shape[1]);
            shared.push((ids, SharedInputs { weights, inputs, width }));
        }
        shared.into_iter().map(|(_, shared)| shared).collect()
    }

    /// The Gram matrix `xᵀ · x` `[in, in]`, summed over all axes of each x `[…, in]` but its last, and over all x.
    ///
    /// # Errors
    /// When there is no x, or one has no axes.
    pub(crate) fn gram(&mut self, inputs: &[Tensor]) -> Result<Tensor> {
        let mut sum: Option<Tensor> = None;
        for x in inputs {
            let rows = match x.rank() {
                0 | 1 => self.unsqueeze(x, 0)?,
                2 => x.clone(),
                rank => self.flatten(x, 0..rank - 1)?,
            };
            let columns = self.transpose(&rows, &[1, 0])?;
            let gram = self.matmul(&columns, &rows)?;
            sum = Some(match sum {
                Some(sum) => self.add(&sum, &gram)?,
                None => gram,
            });
        }
        sum.ok_or_else(|| self.error("Gram", "there is nothing that linear layers take".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::{Graph, Input};
    use crate::nn::testing::expect;
    use crate::{Result, dims};

    #[test]
    fn layers_of_one_input_share_an_entry_and_a_layer_used_twice_has_two_inputs() -> Result<()> {
        let mut g = Graph::new();
        let x = g.input(Input::f32("x", dims![2, 3]));
        let w = g.scope("layer");
        let q = g.linear(&w.scope("q"), &x, 3)?;
        let k = g.linear_no_bias(&w.scope("k"), &x, 5)?;
        let again = g.linear(&w.scope("o"), &q, 3)?;
        let again = g.linear(&w.scope("o"), &again, 3)?;
        g.output("k", &k)?;
        g.output("o", &again)?;
        let shared = g.linear_inputs();
        let said: Vec<_> =
            shared.iter().map(|one| (one.weights.join(" "), one.inputs.len(), one.width)).collect();
        let want = [("layer.q.weight layer.k.weight", 1, 3), ("layer.o.weight", 2, 3)];
        assert_eq!(said, want.map(|(names, inputs, width)| (names.to_owned(), inputs, width)));
        Ok(())
    }

    #[test]
    fn a_gram_matrix_sums_over_rows_and_inputs() {
        // [1 + 9 + 0.25, 2 - 3 + 2; …, 4 + 1 + 16].
        let build = |g: &mut Graph| {
            let x = g.constant(&[1, 2, 2], vec![1.0, 2.0, 3.0, -1.0])?;
            let y = g.constant(&[1, 2], vec![0.5, 4.0])?;
            g.gram(&[x, y])
        };
        expect(&[], build, &[2, 2], &[10.25, 1.0, 1.0, 21.0]);
    }
}
