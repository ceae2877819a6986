//! A text with what stands for its images as the tokens of a prompt: where images stand, and what else becomes of the text.
//!
//! Reference: `PaliGemmaProcessor`, `Blip2Processor`, `InstructBlipProcessor`, `Kosmos2Processor`, `ChameleonProcessor`,
//! `Idefics2Processor`, `Florence2Processor`, `FuyuProcessor`, `MllamaProcessor`, `IdeficsProcessor`, `Emu3Processor`.

use ndarray::Array2;

use super::image_states;
use super::prompts::task_prompt;
use crate::{Error, Result, Values};

/// Where images stand in a prompt, and what else becomes of the text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Form {
    /// Images stand in the places of their tokens.
    InPlace,
    /// The same, and what follows the last image is a prompt between the token that begins texts and the end of a line
    /// (`PaliGemmaProcessor`).
    Prefix(String),
    /// The same, and neighbours share the token around them, behind which a word stands apart (`Idefics2Processor`).
    Shared(String),
    /// The same, and a token ends the prompt (`ChameleonProcessor`).
    Ended(String),
    /// The same behind the token that begins texts, where special tokens are added (`Emu3Processor`).
    Headed(String),
    /// The same without special tokens, which texts have themselves (`HunYuanVLProcessor`).
    Verbatim,
    /// The same, and the token that begins texts stands before the text, behind images that begin it; layers attend to images
    /// (`MllamaProcessor`).
    Begun { begin: String, image: i64 },
    /// The same between tokens that neighbours share, without spaces around texts; one image alone stands before its text; layers
    /// attend to images (`IdeficsProcessor`).
    Interleaved { begin: String, token: String, around: String, image: i64, end: i64 },
    /// One image before the text and the tokens that begin it (`Blip2Processor`).
    Before,
    /// One image before the text, in as many places as it has features, whose tokens count on from `first`
    /// (`Kosmos2Processor`).
    Marked { begin: String, end: String, first: i64, count: usize },
    /// One image before a text that may name a task, between the tokens that begin and end texts (`Florence2Processor`).
    Task { begin: String, end: String },
    /// One image, encoded for itself without what its first token is, before a text that the model answers
    /// (`FuyuProcessor`).
    Answered { begin: String, answer: String },
}

/// The texts that the tokens of a prompt are made of.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::tasks) struct Prompt {
    /// What is encoded for itself, without special tokens.
    pub(super) before: String,
    /// How many of its first tokens are left out.
    pub(super) skip: usize,
    /// What is encoded after it.
    pub(super) text: String,
    /// What stands before that where special tokens are added.
    pub(super) head: String,
    /// Whether special tokens are added to that.
    pub(super) special: bool,
}

impl Form {
    /// Whether a token of the text stands for each image.
    pub(super) fn has_places(&self) -> bool {
        match self {
            Self::InPlace | Self::Prefix(_) | Self::Shared(_) | Self::Ended(_) => true,
            Self::Headed(_) | Self::Verbatim | Self::Begun { .. } | Self::Interleaved { .. } => true,
            Self::Before | Self::Marked { .. } | Self::Task { .. } | Self::Answered { .. } => false,
        }
    }

    /// Whether the model reads states of images where there are none, too.
    pub(super) fn always_has_images(&self) -> bool {
        matches!(self, Self::Interleaved { .. })
    }

    /// A text, and what stands for each of its images, which is in its places already where there are such.
    pub(super) fn prompt(&self, text: String, images: &[String]) -> Result<Prompt> {
        let apart = Prompt::default();
        let image = images.first().map(String::as_str).unwrap_or_default();
        if !self.has_places() && images.len() != 1 {
            let problem = format!("are {} for a text", images.len());
            return Err(Error::input("images", problem, "give one image with each text"));
        }
        Ok(match self {
            Self::InPlace => Prompt { text, special: true, ..apart },
            Self::Prefix(_) => Prompt { text, special: images.is_empty(), ..apart },
            Self::Shared(boundary) => Prompt { text: shared(&text, boundary), special: true, ..apart },
            Self::Ended(end) => Prompt { text: text + end, special: true, ..apart },
            Self::Headed(begin) => Prompt { text, head: begin.clone(), special: true, ..apart },
            Self::Verbatim => Prompt { text, ..apart },
            Self::Begun { begin, .. } => {
                Prompt { text: image_states::begun(&text, begin, images.first()), special: true, ..apart }
            }
            Self::Interleaved { begin, token, around, .. } => {
                Prompt { text: image_states::interleaved(&text, begin, token, around), ..apart }
            }
            Self::Before => Prompt { before: image.to_owned(), text, special: true, ..apart },
            Self::Marked { begin, .. } => Prompt { text: format!("{begin}{image} {}", text.trim()), ..apart },
            Self::Task { begin, end } => {
                Prompt { text: format!("{image}{begin}{}{end}", task_prompt(&text)?), ..apart }
            }
            Self::Answered { begin, answer } => {
                Prompt { before: format!("{image}{begin}"), skip: 1, text: text + answer, ..apart }
            }
        })
    }

