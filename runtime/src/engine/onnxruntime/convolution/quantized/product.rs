//! The products of an image's windows with all weights, cut into parts that threads take in any order.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::super::product::Epilogue;
use super::super::windows::Geometry;
use super::codes::Codes;
use super::tile::{Kernel, PANELS, ROWS, Scales};
use crate::quantization::panels::{self, CHANNELS, DEPTH};

/// Bytes of windows of a part at the most: they stay in the second cache while weights pass.
const BYTES: usize = 512 * 1024;

/// Positions of a part at the most.
const POSITIONS: usize = 256;

/// How many parts there are to be at least, so that all threads have some.
const PARTS: usize = 16;

/// The numbers of a channel of a part. Rows are an odd number of lines of the cache apart, so that they do not take each other's place.
pub(super) const ROW: usize = POSITIONS + 16;

thread_local! {
    /// Numbers of some panels, by channel.
    static SCALED: RefCell<Vec<[f32; ROW]>> = RefCell::default();
    /// Windows, which one part leaves to the next.
    static WINDOWS: RefCell<Vec<u8>> = RefCell::default();
}

/// A weight in panels.
pub(super) struct Weight<'a> {
    codes: &'a [u8],
    scales: &'a [f32],
    /// What the codes of a channel add up to.
    sums: &'a [f32],
}

impl<'a> Weight<'a> {
    /// For a convolution of this form.
    pub(super) fn new(
        geometry: &Geometry,
        codes: &'a [u8],
        scales: &'a [f32],
        sums: &'a [f32],
    ) -> Result<Self, String> {
        let (out, groups) = (geometry.out, geometry.groups);
        let depth = depth(geometry);
        let wanted = groups * out.div_ceil(CHANNELS) * CHANNELS * depth;
        if codes.len() != wanted || scales.len() != out * groups || sums.len() != scales.len() {
            let (codes, scales, sums) = (codes.len(), scales.len(), sums.len());
            return Err(format!(
                "a convolution of {out} channels in {groups} groups by windows of {depth} got {codes} codes, {scales} scales \
                 and {sums} sums"
            ));
        }
        Ok(Self { codes, scales, sums })
    }
}

fn depth(geometry: &Geometry) -> usize {
    panels::depth(geometry.channels, geometry.kernel.iter().product())
}

/// What becomes of sums.
#[derive(Clone, Copy)]
pub(super) struct Follow<'a> {
    pub(super) epilogue: &'a Epilogue<'a>,
    /// Whether numbers are multiplied with their sigmoid behind that.
    pub(super) silu: bool,
}

/// How a convolution is cut into parts.
pub(super) struct Plan {
    depth: usize,
    /// From one window to the next: lines of the cache whose number is odd, so that windows do not take each other's place there.
    stride: usize,
    /// Positions of a part, a multiple of [`ROWS`].
    positions: usize,
    /// Parts of an image's positions.
    rows: usize,
    /// Panels of a part, and parts of a group's panels.
    panels: usize,
    columns: usize,
    /// Bytes of a window that lie beside each other: where they begin, in pixels, and how many pixels they are.
    runs: Vec<(usize, usize)>,
    /// Whether windows are pixels that lie well in the cache.
    direct: bool,
}

impl Plan {
    pub(super) fn of(geometry: &Geometry) -> Self {
        let (depth, places) = (depth(geometry), geometry.places());
        let most = (BYTES / depth / ROWS * ROWS).clamp(ROWS, POSITIONS);
        let even = places.div_ceil(PARTS.div_ceil(geometry.groups)).next_multiple_of(ROWS);
        let positions = most.min(even.max(ROWS));
        let rows = places.div_ceil(positions);
        let all = geometry.out.div_ceil(CHANNELS);
        let columns = PARTS.div_ceil((rows * geometry.groups).max(1)).min(all.div_ceil(2)).max(1);
        // Panels are multiplied by twos.
        let panels = all.div_ceil(columns).next_multiple_of(2);
        let columns = all.div_ceil(panels);
        let mut runs: Vec<(usize, usize)> = vec![];
        for offset in geometry.offsets() {
            match runs.last_mut() {
                Some((start, length)) if *start + *length == offset => *length += 1,
                _ => runs.push((offset, 1)),
            }
        }
        let apart = !geometry.channels.next_multiple_of(4).is_multiple_of(8 * DEPTH);
        let direct = runs == [(0, 1)] && geometry.strides == [1; 3] && geometry.pads == [(0, 0); 3] && apart;
        let stride = if depth.is_multiple_of(2 * DEPTH) { depth + DEPTH } else { depth };
        Self { depth, stride, positions, rows, panels, columns, runs, direct }
    }
}

/// A part's channels of the result, of its positions.
type Rows<'a> = Mutex<Vec<&'a mut [f32]>>;

pub(super) struct Product<'a> {
    kernel: Kernel,
    geometry: &'a Geometry,
    plan: &'a Plan,
    weight: &'a Weight<'a>,
    codes: &'a Codes<'a>,
    follow: Follow<'a>,
    image: usize,
    /// By group, part of its panels and part of the positions.
    parts: Vec<Rows<'a>>,
}

