//! Texts about images: prompts and chats with images in them that a model continues.
//!
//! Reference: `ImageTextToTextPipeline`.

mod form;
mod image_states;
mod placeholders;
mod processors;
mod prompts;
mod replacement;

pub(super) use self::placeholders::Placeholders;
use super::assistant::Assistant;
use super::batches::TextModel;
use super::builder::opened;
use super::text_generation::{answered, resolve};
use super::{GeneratedChat, GeneratedText, GenerationOptions, Pipeline, Task};
use crate::GraphKind;
use crate::any_model::{AnyModel, DynModel};
use crate::generation::{Generation, GenerationConfig, ModelDecoder, Prompt};
use crate::image::{Image, ImageProcessor};
use crate::text::chat::{ChatOptions, ChatTemplate, Message};
use crate::text::{EncodeOptions, Text, Tokenizer};
use crate::{Error, Result, Values};

/// Continues texts and chats with images in them.
///
/// As the reference's pipeline, it gives 256 tokens at most where neither the caller nor the checkpoint says otherwise.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::image::Image;
/// use weft::tasks::ImageTextToText;
///
/// let model = ImageTextToText::<A>::open("llava-hf/llava-1.5-7b-hf")?.load()?;
/// let cat = Image::open("cat.jpg")?;
/// let answers = model.run(&[cat], "USER: <image>\nWhat is this? ASSISTANT:")?;
/// println!("{}", answers[0].new_text());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ImageTextToText<A> {
    pub(super) text: TextModel<A>,
    pub(super) processor: ImageProcessor,
    placeholders: Placeholders,
    config: GenerationConfig,
    template: Option<ChatTemplate>,
    /// The tokenizer of the text that a Q-Former reads with each image (`InstructBlipProcessor`).
    instruction: Option<Tokenizer>,
    assistant: Option<Assistant>,
}

impl<A: AnyModel> Pipeline<A> for ImageTextToText<A> {
    const TASK: Task = Task::ImageTextToText;

    fn from_model(model: A) -> Result<Self> {
        let text = TextModel::new(model)?;
        let checkpoint = text.model.checkpoint();
        let placeholders = Placeholders::read(checkpoint, text.model.raw_config(), &text.tokenizer)?;
        let mut processor = ImageProcessor::from_checkpoint(checkpoint)?;
        if let Some(settings) = placeholders.image_settings() {
            // As the reference's processor of texts and images asks that of images to.
            processor = processor.with(&settings)?;
        }
        let config = GenerationConfig::from_checkpoint(checkpoint)?;
        let template = ChatTemplate::from_checkpoint(checkpoint, &text.tokenizer)?;
        let reads = text.model.inputs().iter().any(|input| input.name == INSTRUCTION);
        let instruction = reads
            .then(|| Tokenizer::from_checkpoint(&checkpoint.component("qformer_tokenizer")))
            .transpose()?;
        Ok(Self { text, processor, placeholders, config, template, instruction, assistant: None })
    }
}

opened!(ImageTextToText: text.model);

impl<A: AnyModel> ImageTextToText<A> {
    /// The token that stands for an image in a text, such as `<image>`.
    pub fn image_token(&self) -> &str {
        &self.placeholders.token
    }

    /// The checkpoint's chat templates; none where it has none.
    pub fn chat_template(&self) -> Option<&ChatTemplate> {
        self.template.as_ref()
    }

    /// Takes a smaller model that drafts (assisted or speculative decoding, `assistant_model`), as
    /// [`TextGeneration::with_assistant`](super::TextGeneration::with_assistant) does. One that takes images reads them too, a text model
    /// their tokens alone. Models that read images by an encoder beside the decoder take none.
    ///
    /// # Errors
    /// When it has other tokens, or a file of its checkpoint cannot be read.
    pub fn with_assistant(mut self, assistant: DynModel) -> Result<Self> {
        self.set_assistant(assistant)?;
        Ok(self)
    }

    pub(super) fn set_assistant(&mut self, assistant: DynModel) -> Result<()> {
        if self.text.model.graph_kinds().contains(&GraphKind::Encoder) {
            let problem = format!("is not asked by {}", self.text.model.class());
            return Err(Error::input("assistant_model", problem, "leave it out"));
        }
        self.assistant = Some(Assistant::new(assistant, (&self.text.model, &self.text.tokenizer))?);
        Ok(())
    }

    /// Continues a text in which the image token stands for each image.
    ///
    /// # Errors
    /// When there are more or fewer of them than images, the text is longer than the model's positions, or the model
    /// fails.
    pub fn run(&self, images: &[Image], text: &str) -> Result<Vec<GeneratedText>> {
        self.run_with(images, text, &GenerationOptions::default())
    }

