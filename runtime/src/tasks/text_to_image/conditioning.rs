//! What a denoiser takes besides latents and a timestep: hidden states of texts, pooled texts, sizes, a guidance scale.

use std::borrow::Cow;

use ndarray::{Array1, Array2, ArrayD, Axis, Slice, concatenate};

use super::pipelines::{Conditioning, TextEncoder, has};
use super::{TextToImage, TextToImageOptions, controlnet, guidance, misshapen};
use crate::any_model::AnyModel;
use crate::hub::Checkpoint;
use crate::text::chat::{ChatOptions, ChatTemplate, Message};
use crate::text::{EncodeOptions, Text, Tokenizer};
use crate::{Error, Result, Value, Values};

/// The tokenizer of a text encoder, and how many tokens it makes of a text.
#[derive(Debug)]
pub(super) struct TextInput {
    pub encoder: TextEncoder,
    tokenizer: Tokenizer,
    chat: Option<ChatTemplate>,
    length: usize,
}

impl TextInput {
    /// Of a text encoder that the pipeline has; `None` where it may be without and is.
    pub(super) fn read(
        encoder: TextEncoder,
        checkpoint: &Checkpoint,
        config: &serde_json::Value,
    ) -> Result<Option<Self>> {
        let own = &config[encoder.name];
        if encoder.optional && !has(config, encoder.name) {
            return Ok(None);
        }
        let folder = checkpoint.component(encoder.tokenizer);
        let tokenizer = Tokenizer::from_checkpoint(&folder)?;
        let chat = match encoder.chat {
            true => Some(ChatTemplate::from_checkpoint(&folder, &tokenizer)?.ok_or_else(|| {
                let help = "add the published `chat_template` to tokenizer_config.json";
                Error::tokenizer(tokenizer.file(), "has no chat template", help)
            })?),
            false => None,
        };
        let positions = own["max_position_embeddings"].as_u64().map_or(77, |most| most as usize);
        let tokens = tokenizer.settings().model_max_length.unwrap_or(positions).min(positions);
        Ok(Some(Self { encoder, tokenizer, chat, length: encoder.length.unwrap_or(tokens) }))
    }

    /// How many tokens T5 makes of a text.
    fn tokens(&self, options: &TextToImageOptions) -> Option<usize> {
        self.encoder.length.map(|length| options.max_sequence_length.unwrap_or(length))
    }

    /// A prompt as the text encoder takes it: where it is one of chats, a user's message before an answer that may be thought about.
    fn rendered<'a>(&self, text: &'a str) -> Result<Cow<'a, str>> {
        let Some(chat) = &self.chat else { return Ok(Cow::Borrowed(text)) };
        let options = ChatOptions {
            add_generation_prompt: true,
            variables: [("enable_thinking".to_owned(), true.into())].into_iter().collect(),
            ..ChatOptions::default()
        };
        chat.render(&[Message::user(text)], &options).map(Cow::Owned)
    }

    /// Token ids and the mask of those that are not padding, cut and padded to as many as there must be.
    fn ids(&self, texts: &[String], options: &TextToImageOptions) -> Result<[Array2<i64>; 2]> {
        let length = self.tokens(options).unwrap_or(self.length);
        let Some((_, pad)) = self.tokenizer.pad_token() else {
            let help = "add the published `pad_token` to tokenizer_config.json";
            return Err(Error::tokenizer(self.tokenizer.file(), "has no padding token", help));
        };
        let texts = texts.iter().map(|text| self.rendered(text)).collect::<Result<Vec<_>>>()?;
        let texts: Vec<Text<'_>> = texts.iter().map(|text| Text::from(&**text)).collect();
        let rows = self.tokenizer.encode(&texts, &EncodeOptions::truncated(Some(length)))?;
        // What is not seen of chats is left out, but for those that are shorter than others.
        let longest = rows.iter().map(|encoding| encoding.ids.len()).max().unwrap_or(length);
        let length = if self.chat.is_some() { length.min(longest) } else { length };
        let mut ids = Array2::from_elem((rows.len(), length), pad);
        let mut mask = Array2::zeros((rows.len(), length));
        for (row, encoding) in rows.iter().enumerate() {
            for (column, id) in encoding.ids.iter().take(length).enumerate() {
                ids[[row, column]] = *id;
                mask[[row, column]] = 1;
            }
        }
        Ok([ids, mask])
    }
}

