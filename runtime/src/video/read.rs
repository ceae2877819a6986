//! Frames from files.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use image::codecs::gif::GifDecoder;
use image::codecs::webp::WebPDecoder;
use image::{AnimationDecoder, DynamicImage, Frames, ImageDecoder, ImageFormat, ImageResult};

use super::ffmpeg;
use crate::image::{Image, MAX_PIXELS, broken, checked_size, guarded, limits};
use crate::{Error, Result, files};

/// The endings of images in a folder of frames.
const PICTURES: [&str; 5] = ["png", "jpg", "jpeg", "webp", "gif"];

/// The most pixels of all frames together.
pub(super) const MOST: u64 = 4 * MAX_PIXELS;

/// Bytes that tell what a file is.
const HEAD: u64 = 64;

pub(super) fn frames(path: &Path) -> Result<Vec<Image>> {
    if path.is_dir() {
        return folder(path);
    }
    let name = path.display().to_string();
    // Videos are not read whole to find out that they are no images.
    let head = files::start(path, HEAD).map_err(|e| Error::io(path, e))?;
    let kind = image::guess_format(&head).ok();
    if head.is_empty() {
        return Err(Error::input(
            &name,
            "is empty",
            "give a GIF or WebP file, a folder of images, or a video",
        ));
    }
    if !matches!(kind, Some(ImageFormat::Gif | ImageFormat::WebP | ImageFormat::Png | ImageFormat::Jpeg)) {
        return ffmpeg::frames(path);
    }
    let bytes = files::read(path).map_err(|e| Error::io(path, e))?;
    guarded(&name, || match kind {
        Some(ImageFormat::Gif) => {
            let mut decoder = GifDecoder::new(Cursor::new(&bytes)).map_err(|e| broken(&name, &e))?;
            prepare(&name, &mut decoder)?;
            collect(&name, decoder.dimensions(), decoder.into_frames())
        }
        Some(ImageFormat::WebP) => {
            let mut decoder = WebPDecoder::new(Cursor::new(&bytes)).map_err(|e| broken(&name, &e))?;
            if !decoder.has_animation() {
                return Ok(vec![Image::open(path)?]);
            }
            prepare(&name, &mut decoder)?;
            collect(&name, decoder.dimensions(), decoder.into_frames())
        }
        _ => Ok(vec![Image::open(path)?]),
    })
}

fn prepare(name: &str, decoder: &mut impl ImageDecoder) -> Result<()> {
    checked_size(name, decoder.dimensions())?;
    decoder.set_limits(limits()).map_err(|e| broken(name, &e))
}

fn collect(name: &str, (width, height): (u32, u32), frames: Frames<'_>) -> Result<Vec<Image>> {
    let pixels = u64::from(width) * u64::from(height);
    let room = usize::try_from(MOST / pixels.max(1)).unwrap_or(usize::MAX);
    let read: ImageResult<Vec<Image>> = frames
        .take(room.saturating_add(1))
        .map(|frame| Ok(Image::from_rgb(DynamicImage::ImageRgba8(frame?.into_buffer()).into_rgb8())))
        .collect();
    let read = read.map_err(|e| broken(name, &e))?;
    if read.len() > room {
        return Err(too_many(name, room, (width, height)));
    }
    if read.is_empty() {
        return Err(Error::input(name, "has no frames", "the file is damaged or cut short: fetch it again"));
    }
    Ok(read)
}

/// More frames than memory is given to.
pub(super) fn too_many(name: &str, room: usize, (width, height): (u32, u32)) -> Error {
    let problem = format!("has more than {room} frames of {width} x {height} pixels");
    Error::input(name, problem, "cut it, or scale it down first")
}

fn folder(path: &Path) -> Result<Vec<Image>> {
    let entries = std::fs::read_dir(path).map_err(|e| Error::io(path, e))?;
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.map(|e| e.path()))
        .collect::<std::io::Result<_>>()
        .map_err(|e| Error::io(path, e))?;
    files.retain(|file| {
        let ending = file.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        ending.is_some_and(|ending| PICTURES.contains(&ending.as_str()))
    });
    files.sort();
    if files.is_empty() {
        let help = "give a folder of PNG, JPEG or WebP files, which are frames in the order of their names";
        return Err(Error::input(path.display().to_string(), "is a folder with no images", help));
    }
    files.iter().map(Image::open).collect()
}
