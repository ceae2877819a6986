//! Shifted windows over grids whose rows and columns are known when the model runs.

use super::Windows;
use crate::graph::{Binary, Dim, Dtype, Graph, PadMode, Tensor, show};
use crate::{Result, dims};

/// Shifted windows over a grid of any size (`SwinLayer`, `Swin2SRLayer`, `MaskFormerSwinLayer`); the grid is zero-padded below and
/// on the right to whole windows. [`Windows`] has those of a grid that the configuration gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnyWindows {
    /// Rows and columns of the grid.
    pub grid: [Dim; 2],
    /// The edge of a window, patches.
    pub window: usize,
    /// The cyclic shift (`shift_size`): rows and columns are rolled up and left by it before they are partitioned.
    pub shift: usize,
    /// Whether a grid is shifted that is no longer than a window, too (`always_partition`).
    pub always_partition: bool,
}

impl AnyWindows {
    /// The number of windows down and across.
    fn counts(&self) -> [Dim; 2] {
        [0, 1].map(|axis: usize| self.grid[axis].ceil_div(self.window))
    }

    /// Rows and columns of the padded grid.
    fn padded(&self) -> [Dim; 2] {
        self.counts().map(|count| count * self.window.into())
    }

    /// Window partition (`window_partition`, after padding and cyclic shift): `[batch, rows * columns, width]` to
    /// `[batch * windows, window², width]`.
    ///
    /// # Errors
    /// When x has not as many places, or no fixed width.
    pub fn partition(&self, g: &mut Graph, x: &Tensor) -> Result<Tensor> {
        let ([rows, columns], width) = (&self.grid, width(g, x)?);
        let x = g.reshape(x, dims![&x.shape()[0], rows, columns, width])?;
        let x = self.pad(g, &x)?;
        let x = self.roll(g, &x, false)?;
        self.cut(g, &x, width)
    }

    /// Window reverse (`window_reverse`, then shift and padding undone) of what [`AnyWindows::partition`] gives for `batch` images.
    ///
    /// # Errors
    /// When x is not what that gives.
    pub fn reverse(&self, g: &mut Graph, x: &Tensor, batch: &Dim) -> Result<Tensor> {
        let ([rows, columns], [high, wide], [down, across]) = (&self.grid, self.padded(), self.counts());
        let (width, window) = (width(g, x)?, self.window);
        let x = g.reshape(x, dims![batch, &down, &across, window, window, width])?;
        let x = g.transpose(&x, &[0, 1, 3, 2, 4, 5])?;
        let x = g.reshape(&x, dims![batch, &high, &wide, width])?;
        let mut x = self.roll(g, &x, true)?;
        for (axis, length) in [(1, rows), (2, columns)] {
            if x.shape()[axis] != *length {
                x = g.slice_dims(&x, axis, 0.into(), length.clone())?;
            }
        }
        g.reshape(&x, dims![batch, rows.clone() * columns.clone(), width])
    }

    /// Relative position bias, as [`Windows::bias`].
    ///
    /// # Errors
    /// When the table has another shape.
    pub fn bias(&self, g: &mut Graph, table: &Tensor) -> Result<Tensor> {
        Windows { grid: [self.window; 2], window: self.window, shift: 0 }.bias(g, table)
    }

