//! Shifted windows of Swin Transformer (Liu et al., 2021, arXiv:2103.14030): partition, reverse, position bias, attention mask,
//! patch merging.

use crate::graph::{Dim, Graph, Interpolation, PadMode, Tensor, show};
use crate::{Result, dims};

/// Shifted windows over a grid of patches (`SwinLayer`); the grid is zero-padded below and on the right to whole windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Rows and columns of the grid.
    pub grid: [usize; 2],
    /// The edge of a window, patches.
    pub window: usize,
    /// The cyclic shift (`shift_size`): rows and columns are rolled up and left by it before they are partitioned.
    pub shift: usize,
}

impl Windows {
    /// The windows of a stage's layer of this index (`SwinLayer`): at most `side` patches long, and every other layer shifts them
    /// by half, unless one window is as long as `side`.
    pub fn of_layer(index: usize, grid: [usize; 2], window: usize, side: usize) -> Self {
        let shift = if index.is_multiple_of(2) || side <= window { 0 } else { window / 2 };
        Self { grid, window: window.min(side), shift }
    }

    /// Rows and columns of the padded grid.
    fn padded(&self) -> [usize; 2] {
        self.grid.map(|length| length.next_multiple_of(self.window.max(1)))
    }

    /// The number of windows down and across.
    fn counts(&self) -> [usize; 2] {
        self.padded().map(|length| length / self.window.max(1))
    }

    /// Window partition (`window_partition`, after padding and cyclic shift): `[batch, rows * columns, width]` to
    /// `[batch * windows, window², width]`.
    ///
    /// # Errors
    /// When x has not as many places, or no fixed width.
    pub fn partition(&self, g: &mut Graph, x: &Tensor) -> Result<Tensor> {
        let ([rows, columns], [high, wide], [down, across]) = (self.grid, self.padded(), self.counts());
        let (batch, width, window) = (&x.shape()[0].clone(), width(g, x)?, self.window);
        let x = g.reshape(x, dims![batch, rows, columns, width])?;
        let x = zero_padded(g, x, [high - rows, wide - columns])?;
        let x = roll(g, &x, [self.shift; 2])?;
        let x = g.reshape(&x, dims![batch, down, window, across, window, width])?;
        let x = g.transpose(&x, &[0, 1, 3, 2, 4, 5])?;
        g.reshape(&x, dims![batch.clone() * Dim::from(down * across), window * window, width])
    }

    /// Window reverse (`window_reverse`, then shift and padding undone) of what [`Windows::partition`] gives for `batch` images.
    ///
    /// # Errors
    /// When x is not what that gives.
    pub fn reverse(&self, g: &mut Graph, x: &Tensor, batch: &Dim) -> Result<Tensor> {
        let ([rows, columns], [high, wide], [down, across]) = (self.grid, self.padded(), self.counts());
        let (width, window) = (width(g, x)?, self.window);
        let x = g.reshape(x, dims![batch, down, across, window, window, width])?;
        let x = g.transpose(&x, &[0, 1, 3, 2, 4, 5])?;
        let x = g.reshape(&x, dims![batch, high, wide, width])?;
        let back = |length: usize| if self.shift == 0 { 0 } else { length - self.shift };
        let x = roll(g, &x, [back(high), back(wide)])?;
        let x = if high == rows { x } else { g.slice(&x, 1, 0..rows)? };
        let x = if wide == columns { x } else { g.slice(&x, 2, 0..columns)? };
        g.reshape(&x, dims![batch, rows * columns, width])
    }

    /// [`Windows::partition`] of a grid that is rolled before it is padded (timm's `SwinTransformerBlock`).
    ///
    /// # Errors
    /// As [`Windows::partition`].
    pub fn partition_rolled(&self, g: &mut Graph, x: &Tensor) -> Result<Tensor> {
        let x = self.roll_grid(g, x, |length, shift| shift % length.max(1))?;
        Self { shift: 0, ..*self }.partition(g, &x)
    }

    /// [`Windows::reverse`] of what [`Windows::partition_rolled`] gives.
    ///
    /// # Errors
    /// As [`Windows::reverse`].
    pub fn reverse_rolled(&self, g: &mut Graph, x: &Tensor, batch: &Dim) -> Result<Tensor> {
        let x = Self { shift: 0, ..*self }.reverse(g, x, batch)?;
        self.roll_grid(g, &x, |length, shift| match shift % length.max(1) {
            0 => 0,
            shift => length - shift,
        })
    }

