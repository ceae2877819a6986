//! What F(4 × 4, 3 × 3) makes of tiles of an input, of weights, and of the sums of their products, for many at a time (Winograd's minimal
//! filtering; Lavin and Gray, arXiv:1509.09308).
//!
//! The polynomials are taken at 0, ±1/√2, ±√2 and infinity: the transforms' numbers are nearer to one than those of 0, ±1, ±2, and so
//! what rounding makes of them is smaller.

use std::f32::consts::{FRAC_1_SQRT_2, SQRT_2};

use super::Lanes;

/// Numbers of a tile of the result along an axis.
pub(in super::super) const SIDE: usize = 4;

/// Numbers of a tile of the input along an axis: as many products have a tile's sums along it.
pub(in super::super) const TAKEN: usize = 6;

/// The products of a tile.
pub(in super::super) const PRODUCTS: usize = TAKEN * TAKEN;

/// Numbers of a weight along an axis.
const SPAN: usize = 3;

/// Numbers of the weight between an input and an output channel.
pub(in super::super) const TAPS: usize = SPAN * SPAN;

/// As many tiles, or channels, are transformed at a time: a multiple of what any register holds.
pub(in super::super) const TOGETHER: usize = 16;

/// Tiles beside each other of one channel: of `lines` `[TAKEN, line]`, of which a tile begins at every fourth number, into
/// `into` `[PRODUCTS, rounded]`; `phases` is memory for as many numbers as lines have.
pub(in super::super) type Inputs = fn(lines: &[f32], tiles: usize, phases: &mut [f32], into: &mut [f32]);

/// Weights `[channels, TAPS]` of one channel of the result, into `into` `[PRODUCTS, ..]` whose rows lie `stride` apart and have room
/// for channels up to a multiple of [`TOGETHER`].
pub(in super::super) type Filters = fn(weights: &[f32], stride: usize, into: &mut [f32]);

/// Sums `[PRODUCTS, ..]`, whose rows lie `stride` apart, of so many tiles beside each other from `first` on, into lines of the result
/// `[SIDE, SIDE · rounded]`.
pub(in super::super) type Outputs =
    fn(sums: &[f32], stride: usize, first: usize, tiles: usize, into: &mut [f32]);

/// A way to transform tiles.
#[derive(Clone, Copy)]
pub(in super::super) struct Transforms {
    pub(in super::super) inputs: Inputs,
    pub(in super::super) filters: Filters,
    pub(in super::super) outputs: Outputs,
}

/// For processors whose instructions are not written out here.
pub(super) const PORTABLE: Transforms = Transforms {
    // SAFETY: they need no instructions of their own.
    inputs: |lines, tiles, phases, into| unsafe { inputs::<[f32; 4]>(lines, tiles, phases, into) },
    filters: |weights, stride, into| unsafe { filters::<[f32; 4]>(weights, stride, into) },
    outputs: |sums, stride, first, tiles, into| unsafe {
        outputs::<[f32; 4]>(sums, stride, first, tiles, into);
    },
};

/// Numbers that a line of so many tiles takes: those of one tile more, and up to a multiple of [`TOGETHER`].
pub(in super::super) fn line(tiles: usize) -> usize {
    SIDE * (rounded(tiles) + TOGETHER)
}

/// Tiles up to a multiple of [`TOGETHER`].
pub(in super::super) fn rounded(tiles: usize) -> usize {
    tiles.next_multiple_of(TOGETHER)
}

/// `a · x + y`.
///
/// # Safety
/// The processor must have the register's instructions.
#[inline(always)]
unsafe fn sum<V: Lanes>(a: f32, x: V, y: V) -> V {
    // SAFETY: the caller's.
    unsafe { y.add_product(V::splat(a), x) }
}

