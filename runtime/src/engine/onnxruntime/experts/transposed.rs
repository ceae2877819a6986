//! `x · w` of weights `[in, out]`: rows of the weight are read one after the other, where they lie, and added up.

use std::sync::PoisonError;

use super::super::product::{ResultRows, Slices, slices};
use super::super::stored::Stored;

/// Columns that a thread takes at a time.
const COLUMNS: usize = 256;

/// A product, cut into blocks of columns that threads take in any order.
pub(in super::super) struct Transposed<'a, W> {
    x: &'a [f32],
    weight: &'a [W],
    width: usize,
    out: usize,
    blocks: Vec<Slices<'a>>,
}

impl<'a, W: Stored> Transposed<'a, W> {
    /// Of `x` `[rows, width]` and `weight` `[width, out]` into `result` `[rows, out]`, which is 0.
    pub(in super::super) fn new(
        x: &'a [f32],
        weight: &'a [W],
        width: usize,
        result: impl ResultRows<'a>,
    ) -> Self {
        let out = weight.len().checked_div(width).unwrap_or(0);
        Self { x, weight, width, out, blocks: slices(result, out, COLUMNS) }
    }

    pub(in super::super) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    pub(in super::super) fn compute(&self, block: usize) {
        let mut slices = self.blocks[block].lock().unwrap_or_else(PoisonError::into_inner);
        let first = block * COLUMNS;
        let columns = COLUMNS.min(self.out - first);
        let mut wide = [0.0_f32; COLUMNS];
        for (place, weights) in self.weight.chunks_exact(self.out).enumerate() {
            let stored = &weights[first..first + columns];
            wide.iter_mut().zip(stored).for_each(|(wide, stored)| *wide = stored.single());
            for (slice, x) in slices.iter_mut().zip(self.x.chunks_exact(self.width)) {
                let x = x[place];
                slice.iter_mut().zip(&wide).for_each(|(sum, weight)| *sum += x * weight);
            }
        }
    }
}
