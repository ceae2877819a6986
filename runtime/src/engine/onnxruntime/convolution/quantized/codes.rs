//! An image in 8 bits, with the channels of a pixel beside each other.

use std::sync::{Mutex, PoisonError};

use super::super::windows::{Geometry, Task};
use super::tile::{Kernel, ROWS, Range, Steps};
use crate::quantization::panels::DEPTH;

/// Numbers whose range a thread looks for at a time.
const NUMBERS: usize = 1 << 16;

/// Pixels that a thread rounds at a time where rows are not told apart.
const PIXELS: usize = 512;

/// How many parts rounding is cut into at the most.
const PARTS: usize = 64;

/// The channels of all groups, one group after another, each pixel `[channels]` filled up to fours; around an image lie pixels
/// that stand for zero.
pub(super) struct Codes<'a> {
    pub(super) bytes: &'a [u8],
    /// Bytes of a pixel.
    pub(super) pixel: usize,
    /// Bytes of a group.
    pub(super) group: usize,
    pub(super) steps: Steps,
    /// What a step stands for; no number where the image has one that is not finite.
    pub(super) scale: f32,
}

/// How numbers of a range are rounded: zero is a step, so that what lies around an image is zero.
pub(super) fn steps(range: Range) -> (Steps, f32) {
    let scale = ((range.greatest - range.least) / 255.0).max(f32::MIN_POSITIVE);
    let factor = 1.0 / scale;
    let zero = (-range.least * factor).round_ties_even().clamp(0.0, 255.0);
    if !range.finite || !scale.is_finite() {
        return (Steps { factor: 0.0, zero: 0.0 }, f32::NAN);
    }
    (Steps { factor, zero }, scale)
}

impl<'a> Codes<'a> {
    /// Of an image `x` `[channels, ..lengths]`, into `bytes`; `each` carries out a task for each of so many parts.
    pub(super) fn new<E>(
        kernel: Kernel,
        geometry: &Geometry,
        x: &[f32],
        bytes: &'a mut Vec<u8>,
        each: impl Fn(usize, Task<'_>) -> Result<(), E>,
    ) -> Result<Self, E> {
        let parts: Vec<_> = x.chunks(NUMBERS).map(|x| (x, Mutex::new(Range::ZERO))).collect();
        each(parts.len(), &|part| {
            let (x, range) = &parts[part];
            *range.lock().unwrap_or_else(PoisonError::into_inner) = (kernel.range)(x);
        })?;
        let ranges =
            parts.into_iter().map(|(_, range)| range.into_inner().unwrap_or_else(PoisonError::into_inner));
        let (steps, scale) = steps(ranges.fold(Range::ZERO, Range::with));
        let pixel = geometry.channels.next_multiple_of(4);
        let group = geometry.padded().iter().product::<usize>() * pixel;
        // What is read beyond the last window has weights of zero.
        let count = geometry.groups * group;
        let needed = count + ROWS * pixel + DEPTH;
        if bytes.len() < needed {
            bytes.resize(needed, 0);
        }
        let rows = Rows { kernel, geometry, x, steps, pixel };
        rows.round(&mut bytes[..count], group, each)?;
        Ok(Self { bytes: &bytes[..needed], pixel, group, steps, scale })
    }
}

/// What rows of pixels are rounded from.
struct Rows<'a> {
    kernel: Kernel,
    geometry: &'a Geometry,
    x: &'a [f32],
    steps: Steps,
    pixel: usize,
}

impl Rows<'_> {
    fn round<E>(
        &self,
        bytes: &mut [u8],
        group: usize,
        each: impl Fn(usize, Task<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let whole = self.geometry.pads == [(0, 0); 3];
        let width = if whole { PIXELS } else { self.geometry.padded()[2] };
        let rows = bytes.chunks_mut(group.max(1)).enumerate().flat_map(|(group, bytes)| {
            bytes.chunks_mut(width * self.pixel).enumerate().map(move |(row, bytes)| (group, row, bytes))
        });
        let mut rows: Vec<_> = rows.collect();
        let step = rows.len().div_ceil(PARTS).max(1);
        let parts: Vec<_> = rows.chunks_mut(step).map(Mutex::new).collect();
        each(parts.len(), &|part| {
            for (group, row, bytes) in parts[part].lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
                match whole {
                    true => self.pixels(*group, *row * PIXELS, bytes),
                    false => self.padded(*group, *row, bytes),
                }
            }
        })
    }

    /// A row with the zeros around it.
    fn padded(&self, group: usize, row: usize, bytes: &mut [u8]) {
        let ([_, height, _], [deep, rows, columns]) = (self.geometry.padded(), self.geometry.lengths);
        let [(before, _), (above, _), (left, _)] = self.geometry.pads;
        let zero = self.steps.zero as u8;
        let at = ((row / height).checked_sub(before), (row % height).checked_sub(above));
        let (Some(depth), Some(line)) = at else { return bytes.fill(zero) };
        if depth >= deep || line >= rows {
            return bytes.fill(zero);
        }
        let (start, end) = (left * self.pixel, (left + columns) * self.pixel);
        bytes[..start].fill(zero);
        bytes[end..].fill(zero);
        self.pixels(group, (depth * rows + line) * columns, &mut bytes[start..end]);
    }

    /// Pixels that lie behind each other, from this one on.
    fn pixels(&self, group: usize, first: usize, bytes: &mut [u8]) {
        let plane: usize = self.geometry.lengths.iter().product();
        let x = &self.x[group * self.geometry.channels * plane + first..];
        (self.kernel.rounded)(x, plane, self.geometry.channels, self.steps, bytes, self.pixel);
    }
}
