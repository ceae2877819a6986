//! Leaving the last message open, so that the model goes on with it.

use serde_json::Value as Json;

use crate::{Error, Result};

/// Stands where the text is to be cut; its last space shows whether the template strips texts.
const MARK: &str = "CONTINUE_FINAL_MESSAGE_TAG ";

/// Marks the end of the last message's text, and gives that text.
pub(super) fn mark(messages: &mut [Json], template: &str) -> Result<String> {
    let refused = |problem: &str| {
        let help = "give a last message with a text, or begin an answer with `add_generation_prompt`";
        Error::input("continue_final_message", problem, help)
    };
    if !template.contains("content") {
        return Err(refused("the template does not read the content of messages"));
    }
    let content = messages.last_mut().and_then(|last| last.get_mut("content"));
    let text = match content {
        Some(Json::Array(parts)) => parts.iter_mut().rev().find_map(|part| part.get_mut("text")),
        other => other,
    };
    match text {
        Some(Json::String(text)) => {
            let last = text.clone();
            text.push_str(MARK);
            Ok(last)
        }
        _ => Err(refused("the last message has no text")),
    }
}

/// Cuts a rendered chat where its last message ends.
pub(super) fn cut(text: &str, last: &str) -> Result<String> {
    match text.rfind(MARK.trim_end()) {
        Some(at) if text.contains(last.trim()) => {
            let cut = &text[..at];
            Ok(if text[at..].starts_with(MARK) { cut } else { cut.trim_end() }.to_owned())
        }
        _ => Err(Error::input(
            "continue_final_message",
            "the template leaves out parts of the last message",
            "it cannot be continued with this template: begin an answer with `add_generation_prompt`",
        )),
    }
}
