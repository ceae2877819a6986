//! Frames of videos as models take them.

use serde_json::Value as Json;

use crate::hub::Checkpoint;
use crate::image::{Image, ImageProcessor};
use crate::{Error, Result, Values};

/// What makes of a frame what a model that tracks objects takes (`Sam2VideoVideoProcessor`): a square.
#[derive(Debug)]
pub(in crate::tasks) struct FrameProcessor {
    /// Of frames that come one by one, which are images in the reference.
    images: ImageProcessor,
    /// Of those of a whole video.
    videos: ImageProcessor,
    /// The edge of these squares, which coordinates are scaled to, where the checkpoint says it.
    target_size: Option<usize>,
}

impl FrameProcessor {
    /// That of a checkpoint: its image processor, with what its video processor says otherwise.
    pub(in crate::tasks) fn of(checkpoint: &Checkpoint) -> Result<Self> {
        let settings = checkpoint.json("processor_config.json")?.unwrap_or_default();
        let target_size = settings["target_size"].as_u64().and_then(|edge| usize::try_from(edge).ok());
        let own = checkpoint.json("video_preprocessor_config.json")?;
        let own = own.unwrap_or_else(|| settings["video_processor"].clone());
        let images = ImageProcessor::from_checkpoint(checkpoint)?;
        let videos = images.with(&of_videos(own))?;
        Ok(Self { images, videos, target_size })
    }

    /// `pixel_values` `[1, 3, edge, edge]` of a frame, and this edge.
    pub(in crate::tasks) fn process(&self, image: &Image, streaming: bool) -> Result<(Values, usize)> {
        let processor = if streaming { &self.images } else { &self.videos };
        let mut values = processor.process(std::slice::from_ref(image))?;
        values.retain(|name, _| name == "pixel_values");
        let shape = values.get("pixel_values").map(|pixels| pixels.shape().to_vec()).unwrap_or_default();
        match (shape.as_slice(), self.target_size) {
            (&[_, _, height, width], target)
                if height == width && target.is_none_or(|edge| edge == height) =>
            {
                Ok((values, height))
            }
            (shape, target) => {
                let target = target.map_or(String::new(), |edge| format!(" and `target_size` {edge}"));
                let problem = format!("has frames of shape {shape:?}{target}");
                let help = "correct `size` of the checkpoint's processor, which must be that of squares";
                Err(Error::input("pixel_values", problem, help))
            }
        }
    }
}

/// Of a video processor's settings those that image processors have, too.
fn of_videos(settings: Json) -> Json {
    const SHARED: [&str; 8] = [
        "do_resize",
        "size",
        "resample",
        "do_rescale",
        "rescale_factor",
        "do_normalize",
        "image_mean",
        "image_std",
    ];
    match settings {
        Json::Object(settings) => {
            Json::Object(settings.into_iter().filter(|(name, _)| SHARED.contains(&name.as_str())).collect())
        }
        _ => Json::Null,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn video_processors_say_what_image_processors_say_too() {
        let settings = json!({"size": {"height": 8, "width": 8}, "video_processor_type": "Sam2VideoVideoProcessor", "fps": null});
        assert_eq!(of_videos(settings), json!({"size": {"height": 8, "width": 8}}));
        assert_eq!(of_videos(Json::Null), Json::Null);
    }
}
