//! The products of a chunk of windows with all weights of a group, cut into blocks of weights that threads take in any order.

use std::sync::{Mutex, PoisonError};

use super::super::matmul::narrow_pairs;
use super::super::panel::Kernel;
use super::super::stored::Stored;
use super::super::tile::Element;

use super::windows::{Geometry, Laid};

/// Rows of the weight in a block: widened, so much of them as is multiplied at a time lies in the first two caches.
const BLOCK: usize = 24;

/// How much of the depth is multiplied at a time: a panel of it and the rows of a tile are in the first cache.
const WIDE: usize = 256;

/// Positions beside each other, whose windows are a panel.
pub(super) struct Columns {
    pub(super) image: usize,
    pub(super) first: usize,
    pub(super) count: usize,
}

/// Windows that are multiplied with each block of weights.
#[derive(Default)]
pub(super) struct Chunk {
    pub(super) panels: Vec<Columns>,
    /// Image and position of windows that would leave most of a register empty.
    pub(super) rest: Vec<(usize, usize)>,
}

impl Chunk {
    /// All windows of a convolution, in chunks of about so many numbers.
    pub(super) fn all(geometry: &Geometry, kernel: Kernel, numbers: usize) -> Vec<Self> {
        let most = (numbers / kernel.panel(geometry.depth()).max(1)).max(1);
        let places = geometry.places();
        let over = places % kernel.lanes;
        let rest = if over <= kernel.lanes / 4 { over } else { 0 };
        let mut all = vec![Self::default()];
        for image in 0..geometry.batch {
            for first in (0..places - rest).step_by(kernel.columns) {
                if all.last().is_some_and(|chunk| chunk.panels.len() == most) {
                    all.push(Self::default());
                }
                let count = kernel.columns.min(places - rest - first);
                if let Some(chunk) = all.last_mut() {
                    chunk.panels.push(Columns { image, first, count });
                }
            }
            if let Some(chunk) = all.last_mut() {
                chunk.rest.extend((places - rest..places).map(|position| (image, position)));
            }
        }
        all
    }
}

/// What becomes of the sums, by channel of the result.
pub(super) struct Epilogue<'a> {
    pub(super) bias: Option<&'a [f32]>,
    /// A factor and a summand.
    pub(super) normed: Option<Vec<(f32, f32)>>,
    /// Of the result's shape.
    pub(super) addend: Option<&'a [f32]>,
    pub(super) relu: bool,
}

/// Zero for what is below it (`Relu`); what is not a number stays none.
fn rectified(number: f32) -> f32 {
    if number < 0.0 { 0.0 } else { number }
}

impl Epilogue<'_> {
    /// What numbers of a channel are multiplied with, and what is added then.
    pub(super) fn of(&self, channel: usize) -> (f32, f32) {
        let (factor, summand) = self.normed.as_ref().map_or((1.0, 0.0), |normed| normed[channel]);
        (factor, self.bias.map_or(0.0, |bias| bias[channel] * factor) + summand)
    }

    /// What follows that: numbers of one channel, of which the first stands at a place of the result.
    pub(super) fn follow(&self, place: usize, numbers: &mut [f32]) {
        if let Some(addend) = self.addend {
            numbers.iter_mut().zip(&addend[place..]).for_each(|(number, other)| *number += other);
        }
        if self.relu {
            numbers.iter_mut().for_each(|number| *number = rectified(*number));
        }
    }

    /// Numbers of one channel, of which the first stands at a place of the result.
    pub(super) fn apply(&self, channel: usize, place: usize, sums: &mut [f32]) {
        let (factor, summand) = self.of(channel);
        let addend = self.addend.map(|addend| &addend[place..]);
        match (addend, self.relu) {
            (None, false) => sums.iter_mut().for_each(|sum| *sum = *sum * factor + summand),
            (None, true) => sums.iter_mut().for_each(|sum| *sum = rectified(*sum * factor + summand)),
            (Some(addend), false) => {
                sums.iter_mut().zip(addend).for_each(|(sum, other)| *sum = *sum * factor + summand + other);
            }
            (Some(addend), true) => {
                sums.iter_mut()
                    .zip(addend)
                    .for_each(|(sum, other)| *sum = rectified(*sum * factor + summand + other));
            }
        }
    }
}

/// What weights and windows are multiplied in.
pub(super) struct Multiplied<W> {
    pub(super) kernel: Kernel,
    /// Whether a number of 32 bits holds two in bfloat16.
    pub(super) of_pairs: bool,
    /// Makes numbers of 32 bits of weights.
    numbers: fn(&[W], &mut [f32]),
}

impl<W> Clone for Multiplied<W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Multiplied<W> {}

impl<W: Stored> Multiplied<W> {
    pub(super) fn in_single(kernel: Kernel) -> Self {
        Self { kernel, of_pairs: false, numbers: W::widen }
    }

    pub(super) fn in_bf16(kernel: Kernel) -> Self {
        Self { kernel, of_pairs: true, numbers: narrow_pairs }
    }

    /// Numbers of the weight or of a window in one of 32 bits.
    fn of_each(self) -> usize {
        if self.of_pairs { 2 } else { 1 }
    }
}

/// A block's channels of the result: of each image the rows of all positions.
pub(super) type Rows<'a> = Mutex<Vec<Vec<&'a mut [f32]>>>;

