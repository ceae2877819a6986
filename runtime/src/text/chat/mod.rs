//! Chats to text, as a checkpoint's own template says.
//!
//! Reference: `transformers`, `apply_chat_template` and `utils/chat_template_utils.py`. Templates are Jinja; what they
//! expect of Python (methods of texts and dictionaries, how values are written) is provided here.

mod continuation;
#[cfg(feature = "chat")]
mod environment;
#[cfg(feature = "chat")]
mod instructions;
#[cfg(feature = "chat")]
mod limits;
mod load;
#[cfg(feature = "chat")]
mod memory;
mod message;
#[cfg(feature = "chat")]
mod python;
#[cfg_attr(not(feature = "chat"), path = "absent.rs")]
mod rendering;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::SystemTime;

use serde_json::{Map, Value as Json, json};

pub use message::Message;
use rendering::Rendering;

use super::{Settings, Tokenizer};
use crate::hub::Checkpoint;
use crate::{Error, Result};

/// The template that is used where tools are given and the checkpoint has one for them.
const FOR_TOOLS: &str = "tool_use";
const DEFAULT: &str = "default";

/// How a chat becomes a prompt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatOptions {
    /// Which of the checkpoint's templates; by default the one for tools where tools are given, else `default`.
    pub template: Option<String>,
    /// Functions that the model may call, as JSON schemas.
    pub tools: Option<Vec<Json>>,
    /// Texts that the model may look things up in: objects with `title` and `text`.
    pub documents: Option<Vec<Json>>,
    /// Begins an answer of the assistant after the last message.
    pub add_generation_prompt: bool,
    /// Leaves the last message open, to be continued; not together with `add_generation_prompt`.
    pub continue_final_message: bool,
    /// What else the template asks for: `enable_thinking`, `date_string`.
    pub variables: Map<String, Json>,
    /// What templates take for the present; by default it is.
    pub now: Option<SystemTime>,
}

impl ChatOptions {
    /// For an answer to the last message, or for going on with it where the assistant wrote it.
    pub fn answering(messages: &[Message]) -> Self {
        let open = messages.last().is_some_and(|message| message.role == "assistant");
        Self { add_generation_prompt: !open, continue_final_message: open, ..Self::default() }
    }
}

/// A checkpoint's chat templates.
///
/// ```
/// use weft::text::chat::{ChatOptions, ChatTemplate, Message};
///
/// # fn main() -> weft::Result<()> {
/// let source = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}\n{% endfor %}\
///     {% if add_generation_prompt %}<|assistant|>{% endif %}";
/// let template = ChatTemplate::from_source(source)?;
/// let messages = [Message::user("Good morning!")];
/// let prompt = template.render(&messages, &ChatOptions::answering(&messages))?;
/// assert_eq!(prompt, "<|user|>Good morning!\n<|assistant|>");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ChatTemplate {
    rendering: Rendering,
    sources: BTreeMap<String, String>,
    /// `bos_token` and the like.
    tokens: Map<String, Json>,
    file: PathBuf,
}

impl ChatTemplate {
    /// Reads a checkpoint's templates: `chat_template.jinja` and `additional_chat_templates/*.jinja`, or those in
    /// `tokenizer_config.json` or `chat_template.json`; none where it has none.
    ///
    /// Of hub repositories that are not in the cache, files in `additional_chat_templates` are not found.
    ///
    /// # Errors
    /// When a file cannot be read or a template is not Jinja.
    pub fn from_checkpoint(checkpoint: &Checkpoint, tokenizer: &Tokenizer) -> Result<Option<Self>> {
        let Some((sources, file)) = load::sources(checkpoint)? else { return Ok(None) };
        let tokens = special_tokens(tokenizer.settings());
        Self::new(sources, tokens, file).map(Some)
    }

    /// A template of one's own.
    ///
    /// # Errors
    /// When it is not Jinja.
    pub fn from_source(source: &str) -> Result<Self> {
        let sources = BTreeMap::from([(DEFAULT.to_owned(), source.to_owned())]);
        Self::new(sources, Map::new(), PathBuf::from("chat template"))
    }

    fn new(sources: BTreeMap<String, String>, tokens: Map<String, Json>, file: PathBuf) -> Result<Self> {
        let rendering = Rendering::new(&sources, &file)?;
        Ok(Self { rendering, sources, tokens, file })
    }

    /// The names of the templates.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.sources.keys().map(String::as_str)
    }

    /// Whether a template has a word in it, as the name of a variable: `enable_thinking`.
    pub fn mentions(&self, word: &str) -> bool {
        let joins = |c: char| c.is_alphanumeric() || c == '_';
        let whole = |source: &String| {
            source.match_indices(word).any(|(at, _)| {
                !source[..at].ends_with(joins) && !source[at + word.len()..].starts_with(joins)
            })
        };
        !word.is_empty() && self.sources.values().any(whole)
    }

    /// The text of a chat.
    ///
    /// It has its special tokens already: encode it without adding any.
    ///
    /// # Errors
    /// When there are no messages, the template refuses them, or options contradict each other.
    pub fn render(&self, messages: &[Message], options: &ChatOptions) -> Result<String> {
        if messages.is_empty() {
            return Err(Error::input("messages", "there are none", "give at least one message"));
        }
        if options.add_generation_prompt && options.continue_final_message {
            let problem = "contradicts `add_generation_prompt`";
            return Err(Error::input("continue_final_message", problem, "give one of the two"));
        }
        let name = self.choose(options)?;
        let mut messages: Vec<Json> = messages.iter().map(Message::json).collect();
        let open = if options.continue_final_message {
            Some(continuation::mark(&mut messages, &self.sources[name])?)
        } else {
            None
        };
        let mut variables = self.tokens.clone();
        variables.extend(options.variables.clone());
        variables.insert("messages".to_owned(), Json::Array(messages));
        variables.insert("tools".to_owned(), json!(options.tools));
        variables.insert("documents".to_owned(), json!(options.documents));
        variables.insert("add_generation_prompt".to_owned(), options.add_generation_prompt.into());
        let text = self.rendering.apply(name, &variables, options.now, &self.file)?;
        match open {
            None => Ok(text),
            Some(last) => continuation::cut(&text, &last),
        }
    }

    fn choose(&self, options: &ChatOptions) -> Result<&str> {
        let wanted = match &options.template {
            Some(name) => name.as_str(),
            None if options.tools.is_some() && self.sources.contains_key(FOR_TOOLS) => FOR_TOOLS,
            None => DEFAULT,
        };
        self.sources.get_key_value(wanted).map(|(name, _)| name.as_str()).ok_or_else(|| {
            let names: Vec<_> = self.names().collect();
            let problem = format!("the checkpoint has no template `{wanted}`");
            Error::input("template", problem, format!("choose one of {}", names.join(", ")))
        })
    }
}

/// The special tokens by the names that templates know them by.
fn special_tokens(settings: &Settings) -> Map<String, Json> {
    let named = [
        ("bos_token", &settings.bos_token),
        ("eos_token", &settings.eos_token),
        ("unk_token", &settings.unk_token),
        ("sep_token", &settings.sep_token),
        ("pad_token", &settings.pad_token),
        ("cls_token", &settings.cls_token),
        ("mask_token", &settings.mask_token),
    ];
    named.into_iter().filter_map(|(name, token)| Some((name.to_owned(), token.clone()?.into()))).collect()
}

#[cfg(test)]
mod tests;
