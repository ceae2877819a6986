//! The windows of an input, side by side (`im2col`): of each position of the result what it is the sum of.

use std::sync::{Mutex, PoisonError};

use super::super::lanes::fastest;
use super::super::panel::Kernel;
use super::super::stored::rounded;
use super::product::Chunk;

/// Channels that a thread copies at a time.
const CHANNELS: usize = 16;

/// What is to be done with each part.
pub(super) type Task<'a> = &'a (dyn Fn(usize) + Sync + Send);

/// What a convolution is between: three axes of lengths, of which those in front may be of one element.
#[derive(Debug)]
pub(super) struct Geometry {
    pub(super) batch: usize,
    /// Of one group.
    pub(super) channels: usize,
    /// Channels of the result of one group.
    pub(super) out: usize,
    pub(super) groups: usize,
    pub(super) lengths: [usize; 3],
    pub(super) kernel: [usize; 3],
    pub(super) strides: [usize; 3],
    pub(super) dilations: [usize; 3],
    /// Zeros before and behind.
    pub(super) pads: [(usize, usize); 3],
    /// Lengths of the result.
    pub(super) positions: [usize; 3],
}

impl Geometry {
    /// Of `x` and `weight` of these shapes; an empty list of strides or dilations are ones, and of pads zeros.
    pub(super) fn new(
        x: &[i64],
        weight: &[i64],
        strides: &[i64],
        pads: &[i64],
        dilations: &[i64],
        groups: i64,
    ) -> Result<Self, String> {
        let wrong = || format!("a convolution of {x:?} by {weight:?} in {groups} groups is none");
        let size = |size: i64| usize::try_from(size).map_err(|_| wrong());
        let axes = x.len().saturating_sub(2);
        let groups = size(groups)?;
        if !(1..=3).contains(&axes) || weight.len() != x.len() || groups == 0 {
            return Err(wrong());
        }
        let mut it = Self {
            batch: size(x[0])?,
            channels: size(weight[1])?,
            out: size(weight[0])? / groups,
            groups,
            lengths: [1; 3],
            kernel: [1; 3],
            strides: [1; 3],
            dilations: [1; 3],
            pads: [(0, 0); 3],
            positions: [1; 3],
        };
        if size(x[1])? != it.channels * groups || size(weight[0])? != it.out * groups {
            return Err(wrong());
        }
        for axis in 0..axes {
            let at = 3 - axes + axis;
            let of = |list: &[i64], axis: usize, default| list.get(axis).map_or(Ok(default), |it| size(*it));
            it.lengths[at] = size(x[2 + axis])?;
            it.kernel[at] = size(weight[2 + axis])?;
            it.strides[at] = of(strides, axis, 1)?.max(1);
            it.dilations[at] = of(dilations, axis, 1)?.max(1);
            it.pads[at] = (of(pads, axis, 0)?, of(pads, axes + axis, 0)?);
            let taken = it.kernel[at].checked_sub(1).ok_or_else(wrong)? * it.dilations[at] + 1;
            let rest = it.padded()[at].checked_sub(taken).ok_or_else(wrong)?;
            it.positions[at] = rest / it.strides[at] + 1;
        }
        Ok(it)
    }

    /// Positions of the result, of one image and channel.
    pub(super) fn places(&self) -> usize {
        self.positions.iter().product()
    }

    /// Products of which one number of the result is the sum.
    pub(super) fn depth(&self) -> usize {
        self.channels * self.kernel.iter().product::<usize>()
    }

    /// Lengths with the zeros around them.
    pub(super) fn padded(&self) -> [usize; 3] {
        std::array::from_fn(|axis| self.lengths[axis] + self.pads[axis].0 + self.pads[axis].1)
    }

    /// Where the window of a position begins in a padded channel.
    pub(super) fn start(&self, position: usize) -> usize {
        let [_, rows, columns] = self.positions;
        let [depth, row, column] =
            [position / (rows * columns), position / columns % rows, position % columns];
        let [_, height, width] = self.padded();
        (depth * self.strides[0] * height + row * self.strides[1]) * width + column * self.strides[2]
    }