    /// Shifted-window attention mask (`get_attn_mask`): a bias `[1, heads, window², window²]`, plus `distance` between patches that
    /// the shift brought together: `[batch * windows, heads, window², window²]`; the bias alone without shift.
    ///
    /// # Errors
    /// When the bias has another shape.
    pub fn mask(&self, g: &mut Graph, bias: &Tensor, batch: &Dim, distance: f32) -> Result<Tensor> {
        if self.shift == 0 {
            return Ok(bias.clone());
        }
        let ([high, wide], [down, across], places) =
            (self.padded(), self.counts(), self.window * self.window);
        let [rows, columns] = [self.regions(g, &high)?, self.regions(g, &wide)?];
        // Which of nine regions a patch is of.
        let rows = g.reshape(&rows, dims![&high, 1])?;
        let rows = g.scale(&rows, 3.0)?;
        let regions = g.add(&rows, &columns)?;
        let regions = g.reshape(&regions, dims![1, high, wide, 1])?;
        let regions = self.cut(g, &regions, 1)?;
        let windows = down * across;
        let other = g.reshape(&regions, dims![&windows, 1, places])?;
        let same = g.binary(Binary::Equal, &regions, &other)?;
        let (zero, distance) = (g.scalar(0.0), g.scalar(distance));
        let apart = g.select(&same, &zero, &distance)?;
        let apart = g.unsqueeze(&apart, 1)?;
        let all = g.add(bias, &apart)?;
        let all = g.unsqueeze(&all, 0)?;
        let all = g.expand(&all, dims![batch, windows, &bias.shape()[1], places, places])?;
        g.flatten(&all, 0..2)
    }

    /// Of each row or column whether it is in a window that the shift joins, and on which side of it: 0, 1 or 2, `[length]` f32.
    fn regions(&self, g: &mut Graph, length: &Dim) -> Result<Tensor> {
        let positions = g.arange(length);
        let last = last(g, length)?;
        let mut region = None;
        let window = g.integer(self.window as i64);
        for before in [window, self.shift(g)?] {
            let edge = g.sub(&last, &before)?;
            let behind = g.binary(Binary::Greater, &positions, &edge)?;
            let behind = g.cast(&behind, Dtype::F32);
            region = Some(match region {
                None => behind,
                Some(other) => g.add(&other, &behind)?,
            });
        }
        region.ok_or_else(|| g.error("AnyWindows", "there are no regions"))
    }

    /// Zero-pads `[batch, rows, columns, width]` below and on the right.
    fn pad(&self, g: &mut Graph, x: &Tensor) -> Result<Tensor> {
        let (mut x, most) = (x.clone(), self.window.saturating_sub(1));
        for (axis, length) in [1, 2].into_iter().zip(self.padded()) {
            if x.shape()[axis] != length {
                let padded = g.pad(&x, &[(axis, 0, most)], PadMode::Constant(0.0))?;
                x = g.slice_dims(&padded, axis, 0.into(), length)?;
            }
        }
        Ok(x)
    }

    /// `[batch, rows, columns, width]` in windows: `[batch * windows, window², width]`.
    fn cut(&self, g: &mut Graph, x: &Tensor, width: usize) -> Result<Tensor> {
        let (batch, [down, across], window) = (&x.shape()[0], self.counts(), self.window);
        let windows = batch.clone() * down.clone() * across.clone();
        let x = g.reshape(x, dims![batch, down, window, across, window, width])?;
        let x = g.transpose(&x, &[0, 1, 3, 2, 4, 5])?;
        g.reshape(&x, dims![windows, window * window, width])
    }

    /// The cyclic shift; where not all grids are partitioned, `[1]` i64, and 0 if one edge is no longer than a window
    /// (`set_shift_and_window_size`).
    fn shift(&self, g: &mut Graph) -> Result<Tensor> {
        let shift = g.integer(self.shift as i64);
        if self.always_partition {
            return Ok(shift);
        }
        let (zero, window) = (g.integer(0), g.integer(self.window as i64));
        self.grid.iter().try_fold(shift, |shift, length| {
            let last = last(g, length)?;
            let fits = g.binary(Binary::Less, &last, &window)?;
            g.select(&fits, &zero, &shift)
        })
    }

