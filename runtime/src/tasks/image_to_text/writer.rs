//! An image encoder and a decoder that attends to it (`VisionEncoderDecoderModel`, `BlipForConditionalGeneration`,
//! `BlipForQuestionAnswering`), with their processors.

use serde_json::Value as Json;

use crate::GraphKind;
use crate::any_model::AnyModel;
use crate::generation::{Generation, GenerationConfig, ModelDecoder, Prompt};
use crate::image::ImageProcessor;
use crate::tasks::GenerationOptions;
use crate::tasks::batches::TextModel;
use crate::tasks::inputs::model_inputs;
use crate::tasks::text_generation::resolve;
use crate::text::Text;
use crate::{Error, Result, Values};

/// New tokens where neither the caller nor the checkpoint says how many, as the reference's pipelines have it.
const MOST_NEW_TOKENS: usize = 256;

/// The tokens of `BlipTextConfig` where `text_config` does not name them: `bos_token_id`, `sep_token_id`, `pad_token_id`.
const DEFAULTS: [(&str, i64); 3] = [("bos_token_id", 30522), ("sep_token_id", 102), ("pad_token_id", 0)];

/// A model that writes texts of images.
#[derive(Debug)]
pub(in crate::tasks) struct ImageWriter<A> {
    pub(in crate::tasks) text: TextModel<A>,
    pub(in crate::tasks) processor: ImageProcessor,
    config: GenerationConfig,
}

impl<A: AnyModel> ImageWriter<A> {
    pub(in crate::tasks) fn new(model: A) -> Result<Self> {
        let text = TextModel::new(model)?;
        let checkpoint = text.model.checkpoint();
        let processor = ImageProcessor::from_checkpoint(checkpoint)?;
        let mut config = GenerationConfig::from_checkpoint(checkpoint)?;
        let is_blip = text.model.raw_config()["model_type"] == "blip";
        if let (true, [Some(bos), Some(sep), Some(pad)]) = (is_blip, blip_tokens(text.model.raw_config())) {
            // `generate` of BLIP's classes names these, whatever other files say.
            config.bos_token_id = Some(bos);
            config.decoder_start_token_id = Some(bos);
            config.eos_token_id = Some(vec![sep]);
            config.pad_token_id = Some(pad);
        }
        Ok(Self { text, processor, config })
    }

    /// Whether the decoder attends to images and begins every text with the same token.
    pub(in crate::tasks) fn reads_images_alone(&self) -> bool {
        let takes = |name: &str| self.text.model.inputs().iter().any(|input| input.name == name);
        takes("decoder_input_ids") && !takes("input_ids")
    }

    /// The token that begins texts.
    pub(in crate::tasks) fn start(&self, options: &GenerationOptions) -> Result<Vec<i64>> {
        let config = self.resolved(options);
        config.decoder_start_token_id.or(config.bos_token_id).map(|start| vec![start]).ok_or_else(|| {
            Error::config(
                self.text.model.checkpoint().dir().join("generation_config.json"),
                "names neither `decoder_start_token_id` nor `bos_token_id`: no token begins a text",
                "take the token from the published configuration",
            )
        })
    }

    /// The tokens of a prompt that is continued: the token that begins texts for the tokenizer's own, and no token that ends them.
    pub(in crate::tasks) fn prompt(&self, prompt: &str, options: &GenerationOptions) -> Result<Vec<i64>> {
        // Both tokens that are taken away must be there, whatever the options say.
        let mut ids =
            self.encoded(prompt, &GenerationOptions { add_special_tokens: true, ..options.clone() })?;
        ids.pop();
        if let (Some(first), Some(start)) = (ids.first_mut(), self.start(options)?.first()) {
            *first = *start;
        }
        Ok(ids)
    }

    /// The tokens of a text, special ones included.
    pub(in crate::tasks) fn encoded(&self, text: &str, options: &GenerationOptions) -> Result<Vec<i64>> {
        let encode = self.text.encoding(options, options.add_special_tokens);
        let rows = self.text.encode(&[Text::from(text)], &encode, options.allow_empty)?;
        Ok(rows.into_iter().next().map(|row| row.ids).unwrap_or_default())
    }

    /// Runs the encoder over `values`, and continues `begun`: whole texts, as often as `num_return_sequences` says.
    pub(in crate::tasks) fn write(
        &self,
        values: Values,
        begun: Vec<i64>,
        options: &GenerationOptions,
    ) -> Result<Vec<String>> {
        let config = self.resolved(options);
        let prompt = Prompt::new(&[begun], config.pad_token())?;
        let mut decoder = self.decoder(values)?;
        let generated = Generation::new(&prompt, &config)
            .tokenizer(&self.text.tokenizer)
            .positions(self.text.model.limit("sequence"))
            .seed(options.seed)
            .run(&mut decoder)?;
        let whole = generated.sequences.iter().map(|ids| {
            let clean = options.clean_up_tokenization_spaces;
            self.text.tokenizer.decode_as(ids, options.skip_special_tokens, clean)
        });
        whole.collect()
    }

    fn decoder(&self, mut values: Values) -> Result<ModelDecoder<'_>> {
        let model = &self.text.model;
        if !model.graph_kinds().contains(&GraphKind::Encoder) {
            values = model_inputs(model, values);
        }
        ModelDecoder::encoder_decoder(model, values)
    }

    fn resolved(&self, options: &GenerationOptions) -> GenerationConfig {
        let task = GenerationConfig { max_new_tokens: Some(MOST_NEW_TOKENS), ..Default::default() };
        resolve(&options.generation, &self.config, &task, &self.text.tokenizer)
    }
}

/// `bos_token_id`, `sep_token_id` and `pad_token_id` of BLIP's `text_config`; none of models without that.
fn blip_tokens(config: &Json) -> [Option<i64>; 3] {
    let text = &config["text_config"];
    DEFAULTS.map(|(name, default)| text.is_object().then(|| text[name].as_i64().unwrap_or(default)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn blips_tokens_are_those_of_its_text_model() {
        let named = json!({"text_config": {"bos_token_id": 7, "pad_token_id": 1}});
        assert_eq!(blip_tokens(&named), [Some(7), Some(102), Some(1)]);
        assert_eq!(blip_tokens(&json!({"decoder": {"bos_token_id": 7}})), [None; 3]);
    }
}
