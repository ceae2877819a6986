//! States from one position to the next, in registers.

use super::{Given, LinearAttention};
use crate::engine::onnxruntime::lanes::{self, LANES, added_up, exp, exps, fused};

/// Heads whose positions are gone over, of a text of the batch.
pub(super) struct Heads<'s, 'r> {
    pub batch: usize,
    pub first: usize,
    /// Where the first one's results begin in rows.
    pub place: usize,
    /// `[heads, key, value]`.
    pub state: &'s mut [f32],
    /// Of each position, the results of the block's heads.
    pub rows: &'s mut [&'r mut [f32]],
}

/// The fastest that this processor has.
pub(super) fn fastest() -> fn(&Given<'_>, &mut Heads<'_, '_>) {
    lanes::fastest!(positions: fn(given: &Given<'_>, heads: &mut Heads<'_, '_>))
}

#[inline(always)]
pub(super) fn positions<const FUSED: bool>(given: &Given<'_>, heads: &mut Heads<'_, '_>) {
    let [_, positions, key, value] = given.lengths;
    let LinearAttention { heads: all, query_heads, scale } = given.of;
    let shared = all / query_heads;
    let by_key = given.by_key();
    let (mut decays, mut held) = (vec![1.0_f32; key], vec![0.0_f32; value]);
    for (position, row) in heads.rows.iter_mut().enumerate() {
        let row_of = heads.batch * positions + position;
        for (index, state) in heads.state.chunks_exact_mut(key * value).enumerate() {
            let head = heads.first + index;
            let at = row_of * all + head;
            let q = &given.q[(row_of * query_heads + head / shared) * key..][..key];
            let k = &given.k[at * key..][..key];
            let v = &given.v[at * value..][..value];
            let result = &mut row[heads.place + index * value..][..value];
            let one = given.decay.filter(|_| !by_key).map_or(1.0, |decay| exp::<FUSED>(decay[at]));
            if let Some(decay) = given.decay.filter(|_| by_key) {
                exps::<FUSED>(&decay[at * key..][..key], &mut decays);
            }
            if value == 1 && given.beta.is_none() {
                if !by_key {
                    decays.fill(one);
                }
                result[0] = scale * single::<FUSED>(state, &decays, q, k, v[0]);
                continue;
            }
            let kept = |index: usize| if by_key { decays[index] } else { one };
            let mut added = v;
            if let Some(beta) = given.beta {
                held.fill(0.0);
                for (index, row) in state.chunks_exact_mut(value).enumerate() {
                    let (kept, k) = (kept(index), k[index]);
                    for (held, state) in held.iter_mut().zip(row) {
                        *state *= kept;
                        *held = fused::<FUSED>(*state, k, *held);
                    }
                }
                for (held, v) in held.iter_mut().zip(v) {
                    *held = beta[at] * (v - *held);
                }
                added = &held;
            }
            result.fill(0.0);
            for (index, row) in state.chunks_exact_mut(value).enumerate() {
                let kept = if given.beta.is_some() { 1.0 } else { kept(index) };
                let (q, k) = (q[index], k[index]);
                for ((state, added), result) in row.iter_mut().zip(added).zip(&mut *result) {
                    *state = fused::<FUSED>(k, *added, kept * *state);
                    *result = fused::<FUSED>(*state, q, *result);
                }
            }
            for result in result {
                *result *= scale;
            }
        }
    }
}

/// One position of a state of one value for each key: what queries read behind it.
#[inline(always)]
fn single<const FUSED: bool>(state: &mut [f32], kept: &[f32], q: &[f32], k: &[f32], v: f32) -> f32 {
    let mut sums = [0.0_f32; LANES];
    let rest = state.len() / LANES * LANES;
    let (states, last) = state.as_chunks_mut::<LANES>();
    let chunks =
        kept.as_chunks::<LANES>().0.iter().zip(q.as_chunks::<LANES>().0).zip(k.as_chunks::<LANES>().0);
    for (state, ((kept, q), k)) in states.iter_mut().zip(chunks) {
        for lane in 0..LANES {
            state[lane] = fused::<FUSED>(k[lane], v, kept[lane] * state[lane]);
            sums[lane] = fused::<FUSED>(state[lane], q[lane], sums[lane]);
        }
    }
    let mut sum = added_up(sums);
    for (state, index) in last.iter_mut().zip(rest..) {
        *state = fused::<FUSED>(k[index], v, kept[index] * *state);
        sum = fused::<FUSED>(*state, q[index], sum);
    }
    sum
}
