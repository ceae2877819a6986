//! Prompts on their way to a text encoder: what stands around them, their tokens, and which of their hidden states are kept.

use std::borrow::Cow;

use ndarray::{Array2, ArrayD, Axis, stack};
use serde_json::json;

use super::pipelines::has;
use super::prompt_weights;
use super::text_encoders::{Chat, Kept, Mask, Padding, TextEncoder};
use super::{TextToImageOptions, misshapen};
use crate::hub::Checkpoint;
use crate::text::chat::{ChatOptions, ChatTemplate, Message};
use crate::text::{EncodeOptions, Encoding, Side, Text, Tokenizer};
use crate::{Error, Result};

/// The tokenizer of a text encoder, and how many tokens it makes of a text.
#[derive(Debug)]
pub(super) struct TextInput {
    pub encoder: TextEncoder,
    tokenizer: Tokenizer,
    chat: Option<ChatTemplate>,
    length: usize,
}

/// A text, and whether it says what images are to be unlike.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prompt<'a> {
    pub text: &'a str,
    pub negative: bool,
    /// The weight of each character; all 1 where empty.
    pub weights: &'a [f32],
}

/// The tokens of prompts, `[prompts, tokens]`, and the mask of those that are not padding.
#[derive(Debug)]
pub(super) struct Tokens {
    pub ids: Array2<i64>,
    pub mask: Array2<i64>,
    /// The weights of tokens, where any is not 1.
    pub weights: Option<Array2<f32>>,
    /// The tokens of each prompt whose hidden states are kept; all where not given.
    kept: Option<Vec<Vec<usize>>>,
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
        let chat = match encoder.chat.is_some() {
            true => Some(ChatTemplate::from_checkpoint(&folder, &tokenizer)?.ok_or_else(|| {
                let help = "add the published `chat_template` to tokenizer_config.json";
                Error::tokenizer(tokenizer.file(), "has no chat template", help)
            })?),
            false => None,
        };
        let text = if own["text_config"].is_object() { &own["text_config"] } else { own };
        let positions = text["max_position_embeddings"].as_u64().map_or(77, |most| most as usize);
        let tokens = tokenizer.settings().model_max_length.unwrap_or(positions).min(positions);
        Ok(Some(Self { encoder, tokenizer, chat, length: encoder.length.unwrap_or(tokens) }))
    }

    /// How many tokens are asked for of a text encoder other than CLIP.
    pub(super) fn tokens(&self, options: &TextToImageOptions) -> Option<usize> {
        self.encoder.length.map(|length| options.max_sequence_length.unwrap_or(length))
    }

    /// A prompt as the text encoder takes it: where it is one of chats, a user's message before an answer.
    fn rendered<'a>(&self, prompt: Prompt<'a>) -> Result<Cow<'a, str>> {
        let mut text = Cow::Borrowed(prompt.text);
        if self.encoder.lowercase {
            text = Cow::Owned(text.to_lowercase().trim().to_owned());
        }
        let [before, behind] = self.encoder.around;
        if !(before.is_empty() && behind.is_empty()) && (!prompt.negative || self.encoder.around_negatives) {
            text = Cow::Owned([before, &text, behind].concat());
        }
        let (Some(template), Some(chat)) = (&self.chat, self.encoder.chat) else { return Ok(text) };
        let rendered = match chat {
            Chat::Answered { thinking } => {
                let options = ChatOptions {
                    add_generation_prompt: true,
                    variables: [("enable_thinking".to_owned(), thinking.into())].into_iter().collect(),
                    ..ChatOptions::default()
                };
                template.render(&[Message::user(&text)], &options)?
            }
            Chat::Instructed(system) => {
                let parts = |text: &str| json!([{"type": "text", "text": text}]);
                // The token of images, of which there are none.
                let user = Message::new("user", parts(&text.replace("[IMG]", "")));
                template.render(&[Message::new("system", parts(system)), user], &ChatOptions::default())?
            }
        };
        Ok(Cow::Owned(rendered))
    }

    /// The tokens of a prompt as the text encoder takes it, at most so many.
    fn encoded(&self, text: &str, most: usize) -> Result<Vec<Encoding>> {
        let options = EncodeOptions {
            // Chats of the system's begin with the token that a tokenizer would add.
            add_special_tokens: !matches!(self.encoder.chat, Some(Chat::Instructed(_))),
            ..EncodeOptions::truncated(Some(most))
        };
        self.tokenizer.encode(&[Text::from(text)], &options)
    }

    /// The tokens of prompts, cut and padded to as many as there must be.
    pub(super) fn tokenize(&self, prompts: &[Prompt<'_>], options: &TextToImageOptions) -> Result<Tokens> {
        let asked = self.tokens(options).unwrap_or(self.length);
        let before = match self.encoder.kept {
            Kept::All => 0,
            Kept::Behind(count) => count,
            Kept::FirstAndLast => {
                let text = [Text::from(self.encoder.around[0])];
                let counted = self.tokenizer.encode(&text, &EncodeOptions::default())?;
                counted.first().map_or(0, |encoding| encoding.ids.len()).saturating_sub(2)
            }
        };
        let length = before + asked;
        let Some((_, pad)) = self.tokenizer.pad_token() else {
            let help = "add the published `pad_token` to tokenizer_config.json";
            return Err(Error::tokenizer(self.tokenizer.file(), "has no padding token", help));
        };
        // Prompts that nothing stands before are cut where they would be alone.
        let alone = |prompt: &Prompt<'_>| prompt.negative && self.encoder.kept == Kept::FirstAndLast;
        let mut rows = vec![];
        let mut weights = vec![];
        for prompt in prompts {
            let text = self.rendered(*prompt)?;
            let most = if alone(prompt) { asked } else { length };
            let encoded = self.encoded(&text, most)?;
            let of_tokens = |row| prompt_weights::of_tokens(row, &text, prompt.weights, most);
            weights.extend(encoded.first().map(of_tokens).unwrap_or_default());
            rows.extend(encoded);
        }
        let longest = rows.iter().map(|encoding| encoding.ids.len()).max().unwrap_or(length);
        let length = if self.encoder.longest { length.min(longest.max(before + 1)) } else { length };
        let own = self.tokenizer.settings().padding_side;
        let (side, more) = match self.encoder.padding {
            Padding::Right => (Side::Right, 0),
            Padding::Tokenizer => (own, 0),
            Padding::Multiple(of) => (own, length.next_multiple_of(of) - length),
        };
        let (within, length) = (length, length + more);
        let mut ids = Array2::from_elem((rows.len(), length), pad);
        let mut mask = Array2::zeros((rows.len(), length));
        for (row, encoding) in rows.iter().enumerate() {
            let filled = within.saturating_sub(encoding.ids.len());
            let start = more + if side == Side::Left { filled } else { 0 };
            for (column, id) in encoding.ids.iter().take(within).enumerate() {
                ids[[row, start + column]] = *id;
                mask[[row, start + column]] = 1;
            }
            // Where each text is of its own length none has no tokens.
            if encoding.ids.is_empty() && matches!(self.encoder.mask, Mask::Lengths(_)) {
                let first =
                    self.tokenizer.settings().bos_token.as_deref().and_then(|token| self.tokenizer.id(token));
                ids[[row, 0]] = first.unwrap_or_default();
                mask[[row, 0]] = 1;
            }
        }
        let kept = match self.encoder.kept {
            Kept::All => None,
            Kept::Behind(count) => Some(vec![(count..length).collect(); rows.len()]),
            Kept::FirstAndLast => {
                let kept = |prompt: &Prompt<'_>| match alone(prompt) {
                    true => (0..asked).collect(),
                    false => std::iter::once(0).chain(before + 1..length).collect(),
                };
                Some(prompts.iter().map(kept).collect())
            }
        };
        // Texts of other lengths, with something before them, have no weights.
        let weights = Array2::from_shape_vec((rows.len(), before + asked), weights).ok();
        let weights = weights.filter(|weights| weights.iter().any(|weight| *weight != 1.0));
        Ok(Tokens { ids, mask, weights, kept })
    }
}

