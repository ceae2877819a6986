//! States from one position to the next, in registers.

use super::{Given, LinearAttention};

/// Numbers that are computed side by side.
pub(in super::super) const LANES: usize = 16;

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
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        return with_fma::positions;
    }
    if cfg!(target_feature = "fma") || cfg!(target_arch = "aarch64") {
        positions::<true>
    } else {
        positions::<false>
    }
}

#[cfg(target_arch = "x86_64")]
mod with_fma {
    use super::{Given, Heads};

    /// As [`super::positions`], compiled for processors that multiply and add at once.
    #[allow(unsafe_code)]
    pub(super) fn positions(given: &Given<'_>, heads: &mut Heads<'_, '_>) {
        // SAFETY: only handed out where the processor has AVX2 and FMA.
        unsafe { compiled(given, heads) }
    }

    #[target_feature(enable = "avx2,fma")]
    fn compiled(given: &Given<'_>, heads: &mut Heads<'_, '_>) {
        super::positions::<true>(given, heads);
    }
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

/// The sum of all lanes, by halves: one after the other they would wait for each other.
#[inline(always)]
pub(in super::super) fn added_up(mut sums: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            sums[lane] += sums[lane + half];
        }
        half /= 2;
    }
    sums[0]
}

#[inline(always)]
pub(in super::super) fn fused<const FUSED: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

#[inline(always)]
fn exps<const FUSED: bool>(x: &[f32], into: &mut [f32]) {
    let (chunks, rest) = x.as_chunks::<LANES>();
    let (into_chunks, into_rest) = into.as_chunks_mut::<LANES>();
    for (x, into) in chunks.iter().zip(into_chunks) {
        for lane in 0..LANES {
            into[lane] = exp::<FUSED>(x[lane]);
        }
    }
    for (x, into) in rest.iter().zip(into_rest) {
        *into = exp::<FUSED>(*x);
    }
}

/// The exponential of a number, within two units of the last place; 0 below the least normal number.
///
/// A power of two by its bits, times a polynomial of what is left (Cephes, `expf`).
#[inline(always)]
pub(in super::super) fn exp<const FUSED: bool>(x: f32) -> f32 {
    const LEAST: f32 = -87.0;
    const MOST: f32 = 88.0;
    /// Added and taken off, it leaves a whole number.
    const WHOLE: f32 = 12_582_912.0;
    const TERMS: [f32; 6] =
        [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 5.0e-1];
    let within = x.clamp(LEAST, MOST);
    let shifted = fused::<FUSED>(within, std::f32::consts::LOG2_E, WHOLE);
    let power = shifted - WHOLE;
    let left = fused::<FUSED>(power, -0.693_359_4, within);
    let left = fused::<FUSED>(power, 2.121_944_4e-4, left);
    let mut sum = TERMS[0];
    for term in &TERMS[1..] {
        sum = fused::<FUSED>(sum, left, *term);
    }
    let sum = fused::<FUSED>(sum, left * left, left + 1.0);
    // The whole number stands in the lowest bits.
    let scale = f32::from_bits((shifted.to_bits().wrapping_add(127)) << 23);
    if x < LEAST { 0.0 } else { sum * scale }
}
