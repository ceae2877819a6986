//! An image's components while they are read.

use super::idct::inverse;
use super::{Problem, Result, damaged, unsupported};

/// One of an image's planes: grey, a colour, or a difference of colours.
pub(super) struct Component {
    pub(super) id: u8,
    /// How many of its blocks stand in an MCU, across and down.
    pub(super) across: usize,
    pub(super) down: usize,
    /// Which table of steps it has.
    table: usize,
    /// The steps, as they stood when its first data came.
    pub(super) steps: Option<[u16; 64]>,
    /// Levels that show in the image.
    pub(super) width: usize,
    pub(super) height: usize,
    /// Blocks that hold them.
    pub(super) blocks_wide: usize,
    pub(super) blocks_high: usize,
    /// Blocks a row, padded to whole MCUs.
    pub(super) blocks_stride: usize,
    /// Levels, padded to whole MCUs; mid-grey until they are read.
    pub(super) plane: Vec<u8>,
    /// Of progressive files: 64 a block, in the plane's order of blocks.
    pub(super) coefficients: Vec<i16>,
}

impl Component {
    pub(super) fn stride(&self) -> usize {
        8 * self.blocks_stride
    }

    /// Keeps the steps at a component's first scan: tables may be replaced between scans.
    pub(super) fn keep_steps(&mut self, tables: &[Option<[u16; 64]>; 4]) -> Result<()> {
        if self.steps.is_none() {
            let Some(steps) = tables.get(self.table).copied().flatten() else {
                return damaged(format!("it has no quantization table {}", self.table));
            };
            self.steps = Some(steps);
        }
        Ok(())
    }

    /// Transforms a block of a sequential file.
    pub(super) fn transform(&mut self, x: usize, y: usize, block: &[i16; 64]) {
        let (stride, Some(steps)) = (self.stride(), &self.steps) else { return };
        inverse(block, steps, &mut self.plane[8 * (y * stride + x)..], stride);
    }
}

/// What the frame header says, and the planes.
pub(super) struct Frame {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) progressive: bool,
    /// The most blocks that a component has in an MCU, across and down.
    pub(super) across: usize,
    pub(super) down: usize,
    pub(super) components: Vec<Component>,
    /// How many more blocks scans may go through.
    pub(super) blocks_left: usize,
}

/// How often scans may go through all blocks: published progressive files do so some ten times.
const MOST_PASSES: usize = 100;

impl Frame {
    /// Reads a frame header of a file of `length` bytes.
    pub(super) fn read(kind: u8, segment: &[u8], length: usize, most: u64) -> Result<Self> {
        match kind {
            0xc0..=0xc2 => {}
            0xc3 => return unsupported("is lossless JPEG"),
            0xc9..=0xcb => return unsupported("has arithmetic coding"),
            _ => return unsupported("is hierarchical JPEG"),
        }
        let [bits, high, low, wide, narrow, count, rest @ ..] = segment else {
            return damaged("its frame header is cut short");
        };
        if *bits != 8 {
            return unsupported(format!("has {bits} bits a sample"));
        }
        let height = usize::from(u16::from_be_bytes([*high, *low]));
        let width = usize::from(u16::from_be_bytes([*wide, *narrow]));
        if width == 0 || height == 0 {
            return damaged(format!("it has {width} x {height} pixels"));
        }
        if width as u64 * height as u64 > most {
            return Err(Problem::TooLarge((width as u32, height as u32)));
        }
        if !matches!(count, 1 | 3 | 4) {
            return unsupported(format!("has {count} components"));
        }
        if rest.len() != 3 * usize::from(*count) {
            return damaged("its frame header has a wrong length");
        }
        let described = rest.as_chunks::<3>().0;
        if described.iter().any(|[_, size, _]| !matches!(size >> 4, 1..=4) || !matches!(size & 15, 1..=4)) {
            return damaged("a component's sampling factor is not 1 to 4");
        }
        let largest = |shift: u8| described.iter().map(|[_, size, _]| usize::from(size >> shift & 15)).max();
        let (across, down) = (largest(4).unwrap_or(1), largest(0).unwrap_or(1));
        let progressive = kind == 0xc2;
        let mcus = (width.div_ceil(8 * across), height.div_ceil(8 * down));
        let per_mcu: usize =
            described.iter().map(|[_, size, _]| usize::from(size >> 4) * usize::from(size & 15)).sum();
        let blocks = mcus.0 * mcus.1 * per_mcu;
        // A block takes at least one bit, so no memory is given for what the file cannot hold.
        if blocks > 8 * length {
            return damaged(format!("it has {width} x {height} pixels, more than {length} bytes can hold"));
        }
        let component = |[id, size, table]: &[u8; 3]| {
            let (h, v) = (usize::from(size >> 4), usize::from(size & 15));
            let (stride, rows) = (mcus.0 * h, mcus.1 * v);
            Component {
                id: *id,
                across: h,
                down: v,
                table: usize::from(*table),
                steps: None,
                width: (width * h).div_ceil(across),
                height: (height * v).div_ceil(down),
                blocks_wide: (width * h).div_ceil(8 * across),
                blocks_high: (height * v).div_ceil(8 * down),
                blocks_stride: stride,
                plane: vec![128; 64 * stride * rows],
                coefficients: vec![0; if progressive { 64 * stride * rows } else { 0 }],
            }
        };
        let components = described.iter().map(component).collect();
        let blocks_left = MOST_PASSES * blocks;
        Ok(Self { width, height, progressive, across, down, components, blocks_left })
    }

    /// Transforms what a progressive file's scans put together.
    pub(super) fn transform(&mut self) {
        for component in &mut self.components {
            let Some(steps) = component.steps else { continue };
            let stride = component.stride();
            let coefficients = std::mem::take(&mut component.coefficients);
            for (index, block) in coefficients.chunks_exact(64).enumerate() {
                let (x, y) = (index % component.blocks_stride, index / component.blocks_stride);
                inverse(block, &steps, &mut component.plane[8 * (y * stride + x)..], stride);
            }
        }
    }
}
