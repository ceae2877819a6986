//! The tokens that stand for images in a prompt: one in a text, as many as an image has features for the model.
//!
//! Reference: `ProcessorMixin.get_text_with_replacements`, and the processors' own fields.

use std::path::Path;

use serde_json::{Value as Json, json};

use super::form::{Form, Prompt};
use super::replacement::{Count, Replacement};
use crate::hub::Checkpoint;
use crate::image::ImageProcessor;
use crate::text::Tokenizer;
use crate::{Error, Result, Values};

const FILE: &str = "processor_config.json";

/// What `processor_config.json` says of images in texts, and `config.json` where that does not.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::tasks) struct Placeholders {
    /// The token, as it stands in texts.
    pub(in crate::tasks) token: String,
    pub(super) replacement: Replacement,
    /// Where images stand, and what else becomes of a text.
    pub(super) form: Form,
    /// Settings of the image processor that the processor of texts and images says itself.
    pub(super) settings: Option<Json>,
}

/// The files of a checkpoint that speak of images in texts.
pub(super) struct Files<'a> {
    pub(super) checkpoint: &'a Checkpoint,
    pub(super) tokenizer: &'a Tokenizer,
    pub(super) written: Json,
    pub(super) config: &'a Json,
}

impl Placeholders {
    pub(in crate::tasks) fn read(
        checkpoint: &Checkpoint,
        config: &Json,
        tokenizer: &Tokenizer,
    ) -> Result<Self> {
        let written = checkpoint.json(FILE)?.unwrap_or_default();
        let files = Files { checkpoint, tokenizer, written, config };
        let class = files.class()?;
        if let Some(read) = class.as_deref().and_then(|class| files.of_own_form(class)) {
            return read;
        }
        let (token, replacement) = match class.as_deref() {
            Some("AyaVisionProcessor") => files.aya_vision(),
            Some("Cohere2VisionProcessor") => files.cohere2_vision(),
            Some("Idefics3Processor" | "SmolVLMProcessor") => files.idefics3(),
            Some(
                "Qwen2VLProcessor"
                | "Qwen2_5_VLProcessor"
                | "Qwen3VLProcessor"
                | "Exaone4_5_Processor"
                | "HyperCLOVAXVisionV2Processor"
                | "PaddleOCRVLProcessor"
                | "ColQwen2Processor"
                | "Lfm3VlProcessor"
                | "Cosmos3EdgeProcessor"
                | "Qwen2_5OmniProcessor"
                | "Qwen3OmniMoeProcessor",
            ) => files.qwen2_vl("<|image_pad|>"),
            Some("Ernie4_5_VLMoeProcessor") => files.qwen2_vl("<|IMAGE_PLACEHOLDER|>"),
            Some("Glm4vProcessor" | "Glm46VProcessor") => files.qwen2_vl("<|image|>"),
            Some("GotOcr2Processor") => files.known("image_token", "<imgpad>".to_owned()).map(|feature| {
                let count = Count::Fixed(256);
                (feature.clone(), Replacement::Features { feature, around: Default::default(), count })
            }),
            Some("LlavaOnevisionProcessor") => files.llava_onevision(),
            Some("PixtralProcessor") => files.pixtral(),
            Some("LightOnOcrProcessor") => files.lighton_ocr(),
            Some("DeepseekVLProcessor" | "DeepseekVLHybridProcessor") => files.deepseek_vl(),
            Some("JanusProcessor") => files.janus(),
            Some("Ovis2Processor") => files.ovis2(),
            Some("QianfanOCRProcessor") => {
                let token = files.field("image_placeholder_token", "<image>");
                files.internvl().map(|(_, replacement)| (token, replacement))
            }
            Some("PaliGemmaProcessor" | "ColPaliProcessor") => return files.paligemma(),
            _ if files.special("boi_token")?.is_some() => files.gemma3(),
            _ if files.special("context_image_token")?.is_some() => files.internvl(),
            _ => files.llava(),
        }?;
        Ok(Self { token, replacement, form: Form::InPlace, settings: None })
    }