impl<'a> Product<'a> {
    #[expect(clippy::too_many_arguments, reason = "a product of two, and what becomes of it")]
    pub(super) fn new(
        kernel: Kernel,
        geometry: &'a Geometry,
        plan: &'a Plan,
        weight: &'a Weight<'a>,
        codes: &'a Codes<'a>,
        follow: Follow<'a>,
        image: usize,
        result: &'a mut [f32],
    ) -> Self {
        let mut parts: Vec<Vec<&mut [f32]>> = vec![];
        parts.resize_with(geometry.groups * plan.columns * plan.rows, Vec::new);
        for (channel, row) in result.chunks_exact_mut(geometry.places()).enumerate() {
            let (group, channel) = (channel / geometry.out, channel % geometry.out);
            let first = (group * plan.columns + channel / (plan.panels * CHANNELS)) * plan.rows;
            for (part, row) in parts[first..].iter_mut().zip(row.chunks_mut(plan.positions)) {
                part.push(row);
            }
        }
        let parts = parts.into_iter().map(Mutex::new).collect();
        Self { kernel, geometry, plan, weight, codes, follow, image, parts }
    }

    /// How many parts there are to compute.
    pub(super) fn parts(&self) -> usize {
        self.parts.len()
    }

    pub(super) fn compute(&self, part: usize) {
        let (column, row) = (part / self.plan.rows, part % self.plan.rows);
        let (group, column) = (column / self.plan.columns, column % self.plan.columns);
        let first = row * self.plan.positions;
        let positions = first..self.geometry.places().min(first + self.plan.positions);
        let mut rows = self.parts[part].lock().unwrap_or_else(PoisonError::into_inner);
        let group_bytes = &self.codes.bytes[group * self.codes.group..];
        let first = column * self.plan.panels;
        if self.plan.direct {
            let windows = &group_bytes[positions.start * self.codes.pixel..];
            return self.panels(windows, self.codes.pixel, group, first, positions, &mut rows);
        }
        let mut windows = WINDOWS.take();
        self.lay(group_bytes, positions.clone(), &mut windows);
        self.panels(&windows, self.plan.stride, group, first, positions, &mut rows);
        WINDOWS.set(windows);
    }

    /// The windows of some positions, each behind the one before.
    fn lay(&self, codes: &[u8], positions: Range<usize>, windows: &mut Vec<u8>) {
        let needed = positions.len().next_multiple_of(ROWS) * self.plan.stride;
        if windows.len() < needed {
            windows.resize(needed, 0);
        }
        let pixel = self.codes.pixel;
        for (window, position) in windows.chunks_exact_mut(self.plan.stride).zip(positions) {
            let codes = &codes[self.geometry.start(position) * pixel..];
            let mut window = window;
            for (start, length) in &self.plan.runs {
                let (run, rest) = window.split_at_mut(length * pixel);
                run.copy_from_slice(&codes[start * pixel..][..length * pixel]);
                window = rest;
            }
        }
    }

    /// The products of some windows with some panels of a group, into these rows.
    fn panels(
        &self,
        windows: &[u8],
        stride: usize,
        group: usize,
        first: usize,
        positions: Range<usize>,
        rows: &mut [&mut [f32]],
    ) {
        let (panel, all) = (self.plan.depth * CHANNELS, self.geometry.out.div_ceil(CHANNELS));
        let end = all.min(first + self.plan.panels);
        let mut sums = [[[0; CHANNELS]; ROWS]; PANELS];
        let mut scaled = SCALED.take();
        scaled.resize(PANELS * CHANNELS, [0.0; ROW]);
        for start in (first..end).step_by(PANELS) {
            let count = PANELS.min(end - start);
            let codes = &self.weight.codes[(group * all + start) * panel..][..count * panel];
            let scales: [Scales; PANELS] = std::array::from_fn(|at| self.scales(group, start + at));
            for at in (0..positions.len()).step_by(ROWS) {
                (self.kernel.products)(&windows[at * stride..], stride, self.plan.depth, codes, &mut sums);
                let panels = sums.iter().zip(&scales).zip(scaled.as_chunks_mut::<CHANNELS>().0);
                for ((sums, scales), scaled) in panels.take(count) {
                    let (halves, _) = sums.as_chunks::<16>();
                    halves.iter().zip([at, at + 16]).for_each(|(sums, at)| {
                        (self.kernel.scaled)(sums, scales, scaled, at);
                    });
                }
            }
            let first_row = (start - first) * CHANNELS;
            let channel = group * self.geometry.out + start * CHANNELS;
            for ((row, numbers), channel) in rows[first_row..].iter_mut().zip(&scaled).zip(channel..) {
                row.copy_from_slice(&numbers[..row.len()]);
                let channels = self.geometry.out * self.geometry.groups;
                let place = (self.image * channels + channel) * self.geometry.places() + positions.start;
                self.follow.epilogue.follow(place, row);
                if self.follow.silu {
                    (self.kernel.silu)(row);
                }
            }
        }
        SCALED.set(scaled);
    }

    /// What becomes of the sums of a panel; of channels that are not there, anything.
    fn scales(&self, group: usize, panel: usize) -> Scales {
        let mut scales = Scales::default();
        let channels = panel * CHANNELS..self.geometry.out.min((panel + 1) * CHANNELS);
        for (at, channel) in channels.enumerate() {
            let channel = group * self.geometry.out + channel;
            let (factor, summand) = self.follow.epilogue.of(channel);
            scales.zeros[at] = (self.codes.steps.zero * self.weight.sums[channel]) as i32;
            scales.factors[at] = self.codes.scale * self.weight.scales[channel] * factor;
            scales.summands[at] = summand;
        }
        scales
    }
}
