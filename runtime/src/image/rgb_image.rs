//! An RGB image in memory.

use std::fmt;
use std::path::Path;

use image::RgbImage;
use ndarray::{Array3, ArrayView3};

use super::{Filter, read, resize};
use crate::{Error, Result};

/// An 8-bit RGB image.
#[derive(Clone, PartialEq, Eq)]
pub struct Image(RgbImage);

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({} x {})", self.width(), self.height())
    }
}

impl Image {
    /// Reads a PNG, JPEG, WebP or GIF file, as the reference's `load_image` does: upright, as its EXIF orientation
    /// says; in RGB, whatever it is stored in, transparency left out; the first frame of several.
    ///
    /// Levels are the reference's, those of JPEG too, which leaves roundings open: they are libjpeg-turbo's. JPEG with
    /// arithmetic coding, of 12 bits a sample or lossless is not read.
    ///
    /// # Errors
    /// When the file cannot be read, is no image, is damaged, or is larger than [`MAX_PIXELS`](super::MAX_PIXELS).
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = read::file(path)?;
        read::decode(&bytes, &path.display().to_string()).map(Self)
    }

    /// Reads the contents of an image file, as [`Image::open`].
    ///
    /// # Errors
    /// As [`Image::open`].
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        read::decode(bytes, "image").map(Self)
    }

    /// An image from its pixels, `[height, width, 3]`.
    ///
    /// # Errors
    /// When there are no pixels, or not three channels.
    pub fn from_pixels(pixels: &Array3<u8>) -> Result<Self> {
        let (height, width, channels) = pixels.dim();
        let problem = format!("has shape [{height}, {width}, {channels}]");
        let wrong = || Error::input("pixels", problem, "give [height, width, 3], none of them 0");
        let (Ok(rows), Ok(columns)) = (u32::try_from(height), u32::try_from(width)) else {
            return Err(wrong());
        };
        if channels != 3 || height == 0 || width == 0 {
            return Err(wrong());
        }
        let levels = pixels.as_standard_layout().iter().copied().collect();
        RgbImage::from_raw(columns, rows, levels).map(Self).ok_or_else(wrong)
    }

    pub(crate) fn from_rgb(image: RgbImage) -> Self {
        Self(image)
    }

    /// Height in pixels.
    pub fn height(&self) -> usize {
        self.0.height() as usize
    }

    /// Width in pixels.
    pub fn width(&self) -> usize {
        self.0.width() as usize
    }

    /// The pixels, `[height, width, 3]`.
    pub fn pixels(&self) -> ArrayView3<'_, u8> {
        let shape = (self.height(), self.width(), 3);
        ArrayView3::from_shape(shape, self.0.as_raw()).unwrap_or_else(|_| unreachable!("three bytes a pixel"))
    }

    pub(crate) fn rgb(&self) -> &RgbImage {
        &self.0
    }

    pub(crate) fn rgb_mut(&mut self) -> &mut RgbImage {
        &mut self.0
    }

    /// The image in another size, as Pillow resizes: antialiased, in 8-bit arithmetic.
    ///
    /// # Errors
    /// When the size is 0, or larger than [`MAX_PIXELS`](super::MAX_PIXELS).
    pub fn resize(&self, height: usize, width: usize, filter: Filter) -> Result<Self> {
        resize::resize(&self.0, height, width, filter).map(Self)
    }

    /// Writes the image; the name's ending says in which format (`png`, `webp`, `gif`).
    ///
    /// # Errors
    /// When the ending is another one, or the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let refused = |problem: String| {
            let help = "give a name that ends in .png, .webp or .gif";
            Error::input(path.display().to_string(), format!("cannot be written: {problem}"), help)
        };
        // Checked first, as a file would be there already when its format is refused.
        let format = image::ImageFormat::from_path(path).map_err(|e| refused(e.to_string()))?;
        if !format.writing_enabled() {
            return Err(refused(format!("there is no encoder of {format:?}")));
        }
        self.0.save_with_format(path, format).map_err(|e| match e {
            image::ImageError::IoError(e) => Error::io(path, e),
            other => refused(other.to_string()),
        })
    }
}
