//! Frames from files.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use image::codecs::gif::GifDecoder;
use image::codecs::webp::WebPDecoder;
use image::{AnimationDecoder, DynamicImage, Frames, ImageDecoder, ImageFormat, ImageResult};

use crate::image::{Image, MAX_PIXELS, broken, checked_size, limits};
use crate::{Error, Result};

/// The endings of pictures in a folder of frames.
const PICTURES: [&str; 5] = ["png", "jpg", "jpeg", "webp", "gif"];

/// The most pixels of all frames together.
const MOST: u64 = 4 * MAX_PIXELS;

pub(super) fn frames(path: &Path) -> Result<Vec<Image>> {
    if path.is_dir() {
        return folder(path);
    }
    let name = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
    match image::guess_format(&bytes) {
        Ok(ImageFormat::Gif) => {
            let mut decoder = GifDecoder::new(Cursor::new(&bytes)).map_err(|e| broken(&name, &e))?;
            prepare(&name, &mut decoder)?;
            collect(&name, decoder.dimensions(), decoder.into_frames())
        }
        Ok(ImageFormat::WebP) => {
            let mut decoder = WebPDecoder::new(Cursor::new(&bytes)).map_err(|e| broken(&name, &e))?;
            if !decoder.has_animation() {
                return Ok(vec![Image::open(path)?]);
            }
            prepare(&name, &mut decoder)?;
            collect(&name, decoder.dimensions(), decoder.into_frames())
        }
        Ok(ImageFormat::Png | ImageFormat::Jpeg) => Ok(vec![Image::open(path)?]),
        _ => Err(Error::input(
            name,
            "is no animated picture",
            "give a GIF or WebP file, or write the frames to a folder and give that: \
             `ffmpeg -i clip.mp4 folder/%05d.png`",
        )),
    }
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
        let problem = format!("has more than {room} frames of {width} x {height} pixels");
        return Err(Error::input(name, problem, "cut it, or scale it down first"));
    }
    if read.is_empty() {
        return Err(Error::input(name, "has no frames", "the file is damaged or cut short: fetch it again"));
    }
    Ok(read)
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
        return Err(Error::input(path.display().to_string(), "is a folder with no pictures", help));
    }
    files.iter().map(Image::open).collect()
}