/// Along one axis of a tile of the input.
///
/// # Safety
/// As [`sum`].
#[inline(always)]
unsafe fn input<V: Lanes>(d: [V; TAKEN]) -> [V; TAKEN] {
    // SAFETY: the caller's.
    unsafe {
        let (near, far) = (sum(-2.0, d[2], d[4]), sum(-0.5, d[2], d[4]));
        let (odd, even) = (sum(-2.0, d[1], d[3]), sum(-0.5, d[1], d[3]));
        [
            sum(-2.5, d[2], d[0].add(d[4])),
            sum(FRAC_1_SQRT_2, odd, near),
            sum(-FRAC_1_SQRT_2, odd, near),
            sum(SQRT_2, even, far),
            sum(-SQRT_2, even, far),
            sum(-2.5, d[3], d[1].add(d[5])),
        ]
    }
}

/// Along one axis of a weight.
///
/// # Safety
/// As [`sum`].
#[inline(always)]
unsafe fn filter<V: Lanes>(g: [V; SPAN]) -> [V; TAKEN] {
    // SAFETY: the caller's.
    unsafe {
        let zero = V::splat(0.0);
        let near = sum(-2.0 / 3.0, g[0], sum(-1.0 / 3.0, g[2], zero));
        let far = sum(1.0 / 6.0, g[0], sum(1.0 / 3.0, g[2], zero));
        [
            g[0],
            sum(-SQRT_2 / 3.0, g[1], near),
            sum(SQRT_2 / 3.0, g[1], near),
            sum(SQRT_2 / 6.0, g[1], far),
            sum(-SQRT_2 / 6.0, g[1], far),
            g[2],
        ]
    }
}

/// Along one axis of the sums of products.
///
/// # Safety
/// As [`sum`].
#[inline(always)]
unsafe fn output<V: Lanes>(m: [V; TAKEN]) -> [V; SIDE] {
    // SAFETY: the caller's.
    unsafe {
        let zero = V::splat(0.0);
        let (near, near_odd) = (m[1].add(m[2]), sum(-1.0, m[2], m[1]));
        let (far, far_odd) = (m[3].add(m[4]), sum(-1.0, m[4], m[3]));
        [
            m[0].add(near.add(far)),
            sum(SQRT_2, far_odd, sum(FRAC_1_SQRT_2, near_odd, zero)),
            sum(2.0, far, sum(0.5, near, zero)),
            sum(2.0 * SQRT_2, far_odd, sum(FRAC_1_SQRT_2 / 2.0, near_odd, m[5])),
        ]
    }
}

/// The numbers of all columns in a row.
#[inline(always)]
fn across<V: Copy, const ROWS: usize, const COLUMNS: usize>(
    columns: &[[V; ROWS]; COLUMNS],
    row: usize,
) -> [V; COLUMNS] {
    let mut numbers = [columns[0][row]; COLUMNS];
    for (number, column) in numbers.iter_mut().zip(columns) {
        *number = column[row];
    }
    numbers
}

/// # Safety
/// As [`sum`].
#[inline(always)]
pub(super) unsafe fn inputs<V: Lanes>(lines: &[f32], tiles: usize, phases: &mut [f32], into: &mut [f32]) {
    let (line, tiles) = (line(tiles), rounded(tiles));
    let length = line / SIDE;
    let lines = &lines[..TAKEN * line];
    let phases = &mut phases[..TAKEN * line];
    assert!(into.len() >= PRODUCTS * tiles);
    // Every fourth number beside each other.
    for (line, phases) in lines.chunks_exact(line).zip(phases.chunks_exact_mut(line)) {
        for (at, numbers) in line.as_chunks::<{ SIDE * TOGETHER }>().0.iter().enumerate() {
            for phase in 0..SIDE {
                let mut beside = [0.0; TOGETHER];
                for (to, numbers) in beside.iter_mut().zip(numbers.as_chunks::<SIDE>().0) {
                    *to = numbers[phase];
                }
                phases[phase * length + at * TOGETHER..][..TOGETHER].copy_from_slice(&beside);
            }
        }
    }
    for tile in (0..tiles).step_by(V::LANES) {
        // SAFETY: the caller's; there is a register more behind the tiles of each line, and each product has as many as they are.
        unsafe {
            let zero = V::splat(0.0);
            let mut columns = [[zero; TAKEN]; TAKEN];
            for (place, column) in columns.iter_mut().enumerate() {
                let from = phases.as_ptr().add((place % SIDE) * length + tile + place / SIDE);
                let mut numbers = [zero; TAKEN];
                for (row, numbers) in numbers.iter_mut().enumerate() {
                    *numbers = V::load(from.add(row * line));
                }
                *column = input(numbers);
            }
            for row in 0..TAKEN {
                for (place, numbers) in input(across(&columns, row)).into_iter().enumerate() {
                    numbers.store(into.as_mut_ptr().add((row * TAKEN + place) * tiles + tile));
                }
            }
        }
    }
}

