//! Templates by name, parsed and filled in by MiniJinja.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

use minijinja::Environment;
use serde_json::{Map, Value as Json};

use super::environment;
use crate::{Error, Result};

/// A checkpoint's templates, parsed.
#[derive(Clone, Debug)]
pub(super) struct Rendering(Environment<'static>);

impl Rendering {
    /// Parses templates, which `file` holds.
    pub(super) fn new(sources: &BTreeMap<String, String>, file: &Path) -> Result<Self> {
        let mut environment = environment::environment();
        for (name, source) in sources {
            let source = environment::without_generation_tags(source);
            environment.add_template_owned(name.clone(), source).map_err(|e| {
                let help = "compare the template with the published one";
                Error::tokenizer(file, format!("the chat template `{name}` is not Jinja: {}", told(&e)), help)
            })?;
        }
        Ok(Self(environment))
    }

    /// Fills in a template.
    pub(super) fn apply(
        &self,
        name: &str,
        variables: &Map<String, Json>,
        now: Option<SystemTime>,
        file: &Path,
    ) -> Result<String> {
        let refused = |e: minijinja::Error| {
            let problem = format!("the chat template `{name}` refuses them: {}", told(&e));
            let help = format!("see what roles and order of messages it asks for in {}", file.display());
            Error::input("messages", problem, help)
        };
        let mut environment = self.0.clone();
        if let Some(now) = now {
            environment::set_now(&mut environment, now);
        }
        let template = environment.get_template(name).map_err(refused)?;
        template.render(minijinja::Value::from_serialize(variables)).map_err(refused)
    }
}

/// A template's error with what led to it, on one line.
fn told(error: &minijinja::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}