impl<A: AnyModel> TextToImage<A> {
    /// What the denoiser takes of each image's prompt, under its names, `[images, ..]` each; with guidance that of the negative prompt
    /// before.
    pub(super) fn conditioning(
        &self,
        prompts: &[&str],
        options: &TextToImageOptions,
        [height, width]: [usize; 2],
    ) -> Result<Values> {
        let guided = self.guided(options);
        let rows = prompts.len() * options.num_images_per_prompt * if guided { 2 } else { 1 };
        let mut values = match self.class.conditioning {
            Conditioning::Classes => self.classes(prompts, options, guided)?,
            _ => self.texts(prompts, options, guided)?,
        };
        let scale = self.guidance_scale(options);
        let mut give = |name: &str, value: Value| values.insert(name.to_owned(), value);
        if self.class.conditioning == Conditioning::Sizes {
            // The original size, where the image was cropped, and its size.
            let sizes = [height, width, 0, 0, height, width];
            give("time_ids", same_rows(rows, &sizes.map(|size| size as f32)));
        }
        if self.settings.takes_resolution {
            let (height, width) = (height as f32, width as f32);
            give("resolution", same_rows(rows, &[height, width]));
            give("aspect_ratio", same_rows(rows, &[(f64::from(height) / f64::from(width)) as f32]));
        }
        if let Some(width) = self.settings.guidance_width {
            give("timestep_cond", guidance::embedding(scale - 1.0, width, rows).into_dyn().into());
        }
        if self.class.conditioning == Conditioning::Packed {
            if self.settings.guidance_embeds {
                give("guidance", ArrayD::from_elem(vec![rows], scale).into());
            }
            give("img_ids", self.settings.token_places([height, width]).into_dyn().into());
            let tokens = self.texts.iter().filter_map(|input| input.tokens(options)).sum();
            give("txt_ids", Array2::<i64>::zeros((tokens, 3)).into_dyn().into());
        }
        if let Some(image) = &options.control_image {
            give("controlnet_cond", controlnet::control(image, [height, width], rows)?);
        }
        Ok(values)
    }

    /// How far predictions are guided.
    pub(super) fn guidance_scale(&self, options: &TextToImageOptions) -> f32 {
        options.guidance_scale.unwrap_or(self.class.guidance_scale)
    }

    /// Whether there is a second prediction, for the negative prompt.
    pub(super) fn guided(&self, options: &TextToImageOptions) -> bool {
        let embedded =
            self.class.conditioning == Conditioning::Packed || self.settings.guidance_width.is_some();
        let least = if self.class.conditioning == Conditioning::Chat { 0.0 } else { 1.0 };
        !embedded && self.guidance_scale(options) > least
    }

    /// What the difference of both predictions is multiplied with; of chats it is added to that of the prompt.
    pub(super) fn guidance_factor(&self, options: &TextToImageOptions) -> f32 {
        let scale = self.guidance_scale(options);
        if self.class.conditioning == Conditioning::Chat { 1.0 + scale } else { scale }
    }

    /// The class that each prompt names, by number or by label; for the negative prompt that which is none.
    fn classes(&self, prompts: &[&str], options: &TextToImageOptions, guided: bool) -> Result<Values> {
        const NONE: i64 = 1000;
        let labels = &self.model.raw_config()["id2label"];
        let labels = labels.as_object().into_iter().flatten();
        let labelled = |name: &str| {
            let has = |label: &str| label.split(',').any(|label| label.trim() == name);
            labels
                .clone()
                .find(|(_, label)| label.as_str().is_some_and(has))
                .and_then(|(id, _)| id.parse().ok())
        };
        let class = |prompt: &&str| {
            let id = prompt.parse().ok().filter(|id| (0..NONE).contains(id)).or_else(|| labelled(prompt));
            let help = "give a number below 1000, or a label of the `id2label` of model_index.json";
            id.ok_or_else(|| Error::input("prompt", format!("`{prompt}` is no class"), help))
        };
        let ids = prompts.iter().map(class).collect::<Result<Vec<i64>>>()?;
        let ids: Vec<i64> = ids.into_iter().flat_map(|id| vec![id; options.num_images_per_prompt]).collect();
        let none = if guided { vec![NONE; ids.len()] } else { vec![] };
        let ids = Array1::from_iter(none.into_iter().chain(ids));
        Ok(Values::from([("class_labels".to_owned(), ids.into_dyn().into())]))
    }