    /// `[batch, rows, columns, width]` rolled up and left by the shift (`torch.roll`), or back again.
    fn roll(&self, g: &mut Graph, x: &Tensor, back: bool) -> Result<Tensor> {
        let mut x = x.clone();
        if self.shift == 0 {
            return Ok(x);
        }
        for axis in [1, 2] {
            let length = x.shape()[axis].clone();
            x = if self.always_partition {
                let shift = Dim::from(self.shift);
                let shift = if back { length.clone() - shift } else { shift };
                let first = g.slice_dims(&x, axis, 0.into(), shift.clone())?;
                let rest = g.slice_dims(&x, axis, shift, length)?;
                let shape = x.shape().to_vec();
                let rolled = g.concat(&[&rest, &first], axis)?;
                g.reshape(&rolled, shape)?
            } else {
                let from = self.rolled(g, &length, back)?;
                g.gather(&x, &from, axis)?
            };
        }
        Ok(x)
    }

    /// The rows or columns that come to stand at each place of an axis: `[length]` i64.
    fn rolled(&self, g: &mut Graph, length: &Dim, back: bool) -> Result<Tensor> {
        let (positions, last, one) = (g.arange(length), last(g, length)?, g.integer(1));
        let (count, shift) = (g.add(&last, &one)?, self.shift(g)?);
        let shift = if back { g.sub(&count, &shift)? } else { shift };
        let from = g.add(&positions, &shift)?;
        let behind = g.binary(Binary::Greater, &from, &last)?;
        let around = g.sub(&from, &count)?;
        g.select(&behind, &around, &from)
    }
}

/// The last index of an axis: `[1]` i64.
fn last(g: &mut Graph, length: &Dim) -> Result<Tensor> {
    let positions = g.arange(length);
    g.slice_dims(&positions, 0, length.clone() - 1.into(), length.clone())
}

/// Patch merging (`MaskFormerSwinPatchMerging`) before its norm and projection, as [`patch_merge`](super::patch_merge): `[batch, rows *
/// columns, width]` to `[batch, ⌈rows / 2⌉ * ⌈columns / 2⌉, 4 * width]`, and its rows and columns.
///
/// # Errors
/// When x has not as many places, or no fixed width.
pub fn patch_merge_any(g: &mut Graph, x: &Tensor, [rows, columns]: &[Dim; 2]) -> Result<(Tensor, [Dim; 2])> {
    let (batch, width) = (&x.shape()[0].clone(), width(g, x)?);
    let mut x = g.reshape(x, dims![batch, rows, columns, width])?;
    let halves = [rows, columns].map(|length| length.ceil_div(2));
    for (axis, half) in [1, 2].into_iter().zip(&halves) {
        let even = half.clone() * 2.into();
        if x.shape()[axis] != even {
            let padded = g.pad(&x, &[(axis, 0, 1)], PadMode::Constant(0.0))?;
            x = g.slice_dims(&padded, axis, 0.into(), even)?;
        }
    }
    let [high, wide] = &halves;
    let x = g.reshape(&x, dims![batch, high, 2, wide, 2, width])?;
    let x = g.transpose(&x, &[0, 1, 3, 4, 2, 5])?;
    let x = g.reshape(&x, dims![batch, high.clone() * wide.clone(), 4 * width])?;
    Ok((x, halves))
}