/// The result of a group whose first channel this is, in blocks of so many channels.
pub(super) fn rows_of_blocks<'a>(
    geometry: &Geometry,
    first: usize,
    block: usize,
    result: &'a mut [f32],
) -> Vec<Rows<'a>> {
    let mut blocks: Vec<Vec<Vec<&mut [f32]>>> = vec![];
    blocks.resize_with(geometry.out.div_ceil(block), Vec::new);
    let (places, channels) = (geometry.places().max(1), geometry.out * geometry.groups);
    for image in result.chunks_exact_mut((places * channels).max(1)) {
        let mut rows = image.chunks_exact_mut(places).skip(first);
        for (at, of_block) in blocks.iter_mut().enumerate() {
            of_block.push(rows.by_ref().take(block.min(geometry.out - at * block)).collect());
        }
    }
    blocks.into_iter().map(Mutex::new).collect()
}

pub(super) struct Product<'a, W> {
    multiplied: Multiplied<W>,
    weight: &'a [W],
    depth: usize,
    /// The group's first channel of the result, and how many there are of all groups.
    first: usize,
    channels: usize,
    epilogue: &'a Epilogue<'a>,
    chunk: &'a Chunk,
    laid: &'a Laid,
    blocks: Vec<Rows<'a>>,
}

impl<'a, W: Stored> Product<'a, W> {
    #[expect(clippy::too_many_arguments, reason = "a product of two, and what becomes of it")]
    pub(super) fn new(
        geometry: &Geometry,
        multiplied: Multiplied<W>,
        weight: &'a [W],
        group: usize,
        epilogue: &'a Epilogue<'a>,
        chunk: &'a Chunk,
        laid: &'a Laid,
        result: &'a mut [f32],
    ) -> Self {
        let (depth, first) = (geometry.depth(), group * geometry.out);
        let weight = &weight[first * depth..][..geometry.out * depth];
        let channels = geometry.out * geometry.groups;
        let blocks = rows_of_blocks(geometry, first, BLOCK, result);
        Self { multiplied, weight, depth, first, channels, epilogue, chunk, laid, blocks }
    }

    /// How many blocks there are to compute.
    pub(super) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    pub(super) fn compute(&self, block: usize) {
        let mut images = self.blocks[block].lock().unwrap_or_else(PoisonError::into_inner);
        let first = block * BLOCK;
        let weights = &self.weight[first * self.depth..];
        let weights = &weights[..weights.len().min(BLOCK * self.depth)];
        self.panels(weights, &mut images);
        self.rest(weights, &mut images);
        self.finish(self.first + first, &mut images);
    }

    /// The sums of the panels' positions.
    fn panels(&self, weights: &[W], images: &mut [Vec<&mut [f32]>]) {
        let Multiplied { kernel, numbers, .. } = self.multiplied;
        let of_each = self.multiplied.of_each();
        let (panel, depth) = (kernel.panel(self.depth), self.depth / of_each);
        let mut wide = vec![0.0; BLOCK * WIDE];
        for start in (0..depth).step_by(WIDE) {
            let taken = WIDE.min(depth - start);
            for (wide, weights) in wide.chunks_exact_mut(WIDE).zip(weights.chunks_exact(self.depth)) {
                numbers(&weights[start * of_each..(start + taken) * of_each], &mut wide[..taken]);
            }
            for (columns, panel) in self.chunk.panels.iter().zip(self.laid.panels.chunks_exact(panel)) {
                let panel = &panel[start * kernel.columns..][..taken * kernel.columns];
                let rows = &mut images[columns.image];
                let products = if start == 0 { kernel.products } else { kernel.add_products };
                products(&wide, WIDE, panel, columns.first..columns.first + columns.count, rows);
            }
        }
    }

    /// The sums of the positions that are left over.
    fn rest(&self, weights: &[W], images: &mut [Vec<&mut [f32]>]) {
        let (Some(kernel), false) = (f32::kernel::<W>(), self.chunk.rest.is_empty()) else { return };
        let rows = weights.len() / self.depth;
        let mut sums = vec![0.0; rows * self.chunk.rest.len()];
        let mut by_position: Vec<&mut [f32]> = sums.chunks_exact_mut(rows).collect();
        let laid = &self.laid.rest[..self.chunk.rest.len() * self.depth];
        kernel(laid, weights, self.depth, None, &mut by_position);
        for ((image, position), sums) in self.chunk.rest.iter().zip(by_position) {
            images[*image].iter_mut().zip(sums).for_each(|(row, sum)| row[*position] = *sum);
        }
    }

    /// Bias, batch normalisation and activation.
    fn finish(&self, first: usize, images: &mut [Vec<&mut [f32]>]) {
        if matches!(self.epilogue, Epilogue { bias: None, normed: None, addend: None, relu: false }) {
            return;
        }
        let panels = self.chunk.panels.iter().map(|it| (it.image, it.first..it.first + it.count));
        let rest = self.chunk.rest.iter().map(|(image, position)| (*image, *position..position + 1));
        for (image, positions) in panels.chain(rest) {
            for (row, channel) in images[image].iter_mut().zip(first..) {
                let place = (image * self.channels + channel) * row.len() + positions.start;
                self.epilogue.apply(channel, place, &mut row[positions.clone()]);
            }
        }
    }
}
