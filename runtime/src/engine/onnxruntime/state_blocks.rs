//! Results and states of heads or channels, cut into blocks of neighbours that threads take in any order.

use std::sync::PoisonError;

use super::product::{Slices, slices};

/// Blocks, where there are so many heads or channels.
const BLOCKS: usize = 16;

/// The blocks of all texts.
pub(super) struct StateBlocks<'a> {
    /// The states before the first position `[batch, all, state]`.
    before: &'a [f32],
    /// Heads or channels of a block.
    each: usize,
    /// The numbers of the states of a block, and of those of a text.
    state: usize,
    of_text: usize,
    results: Vec<Slices<'a>>,
    states: Vec<Slices<'a>>,
}

/// Heads or channels beside each other, of a text of the batch.
pub(super) struct Neighbours<'s, 'r> {
    pub batch: usize,
    pub first: usize,
    /// `[neighbours, state]`: what was before the first position, and is to be what is left behind the last.
    pub state: &'s mut [f32],
    /// Of each position, their results.
    pub rows: &'s mut [&'r mut [f32]],
}

impl<'a> StateBlocks<'a> {
    /// So many heads or channels with a state and a result of these lengths: `before` and `states` `[batch, all, state]`, `results`
    /// `[batch, positions, all·result]`.
    pub(super) fn new(
        all: usize,
        [state, result]: [usize; 2],
        before: &'a [f32],
        results: &'a mut [f32],
        states: &'a mut [f32],
    ) -> Self {
        let each = all.div_ceil(BLOCKS).max(1);
        let results = slices(results, all * result, each * result);
        let states = slices(states, all * state, each * state);
        Self { before, each, state: each * state, of_text: all * state, results, states }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.results.len()
    }

    /// Has a block computed, text by text.
    pub(super) fn compute(&self, block: usize, mut compute: impl FnMut(Neighbours<'_, '_>)) {
        let mut results = self.results[block].lock().unwrap_or_else(PoisonError::into_inner);
        let mut states = self.states[block].lock().unwrap_or_else(PoisonError::into_inner);
        let positions = results.len() / states.len().max(1);
        for (batch, state) in states.iter_mut().enumerate() {
            let before = &self.before[batch * self.of_text + block * self.state..];
            state.copy_from_slice(&before[..state.len()]);
            let rows = &mut results[batch * positions..][..positions];
            compute(Neighbours { batch, first: block * self.each, state, rows });
        }
    }
}