    /// The same with other than the default options; as many answers as `num_return_sequences` says.
    ///
    /// # Errors
    /// As [`ImageTextToText::run`], and when options contradict each other.
    pub fn run_with(
        &self,
        images: &[Image],
        text: &str,
        options: &GenerationOptions,
    ) -> Result<Vec<GeneratedText>> {
        let news = self.generate(images, text, options, options.add_special_tokens)?;
        let full = |new: String| GeneratedText { generated_text: format!("{text}{new}"), start: text.len() };
        Ok(news.into_iter().map(full).collect())
    }

    /// Answers a chat whose messages have images among their parts: `{"type": "image"}`.
    ///
    /// # Errors
    /// As [`ImageTextToText::run`], and when the checkpoint has no chat template or it refuses the chat.
    pub fn chat(&self, images: &[Image], messages: &[Message]) -> Result<Vec<GeneratedChat>> {
        self.chat_with(images, messages, &ChatOptions::answering(messages), &GenerationOptions::default())
    }

    /// The same with other than the default options.
    ///
    /// # Errors
    /// As [`ImageTextToText::chat`].
    pub fn chat_with(
        &self,
        images: &[Image],
        messages: &[Message],
        chat: &ChatOptions,
        options: &GenerationOptions,
    ) -> Result<Vec<GeneratedChat>> {
        let (prompt, begun) = self.rendered(messages, chat)?;
        let replies = self.generate(images, &prompt, options, !begun)?;
        Ok(replies.into_iter().map(|reply| answered(messages, chat, reply)).collect())
    }

    /// A chat as a prompt, and whether that begins with the token that begins texts.
    pub(super) fn rendered(&self, messages: &[Message], chat: &ChatOptions) -> Result<(String, bool)> {
        let Some(template) = &self.template else {
            let help = "give a text instead; or add the template of the checkpoint that it was trained from";
            let place = self.text.tokenizer.file();
            return Err(Error::tokenizer(place, "the checkpoint has no chat template", help));
        };
        let prompt = template.render(messages, chat)?;
        // Templates that do not begin with the token that begins texts leave that to the tokenizer.
        let begun =
            self.text.tokenizer.settings().bos_token.as_ref().is_some_and(|bos| prompt.starts_with(bos));
        Ok((prompt, begun))
    }

    /// A text in which what stands for images is in its places already.
    pub(super) fn prompt(&self, text: String) -> form::Prompt {
        form::Prompt { text, special: true, ..Default::default() }
    }

    /// What follows a text.
    fn generate(
        &self,
        images: &[Image],
        text: &str,
        options: &GenerationOptions,
        special: bool,
    ) -> Result<Vec<String>> {
        let processed = match images.is_empty() {
            true if self.placeholders.form.always_has_images() => {
                image_states::no_image(&self.text.model.inputs_of(GraphKind::Encoder)?)
            }
            true => Values::new(),
            false => self.processor.process(images)?,
        };
        let prompt = self.placeholders.expand(text, images.len(), &self.processor, &processed)?;
        self.write(processed, &prompt, text, options, special)
    }

