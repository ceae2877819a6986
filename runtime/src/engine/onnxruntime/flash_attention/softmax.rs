//! The arithmetic of a row: products with keys, a softmax that goes on from block to block, sums of values.

use super::super::lanes::{LANES, added_up, by_halves, exp, fastest, fused};
use super::super::product::ask_for;

/// How many keys or values ahead they are asked for: they lie apart, which processors do not read ahead by themselves.
pub(super) const AHEAD: usize = 24;

/// What a row's softmax goes on from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    /// The highest score so far.
    pub highest: f32,
    /// Of exponentials of all scores less the highest.
    pub sum: f32,
    /// What is left of what was mixed before this block.
    pub factor: f32,
}

impl Default for Running {
    fn default() -> Self {
        Self { highest: f32::NEG_INFINITY, sum: 0.0, factor: 1.0 }
    }
}

impl Running {
    /// Adds what was mixed of other keys.
    pub(super) fn add(&mut self, other: &Self, mixed: &mut [f32], others: &[f32]) {
        let highest = self.highest.max(other.highest);
        let weight = |of: f32| if of == f32::NEG_INFINITY { 0.0 } else { (of - highest).exp() };
        let [own, theirs] = [self.highest, other.highest].map(weight);
        mixed.iter_mut().zip(others).for_each(|(mixed, other)| *mixed = *mixed * own + other * theirs);
        self.sum = self.sum * own + other.sum * theirs;
        self.highest = highest;
    }

    /// Makes shares of exponentials.
    pub(super) fn share_out(&self, mixed: &mut [f32]) {
        let share = if self.sum > 0.0 { self.sum.recip() } else { 0.0 };
        mixed.iter_mut().for_each(|number| *number *= share);
    }
}

/// Makes exponentials of the scores of a block, less the highest there was; the mask has one number for all or one for each.
pub(super) type Softmax = fn(&mut [f32], Option<&[f32]>, f32, &mut Running);

pub(super) fn softmax() -> Softmax {
    fastest!(exponentials: fn(scores: &mut [f32], mask: Option<&[f32]>, softcap: f32, running: &mut Running))
}

#[inline(always)]
fn exponentials<const FUSED: bool>(
    scores: &mut [f32],
    mask: Option<&[f32]>,
    softcap: f32,
    running: &mut Running,
) {
    if softcap != 0.0 {
        scores.iter_mut().for_each(|score| *score = softcap * tanh::<FUSED>(*score / softcap));
    }
    match mask {
        Some([same]) => scores.iter_mut().for_each(|score| *score += same),
        Some(mask) => scores.iter_mut().zip(mask).for_each(|(score, mask)| *score += mask),
        None => {}
    }
    let (before, highest) = (running.highest, running.highest.max(highest(scores)));
    // Scores of minus infinity alone have no shares in anything.
    let less = if highest == f32::NEG_INFINITY { 0.0 } else { highest };
    let mut sums = [0.0; LANES];
    let (chunks, rest) = scores.as_chunks_mut::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            chunk[lane] = exp::<FUSED>(chunk[lane] - less);
            sums[lane] += chunk[lane];
        }
    }
    if !rest.is_empty() {
        // As many lanes as the others: a loop whose length is not known would not stay in registers.
        let mut chunk = [f32::NEG_INFINITY; LANES];
        chunk[..rest.len()].copy_from_slice(rest);
        for lane in 0..LANES {
            chunk[lane] = exp::<FUSED>(chunk[lane] - less);
            sums[lane] += chunk[lane];
        }
        rest.copy_from_slice(&chunk[..rest.len()]);
    }
    let factor = if before == f32::NEG_INFINITY { 0.0 } else { exp::<FUSED>(before - less) };
    *running = Running { highest, sum: fused::<FUSED>(running.sum, factor, added_up(sums)), factor };
}

/// The highest number, that of each lane first.
#[inline(always)]
fn highest(scores: &[f32]) -> f32 {
    let higher = |a: f32, b: f32| if a > b { a } else { b };
    let (chunks, rest) = scores.as_chunks::<LANES>();
    let mut last = [f32::NEG_INFINITY; LANES];
    last[..rest.len()].copy_from_slice(rest);
    let mut most = [f32::NEG_INFINITY; LANES];
    for chunk in chunks.iter().chain([&last]) {
        for lane in 0..LANES {
            most[lane] = higher(chunk[lane], most[lane]);
        }
    }
    by_halves(most, higher)
}

