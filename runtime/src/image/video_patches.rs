//! Frames of videos as patches of several frames each, sampled as a checkpoint's video processor says.
//!
//! Reference: `Qwen2VLVideoProcessor`, `Qwen3VLVideoProcessor`, `Ernie4_5_VLMoeVideoProcessor`.

use std::borrow::Cow;

use ndarray::{Array2, Array3, Axis};
use serde_json::{Value as Json, json};

use super::item::{Part, pixels};
use super::patches::{patchified_frames, smart_resize, smart_resize_video};
use super::processors::{Class, numbers, with};
use super::resize::resize;
use super::settings::Settings;
use super::{Image, Size};
use crate::hub::Checkpoint;
use crate::{Error, Result};

/// Which frames of a video are looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FrameSampling {
    /// `num_frames`: so many, spread evenly; instead of `fps`.
    pub num_frames: Option<usize>,
    /// `fps`: so many for a second of the video.
    pub fps: Option<f64>,
    /// The frames of a second of the video itself, where that is known.
    pub video_fps: Option<f64>,
}

/// Makes of videos what a checkpoint's model takes, as its `video_preprocessor_config.json` says, or the part
/// `video_processor` of its `processor_config.json` (`AutoVideoProcessor`).
#[derive(Clone, Debug)]
pub struct VideoProcessor {
    settings: Settings,
    kind: Kind,
    sample: bool,
    frames: (usize, usize),
    num_frames: Option<usize>,
    fps: Option<f64>,
}

/// How frames are sampled, sized and joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Several frames are a patch together (`Qwen2VLVideoProcessor`).
    Plain,
    /// The same, but sizes are those of all frames together, and prompts say seconds (`Qwen3VLVideoProcessor`).
    Timed,
    /// Every frame has patches of its own, and the model joins two of them (`Ernie4_5_VLMoeVideoProcessor`).
    Joined,
}

impl Kind {
    /// By the name of a video processor's class, or of that of the processor of texts and videos.
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "Qwen2VLVideoProcessor" => Self::Plain,
            "Qwen3VLVideoProcessor" | "Qwen3VLProcessor" => Self::Timed,
            "Ernie4_5_VLMoeVideoProcessor" | "Ernie4_5_VLMoeProcessor" => Self::Joined,
            _ => return None,
        })
    }

    /// What holds where the file does not say.
    fn defaults(self) -> Json {
        match self {
            Self::Plain => json!({
                "size": {"shortest_edge": 128 * 28 * 28, "longest_edge": 28 * 28 * 768}, "do_sample_frames": false,
                "min_frames": 4, "max_frames": 768,
            }),
            Self::Timed => json!({
                "size": {"shortest_edge": 128 * 32 * 32, "longest_edge": 32 * 32 * 768}, "patch_size": 16,
                "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5],
                "do_sample_frames": true, "fps": 2.0, "min_frames": 4, "max_frames": 768,
            }),
            Self::Joined => json!({
                "size": {"shortest_edge": 299 * 28 * 28, "longest_edge": 1196 * 28 * 28}, "do_sample_frames": true,
                "min_frames": 16, "max_frames": 180, "draw_on_frames": true,
            }),
        }
    }
}

/// A video in patches.
#[derive(Clone, Debug, PartialEq)]
pub struct VideoPatches {
    /// `[patches, values]`: of frames that are one patch together, square after square.
    pub pixels: Array2<f32>,
    /// How many times frames are one patch together, and rows and columns of patches.
    pub grid: [usize; 3],
    /// The second of each of those times, between its first and its last frame.
    pub seconds: Vec<f64>,
    /// The seconds between two of those times (`second_per_grid_ts`).
    pub interval: f64,
}

/// The most frames of a video that are looked at.
const MOST_FRAMES: usize = 1 << 12;

/// What the reference takes for the frames of a second where a video does not say.
const USUAL_FPS: f64 = 24.0;

impl VideoProcessor {
    /// Reads a checkpoint's processor of videos.
    ///
    /// # Errors
    /// When the checkpoint has none, it is of a class that is not known, or a setting is wrong or not supported.
    pub fn from_checkpoint(checkpoint: &Checkpoint) -> Result<Self> {
        let nested = checkpoint.json("processor_config.json")?.unwrap_or_default();
        let own = checkpoint.json("video_preprocessor_config.json")?;
        let (file, json) = match (own, nested["video_processor"].is_object()) {
            (Some(json), _) => ("video_preprocessor_config.json", json),
            (None, true) => ("processor_config.json", nested["video_processor"].clone()),
            // Older files have one for images and videos.
            (None, false) => {
                ("preprocessor_config.json", checkpoint.json("preprocessor_config.json")?.unwrap_or_default())
            }
        };
        let path = checkpoint.dir().join(file);
        let wrong = |problem: String| {
            Error::config(&path, problem, "take the file from the checkpoint that the model came with")
        };
        if !json.is_object() {
            return Err(wrong("is missing: the checkpoint takes no videos".to_owned()));
        }
        let name = json["video_processor_type"].as_str().unwrap_or_default();
        let named = [nested["processor_class"].as_str(), json["processor_class"].as_str()];
        let kind = match name {
            "" => named.into_iter().flatten().find_map(Kind::named).unwrap_or(Kind::Plain),
            name => Kind::named(name)
                .ok_or_else(|| wrong(format!("`video_processor_type`: `{name}` is not known")))?,
        };
        Self::read(kind, json).map_err(wrong)
    }

