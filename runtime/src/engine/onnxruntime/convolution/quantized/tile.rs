//! Products of windows and weights of 8 bits in whole numbers, in the processor's registers.
//!
//! Weights lie in panels of 16 channels of the result, four places of the depth beside each other: `[depth / 4, 16, 4]`. That is
//! how `vpdpbusd` reads a register of them, and AMX a tile.

#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod x86;

use super::super::super::lanes::silu;
use super::product::ROW;
use crate::quantization::panels::CHANNELS;

/// Windows that are multiplied at a time.
pub(super) const ROWS: usize = 32;

/// Panels that are multiplied at a time, at the most.
pub(super) const PANELS: usize = 8;

/// Sums of one window, by channel.
pub(super) type Sums = [i32; CHANNELS];

/// The products of [`ROWS`] windows of unsigned bytes, which lie `stride` apart, with some panels of signed ones of this depth:
/// of each panel all windows' sums. There is room for an even number of panels.
pub(super) type Products =
    fn(windows: &[u8], stride: usize, depth: usize, panels: &[u8], sums: &mut [[Sums; ROWS]]);

/// What becomes of sums, by channel: `(sum − zero) · factor + summand`.
#[derive(Clone, Copy, Default)]
pub(super) struct Scales {
    pub(super) zeros: Sums,
    pub(super) factors: [f32; CHANNELS],
    pub(super) summands: [f32; CHANNELS],
}

/// Writes what becomes of the sums of 16 windows into rows of their channels, from a place on.
pub(super) type Scaled = fn(sums: &[Sums; 16], scales: &Scales, rows: &mut [[f32; ROW]; CHANNELS], at: usize);

/// A way to multiply.
#[derive(Clone, Copy)]
pub(super) struct Kernel {
    pub(super) products: Products,
    /// Sums of 16 windows in single precision.
    pub(super) scaled: Scaled,
    /// Numbers as bytes: `x · factor + zero`, rounded to the nearest, even at halves.
    pub(super) rounded: Rounded,
    pub(super) range: fn(x: &[f32]) -> Range,
    /// Numbers multiplied with their sigmoid.
    pub(super) silu: fn(numbers: &mut [f32]),
}

/// Pixels of these channels, which lie `plane` apart, to as many bytes `pixel` as there are; of channels that are not there, anything.
pub(super) type Rounded =
    fn(x: &[f32], plane: usize, channels: usize, steps: Steps, to: &mut [u8], pixel: usize);

/// The least and the greatest of some numbers, and whether all are finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Range {
    pub(super) least: f32,
    pub(super) greatest: f32,
    pub(super) finite: bool,
}

impl Range {
    /// That of zero alone.
    pub(super) const ZERO: Self = Self { least: 0.0, greatest: 0.0, finite: true };

    /// The one that holds both.
    pub(super) fn with(self, other: Self) -> Self {
        Self {
            least: self.least.min(other.least),
            greatest: self.greatest.max(other.greatest),
            finite: self.finite && other.finite,
        }
    }
}

/// The steps of 8 bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Steps {
    pub(super) factor: f32,
    pub(super) zero: f32,
}

/// The fastest way that this processor has.
pub(super) fn kernel() -> Kernel {
    #[cfg(target_arch = "x86_64")]
    if let Some(kernel) = x86::kernels().last() {
        return *kernel;
    }
    PORTABLE
}

/// All ways that this processor has, the plain one first.
#[cfg(test)]
pub(super) fn kernels() -> Vec<Kernel> {
    #[allow(unused_mut)]
    let mut kernels = vec![PORTABLE];
    #[cfg(target_arch = "x86_64")]
    kernels.extend(x86::kernels());
    kernels
}

/// For processors whose instructions are not written out here.
pub(super) const PORTABLE: Kernel = Kernel {
    products: plain_products,
    scaled: plain_scaled,
    rounded: plain_rounded,
    range: plain_range,
    silu: plain_silu::<false>,
};