/// The hyperbolic tangent (Cephes, `tanhf`): of small numbers by a polynomial, which exponentials would leave few places of.
#[inline(always)]
fn tanh<const FUSED: bool>(x: f32) -> f32 {
    const TERMS: [f32; 5] = [-5.704_989e-3, 2.063_909e-2, -5.373_971_6e-2, 1.333_144_2e-1, -3.333_328e-1];
    let square = x * x;
    let mut sum = TERMS[0];
    for term in &TERMS[1..] {
        sum = fused::<FUSED>(sum, square, *term);
    }
    let small = fused::<FUSED>(sum * square, x, x);
    let large = 1.0 - 2.0 / (exp::<FUSED>(2.0 * x.abs()) + 1.0);
    if x.abs() < 0.625 { small } else { large.copysign(x) }
}

/// Products of a row with keys that lie so far apart, while those of so many heads are asked for further on.
pub(super) type Dots = fn(q: &[f32], keys: &[f32], apart: [usize; 2], scores: &mut [f32]);

pub(super) fn dots() -> Dots {
    fastest!(each_dot: fn(q: &[f32], keys: &[f32], apart: [usize; 2], scores: &mut [f32]))
}

#[inline(always)]
fn each_dot<const FUSED: bool>(q: &[f32], keys: &[f32], [stride, asked]: [usize; 2], scores: &mut [f32]) {
    let (q_chunks, q_rest) = q.as_chunks::<LANES>();
    for (score, key) in scores.iter_mut().zip(keys.chunks(stride)) {
        ask_for(key.as_ptr().wrapping_add(AHEAD * stride), asked * size_of_val(q));
        let (chunks, rest) = key[..q.len()].as_chunks::<LANES>();
        let mut sums = [0.0; LANES];
        for (q, key) in q_chunks.iter().zip(chunks) {
            for lane in 0..LANES {
                sums[lane] = fused::<FUSED>(q[lane], key[lane], sums[lane]);
            }
        }
        for ((q, key), sum) in q_rest.iter().zip(rest).zip(&mut sums) {
            *sum = fused::<FUSED>(*q, *key, *sum);
        }
        *score = added_up(sums);
    }
}

/// Adds values that lie so far apart, by the shares that a row has in them, while those of so many heads are asked for further on.
pub(super) type Mixed = fn(shares: &[f32], values: &[f32], apart: [usize; 2], result: &mut [f32]);

pub(super) fn mixed() -> Mixed {
    fastest!(each_mixed: fn(shares: &[f32], values: &[f32], apart: [usize; 2], result: &mut [f32]))
}

#[inline(always)]
fn each_mixed<const FUSED: bool>(
    shares: &[f32],
    values: &[f32],
    [stride, asked]: [usize; 2],
    result: &mut [f32],
) {
    /// Numbers of a value whose sums stay in registers.
    const NEAR: usize = 4 * LANES;
    let size = result.len();
    let (chunks, rest) = result.as_chunks_mut::<NEAR>();
    for (place, result) in chunks.iter_mut().enumerate() {
        let mut sums = *result;
        for (share, value) in shares.iter().zip(values.chunks(stride)) {
            if place == 0 {
                ask_for(value.as_ptr().wrapping_add(AHEAD * stride), asked * size * size_of::<f32>());
            }
            let Some(value) = value[place * NEAR..].first_chunk::<NEAR>() else { continue };
            for lane in 0..NEAR {
                sums[lane] = fused::<FUSED>(*share, value[lane], sums[lane]);
            }
        }
        *result = sums;
    }
    let first = size - rest.len();
    for (share, value) in shares.iter().zip(values.chunks(stride)) {
        for (result, value) in rest.iter_mut().zip(&value[first..size]) {
            *result = fused::<FUSED>(*share, *value, *result);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tangents_are_exact_to_the_last_places() {
        for step in -200_000..=200_000 {
            let x = step as f32 * 5e-5;
            let wanted = f64::from(x).tanh();
            for found in [tanh::<true>(x), tanh::<false>(x)] {
                let off = (f64::from(found) - wanted).abs();
                assert!(off <= 2.5e-7 * wanted.abs(), "{x}: {found} for {wanted}");
            }
        }
        assert_eq!([tanh::<true>(-90.0), tanh::<true>(90.0)], [-1.0, 1.0]);
    }
}
