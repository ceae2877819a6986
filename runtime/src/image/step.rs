//! One step of an image processor: resizing, cropping, rescaling and the others, by the reference's names.

use std::borrow::Cow;

use image::RgbImage;
use ndarray::{Array3, Axis};

use super::antialiased::resize_antialiased;
use super::interpolation::resampled;
use super::item::{Item, Part, pixels};
use super::normalize::{center_crop, centred_on, largest, normalized, padded, rescaled};
use super::patches::{
    fitted, patchified, patchified_by_squares, smart_resize, smart_resize_edges, smart_resize_frames,
};
use super::resize::resize;
use super::tiles::{any_res_tiles, best, crops, squares, whole_squares};
use super::{Canvas, Filter, Pixels, Size};
use crate::{Error, Result};

/// One step of an image processor; a processor is a list of them.
///
/// Steps before [`Rescale`](Self::Rescale) see levels, 0 to 255, as Pillow does, and those after it numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// `do_resize`: another size, each edge rounded down to a multiple. Levels are rounded, numbers are not.
    Resize {
        /// `size`.
        size: Size,
        /// What both edges become a multiple of.
        multiple_of: usize,
        /// `resample`.
        resample: Filter,
    },
    /// `do_resize` of OWLv2 (`skimage.transform.resize`): numbers are blurred before they become fewer.
    ResizeAntialiased(Pixels),
    /// `do_center_crop`: the middle, black where the image is smaller.
    CenterCrop(Pixels),
    /// `do_rescale`: levels times `rescale_factor`, and 1 less with `rescale_offset`.
    Rescale {
        /// `rescale_factor`; 1 where levels are only read as numbers.
        factor: f64,
        /// `rescale_offset`.
        offset: bool,
    },
    /// `do_normalize`: less the mean of each channel, over its standard deviation.
    Normalize {
        /// `image_mean`.
        mean: [f32; 3],
        /// `image_std`.
        std: [f32; 3],
    },
    /// `do_flip_channel_order`: the channels the other way round.
    FlipChannels,
    /// `do_pad`: zeros to the right and below, up to `pad_size` or the largest image of the batch.
    Pad(Option<Pixels>),
    /// `do_pad` of OWLv2: zeros to the right or below, up to a square.
    PadBelow,
    /// `do_pad` of LLaVA (`expand2square`): the middle of a square of this colour.
    PadToSquare([u8; 3]),
    /// `image_grid_pinpoints` (`LlavaNextImageProcessor`): the whole image, and tiles of the size of the grid that suits it.
    AnyResTiles {
        /// `image_grid_pinpoints`: height and width.
        grid: Vec<Pixels>,
        /// The size of the whole image.
        whole: Pixels,
        /// The edge of a tile.
        tile: usize,
        /// `resample`.
        resample: Filter,
    },
    /// `do_pad` of LLaVA-NeXT: tiles of zeros, up to the most tiles of an image of the batch.
    PadTiles,
    /// `crop_to_patches` (`GotOcr2ImageProcessor`): tiles that a version of the image fills, and the whole image after
    /// several.
    CropToPatches {
        /// `size`: that of a tile.
        size: Pixels,
        /// `min_patches` and `max_patches`.
        limits: (usize, usize),
        /// How many tiles an image fills.
        canvas: Canvas,
        /// `resample`.
        resample: Filter,
    },
    /// `do_image_splitting` (`Idefics3ImageProcessor`): squares of a version of the image that they fill, and the whole image
    /// after several.
    SplitImage {
        /// `max_image_size`: the edge of a square.
        edge: usize,
        /// `resample`.
        resample: Filter,
    },
    /// `do_resize` of SigLIP 2: the largest size of the image's form that has no more patches.
    ResizeToPatches {
        /// `patch_size`.
        patch_size: usize,
        /// `max_num_patches`.
        max_num_patches: usize,
        /// `resample`.
        resample: Filter,
    },
    /// `do_resize` of Qwen2-VL (`smart_resize`): edges are multiples of a square of patches, pixels within limits.
    SmartResize {
        /// `patch_size` times `merge_size`.
        factor: usize,
        /// `shortest_edge` and `longest_edge` of `size`, which are numbers of pixels.
        pixels: (usize, usize),
        /// What is done with images smaller than a square.
        small: SmallImages,
        /// `resample`.
        resample: Filter,
    },
    /// The patches of an image square after square (`Qwen2VLImageProcessor`), as many frames of it as make a patch.
    PatchifySquares {
        /// `patch_size`.
        patch_size: usize,
        /// `merge_size`.
        merge_size: usize,
        /// `temporal_patch_size`.
        frames: usize,
    },
    /// The patches of an image (`convert_image_to_patches`), and zeros up to `max_num_patches`.
    Patchify {
        /// `patch_size`.
        patch_size: usize,
        /// `max_num_patches`.
        max_num_patches: usize,
    },
}

