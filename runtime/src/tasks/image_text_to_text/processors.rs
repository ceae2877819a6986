//! What processors say of images that stand before texts, in boxes of their own, or between tokens that are no fields of theirs.

use serde_json::json;

use super::form::Form;
use super::placeholders::{Files, Placeholders, number};
use super::replacement::{Count, Replacement};
use crate::{Error, Result};

impl Files<'_> {
    /// What the processor of this class says, where it is one of those.
    pub(super) fn of_own_form(&self, class: &str) -> Option<Result<Placeholders>> {
        Some(match class {
            "AriaProcessor" => self.aria(),
            "ChameleonProcessor" => self.chameleon(),
            "Idefics2Processor" => self.idefics2(),
            "Llama4Processor" => self.llama4(),
            "Blip2Processor" | "InstructBlipProcessor" => self.blip_2(),
            "Kosmos2Processor" => self.kosmos_2(),
            "Florence2Processor" => self.florence2(),
            "FuyuProcessor" => self.fuyu(),
            "HunYuanVLProcessor" => self.hunyuan_vl(),
            "Emu3Processor" => self.emu3(),
            "Gemma4Processor" => self.gemma4(),
            "MllamaProcessor" => self.mllama(),
            "IdeficsProcessor" => self.idefics(),
            "MuseGlimmerProcessor" => self.muse_glimmer(),
            "GraniteDoclingProcessor" => self.granite_docling(),
            _ => return None,
        })
    }

    fn aria(&self) -> Result<Placeholders> {
        let feature = self.named("image_token", "<|img|>")?;
        let count = number(&self.written["size_conversion"]["980"]).unwrap_or(256);
        // What the processor says of images, whatever theirs says itself.
        let settings = Some(json!({"max_image_size": 980, "split_image": false}));
        let placeholders = self.features(feature, Default::default(), count, Form::InPlace);
        Ok(Placeholders { settings, ..placeholders })
    }

    fn chameleon(&self) -> Result<Placeholders> {
        let token = self.special("image_token")?.unwrap_or_else(|| self.field("image_token", "<image>"));
        let feature = self.known("image_token", token)?;
        let around = [("boi_token", "<racm3:break>"), ("eoi_token", "<eoss>")];
        let [begin, end] = around.map(|(key, default)| self.named(key, default));
        let count = number(&self.written["image_seq_length"]).unwrap_or(1024);
        let form = Form::Ended(self.required("sep_token")?);
        Ok(self.features(feature, [begin?, end?], count, form))
    }

    fn idefics2(&self) -> Result<Placeholders> {
        let feature = self.named("image_token", "<image>")?;
        let boundary = self.named("image_boundary_token", "<fake_token_around_image>")?;
        let count = number(&self.written["image_seq_len"]).unwrap_or(64);
        let image = self.checkpoint.json("preprocessor_config.json")?.unwrap_or_default();
        let splits = [&self.written["image_processor"], &image];
        let splits = splits.iter().find_map(|file| file["do_image_splitting"].as_bool()).unwrap_or(false);
        let whole = format!("{boundary}{}{boundary}", feature.repeat(count));
        let text = whole.repeat(if splits { 5 } else { 1 });
        let replacement = Replacement::Same(text);
        Ok(Placeholders { token: feature, replacement, form: Form::Shared(boundary), settings: None })
    }

    fn llama4(&self) -> Result<Placeholders> {
        let edge = number(&self.written["patch_size"]).unwrap_or(14).max(1);
        let ratio = self.written["pixel_shuffle_ratio"].as_f64().unwrap_or(0.5);
        let shrinks = (1.0 / (ratio * ratio)).round_ties_even().max(1.0) as usize;
        let token = self.known("image_token", self.field("image_token", "<|image|>"))?;
        let feature = self.known("patch_token", "<|patch|>".to_owned())?;
        Ok(Placeholders {
            token,
            replacement: Replacement::Canvas { feature, edge, shrinks },
            form: Form::InPlace,
            settings: None,
        })
    }

    /// Queries before the text and the tokens that begin it.
    fn blip_2(&self) -> Result<Placeholders> {
        let named = &self.written["image_token"];
        let written = named.as_str().or(named["content"].as_str()).unwrap_or("<image>");
        let feature = self.known("image_token", written.to_owned())?;
        let count = number(&self.written["num_query_tokens"]).or(number(&self.config["num_query_tokens"]));
        let Some(count) = count else {
            let problem = "`num_query_tokens`: is missing: how many tokens stand for an image is not known";
            let help = "set it to the number of queries of the Q-Former";
            return Err(Error::config(self.file(), problem, help));
        };
        Ok(self.features(feature, Default::default(), count, Form::Before))
    }

    fn kosmos_2(&self) -> Result<Placeholders> {
        let feature = self.known("image_token", "<image>".to_owned())?;
        let end = self.known("eoi_token", "</image>".to_owned())?;
        let count = number(&self.written["num_image_tokens"]).unwrap_or(64);
        let begin = self.required("bos_token")?;
        let unknown = self.required("unk_token")?;
        let Some(unknown) = self.tokenizer.id(&unknown) else {
            let problem = format!("`unk_token`: the tokenizer has no `{unknown}`");
            return Err(Error::config(
                self.file(),
                problem,
                "take the tokenizer's files from the checkpoint",
            ));
        };
        let first = number(&self.written["first_image_token_id"]).map_or(unknown + 1, |id| id as i64);
        let text = format!("{feature}{} {end}", format!(" {feature}").repeat(count));
        let form = Form::Marked { begin, end, first, count };
        Ok(Placeholders { token: feature, replacement: Replacement::Same(text), form, settings: None })
    }

    fn florence2(&self) -> Result<Placeholders> {
        let feature = self.known("image_token", self.required("image_token")?)?;
        let image = self.checkpoint.json("preprocessor_config.json")?.unwrap_or_default();
        let count = number(&self.written["image_processor"]["image_seq_length"]);
        let Some(count) = count.or(number(&image["image_seq_length"])) else {
            let problem = "`image_seq_length`: is missing: how many tokens stand for an image is not known";
            let file = self.checkpoint.dir().join("preprocessor_config.json");
            return Err(Error::config(file, problem, "set it to the number of features of an image"));
        };
        let form = Form::Task { begin: self.required("bos_token")?, end: self.required("eos_token")? };
        Ok(self.features(feature, Default::default(), count, form))
    }

    fn fuyu(&self) -> Result<Placeholders> {
        let feature = self.known("image_token", "|SPEAKER|".to_owned())?;
        let line_end = self.known("image_newline_token", "|NEWLINE|".to_owned())?;
        let form =
            Form::Answered { begin: "<s>".to_owned(), answer: self.known("answer", "<0x04>".to_owned())? };
        Ok(Placeholders {
            token: feature.clone(),
            replacement: Replacement::Rows { feature, line_end },
            form,
            settings: None,
        })
    }

    /// The tokens around an image stand in texts, without which the reference refuses it.
    fn hunyuan_vl(&self) -> Result<Placeholders> {
        let feature = self.known("image_token", self.required("image_token")?)?;
        let [begin, end] = ["image_start_token", "image_end_token"].map(|key| self.required(key));
        let around = [begin?, end?];
        let marks = if self.written["cat_extra_token"] == false { 0 } else { 2 };
        let count = Count::EndedRows { merge: self.image_setting("merge_size", 2)?, marks };
        let token = format!("{}{feature}{}", around[0], around[1]);
        let replacement = Replacement::Features { feature, around, count };
        Ok(Placeholders { token, replacement, form: Form::Verbatim, settings: None })
    }

    fn emu3(&self) -> Result<Placeholders> {
        let feature = self.known("image_token", self.required("image_token")?)?;
        let [before, after] = ["boi_token", "eoi_token"].map(|key| self.required(key));
        let around = [before?, self.required("eof_token")? + &after?];
        let replacement = Replacement::Codes {
            feature: feature.clone(),
            // `downsample_ratio`, which no file says.
            edge: 8,
            around,
            wrapper: self.required("image_wrapper_token")?,
        };
        let form = Form::Headed(self.required("bos_token")?);
        Ok(Placeholders { token: feature, replacement, form, settings: None })
    }

    fn gemma4(&self) -> Result<Placeholders> {
        let feature = self.known("image_token", self.required("image_token")?)?;
        let [begin, end] = ["boi_token", "eoi_token"].map(|key| self.required(key));
        let count = Count::PooledPatches(self.image_setting("pooling_kernel_size", 3)?);
        let replacement = Replacement::Features { feature: feature.clone(), around: [begin?, end?], count };
        Ok(Placeholders { token: feature, replacement, form: Form::InPlace, settings: None })
    }

    fn mllama(&self) -> Result<Placeholders> {
        let token = self.named("image_token", "<|image|>")?;
        let form = Form::Begun { begin: self.required("bos_token")?, image: self.id_of(&token)? };
        Ok(Placeholders { replacement: Replacement::Same(token.clone()), token, form, settings: None })
    }

    fn idefics(&self) -> Result<Placeholders> {
        let token = self.named("image_token", "<image>")?;
        let around = self.known("fake_token", "<fake_token_around_image>".to_owned())?;
        let (begin, end) = (self.required("bos_token")?, self.required("eos_token")?);
        let (image, end) = (self.id_of(&token)?, self.id_of(&end)?);
        let form = Form::Interleaved { begin, token: token.clone(), around, image, end };
        Ok(Placeholders { replacement: Replacement::Same(token.clone()), token, form, settings: None })
    }

    /// The id of a token that the vocabulary has.
    fn id_of(&self, token: &str) -> Result<i64> {
        self.tokenizer.id(token).ok_or_else(|| {
            let problem = format!("the tokenizer has no `{token}`");
            Error::config(self.file(), problem, "take the tokenizer's files from the checkpoint")
        })
    }

    /// A number that the image processor's file says.
    fn image_setting(&self, key: &str, default: usize) -> Result<usize> {
        let image = self.checkpoint.json("preprocessor_config.json")?.unwrap_or_default();
        let nested = number(&self.written["image_processor"][key]);
        Ok(nested.or(number(&image[key])).unwrap_or(default).max(1))
    }

    /// A token that the tokenizer's settings name, or this one.
    fn named(&self, key: &str, default: &str) -> Result<String> {
        self.known(key, self.special(key)?.unwrap_or_else(|| default.to_owned()))
    }

    fn muse_glimmer(&self) -> Result<Placeholders> {
        let [feature, begin, end] = ["<|patch|>", "<|image_start|>", "<|image_end|>"]
            .map(|token| self.known("image_token", token.to_owned()));
        let (token, around, count) = (feature?, [begin?, end?], self.squares()?);
        let replacement = Replacement::Features { feature: token.clone(), around, count };
        Ok(Placeholders { token, replacement, form: Form::InPlace, settings: None })
    }

    fn granite_docling(&self) -> Result<Placeholders> {
        let token = self.named("image_token", "<image>")?;
        let each = number(&self.written["image_seq_len"]).unwrap_or(64);
        let [around, whole] = ["<fake_token_around_image>", "<global-img>"].map(str::to_owned);
        let replacement = Replacement::PageTiles { feature: token.clone(), each, around, whole };
        Ok(Placeholders { token, replacement, form: Form::InPlace, settings: None })
    }

    /// As many features for each image, between two texts.
    fn features(&self, feature: String, around: [String; 2], count: usize, form: Form) -> Placeholders {
        let count = Count::Fixed(count);
        let replacement = Replacement::Features { feature: feature.clone(), around, count };
        Placeholders { token: feature, replacement, form, settings: None }
    }
}
