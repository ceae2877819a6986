//! Convolutions of 3 × 3 by minimal filtering, F(4 × 4, 3 × 3): 36 products make 16 numbers of the result, for which their windows have
//! 144 (Winograd, 1980; Lavin and Gray, arXiv:1509.09308).
//!
//! Tiles of 6 × 6 numbers of the input and the weights between two channels are transformed, multiplied number by number and added up
//! over the channels, which are 36 products of matrices, and sums are transformed to tiles of 4 × 4. Weights are transformed when
//! they are multiplied, for as many tiles as there is room for: kept, they would take four times their memory.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::super::panel::Kernel;
use super::super::panel::tiles::{self, PRODUCTS, SIDE, TAKEN, TAPS, TOGETHER};
use super::super::stored::Stored;
use super::product::{Epilogue, Rows, rows_of_blocks};
use super::windows::{Geometry, Task, sized};

/// Rows of the weight in a block.
const BLOCK: usize = 24;

/// Channels that are multiplied at a time: transformed weights of a block are in the second cache.
const WIDE: usize = 128;

/// Channels of the input that a thread transforms at a time.
const CHANNELS: usize = 16;

/// Fewer tiles than this are not worth transforming the weights.
const FEWEST: usize = 12;

/// The most panels of tiles, and the fewest, where there are so many, whatever room they take.
const PANELS: Range<usize> = 4..64;

/// Whether a convolution is one of these, and is faster so.
pub(super) fn fits(geometry: &Geometry) -> bool {
    geometry.kernel == [1, 3, 3]
        && geometry.strides == [1; 3]
        && geometry.dilations == [1; 3]
        && geometry.groups == 1
        && geometry.lengths[0] == 1
        && geometry.pads[0] == (0, 0)
        && geometry.channels >= CHANNELS
        && geometry.out >= BLOCK
        && Grid::of(geometry).tiles() >= FEWEST
}

/// The tiles of the result: so many rows of so many in each image.
#[derive(Clone, Copy)]
struct Grid {
    images: usize,
    rows: usize,
    columns: usize,
}

impl Grid {
    fn of(geometry: &Geometry) -> Self {
        let [_, rows, columns] = geometry.positions.map(|length| length.div_ceil(SIDE));
        Self { images: geometry.batch, rows, columns }
    }

    fn tiles(self) -> usize {
        self.images * self.rows * self.columns
    }

    /// What of these tiles lies beside each other in an image.
    fn runs(self, tiles: Range<usize>) -> Vec<Run> {
        let mut runs = vec![];
        let mut tile = tiles.start;
        while tile < tiles.end {
            let (row, column) = (tile / self.columns, tile % self.columns);
            let count = (self.columns - column).min(tiles.end - tile);
            let (image, row) = (row / self.rows, row % self.rows);
            runs.push(Run { image, row, column, count, first: tile - tiles.start });
            tile += count;
        }
        runs
    }
}

/// Tiles beside each other.
struct Run {
    image: usize,
    /// Row and column of the first, counted in tiles.
    row: usize,
    column: usize,
    count: usize,
    /// The column of the first among all of a chunk.
    first: usize,
}

/// A convolution, chunk of tiles by chunk.
pub(super) struct Winograd<'a, W> {
    geometry: &'a Geometry,
    kernel: Kernel,
    x: &'a [f32],
    weight: &'a [W],
    epilogue: &'a Epilogue<'a>,
}

impl<'a, W: Stored> Winograd<'a, W> {
    pub(super) fn new(
        geometry: &'a Geometry,
        kernel: Kernel,
        (x, weight): (&'a [f32], &'a [W]),
        epilogue: &'a Epilogue<'a>,
    ) -> Self {
        Self { geometry, kernel, x, weight, epilogue }
    }

    /// Tiles in chunks, whose transformed numbers are about so many.
    pub(super) fn chunks(&self, numbers: usize) -> Vec<Range<usize>> {
        let panel = PRODUCTS * self.kernel.panel(self.geometry.channels);
        let panels = (numbers / panel).clamp(PANELS.start, PANELS.end);
        let tiles = Grid::of(self.geometry).tiles();
        // All of about one length: weights are transformed for each.
        let chunks = tiles.div_ceil(panels * self.kernel.columns).max(1);
        let most = tiles.div_ceil(chunks).next_multiple_of(self.kernel.columns).max(1);
        (0..tiles).step_by(most).map(|first| first..tiles.min(first + most)).collect()
    }