/// What [`Step::SmartResize`] does with images smaller than a square of patches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmallImages {
    /// Nothing of its own (`Qwen2VLImageProcessor`).
    AsOthers,
    /// They grow first; so many frames of an image count towards the limits (`Glm4vImageProcessor`).
    Grow {
        /// `temporal_patch_size`.
        frames: usize,
    },
    /// Edges that are shorter than a square's grow first, one after the other (`PaddleOCRVLImageProcessor`).
    GrowEdges,
}

/// The most pixels that an image may become, in all its parts, where it has fewer itself: 4096 x 4096.
const MOST: usize = 1 << 24;

/// Refuses sizes that no model reads, before they take memory: a processor's file may say any.
fn bounded((height, width): Pixels, becomes: usize) -> Result<()> {
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
    /// Takes all images of a batch one step further.
    pub(super) fn run<'a>(&self, mut items: Vec<Item<'a>>) -> Result<Vec<Item<'a>>> {
        match self {
            Self::Pad(size) => return pad(items, *size),
            Self::PadTiles => return pad_tiles(items),
            _ => {}
        }
        for item in &mut items {
            let becomes = item.parts.iter().filter_map(|part| self.becomes(part.size()?));
            bounded(item.size, becomes.fold(0, usize::saturating_add))?;
            let parts = std::mem::take(&mut item.parts);
            for part in parts {
                match self {
                    Self::AnyResTiles { grid, whole, tile, resample } => {
                        let tiles = any_res_tiles(part.levels()?, grid, *whole, *tile, *resample)?;
                        item.parts.extend(tiles.into_iter().map(|tile| Part::Levels(Cow::Owned(tile))));
                    }
                    Self::CropToPatches { size, limits, canvas, resample } => {
                        item.split = canvas.of(part.levels()?, *size, *limits);
                        let tiles = crops(part.levels()?, *size, item.split, *canvas, *resample)?;
                        item.parts.extend(tiles.into_iter().map(|tile| Part::Levels(Cow::Owned(tile))));
                    }
                    Self::SplitImage { edge, resample } => {
                        let (tiles, split) = squares(part.levels()?, *edge, *resample)?;
                        item.split = split;
                        item.parts.extend(tiles.into_iter().map(|tile| Part::Levels(Cow::Owned(tile))));
                    }
                    _ => item.parts.push(self.part(part)?),
                }
            }
        }
        Ok(items)
    }

    /// How many pixels an image or tile of this size becomes, where the step changes that.
    fn becomes(&self, part: Pixels) -> Option<usize> {
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
            Self::CropToPatches { size, limits, .. } => Some(area(*size).saturating_mul(limits.1.max(1))),
            Self::SplitImage { edge, .. } => {
                Some(area(whole_squares(part, *edge)).saturating_add(edge * edge))
            }
            _ => None,
        }
    }

    /// Takes one image or tile further, for itself.
    fn part<'a>(&self, part: Part<'a>) -> Result<Part<'a>> {
        let owned = |image: RgbImage| Part::Levels(Cow::Owned(image));
        Ok(match self {
            Self::Resize { size, multiple_of, resample } => {
                let to = |from: Pixels| {
                    let (height, width) = size.of(from);
                    (height - height % multiple_of, width - width % multiple_of)
                };
                match part {
                    Part::Numbers(numbers) => {
                        let (_, height, width) = numbers.dim();
                        let (height, width) = to((height, width));
                        Part::Numbers(resampled(
                            &resampled(&numbers, 1, height, *resample),
                            2,
                            width,
                            *resample,
                        ))
                    }
                    part => {
                        let image = part.levels()?;
                        let (height, width) = to(pixels(image));
                        owned(resize(image, height, width, *resample)?)
                    }
                }
            }
            Self::ResizeToPatches { patch_size, max_num_patches, resample } => {
                let image = part.levels()?;
                let (height, width) = fitted(pixels(image), *patch_size, *max_num_patches);
                owned(resize(image, height, width, *resample)?)
            }
            Self::SmartResize { factor, pixels: limits, small, resample } => {
                let image = part.levels()?;
                let size = pixels(image);
                let Some((height, width)) = smart_size(size, *factor, *limits, *small) else {
                    let problem =
                        format!("of {} x {} is more than 200 times as long as wide", size.0, size.1);
                    return Err(Error::input("image", problem, "give a part of it"));
                };
                owned(resize(image, height, width, *resample)?)
            }
            Self::PatchifySquares { patch_size, merge_size, frames } => {
                Part::Patches(patchified_by_squares(&part.numbers()?, *patch_size, *merge_size, *frames)?)
            }
            Self::ResizeAntialiased(size) => Part::Numbers(resize_antialiased(&part.numbers()?, *size)),
            Self::PadBelow => {
                let numbers = part.numbers()?;
                let (_, height, width) = numbers.dim();
                Part::Numbers(padded(&numbers, (height.max(width), height.max(width)))?)
            }
            Self::CenterCrop(size) => owned(center_crop(part.levels()?, *size)),
            Self::PadToSquare(colour) => {
                let image = part.levels()?;
                let edge = image.width().max(image.height()) as usize;
                owned(centred_on(image, (edge, edge), *colour))
            }
            Self::Rescale { factor, offset } => Part::Numbers(rescaled(part.levels()?, *factor, *offset)),
            Self::Normalize { mean, std } => Part::Numbers(normalized(part.numbers()?, mean, std)),
            Self::FlipChannels => {
                let mut numbers = part.numbers()?;
                numbers.invert_axis(Axis(0));
                Part::Numbers(numbers.as_standard_layout().into_owned())
            }
            Self::Patchify { patch_size, max_num_patches } => {
                Part::Patches(patchified(&part.numbers()?, *patch_size, *max_num_patches)?)
            }
            Self::Pad(_)
            | Self::PadTiles
            | Self::AnyResTiles { .. }
            | Self::CropToPatches { .. }
            | Self::SplitImage { .. } => part,
        })
    }
}

