//! `config.json`: read, checked for the architecture, and the class it names.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value as Json;

use super::{older, refusals};
use crate::hub::Checkpoint;
use crate::{Architecture, Configuration, Head};
use crate::{Error, Result};

const FILE: &str = "config.json";

/// The configuration of the side of an omni model that writes text, which stands in a file with that of its talker.
const THINKER: &str = "thinker_config";

/// What the file says of this architecture: all of it, or the configuration of a part that the model is here, such as
/// `text_config` of a CLIP for its text model, whose weights are under `text_model` there.
pub(super) fn read<A: Architecture>(checkpoint: &Checkpoint) -> Result<Json> {
    if let Some(gguf) = checkpoint.gguf() {
        return gguf.config(A::MODEL_TYPES);
    }
    checkpoint.require(FILE)?;
    let whole = checkpoint.json(FILE)?.unwrap_or_default();
    let known =
        |json: &Json| json["model_type"].as_str().is_some_and(|found| A::MODEL_TYPES.contains(&found));
    let part = A::NAMES.base_model_prefix.strip_suffix("_model").map(|part| &whole[format!("{part}_config")]);
    let part = part.into_iter().chain([&whole[THINKER]]).find(|part| known(part));
    match part.filter(|_| !known(&whole)) {
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
    older::prepare(&mut raw);
    A::Config::prepare(&mut raw);
    let config: A::Config = serde_path_to_error::deserialize(&raw)
        .map_err(|e| Error::config(&path, format!("{}: {}", e.path(), e.inner()), help))?;
    let fields = serde_json::to_value(&config).map_err(|e| Error::config(&path, e.to_string(), help))?;
    refusals::refuse_passed_over(&raw, &fields, &path)?;
    oversize(&fields, "config").map_err(|problem| Error::config(&path, problem, help))?;
    config.check().map_err(|problem| Error::config(&path, problem, help))?;
    Ok(config)
}

/// The largest whole number of any field: above all sizes, counts and ids of published models.
const MOST: u64 = 1 << 24;

/// Refuses whole numbers that are no sizes of a model, before anything is made by them: of the fields that were read as
/// whole numbers, those in lists and in the configurations of parts too.
fn oversize(value: &Json, field: &str) -> Result<(), String> {
    match value {
        Json::Number(number) => {
            let size = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
            match size.filter(|&size| size > MOST) {
                Some(size) => Err(format!("{field}: is {size}, but no model has more than {MOST}")),
                None => Ok(()),
            }
        }
        Json::Array(values) => values.iter().try_for_each(|value| oversize(value, field)),
        Json::Object(fields) => fields.iter().try_for_each(|(name, value)| oversize(value, name)),
        _ => Ok(()),
    }
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
    match checkpoint.gguf() {
        Some(gguf) => gguf.path().to_owned(),
        None => checkpoint.path(FILE).ok().flatten().unwrap_or_else(|| PathBuf::from(FILE)),
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::oversize;

    #[derive(Serialize)]
    struct Fields {
        theta: f64,
        name: &'static str,
        sizes: Vec<usize>,
        within: Option<(i64, usize)>,
    }

    #[test]
    fn whole_numbers_that_are_no_sizes_are_found_and_nothing_else() {
        let oversize = |fields: &Fields| oversize(&serde_json::to_value(fields).unwrap(), "config");
        let fine = Fields { theta: 1e11, name: "a \" 99999999999: \\", sizes: vec![1 << 24], within: None };
        assert_eq!(oversize(&fine), Ok(()));
        assert_eq!(oversize(&Fields { theta: 1e300, ..fine }), Ok(()));
        for (spoilt, field) in [
            (Fields { sizes: vec![3, 1 << 31], theta: 0.5, name: "", within: None }, "sizes: is 2147483648"),
            (
                Fields { within: Some((-1, usize::MAX)), sizes: vec![], theta: 0.5, name: "" },
                "within: is 18446744073709551615",
            ),
            (
                Fields { within: Some((i64::MIN, 0)), sizes: vec![], theta: 0.5, name: "" },
                "within: is 9223372036854775808",
            ),
        ] {
            let problem = oversize(&spoilt).unwrap_err();
            assert!(
                problem.starts_with(field) && problem.ends_with("no model has more than 16777216"),
                "{problem}"
            );
        }
    }
}
