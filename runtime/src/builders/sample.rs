//! Values between the places of a feature map.

use crate::graph::{Dim, Graph, Op, Tensor, show};
use crate::lower::rare;
use crate::{Result, dims};

impl Graph {
    /// Bilinear samples of a feature map (`torch.nn.functional.grid_sample`): x `[batch, channels, height, width]` f32 at `grid`
    /// `[batch, rows, columns, 2]` f32, across and down, from -1 to 1, to `[batch, channels, rows, columns]`. Beyond the edge are
    /// zeros. -1 and 1 are the corners' centres where `align_corners` says so, or else the corners.
    ///
    /// # Errors
    /// When x and the grid have other axes, other batches or are not f32.
    pub fn grid_sample(&mut self, x: &Tensor, grid: &Tensor, align_corners: bool) -> Result<Tensor> {
        self.rare.samples = Some(&rare::SAMPLES);
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
}
