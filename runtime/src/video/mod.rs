//! Videos as frames: animated images, folders of images, video files, and the choice of frames for a model.

#[cfg(not(target_family = "wasm"))]
mod ffmpeg;
#[cfg(target_family = "wasm")]
#[path = "listed.rs"]
mod ffmpeg;
mod read;
mod write;

use std::path::Path;

pub use self::write::FrameWriter;
use crate::image::Image;
use crate::{Error, Result};

/// The frames of a video, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Video(Vec<Image>);

impl Video {
    /// Reads an animated GIF or WebP file, or a folder of images, which are frames in the order of their names.
    ///
    /// Other files, such as MP4, are read through `ffmpeg`, which must be installed; a page has none, and gives frames instead.
    ///
    /// # Errors
    /// When there are no frames, a file is damaged, too large or no image, or `ffmpeg` is needed and not there.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        read::frames(path.as_ref()).and_then(Self::from_frames)
    }

    /// A video from its frames.
    ///
    /// # Errors
    /// When there are none.
    pub fn from_frames(frames: Vec<Image>) -> Result<Self> {
        if frames.is_empty() {
            return Err(Error::input("video", "has no frames", "give at least one"));
        }
        Ok(Self(frames))
    }

    /// All frames.
    pub fn frames(&self) -> &[Image] {
        &self.0
    }

    /// The frames that a model sees: `count` of them, spread evenly over the first `count * rate`.
    ///
    /// Reference: `VideoClassificationPipeline`.
    ///
    /// # Errors
    /// When the video is shorter than that.
    pub fn sample(&self, count: usize, rate: usize) -> Result<Vec<Image>> {
        let places = places(count, rate);
        let (needed, found) = (places.last().map_or(0, |last| last + 1), self.0.len());
        if count == 0 || needed > found {
            let problem = format!("has {found} frames, but {count} at every {rate} need {needed}");
            let help = "give a longer video, or set a smaller `num_frames` or `frame_sampling_rate`";
            return Err(Error::input("video", problem, help));
        }
        Ok(places.into_iter().map(|place| self.0[place].clone()).collect())
    }
}

/// Evenly from 0 to the last of `count * rate`, rounded down.
fn places(count: usize, rate: usize) -> Vec<usize> {
    let last = (count * rate.max(1)).saturating_sub(1) as f64;
    let step = if count > 1 { last / (count - 1) as f64 } else { 0.0 };
    let place = |i: usize| if i > 0 && i + 1 == count { last } else { i as f64 * step };
    (0..count).map(|i| place(i) as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::tests::{folder, levels, most};

    #[test]
    fn frames_are_read_as_the_reference_reads_them() {
        for (name, want) in levels("frames.safetensors") {
            let video = Video::open(folder().join("files").join(&name)).unwrap();
            assert_eq!(video.frames().len(), want.shape()[0], "{name}");
            for (i, (frame, want)) in video.frames().iter().zip(want.outer_iter()).enumerate() {
                assert_eq!(most(frame, &want.to_owned()), 0, "{name}: frame {i}");
            }
        }
    }

    #[test]
    fn a_folder_is_a_video() {
        let temporary = tempfile::tempdir().unwrap();
        let video = |path: &Path| Video::open(path).map_err(|e| e.to_string());
        assert!(video(temporary.path()).unwrap_err().contains("no images"));
        for (from, to) in [("tiny.png", "b.png"), ("rgb.png", "a.png")] {
            std::fs::copy(folder().join("files").join(from), temporary.path().join(to)).unwrap();
        }
        std::fs::write(temporary.path().join("notes.txt"), "not a frame").unwrap();
        let widths: Vec<_> = video(temporary.path()).unwrap().frames().iter().map(Image::width).collect();
        assert_eq!(widths, [46, 7]);
        assert_eq!(video(&folder().join("files/tiny.png")).unwrap().frames().len(), 1);
        std::fs::write(temporary.path().join("clip.mp4"), b"\0\0\0\x18ftypmp42\0\0\0\0").unwrap();
        assert!(video(&temporary.path().join("clip.mp4")).unwrap_err().contains("ffmpeg"));
    }

    #[test]
    fn frames_are_chosen_evenly() {
        assert_eq!(places(8, 1), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(places(4, 3), [0, 3, 7, 11]);
        assert_eq!(places(1, 5), [0]);
        let video = Video::open(folder().join("files/animated.gif")).unwrap();
        assert_eq!(video.sample(3, 2).unwrap()[2], video.frames()[5]);
        let text = video.sample(4, 2).unwrap_err().to_string();
        assert!(text.contains("has 6 frames, but 4 at every 2 need 8"), "{text}");
    }
}