/// # Safety
/// As [`sum`].
#[inline(always)]
pub(super) unsafe fn filters<V: Lanes>(weights: &[f32], stride: usize, into: &mut [f32]) {
    let channels = (weights.len() / TAPS).next_multiple_of(TOGETHER);
    assert!(channels <= stride && into.len() >= (PRODUCTS - 1) * stride + channels);
    for (at, weights) in weights.chunks(TOGETHER * TAPS).enumerate() {
        let mut taps = [[0.0; TOGETHER]; TAPS];
        for (lane, weights) in weights.as_chunks::<TAPS>().0.iter().enumerate() {
            for (tap, weight) in taps.iter_mut().zip(weights) {
                tap[lane] = *weight;
            }
        }
        for part in (0..TOGETHER).step_by(V::LANES) {
            // SAFETY: the caller's; each row of products has room for all channels.
            unsafe {
                let zero = V::splat(0.0);
                let mut columns = [[zero; TAKEN]; SPAN];
                for (place, column) in columns.iter_mut().enumerate() {
                    let mut numbers = [zero; SPAN];
                    for (row, numbers) in numbers.iter_mut().enumerate() {
                        *numbers = V::load(taps[row * SPAN + place].as_ptr().add(part));
                    }
                    *column = filter(numbers);
                }
                for row in 0..TAKEN {
                    for (place, numbers) in filter(across(&columns, row)).into_iter().enumerate() {
                        let start = (row * TAKEN + place) * stride + at * TOGETHER + part;
                        numbers.store(into.as_mut_ptr().add(start));
                    }
                }
            }
        }
    }
}

/// # Safety
/// As [`sum`].
#[inline(always)]
pub(super) unsafe fn outputs<V: Lanes>(
    sums: &[f32],
    stride: usize,
    first: usize,
    tiles: usize,
    into: &mut [f32],
) {
    let tiles = rounded(tiles);
    assert!(sums.len() >= (PRODUCTS - 1) * stride + first + tiles);
    for tile in (0..tiles).step_by(TOGETHER) {
        let mut made = [[[0.0; TOGETHER]; SIDE]; SIDE];
        for part in (0..TOGETHER).step_by(V::LANES) {
            // SAFETY: the caller's; each row of sums has as many tiles from the first on.
            unsafe {
                let zero = V::splat(0.0);
                let mut columns = [[zero; SIDE]; TAKEN];
                for (place, column) in columns.iter_mut().enumerate() {
                    let from = sums.as_ptr().add(place * stride + first + tile + part);
                    let mut numbers = [zero; TAKEN];
                    for (row, numbers) in numbers.iter_mut().enumerate() {
                        *numbers = V::load(from.add(row * TAKEN * stride));
                    }
                    *column = output(numbers);
                }
                for (row, made) in made.iter_mut().enumerate() {
                    for (numbers, made) in output(across(&columns, row)).into_iter().zip(made) {
                        numbers.store(made.as_mut_ptr().add(part));
                    }
                }
            }
        }
        for (row, made) in made.iter().enumerate() {
            let line = &mut into[SIDE * (row * tiles + tile)..][..SIDE * TOGETHER];
            for (lane, line) in line.as_chunks_mut::<SIDE>().0.iter_mut().enumerate() {
                for (to, made) in line.iter_mut().zip(made) {
                    *to = made[lane];
                }
            }
        }
    }
}
