//! Picture files to upright RGB, as the reference's `load_image` reads them through Pillow.

use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use image::metadata::Orientation;
use image::{
    DynamicImage, ExtendedColorType, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits, RgbImage,
};

use super::jpeg::{self, Problem};
use crate::{Error, Result};

/// The most pixels an image may have: what Pillow takes before it calls a file a decompression bomb.
pub const MAX_PIXELS: u64 = 178_956_970;

/// The most bytes a pixel takes while it is read: four channels of 16 bits.
const MAX_PIXEL_BYTES: u64 = 8;

const DAMAGED: &str = "the file is damaged or cut short: fetch it again";

pub(super) fn file(path: &Path) -> Result<Vec<u8>> {
    let shown = path.to_string_lossy();
    // A page fetches it.
    let fetched = cfg!(target_family = "wasm");
    if !fetched && (shown.starts_with("http://") || shown.starts_with("https://")) {
        return Err(Error::input(shown, "is an address, not a file", "download the image and give its path"));
    }
    crate::files::read(path).map_err(|e| Error::io(path, e))
}

pub(super) fn decode(bytes: &[u8], name: &str) -> Result<RgbImage> {
    if bytes.is_empty() {
        return Err(Error::input(name, "is empty", "give a PNG, JPEG, WebP or GIF file"));
    }
    guarded(name, || decoded(bytes, name))
}

/// What a decoder gives. One that panics has met a damaged file that it does not see through: image-webp 0.2.4 counts codes of lossless
/// files in 16 bits, and looks some up that are not there.
pub(crate) fn guarded<T>(name: &str, decode: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(decode))
        .unwrap_or_else(|_| Err(Error::input(name, "cannot be read: its decoder fails", DAMAGED)))
}

fn decoded(bytes: &[u8], name: &str) -> Result<RgbImage> {
    let mut reader = ImageReader::new(Cursor::new(bytes))
        .with_guessed_format()
        .map_err(|e| Error::io(Path::new(name), e))?;
    reader.limits(limits());
    if reader.format() == Some(ImageFormat::Jpeg) {
        return upright_jpeg(bytes, name);
    }
    let mut decoder = reader.into_decoder().map_err(|e| broken(name, &e))?;
    checked_size(name, decoder.dimensions())?;
    let orientation = decoder.orientation().map_err(|e| broken(name, &e))?;
    let grey_16 = decoder.original_color_type() == ExtendedColorType::L16;
    let mut image = DynamicImage::ImageRgb8(rgb(
        DynamicImage::from_decoder(decoder).map_err(|e| broken(name, &e))?,
        grey_16,
    ));
    image.apply_orientation(orientation);
    Ok(image.into_rgb8())
}

fn upright_jpeg(bytes: &[u8], name: &str) -> Result<RgbImage> {
    let decoded = jpeg::decode(bytes, MAX_PIXELS).map_err(|problem| match problem {
        Problem::Damaged(what) => Error::input(name, format!("cannot be read: {what}"), DAMAGED),
        Problem::Unsupported(what) => Error::input(
            name,
            format!("{what}, which is not decoded"),
            "give a baseline or progressive JPEG file of 8 bits a sample, or PNG, WebP or GIF",
        ),
        Problem::TooLarge((width, height)) => too_large(name, &format!("has {width} x {height} pixels")),
    })?;
    let orientation = decoded.exif.as_deref().and_then(Orientation::from_exif_chunk);
    let Some(image) = RgbImage::from_raw(decoded.width, decoded.height, decoded.levels) else {
        return Err(Error::input(name, "cannot be read: pixels are missing", DAMAGED));
    };
    let mut image = DynamicImage::ImageRgb8(image);
    image.apply_orientation(orientation.unwrap_or(Orientation::NoTransforms));
    Ok(image.into_rgb8())
}

/// What a decoder may allocate.
pub(crate) fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_PIXELS * MAX_PIXEL_BYTES);
    limits
}

pub(crate) fn checked_size(name: &str, (width, height): (u32, u32)) -> Result<()> {
    if u64::from(width) * u64::from(height) <= MAX_PIXELS {
        return Ok(());
    }
    Err(too_large(name, &format!("has {width} x {height} pixels")))
}

fn too_large(name: &str, size: &str) -> Error {
    let problem = format!("{size}; at most {MAX_PIXELS} are read, lest a small file fill the memory");
    Error::input(name, problem, "scale it down first")
}

/// What a decoder refuses, and what to do about it.
pub(crate) fn broken(name: &str, error: &ImageError) -> Error {
    match error {
        ImageError::Unsupported(e) => Error::input(
            name,
            format!("is no image that can be read: {e}"),
            "give a PNG, JPEG, WebP or GIF file",
        ),
        ImageError::Limits(_) => too_large(name, "is too large"),
        e => Error::input(name, format!("cannot be read: {e}"), DAMAGED),
    }
}

/// Eight bits of red, green and blue.
///
/// Of 16 bits Pillow keeps the upper eight, but cuts grey ones off at 255.
fn rgb(image: DynamicImage, grey_16: bool) -> RgbImage {
    let (width, height) = (image.width(), image.height());
    let upper = |level: u16| (level >> 8) as u8;
    let cut = |level: u16| u8::try_from(level).unwrap_or(u8::MAX);
    let grey = |level: u8| [level; 3];
    let levels: Vec<u8> = match &image {
        DynamicImage::ImageLuma8(i) => i.pixels().flat_map(|p| grey(p[0])).collect(),
        DynamicImage::ImageLumaA8(i) => i.pixels().flat_map(|p| grey(p[0])).collect(),
        DynamicImage::ImageRgba8(i) => i.pixels().flat_map(|p| [p[0], p[1], p[2]]).collect(),
        DynamicImage::ImageLuma16(i) => i.pixels().flat_map(|p| grey(cut(p[0]))).collect(),
        DynamicImage::ImageLumaA16(i) if grey_16 => i.pixels().flat_map(|p| grey(cut(p[0]))).collect(),
        DynamicImage::ImageLumaA16(i) => i.pixels().flat_map(|p| grey(upper(p[0]))).collect(),
        DynamicImage::ImageRgb16(i) => i.pixels().flat_map(|p| p.0.map(upper)).collect(),
        DynamicImage::ImageRgba16(i) => i.pixels().flat_map(|p| [p[0], p[1], p[2]].map(upper)).collect(),
        _ => return image.into_rgb8(),
    };
    RgbImage::from_raw(width, height, levels).unwrap_or_else(|| image.into_rgb8())
}
