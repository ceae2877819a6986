//! What F(4 × 4, 3 × 3) makes of tiles of the input, of weights, and of the sums of their products, for many at a time.
//!
//! The polynomials are taken at 0, ±1/√2, ±√2 and infinity: the transforms' numbers are nearer to one than those of 0, ±1, ±2, and so
//! is what rounding makes of them.

use std::f32::consts::{FRAC_1_SQRT_2, SQRT_2};

use super::super::super::lanes::{LANES, fastest};

/// Numbers of a tile of the result along an axis.
pub(super) const SIDE: usize = 4;

/// Numbers of a tile of the input along an axis: as many products have a tile's sums along it.
pub(super) const TAKEN: usize = 6;

/// The products of a tile.
pub(super) const PRODUCTS: usize = TAKEN * TAKEN;

/// Numbers of the weight between an input and an output channel.
pub(super) const TAPS: usize = 9;

type Register = [f32; LANES];

/// `a · x + y`.
#[inline(always)]
fn sum<const FUSED: bool>(a: f32, x: Register, y: Register) -> Register {
    let mut sum = y;
    for lane in 0..LANES {
        sum[lane] = if FUSED { a.mul_add(x[lane], y[lane]) } else { a * x[lane] + y[lane] };
    }
    sum
}

#[inline(always)]
fn scaled(a: f32, mut x: Register) -> Register {
    x.iter_mut().for_each(|x| *x *= a);
    x
}

#[inline(always)]
fn loaded(from: &[f32]) -> Register {
    let mut register = [0.0; LANES];
    register.copy_from_slice(&from[..LANES]);
    register
}

/// Along one axis of a tile of the input.
#[inline(always)]
fn input<const FUSED: bool>(d: [Register; TAKEN]) -> [Register; TAKEN] {
    let sum = sum::<FUSED>;
    let near = sum(-2.0, d[2], d[4]);
    let far = sum(-0.5, d[2], d[4]);
    let odd = sum(-2.0, d[1], d[3]);
    let even = sum(-0.5, d[1], d[3]);
    [
        sum(-2.5, d[2], sum(1.0, d[0], d[4])),
        sum(FRAC_1_SQRT_2, odd, near),
        sum(-FRAC_1_SQRT_2, odd, near),
        sum(SQRT_2, even, far),
        sum(-SQRT_2, even, far),
        sum(-2.5, d[3], sum(1.0, d[1], d[5])),
    ]
}

/// Along one axis of a weight.
#[inline(always)]
fn filter<const FUSED: bool>(g: [Register; 3]) -> [Register; TAKEN] {
    let sum = sum::<FUSED>;
    let near = sum(-2.0 / 3.0, g[0], scaled(-1.0 / 3.0, g[2]));
    let far = sum(1.0 / 6.0, g[0], scaled(1.0 / 3.0, g[2]));
    [
        g[0],
        sum(-SQRT_2 / 3.0, g[1], near),
        sum(SQRT_2 / 3.0, g[1], near),
        sum(SQRT_2 / 6.0, g[1], far),
        sum(-SQRT_2 / 6.0, g[1], far),
        g[2],
    ]
}

/// Along one axis of the sums of products.
#[inline(always)]
fn output<const FUSED: bool>(m: [Register; TAKEN]) -> [Register; SIDE] {
    let sum = sum::<FUSED>;
    let (near, near_odd) = (sum(1.0, m[1], m[2]), sum(-1.0, m[2], m[1]));
    let (far, far_odd) = (sum(1.0, m[3], m[4]), sum(-1.0, m[4], m[3]));
    [
        sum(1.0, m[0], sum(1.0, near, far)),
        sum(SQRT_2, far_odd, scaled(FRAC_1_SQRT_2, near_odd)),
        sum(2.0, far, scaled(0.5, near)),
        sum(2.0 * SQRT_2, far_odd, sum(FRAC_1_SQRT_2 / 2.0, near_odd, m[5])),
    ]
}

/// Numbers that a line of so many tiles takes: those of one tile more, and up to a whole register.
pub(super) fn line(tiles: usize) -> usize {
    SIDE * (rounded(tiles) + LANES)
}

/// Tiles up to a whole register.
pub(super) fn rounded(tiles: usize) -> usize {
    tiles.next_multiple_of(LANES)
}

/// Tiles beside each other of one channel: of `lines` `[TAKEN, line]`, of which a tile begins at every fourth number, into
/// `into` `[PRODUCTS, rounded]`; `phases` is memory for as many numbers as lines have.
pub(super) type Inputs = fn(lines: &[f32], tiles: usize, phases: &mut [f32], into: &mut [f32]);

pub(super) fn inputs() -> Inputs {
    fastest!(each_input: fn(lines: &[f32], tiles: usize, phases: &mut [f32], into: &mut [f32]))
}

