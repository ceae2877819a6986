//! States of channels from one position to the next, in registers.

use super::Given;
use crate::engine::onnxruntime::lanes::{self, LANES, added_up, exp, fused, silu, softplus};
use crate::engine::onnxruntime::state_blocks::Neighbours;

/// The fastest that this processor has.
pub(super) fn fastest() -> fn(&Given<'_>, &mut Neighbours<'_, '_>) {
    lanes::fastest!(positions: fn(given: &Given<'_>, channels: &mut Neighbours<'_, '_>))
}

#[inline(always)]
pub(super) fn positions<const FUSED: bool>(given: &Given<'_>, channels: &mut Neighbours<'_, '_>) {
    let [_, positions, width, states] = given.lengths;
    let (groups, first) = (given.groups, channels.first);
    let shared = width / groups;
    let count = channels.state.len() / states;
    let mut deltas = vec![0.0_f32; count];
    for (position, row) in channels.rows.iter_mut().enumerate() {
        let row_of = channels.batch * positions + position;
        let u = &given.u[row_of * width + first..][..count];
        softplus::<FUSED>(&given.delta[row_of * width + first..][..count], &mut deltas);
        let by_channel = u.iter().zip(&deltas).zip(&given.d[first..][..count]).zip(&mut **row);
        let of_states =
            channels.state.chunks_exact_mut(states).zip(given.a[first * states..].chunks_exact(states));
        for (index, ((((u, delta), d), result), (state, a))) in by_channel.zip(of_states).enumerate() {
            let of_group = (row_of * groups + (first + index) / shared) * states;
            let (b, c) = (&given.b[of_group..][..states], &given.c[of_group..][..states]);
            *result = fused::<FUSED>(*d, *u, step::<FUSED>(state, *delta, *u, a, b, c));
        }
        if let Some(z) = given.z {
            for (result, z) in row.iter_mut().zip(&z[row_of * width + first..][..count]) {
                *result *= silu::<FUSED>(*z);
            }
        }
    }
}

/// One position of a channel: what its states give behind it.
#[inline(always)]
fn step<const FUSED: bool>(state: &mut [f32], delta: f32, u: f32, a: &[f32], b: &[f32], c: &[f32]) -> f32 {
    let added = delta * u;
    let mut sums = [0.0_f32; LANES];
    let whole = state.len() / LANES * LANES;
    let (chunks, rest) = state.as_chunks_mut::<LANES>();
    let given = a.as_chunks::<LANES>().0.iter().zip(b.as_chunks::<LANES>().0).zip(c.as_chunks::<LANES>().0);
    for (state, ((a, b), c)) in chunks.iter_mut().zip(given) {
        for lane in 0..LANES {
            let kept = exp::<FUSED>(delta * a[lane]);
            state[lane] = fused::<FUSED>(added, b[lane], kept * state[lane]);
            sums[lane] = fused::<FUSED>(state[lane], c[lane], sums[lane]);
        }
    }
    let mut sum = added_up(sums);
    for (state, place) in rest.iter_mut().zip(whole..) {
        *state = fused::<FUSED>(added, b[place], exp::<FUSED>(delta * a[place]) * *state);
        sum = fused::<FUSED>(*state, c[place], sum);
    }
    sum
}
