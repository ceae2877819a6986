//! States of channels from one position to the next, in registers.

use super::Given;
use crate::engine::onnxruntime::linear_attention::{LANES, added_up, exp, fused};

/// Neighbouring channels whose positions are gone over, of a text of the batch.
pub(super) struct Channels<'s, 'r> {
    pub batch: usize,
    pub first: usize,
    /// `[channels, state]`.
    pub state: &'s mut [f32],
    /// Of each position, the results of these channels.
    pub rows: &'s mut [&'r mut [f32]],
}

/// The fastest that this processor has.
pub(super) fn fastest() -> fn(&Given<'_>, &mut Channels<'_, '_>) {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512f") {
            return x86::by_sixteen;
        }
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            return x86::by_eight;
        }
    }
    if cfg!(target_feature = "fma") || cfg!(target_arch = "aarch64") {
        positions::<true>
    } else {
        positions::<false>
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Channels, Given};

    /// As [`super::positions`], compiled for processors with AVX-512.
    #[allow(unsafe_code)]
    pub(super) fn by_sixteen(given: &Given<'_>, channels: &mut Channels<'_, '_>) {
        // SAFETY: only handed out where the processor has AVX-512.
        unsafe { with_avx512(given, channels) }
    }

    /// As [`super::positions`], compiled for processors that multiply and add at once.
    #[allow(unsafe_code)]
    pub(super) fn by_eight(given: &Given<'_>, channels: &mut Channels<'_, '_>) {
        // SAFETY: only handed out where the processor has AVX2 and FMA.
        unsafe { with_fma(given, channels) }
    }

    #[target_feature(enable = "avx512f")]
    fn with_avx512(given: &Given<'_>, channels: &mut Channels<'_, '_>) {
        super::positions::<true>(given, channels);
    }

    #[target_feature(enable = "avx2,fma")]
    fn with_fma(given: &Given<'_>, channels: &mut Channels<'_, '_>) {
        super::positions::<true>(given, channels);
    }
}

#[inline(always)]
pub(super) fn positions<const FUSED: bool>(given: &Given<'_>, channels: &mut Channels<'_, '_>) {
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
                *result *= z / (1.0 + exp::<FUSED>(-z));
            }
        }
    }
}

/// `ln(1 + eˣ)`.
#[inline(always)]
fn softplus<const FUSED: bool>(x: &[f32], into: &mut [f32]) {
    let (chunks, rest) = x.as_chunks::<LANES>();
    let (into_chunks, into_rest) = into.as_chunks_mut::<LANES>();
    for (x, into) in chunks.iter().zip(into_chunks) {
        for lane in 0..LANES {
            into[lane] = x[lane].max(0.0) + log_plus_one::<FUSED>(exp::<FUSED>(-x[lane].abs()));
        }
    }
    for (x, into) in rest.iter().zip(into_rest) {
        *into = x.max(0.0) + log_plus_one::<FUSED>(exp::<FUSED>(-x.abs()));
    }
}

/// `ln(1 + x)` of a number between 0 and 1, within four units of the last place.
///
/// With s = x / (2 + x) it is 2·artanh(s), of which s is at most a third: a series of odd powers.
#[inline(always)]
pub(super) fn log_plus_one<const FUSED: bool>(x: f32) -> f32 {
    const TERMS: [f32; 7] = [2.0 / 13.0, 2.0 / 11.0, 2.0 / 9.0, 2.0 / 7.0, 2.0 / 5.0, 2.0 / 3.0, 2.0];
    let s = x / (2.0 + x);
    let square = s * s;
    let mut sum = 2.0 / 15.0;
    for term in TERMS {
        sum = fused::<FUSED>(sum, square, term);
    }
    s * sum
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
