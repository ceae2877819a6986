//! `weft chat`: a conversation with a checkpoint that has a chat template, all of it told again with each turn.

use std::io::{self, BufRead, IsTerminal, Write};
use std::ops::ControlFlow;

use serde_json::{Value as Json, json};
use weft::cli::Arguments;
use weft::tasks::JsonPipeline;
use weft::{Result, Task};

use crate::options::LoadOptions;
use crate::terminal::{bad_input, note};

/// Chats with a checkpoint: each line of standard input is a turn, and the history goes along.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "In the chat: /clear forgets what was said, /undo the last turn, /exit or end of input ends it."
)]
pub struct Args {
    /// A folder, an id of the Hugging Face hub, or a GGUF file.
    checkpoint: String,
    #[command(flatten)]
    load: LoadOptions,
    /// The checkpoint of a smaller model of the same tokens that drafts (speculative decoding); the answers stay the same.
    #[arg(long, value_name = "CHECKPOINT")]
    assistant: Option<String>,
    /// What the checkpoint is told before the conversation.
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// The most tokens of an answer.
    #[arg(long, value_name = "N", default_value_t = 512)]
    max_new_tokens: usize,
    /// A parameter of generation, over what generation_config.json says: `--set temperature=0.7`, `--set do_sample=false`.
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Print each answer as a line of JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the verb; whether every turn was answered.
pub fn run(args: &Args) -> Result<bool> {
    let loader = args.load.open(&args.checkpoint)?;
    let task = loader.task()?;
    if !matches!(task, Task::TextGeneration | Task::ImageTextToText) {
        let problem = format!("is for {task}, and answers no chats");
        let help = "chat with a checkpoint that generates text, or use `weft run`";
        return Err(bad_input("CHECKPOINT", problem, help));
    }
    let mut pipeline = loader.pipeline(task)?;
    if let Some(assistant) = &args.assistant {
        pipeline.set_assistant(args.load.assistant(assistant, task)?)?;
    }
    note(format!("{} for {task}", loader.architecture().name()));
    let mut arguments = Arguments::default();
    arguments.parameters.insert("max_new_tokens".to_owned(), json!(args.max_new_tokens));
    for parameter in &args.set {
        arguments
            .set(parameter)
            .map_err(|problem| bad_input("--set", problem, "write `--set temperature=0.7`"))?;
    }
    let mut chat = Chat::new(pipeline.as_ref(), Json::Object(arguments.parameters), args.system.as_deref());
    let stdin = io::stdin();
    let prompts = stdin.is_terminal();
    chat.talk(&mut stdin.lock(), &mut io::stdout(), prompts, args.json)
}

/// A conversation so far.
struct Chat<'a> {
    pipeline: &'a dyn JsonPipeline,
    parameters: Json,
    messages: Vec<Json>,
    /// How many messages come before the conversation.
    before: usize,
}

impl<'a> Chat<'a> {
    fn new(pipeline: &'a dyn JsonPipeline, parameters: Json, system: Option<&str>) -> Self {
        let messages: Vec<Json> =
            system.iter().map(|text| json!({ "role": "system", "content": text })).collect();
        Self { pipeline, parameters, before: messages.len(), messages }
    }

    /// Answers line by line; whether each was.
    fn talk(
        &mut self,
        input: &mut dyn BufRead,
        out: &mut dyn Write,
        prompts: bool,
        as_json: bool,
    ) -> Result<bool> {
        let mut sound = true;
        let mut line = String::new();
        loop {
            if prompts {
                let _ = write!(out, "> ").and_then(|()| out.flush());
            }
            line.clear();
            let read = input.read_line(&mut line);
            if read.map_err(|e| bad_input("standard input", e.to_string(), "write text in UTF-8"))? == 0 {
                return Ok(sound);
            }
            match line.trim() {
                "" => {}
                "/exit" => return Ok(sound),
                "/clear" => self.messages.truncate(self.before),
                "/undo" => self.messages.truncate(self.messages.len().saturating_sub(2).max(self.before)),
                said => {
                    if let Err(error) = self.turn(said, out, as_json) {
                        sound = false;
                        crate::terminal::error(&error.to_string());
                    }
                }
            }
        }
    }

    /// Answers what the user says; without an answer it was not said.
    fn turn(&mut self, said: &str, out: &mut dyn Write, as_json: bool) -> Result<()> {
        self.messages.push(json!({ "role": "user", "content": said }));
        let mut any = false;
        let mut on_text = |piece: &str| {
            any = true;
            match as_json || write!(out, "{piece}").and_then(|()| out.flush()).is_ok() {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        };
        let given = Json::Array(self.messages.clone());
        let answer = self.pipeline.run_streaming(&given, &self.parameters, &mut on_text).and_then(|answer| {
            reply(&answer).ok_or_else(|| {
                let help = "chat with a checkpoint that generates text and has a chat template";
                bad_input("checkpoint", "does not answer chats", help)
            })
        });
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                self.messages.pop();
                return Err(error);
            }
        };
        let text = answer["content"].as_str().unwrap_or_default().to_owned();
        let _ = match (as_json, any) {
            (true, _) => writeln!(out, "{answer}"),
            (false, true) => writeln!(out),
            (false, false) => writeln!(out, "{text}"),
        };
        self.messages.push(answer);
        Ok(())
    }
}

/// The last message of an answer.
fn reply(answer: &Json) -> Option<Json> {
    let answer = if answer.is_array() { &answer[0] } else { answer };
    answer["generated_text"].as_array()?.last().cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers with how many messages it was given, and with an error to the word `fail`.
    struct Counts;

    impl JsonPipeline for Counts {
        fn run_json(&self, inputs: &Json, _: &Json) -> Result<Json> {
            let mut messages = inputs.as_array().cloned().unwrap_or_default();
            if messages.last().is_some_and(|last| last["content"] == "fail") {
                return Err(bad_input("text", "fails", "say something else"));
            }
            messages.push(json!({ "role": "assistant", "content": messages.len().to_string() }));
            Ok(json!([{ "generated_text": messages }]))
        }
    }

    fn talk(lines: &str, system: Option<&str>, as_json: bool) -> (bool, String) {
        let mut out = vec![];
        let mut chat = Chat::new(&Counts, Json::Null, system);
        let sound = chat.talk(&mut lines.as_bytes(), &mut out, false, as_json).unwrap();
        (sound, String::from_utf8(out).unwrap())
    }

    #[test]
    fn the_history_goes_along_until_it_is_cleared() {
        assert_eq!(
            talk("a\nb\n\n/undo\nc\n/clear\nd\n/exit\ne\n", None, false),
            (true, "1\n3\n3\n1\n".into())
        );
        assert_eq!(
            talk("a\n/clear\nb\n/undo\n/undo\nc", Some("Be brief."), false),
            (true, "2\n2\n2\n".into())
        );
    }

    #[test]
    fn what_was_not_answered_was_not_said() {
        assert_eq!(talk("a\nfail\nb\n", None, false), (false, "1\n3\n".into()));
    }

    #[test]
    fn answers_are_lines_of_json() {
        assert_eq!(talk("a\n", None, true).1, "{\"role\":\"assistant\",\"content\":\"1\"}\n");
    }
}
