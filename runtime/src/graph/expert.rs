//! How often experts are selected.

use super::{Binary, Dtype, Graph, Reduction, Tensor};
use crate::Result;

impl Graph {
    /// Counts how often each expert is selected, where that was asked for: routing weights `[rows, experts]`, 0 for those that are
    /// not. The layer is the one that the graph is in.
    pub(crate) fn count_experts(&mut self, routing_weights: &Tensor) -> Result<()> {
        if !self.counts_experts {
            return Ok(());
        }
        let zero = self.scalar(0.0);
        let selected = self.binary(Binary::Greater, routing_weights, &zero)?;
        let selected = self.cast(&selected, Dtype::F32);
        let counts = self.reduce(Reduction::Sum, &selected, &[0], false)?;
        let mut layer = vec![];
        for piece in self.place.path().split('.') {
            layer.push(piece);
            if piece.parse::<usize>().is_ok() {
                break;
            }
        }
        self.expert_counts.push((layer.join("."), counts));
        Ok(())
    }
}