impl Tokens {
    /// What is kept of hidden states `[prompts, tokens, width]`, with zeros for padding where the mask says so.
    pub(super) fn states(&self, mut states: ArrayD<f32>, mask: Mask) -> Result<ArrayD<f32>> {
        if mask == Mask::Zeros && states.ndim() == 3 {
            let mask = self.mask.mapv(|seen| seen as f32).insert_axis(Axis(2));
            states *= &mask;
        }
        match states.ndim() {
            3 => self.kept_of(states),
            _ => Ok(states),
        }
    }

    /// How many tokens of each prompt are no padding: `[prompts]`.
    pub(super) fn lengths(&self) -> ArrayD<i64> {
        self.mask.sum_axis(Axis(1)).into_dyn()
    }

    /// The mask as the denoiser takes it under this name.
    pub(super) fn seen(&self) -> Result<ArrayD<i64>> {
        self.kept_of(self.mask.clone().into_dyn())
    }

    /// 1 for tokens and the first one of padding, and for so many of the image: `[prompts, tokens + image]`.
    pub(super) fn joint(&self, image: usize) -> Array2<f32> {
        let (rows, tokens) = self.mask.dim();
        let lengths: Vec<i64> = self.mask.outer_iter().map(|row| row.sum()).collect();
        Array2::from_shape_fn((rows, tokens + image), |(row, column)| {
            f32::from(column >= tokens || column as i64 <= lengths[row])
        })
    }

