//! One message of a chat.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

/// The names that a message's reasoning is passed under; templates read the first, some the second.
const REASONING: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];

/// One message of a chat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks: `system`, `user`, `assistant`, `tool`.
    pub role: String,
    /// What: a text, or a list of parts such as `{"type": "text", "text": "…"}`; null for none.
    #[serde(default, skip_serializing_if = "Json::is_null")]
    pub content: Json,
    /// What else templates read: `tool_calls`, `name`, `reasoning_content`.
    #[serde(flatten)]
    pub other: Map<String, Json>,
}

impl Message {
    /// A message of any role.
    pub fn new(role: &str, content: impl Into<Json>) -> Self {
        Self { role: role.to_owned(), content: content.into(), other: Map::new() }
    }

    /// What the model is to be.
    pub fn system(content: &str) -> Self {
        Self::new("system", content)
    }

    /// What the user says.
    pub fn user(content: &str) -> Self {
        Self::new("user", content)
    }

    /// What the model said.
    pub fn assistant(content: &str) -> Self {
        Self::new("assistant", content)
    }

    /// As templates see it: without what is null, and with its reasoning under every name.
    pub(super) fn json(&self) -> Json {
        let mut all = Map::new();
        let reasoning =
            REASONING.iter().find_map(|name| self.other.get(*name).filter(|value| !value.is_null()));
        all.insert("role".to_owned(), self.role.clone().into());
        all.insert("content".to_owned(), self.content.clone());
        all.extend(self.other.clone());
        all.retain(|_, value| !value.is_null());
        if let Some(reasoning) = reasoning {
            all.entry("thinking").or_insert_with(|| reasoning.clone());
            all.insert(REASONING[0].to_owned(), reasoning.clone());
        }
        Json::Object(all)
    }

    /// The content where it is a text.
    pub fn text(&self) -> Option<&str> {
        self.content.as_str()
    }
}