    /// What follows a prompt, with what the processor made of its images.
    pub(super) fn write(
        &self,
        mut processed: Values,
        prompt: &form::Prompt,
        text: &str,
        options: &GenerationOptions,
        special: bool,
    ) -> Result<Vec<String>> {
        let form = &self.placeholders.form;
        let before = self.encoded(&prompt.before, options, false)?;
        let mut row: Vec<i64> = before.into_iter().skip(prompt.skip).collect();
        let head = if special { prompt.head.as_str() } else { "" };
        row.extend(self.encoded(&format!("{head}{}", prompt.text), options, special && prompt.special)?);
        form.mark(&mut row, &mut processed);
        if let Some(instruction) = &self.instruction {
            processed.extend(instructed(instruction, text)?);
        }

        let task = GenerationConfig { max_new_tokens: Some(256), ..Default::default() };
        let config = resolve(&options.generation, &self.config, &task, &self.text.tokenizer);
        let rows = [row];
        let drafting = self.assistant.as_ref();
        let drafting = drafting.map(|assistant| assistant.reading(&processed, &self.text.model, &config));
        let drafting = drafting.transpose()?;
        let encodes = self.text.model.graph_kinds().contains(&GraphKind::Encoder);
        let (begin, mut decoder) = if encodes && self.attends_to_images()? {
            // Layers attend to images; a text without them is read anew at each step.
            let decoder = match processed.is_empty() {
                true => ModelDecoder::without_cache(&self.text.model),
                false => ModelDecoder::encoder_decoder(&self.text.model, processed)?,
            };
            (rows.to_vec(), decoder)
        } else if encodes {
            let start = config.decoder_start_token_id.or(config.bos_token_id).ok_or_else(no_start)?;
            let read = Prompt::new(&rows, config.pad_token())?;
            processed.insert("input_ids".to_owned(), read.input_ids.into_dyn().into());
            processed.insert("attention_mask".to_owned(), read.attention_mask.into_dyn().into());
            (vec![vec![start]], ModelDecoder::encoder_decoder(&self.text.model, processed)?)
        } else {
            let first = self.first(processed, rows[0].len())?;
            (rows.to_vec(), ModelDecoder::new(&self.text.model)?.beginning_with(first))
        };
        let prompt = Prompt::new(&begin, config.pad_token())?;
        let mut generation = Generation::new(&prompt, &config)
            .tokenizer(&self.text.tokenizer)
            .positions(self.text.model.limit("sequence"))
            .seed(options.seed);
        if let Some(drafting) = drafting {
            generation = generation.candidates(drafting);
        }
        let generated = generation.run(&mut decoder)?;

        let decoded = |ids: &[i64]| {
            let clean = options.clean_up_tokenization_spaces;
            self.text.tokenizer.decode_as(ids, options.skip_special_tokens, clean)
        };
        let begun = decoded(&rows[0])?;
        (0..generated.sequences.len())
            .map(|index| {
                if form.decodes_answers_alone() {
                    return decoded(generated.new_tokens(index));
                }
                let whole = decoded(&[begin[0].as_slice(), generated.new_tokens(index)].concat())?;
                Ok(after(form.shown(&whole), form.shown(&begun)).to_owned())
            })
            .collect()
    }

    /// Whether the model is a decoder whose layers attend to images, and has no other tokens than the prompt's.
    fn attends_to_images(&self) -> Result<bool> {
        let inputs = self.text.model.inputs_of(GraphKind::Decode)?;
        Ok(inputs.iter().any(|input| input.name == "input_ids"))
    }

    /// The tokens of a text; none of one without letters.
    fn encoded(&self, text: &str, options: &GenerationOptions, special: bool) -> Result<Vec<i64>> {
        let rows = self.text.encode(&[Text::from(text)], &self.text.encoding(options, special), true)?;
        Ok(rows.into_iter().next().map(|row| row.ids).unwrap_or_default())
    }

    /// What the model takes with the first tokens, of which there are so many.
    fn first(&self, mut processed: Values, length: usize) -> Result<Values> {
        if processed.is_empty() {
            return Ok(processed);
        }
        // The whole prompt is a prefix, where the model tells that from what follows.
        let types = ndarray::ArrayD::<i64>::zeros(vec![1, length]);
        processed.insert("token_type_ids".to_owned(), types.into());
        let model = &self.text.model;
        let start = model.graph_kinds().contains(&GraphKind::Prefill);
        let taken = if start { model.inputs_of(GraphKind::Prefill)? } else { model.inputs().to_vec() };
        processed.retain(|name, _| taken.iter().any(|input| input.name == *name));
        Ok(processed)
    }
}

/// The input of a Q-Former that reads a text with each image.
const INSTRUCTION: &str = "qformer_input_ids";

/// A text as a Q-Former reads it.
fn instructed(tokenizer: &Tokenizer, text: &str) -> Result<Values> {
    let rows = tokenizer.encode(&[Text::from(text)], &EncodeOptions::default())?;
    let ids = rows.into_iter().next().map(|row| row.ids).unwrap_or_default();
    let ids = ndarray::Array1::from_vec(ids).insert_axis(ndarray::Axis(0)).into_dyn();
    let mask = ndarray::ArrayD::<i64>::ones(ids.shape());
    Ok(Values::from([
        (INSTRUCTION.to_owned(), ids.into()),
        ("qformer_attention_mask".to_owned(), mask.into()),
    ]))
}

fn no_start() -> Error {
    let help = "set `decoder_start_token_id` in generation_config.json";
    Error::input("generation", "names no token that the decoder begins with", help)
}

/// What follows a prompt in a whole text; the prompt may begin a little later there.
fn after<'a>(whole: &'a str, begun: &str) -> &'a str {
    let at = whole.find(begun).filter(|at| whole[..*at].chars().count() <= 2);
    at.map_or(whole, |at| &whole[at + begun.len()..])
}