    fn read(kind: Kind, json: Json) -> std::result::Result<Self, String> {
        let mut all = with(kind.defaults(), json);
        if all["cap_pixels_per_frame"] == true {
            return Err("`cap_pixels_per_frame`: true is not supported; leave it out".to_owned());
        }
        if all["draw_on_frames"] == true {
            // Timestamps, in a font of the checkpoint, as FreeType draws it.
            let help = "set it to false, and frames are looked at without their times";
            return Err(format!("`draw_on_frames`: true is not supported; {help}"));
        }
        let sample = all["do_sample_frames"].take() == true;
        let count = |name: &str| all[name].as_u64().and_then(|count| usize::try_from(count).ok());
        let frames = (count("min_frames").unwrap_or(4), count("max_frames").unwrap_or(768));
        let (num_frames, fps) = (count("num_frames"), all["fps"].as_f64());
        let class = Class::named("Qwen2VLImageProcessor").ok_or("`Qwen2VLImageProcessor` is not known")?;
        let settings = Settings::read(class, &all)?;
        if [settings.patch_size, settings.merge_size, settings.temporal_patch_size].contains(&0) {
            return Err("`patch_size`, `merge_size` and `temporal_patch_size`: must be at least 1".to_owned());
        }
        if kind == Kind::Joined && settings.temporal_patch_size != 2 {
            return Err("`temporal_patch_size`: must be 2, as frames are joined".to_owned());
        }
        Ok(Self { settings, kind, sample, frames, num_frames, fps })
    }

    /// Whether prompts say the second of each time (`Qwen3VLProcessor`).
    pub fn is_timed(&self) -> bool {
        self.kind == Kind::Timed
    }

    /// How many times of a video have features together.
    pub fn joined_times(&self) -> usize {
        if self.kind == Kind::Joined { self.settings.temporal_patch_size } else { 1 }
    }

    /// How many patches on a side become one feature.
    pub fn merge_size(&self) -> usize {
        self.settings.merge_size
    }

    /// A video's frames in patches.
    ///
    /// # Errors
    /// When there are no frames, or fewer than are asked for, or they are of several sizes.
    pub fn process(&self, frames: &[Image], sampling: &FrameSampling) -> Result<VideoPatches> {
        let places = self.places(frames.len(), sampling)?;
        let Some(first) = places.first().and_then(|place| frames.get(*place)) else {
            return Err(Error::input("videos", "have no frames", "give at least one"));
        };
        let settings = &self.settings;
        let (height, width) = self.size(pixels(first.rgb()), places.len())?;
        let steps = numbers(settings);
        let mut all: Vec<Array3<f32>> = vec![];
        for place in &places {
            let Some(frame) = frames.get(*place) else { continue };
            let resized = match settings.resize {
                Some(_) => Cow::Owned(resize(frame.rgb(), height, width, settings.resample)?),
                None => Cow::Borrowed(frame.rgb()),
            };
            let part = steps.iter().try_fold(Part::Levels(resized), |part, step| step.part(part))?;
            all.push(part.numbers()?);
        }
        let each = settings.temporal_patch_size;
        while let (false, Some(last)) = (all.len().is_multiple_of(each), all.last().cloned()) {
            all.push(last);
        }
        let each = each / self.joined_times();
        let mut times = vec![];
        for together in all.chunks(each) {
            let views: Vec<&Array3<f32>> = together.iter().collect();
            times.push(patchified_frames(&views, settings.patch_size, settings.merge_size)?);
        }
        let grid = [times.len(), times[0].rows, times[0].columns];
        let views: Vec<_> = times.iter().map(|time| time.values.view()).collect();
        let pixels = ndarray::concatenate(Axis(0), &views).map_err(|_| {
            Error::input("videos", "have frames of different sizes", "give frames of one size")
        })?;
        let fps = sampling.video_fps.unwrap_or(USUAL_FPS);
        // Where a video does not say its own, what is sampled of it is taken for as many a second too.
        let sampled = sampling.video_fps.map_or(fps, |fps| places.len() as f64 / frames.len() as f64 * fps);
        let seconds = seconds(&places, fps, each);
        Ok(VideoPatches { pixels, grid, seconds, interval: each as f64 / sampled })
    }

