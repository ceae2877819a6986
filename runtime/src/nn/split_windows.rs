//! Windows that divide an image of any size, as many down as across (LW-DETR, arXiv:2406.03459).

use crate::graph::{Dim, Graph, Tensor, show};
use crate::{Result, dims};

/// `side` by `side` windows over a grid of patches, whose rows and columns `side` divides (`LwDetrViTBackbone`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitWindows {
    /// How many windows there are down, and across.
    pub side: usize,
    /// Rows and columns of the grid.
    pub size: [Dim; 2],
}

impl SplitWindows {
    /// Rows and columns of a window.
    fn window(&self) -> [Dim; 2] {
        self.size.clone().map(|length| length.floor_div(self.side))
    }

    /// Rows and columns that are in windows.
    fn covered(&self) -> [Dim; 2] {
        self.window().map(|length| length * Dim::from(self.side))
    }

    /// Window partition: `[batch, rows * columns, width]` to `[batch * side², positions, width]`.
    ///
    /// # Errors
    /// When x has not three axes, or other positions.
    pub fn partition(&self, g: &mut Graph, x: &Tensor) -> Result<Tensor> {
        let [batch, _, width] = x.shape() else {
            return Err(g.error("partition", format!("{} is not [batch, positions, width]", show(x.shape()))));
        };
        let (batch, width, side) = (batch.clone(), width.clone(), self.side);
        let ([rows, columns], [down, across], [high, wide]) = (&self.size, self.window(), self.covered());
        let x = g.reshape(x, dims![&batch, rows, columns, &width])?;
        // The same where windows cover the grid, as they must: it says so of lengths that are known as the model runs.
        let x = g.slice_dims(&x, 1, Dim::Fixed(0), high)?;
        let x = g.slice_dims(&x, 2, Dim::Fixed(0), wide)?;
        let x = g.reshape(&x, dims![&batch, side, &down, side, &across, &width])?;
        let x = g.transpose(&x, &[0, 1, 3, 2, 4, 5])?;
        g.reshape(&x, dims![batch * Dim::from(side * side), down * across, width])
    }

    /// Window reverse, as a feature map: `[batch * side², positions, width]` to `[batch, width, rows, columns]`.
    ///
    /// # Errors
    /// When x is not what [`SplitWindows::partition`] gives for `batch` images.
    pub fn feature_map(&self, g: &mut Graph, x: &Tensor, batch: &Dim) -> Result<Tensor> {
        let width = x.dim(-1).cloned().unwrap_or(Dim::Fixed(0));
        let ([down, across], [high, wide], side) = (self.window(), self.covered(), self.side);
        let x = g.reshape(x, dims![batch, side, side, &down, &across, &width])?;
        let x = g.transpose(&x, &[0, 5, 1, 3, 2, 4])?;
        g.reshape(&x, dims![batch, width, high, wide])
    }
}

/// The windows of an image one after the other: `[batch * windows, positions, width]` to `[batch, windows * positions, width]`.
///
/// # Errors
/// When x has not three axes.
pub fn join_windows(g: &mut Graph, x: &Tensor, batch: &Dim, windows: usize) -> Result<Tensor> {
    let [_, positions, width] = x.shape() else {
        return Err(
            g.error("join_windows", format!("{} is not [windows, positions, width]", show(x.shape())))
        );
    };
    let shape = dims![batch, positions.clone() * Dim::from(windows), width];
    g.reshape(x, shape)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{expect, refusal};
    use super::*;

    /// Two rows of four numbers in two by two windows.
    const WINDOWS: [Dim; 2] = [Dim::Fixed(2), Dim::Fixed(4)];

    #[test]
    fn windows_are_cut_and_put_together() {
        let grid: Vec<f32> = (0..8_u8).map(f32::from).collect();
        let windows = SplitWindows { side: 2, size: WINDOWS };
        let cut = |g: &mut Graph| {
            let x = g.constant(&[1, 8, 1], grid.clone())?;
            windows.partition(g, &x)
        };
        let cut_numbers = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
        expect(&[], cut, &[4, 2, 1], &cut_numbers);
        let joined = |g: &mut Graph| {
            let x = g.constant(&[1, 8, 1], vec![7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0])?;
            let x = windows.partition(g, &x)?;
            windows.feature_map(g, &x, &Dim::Fixed(1))
        };
        expect(&[], joined, &[1, 1, 2, 4], &[7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0]);
        let tall = SplitWindows { side: 2, size: [Dim::Fixed(4), Dim::Fixed(2)] };
        let cut = |g: &mut Graph| {
            let x = g.constant(&[1, 8, 1], grid.clone())?;
            tall.partition(g, &x)
        };
        // Rows of two: a window has the column of two rows.
        expect(&[], cut, &[4, 2, 1], &[0.0, 2.0, 1.0, 3.0, 4.0, 6.0, 5.0, 7.0]);
    }

    #[test]
    fn what_has_other_axes_is_refused() {
        let text = refusal(|g| {
            let x = g.constant(&[2], vec![0.0; 2])?;
            join_windows(g, &x, &Dim::Fixed(1), 1)
        });
        assert!(text.contains("is not [windows, positions, width]"), "{text}");
    }
}
