//! Text generation: prompts and chats that a model continues.
//!
//! Reference: `TextGenerationPipeline`.

mod options;

use std::ops::ControlFlow;

use serde::Serialize;

pub use options::GenerationOptions;
pub(crate) use options::resolve;

use super::assistant::Assistant;
use super::batches::TextModel;
use super::builder::opened;
use super::{OnText, Pipeline, Task};
use crate::any_model::{AnyModel, DynModel};
use crate::generation::{Generated, Generation, GenerationConfig, ModelDecoder, Prompt, TextStream};
use crate::text::chat::{ChatOptions, ChatTemplate, Message};
use crate::text::{EncodeOptions, Text};
use crate::{Error, Result};

/// Continues texts and chats.
///
/// As the reference's pipeline, it draws tokens (`do_sample`, temperature 0.7) and gives 256 of them at most where
/// neither the caller nor the checkpoint says otherwise.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use std::ops::ControlFlow;
///
/// use weft::generation::GenerationConfig;
/// use weft::tasks::{GenerationOptions, TextGeneration};
/// use weft::text::chat::Message;
///
/// let generator = TextGeneration::<A>::open("org/checkpoint")?.load()?;
/// println!("{}", generator.run("Once upon a time")?[0].generated_text);
///
/// let config = GenerationConfig { do_sample: Some(false), max_new_tokens: Some(64), ..Default::default() };
/// let chat = [Message::user("What is a weft?")];
/// let answer = generator.stream_chat(&chat, &GenerationOptions::from(config), &mut |piece| {
///     print!("{piece}");
///     ControlFlow::Continue(())
/// })?;
/// println!("\n{} messages", answer.generated_text.len());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TextGeneration<A> {
    text: TextModel<A>,
    config: GenerationConfig,
    template: Option<ChatTemplate>,
    assistant: Option<Assistant>,
}

/// A continued text.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GeneratedText {
    /// The prompt and what follows it.
    pub generated_text: String,
    /// Where what follows begins, in bytes.
    #[serde(skip)]
    pub start: usize,
}

impl GeneratedText {
    /// What follows the prompt.
    pub fn new_text(&self) -> &str {
        &self.generated_text[self.start..]
    }
}

/// A continued chat.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GeneratedChat {
    /// The messages, with the assistant's answer, or with the last message gone on with.
    pub generated_text: Vec<Message>,
    /// The answer alone, without what the last message began with.
    #[serde(skip)]
    pub reply: String,
}

impl<A: AnyModel> Pipeline<A> for TextGeneration<A> {
    const TASK: Task = Task::TextGeneration;

    fn from_model(model: A) -> Result<Self> {
        let text = TextModel::new(model)?;
        let config = GenerationConfig::from_checkpoint(text.model.checkpoint())?;
        let template = ChatTemplate::from_checkpoint(text.model.checkpoint(), &text.tokenizer)?;
        Ok(Self { text, config, template, assistant: None })
    }
}

opened!(TextGeneration: text.model);

impl<A: AnyModel> TextGeneration<A> {
    /// The checkpoint's chat templates; none where it has none.
    pub fn chat_template(&self) -> Option<&ChatTemplate> {
        self.template.as_ref()
    }

    /// Takes a smaller model that drafts (assisted or speculative decoding, `assistant_model`): its tokens must be the model's own, or it is
    /// a drafter made for the model. The answers stay those of the model alone, but for tokens of nearly equal scores where it computes in
    /// less than single precision: there several tokens are rounded otherwise than one. Texts run one by one. The configuration's `num_assistant_tokens`,
    /// `num_assistant_tokens_schedule` and `assistant_confidence_threshold` say how far it drafts.
    ///
    /// ```no_run
    /// # fn example<Large: weft::Architecture, Small: weft::Architecture>() -> weft::Result<()> {
    /// let assistant = weft::Loader::<Small>::open("org/small")?.load()?;
    /// let generator =
    ///     weft::tasks::TextGeneration::<Large>::open("org/large")?.load()?.with_assistant(Box::new(assistant))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When it has other tokens, or a file of its checkpoint cannot be read.
    pub fn with_assistant(mut self, assistant: DynModel) -> Result<Self> {
        self.set_assistant(assistant)?;
        Ok(self)
    }

    pub(super) fn set_assistant(&mut self, assistant: DynModel) -> Result<()> {
        self.assistant = Some(Assistant::new(assistant, (&self.text.model, &self.text.tokenizer))?);
        Ok(())
    }

