//! How many pixels a step makes of an image, and the most that it may.

use super::{SmallImages, Step};
use crate::image::Pixels;
use crate::image::patches::{fitted, smart_resize, smart_resize_edges, smart_resize_frames};
use crate::image::tiles::{best, whole_squares};
use crate::{Error, Result};

/// The most pixels that an image may become, in all its parts, where it has fewer itself: 4096 x 4096.
const MOST: usize = 1 << 24;

/// Refuses sizes that no model reads, before they take memory: a processor's file may say any.
pub(super) fn bounded((height, width): Pixels, becomes: usize) -> Result<()> {
    // Two that are turned against each other are padded to twice their size.
    if becomes <= MOST.max(2 * height * width) {
        return Ok(());
    }
    let problem = format!("of {height} x {width} would become {becomes} pixels; at most {MOST} are made");
    let help =
        "choose smaller sizes in the file of the processor, or give images that are less long and narrow";
    Err(Error::input("image", problem, help))
}

impl Step {
    /// How many pixels an image or tile of this size becomes, where the step changes that.
    pub(super) fn becomes(&self, part: Pixels) -> Option<usize> {
        let area = |(height, width): Pixels| height.saturating_mul(width);
        match self {
            Self::Resize { size, .. } => Some(area(size.of(part))),
            Self::ResizeToPatches { patch_size, max_num_patches, .. } => {
                Some(area(fitted(part, *patch_size, *max_num_patches)))
            }
            Self::SmartResize { factor, pixels, small, .. } => {
                smart_size(part, *factor, *pixels, *small).map(area)
            }
            Self::CenterCrop(size) | Self::ResizeAntialiased(size) => Some(area(*size)),
            Self::PadToSquare(_) | Self::PadBelow => Some(area((part.0.max(part.1), part.0.max(part.1)))),
            Self::AnyResTiles { grid, whole, .. } => {
                Some(area(best(part, grid).unwrap_or(*whole)).saturating_add(area(*whole)))
            }
            Self::PadLevels { size, .. } | Self::CutBoxes { size, .. } | Self::PadLine(size) => {
                Some(area(*size))
            }
            Self::PadSymmetric(multiple) | Self::PadToMultiple(multiple) => {
                let edge = |length: usize| length.saturating_add(*multiple);
                Some(area((edge(part.0), edge(part.1))))
            }
            // Two frames of a patch, which published models have, are the image's own pixels.
            Self::PatchifySquares { frames, .. } | Self::RepeatFrames(frames) => {
                Some(area(part).saturating_mul(frames.div_ceil(2)))
            }
            Self::ResizeText { size, .. } => Some(area(size.of(part))),
            Self::FitTiles(tiles) => Some(area(tiles.size).saturating_mul(tiles.most + 1)),
            Self::CropToPatches { size, limits, canvas, .. } => {
                Some(area(*size).saturating_mul(canvas.most(*limits).max(1)))
            }
            Self::SplitImage { edge, .. } => {
                Some(area(whole_squares(part, *edge)).saturating_add(edge * edge))
            }
            _ => None,
        }
    }
}

/// What an image becomes by [`Step::SmartResize`].
pub(super) fn smart_size(
    size: Pixels,
    factor: usize,
    limits: (usize, usize),
    small: SmallImages,
) -> Option<Pixels> {
    match small {
        SmallImages::AsOthers => smart_resize(size, factor, limits),
        SmallImages::Grow { frames } => smart_resize_frames(size, factor, limits, frames),
        SmallImages::GrowEdges => smart_resize_edges(size, factor, limits),
    }
}
