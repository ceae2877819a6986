//! Lengths as numbers to compute places with.

use super::{Dim, Dtype, Graph, Tensor};
use crate::Result;

impl Graph {
    /// A length as a number: f32 `[]`.
    ///
    /// # Errors
    /// Never; as [`Graph::slice_dims`].
    pub fn length(&mut self, dim: &Dim) -> Result<Tensor> {
        if let Some(length) = dim.fixed() {
            return Ok(self.scalar(length as f32));
        }
        let (positions, one) = (self.arange(dim), Dim::Fixed(1));
        let last = self.slice_dims(&positions, 0, dim.clone() - one.clone(), dim.clone())?;
        let last = self.reshape(&last, vec![])?;
        let last = self.cast(&last, Dtype::F32);
        let one = self.scalar(1.0);
        self.add(&last, &one)
    }
}