/// What an image becomes by [`Step::SmartResize`].
fn smart_size(size: Pixels, factor: usize, limits: (usize, usize), small: SmallImages) -> Option<Pixels> {
    match small {
        SmallImages::AsOthers => smart_resize(size, factor, limits),
        SmallImages::Grow { frames } => smart_resize_frames(size, factor, limits, frames),
        SmallImages::GrowEdges => smart_resize_edges(size, factor, limits),
    }
}

/// All images as large as the largest, or as `size` says.
fn pad<'a>(items: Vec<Item<'a>>, size: Option<Pixels>) -> Result<Vec<Item<'a>>> {
    let mut numbers = vec![];
    for item in items {
        let parts = item.parts.into_iter().map(Part::numbers).collect::<Result<Vec<_>>>()?;
        numbers.push((item.size, parts));
    }
    let size = size.unwrap_or_else(|| largest(numbers.iter().flat_map(|(_, parts)| parts)));
    let first = numbers.iter().map(|(before, _)| *before).max_by_key(|before| before.0 * before.1);
    let most = numbers.iter().map(|(_, parts)| parts.len()).max().unwrap_or_default();
    bounded(first.unwrap_or_default(), size.0.saturating_mul(size.1).saturating_mul(most))?;
    let pad = |(before, parts): (Pixels, Vec<Array3<f32>>)| {
        let unpadded = parts.first().map(|part| (part.dim().1, part.dim().2));
        let parts = parts.iter().map(|part| padded(part, size).map(Part::Numbers)).collect::<Result<_>>()?;
        Ok(Item { size: before, parts, unpadded, split: (0, 0) })
    };
    numbers.into_iter().map(pad).collect()
}

/// All images in as many tiles as the one with most.
fn pad_tiles(mut items: Vec<Item<'_>>) -> Result<Vec<Item<'_>>> {
    let most = items.iter().map(|item| item.parts.len()).max().unwrap_or_default();
    for item in &mut items {
        let shape = match item.parts.first() {
            Some(Part::Numbers(first)) => first.dim(),
            Some(Part::Levels(first)) => (3, first.height() as usize, first.width() as usize),
            _ => continue,
        };
        item.parts.resize_with(most, || Part::Numbers(Array3::zeros(shape)));
    }
    Ok(items)
}

#[cfg(test)]
mod tests;
