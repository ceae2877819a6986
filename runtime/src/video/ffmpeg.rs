//! Video files through the machine's own `ffmpeg`, frame by frame over a pipe.

use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::Path;
use std::process::{ChildStderr, Command, Stdio};

use ::image::RgbImage;

use super::read::{MOST, too_many};
use crate::image::{Image, checked_size};
use crate::{Error, Result};

/// The most that is kept of what it complains about.
const WORDS: u64 = 4096;

/// All frames of the first video stream, as they are stored: neither turned nor repeated nor left out.
pub(super) fn frames(path: &Path) -> Result<Vec<Image>> {
    let name = path.display().to_string();
    let mut source = std::ffi::OsString::from("file:");
    source.push(path);
    let spawned = Command::new("ffmpeg")
        .args([
            "-nostdin",
            "-v",
            "error",
            "-xerror",
            "-protocol_whitelist",
            "file,pipe",
            "-noautorotate",
            "-i",
        ])
        .arg(source)
        .args(["-map", "0:v:0", "-fps_mode", "passthrough", "-pix_fmt", "rgb24", "-c:v", "ppm"])
        .args(["-f", "image2pipe", "pipe:1"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = spawned.map_err(|e| match e.kind() {
        ErrorKind::NotFound => Error::input(
            &name,
            "is no animated image, and `ffmpeg`, which reads other videos, is not installed",
            "install it (`apt install ffmpeg`, `brew install ffmpeg`, `winget install ffmpeg`), or give a GIF or WebP \
             file, or a folder of pictures",
        ),
        _ => Error::io("ffmpeg", e),
    })?;
    let complaints = child.stderr.take().map(|pipe| std::thread::spawn(move || words(pipe)));
    let frames = child.stdout.take().map_or_else(|| Ok(Vec::new()), |pipe| read(&name, BufReader::new(pipe)));
    if frames.is_err() {
        // Whether it has ended by itself makes no difference.
        let _ = child.kill();
    }
    let status = child.wait().map_err(|e| Error::io("ffmpeg", e))?;
    let words = complaints.and_then(|thread| thread.join().ok()).unwrap_or_default();
    let frames = frames?;
    if !status.success() || frames.is_empty() {
        let words = words.lines().last().unwrap_or("it found no frames").trim();
        let problem = format!("is no video that `ffmpeg` can read: {words}");
        return Err(Error::input(
            name,
            problem,
            "if it should be one, it is damaged or cut short: fetch it again",
        ));
    }
    Ok(frames)
}

/// What it says, read to its end lest it wait for a reader.
fn words(mut pipe: ChildStderr) -> String {
    let mut words = Vec::new();
    let kept = pipe.by_ref().take(WORDS).read_to_end(&mut words);
    if kept.is_ok() {
        let _ = std::io::copy(&mut pipe, &mut std::io::sink());
    }
    String::from_utf8_lossy(&words).into_owned()
}

/// Frames in the PPM format, one after the other.
fn read(name: &str, mut pipe: impl BufRead) -> Result<Vec<Image>> {
    let (mut frames, mut pixels) = (Vec::new(), 0);
    while let Some((width, height)) = header(&mut pipe).map_err(|e| Error::io(name, e))? {
        checked_size(name, (width, height))?;
        pixels += u64::from(width) * u64::from(height);
        if pixels > MOST {
            return Err(too_many(name, frames.len(), (width, height)));
        }
        // At most three times `MAX_PIXELS`, which is below 2^32.
        let mut levels = vec![0; 3 * width as usize * height as usize];
        pipe.read_exact(&mut levels).map_err(|e| Error::io(name, e))?;
        let Some(frame) = RgbImage::from_raw(width, height, levels) else { break };
        frames.push(Image::from_rgb(frame));
    }
    Ok(frames)
}

/// A frame's width and height; none at the end.
fn header(pipe: &mut impl BufRead) -> std::io::Result<Option<(u32, u32)>> {
    let mut words = Vec::new();
    while words.len() < 4 {
        let mut line = String::new();
        if pipe.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        words.extend(line.split_whitespace().map(str::to_owned));
    }
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["P6", width, height, "255"] => match (width.parse(), height.parse()) {
            (Ok(width), Ok(height)) if width > 0 && height > 0 => Ok(Some((width, height))),
            _ => Err(std::io::Error::new(ErrorKind::InvalidData, "`ffmpeg` wrote a frame of no size")),
        },
        _ => Err(std::io::Error::new(ErrorKind::InvalidData, "`ffmpeg` wrote what is no frame")),
    }
}
