//! Texts into other texts: any, summaries, translations.
//!
//! Reference: `Text2TextGenerationPipeline` and those made from it, as of release 4.57; release 5 has none.

mod kinds;
mod languages;

use serde_json::Value as Json;

pub use kinds::{Rewritten, Summarization, Summary, Text2TextGeneration, Translated, Translation};

use self::languages::Pair;
use super::assistant::Assistant;
use super::batches::TextModel;
use super::inputs::model_inputs;
use super::text_generation::{GenerationOptions, resolve, streamed};
use super::{OnText, Task};
use crate::any_model::AnyModel;
use crate::generation::{Generation, GenerationConfig, ModelDecoder, Prompt};
use crate::text::{Padding, Text};
use crate::{Error, Result};

/// What the tasks share.
#[derive(Debug)]
struct Writer<A> {
    text: TextModel<A>,
    config: GenerationConfig,
    task: Task,
    /// From which into which, where a translation was told.
    languages: Option<(String, String)>,
    assistant: Option<Assistant>,
}

impl<A: AnyModel> Writer<A> {
    fn new(model: A, task: Task) -> Result<Self> {
        let text = TextModel::new(model)?;
        let config = GenerationConfig::from_checkpoint(text.model.checkpoint())?;
        Ok(Self { text, config, task, languages: None, assistant: None })
    }

    /// The name of the options that the checkpoint may hold for the task, or for a pair of languages.
    fn key(&self, languages: Option<&(String, String)>) -> String {
        let task = self.task.name();
        languages.map_or(task.to_owned(), |(from, to)| format!("{task}_{from}_to_{to}"))
    }

    /// The tokens of the languages, where the task and the checkpoint are of such.
    fn pair(&self, languages: Option<&(String, String)>) -> Result<Option<Pair>> {
        match self.task {
            Task::Translation => Pair::of(&self.text.tokenizer, languages),
            _ => Ok(None),
        }
    }

    /// What the checkpoint says about a task by name: `task_specific_params` in its `config.json`.
    fn specific(&self, task: &str) -> Result<(String, GenerationConfig)> {
        let raw = self.text.model.raw_config();
        let specific = &raw["task_specific_params"][task];
        let prefix = specific["prefix"].as_str().or(raw["prefix"].as_str()).unwrap_or_default().to_owned();
        let config = match specific {
            Json::Object(_) => GenerationConfig::from_json(specific)?.or(self.config.clone()),
            _ => self.config.clone(),
        };
        Ok((prefix, config))
    }

    /// What is written for each text, `num_return_sequences` times.
    fn write(
        &self,
        languages: Option<&(String, String)>,
        texts: &[&str],
        options: &GenerationOptions,
        mut on_text: Option<&mut OnText<'_>>,
    ) -> Result<Vec<Vec<String>>> {
        let languages = languages.or(self.languages.as_ref());
        let (prefix, own) = self.specific(&self.key(languages))?;
        let pair = self.pair(languages)?;
        let default =
            GenerationConfig { max_new_tokens: Some(256), num_beams: Some(4), ..Default::default() };
        let mut config = resolve(&options.generation, &own, &default, &self.text.tokenizer);
        let assisted = self.assistant.is_some() || config.prompt_lookup_num_tokens.is_some();
        if on_text.is_some() || assisted {
            // Beams change their minds: what was told of cannot be taken back. Nor do they take candidates.
            config.num_beams = options.generation.num_beams.or(Some(1));
        }
        if let Some(pair) = pair {
            config.forced_bos_token_id = Some(pair.to);
        }
        let Some(start) = config.decoder_start_token_id.or(config.bos_token_id) else {
            return Err(Error::config(
                self.text.model.checkpoint().dir().join("generation_config.json"),
                "names neither `decoder_start_token_id` nor `bos_token_id`: no token begins an answer",
                "take the token from the published configuration",
            ));
        };
        if !options.allow_empty {
            self.text.refuse_blank(texts)?;
        }
        let given: Vec<String> = texts.iter().map(|text| format!("{prefix}{text}")).collect();
        let given: Vec<Text<'_>> = given.iter().map(Text::from).collect();
        let encode = self.text.encoding(options, options.add_special_tokens);
        let mut rows = self.text.encode(&given, &encode, true)?;
        if let Some(pair) = pair {
            rows.iter_mut().try_for_each(|row| pair.mark(row, &self.text.tokenizer))?;
        }
        let mut all = Vec::with_capacity(texts.len());
        let size = if assisted { 1 } else { options.batch_size.max(1) };
        for (index, chunk) in rows.chunks(size).enumerate() {
            let batch = self.text.tokenizer.pad(chunk, &Padding::default())?;
            let prompt = Prompt::decoder(start, batch.input_ids.clone());
            let inputs = model_inputs(&self.text.model, batch.into_values());
            let drafting = match &self.assistant {
                Some(assistant) => Some(assistant.encoder_decoder(inputs.clone(), &config)?),
                None => None,
            };
            let mut decoder = ModelDecoder::encoder_decoder(&self.text.model, inputs)?;
            let mut generation = Generation::new(&prompt, &config)
                .tokenizer(&self.text.tokenizer)
                .positions(self.text.model.limit("sequence"))
                .seed(options.seed)
                .first_row(index * size);
            if let Some(drafting) = drafting {
                generation = generation.candidates(drafting);
            }
            let generated = match &mut on_text {
                None => generation.run(&mut decoder)?,
                Some(on_text) => streamed(&self.text, generation, &mut decoder, options, &config, on_text)?,
            };
            let texts = self.text.decoded(&generated, &uncleaned(options))?;
            all.extend(texts.chunks(config.num_return_sequences()).map(<[String]>::to_vec));
        }
        Ok(all)
    }
}

/// These tasks leave the spaces before punctuation where they are not told otherwise.
fn uncleaned(options: &GenerationOptions) -> GenerationOptions {
    let clean = options.clean_up_tokenization_spaces.or(Some(false));
    GenerationOptions { clean_up_tokenization_spaces: clean, ..options.clone() }
}
