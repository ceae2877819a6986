//! `config.json`: read, checked for the architecture, and the class it names.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value as Json;

use super::refusals;
use crate::hub::Checkpoint;
use crate::{Architecture, Configuration, Head};
use crate::{Error, Result};

const FILE: &str = "config.json";

/// What the file says of this architecture: all of it, or the configuration of a part that the model is here, such as
/// `text_config` of a CLIP for its text model, whose weights are under `text_model` there.
pub(super) fn read<A: Architecture>(checkpoint: &Checkpoint) -> Result<Json> {
    checkpoint.require(FILE)?;
    let whole = checkpoint.json(FILE)?.unwrap_or_default();
    let known =
        |json: &Json| json["model_type"].as_str().is_some_and(|found| A::MODEL_TYPES.contains(&found));
    let part = A::NAMES.base_model_prefix.strip_suffix("_model").map(|part| &whole[format!("{part}_config")]);
    match part.filter(|part| !known(&whole) && known(part)) {
        Some(part) => Ok(part.clone()),
        None => Ok(whole),
    }
}

/// The file as the architecture's type.
pub(super) fn typed<A: Architecture>(checkpoint: &Checkpoint, raw: &Json) -> Result<A::Config> {
    let path = place(checkpoint);
    let known = A::MODEL_TYPES.join("`, `");
    match raw.get("model_type") {
        Some(Json::String(found)) if A::MODEL_TYPES.contains(&found.as_str()) => {}
        Some(Json::String(found)) => {
            let problem = format!("`model_type` is `{found}`, but weft-{} opens `{known}`", A::NAME);
            let help = format!(
                "use the crate weft-{found}; where there is none, `cargo xtask new {found} --from {}` drafts its spec",
                path.display()
            );
            return Err(Error::config(path, problem, help));
        }
        found => {
            let problem = match found {
                None if !raw.is_object() => "is no JSON object".to_owned(),
                None => "has no `model_type`".to_owned(),
                Some(other) => format!("`model_type` is {other}, not a text"),
            };
            return Err(Error::config(
                path,
                problem,
                format!("write `\"model_type\": \"{}\"`", A::MODEL_TYPES[0]),
            ));
        }
    }
    refusals::check::<A>(raw, &path)?;
    let help =
        "compare the file with the published one; `save_pretrained` of the reference writes every field";
    let mut raw = raw.clone();
    A::Config::prepare(&mut raw);
    let config: A::Config = serde_path_to_error::deserialize(&raw)
        .map_err(|e| Error::config(&path, format!("{}: {}", e.path(), e.inner()), help))?;
    oversize(&format!("{config:?}")).map_err(|problem| Error::config(&path, problem, help))?;
    config.check().map_err(|problem| Error::config(&path, problem, help))?;
    Ok(config)
}

/// The largest whole number of any field: above all sizes, counts and ids of published models.
const MOST: u128 = 1 << 24;

/// Refuses whole numbers that are no sizes of a model, before anything is made by them. They are found in what `Debug`
/// prints of a configuration: all that it was read as, lists and parts included, and nothing that it passes over.
fn oversize(printed: &str) -> Result<(), String> {
    let (mut rest, mut field) = (printed, "");
    while let Some(at) = rest.find(|c: char| c == '"' || c.is_ascii_alphanumeric()) {
        rest = &rest[at..];
        let (word, after) = match rest.strip_prefix('"') {
            Some(text) => ("", text_end(text)),
            None => {
                let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '+');
                rest.split_at(rest.find(|c| !part(c)).unwrap_or(rest.len()))
            }
        };
        rest = after;
        if after.starts_with(": ") && word.starts_with(|c: char| c.is_ascii_alphabetic()) {
            field = word;
        }
        if word.parse().is_ok_and(|number: u128| number > MOST) {
            return Err(format!("{field}: is {word}, but no model has more than {MOST}"));
        }
    }
    Ok(())
}

/// What follows a text, printed with escapes, whose quote was taken.
fn text_end(text: &str) -> &str {
    let mut escaped = false;
    let end = text.find(|c| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    end.map_or("", |end| &text[end + 1..])
}

/// The class of this name, which published files write in other cases as well (`PhiMoEForCausalLM`).
pub(super) fn class_of<A: Architecture>(name: &str) -> Option<A::Head> {
    A::Head::ALL.iter().find(|head| head.class().eq_ignore_ascii_case(name)).copied()
}

/// The class that `architectures` names; the base model where it is absent.
pub(super) fn head<A: Architecture>(checkpoint: &Checkpoint, raw: &Json) -> Result<A::Head> {
    let named = raw.get("architectures").filter(|named| !named.is_null());
    let named: Vec<String> = named.map_or(Ok(vec![]), Vec::deserialize).map_err(|e| {
        let help = format!("write a list, such as `[\"{}\"]`", A::Head::ALL[0].class());
        Error::config(place(checkpoint), format!("architectures: {e}"), help)
    })?;
    let names: Vec<&str> = named.iter().map(String::as_str).collect();
    let Some(first) = names.first() else {
        return Ok(A::Head::ALL[0]);
    };
    names.iter().find_map(|name| class_of::<A>(name)).ok_or_else(|| {
        let classes: Vec<_> = A::Head::ALL.iter().map(|head| head.class()).collect();
        let problem = format!("`architectures` names `{first}`, which weft-{} does not have", A::NAME);
        let help = format!("choose one of {} with `.head(..)`", classes.join(", "));
        Error::config(place(checkpoint), problem, help)
    })
}

fn place(checkpoint: &Checkpoint) -> PathBuf {
    checkpoint.path(FILE).ok().flatten().unwrap_or_else(|| PathBuf::from(FILE))
}

#[cfg(test)]
mod tests {
    use super::oversize;

    #[derive(Debug)]
    #[allow(dead_code)]
    struct Printed {
        theta: f64,
        name: &'static str,
        sizes: Vec<usize>,
        within: Option<(i64, usize)>,
    }

    #[test]
    fn whole_numbers_that_are_no_sizes_are_found_and_nothing_else() {
        let fine = Printed { theta: 1e11, name: "a \" 99999999999: \\", sizes: vec![1 << 24], within: None };
        assert_eq!(oversize(&format!("{fine:?}")), Ok(()));
        assert_eq!(oversize(&format!("{:?}", Printed { theta: 1e300, ..fine })), Ok(()));
        for (spoilt, field) in [
            (Printed { sizes: vec![3, 1 << 31], theta: 0.5, name: "", within: None }, "sizes: is 2147483648"),
            (
                Printed { within: Some((-1, usize::MAX)), sizes: vec![], theta: 0.5, name: "" },
                "within: is 18446744073709551615",
            ),
            (
                Printed { within: Some((i64::MIN, 0)), sizes: vec![], theta: 0.5, name: "" },
                "within: is 9223372036854775808",
            ),
        ] {
            let problem = oversize(&format!("{spoilt:?}")).unwrap_err();
            assert!(
                problem.starts_with(field) && problem.ends_with("no model has more than 16777216"),
                "{problem}"
            );
        }
    }
}