    /// Continues a text.
    ///
    /// # Errors
    /// When the text is empty or longer than the model's positions, or the model fails.
    pub fn run(&self, text: &str) -> Result<Vec<GeneratedText>> {
        Ok(self.run_with(&[text], &GenerationOptions::default())?.pop().unwrap_or_default())
    }

    /// Continues texts with other than the default options; each as often as `num_return_sequences` says.
    ///
    /// # Errors
    /// As [`TextGeneration::run`], and when options contradict each other.
    pub fn run_with(&self, texts: &[&str], options: &GenerationOptions) -> Result<Vec<Vec<GeneratedText>>> {
        let all = self.generate(texts, options, true, None)?;
        let full = |text: &str, new: String| GeneratedText {
            generated_text: format!("{text}{new}"),
            start: text.len(),
        };
        let full =
            texts.iter().zip(all).map(|(text, news)| news.into_iter().map(|new| full(text, new)).collect());
        Ok(full.collect())
    }

    /// Answers a chat.
    ///
    /// # Errors
    /// As [`TextGeneration::run`], and when the checkpoint has no chat template or it refuses the chat.
    pub fn chat(&self, messages: &[Message]) -> Result<Vec<GeneratedChat>> {
        let chat = ChatOptions::answering(messages);
        let options = GenerationOptions::default();
        Ok(self.chats_with(&[messages], &[chat], &options)?.pop().unwrap_or_default())
    }

    /// Answers chats with other than the default options, each with its own for the template.
    ///
    /// # Errors
    /// As [`TextGeneration::chat`].
    pub fn chats_with(
        &self,
        chats: &[&[Message]],
        templates: &[ChatOptions],
        options: &GenerationOptions,
    ) -> Result<Vec<Vec<GeneratedChat>>> {
        let prompts = chats.iter().zip(templates).map(|(messages, chat)| self.prompt(messages, chat));
        let prompts: Vec<String> = prompts.collect::<Result<_>>()?;
        let texts: Vec<&str> = prompts.iter().map(String::as_str).collect();
        let all = self.generate(&texts, options, false, None)?;
        let continued = chats.iter().zip(templates).zip(all).map(|((messages, chat), replies)| {
            replies.into_iter().map(|reply| answered(messages, chat, reply)).collect()
        });
        Ok(continued.collect())
    }

    /// Continues a text and tells of each piece as it comes; with beams, of all at the end.
    ///
    /// # Errors
    /// As [`TextGeneration::run_with`], and when more than one answer is asked for.
    pub fn stream(
        &self,
        text: &str,
        options: &GenerationOptions,
        on_text: &mut OnText<'_>,
    ) -> Result<GeneratedText> {
        let mut all = self.generate(&[text], options, true, Some(on_text))?;
        let new = all.pop().and_then(|mut news| news.pop()).unwrap_or_default();
        Ok(GeneratedText { generated_text: format!("{text}{new}"), start: text.len() })
    }

    /// Answers a chat and tells of each piece as it comes; with beams, of all at the end.
    ///
    /// # Errors
    /// As [`TextGeneration::chat`], and when more than one answer is asked for.
    pub fn stream_chat(
        &self,
        messages: &[Message],
        options: &GenerationOptions,
        on_text: &mut OnText<'_>,
    ) -> Result<GeneratedChat> {
        let chat = ChatOptions::answering(messages);
        let prompt = self.prompt(messages, &chat)?;
        let mut all = self.generate(&[&prompt], options, false, Some(on_text))?;
        Ok(answered(messages, &chat, all.pop().and_then(|mut news| news.pop()).unwrap_or_default()))
    }

    fn prompt(&self, messages: &[Message], chat: &ChatOptions) -> Result<String> {
        let Some(template) = &self.template else {
            let help = "give a text instead; or add the template of the checkpoint that it was trained from";
            let place = self.text.tokenizer.file();
            return Err(Error::tokenizer(place, "the checkpoint has no chat template", help));
        };
        template.render(messages, chat)
    }

