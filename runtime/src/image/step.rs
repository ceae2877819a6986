//! One step of an image processor: resizing, cropping, rescaling and the others, by the reference's names.

use std::borrow::Cow;

use image::RgbImage;
use ndarray::{Array3, Axis};

use self::bounds::{bounded, smart_size};
use super::antialiased::resize_antialiased;
use super::fit_tiles::FitTiles;
use super::interpolation::resampled;
use super::item::{Item, Part, pixels};
use super::normalize::{
    center_crop, centred_on, grey, normalized, normalized_bf16, padded, padded_below, padded_size,
    padded_to_multiple, rescaled, standardized, symmetric_to_multiple,
};
use super::patches::{channels_last, fitted, numbered, patchified, patchified_by_squares, repeated};
use super::resize::resize;
use super::tiles::{any_res_tiles, crops, quarters, squares};
use super::{Canvas, Filter, Interpolated, Interpolation, Pixels, Size, TextSize};
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
    /// `do_grayscale`: in each channel the luminance, where they differ.
    Grayscale,
    /// `do_pad`: zeros to the right and below, up to `pad_size` or the largest image of the batch.
    Pad(Option<Pixels>),
    /// `do_pad` of Swin2SR: what is mirrored at the right and lower edge, up to the multiple beyond each edge.
    PadSymmetric(usize),
    /// `do_pad` of ViTMatte: zeros to the right and below, up to multiples.
    PadToMultiple(usize),
    /// `do_pad` of PP-OCR's lines: zeros to the right and below, up to a size, where they do not reach it.
    PadLine(Pixels),
    /// `do_resize` of PP-OCR (`torchvision`'s of tensors), into numbers; without `antialias` they are rounded.
    ResizeText {
        /// `size`.
        size: TextSize,
        /// `resample`.
        resample: Filter,
        /// Whether what becomes smaller is averaged.
        antialias: bool,
    },
    /// `do_affine_transform` of ViTPose: a box of the image, made as large as `size`.
    CutBoxes {
        /// `size`.
        size: Pixels,
        /// `normalize_factor`.
        normalize_factor: f64,
    },
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
    /// `do_pad` before numbers: this level to the right and below, up to `size`, or to multiples within it.
    PadLevels {
        /// The size, or the most of multiples.
        size: Pixels,
        /// What edges become a multiple of.
        multiple_of: Option<usize>,
        /// The level of what is added.
        level: u8,
    },
    /// `do_image_splitting` of Idefics2: four quarters of the image, and the whole.
    SplitQuarters,
    /// The tiles of Llama 4 and Llama 3.2 Vision (`Llama4ImageProcessor`, `MllamaImageProcessor`): of a canvas that the image
    /// fits into undistorted.
    FitTiles(FitTiles),
    /// `do_rescale` and `do_normalize` in bfloat16 (`Llama4ImageProcessor`).
    NormalizeBf16 {
        /// `rescale_factor`.
        factor: f64,
        /// `image_mean`.
        mean: [f32; 3],
        /// `image_std`.
        std: [f32; 3],
    },
    /// `do_normalize` of Pix2Struct: less the mean of all numbers of an image, over their standard deviation.
    Standardize,
    /// `do_pad` of LLaVA-NeXT: tiles of zeros, up to the most tiles of an image of the batch.
    PadTiles,
    /// `do_pad` of Llama 3.2 Vision: tiles of zeros, up to so many (`max_image_tiles`).
    PadTilesTo(usize),
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
    /// Patches whose values are those of a channel, as `patchified_by_squares` gives them, with all channels of a pixel together
    /// (`Cosmos3EdgeImageProcessor`).
    ChannelsLast,
    /// The values of each patch as those of so many frames that are alike, frame after frame (`MuseGlimmerImageProcessor.patchify`).
    RepeatFrames(usize),
    /// The patches of an image, each behind its row and column, counted from 1, and zeros up to `most`
    /// (`Pix2StructImageProcessor`).
    PatchifyNumbered {
        /// `patch_size`.
        patch_size: usize,
        /// `max_patches`.
        most: usize,
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

impl Step {
    /// Takes all images of a batch one step further.
    pub(super) fn run<'a>(&self, mut items: Vec<Item<'a>>) -> Result<Vec<Item<'a>>> {
        match self {
            Self::Pad(size) => return pad::pad(items, *size),
            Self::PadTiles => return Ok(pad::pad_tiles(items, None)),
            Self::PadTilesTo(most) => return Ok(pad::pad_tiles(items, Some(*most))),
            _ => {}
        }
        for item in &mut items {
            let becomes = item.parts.iter().filter_map(|part| self.becomes(part.size()));
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
                    Self::PadLevels { size, multiple_of, level } => {
                        let image = part.levels()?;
                        item.unpadded = Some(pixels(image));
                        let size = padded_size(pixels(image), *size, *multiple_of);
                        item.parts.push(Part::Levels(Cow::Owned(padded_below(image, size, *level)?)));
                    }
                    Self::SplitQuarters => {
                        let tiles = quarters(part.levels()?);
                        item.parts.extend(tiles.into_iter().map(|tile| Part::Levels(Cow::Owned(tile))));
                    }
                    Self::FitTiles(tiles) => {
                        let (tiles, split) = tiles.of(part.levels()?)?;
                        item.split = split;
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

    /// Takes one image or tile further, for itself.
    pub(super) fn part<'a>(&self, part: Part<'a>) -> Result<Part<'a>> {
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
            Self::ChannelsLast => match part {
                Part::Patches(patches) => Part::Patches(channels_last(&patches)),
                part => part,
            },
            Self::RepeatFrames(frames) => match part {
                Part::Patches(patches) => Part::Patches(repeated(&patches, *frames)),
                part => part,
            },
            Self::ResizeAntialiased(size) => Part::Numbers(resize_antialiased(&part.numbers()?, *size)),
            Self::PadBelow => {
                let numbers = part.numbers()?;
                let (_, height, width) = numbers.dim();
                Part::Numbers(padded(&numbers, (height.max(width), height.max(width)))?)
            }
            Self::PadSymmetric(multiple) => Part::Numbers(symmetric_to_multiple(&part.numbers()?, *multiple)),
            Self::PadToMultiple(multiple) => Part::Numbers(padded_to_multiple(&part.numbers()?, *multiple)?),
            Self::PadLine((rows, columns)) => {
                let numbers = part.numbers()?;
                let (_, height, width) = numbers.dim();
                Part::Numbers(padded(&numbers, (height.max(*rows), width.max(*columns)))?)
            }
            Self::ResizeText { size, resample, antialias } => {
                Part::Numbers(resized_text(&part.numbers()?, *size, *resample, *antialias))
            }
            Self::CutBoxes { .. } => {
                let help = "give the boxes of what is in the image: a task of poses does";
                return Err(Error::input("boxes", "are missing", help));
            }
            Self::CenterCrop(size) => owned(center_crop(part.levels()?, *size)),
            Self::PadToSquare(colour) => {
                let image = part.levels()?;
                let edge = image.width().max(image.height()) as usize;
                owned(centred_on(image, (edge, edge), *colour))
            }
            Self::Rescale { factor, offset } => Part::Numbers(rescaled(part.levels()?, *factor, *offset)),
            Self::Normalize { mean, std } => Part::Numbers(normalized(part.numbers()?, mean, std)),
            Self::NormalizeBf16 { factor, mean, std } => {
                Part::Numbers(normalized_bf16(part.levels()?, *factor, mean, std))
            }
            Self::Standardize => Part::Numbers(standardized(part.numbers()?)),
            Self::PatchifyNumbered { patch_size, most } => {
                Part::Patches(numbered(&patchified(&part.numbers()?, *patch_size, *most)?))
            }
            Self::FlipChannels => {
                let mut numbers = part.numbers()?;
                numbers.invert_axis(Axis(0));
                Part::Numbers(numbers.as_standard_layout().into_owned())
            }
            Self::Grayscale => Part::Numbers(grey(part.numbers()?)),
            Self::Patchify { patch_size, max_num_patches } => {
                Part::Patches(patchified(&part.numbers()?, *patch_size, *max_num_patches)?)
            }
            Self::Pad(_)
            | Self::PadTiles
            | Self::PadTilesTo(_)
            | Self::AnyResTiles { .. }
            | Self::PadLevels { .. }
            | Self::SplitQuarters
            | Self::FitTiles(_)
            | Self::CropToPatches { .. }
            | Self::SplitImage { .. } => part,
        })
    }
}

/// What [`Step::ResizeText`] makes of numbers.
fn resized_text(numbers: &Array3<f32>, size: TextSize, resample: Filter, antialias: bool) -> Array3<f32> {
    let (_, height, width) = numbers.dim();
    let (height, width) = size.of((height, width));
    if antialias {
        return resampled(&resampled(numbers, 2, width, resample), 1, height, resample);
    }
    let by = if resample == Filter::Bicubic { Interpolation::Bicubic } else { Interpolation::Bilinear };
    let levels = Interpolated::new(&numbers.view(), (height, width), by).maps();
    levels.mapv_into(|level| level.round_ties_even().clamp(0.0, 255.0))
}

mod bounds;
mod pad;
#[cfg(test)]
mod tests;
