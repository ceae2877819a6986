//! The tokens that stand for pictures in a prompt: one in a text, as many as a picture has features for the model.
//!
//! Reference: `LlavaProcessor`, `LlavaNextProcessor`.

use serde_json::Value as Json;

use crate::hub::Checkpoint;
use crate::image::{ImageProcessor, Layout, Packing};
use crate::text::Tokenizer;
use crate::{Error, Result, Values};

const FILE: &str = "processor_config.json";

/// What `processor_config.json` says of pictures in texts, and `config.json` where that does not.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Placeholders {
    /// The token, as it stands in texts.
    pub(super) token: String,
    /// The edge of a patch in pixels.
    patch: usize,
    /// Features beside those of patches, such as the class token's.
    additional: usize,
}

impl Placeholders {
    pub(super) fn read(checkpoint: &Checkpoint, config: &Json, tokenizer: &Tokenizer) -> Result<Self> {
        let written = checkpoint.json(FILE)?.unwrap_or_default();
        let file = checkpoint.dir().join(if written.is_null() { "config.json" } else { FILE });
        let token = written["image_token"].as_str().unwrap_or("<image>").to_owned();
        if tokenizer.id(&token).is_none() {
            let help = "set `image_token` to the token of the vocabulary that stands for a picture";
            return Err(Error::config(file, format!("`image_token`: the tokenizer has no `{token}`"), help));
        }
        let number = |value: &Json| value.as_u64().and_then(|number| usize::try_from(number).ok());
        let patch = number(&written["patch_size"]).or(number(&config["vision_config"]["patch_size"]));
        let Some(patch) = patch.filter(|patch| *patch > 0) else {
            let problem = "`patch_size`: is missing: how many tokens stand for a picture is not known";
            return Err(Error::config(file, problem, "set it to the edge of a patch of the vision model"));
        };
        let strategy = written["vision_feature_select_strategy"].as_str();
        let strategy = strategy.or(config["vision_feature_select_strategy"].as_str());
        // Where no file says it, vision models with a class token are meant.
        let class = usize::from(written["patch_size"].is_null());
        let additional = number(&written["num_additional_image_tokens"]).unwrap_or(class);
        let left_out = usize::from(strategy.unwrap_or("default") == "default");
        Ok(Self { token, patch, additional: additional.saturating_sub(left_out) })
    }

    /// The features of one picture, of which `processed` is what the processor made.
    pub(super) fn count(&self, processor: &ImageProcessor, processed: &Values) -> Result<usize> {
        let pixels = processed.get("pixel_values").map(|pixels| pixels.shape().to_vec()).unwrap_or_default();
        let [.., height, width] = pixels.as_slice() else { return Ok(0) };
        if processor.settings().layout != Layout::Tiles {
            return Ok((height / self.patch) * (width / self.patch) + self.additional);
        }
        let grid = processor.settings().grid.iter().map(|(height, width)| vec![*height, *width]).collect();
        let packing = Packing { grid, tile: *height, patches: height / self.patch };
        let rows = packing.rows(processed)?.shape().iter().product::<usize>();
        Ok(rows + self.additional)
    }

    /// A text with each picture's token as often as it has features.
    pub(super) fn expand(&self, text: &str, counts: &[usize]) -> Result<String> {
        let places = text.matches(&self.token).count();
        if places != counts.len() {
            let problem = format!("has `{}` {places} times for {} pictures", self.token, counts.len());
            return Err(Error::input("text", problem, "write it once for each picture, where that belongs"));
        }
        let mut parts = text.split(&self.token);
        let mut expanded = parts.next().unwrap_or_default().to_owned();
        for (part, count) in parts.zip(counts) {
            expanded.push_str(&self.token.repeat(*count));
            expanded.push_str(part);
        }
        Ok(expanded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_picture_has_its_place() {
        let placeholders = Placeholders { token: "<image>".to_owned(), patch: 4, additional: 0 };
        let text = placeholders.expand("<image> and <image>?", &[2, 1]).unwrap();
        assert_eq!(text, "<image><image> and <image>?");
        assert_eq!(placeholders.expand("none", &[]).unwrap(), "none");
        let problem = placeholders.expand("<image>", &[2, 1]).unwrap_err().to_string();
        assert!(problem.contains("`<image>` 1 times for 2 pictures"), "{problem}");
    }
}