    /// Tokens of a prompt as the model takes them, and what says where its image stands.
    pub(super) fn mark(&self, ids: &mut [i64], processed: &mut Values) {
        let (first, count) = match self {
            Self::Marked { first, count, .. } => (first, count),
            Self::Begun { image, .. } => return image_states::mark_following(ids, *image, processed),
            Self::Interleaved { image, end, .. } => {
                return image_states::mark_last(ids, *image, *end, processed);
            }
            _ => return,
        };
        // Behind the token that begins texts and the one that begins the image.
        let places = 2..(2 + count).min(ids.len());
        let mut mask = Array2::<i64>::zeros((1, ids.len()));
        for (index, place) in places.enumerate() {
            ids[place] = first + index as i64;
            mask[(0, place)] = 1;
        }
        processed.insert("image_embeds_position_mask".to_owned(), mask.into_dyn().into());
    }

    /// What is shown of a decoded prompt or text.
    pub(super) fn shown<'a>(&self, decoded: &'a str) -> &'a str {
        match self {
            Self::Marked { end, .. } => decoded.rsplit(end.as_str()).next().unwrap_or_default(),
            _ => decoded,
        }
    }

    /// Whether what is decoded begins behind the prompt.
    pub(super) fn decodes_answers_alone(&self) -> bool {
        matches!(self, Self::Answered { .. })
    }
}

/// A text in which no two tokens around images stand side by side, and in which a word stands apart from the one before it.
fn shared(text: &str, boundary: &str) -> String {
    let text = text.replace(&boundary.repeat(2), boundary);
    let mut parts = text.split(boundary);
    let mut joined = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        joined.push_str(boundary);
        if part.chars().next().is_some_and(|letter| !letter.is_whitespace() && letter != '<') {
            joined.push(' ');
        }
        joined.push_str(part);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(form: &Form, text: &str, images: &[&str]) -> Prompt {
        let images: Vec<String> = images.iter().map(|image| (*image).to_owned()).collect();
        form.prompt(text.to_owned(), &images).unwrap()
    }

    #[test]
    fn neighbours_share_what_stands_around_them() {
        let form = Form::Shared("|".to_owned());
        assert_eq!(given(&form, "a|<i>||<i>|b|<i>| c<|", &["", "", ""]).text, "a|<i>|<i>| b|<i>| c<|");
    }

    #[test]
    fn an_image_without_a_place_stands_before_the_text() {
        let prompt = given(&Form::Before, "what?", &["xx"]);
        assert_eq!((prompt.before.as_str(), prompt.text.as_str(), prompt.special), ("xx", "what?", true));
        let error = Form::Before.prompt("what?".to_owned(), &[]).unwrap_err().to_string();
        assert!(error.contains("images: are 0 for a text"), "{error}");
        let form = Form::Answered { begin: "<s>".to_owned(), answer: "!".to_owned() };
        let prompt = given(&form, "what?", &["xx"]);
        assert_eq!((prompt.before.as_str(), prompt.text.as_str(), prompt.skip), ("xx<s>", "what?!", 1));
    }

    #[test]
    fn a_token_begins_texts_where_special_tokens_are_added() {
        let prompt = given(&Form::Headed("<s>".to_owned()), "a<i>", &["<i>"]);
        assert_eq!((prompt.head.as_str(), prompt.text.as_str(), prompt.special), ("<s>", "a<i>", true));
    }

    #[test]
    fn places_of_an_image_are_counted_and_marked() {
        let (begin, end) = ("<s>".to_owned(), "</i>".to_owned());
        let form = Form::Marked { begin, end, first: 4, count: 2 };
        let (mut ids, mut values) = (vec![0, 9, 9, 9, 8, 5], Values::new());
        form.mark(&mut ids, &mut values);
        assert_eq!(ids, [0, 9, 4, 5, 8, 5]);
        let mask = ndarray::array![[0_i64, 0, 1, 1, 0, 0]].into_dyn();
        assert_eq!(values["image_embeds_position_mask"], mask.into());
        assert_eq!(form.shown("a</i> b"), " b");
    }
}