#[inline(always)]
fn each_input<const FUSED: bool>(lines: &[f32], tiles: usize, phases: &mut [f32], into: &mut [f32]) {
    let (line, tiles) = (line(tiles), rounded(tiles));
    let length = line / SIDE;
    // Every fourth number beside each other.
    for (line, phases) in lines.chunks_exact(line).zip(phases.chunks_exact_mut(line)) {
        for (at, numbers) in line.chunks_exact(SIDE * LANES).enumerate() {
            for phase in 0..SIDE {
                let to = &mut phases[phase * length + at * LANES..][..LANES];
                for lane in 0..LANES {
                    to[lane] = numbers[SIDE * lane + phase];
                }
            }
        }
    }
    for tile in (0..tiles).step_by(LANES) {
        let mut columns = [[[0.0; LANES]; TAKEN]; TAKEN];
        for (place, column) in columns.iter_mut().enumerate() {
            let from = (place % SIDE) * length + tile + place / SIDE;
            let mut numbers = [[0.0; LANES]; TAKEN];
            for (row, numbers) in numbers.iter_mut().enumerate() {
                *numbers = loaded(&phases[row * line + from..]);
            }
            *column = input::<FUSED>(numbers);
        }
        for row in 0..TAKEN {
            let mut numbers = [[0.0; LANES]; TAKEN];
            for (numbers, column) in numbers.iter_mut().zip(&columns) {
                *numbers = column[row];
            }
            for (place, numbers) in input::<FUSED>(numbers).iter().enumerate() {
                into[(row * TAKEN + place) * tiles + tile..][..LANES].copy_from_slice(numbers);
            }
        }
    }
}

/// Weights `[channels, TAPS]` of one channel of the result, into `into` `[PRODUCTS, ..]` whose rows lie `stride` apart and have room
/// for channels up to a whole register.
pub(super) type Filters = fn(weights: &[f32], stride: usize, into: &mut [f32]);

pub(super) fn filters() -> Filters {
    fastest!(each_filter: fn(weights: &[f32], stride: usize, into: &mut [f32]))
}

#[inline(always)]
fn each_filter<const FUSED: bool>(weights: &[f32], stride: usize, into: &mut [f32]) {
    for (at, weights) in weights.chunks(LANES * TAPS).enumerate() {
        let mut taps = [[0.0; LANES]; TAPS];
        for (lane, weights) in weights.chunks_exact(TAPS).enumerate() {
            for (tap, weight) in taps.iter_mut().zip(weights) {
                tap[lane] = *weight;
            }
        }
        let mut columns = [[[0.0; LANES]; TAKEN]; 3];
        for (place, column) in columns.iter_mut().enumerate() {
            *column = filter::<FUSED>([taps[place], taps[3 + place], taps[6 + place]]);
        }
        let [left, middle, right] = &columns;
        for (row, ((left, middle), right)) in left.iter().zip(middle).zip(right).enumerate() {
            let numbers = filter::<FUSED>([*left, *middle, *right]);
            for (place, numbers) in numbers.iter().enumerate() {
                let start = (row * TAKEN + place) * stride + at * LANES;
                into[start..start + LANES].copy_from_slice(numbers);
            }
        }
    }
}

/// Sums `[PRODUCTS, ..]`, whose rows lie `stride` apart, of so many tiles beside each other from `first` on, into lines of the result
/// `[SIDE, SIDE · rounded]`.
pub(super) type Outputs = fn(sums: &[f32], stride: usize, first: usize, tiles: usize, into: &mut [f32]);

pub(super) fn outputs() -> Outputs {
    fastest!(each_output: fn(sums: &[f32], stride: usize, first: usize, tiles: usize, into: &mut [f32]))
}

#[inline(always)]
fn each_output<const FUSED: bool>(sums: &[f32], stride: usize, first: usize, tiles: usize, into: &mut [f32]) {
    let tiles = rounded(tiles);
    for tile in (0..tiles).step_by(LANES) {
        let mut columns = [[[0.0; LANES]; SIDE]; TAKEN];
        for (place, column) in columns.iter_mut().enumerate() {
            let mut numbers = [[0.0; LANES]; TAKEN];
            for (row, numbers) in numbers.iter_mut().enumerate() {
                *numbers = loaded(&sums[(row * TAKEN + place) * stride + first + tile..]);
            }
            *column = output::<FUSED>(numbers);
        }
        for row in 0..SIDE {
            let mut numbers = [[0.0; LANES]; TAKEN];
            for (numbers, column) in numbers.iter_mut().zip(&columns) {
                *numbers = column[row];
            }
            let numbers = output::<FUSED>(numbers);
            let line = &mut into[SIDE * (row * tiles + tile)..][..SIDE * LANES];
            for lane in 0..LANES {
                for place in 0..SIDE {
                    line[SIDE * lane + place] = numbers[place][lane];
                }
            }
        }
    }
}