    fn kept_of<T: Clone>(&self, array: ArrayD<T>) -> Result<ArrayD<T>> {
        let Some(kept) = &self.kept else { return Ok(array) };
        let rows: Vec<_> =
            array.outer_iter().zip(kept).map(|(row, kept)| row.select(Axis(0), kept)).collect();
        let rows: Vec<_> = rows.iter().map(|row| row.view()).collect();
        stack(Axis(0), &rows).map_err(|error| misshapen(&error))
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array3, array};

    use super::*;

    fn tokens(kept: Option<Vec<Vec<usize>>>) -> Tokens {
        Tokens { ids: Array2::zeros((2, 3)), mask: array![[1, 1, 1], [1, 0, 0]], weights: None, kept }
    }

    #[test]
    fn lengths_are_those_of_tokens_that_are_no_padding() {
        assert_eq!(tokens(None).lengths().into_raw_vec_and_offset().0, [3, 1]);
    }

    #[test]
    fn the_first_token_of_padding_is_seen_before_the_image() {
        let want = array![[1.0, 1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 0.0, 1.0, 1.0]];
        assert_eq!(tokens(None).joint(2), want);
    }

    #[test]
    fn each_prompt_keeps_its_own_tokens() {
        let tokens = tokens(Some(vec![vec![0, 2], vec![0, 1]]));
        let states = Array3::from_shape_fn((2, 3, 1), |(row, token, _)| (10 * row + token) as f32);
        let kept = tokens.states(states.clone().into_dyn(), Mask::Encoder).unwrap();
        assert_eq!(kept.into_raw_vec_and_offset().0, [0.0, 2.0, 10.0, 11.0]);
        assert_eq!(tokens.seen().unwrap().into_raw_vec_and_offset().0, [1, 1, 1, 0]);
        let zeros = tokens.states(states.into_dyn(), Mask::Zeros).unwrap();
        assert_eq!(zeros.into_raw_vec_and_offset().0, [0.0, 2.0, 10.0, 0.0]);
    }
}
