//! Masks of what is selected.

use crate::Result;
use crate::graph::{Dim, Dtype, Graph, Op, Tensor, show};
use crate::lower::rare;

impl Graph {
    /// Top-k selection along the last axis (`torch.topk`), as a mask: bool of the shape of x, true at the `count` largest elements, of
    /// equal ones at the first. What is as low as numbers go is not selected.
    ///
    /// # Errors
    /// When there are fewer than `count` elements, none are asked for, or their number is not fixed.
    pub fn top_k_mask(&mut self, x: &Tensor, count: usize) -> Result<Tensor> {
        self.rare.top_k_mask_by_argmax = Some(rare::TOP_K_MASK);
        let length = x.dim(-1).and_then(Dim::fixed);
        if !length.is_some_and(|length| (1..=length).contains(&count)) {
            let problem = format!("{} has no {count} largest along its last axis", show(x.shape()));
            return Err(self.error("top_k", problem));
        }
        Ok(self.node(Op::TopKMask { count }, &[x], Dtype::Bool, x.shape().to_vec()))
    }
}