    /// What frames become, of which there are so many.
    fn size(&self, from: (usize, usize), count: usize) -> Result<(usize, usize)> {
        let settings = &self.settings;
        let Some(Size::Between { shortest, longest }) = settings.resize else { return Ok(from) };
        let (factor, limits) = (settings.patch_size * settings.merge_size, (shortest, longest));
        let size = match self.is_timed() {
            true => smart_resize_video(from, factor, limits, (count, settings.temporal_patch_size)),
            false => smart_resize(from, factor, limits),
        };
        size.filter(|size| size.0.saturating_mul(size.1) <= 1 << 24).ok_or_else(|| {
            let problem = format!("of {} x {} have no size within the processor's limits", from.0, from.1);
            Error::input("videos", problem, "give frames that are less long and narrow, and at least two")
        })
    }

    /// Which frames of so many are looked at (`sample_frames`).
    fn places(&self, total: usize, sampling: &FrameSampling) -> Result<Vec<usize>> {
        let asked = sampling.num_frames.is_some() || sampling.fps.is_some();
        if !self.sample && !asked {
            return bounded((0..total).collect());
        }
        let fps = sampling.fps.or(self.fps).filter(|_| sampling.num_frames.is_none());
        let (least, most) = self.frames;
        let by_seconds = |fps: f64, own: f64| total as f64 / own * fps;
        if self.is_timed() {
            let count = match (sampling.num_frames, fps) {
                (Some(count), _) => count,
                (None, Some(fps)) => {
                    let count = by_seconds(fps, sampling.video_fps.unwrap_or(USUAL_FPS)) as usize;
                    count.max(least).min(most).min(total)
                }
                (None, None) => total.max(least).min(most),
            };
            let step =
                |index: usize| (total.saturating_sub(1)) as f64 * index as f64 / (count.max(2) - 1) as f64;
            return bounded((0..count).map(|index| step(index).round_ties_even() as usize).collect());
        }
        if self.kind == Kind::Joined {
            return self.places_of_joined(total, sampling, fps);
        }
        let each = self.settings.temporal_patch_size;
        let count = match (sampling.num_frames.or(self.num_frames.filter(|_| sampling.fps.is_none())), fps) {
            (Some(count), _) => (count as f64 / each as f64).round_ties_even() as usize * each,
            (None, Some(fps)) => {
                let own = sampling.video_fps.ok_or_else(no_video_fps)?;
                let most = most.min(total) / each * each;
                by_seconds(fps, own).max(least as f64).min(most as f64).min(total as f64) as usize / each
                    * each
            }
            (None, None) => return bounded((0..total).collect()),
        };
        if count > total || count == 0 {
            let problem = format!("have {total} frames, of which {count} are to be looked at");
            return Err(Error::input("videos", problem, "give a longer video, or ask for fewer frames"));
        }
        let step = total as f64 / count as f64;
        bounded((0..count).map(|index| (index as f64 * step) as usize).collect())
    }

    /// Which frames of so many are looked at where two have features together (`Ernie4_5_VLMoeVideoProcessor.sample_frames`).
    fn places_of_joined(
        &self,
        total: usize,
        sampling: &FrameSampling,
        fps: Option<f64>,
    ) -> Result<Vec<usize>> {
        let (least, most) = self.frames;
        let asked = sampling.num_frames.or(self.num_frames.filter(|_| sampling.fps.is_none()));
        let count = match (asked, fps) {
            (Some(count), _) if count < least || count > most || count > total => {
                let problem = format!("have {total} frames, of which {count} are to be looked at");
                let help = format!("ask for {least} to {most}, and no more than there are");
                return Err(Error::input("videos", problem, help));
            }
            (Some(count), _) => count as f64,
            (None, Some(fps)) => total as f64 / sampling.video_fps.ok_or_else(no_video_fps)? * fps,
            (None, None) => total as f64,
        };
        let count = count.max(least as f64).min(most as f64).min(total as f64);
        if count <= 0.0 {
            return Err(Error::input("videos", "have no frames", "give at least one"));
        }
        // In double precision, and rounded to single, as `torch.arange`.
        let step = total as f64 / count;
        let number = (total as f64 / step).ceil() as usize;
        bounded((0..number).map(|index| (index as f64 * step) as f32 as usize).collect())
    }
}

fn no_video_fps() -> Error {
    let help = "say how many frames a second of it has, or how many frames are looked at";
    Error::input("videos", "do not say how many frames a second has", help)
}