fn width(g: &Graph, x: &Tensor) -> Result<usize> {
    let width = x.dim(-1).and_then(Dim::fixed);
    width.ok_or_else(|| {
        g.error("AnyWindows", format!("the last axis of {} must have a fixed length", show(x.shape())))
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{evaluate, refusal};
    use super::*;

    fn numbers(g: &mut Graph, rows: usize, columns: usize) -> Result<Tensor> {
        g.constant(&[2, rows * columns, 1], (0..2 * rows * columns).map(|n| n as f32).collect())
    }

    fn both(rows: usize, columns: usize, shift: usize) -> (Windows, AnyWindows) {
        let grid = [rows, columns];
        let any = AnyWindows { grid: grid.map(Dim::from), window: 4, shift, always_partition: true };
        (Windows { grid, window: 4, shift }, any)
    }

    #[test]
    fn windows_are_those_of_a_grid_that_is_known() {
        for (rows, columns, shift) in [(8, 4, 0), (7, 9, 2), (8, 12, 1)] {
            let (known, any) = both(rows, columns, shift);
            let want = evaluate(&[], |g| numbers(g, rows, columns).and_then(|x| known.partition(g, &x)));
            let got = evaluate(&[], |g| numbers(g, rows, columns).and_then(|x| any.partition(g, &x)));
            assert_eq!(got, want);
            let back = |g: &mut Graph| {
                let x = numbers(g, rows, columns)?;
                let x = any.partition(g, &x)?;
                any.reverse(g, &x, &2.into())
            };
            assert_eq!(evaluate(&[], back), evaluate(&[], |g| numbers(g, rows, columns)));
        }
    }

    #[test]
    fn masks_are_those_of_a_grid_that_is_known() {
        for shift in [0, 2] {
            let (known, any) = both(7, 9, shift);
            let bias = |g: &mut Graph| g.constant(&[1, 2, 16, 16], (0..512).map(|n| n as f32).collect());
            let want = evaluate(&[], |g| bias(g).and_then(|bias| known.mask(g, &bias, &2.into(), -100.0)));
            let got = evaluate(&[], |g| bias(g).and_then(|bias| any.mask(g, &bias, &2.into(), -100.0)));
            assert_eq!(got, want);
        }
    }

    #[test]
    fn a_grid_no_longer_than_a_window_is_not_shifted() {
        for (rows, columns, shift) in [(8, 12, 2), (7, 9, 2), (5, 6, 1), (4, 9, 2), (9, 4, 2), (3, 9, 2)] {
            let (mut known, mut any) = both(rows, columns, shift);
            known.shift = if rows.min(columns) > 4 { shift } else { 0 };
            any.always_partition = false;
            let want = evaluate(&[], |g| numbers(g, rows, columns).and_then(|x| known.partition(g, &x)));
            let got = evaluate(&[], |g| numbers(g, rows, columns).and_then(|x| any.partition(g, &x)));
            assert_eq!(got, want);
            let back = |g: &mut Graph| {
                let x = numbers(g, rows, columns)?;
                let x = any.partition(g, &x)?;
                any.reverse(g, &x, &2.into())
            };
            assert_eq!(evaluate(&[], back), evaluate(&[], |g| numbers(g, rows, columns)));
            let bias = |g: &mut Graph| g.constant(&[1, 2, 16, 16], (0..512).map(|n| n as f32).collect());
            let mask = evaluate(&[], |g| bias(g).and_then(|bias| any.mask(g, &bias, &2.into(), -100.0)));
            let windows = rows.div_ceil(4) * columns.div_ceil(4);
            let want = if known.shift > 0 {
                evaluate(&[], |g| bias(g).and_then(|bias| known.mask(g, &bias, &2.into(), -100.0)))
            } else {
                evaluate(&[], |g| {
                    let bias = bias(g)?;
                    g.expand(&bias, dims![2 * windows, 2, 16, 16])
                })
            };
            assert_eq!(mask, want);
        }
    }

    #[test]
    fn patches_are_merged_as_on_a_grid_that_is_known() {
        for grid in [[3, 5], [2, 4]] {
            let [rows, columns] = grid;
            let want = evaluate(&[], |g| {
                numbers(g, rows, columns).and_then(|x| super::super::patch_merge(g, &x, grid))
            });
            let got = evaluate(&[], |g| {
                let x = numbers(g, rows, columns)?;
                Ok(patch_merge_any(g, &x, &grid.map(Dim::from))?.0)
            });
            assert_eq!(got, want);
        }
    }

    #[test]
    fn places_that_are_not_the_grid_are_refused() {
        let (_, any) = both(7, 9, 2);
        let wrong = refusal(|g| numbers(g, 8, 9).and_then(|x| any.partition(g, &x)));
        assert!(wrong.contains("does not hold as many elements as"), "{wrong}");
    }
}
