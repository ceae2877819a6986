//! The tokens that stand for images in a prompt: one in a text, as many as an image has features for the model.
//!
//! Reference: `LlavaProcessor`, `LlavaNextProcessor`, `Gemma3Processor`, `InternVLProcessor`.

use serde_json::Value as Json;

use crate::hub::Checkpoint;
use crate::image::{AnyRes, ImageProcessor};
use crate::text::Tokenizer;
use crate::{Error, Result, Values};

const FILE: &str = "processor_config.json";

/// What `processor_config.json` says of images in texts, and `config.json` where that does not.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Placeholders {
    /// The token, as it stands in texts.
    pub(super) token: String,
    /// What stands there instead for each feature, and what before and after all of them.
    feature: String,
    around: [String; 2],
    count: Count,
}

/// How many features an image has.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Count {
    /// As many for every image.
    Fixed(usize),
    /// As many for every tile of an image.
    Tiles(usize),
    /// One for each patch, which has this edge in pixels, and one more for the class token, or one less where the first
    /// patch stands for it and is left out.
    Patches { edge: usize, additional: isize },
}

impl Placeholders {
    pub(super) fn read(checkpoint: &Checkpoint, config: &Json, tokenizer: &Tokenizer) -> Result<Self> {
        let written = checkpoint.json(FILE)?.unwrap_or_default();
        let file = checkpoint.dir().join(if written.is_null() { "config.json" } else { FILE });
        let known = |key: &str, token: String| match tokenizer.id(&token) {
            Some(_) => Ok(token),
            None => {
                let help = format!("set `{key}` to the token of the vocabulary that stands for an image");
                Err(Error::config(&file, format!("`{key}`: the tokenizer has no `{token}`"), help))
            }
        };
        let number = |value: &Json| value.as_u64().and_then(|number| usize::try_from(number).ok());
        if let Some(begin) = special(checkpoint, "boi_token")? {
            let [feature, end] = ["image_token", "eoi_token"].map(|key| special(checkpoint, key));
            let feature = known("image_token", feature?.unwrap_or_else(|| "<image_soft_token>".to_owned()))?;
            let begin = known("boi_token", begin)?;
            let end = known("eoi_token", end?.unwrap_or_else(|| "<end_of_image>".to_owned()))?;
            let count = number(&written["image_seq_length"]).or(number(&config["mm_tokens_per_image"]));
            let around = [format!("\n\n{begin}"), format!("{end}\n\n")];
            return Ok(Self { token: begin, feature, around, count: Count::Fixed(count.unwrap_or(256)) });
        }
        if let Some(token) = special(checkpoint, "context_image_token")? {
            let token = known("context_image_token", token)?;
            let [begin, end] = ["start_image_token", "end_image_token"].map(|key| special(checkpoint, key));
            let around =
                [begin?.unwrap_or_else(|| "<img>".to_owned()), end?.unwrap_or_else(|| "</img>".to_owned())];
            let count = number(&written["image_seq_length"]).or(number(&config["image_seq_length"]));
            let count = Count::Tiles(count.unwrap_or(256));
            return Ok(Self { feature: token.clone(), token, around, count });
        }
        let token = known("image_token", written["image_token"].as_str().unwrap_or("<image>").to_owned())?;
        let edge = number(&written["patch_size"]).or(number(&config["vision_config"]["patch_size"]));
        let Some(edge) = edge.filter(|edge| *edge > 0) else {
            let problem = "`patch_size`: is missing: how many tokens stand for an image is not known";
            return Err(Error::config(file, problem, "set it to the edge of a patch of the vision model"));
        };
        let strategy = written["vision_feature_select_strategy"].as_str();
        let strategy = strategy.or(config["vision_feature_select_strategy"].as_str());
        // Where no file says it, vision models with a class token are meant.
        let class = usize::from(written["patch_size"].is_null());
        let additional = number(&written["num_additional_image_tokens"]).unwrap_or(class);
        let left_out = isize::from(strategy.unwrap_or("default") == "default");
        let additional = isize::try_from(additional).unwrap_or_default() - left_out;
        let count = Count::Patches { edge, additional };
        Ok(Self { feature: token.clone(), token, around: Default::default(), count })
    }

    /// Whether images are cut into tiles that each have their features.
    pub(super) fn counts_tiles(&self) -> bool {
        matches!(self.count, Count::Tiles(_))
    }

    /// The features of one image, of which `processed` is what the processor made.
    pub(super) fn count(&self, processor: &ImageProcessor, processed: &Values) -> Result<usize> {
        let (edge, additional) = match self.count {
            Count::Fixed(count) => return Ok(count),
            Count::Tiles(each) => {
                let pixels = processed.get("pixel_values").and_then(|pixels| pixels.shape().first());
                return Ok(pixels.map_or(0, |tiles| tiles * each));
            }
            Count::Patches { edge, additional } => (edge, additional),
        };
        let pixels = processed.get("pixel_values").map(|pixels| pixels.shape().to_vec()).unwrap_or_default();
        let [.., height, width] = pixels.as_slice() else { return Ok(0) };
        let Some(grid) = processor.image_grid_pinpoints() else {
            return Ok(((height / edge) * (width / edge)).saturating_add_signed(additional));
        };
        let grid = grid.iter().map(|(height, width)| vec![*height, *width]).collect();
        let packing = AnyRes { grid, tile: *height, patches: height / edge };
        let rows = packing.rows(processed)?.shape().iter().product::<usize>();
        Ok(rows.saturating_add_signed(additional))
    }

    /// A text with each image's token as often as it has features.
    pub(super) fn expand(&self, text: &str, counts: &[usize]) -> Result<String> {
        let places = text.matches(&self.token).count();
        if places != counts.len() {
            let problem = format!("has `{}` {places} times for {} images", self.token, counts.len());
            return Err(Error::input("text", problem, "write it once for each image, where that belongs"));
        }
        let mut parts = text.split(&self.token);
        let mut expanded = parts.next().unwrap_or_default().to_owned();
        let [before, after] = &self.around;
        for (part, count) in parts.zip(counts) {
            expanded.extend([before, &self.feature.repeat(*count), after, part]);
        }
        Ok(expanded)
    }
}

/// A token that `tokenizer_config.json` names, as a text or with how it is read.
fn special(checkpoint: &Checkpoint, key: &str) -> Result<Option<String>> {
    let settings = checkpoint.json("tokenizer_config.json")?.unwrap_or_default();
    let token = &settings[key];
    Ok(token.as_str().or(token["content"].as_str()).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_image_has_its_place() {
        let token = "<image>".to_owned();
        let count = Count::Patches { edge: 4, additional: 0 };
        let placeholders = Placeholders { feature: token.clone(), token, around: Default::default(), count };
        let text = placeholders.expand("<image> and <image>?", &[2, 1]).unwrap();
        assert_eq!(text, "<image><image> and <image>?");
        assert_eq!(placeholders.expand("none", &[]).unwrap(), "none");
        let problem = placeholders.expand("<image>", &[2, 1]).unwrap_err().to_string();
        assert!(problem.contains("`<image>` 1 times for 2 images"), "{problem}");
    }

    #[test]
    fn what_stands_around_features_is_written_too() {
        let placeholders = Placeholders {
            token: "<begin>".to_owned(),
            feature: "<soft>".to_owned(),
            around: ["\n<begin>".to_owned(), "<end>\n".to_owned()],
            count: Count::Fixed(2),
        };
        assert_eq!(placeholders.expand("<begin>?", &[2]).unwrap(), "\n<begin><soft><soft><end>\n?");
    }
}
