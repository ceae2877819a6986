//! A checkpoint's image processor.

use std::borrow::Cow;
use std::path::Path;

use image::RgbImage;
use ndarray::{Array1, Array2, Array3, Array4, Array5, ArrayView4, Axis, s};
use serde_json::Value as Json;

use super::interpolation::resampled;
use super::normalize::{centre_crop, centred_on, filled, floats, largest, stacked};
use super::patches::patched;
use super::resize::resize;
use super::settings::Source;
use super::tiles::{filling, tiles};
use super::{Image, Layout, Settings, Size};
use crate::hub::Checkpoint;
use crate::{Error, Result, Values};

/// Makes of pictures what a checkpoint's model takes, as its `preprocessor_config.json` says, or the part
/// `image_processor` of its `processor_config.json`.
///
/// The numbers are those of the reference's processors on Pillow, which it uses where `torchvision` is not
/// installed.
#[derive(Clone, Debug)]
pub struct ImageProcessor {
    source: Source,
    settings: Settings,
}

impl ImageProcessor {
    /// Reads a checkpoint's processor.
    ///
    /// # Errors
    /// When the checkpoint has none, it is of a class that is not known, or a setting is wrong.
    pub fn from_checkpoint(checkpoint: &Checkpoint) -> Result<Self> {
        let source = Source::of(checkpoint)?;
        let settings = source.settings()?;
        Ok(Self { source, settings })
    }

    /// The same with other settings, by their names in the file: `{"size": {"height": 100, "width": 100}}`.
    ///
    /// # Errors
    /// When a setting is wrong.
    pub fn with(&self, settings: &Json) -> Result<Self> {
        let source = self.source.with(settings);
        let settings = source.settings()?;
        Ok(Self { source, settings })
    }

    /// What the file says, and the defaults.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The file it was read from.
    pub fn file(&self) -> &Path {
        &self.source.file
    }

    /// Pictures to tensors: `pixel_values` f32, and what else goes with the [`Layout`].
    ///
    /// # Errors
    /// When there are no pictures, or they do not fit together.
    pub fn process(&self, images: &[Image]) -> Result<Values> {
        if images.is_empty() {
            return Err(Error::input("images", "are none", "give at least one picture"));
        }
        let mut values = Values::new();
        let pixels = match self.settings.layout {
            Layout::Single | Layout::Square | Layout::Unrounded => self.batch(images)?.into_dyn(),
            Layout::Masked => {
                let (pixels, mask) = self.masked(images)?;
                if let Some(mask) = mask {
                    values.insert("pixel_mask".to_owned(), mask.into_dyn().into());
                }
                pixels.into_dyn()
            }
            Layout::Tiles => {
                let size = |(i, axis): (usize, usize)| [images[i].height(), images[i].width()][axis] as i64;
                let sizes = Array2::from_shape_fn((images.len(), 2), size);
                values.insert("image_sizes".to_owned(), sizes.into_dyn().into());
                self.tiled(images)?.into_dyn()
            }
            Layout::Patches => {
                let (pixels, counts) = self.patches(images)?;
                values.insert("num_patches".to_owned(), counts.into_dyn().into());
                pixels.into_dyn()
            }
            Layout::OwnSizes => return patched(images, &self.settings),
            Layout::Frames => return self.process_videos(&[images]),
        };
        values.insert("pixel_values".to_owned(), pixels.into());
        Ok(values)
    }

    /// Videos, each a list of as many frames, to `pixel_values` `[batch, frames, 3, height, width]`.
    ///
    /// # Errors
    /// When there are no frames, or they do not fit together.
    pub fn process_videos(&self, videos: &[&[Image]]) -> Result<Values> {
        let videos: Vec<Array4<f32>> =
            videos.iter().map(|frames| self.batch(frames)).collect::<Result<_>>()?;
        let views: Vec<ArrayView4<'_, f32>> = videos.iter().map(|video| video.view()).collect();
        let pixels = ndarray::stack(Axis(0), &views).map_err(|_| {
            let shapes: Vec<String> = videos.iter().map(|video| format!("{:?}", video.shape())).collect();
            let problem = format!("have different shapes: {}", shapes.join(", "));
            Error::input("videos", problem, "give at least one, and all of as many frames")
        })?;
        Ok(Values::from([("pixel_values".to_owned(), pixels.into_dyn().into())]))
    }

    /// `[batch, 3, height, width]`.
    fn batch(&self, images: &[Image]) -> Result<Array4<f32>> {
        let settings = &self.settings;
        let mut planes = Vec::with_capacity(images.len());
        for image in images {
            let image = image.rgb();
            let edge = image.width().max(image.height()) as usize;
            planes.push(if settings.layout == Layout::Square && settings.pad {
                let colour = settings.image_mean.map(|mean| (mean * 255.0) as u8);
                self.plane(&centred_on(image, (edge, edge), colour))?
            } else {
                self.plane(image)?
            });
        }
        if settings.layout == Layout::Single && settings.pad {
            let size = settings.pad_size.unwrap_or_else(|| largest(&planes));
            planes = planes.iter().map(|plane| filled(plane, size)).collect::<Result<_>>()?;
        }
        if planes.is_empty() {
            return Err(Error::input("frames", "are none", "give at least one"));
        }
        stacked(&planes)
    }

