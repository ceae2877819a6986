//! Frames to files.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::Duration;

use image::codecs::gif::{GifEncoder, Repeat};
use image::{Delay, DynamicImage, Frame};

use crate::image::Image;
use crate::{Error, Result};

/// How long a frame of an animation is shown, in milliseconds.
const DELAY: u64 = 100;

/// Writes frames one after the other, so that none need be kept: an animated GIF, or a folder of PNG files that are named by the
/// frames' indices, as [`Video::open`](super::Video::open) reads both.
pub struct FrameWriter(Target);

enum Target {
    Animation { path: PathBuf, encoder: GifEncoder<BufWriter<File>> },
    Folder(PathBuf),
}

impl std::fmt::Debug for FrameWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Target::Animation { path, .. } | Target::Folder(path)) = &self.0;
        write!(f, "FrameWriter({})", path.display())
    }
}

impl FrameWriter {
    /// Makes the file, where its name ends in `.gif`, or the folder.
    ///
    /// # Errors
    /// When that is not possible, or the name has another ending.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_owned();
        match path.extension().map(|ending| ending.to_string_lossy().to_lowercase()) {
            Some(ending) if ending == "gif" => {
                let file = File::create(&path).map_err(|e| Error::io(&path, e))?;
                let mut encoder = GifEncoder::new(BufWriter::new(file));
                encoder.set_repeat(Repeat::Infinite).map_err(|e| failed(&path, e))?;
                Ok(Self(Target::Animation { path, encoder }))
            }
            Some(ending) if !path.is_dir() => {
                let help = "give the name of an animated image, frames.gif, or of a folder, frames";
                Err(Error::input(
                    path.display().to_string(),
                    format!("frames are not written as {ending}"),
                    help,
                ))
            }
            _ => {
                std::fs::create_dir_all(&path).map_err(|e| Error::io(&path, e))?;
                Ok(Self(Target::Folder(path)))
            }
        }
    }

    /// Writes a frame; an animation has frames in the order in which they come.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&mut self, index: usize, frame: &Image) -> Result<()> {
        match &mut self.0 {
            Target::Folder(path) => frame.save(path.join(format!("{index:05}.png"))),
            Target::Animation { path, encoder } => {
                let pixels = DynamicImage::ImageRgb8(frame.rgb().clone()).into_rgba8();
                let delay = Delay::from_saturating_duration(Duration::from_millis(DELAY));
                encoder.encode_frame(Frame::from_parts(pixels, 0, 0, delay)).map_err(|e| failed(path, e))
            }
        }
    }
}

fn failed(path: &Path, error: image::ImageError) -> Error {
    match error {
        image::ImageError::IoError(error) => Error::io(path, error),
        other => {
            let help = "give frames of up to 65,535 pixels across and down, or the name of a folder";
            Error::input(path.display().to_string(), format!("cannot be written: {other}"), help)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::tests::folder;
    use crate::video::Video;

    #[test]
    fn what_is_written_is_read_again() {
        let temporary = tempfile::tempdir().unwrap();
        let video = Video::open(folder().join("files/animated.gif")).unwrap();
        for name in ["frames", "frames.gif"] {
            let path = temporary.path().join(name);
            let mut writer = FrameWriter::create(&path).unwrap();
            for (index, frame) in video.frames().iter().enumerate() {
                writer.write(index, frame).unwrap();
            }
            drop(writer);
            let again = Video::open(&path).unwrap();
            assert_eq!(again.frames().len(), video.frames().len());
            assert!(name == "frames.gif" || again == video);
        }
        assert!(temporary.path().join("frames/00005.png").is_file());
        let text = FrameWriter::create(temporary.path().join("a.mp4")).unwrap_err().to_string();
        assert!(text.contains("a.mp4") && text.contains("frames.gif"), "{text}");
    }
}