    /// What the processor of texts and images asks of that of images: to cut them into tiles, or into patches of a size.
    pub(super) fn image_settings(&self) -> Option<Json> {
        if self.settings.is_some() {
            return self.settings.clone();
        }
        match self.replacement {
            Replacement::NumberedTiles { .. } | Replacement::Features { count: Count::Tiles(_), .. } => {
                Some(json!({"crop_to_patches": true}))
            }
            Replacement::Lines { edge, .. } => Some(json!({"patch_size": edge})),
            _ => None,
        }
    }

    /// Whether texts are encoded without special tokens, which the prompt has itself.
    pub(in crate::tasks) fn has_special_tokens(&self) -> bool {
        matches!(self.form, Form::Prefix(_))
    }

    /// A text with each image's token replaced by what stands for the image, of which `processed` is what the processor made
    /// of all `images`.
    pub(super) fn expand(
        &self,
        text: &str,
        images: usize,
        processor: &ImageProcessor,
        processed: &Values,
    ) -> Result<Prompt> {
        let texts: Result<Vec<_>> =
            (0..images).map(|image| self.replacement.text(processor, processed, image)).collect();
        let texts = texts?;
        let text = match &self.form {
            // One image alone stands before its text.
            Form::Interleaved { token, .. } if images == 1 && !text.contains(token.as_str()) => {
                format!("{token}{text}")
            }
            form if form.has_places() => self.replace(text, &texts)?,
            _ => text.to_owned(),
        };
        self.form.prompt(text, &texts)
    }

    /// What stands for one image, of which the processor made `processed`.
    pub(in crate::tasks) fn image(&self, processor: &ImageProcessor, processed: &Values) -> Result<String> {
        self.replacement.text(processor, processed, 0)
    }

    /// A text with each image's token replaced by that image's text.
    fn replace(&self, text: &str, images: &[String]) -> Result<String> {
        let mut text = text.to_owned();
        if let (Form::Prefix(begin), false) = (&self.form, images.is_empty()) {
            let end = text.rfind(&self.token).map_or(0, |start| start + self.token.len());
            text.insert_str(end, begin);
            text.push('\n');
        }
        let places = text.matches(&self.token).count();
        if places != images.len() {
            let problem = format!("has `{}` {places} times for {} images", self.token, images.len());
            return Err(Error::input("text", problem, "write it once for each image, where that belongs"));
        }
        let mut parts = text.split(&self.token);
        let mut expanded = parts.next().unwrap_or_default().to_owned();
        for (part, image) in parts.zip(images) {
            expanded.extend([image, part]);
        }
        Ok(expanded)
    }
}

type Read = Result<(String, Replacement)>;

