//! Templates by name, parsed and filled in by MiniJinja, within limits: they come with checkpoints that anybody may publish.

use std::collections::BTreeMap;
use std::path::Path;
#[cfg(not(target_family = "wasm"))]
use std::thread;
use std::time::SystemTime;

use minijinja::machinery::{Vm, make_string_output};
use minijinja::{AutoEscape, Environment, ErrorKind};
use serde_json::{Map, Value as Json};

use super::instructions::{Code, without_constant_products};
use super::{environment, memory};
use crate::{Error, Result};

/// The longest template, bytes: several times the longest published ones.
const MOST_SOURCE: usize = 128 << 10;

/// The instructions that a template may take, and as many more for each value of a chat; each byte of a text allows one.
/// Published templates take some hundred for a message.
const INSTRUCTIONS: u64 = 1_000_000;
const INSTRUCTIONS_PER_VALUE: u64 = 1_000;

/// Stack for what the limits above let a template nest: calls of the parser, and lists within lists. Memory is taken
/// only for what is used.
#[cfg(not(target_family = "wasm"))]
const STACK: usize = if cfg!(target_pointer_width = "64") { 512 << 20 } else { 64 << 20 };

/// A checkpoint's templates, which can be parsed.
#[derive(Clone, Debug)]
pub(super) struct Rendering {
    environment: Environment<'static>,
    sources: BTreeMap<String, String>,
}

impl Rendering {
    /// Parses templates, which `file` holds.
    pub(super) fn new(sources: &BTreeMap<String, String>, file: &Path) -> Result<Self> {
        let refused = |name: &str, problem: String| {
            let help = "compare the template with the published one";
            Error::tokenizer(file, format!("the chat template `{name}` is not Jinja: {problem}"), help)
        };
        let mut read = BTreeMap::new();
        for (name, source) in sources {
            if source.len() > MOST_SOURCE {
                let problem = format!("{} bytes; at most {MOST_SOURCE} are read", source.len());
                return Err(refused(name, problem));
            }
            let source = environment::without_generation_tags(source);
            let parsed = on_deep_stack(|| {
                let source = without_constant_products(&source).map_err(|e| told(&e))?;
                Code::of(name, &source).map_err(|e| told(&e))?;
                Ok(source)
            });
            read.insert(name.clone(), parsed.map_err(|problem| refused(name, problem))?);
        }
        Ok(Self { environment: environment::environment(), sources: read })
    }

    /// Fills in a template.
    pub(super) fn apply(
        &self,
        name: &str,
        variables: &Map<String, Json>,
        now: Option<SystemTime>,
        file: &Path,
    ) -> Result<String> {
        let mut environment = self.environment.clone();
        if let Some(now) = now {
            environment::set_now(&mut environment, now);
        }
        let chat = variables.values().map(instructions).sum::<u64>();
        environment.set_fuel(Some(chat + INSTRUCTIONS));
        let source = self.sources.get(name).map(String::as_str).unwrap_or_default();
        let filled = on_deep_stack(|| {
            let code = Code::of(name, source).map_err(|e| told(&e))?;
            let mut out = String::new();
            memory::begin(variables.values().map(bytes).sum());
            let context = minijinja::Value::from_serialize(variables);
            Vm::new(&environment)
                .eval(
                    &code.instructions,
                    context,
                    &code.blocks,
                    &mut make_string_output(&mut out),
                    AutoEscape::None,
                )
                .map_err(|e| told(&e))?;
            Ok(out)
        });
        filled.map_err(|problem| {
            let problem = format!("the chat template `{name}` refuses them: {problem}");
            let help = format!("see what roles and order of messages it asks for in {}", file.display());
            Error::input("messages", problem, help)
        })
    }
}

/// The instructions that a value may cost.
fn instructions(value: &Json) -> u64 {
    INSTRUCTIONS_PER_VALUE
        + match value {
            Json::String(text) => text.len() as u64,
            Json::Array(items) => items.iter().map(instructions).sum(),
            Json::Object(items) => items.values().map(instructions).sum(),
            _ => 0,
        }
}

/// The bytes of a value's texts.
fn bytes(value: &Json) -> usize {
    match value {
        Json::String(text) => text.len(),
        Json::Array(items) => items.iter().map(bytes).sum(),
        Json::Object(items) => items.values().map(bytes).sum(),
        _ => 0,
    }
}

/// A page's code has one thread, and the browser's own limit of stack ends it.
#[cfg(target_family = "wasm")]
fn on_deep_stack<T: Send>(
    run: impl FnOnce() -> std::result::Result<T, String> + Send,
) -> std::result::Result<T, String> {
    run()
}

/// Runs on a thread that has stack enough, so that nesting ends in an error and not the program.
#[cfg(not(target_family = "wasm"))]
fn on_deep_stack<T: Send>(
    run: impl FnOnce() -> std::result::Result<T, String> + Send,
) -> std::result::Result<T, String> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("chat template".to_owned()).stack_size(STACK);
        let thread = thread.spawn_scoped(scope, run).map_err(|e| format!("no thread for it: {e}"))?;
        thread.join().unwrap_or_else(|_| Err("the library that fills it in cannot go on".to_owned()))
    })
}

/// A template's error with what led to it, on one line.
fn told(error: &minijinja::Error) -> String {
    if error.kind() == ErrorKind::OutOfFuel {
        return format!("it does not end within the instructions that such a chat may take ({error})");
    }
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}
