//! Texts about images: `{"images": …, "text": …}`, or chats whose messages name images.

use serde_json::{Value as Json, json};

use super::JsonPipeline;
use super::generation::{chats, options};
use super::images::images;
use super::parameters::Parameters;
use super::shapes::{start_of, to_json};
use crate::any_model::{AnyModel, DynModel};
use crate::image::Image;
use crate::tasks::ImageTextToText;
use crate::text::chat::{ChatOptions, Message};
use crate::{Error, Result};

impl<A: AnyModel> JsonPipeline for ImageTextToText<A> {
    fn set_assistant(&mut self, assistant: DynModel) -> Result<()> {
        Self::set_assistant(self, assistant)
    }

    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let mut options = options(&parameters)?;
        let inner = parameters.inner("generate_kwargs")?;
        options.generation = options.generation.or(inner.generation()?);
        inner.finish()?;
        let full = parameters.get("return_full_text")?.unwrap_or(true);
        let open: Option<bool> = parameters.get("continue_final_message")?;
        let (tools, documents) = (parameters.get("tools")?, parameters.get("documents")?);
        let answer =
            |input: &Json, generated: Json| json!({ "input_text": input, "generated_text": generated });
        let message = if inputs[0].is_array() { &inputs[0][0] } else { &inputs[0] };
        let chats = if message["role"].is_string() { chats(inputs)? } else { None };
        if let Some(chats) = chats {
            // As the reference's pipeline, what else is given goes to the template, but only what it reads.
            let template = self.chat_template();
            let variables =
                parameters.others(|name| template.is_some_and(|template| template.mentions(name)))?;
            let mut all = Vec::with_capacity(chats.len());
            for messages in &chats {
                let mut chat = ChatOptions {
                    tools: Clone::clone(&tools),
                    documents: Clone::clone(&documents),
                    variables: variables.clone(),
                    ..ChatOptions::answering(messages)
                };
                if let Some(open) = open {
                    (chat.continue_final_message, chat.add_generation_prompt) = (open, !open);
                }
                let input = to_json(messages)?;
                for answered in self.chat_with(&pictured(messages)?, messages, &chat, &options)? {
                    let generated =
                        if full { to_json(&answered.generated_text)? } else { answered.reply.into() };
                    all.push(answer(&input, generated));
                }
            }
            return Ok(Json::Array(all));
        }
        parameters.finish()?;
        let one = |input: &Json| -> Result<Vec<Json>> {
            let (given, text) = asked(input)?;
            let generated = self.run_with(&given, text, &options)?;
            let shown = |text: &crate::tasks::GeneratedText| {
                if full { text.generated_text.clone() } else { text.new_text().to_owned() }
            };
            Ok(generated.iter().map(|generated| answer(&text.into(), shown(generated).into())).collect())
        };
        match inputs {
            Json::Array(list) => list.iter().map(|input| Ok(json!(one(input)?))).collect(),
            input => Ok(json!(one(input)?)),
        }
    }
}

/// The images and the text of one input.
fn asked(input: &Json) -> Result<(Vec<Image>, &str)> {
    if let Some(text) = input.as_str() {
        return Ok((vec![], text));
    }
    let given = input.get("images").or(input.get("image"));
    match (given, input["text"].as_str()) {
        (Some(given), Some(text)) => Ok((images(given)?, text)),
        (None, Some(text)) => Ok((vec![], text)),
        _ => Err(Error::input(
            "inputs",
            format!("{} is no text with images", start_of(input)),
            "give {\"images\": \"path\", \"text\": \"…\"}, a chat, or a list of those",
        )),
    }
}

/// The images that messages name, in their order.
pub(super) fn pictured(messages: &[Message]) -> Result<Vec<Image>> {
    named(messages, "image")?.into_iter().map(Image::open).collect()
}

/// The files of one kind, images or videos, that messages name, in their order.
pub(super) fn named<'a>(messages: &'a [Message], kind: &str) -> Result<Vec<&'a str>> {
    let parts = messages.iter().filter_map(|message| message.content.as_array()).flatten();
    let place = |part: &'a Json| {
        let place = ["path", "url", kind].iter().find_map(|name| part[*name].as_str());
        place.ok_or_else(|| {
            let help = format!("name a file: {{\"type\": \"{kind}\", \"path\": \"a file\"}}");
            Error::input("inputs", format!("{} names no {kind}", start_of(part)), help)
        })
    };
    parts.filter(|part| part["type"] == kind).map(place).collect()
}