impl Files<'_> {
    /// `processor_class`, wherever it is written.
    fn class(&self) -> Result<Option<String>> {
        let mut class = self.written["processor_class"].as_str().map(str::to_owned);
        for file in ["preprocessor_config.json", "tokenizer_config.json"] {
            if class.is_none() {
                let json = self.checkpoint.json(file)?.unwrap_or_default();
                class = json["processor_class"].as_str().map(str::to_owned);
            }
        }
        Ok(class)
    }

    fn aya_vision(&self) -> Read {
        let [patch, factor, size] = [("patch_size", 28), ("downsample_factor", 1), ("img_size", 364)]
            .map(|(key, default)| number(&self.written[key]).unwrap_or(default));
        let each = size / (patch * factor).max(1);
        let feature = self.known("img_patch_token", self.field("img_patch_token", "<|IMG_PATCH|>"))?;
        let around = [
            self.field("start_of_img_token", "<|START_OF_IMG|>"),
            self.field("end_of_img_token", "<|END_OF_IMG|>"),
        ];
        let [tile, whole] = [("tile_token", "TILE"), ("tile_global_token", "TILE_GLOBAL")]
            .map(|(key, default)| self.field(key, default));
        let replacement = Replacement::NumberedTiles { feature, each: each * each, tile, whole, around };
        Ok((self.field("image_token", "<image>"), replacement))
    }

    fn cohere2_vision(&self) -> Read {
        let image = self.checkpoint.json("preprocessor_config.json")?.unwrap_or_default();
        let nested = number(&self.written["image_processor"]["patch_size"]);
        let side = nested.or(number(&image["patch_size"])).unwrap_or(16);
        let feature = self.known("image_token", self.required("image_token")?)?;
        let around = [self.required("boi_token")?, self.required("eoi_token")?];
        let end = self.required("img_line_break_token")?;
        Ok((feature.clone(), Replacement::EndedTiles { feature, each: side * side, end, around }))
    }

    fn idefics3(&self) -> Read {
        let named = |key: &str, default: &str| Ok(self.special(key)?.unwrap_or_else(|| default.to_owned()));
        let feature = self.known("image_token", named("image_token", "<image>")?)?;
        let each = number(&self.written["image_seq_len"]).unwrap_or(169);
        let around = named("fake_image_token", "<fake_token_around_image>")?;
        let whole = named("global_image_token", "<global-img>")?;
        Ok((feature.clone(), Replacement::Squares { feature, each, around, whole }))
    }

    fn llava_onevision(&self) -> Read {
        let token = self.special("image_token")?.unwrap_or_else(|| self.field("image_token", "<image>"));
        let feature = self.known("image_token", token)?;
        let Some(all) = number(&self.written["num_image_tokens"]) else {
            let problem = "`num_image_tokens`: is missing: how many tokens stand for an image is not known";
            return Err(Error::config(self.file(), problem, "set it to the number of patches of a tile"));
        };
        let ratio = self.field("vision_aspect_ratio", "anyres_max_9");
        let Ok(most_tiles) = ratio.trim_matches(|letter| "anyres_max_".contains(letter)).parse() else {
            let problem = format!("`vision_aspect_ratio`: `{ratio}` says no number of tiles");
            return Err(Error::config(self.file(), problem, "write it as `anyres_max_9`"));
        };
        let left_out = self.written["vision_feature_select_strategy"] == "default";
        let count = Count::MostTiles { patches: all.isqrt(), most_tiles, additional: -isize::from(left_out) };
        Ok((feature.clone(), Replacement::Features { feature, around: Default::default(), count }))
    }

    fn pixtral(&self) -> Read {
        let token = |key, default| self.known(key, self.field(key, default));
        let feature = token("image_token", "[IMG]")?;
        let ends = [token("image_break_token", "[IMG_BREAK]")?, token("image_end_token", "[IMG_END]")?];
        let edge = self.square("patch_size", 16, 1);
        Ok((feature.clone(), Replacement::Lines { feature, ends, edge }))
    }

    fn lighton_ocr(&self) -> Read {
        let feature = self.known("image_token", self.required("image_token")?)?;
        let count = Count::NativeSquares(self.square("patch_size", 14, 2));
        Ok((feature.clone(), Replacement::Features { feature, around: Default::default(), count }))
    }

    /// The edge of a square of patches, pixels.
    fn square(&self, key: &str, patch: usize, merge: usize) -> usize {
        let merge = number(&self.written["spatial_merge_size"]).unwrap_or(merge);
        (number(&self.written[key]).unwrap_or(patch) * merge).max(1)
    }

    fn deepseek_vl(&self) -> Read {
        let feature = self.known("image_token", self.required("image_token")?)?;
        let count = Count::Fixed(number(&self.written["num_image_tokens"]).unwrap_or(576));
        Ok((feature.clone(), Replacement::Features { feature, around: Default::default(), count }))
    }

    fn janus(&self) -> Read {
        let feature = self.known("image_token", self.required("image_token")?)?;
        let around = [self.required("boi_token")?, self.required("eoi_token")?];
        let count = Count::Fixed(number(&self.written["num_image_tokens"]).unwrap_or(576));
        Ok((feature.clone(), Replacement::Features { feature, around, count }))
    }

    fn ovis2(&self) -> Read {
        let feature = self.known("image_token", "<IMG_ATOM>".to_owned())?;
        let each = number(&self.written["image_seq_length"]).unwrap_or(256);
        Ok(("<image>".to_owned(), Replacement::Grid { feature, each }))
    }

    fn qwen2_vl(&self, token: &str) -> Read {
        let feature = self.special("image_token")?.unwrap_or_else(|| token.to_owned());
        let feature = self.known("image_token", feature)?;
        let count = self.squares()?;
        Ok((feature.clone(), Replacement::Features { feature, around: Default::default(), count }))
    }

    /// One feature for each square of patches, by the image processor's `merge_size`.
    pub(super) fn squares(&self) -> Result<Count> {
        let image = self.checkpoint.json("preprocessor_config.json")?.unwrap_or_default();
        let nested = number(&self.written["image_processor"]["merge_size"]);
        Ok(Count::Squares(nested.or(number(&image["merge_size"])).unwrap_or(2)))
    }

    fn paligemma(&self) -> Result<Placeholders> {
        let image = self.checkpoint.json("preprocessor_config.json")?.unwrap_or_default();
        let nested = number(&self.written["image_processor"]["image_seq_length"]);
        let Some(count) = nested.or(number(&image["image_seq_length"])) else {
            let problem = "`image_seq_length`: is missing: how many tokens stand for an image is not known";
            let file = self.checkpoint.dir().join("preprocessor_config.json");
            return Err(Error::config(file, problem, "set it to the number of patches of an image"));
        };
        let feature = self.known("image_token", "<image>".to_owned())?;
        let begin = self.required("bos_token")?;
        let replacement = Replacement::Features {
            feature: feature.clone(),
            around: Default::default(),
            count: Count::Fixed(count),
        };
        Ok(Placeholders { token: feature, replacement, form: Form::Prefix(begin), settings: None })
    }

    fn gemma3(&self) -> Read {
        let [begin, feature, end] = [
            ("boi_token", "<start_of_image>"),
            ("image_token", "<image_soft_token>"),
            ("eoi_token", "<end_of_image>"),
        ]
        .map(|(key, default)| self.known(key, self.special(key)?.unwrap_or_else(|| default.to_owned())));
        let (begin, feature, end) = (begin?, feature?, end?);
        let count = number(&self.written["image_seq_length"]).or(number(&self.config["mm_tokens_per_image"]));
        let around = [format!("\n\n{begin}"), format!("{end}\n\n")];
        let count = Count::Fixed(count.unwrap_or(256));
        Ok((begin, Replacement::Features { feature, around, count }))
    }

    fn internvl(&self) -> Read {
        let feature = self.known("context_image_token", self.required("context_image_token")?)?;
        let [begin, end] = ["start_image_token", "end_image_token"].map(|key| self.special(key));
        let around =
            [begin?.unwrap_or_else(|| "<img>".to_owned()), end?.unwrap_or_else(|| "</img>".to_owned())];
        let count = number(&self.written["image_seq_length"]).or(number(&self.config["image_seq_length"]));
        let count = Count::Tiles(count.unwrap_or(256));
        Ok((feature.clone(), Replacement::Features { feature, around, count }))
    }

    fn llava(&self) -> Read {
        let feature = self.known("image_token", self.field("image_token", "<image>"))?;
        let edge =
            number(&self.written["patch_size"]).or(number(&self.config["vision_config"]["patch_size"]));
        let Some(edge) = edge.filter(|edge| *edge > 0) else {
            // Of networks of timm, `config.json` says nothing of patches.
            let file = self.checkpoint.dir().join(FILE);
            let problem = "`patch_size`: is missing: how many tokens stand for an image is not known";
            return Err(Error::config(file, problem, "set it to the edge of a patch of the vision model"));
        };
        let strategy = self.written["vision_feature_select_strategy"].as_str();
        let strategy = strategy.or(self.config["vision_feature_select_strategy"].as_str());
        // Where no file says it, vision models with a class token are meant.
        let class = usize::from(self.written["patch_size"].is_null());
        let additional = number(&self.written["num_additional_image_tokens"]).unwrap_or(class);
        let left_out = isize::from(strategy.unwrap_or("default") == "default");
        let additional = isize::try_from(additional).unwrap_or_default() - left_out;
        let rate = self.written["downsample_rate"].as_str().map(str::parse).transpose();
        let rate = rate.map_err(|problem: String| {
            let help = "write it as `1/2`, the edge of a tile's features over that of its patches";
            Error::config(self.file(), format!("`downsample_rate`: {problem}"), help)
        })?;
        let count = Count::Patches { edge, additional, rate };
        Ok((feature.clone(), Replacement::Features { feature, around: Default::default(), count }))
    }

    /// The file that says it, or should.
    pub(super) fn file(&self) -> std::path::PathBuf {
        self.checkpoint.dir().join(if self.written.is_null() { "config.json" } else { FILE })
    }

    /// A field of the processor's file.
    pub(super) fn field(&self, key: &str, default: &str) -> String {
        self.written[key].as_str().unwrap_or(default).to_owned()
    }

    /// A token of the vocabulary.
    pub(super) fn known(&self, key: &str, token: String) -> Result<String> {
        if self.tokenizer.id(&token).is_some() {
            return Ok(token);
        }
        let help = format!("set `{key}` to the token of the vocabulary that stands for an image");
        Err(Error::config(self.file(), format!("`{key}`: the tokenizer has no `{token}`"), help))
    }

    /// A token that `tokenizer_config.json` names, as a text or with how it is read.
    pub(super) fn special(&self, key: &str) -> Result<Option<String>> {
        let settings = self.checkpoint.json(TOKENIZER)?.unwrap_or_default();
        let token = &settings[key];
        Ok(token.as_str().or(token["content"].as_str()).map(str::to_owned))
    }

    /// One that it must name.
    pub(super) fn required(&self, key: &str) -> Result<String> {
        self.special(key)?.ok_or_else(|| {
            let file: &Path = &self.checkpoint.dir().join(TOKENIZER);
            let help = "take the tokenizer's files from the checkpoint that the model came with";
            Error::config(file, format!("`{key}`: is missing"), help)
        })
    }
}