    /// `[batch, 3, height, width]`, and 1 where there is a picture and 0 where there is none.
    fn masked(&self, images: &[Image]) -> Result<(Array4<f32>, Option<Array3<i64>>)> {
        let planes: Vec<_> = images.iter().map(|image| self.plane(image.rgb())).collect::<Result<_>>()?;
        if !self.settings.pad {
            return Ok((stacked(&planes)?, None));
        }
        let (height, width) = self.settings.pad_size.unwrap_or_else(|| largest(&planes));
        let mut mask = Array3::zeros((planes.len(), height, width));
        let mut padded = Vec::with_capacity(planes.len());
        for (i, plane) in planes.iter().enumerate() {
            padded.push(filled(plane, (height, width))?);
            let (_, h, w) = plane.dim();
            mask.slice_mut(s![i, ..h, ..w]).fill(1);
        }
        Ok((stacked(&padded)?, Some(mask)))
    }

    /// `[batch, tiles, 3, height, width]`; where a picture has fewer tiles than another, zeros.
    fn tiled(&self, images: &[Image]) -> Result<Array5<f32>> {
        let mut all = Vec::with_capacity(images.len());
        for image in images {
            let parts = tiles(image.rgb(), &self.settings)?;
            let planes: Vec<_> = parts.iter().map(|part| self.plane(part)).collect::<Result<_>>()?;
            all.push(stacked(&planes)?);
        }
        let most = all.iter().map(|tiles| tiles.len_of(Axis(0))).max().unwrap_or(0);
        if !self.settings.pad && all.iter().any(|tiles| tiles.len_of(Axis(0)) < most) {
            let help = "set `do_pad`, or process them one by one";
            return Err(Error::input("images", "have different numbers of tiles", help));
        }
        let (_, channels, height, width) = all.first().map_or((0, 0, 0, 0), Array4::dim);
        let mut pixels = Array5::zeros((all.len(), most, channels, height, width));
        for (i, tiles) in all.iter().enumerate() {
            if tiles.shape()[1..] != [channels, height, width] {
                let help = "set `size` and `crop_size` so that tiles are of one size";
                return Err(Error::input("images", "have tiles of different sizes", help));
            }
            pixels.slice_mut(s![i, ..tiles.len_of(Axis(0)), .., .., ..]).assign(tiles);
        }
        Ok(pixels)
    }

    /// `[tiles, 3, height, width]`, and how many each picture has.
    fn patches(&self, images: &[Image]) -> Result<(Array4<f32>, Array1<i64>)> {
        let (mut planes, mut counts) = (vec![], vec![]);
        for image in images {
            let before = planes.len();
            match (self.settings.patches, self.settings.size) {
                (Some(limits), Size::Exact(tile)) => {
                    for tile in filling(image.rgb(), tile, limits, self.settings.resample)? {
                        planes.push(floats(&tile, &self.settings));
                    }
                }
                _ => planes.push(self.plane(image.rgb())?),
            }
            counts.push((planes.len() - before) as i64);
        }
        Ok((stacked(&planes)?, Array1::from_vec(counts)))
    }

    /// One picture resized, cropped, rescaled and normalised, `[3, height, width]`.
    fn plane(&self, image: &RgbImage) -> Result<Array3<f32>> {
        let settings = &self.settings;
        if settings.layout == Layout::Unrounded {
            return self.unrounded(image);
        }
        let mut image = Cow::Borrowed(image);
        if let Some(size) = settings.resize {
            let (height, width) = size.of((image.height() as usize, image.width() as usize));
            let (height, width) = (height - height % settings.step, width - width % settings.step);
            image = Cow::Owned(resize(&image, height, width, settings.resample)?);
        }
        if let Some(size) = settings.crop {
            image = Cow::Owned(centre_crop(&image, size));
        }
        Ok(floats(&image, settings))
    }

    /// One picture normalised and then resized, which is the same as the other way round where nothing is rounded.
    fn unrounded(&self, image: &RgbImage) -> Result<Array3<f32>> {
        let settings = &self.settings;
        if settings.crop.is_some() {
            let help = "set `do_center_crop` to false, as published checkpoints do";
            return Err(Error::input("do_center_crop", "is not supported by this processor", help));
        }
        let plane = floats(image, settings);
        let Some(size) = settings.resize else { return Ok(plane) };
        let (height, width) = size.of((image.height() as usize, image.width() as usize));
        Ok(resampled(&resampled(&plane, 1, height, settings.resample), 2, width, settings.resample))
    }
}
