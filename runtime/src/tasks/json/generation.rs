//! Generated texts: inputs, parameters and answers in the reference's shapes.

use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use super::JsonPipeline;
use super::parameters::Parameters;
use super::shapes::{texts, to_json};
use crate::any_model::{AnyModel, DynModel};
use crate::tasks::{
    GenerationOptions, OnText, Summarization, Text2TextGeneration, TextGeneration, Translation,
};
use crate::text::chat::{ChatOptions, Message};
use crate::{Error, Result};

/// What all of them take.
pub(super) fn options(parameters: &Parameters<'_>) -> Result<GenerationOptions> {
    let mut generation = parameters.generation()?;
    if let Some(stop) = parameters.get::<Json>("stop_sequence")? {
        generation.stop_strings = Some(texts(&stop)?.into_iter().map(str::to_owned).collect());
    }
    let max_length = generation.max_length;
    Ok(GenerationOptions {
        generation,
        seed: parameters.get("seed")?,
        truncation: parameters.tokenizer()?.truncation && parameters.given("truncation"),
        max_length,
        add_special_tokens: parameters.get("add_special_tokens")?.unwrap_or(true),
        skip_special_tokens: parameters.get("skip_special_tokens")?.unwrap_or(true),
        clean_up_tokenization_spaces: parameters.get("clean_up_tokenization_spaces")?,
        batch_size: parameters.get("batch_size")?.unwrap_or(1),
        allow_empty: parameters.get("allow_empty")?.unwrap_or(true),
    })
}

impl<A: AnyModel> JsonPipeline for TextGeneration<A> {
    fn set_assistant(&mut self, assistant: DynModel) -> Result<()> {
        Self::set_assistant(self, assistant)
    }

    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let options = options(&parameters)?;
        let full = parameters.get("return_full_text")?.unwrap_or(true);
        let tools = parameters.get("tools")?;
        let documents = parameters.get("documents")?;
        let open: Option<bool> = parameters.get("continue_final_message")?;
        let variables: Map<String, Json> = parameters.get("tokenizer_encode_kwargs")?.unwrap_or_default();
        parameters.finish()?;
        if let Some(chats) = chats(inputs)? {
            let template = |messages: &Vec<Message>| {
                let mut chat = ChatOptions::answering(messages);
                if let Some(open) = open {
                    (chat.continue_final_message, chat.add_generation_prompt) = (open, !open);
                }
                ChatOptions {
                    tools: Clone::clone(&tools),
                    documents: Clone::clone(&documents),
                    variables: variables.clone(),
                    ..chat
                }
            };
            let templates: Vec<ChatOptions> = chats.iter().map(template).collect();
            let given: Vec<&[Message]> = chats.iter().map(Vec::as_slice).collect();
            let all = self.chats_with(&given, &templates, &options)?;
            let all = all.into_iter().map(|answers| {
                answers
                    .into_iter()
                    .map(|answer| if full { to_json(&answer) } else { Ok(only(&answer.reply)) })
                    .collect()
            });
            return Ok(one_of(all.collect::<Result<_>>()?, inputs[0].is_array()));
        }
        let all = self.run_with(&texts(inputs)?, &options)?.into_iter().map(|answers| {
            answers
                .into_iter()
                .map(|text| if full { to_json(&text) } else { Ok(only(text.new_text())) })
                .collect()
        });
        Ok(one_of(all.collect::<Result<_>>()?, inputs.is_array()))
    }

    fn run_streaming(&self, inputs: &Json, parameters: &Json, on_text: &mut OnText<'_>) -> Result<Json> {
        let plain = SHAPING.iter().all(|name| parameters.get(name).is_none());
        match (chats(inputs)?.as_deref(), inputs) {
            (Some([chat]), _) if plain => {
                let options = all_options(parameters)?;
                to_json(&[self.stream_chat(chat, &options, on_text)?])
            }
            (None, Json::String(text)) if plain => {
                let options = all_options(parameters)?;
                to_json(&[self.stream(text, &options, on_text)?])
            }
            _ => self.run_json(inputs, parameters),
        }
    }
}

/// Parameters that shape the prompt or the answer, or ask for several answers.
const SHAPING: [&str; 6] = [
    "num_return_sequences",
    "return_full_text",
    "tools",
    "documents",
    "continue_final_message",
    "tokenizer_encode_kwargs",
];

fn all_options(parameters: &Json) -> Result<GenerationOptions> {
    let parameters = Parameters::new(parameters)?;
    let options = options(&parameters)?;
    parameters.finish()?;
    Ok(options)
}

fn only(text: &str) -> Json {
    json!({ "generated_text": text })
}

/// A list of lists for a list of prompts, the only list for one.
fn one_of(mut all: Vec<Vec<Json>>, list: bool) -> Json {
    if list { json!(all) } else { json!(all.pop().unwrap_or_default()) }
}

/// The chats, where inputs are a chat or a list of them.
pub(super) fn chats(inputs: &Json) -> Result<Option<Vec<Vec<Message>>>> {
    let chat = |json: &Json| {
        serde_json::from_value(json.clone()).map_err(|e| {
            let help = "give a list of messages, such as [{\"role\": \"user\", \"content\": \"…\"}], or a list of those";
            Error::input("inputs", format!("not a chat: {e}"), help)
        })
    };
    let Json::Array(list) = inputs else { return Ok(None) };
    match list.first() {
        Some(Json::Object(_)) => Ok(Some(vec![chat(inputs)?])),
        Some(Json::Array(_)) => list.iter().map(chat).collect::<Result<_>>().map(Some),
        _ => Ok(None),
    }
}

macro_rules! text_to_text {
    ($name:ident) => {
        impl<A: AnyModel> JsonPipeline for $name<A> {
            fn set_assistant(&mut self, assistant: DynModel) -> Result<()> {
                Self::set_assistant(self, assistant)
            }

            fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
                let parameters = Parameters::new(parameters)?;
                let options = options(&parameters)?;
                parameters.finish()?;
                flat(inputs, self.run_with(&texts(inputs)?, &options)?)
            }
        }
    };
}

text_to_text!(Text2TextGeneration);
text_to_text!(Summarization);

impl<A: AnyModel> JsonPipeline for Translation<A> {
    fn set_assistant(&mut self, assistant: DynModel) -> Result<()> {
        Self::set_assistant(self, assistant)
    }

    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let options = options(&parameters)?;
        let languages = (parameters.get::<String>("src_lang")?, parameters.get::<String>("tgt_lang")?);
        parameters.finish()?;
        let languages = match languages {
            (Some(from), Some(to)) => Some((from, to)),
            _ => None,
        };
        flat(inputs, self.between(languages.as_ref(), &texts(inputs)?, &options)?)
    }
}

/// A list for one text; for several, what each got: alone where it is one.
fn flat<T: Serialize>(inputs: &Json, mut all: Vec<Vec<T>>) -> Result<Json> {
    if !inputs.is_array() {
        return to_json(&all.pop().unwrap_or_default());
    }
    if all.iter().all(|answers| answers.len() == 1) {
        let alone: Vec<T> = all.into_iter().flatten().collect();
        return to_json(&alone);
    }
    to_json(&all)
}