    /// How far from its beginning what a window has lies, in the order of the weight.
    pub(super) fn offsets(&self) -> Vec<usize> {
        let ([deep, high, wide], [_, height, width]) = (self.kernel, self.padded());
        let mut offsets = vec![];
        for depth in 0..deep {
            for row in 0..high {
                let row = (depth * self.dilations[0] * height + row * self.dilations[1]) * width;
                offsets.extend((0..wide).map(|column| row + column * self.dilations[2]));
            }
        }
        offsets
    }
}

/// Memory that one convolution leaves to the next: what is new has to be cleared by the system first.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) padded: Vec<f32>,
    pub(super) laid: Laid,
}

impl Scratch {
    /// Numbers that it holds.
    pub(super) fn numbers(&self) -> usize {
        self.padded.capacity() + self.laid.panels.capacity() + self.laid.rest.capacity()
    }
}

/// The windows of a chunk.
#[derive(Default)]
pub(super) struct Laid {
    /// A panel each `[depth, columns]`: the windows of positions beside each other. Behind the last row is room for one more.
    pub(super) panels: Vec<f32>,
    /// A row each `[depth]`: the windows of positions that are left over.
    pub(super) rest: Vec<f32>,
}

impl Laid {
    /// Lays the two numbers of each column, of each two rows of so many panels, in bfloat16 into one of 32 bits: rows of a panel are half
    /// as many then. `each` carries out a task for each of so many parts.
    pub(super) fn pair<E>(
        &mut self,
        count: usize,
        kernel: Kernel,
        depth: usize,
        each: impl FnOnce(usize, Task<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let panels = self.panels.chunks_exact_mut(kernel.panel(depth)).take(count);
        let parts: Vec<_> = panels.map(Mutex::new).collect();
        let pair = pairing();
        each(parts.len(), &|part| {
            let mut panel = parts[part].lock().unwrap_or_else(PoisonError::into_inner);
            for row in 0..depth / 2 {
                let (before, from) = panel.split_at_mut(2 * row * kernel.columns);
                let (first, second) = from.split_at_mut(kernel.columns);
                match before.get_mut(row * kernel.columns..(row + 1) * kernel.columns) {
                    Some(to) => pair(first, &second[..kernel.columns], to),
                    None => {
                        let own = first.to_vec();
                        pair(&own, &second[..kernel.columns], first);
                    }
                }
            }
        })
    }
}

/// Rounds two numbers to bfloat16, the first into the lower half of 32 bits, the fastest way that this processor has.
fn pairing() -> fn(&[f32], &[f32], &mut [f32]) {
    fastest!(each_paired: fn(first: &[f32], second: &[f32], pairs: &mut [f32]))
}

#[inline(always)]
fn each_paired<const FUSED: bool>(first: &[f32], second: &[f32], pairs: &mut [f32]) {
    for ((first, second), pair) in first.iter().zip(second).zip(pairs) {
        let [first, second] = [*first, *second].map(|number| u32::from(rounded(number).to_bits()));
        *pair = f32::from_bits(second << 16 | first);
    }
}

/// So many numbers, of any value.
pub(super) fn sized(numbers: &mut Vec<f32>, count: usize) -> &mut [f32] {
    if numbers.len() < count {
        numbers.resize(count, 0.0);
    }
    &mut numbers[..count]
}

/// The channels of all images, with the zeros around them.
pub(super) struct Windows<'a> {
    geometry: &'a Geometry,
    padded: &'a [f32],
    offsets: Vec<usize>,
}

