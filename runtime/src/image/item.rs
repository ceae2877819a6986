//! An image on its way through the steps of an image processor: levels, numbers or patches, whole or in parts.

use std::borrow::Cow;

use image::RgbImage;
use ndarray::Array3;

use super::Pixels;
use super::normalize::rescaled;
use super::patches::Patches;
use crate::{Error, Result};

/// An image on its way through the steps.
#[derive(Debug)]
pub(super) struct Item<'a> {
    /// Its height and width before all steps.
    pub(super) size: Pixels,
    /// The image, or what it was cut into.
    pub(super) parts: Vec<Part<'a>>,
    /// Its height and width before it was padded.
    pub(super) unpadded: Option<Pixels>,
    /// Rows and columns of the squares that it was split into, 0 where it was not.
    pub(super) split: (usize, usize),
}

/// An image or a tile of one, as a step leaves it.
#[derive(Debug)]
pub(super) enum Part<'a> {
    Levels(Cow<'a, RgbImage>),
    /// `[3, height, width]`
    Numbers(Array3<f32>),
    Patches(Patches),
}

impl<'a> Item<'a> {
    pub(super) fn new(image: &'a RgbImage) -> Self {
        let size = pixels(image);
        Self { size, parts: vec![Part::Levels(Cow::Borrowed(image))], unpadded: None, split: (0, 0) }
    }
}

impl Part<'_> {
    /// Height and width; of patches how many there are, and the pixels of each.
    pub(super) fn size(&self) -> Pixels {
        match self {
            Self::Levels(image) => pixels(image),
            Self::Numbers(numbers) => (numbers.dim().1, numbers.dim().2),
            Self::Patches(patches) => (patches.values.nrows(), patches.values.ncols() / 3),
        }
    }

    /// The image as numbers: as they are, or its levels.
    pub(super) fn numbers(self) -> Result<Array3<f32>> {
        match self {
            Self::Levels(image) => Ok(rescaled(&image, 1.0, false)),
            Self::Numbers(numbers) => Ok(numbers),
            Self::Patches(_) => Err(misplaced("an image", "patches")),
        }
    }

    pub(super) fn levels(&self) -> Result<&RgbImage> {
        match self {
            Self::Levels(image) => Ok(image),
            Self::Numbers(_) => Err(misplaced("levels", "numbers")),
            Self::Patches(_) => Err(misplaced("levels", "patches")),
        }
    }
}

/// What a step that takes something else says.
pub(super) fn misplaced(wanted: &str, found: &str) -> Error {
    let help = "the processor's steps are in a wrong order; report it";
    Error::input("image", format!("is {found} where a step takes {wanted}"), help)
}

/// Height and width.
pub(super) fn pixels(image: &RgbImage) -> Pixels {
    (image.height() as usize, image.width() as usize)
}