    /// `[batch, rows * columns, width]` with its grid rolled up and left, by as much as `by` says of an edge and the shift.
    fn roll_grid(&self, g: &mut Graph, x: &Tensor, by: impl Fn(usize, usize) -> usize) -> Result<Tensor> {
        let ([rows, columns], shape) = (self.grid, x.shape().to_vec());
        let width = width(g, x)?;
        let x = g.reshape(x, dims![&shape[0], rows, columns, width])?;
        let x = roll(g, &x, self.grid.map(|length| by(length, self.shift)))?;
        g.reshape(&x, shape)
    }

    /// Relative position bias `[1, heads, window², window²]`, from `relative_position_bias_table`
    /// `[(2 * window - 1)², heads]`.
    ///
    /// # Errors
    /// When the table has another shape.
    pub fn bias(&self, g: &mut Graph, table: &Tensor) -> Result<Tensor> {
        let places = self.window * self.window;
        g.table(&[places, places])?;
        let apart = (0..places * places).map(|pair| apart(self.window, pair / places, pair % places));
        let apart = g.integers(&[places, places], apart.collect())?;
        let bias = g.gather(table, &apart, 0)?;
        let bias = g.transpose(&bias, &[2, 0, 1])?;
        g.unsqueeze(&bias, 0)
    }

    /// Shifted-window attention mask (`SwinLayer.get_attn_mask`): a bias `[1, heads, window², window²]`, plus `distance` between
    /// patches that the shift brought together: `[batch * windows, heads, window², window²]`; the bias alone without shift.
    ///
    /// # Errors
    /// When the bias has another shape.
    pub fn mask(&self, g: &mut Graph, bias: &Tensor, batch: &Dim, distance: f32) -> Result<Tensor> {
        if self.shift == 0 {
            return Ok(bias.clone());
        }
        let ([down, across], places) = (self.counts(), self.window * self.window);
        g.table(&[down * across, places, places])?;
        let apart = g.constant(&[down * across, 1, places, places], self.apart(distance))?;
        let all = g.add(bias, &apart)?;
        let all = g.unsqueeze(&all, 0)?;
        let all = g.expand(&all, dims![batch, down * across, &bias.shape()[1], places, places])?;
        g.flatten(&all, 0..2)
    }

    /// `distance` between patches of a window from different sides of the grid, else 0: `[windows, 1, window², window²]`.
    fn apart(&self, distance: f32) -> Vec<f32> {
        let ([high, wide], [down, across], window) = (self.padded(), self.counts(), self.window);
        let region = |at: usize, length: usize| {
            usize::from(at >= length - window) + usize::from(at >= length - self.shift)
        };
        let of = |tile: usize, place: usize| {
            let y = tile / across * window + place / window;
            let x = tile % across * window + place % window;
            [region(y, high), region(x, wide)]
        };
        let places = window * window;
        let tiles = (0..down * across).flat_map(|tile| (0..places * places).map(move |pair| (tile, pair)));
        let between =
            |(tile, pair)| if of(tile, pair / places) == of(tile, pair % places) { 0.0 } else { distance };
        tiles.map(between).collect()
    }
}

/// Relative position index: the row of the bias table for two patches of a square window.
fn apart(side: usize, place: usize, other: usize) -> i64 {
    let [down, across] = [place / side + side - 1 - other / side, place % side + side - 1 - other % side];
    (down * (2 * side - 1) + across) as i64
}

/// Which row of a table of relative position bias each pair of positions has, class token and `side²` patches
/// (`generate_relative_position_index` of `BeitRelativePositionBias`): `[1 + side², 1 + side²]` i64.
///
/// # Errors
/// When the table is too large.
pub fn relative_position_index_with_cls(g: &mut Graph, side: usize) -> Result<Tensor> {
    let (distances, positions) = ((2 * side).saturating_sub(1).pow(2) as i64, side * side + 1);
    g.table(&[positions, positions])?;
    let row = |pair: usize| match (pair / positions, pair % positions) {
        (0, 0) => distances + 2,
        (0, _) => distances,
        (_, 0) => distances + 1,
        (place, other) => apart(side, place - 1, other - 1),
    };
    g.integers(&[positions, positions], (0..positions * positions).map(row).collect())
}