    /// The outputs of all text encoders.
    fn texts(&self, prompts: &[&str], options: &TextToImageOptions, guided: bool) -> Result<Values> {
        let Self { class, settings, .. } = self;
        let zeros = options.negative_prompt.is_none()
            && settings.zeros_for_empty_prompt
            && class.conditioning == Conditioning::Sizes;
        let negative = options.negative_prompt.as_deref().unwrap_or_default();
        let negatives = if guided && !zeros { vec![negative; prompts.len()] } else { vec![] };
        let mut texts: Vec<String> =
            negatives.into_iter().chain(prompts.iter().copied()).map(str::to_owned).collect();
        let masked = class.conditioning == Conditioning::Masked;
        if masked {
            texts.iter_mut().for_each(|text| *text = text.to_lowercase().trim().to_owned());
        }
        let mut joined = Values::new();
        for input in &self.texts {
            let [ids, mask] = input.ids(&texts, options)?;
            let mut inputs = Values::from([("input_ids".to_owned(), Value::from(ids.into_dyn()))]);
            if input.chat.is_some() {
                inputs.insert("attention_mask".to_owned(), mask.clone().into_dyn().into());
                joined.insert("cap_mask".to_owned(), mask.into_dyn().into());
            } else if masked {
                inputs.insert("attention_mask".to_owned(), mask.clone().into_dyn().into());
                joined.insert("encoder_attention_mask".to_owned(), mask.into_dyn().into());
            }
            for (name, value) in self.model.run_graph(input.encoder.kind, inputs)? {
                let Value::F32(value) = value else { continue };
                let value = match joined.remove(&name) {
                    Some(Value::F32(before)) if input.encoder.length.is_some() => behind(&before, &value)?,
                    Some(Value::F32(before)) => beside(&before, &value)?,
                    _ => value,
                };
                joined.insert(name, value.into());
            }
        }
        let without = class
            .text_encoders
            .iter()
            .find(|encoder| encoder.optional)
            .filter(|_| self.texts.len() < class.text_encoders.len());
        if let (Some(encoder), Some(Value::F32(states))) = (without, joined.get_mut("encoder_hidden_states"))
        {
            let tokens = options.max_sequence_length.or(encoder.length).unwrap_or_default();
            let none = ArrayD::zeros(vec![texts.len(), tokens, settings.text_width]);
            *states = behind(states, &none)?;
        }
        // Images of a prompt stand one after the other.
        let rows: Vec<usize> =
            (0..texts.len()).flat_map(|row| vec![row; options.num_images_per_prompt]).collect();
        for value in joined.values_mut() {
            match value {
                Value::F32(array) => {
                    let mut all = array.select(Axis(0), &rows);
                    if guided && zeros {
                        let none = ArrayD::zeros(all.raw_dim());
                        all = concatenate(Axis(0), &[none.view(), all.view()]).map_err(|e| misshapen(&e))?;
                    }
                    *array = all;
                }
                Value::I64(array) => *array = array.select(Axis(0), &rows),
                _ => {}
            }
        }
        Ok(joined)
    }
}

/// Rows that are all the same.
fn same_rows(rows: usize, row: &[f32]) -> Value {
    Array2::from_shape_fn((rows, row.len()), |(_, column)| row[column]).into_dyn().into()
}

/// Two text encoders' outputs, side by side.
fn beside(first: &ArrayD<f32>, second: &ArrayD<f32>) -> Result<ArrayD<f32>> {
    let last = Axis(first.ndim().saturating_sub(1));
    concatenate(last, &[first.view(), second.view()]).map_err(|error| misshapen(&error))
}

/// The tokens of one text encoder behind those of another, `[rows, tokens, width]`, which zeros make as wide.
fn behind(first: &ArrayD<f32>, second: &ArrayD<f32>) -> Result<ArrayD<f32>> {
    let mut filled = ArrayD::zeros(first.raw_dim());
    if let (&[rows, tokens, width], &[_, _, wide]) = (first.shape(), second.shape())
        && width <= wide
    {
        filled = ArrayD::zeros(vec![rows, tokens, wide]);
        filled
            .slice_each_axis_mut(|axis| Slice::from(..if axis.axis.0 == 2 { width } else { axis.len }))
            .assign(first);
    }
    concatenate(Axis(1), &[filled.view(), second.view()]).map_err(|error| misshapen(&error))
}