    /// Transforms tiles of the input into panels `[PRODUCTS, panels, channels, columns]`; `each` carries out a task for each of so
    /// many parts.
    pub(super) fn lay<E>(
        &self,
        tiles: &Range<usize>,
        laid: &mut Vec<f32>,
        each: impl FnOnce(usize, Task<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (columns, channels) = (self.kernel.columns, self.geometry.channels);
        let panels = tiles.len().div_ceil(columns);
        let laid = sized(laid, PRODUCTS * panels * self.kernel.panel(channels));
        let mut parts: Vec<Vec<&mut [f32]>> = vec![];
        parts.resize_with(channels.div_ceil(CHANNELS), Vec::new);
        for panel in laid.chunks_exact_mut(self.kernel.panel(channels)) {
            let blocks = panel[..channels * columns].chunks_mut(CHANNELS * columns);
            parts.iter_mut().zip(blocks).for_each(|(part, block)| part.push(block));
        }
        let parts: Vec<_> = parts.into_iter().map(Mutex::new).collect();
        let (runs, inputs) = (Grid::of(self.geometry).runs(tiles.clone()), self.kernel.transforms.inputs);
        let longest = runs.iter().map(|run| run.count).max().unwrap_or(0);
        each(parts.len(), &|part| {
            let mut panels_of = parts[part].lock().unwrap_or_else(PoisonError::into_inner);
            let mut lines = vec![0.0; TAKEN * tiles::line(longest)];
            let mut phases = lines.clone();
            let mut transformed = vec![0.0; PRODUCTS * tiles::rounded(longest)];
            let first = part * CHANNELS;
            for channel in first..channels.min(first + CHANNELS) {
                for run in &runs {
                    let lines = &mut lines[..TAKEN * tiles::line(run.count)];
                    self.lines(run, channel, lines);
                    inputs(lines, run.count, &mut phases, &mut transformed);
                    let mut done = 0;
                    while done < run.count {
                        let (panel, at) = ((run.first + done) / columns, (run.first + done) % columns);
                        let count = (columns - at).min(run.count - done);
                        let rows = transformed.chunks_exact(tiles::rounded(run.count));
                        for (row, panels_of) in rows.zip(panels_of.chunks_exact_mut(panels)) {
                            let to = (channel - first) * columns + at;
                            copy(&row[done..done + count], &mut panels_of[panel][to..to + count]);
                        }
                        done += count;
                    }
                }
            }
        })
    }

    /// The lines of the input that a run of tiles is made of, with the zeros around it.
    fn lines(&self, run: &Run, channel: usize, lines: &mut [f32]) {
        let [_, height, width] = self.geometry.lengths;
        let [_, (above, _), (left, _)] = self.geometry.pads;
        let line = tiles::line(run.count);
        let plane = (run.image * self.geometry.channels + channel) * height * width;
        let start = run.column * SIDE;
        // Where numbers are: from `empty` places on.
        let empty = left.saturating_sub(start).min(line);
        let from = (start + empty).saturating_sub(left).min(width);
        let count = (line - empty).min(width - from).min(SIDE * (run.count + 1));
        for (row, line) in lines.chunks_exact_mut(line).enumerate() {
            let place = (run.row * SIDE + row).checked_sub(above).filter(|place| *place < height);
            let Some(place) = place else {
                line.fill(0.0);
                continue;
            };
            let x = &self.x[plane + place * width + from..][..count];
            line[..empty].fill(0.0);
            line[empty..empty + count].copy_from_slice(x);
            line[empty + count..].fill(0.0);
        }
    }

    /// The products of the chunk that was laid, for what `each` carries out for each of so many parts.
    pub(super) fn multiply<E>(
        &self,
        tiles: &Range<usize>,
        laid: &[f32],
        result: &mut [f32],
        each: impl FnOnce(usize, Task<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let blocks = rows_of_blocks(self.geometry, 0, BLOCK, result);
        let runs = Grid::of(self.geometry).runs(tiles.clone());
        each(blocks.len(), &|block| self.block(tiles, &runs, laid, block * BLOCK, &blocks[block]))
    }

    /// Channels of the result from the first on.
    fn block(&self, tiles: &Range<usize>, runs: &[Run], laid: &[f32], first: usize, images: &Rows<'_>) {
        let mut images = images.lock().unwrap_or_else(PoisonError::into_inner);
        let (channels, columns) = (self.geometry.channels, self.kernel.columns);
        let rows = BLOCK.min(self.geometry.out - first);
        let weights = &self.weight[first * channels * TAPS..];
        let panels = tiles.len().div_ceil(columns);
        // With room for what is read of a register too much.
        let stride = panels * columns + TOGETHER;
        let mut sums = vec![0.0; PRODUCTS * rows * stride];
        let mut wide = vec![0.0; WIDE * TAPS];
        // Products apart by no multiple of what the first cache finds its places by.
        let apart = rows * WIDE + TOGETHER;
        let mut filters = vec![0.0; PRODUCTS * apart];
        let panel_length = self.kernel.panel(channels);
        let transform = self.kernel.transforms.filters;
        for start in (0..channels).step_by(WIDE) {
            let taken = WIDE.min(channels - start);
            for row in 0..rows {
                let weights = &weights[(row * channels + start) * TAPS..][..taken * TAPS];
                W::widen(weights, &mut wide[..taken * TAPS]);
                transform(&wide[..taken * TAPS], apart, &mut filters[row * WIDE..]);
            }
            let products = if start == 0 { self.kernel.products } else { self.kernel.add_products };
            let all = filters.chunks_exact(apart).zip(sums.chunks_exact_mut(rows * stride));
            for ((filters, sums), panels_of) in all.zip(laid.chunks_exact(panels * panel_length)) {
                let mut rows: Vec<&mut [f32]> = sums.chunks_exact_mut(stride).collect();
                for (at, panel) in panels_of.chunks_exact(panel_length).enumerate() {
                    let panel = &panel[start * columns..][..taken * columns];
                    let count = columns.min(tiles.len() - at * columns);
                    products(
                        &filters[..filters.len() - TOGETHER],
                        WIDE,
                        panel,
                        at * columns..at * columns + count,
                        &mut rows,
                    );
                }
            }
        }
        self.write(runs, first, (&sums, rows, stride), &mut images);
    }

    /// Transforms sums, and writes them with what follows.
    fn write(
        &self,
        runs: &[Run],
        first: usize,
        (sums, rows, stride): (&[f32], usize, usize),
        images: &mut [Vec<&mut [f32]>],
    ) {
        let [_, height, width] = self.geometry.positions;
        let longest = runs.iter().map(|run| run.count).max().unwrap_or(0);
        let mut lines = vec![0.0; SIDE * SIDE * tiles::rounded(longest)];
        let outputs = self.kernel.transforms.outputs;
        for row in 0..rows {
            for run in runs {
                outputs(&sums[row * stride..], rows * stride, run.first, run.count, &mut lines);
                let result = &mut *images[run.image][row];
                let start = run.column * SIDE;
                let count = (run.count * SIDE).min(width - start);
                let above = run.row * SIDE;
                let lines = lines.chunks_exact(SIDE * tiles::rounded(run.count));
                for (line, place) in lines.zip(above..height) {
                    let to = &mut result[place * width + start..][..count];
                    to.copy_from_slice(&line[..count]);
                    let channel = (run.image * self.geometry.out + first + row) * height * width;
                    self.epilogue.apply(first + row, channel + place * width + start, to);
                }
            }
        }
    }
}

/// Copies numbers, most of them by whole registers.
fn copy(from: &[f32], to: &mut [f32]) {
    let ((from, from_rest), (to, to_rest)) = (from.as_chunks::<TOGETHER>(), to.as_chunks_mut::<TOGETHER>());
    from.iter().zip(to).for_each(|(from, to)| *to = *from);
    from_rest.iter().zip(to_rest).for_each(|(from, to)| *to = *from);
}
