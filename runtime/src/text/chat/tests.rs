//! Against the goldens in `tests/goldens/chat`, rendered by the reference.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
struct Golden {
    now: u64,
    calls: Vec<Call>,
}

#[derive(Deserialize)]
struct Call {
    messages: Vec<Message>,
    #[serde(default)]
    tools: Option<Vec<Json>>,
    #[serde(default)]
    template: Option<String>,
    #[serde(default)]
    variables: Map<String, Json>,
    #[serde(default)]
    add_generation_prompt: bool,
    #[serde(default)]
    continue_final_message: bool,
    text: Option<String>,
}

/// Renders every chat of a folder; gives how many there were, and how many the template refused.
fn check(name: &str) -> (usize, usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/goldens/chat").join(name);
    let checkpoint = Checkpoint::open(folder.to_str().unwrap()).unwrap();
    let tokenizer = Tokenizer::from_checkpoint(&checkpoint).unwrap();
    let template = ChatTemplate::from_checkpoint(&checkpoint, &tokenizer).unwrap().unwrap();
    let golden: Golden = serde_json::from_slice(&std::fs::read(folder.join("chats.json")).unwrap()).unwrap();
    let mut refused = 0;
    for (index, call) in golden.calls.iter().enumerate() {
        let options = ChatOptions {
            template: call.template.clone(),
            tools: call.tools.clone(),
            documents: None,
            add_generation_prompt: call.add_generation_prompt,
            continue_final_message: call.continue_final_message,
            variables: call.variables.clone(),
            now: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(golden.now)),
        };
        match (template.render(&call.messages, &options), &call.text) {
            (Ok(text), Some(want)) => assert_eq!(text, *want, "{name} {index}"),
            (Err(error), None) => {
                refused += 1;
                assert!(error.to_string().contains("template"), "{error}");
            }
            (Ok(text), None) => panic!("{name} {index}: the reference refuses what gave {text}"),
            (Err(error), Some(_)) => panic!("{name} {index}: {error}"),
        }
    }
    (golden.calls.len(), refused)
}

#[test]
fn headers_with_tools_and_dates() {
    assert_eq!(check("headers"), (14, 2));
}

#[test]
fn chatml_with_tools_and_reasoning() {
    assert_eq!(check("chatml"), (16, 0));
}

#[test]
fn instructions_that_alternate() {
    assert_eq!(check("instructions"), (12, 3));
}

#[test]
fn contents_of_several_parts() {
    assert_eq!(check("parts"), (13, 2));
}

#[test]
fn values_as_python_writes_them() {
    assert_eq!(check("values"), (2, 0));
}

#[test]
fn several_templates_in_files_or_listed() {
    assert_eq!(check("several"), (4, 0));
    assert_eq!(check("listed"), (4, 0));
}

#[test]
fn wrong_templates_and_options_are_named() {
    let text = ChatTemplate::from_source("{% if %}").unwrap_err().to_string();
    assert!(text.contains("not Jinja") && text.contains("default"), "{text}");
    let template = ChatTemplate::from_source("{{ raise_exception('no ' ~ messages[0].role) }}").unwrap();
    let messages = [Message::user("Hello")];
    let text = template.render(&messages, &ChatOptions::default()).unwrap_err().to_string();
    assert!(text.contains("refuses them") && text.contains("no user"), "{text}");
    let named = ChatOptions { template: Some("rag".into()), ..ChatOptions::default() };
    let text = template.render(&messages, &named).unwrap_err().to_string();
    assert!(text.contains("no template `rag`") && text.contains("default"), "{text}");
    let both =
        ChatOptions { add_generation_prompt: true, continue_final_message: true, ..ChatOptions::default() };
    assert!(template.render(&messages, &both).is_err());
    assert!(template.render(&[], &ChatOptions::default()).is_err());
}

#[test]
fn an_answer_is_begun_or_gone_on_with() {
    let options = ChatOptions::answering(&[Message::user("a")]);
    assert!(options.add_generation_prompt && !options.continue_final_message);
    let options = ChatOptions::answering(&[Message::user("a"), Message::assistant("b")]);
    assert!(!options.add_generation_prompt && options.continue_final_message);
}