const TOKENIZER: &str = "tokenizer_config.json";

pub(super) fn number(value: &Json) -> Option<usize> {
    value.as_u64().and_then(|number| usize::try_from(number).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placeholders(prefix: Option<&str>) -> Placeholders {
        let token = "<image>".to_owned();
        let replacement = Replacement::Features {
            feature: token.clone(),
            around: Default::default(),
            count: Count::Fixed(1),
        };
        let form = prefix.map_or(Form::InPlace, |begin| Form::Prefix(begin.to_owned()));
        Placeholders { token, replacement, form, settings: None }
    }

    #[test]
    fn every_image_has_its_place() {
        let images = ["<image><image>", "<image>"].map(str::to_owned);
        let text = placeholders(None).replace("<image> and <image>?", &images).unwrap();
        assert_eq!(text, "<image><image> and <image>?");
        assert_eq!(placeholders(None).replace("none", &[]).unwrap(), "none");
        let problem = placeholders(None).replace("<image>", &images).unwrap_err().to_string();
        assert!(problem.contains("`<image>` 1 times for 2 images"), "{problem}");
    }

    #[test]
    fn a_prompt_stands_between_the_images_and_the_end_of_its_line() {
        let images = ["1", "2"].map(str::to_owned);
        let prefix = placeholders(Some("<bos>"));
        assert_eq!(prefix.replace("<image><image>what?", &images).unwrap(), "12<bos>what?\n");
        assert!(prefix.replace("what?", &images).is_err());
    }
}