impl<'a> Windows<'a> {
    /// Of `x`, which is copied into `padded` where there are zeros around it; `each` carries out a task for each of so many
    /// parts.
    pub(super) fn new<E>(
        geometry: &'a Geometry,
        x: &'a [f32],
        padded: &'a mut Vec<f32>,
        each: impl FnOnce(usize, Task<'_>) -> Result<(), E>,
    ) -> Result<Self, E> {
        let offsets = geometry.offsets();
        if geometry.pads == [(0, 0); 3] {
            return Ok(Self { geometry, padded: x, offsets });
        }
        let ([deep, height, width], [_, rows, columns]) = (geometry.padded(), geometry.lengths);
        let ([(before, _), (above, _), (left, _)], plane) = (geometry.pads, deep * height * width);
        let count = geometry.batch * geometry.channels * geometry.groups * plane;
        let padded = sized(padded, count);
        let lengths: usize = geometry.lengths.iter().product();
        let channels =
            padded.chunks_mut((CHANNELS * plane).max(1)).zip(x.chunks((CHANNELS * lengths).max(1)));
        let parts: Vec<_> = channels.map(Mutex::new).collect();
        each(parts.len(), &|part| {
            let mut part = parts[part].lock().unwrap_or_else(PoisonError::into_inner);
            let (padded, x) = &mut *part;
            for (padded, x) in padded.chunks_exact_mut(plane).zip(x.chunks_exact(lengths)) {
                padded.fill(0.0);
                for (at, row) in x.chunks_exact(columns).enumerate() {
                    let start = ((before + at / rows) * height + above + at % rows) * width + left;
                    padded[start..start + columns].copy_from_slice(row);
                }
            }
        })?;
        drop(parts);
        Ok(Self { geometry, padded, offsets })
    }

    /// The windows of a chunk of one group; `each` carries out a task for each of so many parts.
    pub(super) fn lay<E>(
        &self,
        group: usize,
        chunk: &Chunk,
        kernel: Kernel,
        laid: &mut Laid,
        each: impl FnOnce(usize, Task<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let depth = self.geometry.depth();
        let panels = sized(&mut laid.panels, chunk.panels.len() * kernel.panel(depth));
        let parts: Vec<_> = panels.chunks_exact_mut(kernel.panel(depth)).map(Mutex::new).collect();
        each(parts.len(), &|part| {
            let mut panel = parts[part].lock().unwrap_or_else(PoisonError::into_inner);
            let columns = &chunk.panels[part];
            let positions = columns.first..columns.first + columns.count;
            let starts: Vec<usize> = positions.map(|position| self.geometry.start(position)).collect();
            match kernel.columns {
                8 => self.panel::<8>(group, columns.image, &starts, &mut panel),
                16 => self.panel::<16>(group, columns.image, &starts, &mut panel),
                _ => self.panel::<32>(group, columns.image, &starts, &mut panel),
            }
        })?;
        let rest = sized(&mut laid.rest, chunk.rest.len() * depth);
        for (row, (image, position)) in rest.chunks_exact_mut(depth.max(1)).zip(&chunk.rest) {
            let start = self.geometry.start(*position);
            let channels = row.chunks_exact_mut(self.offsets.len());
            for (row, x) in channels.zip(self.channels(group, *image)) {
                row.iter_mut().zip(&self.offsets).for_each(|(to, offset)| *to = x[start + offset]);
            }
        }
        Ok(())
    }

    /// The padded channels of a group of an image, each with all that lies behind it.
    fn channels(&self, group: usize, image: usize) -> impl Iterator<Item = &[f32]> {
        let plane = self.geometry.padded().iter().product::<usize>();
        let first = (image * self.geometry.groups + group) * self.geometry.channels;
        (first..first + self.geometry.channels).map(move |channel| &self.padded[channel * plane..])
    }

    /// Of windows that begin at these places: a row for each channel and place of the kernel.
    fn panel<const COLUMNS: usize>(&self, group: usize, image: usize, starts: &[usize], panel: &mut [f32]) {
        let runs = runs(starts);
        let mut row = 0;
        for x in self.channels(group, image) {
            for offset in &self.offsets {
                if runs.len() * 4 <= COLUMNS {
                    // What a run has too much, the next one or the next row takes the place of.
                    for (column, start) in &runs {
                        let to = row + column;
                        let x = &x[start + offset..];
                        // Of a length that the compiler knows, all but at the end.
                        match (panel[to..].first_chunk_mut::<COLUMNS>(), x.first_chunk::<COLUMNS>()) {
                            (Some(to), Some(x)) => *to = *x,
                            _ => panel[to..]
                                .iter_mut()
                                .zip(x.iter().take(COLUMNS))
                                .for_each(|(to, x)| *to = *x),
                        }
                    }
                } else {
                    let columns = &mut panel[row..row + starts.len()];
                    columns.iter_mut().zip(starts).for_each(|(to, start)| *to = x[start + offset]);
                }
                row += COLUMNS;
            }
        }
    }
}

/// Where places begin that lie beside each other: the column, and the first place.
fn runs(starts: &[usize]) -> Vec<(usize, usize)> {
    let begins = |at: &usize| *at == 0 || starts[*at] != starts[at - 1] + 1;
    (0..starts.len()).filter(begins).map(|at| (at, starts[at])).collect()
}
