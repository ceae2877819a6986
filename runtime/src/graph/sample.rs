//! Values between the places of a feature map, and lengths as numbers to compute such places with.

use super::{Dim, Dtype, Graph, Op, Tensor, show};
use crate::{Result, dims};

impl Graph {
    /// [`Graph::grid_sample`] without its passes.
    pub(crate) fn grid_sample_node(
        &mut self,
        x: &Tensor,
        grid: &Tensor,
        align_corners: bool,
    ) -> Result<Tensor> {
        self.float("GridSample", x)?;
        self.float("GridSample", grid)?;
        match (x.shape(), grid.shape()) {
            ([batch, channels, _, _], [grids, rows, columns, Dim::Fixed(2)]) if batch == grids => {
                let shape = dims![batch, channels, rows, columns];
                Ok(self.node(Op::GridSample { align_corners }, &[x, grid], x.dtype(), shape))
            }
            _ => {
                let problem = "are not [batch, channels, height, width] and [batch, rows, columns, 2]";
                let shapes = format!("{} and {}", show(x.shape()), show(grid.shape()));
                Err(self.error("GridSample", format!("{shapes} {problem}")))
            }
        }
    }

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