    /// What follows each text, `num_return_sequences` times.
    fn generate(
        &self,
        texts: &[&str],
        options: &GenerationOptions,
        special: bool,
        mut on_text: Option<&mut OnText<'_>>,
    ) -> Result<Vec<Vec<String>>> {
        let task = GenerationConfig {
            max_new_tokens: Some(256),
            do_sample: Some(true),
            temperature: Some(0.7),
            ..Default::default()
        };
        let config = resolve(&options.generation, &self.config, &task, &self.text.tokenizer);
        if on_text.is_some() && config.num_return_sequences() > 1 {
            let help = "leave out `num_return_sequences`, or generate without telling of pieces";
            return Err(Error::input(
                "num_return_sequences",
                "only one answer can be told of as it comes",
                help,
            ));
        }
        let rows = self.rows(texts, options, special, &config)?;
        let mut all = Vec::with_capacity(texts.len());
        let assisted = self.assistant.is_some() || config.prompt_lookup_num_tokens.is_some();
        let size = if assisted { 1 } else { options.batch_size.max(1) };
        for (index, chunk) in rows.chunks(size).enumerate() {
            let prompt = Prompt::new(chunk, config.pad_token())?;
            let mut decoder = ModelDecoder::new(&self.text.model)?;
            let mut generation = Generation::new(&prompt, &config)
                .tokenizer(&self.text.tokenizer)
                .positions(self.text.model.limit("sequence"))
                .seed(options.seed)
                .first_row(index * size);
            if let Some(assistant) = &self.assistant {
                generation = generation.candidates(assistant.decoder_only(&self.text.model, &config)?);
            }
            let generated = match &mut on_text {
                None => generation.run(&mut decoder)?,
                Some(on_text) => streamed(&self.text, generation, &mut decoder, options, &config, on_text)?,
            };
            let texts = self.text.decoded(&generated, options)?;
            all.extend(texts.chunks(config.num_return_sequences()).map(<[String]>::to_vec));
        }
        Ok(all)
    }

    /// The tokens of texts; of an empty one, the token that begins texts.
    fn rows(
        &self,
        texts: &[&str],
        options: &GenerationOptions,
        special: bool,
        config: &GenerationConfig,
    ) -> Result<Vec<Vec<i64>>> {
        let texts: Vec<Text<'_>> = texts.iter().map(|text| Text::from(*text)).collect();
        let encode = self.text.encoding(options, special && options.add_special_tokens);
        let rows = self.text.encode(&texts, &encode, options.allow_empty)?.into_iter().map(|row| row.ids);
        let begun = rows.map(|ids| match config.bos_token_id {
            Some(bos) if ids.is_empty() => vec![bos],
            _ => ids,
        });
        Ok(begun.collect())
    }
}

impl<A: AnyModel> TextModel<A> {
    /// How a prompt is encoded.
    pub(super) fn encoding(&self, options: &GenerationOptions, add_special_tokens: bool) -> EncodeOptions {
        let limit = self.positions();
        let longest = options.max_length.or(self.longest()).into_iter().chain(limit).min();
        let cut =
            if options.truncation { EncodeOptions::truncated(longest) } else { EncodeOptions::default() };
        EncodeOptions { add_special_tokens, ..cut }
    }

    /// The texts that were generated.
    pub(super) fn decoded(&self, generated: &Generated, options: &GenerationOptions) -> Result<Vec<String>> {
        let texts = (0..generated.sequences.len()).map(|index| {
            let ids = generated.new_tokens(index);
            self.tokenizer.decode_as(ids, options.skip_special_tokens, options.clean_up_tokenization_spaces)
        });
        texts.collect()
    }
}

/// Generates and tells of the first row's text as it comes.
pub(super) fn streamed<A: AnyModel>(
    text: &TextModel<A>,
    generation: Generation<'_>,
    decoder: &mut ModelDecoder<'_>,
    options: &GenerationOptions,
    config: &GenerationConfig,
    on_text: &mut OnText<'_>,
) -> Result<Generated> {
    let mut stream = TextStream::new(&text.tokenizer, options.skip_special_tokens);
    let mut failed = None;
    let mut watch = |tokens: &[Option<i64>]| {
        let Some(Some(token)) = tokens.first() else { return ControlFlow::Continue(()) };
        match stream.push(*token) {
            Ok(piece) if piece.is_empty() => ControlFlow::Continue(()),
            Ok(piece) => on_text(&piece),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    };
    let generated = generation.run_watched(decoder, &mut watch)?;
    if let Some(error) = failed {
        return Err(error);
    }
    let rest = if config.num_beams() > 1 {
        text.decoded(&generated, options)?.swap_remove(0)
    } else {
        stream.finish()?
    };
    if !rest.is_empty() {
        // It has ended: there is nothing left to break off.
        let _ = on_text(&rest);
    }
    Ok(generated)
}

/// The chat with the answer.
pub(super) fn answered(messages: &[Message], chat: &ChatOptions, reply: String) -> GeneratedChat {
    let mut all = messages.to_vec();
    match all.last_mut() {
        Some(last) if chat.continue_final_message => {
            let begun = last.text().unwrap_or_default();
            last.content = format!("{begun}{reply}").into();
        }
        _ => all.push(Message::assistant(&reply)),
    }
    GeneratedChat { generated_text: all, reply }
}