fn bounded(places: Vec<usize>) -> Result<Vec<usize>> {
    if places.len() <= MOST_FRAMES {
        return Ok(places);
    }
    let problem = format!("have {} frames to look at; at most {MOST_FRAMES} are", places.len());
    Err(Error::input("videos", problem, "ask for fewer with `num_frames`"))
}

/// The second between the first and the last frame of each time (`_calculate_timestamps`).
fn seconds(places: &[usize], fps: f64, each: usize) -> Vec<f64> {
    let second = |place: &usize| *place as f64 / fps;
    let of = |together: &[usize]| {
        let first = together.first().map(second).unwrap_or_default();
        // The last frame stands for those that are missing.
        let last = together.last().map(second).unwrap_or_default();
        (first + last) / 2.0
    };
    places.chunks(each.max(1)).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn processor(kind: Kind, json: Json) -> VideoProcessor {
        VideoProcessor::read(kind, json).unwrap()
    }

    #[test]
    fn frames_that_are_joined_have_patches_of_their_own() {
        let sizes =
            json!({"patch_size": 1, "merge_size": 1, "size": {"shortest_edge": 1, "longest_edge": 4}});
        let own = with(sizes, json!({"draw_on_frames": false, "min_frames": 2, "max_frames": 6}));
        let joined = processor(Kind::Joined, own);
        let frame = |level| Image::from_pixels(&Array3::from_elem((2, 1, 3), level)).unwrap();
        let made = joined.process(&[frame(0), frame(9), frame(5)], &FrameSampling::default()).unwrap();
        assert_eq!((made.grid, made.pixels.dim()), ([4, 2, 1], (8, 3)));
        assert_eq!(made.pixels[(4, 0)], made.pixels[(6, 0)]);
        assert_eq!(joined.places(13, &FrameSampling::default()).unwrap(), [0, 2, 4, 6, 8, 10]);
        let by_seconds = FrameSampling { fps: Some(1.0), video_fps: Some(2.0), ..FrameSampling::default() };
        // Four and a half frames are every second one.
        assert_eq!(joined.places(9, &by_seconds).unwrap(), [0, 2, 4, 6, 8]);
        let many = FrameSampling { num_frames: Some(7), ..FrameSampling::default() };
        assert!(joined.places(13, &many).unwrap_err().to_string().contains("of which 7 are to be looked at"));
        let drawn = VideoProcessor::read(Kind::Joined, json!({})).unwrap_err();
        assert!(drawn.contains("`draw_on_frames`: true is not supported"), "{drawn}");
    }

    #[test]
    fn frames_are_sampled_as_the_reference_samples_them() {
        let all = FrameSampling::default();
        let plain = processor(Kind::Plain, json!({}));
        assert_eq!(plain.places(5, &all).unwrap(), [0, 1, 2, 3, 4]);
        let four = FrameSampling { num_frames: Some(4), ..all };
        assert_eq!(plain.places(10, &four).unwrap(), [0, 2, 5, 7]);
        let by_seconds = FrameSampling { fps: Some(1.0), video_fps: Some(2.0), ..all };
        assert_eq!(plain.places(13, &by_seconds).unwrap(), [0, 2, 4, 6, 8, 10]);
        let error = plain.places(13, &FrameSampling { fps: Some(1.0), ..all }).unwrap_err().to_string();
        assert!(error.contains("videos: do not say how many frames a second has"), "{error}");
        let timed = processor(Kind::Timed, json!({}));
        // 48 frames are two seconds of four frames.
        assert_eq!(timed.places(48, &all).unwrap(), [0, 16, 31, 47]);
        assert_eq!(timed.places(3, &all).unwrap(), [0, 1, 2]);
    }

    #[test]
    fn a_time_is_in_the_middle_of_its_frames() {
        assert_eq!(seconds(&[0, 2, 4], 2.0, 2), [0.5, 2.0]);
    }

    #[test]
    fn frames_are_one_patch_together() {
        let settings =
            json!({"patch_size": 1, "merge_size": 1, "size": {"shortest_edge": 1, "longest_edge": 4}});
        let frame = |level| Image::from_pixels(&Array3::from_elem((2, 1, 3), level)).unwrap();
        let made = processor(Kind::Plain, settings)
            .process(&[frame(0), frame(9), frame(9)], &FrameSampling::default());
        let made = made.unwrap();
        assert_eq!((made.grid, made.pixels.dim()), ([2, 2, 1], (4, 6)));
        assert!(made.pixels[(0, 0)] < made.pixels[(0, 1)]);
        assert_eq!(made.pixels[(2, 0)], made.pixels[(2, 1)]);
    }
}