/// A table of relative position bias `[(2 * side - 1)² + 3, heads]` for patches of another grid, by bilinear interpolation
/// (`BeitRelativePositionBias`): `[(2 * rows - 1) * (2 * columns - 1) + 3, heads]`. Its last three rows stay as they are.
///
/// # Errors
/// When the table has another shape.
pub fn interpolate_relative_bias_with_cls(
    g: &mut Graph,
    table: &Tensor,
    side: usize,
    grid: &[Dim; 2],
) -> Result<Tensor> {
    let apart = (2 * side).saturating_sub(1);
    let heads = table.dim(-1).cloned().unwrap_or(Dim::Fixed(0));
    let [rows, columns] = grid.clone().map(|length| length * Dim::Fixed(2) - Dim::Fixed(1));
    let patches = g.slice(table, 0, 0..apart * apart)?;
    let others = g.slice(table, 0, apart * apart..apart * apart + 3)?;
    let map = g.reshape(&patches, dims![1, apart, apart, &heads])?;
    let map = g.transpose(&map, &[0, 3, 1, 2])?;
    let map = g.resize(&map, [rows.clone(), columns.clone()], Interpolation::Bilinear, false)?;
    let map = g.transpose(&map, &[0, 2, 3, 1])?;
    let patches = g.reshape(&map, dims![rows * columns, heads])?;
    g.concat(&[&patches, &others], 0)
}

/// BEiT's relative position bias (`BeitRelativePositionBias`) `[1, heads, positions, positions]`, from a table
/// `[distances, heads]` whose last three rows are for the class token to patches, patches to it, and itself, and the row
/// `[positions, positions]` that each pair has.
///
/// # Errors
/// When the table has not two axes.
pub fn relative_bias_with_cls(g: &mut Graph, table: &Tensor, index: &Tensor) -> Result<Tensor> {
    let bias = g.gather(table, index, 0)?;
    let bias = g.transpose(&bias, &[2, 0, 1])?;
    g.unsqueeze(&bias, 0)
}

/// Rows and columns rolled up and left (`torch.roll`).
fn roll(g: &mut Graph, x: &Tensor, shifts: [usize; 2]) -> Result<Tensor> {
    let mut x = x.clone();
    for (axis, shift) in [(1, shifts[0]), (2, shifts[1])] {
        if shift > 0 {
            let first = g.slice(&x, axis, 0..shift)?;
            let rest = g.slice_dims(&x, axis, shift.into(), x.shape()[axis].clone())?;
            x = g.concat(&[&rest, &first], axis)?;
        }
    }
    Ok(x)
}

/// Patch merging (`SwinPatchMerging`) before its norm and projection: squares of four patches concatenated, by column, then by
/// row: `[batch, rows * columns, width]` to `[batch, ⌈rows / 2⌉ * ⌈columns / 2⌉, 4 * width]`, zero-padded where odd.
///
/// # Errors
/// When x has not as many places, or no fixed width.
pub fn patch_merge(g: &mut Graph, x: &Tensor, [rows, columns]: [usize; 2]) -> Result<Tensor> {
    let (batch, width) = (&x.shape()[0].clone(), width(g, x)?);
    let halves = [rows.div_ceil(2), columns.div_ceil(2)];
    let x = g.reshape(x, dims![batch, rows, columns, width])?;
    let x = zero_padded(g, x, [rows % 2, columns % 2])?;
    let x = g.reshape(&x, dims![batch, halves[0], 2, halves[1], 2, width])?;
    let x = g.transpose(&x, &[0, 1, 3, 4, 2, 5])?;
    g.reshape(&x, dims![batch, halves[0] * halves[1], 4 * width])
}

/// Zero-pads `[batch, rows, columns, width]` below and on the right.
fn zero_padded(g: &mut Graph, x: Tensor, [rows, columns]: [usize; 2]) -> Result<Tensor> {
    match rows + columns {
        0 => Ok(x),
        _ => g.pad(&x, &[(1, 0, rows), (2, 0, columns)], PadMode::Constant(0.0)),
    }
}

fn width(g: &Graph, x: &Tensor) -> Result<usize> {
    let width = x.dim(-1).and_then(Dim::fixed);
    width.ok_or_else(|| {
        g.error("Windows", format!("the last axis of {} must have a fixed length", show(x.shape())))
    })
}

#[cfg(test)]
mod tests;