#[inline(always)]
fn plain_products(windows: &[u8], stride: usize, depth: usize, panels: &[u8], sums: &mut [[Sums; ROWS]]) {
    for (panel, sums) in panels.chunks_exact(depth * CHANNELS).zip(sums) {
        for (row, sums) in sums.iter_mut().enumerate() {
            *sums = [0; CHANNELS];
            let window = &windows[row * stride..][..depth];
            for (four, weights) in window.as_chunks::<4>().0.iter().zip(panel.as_chunks::<64>().0) {
                for (sum, weights) in sums.iter_mut().zip(weights.as_chunks::<4>().0) {
                    let products = four.iter().zip(weights).map(|(x, w)| i32::from(*x) * i32::from(*w as i8));
                    *sum += products.sum::<i32>();
                }
            }
        }
    }
}

fn plain_scaled(sums: &[Sums; 16], scales: &Scales, rows: &mut [[f32; ROW]; CHANNELS], at: usize) {
    for (window, sums) in sums.iter().enumerate() {
        for (channel, row) in rows.iter_mut().enumerate() {
            let sum = sums[channel].wrapping_sub(scales.zeros[channel]) as f32;
            row[at + window] = sum * scales.factors[channel] + scales.summands[channel];
        }
    }
}

/// Pixels that are rounded at a time, and channels by fours: a line of the cache of each pixel.
const STRIP: usize = 256;
const FOURS: usize = 16;

#[inline(always)]
fn plain_rounded(x: &[f32], plane: usize, channels: usize, steps: Steps, to: &mut [u8], pixel: usize) {
    let mut fours = [[0_u32; STRIP]; FOURS];
    for (strip, to) in to.chunks_mut(STRIP * pixel).enumerate() {
        let taken = to.len() / pixel;
        for first in (0..pixel / 4).step_by(FOURS) {
            for (four, bytes) in (first..pixel / 4).zip(&mut fours) {
                for channel in 4 * four..channels.min(4 * four + 4) {
                    let (x, shift) = (&x[channel * plane + strip * STRIP..][..taken], channel % 4 * 8);
                    let places = bytes.iter_mut().zip(x);
                    match shift {
                        0 => places.for_each(|(bytes, x)| *bytes = code(*x, steps)),
                        _ => places.for_each(|(bytes, x)| *bytes |= code(*x, steps) << shift),
                    }
                }
            }
            for (place, to) in to.chunks_exact_mut(pixel).enumerate() {
                let (to, _) = to[4 * first..].as_chunks_mut::<4>();
                to.iter_mut().zip(&fours).for_each(|(to, four)| *to = four[place].to_le_bytes());
            }
        }
    }
}

/// The byte of a number.
#[inline(always)]
fn code(x: f32, steps: Steps) -> u32 {
    /// Single precision has no bits below one here: sums are rounded to the nearest whole number.
    const WHOLE: f32 = 8_388_608.0;
    let place = (x * steps.factor + steps.zero).clamp(0.0, 255.0);
    (place + WHOLE).to_bits() & 0xff
}

/// The range of some numbers and zero.
#[inline(always)]
fn plain_range(x: &[f32]) -> Range {
    const LANES: usize = 32;
    let (mut least, mut greatest, mut odd) = ([0.0_f32; LANES], [0.0_f32; LANES], [0_u32; LANES]);
    let mut take = |lane: usize, x: f32| {
        least[lane] = if x < least[lane] { x } else { least[lane] };
        greatest[lane] = if x > greatest[lane] { x } else { greatest[lane] };
        odd[lane] |= u32::from(x.to_bits() & 0x7f80_0000 == 0x7f80_0000);
    };
    let (all, rest) = x.as_chunks::<LANES>();
    all.iter().for_each(|x| x.iter().enumerate().for_each(|(lane, x)| take(lane, *x)));
    rest.iter().enumerate().for_each(|(lane, x)| take(lane, *x));
    Range {
        least: least.into_iter().fold(0.0, f32::min),
        greatest: greatest.into_iter().fold(0.0, f32::max),
        finite: odd == [0; LANES],
    }
}

#[inline(always)]
fn plain_silu<const FUSED: bool>(numbers: &mut [f32]) {
    numbers.iter_mut().for_each(|x| *x = silu::<FUSED>(*x));
}
