//! What stands for videos and images in a prompt, and their patches in one list, in the order of the text.

use ndarray::{Array2, Axis};

use crate::hub::Checkpoint;
use crate::image::{VideoPatches, VideoProcessor};
use crate::text::Tokenizer;
use crate::{Error, Result, Values};

/// The tokens that stand for videos and images.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct VideoTokens {
    /// That of a video in texts. The graph takes the patches of videos in the places of the image token, as those of images.
    pub(super) video: String,
    image: String,
    /// Those around each time of a video, where prompts say its second.
    around: Option<[String; 2]>,
}

/// The patches of a video or an image, and what stands for it.
struct Patches {
    pixels: Array2<f32>,
    grids: Vec<[i64; 3]>,
    text: String,
    /// The seconds between two of its times.
    interval: f64,
}

impl VideoTokens {
    /// The tokens that `tokenizer_config.json` names, or those of Qwen2-VL.
    pub(super) fn read(
        checkpoint: &Checkpoint,
        tokenizer: &Tokenizer,
        processor: &VideoProcessor,
    ) -> Result<Self> {
        let settings = checkpoint.json("tokenizer_config.json")?.unwrap_or_default();
        let token = |key: &str, default: &str| {
            let named = settings[key].as_str().or(settings[key]["content"].as_str()).unwrap_or(default);
            if tokenizer.id(named).is_some() {
                return Ok(named.to_owned());
            }
            let help = format!("set `{key}` to the token of the vocabulary that is meant");
            Err(Error::tokenizer(tokenizer.file(), format!("`{key}`: there is no `{named}`"), help))
        };
        let around = match processor.is_timed() {
            true => Some([
                token("vision_start_token", "<|vision_start|>")?,
                token("vision_end_token", "<|vision_end|>")?,
            ]),
            false => None,
        };
        Ok(Self {
            video: token("video_token", "<|video_pad|>")?,
            image: token("image_token", "<|image_pad|>")?,
            around,
        })
    }

    /// A text in which as many tokens stand for each video and image as they have features, and the patches of all.
    pub(super) fn expand(
        &self,
        text: &str,
        videos: Vec<VideoPatches>,
        images: Vec<Values>,
        processor: &VideoProcessor,
    ) -> Result<(String, Values)> {
        let places = |token: &str, given: usize, name: &str| match text.matches(token).count() {
            found if found == given => Ok(()),
            found => {
                let problem = format!("has `{token}` {found} times for {given} {name}");
                let help = "write it once for each of them, where that belongs";
                Err(Error::input("text", problem, help))
            }
        };
        places(&self.video, videos.len(), "videos")?;
        places(&self.image, images.len(), "images")?;
        let (mut videos, mut images) = (videos.into_iter(), images.into_iter());
        let (mut rest, mut expanded, mut all) = (text, String::new(), vec![]);
        loop {
            let [video, image] = [&self.video, &self.image].map(|token| rest.find(token.as_str()));
            let is_video = video.is_some_and(|at| image.is_none_or(|other| at < other));
            let (at, token) = if is_video { (video, &self.video) } else { (image, &self.image) };
            let Some(at) = at else { break };
            let patches = match is_video {
                true => videos.next().map(|video| self.of_video(video, processor)),
                false => images.next().map(|image| self.of_image(image, processor)).transpose()?,
            };
            let Some(patches) = patches else { break };
            expanded.extend([&rest[..at], &patches.text]);
            all.push(patches);
            rest = &rest[at + token.len()..];
        }
        expanded.push_str(rest);
        Ok((expanded, values(&all)?))
    }

    fn of_video(&self, video: VideoPatches, processor: &VideoProcessor) -> Patches {
        let ([times, rows, columns], interval) = (video.grid, video.interval);
        let merge = processor.merge_size().max(1);
        let features = self.image.repeat(rows * columns / (merge * merge));
        let (rows, columns) = (rows as i64, columns as i64);
        let Some([begin, end]) = &self.around else {
            let text = features.repeat(times / processor.joined_times());
            return Patches {
                pixels: video.pixels,
                grids: vec![[times as i64, rows, columns]],
                text,
                interval,
            };
        };
        // Each time is an image of its own, behind its second.
        let shown = |second: &f64| format!("<{second:.1} seconds>{begin}{features}{end}");
        let text = video.seconds.iter().map(shown).collect();
        Patches { pixels: video.pixels, grids: vec![[1, rows, columns]; times], text, interval }
    }

    fn of_image(&self, mut image: Values, processor: &VideoProcessor) -> Result<Patches> {
        let missing = || {
            let help = "take the image processor's file from the checkpoint that the model came with";
            Error::input("images", "do not become patches in one list", help)
        };
        let grid = image.remove("image_grid_thw").ok_or_else(missing)?;
        let grid: Vec<i64> = grid.i64("image_grid_thw")?.iter().copied().collect();
        let &[times, rows, columns] = grid.as_slice() else { return Err(missing()) };
        let pixels = image.remove("pixel_values").ok_or_else(missing)?;
        let pixels = pixels.f32("pixel_values")?.clone().into_dimensionality().map_err(|_| missing())?;
        let merge = processor.merge_size().max(1) as i64;
        let count = usize::try_from(times * rows * columns / (merge * merge)).map_err(|_| missing())?;
        Ok(Patches {
            pixels,
            grids: vec![[times, rows, columns]],
            text: self.image.repeat(count),
            interval: 1.0,
        })
    }
}

/// `pixel_values` and `image_grid_thw`, where there are any.
fn values(all: &[Patches]) -> Result<Values> {
    if all.is_empty() {
        return Ok(Values::new());
    }
    let views: Vec<_> = all.iter().map(|patches| patches.pixels.view()).collect();
    let pixels = ndarray::concatenate(Axis(0), &views).map_err(|_| {
        let help = "take both processors' files from the checkpoint that the model came with";
        Error::input("videos", "have patches of another size than images", help)
    })?;
    let seconds = all.iter().flat_map(|patches| vec![patches.interval as f32; patches.grids.len()]);
    let seconds = ndarray::Array1::from_iter(seconds).into_dyn();
    let grids: Vec<[i64; 3]> = all.iter().flat_map(|patches| patches.grids.iter().copied()).collect();
    let grids = Array2::from_shape_fn((grids.len(), 3), |(index, axis)| grids[index][axis]);
    Ok(Values::from([
        ("pixel_values".to_owned(), pixels.into_dyn().into()),
        ("image_grid_thw".to_owned(), grids.into_dyn().into()),
        ("second_per_grid_ts".to_owned(), seconds.into()),
    ]))
}
