//! Shifted windows of a grid, by constants where the configuration or the caller fixes its size.

use super::{AnyWindows, Windows, patch_merge, patch_merge_any};
use crate::Result;
use crate::graph::{Dim, Graph, Tensor};

/// Shifted windows over a grid (`SwinLayer`): [`Windows`] where rows and columns are known as the graph is built, or else
/// [`AnyWindows`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShiftedWindows {
    /// The edge of a window, patches.
    pub window: usize,
    of: Grid,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Grid {
    Known(Windows),
    Any(AnyWindows),
}

impl ShiftedWindows {
    /// The windows of a stage's layer of this index, as [`Windows::of_layer`].
    pub fn of_layer(index: usize, grid: &[Dim; 2], window: usize, side: usize) -> Self {
        let Windows { window, shift, .. } = Windows::of_layer(index, [0; 2], window, side);
        let of = match known(grid) {
            Some(grid) => Grid::Known(Windows { grid, window, shift }),
            None => Grid::Any(AnyWindows { grid: grid.clone(), window, shift, always_partition: true }),
        };
        Self { window, of }
    }

    /// The windows of a stage's layer of this index, which do not shift over a grid that is no longer than a window
    /// (`set_shift_and_window_size`); over one that is known they are no larger than it.
    pub fn of_grid(index: usize, grid: &[Dim; 2], window: usize) -> Self {
        let side = known(grid).map_or(usize::MAX, |[rows, columns]| rows.min(columns));
        let mut windows = Self::of_layer(index, grid, window, side);
        if let Grid::Any(any) = &mut windows.of {
            any.always_partition = false;
        }
        windows
    }

    /// Window partition: `[batch, rows * columns, width]` to `[batch * windows, window², width]`.
    ///
    /// # Errors
    /// When x has not as many places, or no fixed width.
    pub fn partition(&self, g: &mut Graph, x: &Tensor) -> Result<Tensor> {
        match &self.of {
            Grid::Known(windows) => windows.partition(g, x),
            Grid::Any(windows) => windows.partition(g, x),
        }
    }

    /// Window reverse of what [`ShiftedWindows::partition`] gives for `batch` images.
    ///
    /// # Errors
    /// When x is not what that gives.
    pub fn reverse(&self, g: &mut Graph, x: &Tensor, batch: &Dim) -> Result<Tensor> {
        match &self.of {
            Grid::Known(windows) => windows.reverse(g, x, batch),
            Grid::Any(windows) => windows.reverse(g, x, batch),
        }
    }

    /// Relative position bias, as [`Windows::bias`].
    ///
    /// # Errors
    /// When the table has another shape.
    pub fn bias(&self, g: &mut Graph, table: &Tensor) -> Result<Tensor> {
        match &self.of {
            Grid::Known(windows) => windows.bias(g, table),
            Grid::Any(windows) => windows.bias(g, table),
        }
    }

    /// Shifted-window attention mask, as [`Windows::mask`].
    ///
    /// # Errors
    /// When the bias has another shape.
    pub fn mask(&self, g: &mut Graph, bias: &Tensor, batch: &Dim, distance: f32) -> Result<Tensor> {
        match &self.of {
            Grid::Known(windows) => windows.mask(g, bias, batch, distance),
            Grid::Any(windows) => windows.mask(g, bias, batch, distance),
        }
    }
}

/// Patch merging (`SwinPatchMerging`) before its norm and projection, of a grid that is known or not: `[batch, rows * columns, width]`
/// to `[batch, ⌈rows / 2⌉ * ⌈columns / 2⌉, 4 * width]`, and its rows and columns.
///
/// # Errors
/// When x has not as many places, or no fixed width.
pub fn merge_patches(g: &mut Graph, x: &Tensor, grid: &[Dim; 2]) -> Result<(Tensor, [Dim; 2])> {
    match known(grid) {
        Some(grid) => Ok((patch_merge(g, x, grid)?, grid.map(|length| length.div_ceil(2).into()))),
        None => patch_merge_any(g, x, grid),
    }
}

/// Rows and columns that are numbers.
fn known([rows, columns]: &[Dim; 2]) -> Option<[usize; 2]> {
    Some([rows.fixed()?, columns.fixed()?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::dims::{HEIGHT, WIDTH};

    #[test]
    fn constants_stand_for_what_is_known() {
        let of = |grid: &[Dim; 2], index, side| ShiftedWindows::of_layer(index, grid, 4, side);
        let fixed = [Dim::Fixed(6), Dim::Fixed(9)];
        assert_eq!(of(&fixed, 1, 6).of, Grid::Known(Windows { grid: [6, 9], window: 4, shift: 2 }));
        assert_eq!(of(&fixed, 1, 3).of, Grid::Known(Windows { grid: [6, 9], window: 3, shift: 0 }));
        let any = [HEIGHT, WIDTH];
        let shifted =
            |shift| Grid::Any(AnyWindows { grid: any.clone(), window: 4, shift, always_partition: true });
        assert_eq!(of(&any, 1, usize::MAX).of, shifted(2));
        assert_eq!(of(&any, 0, usize::MAX).of, shifted(0));
        let half_known = [Dim::Fixed(6), WIDTH];
        assert_eq!(of(&half_known, 0, 4).window, 4);
        assert!(matches!(of(&half_known, 0, 4).of, Grid::Any(_)));
        let of_grid = |grid: &[Dim; 2]| ShiftedWindows::of_grid(1, grid, 4);
        assert_eq!(of_grid(&fixed), of(&fixed, 1, 6));
        assert_eq!(of_grid(&[Dim::Fixed(9), Dim::Fixed(3)]).window, 3);
        assert!(matches!(of_grid(&any).of, Grid::Any(AnyWindows { shift: 2, always_partition: false, .. })));
    }
}
