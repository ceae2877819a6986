//! What `config.json` may not say. Sizes that no model has: of the model's first case each whole number is set to 0, 2^31, 2^50
//! and 2^64 - 1, and the graph is built or refused within bounded time and memory, whatever is read there. And fields of which
//! one value is the only one supported: another one is refused by their name.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value as Json;

use super::Record;
use super::machine::{peak, processor_time};
use super::refusals::Copy;
use super::run::{Target, evidence, recorded};
use super::subject::Subject;
use crate::golden::{Case, OutputReport};
use crate::{Error, Result, engine};

const SIZES: [u64; 4] = [0, 1 << 31, 1 << 50, u64::MAX];

/// The processor time that one opening may take, without optimization; some tens of milliseconds are usual.
const TIME: Duration = Duration::from_secs(1);
const BYTES: u64 = 500 << 20;

/// Tries them on the first golden in the folder that holds the model's.
pub(super) fn golden(subject: Subject, goldens: &Path, target: Target<'_>) -> Record {
    recorded(subject, goldens, target, attempt)
}

fn attempt(subject: Subject, goldens: &Path, target: Target<'_>, record: &mut Record) -> Result<()> {
    record.versions.insert("engine".to_owned(), engine::available(target.hardware)?);
    let cases = super::trials::cases(goldens, "io.safetensors");
    let Some(first) = cases.first() else {
        return Err(Error::case(goldens, "holds no cases", "make them with `cargo xtask reference`"));
    };
    let case = Case::open(first)?;
    record.class = case.meta.class.clone().unwrap_or_default();
    let copy = Copy::of(first).map_err(|e| Error::io(first, e))?;
    let path = copy.0.join("config.json");
    let config = fs::read(&path).map_err(|e| Error::io(&path, e))?;
    let config: Json = serde_json::from_slice(&config)
        .map_err(|e| Error::case(&path, e.to_string(), "make the case again with `cargo xtask reference`"))?;
    let (folder, weights) = (copy.0.to_string_lossy(), case.weights()?);
    for field in numbers(&config, String::new()) {
        let problems: Vec<String> = SIZES
            .into_iter()
            .filter_map(|size| {
                let mut spoilt = config.clone();
                *spoilt.pointer_mut(&field)? = size.into();
                let written = fs::write(&path, spoilt.to_string());
                let (start, before) = (processor_time(), peak());
                let opened = written
                    .map_err(|e| Error::io(&path, e))
                    .and_then(|()| (subject.build)(target.request(&folder, weights.clone())));
                let problem = excess(&opened, processor_time() - start, peak().saturating_sub(before))?;
                Some(format!("{size}: {problem}"))
            })
            .collect();
        record.outputs.push(OutputReport::claim(
            field[1..].replace('/', "."),
            (!problems.is_empty()).then(|| problems.join("; ")),
        ));
    }
    for (field, value) in target.refused {
        let problem = taken(subject, &cases, target, field, value)?;
        record.outputs.push(OutputReport::claim(format!("{field} = {value}"), problem));
    }
    record.passed = record.outputs.iter().all(|output| output.passed);
    record.evidence = if record.passed { evidence(target.hardware) } else { "failed" }.to_owned();
    Ok(())
}

/// What is wrong with how a case with this value is answered: the first that has a configuration where the field is, or the last
/// with one that has nothing but the field.
fn taken(
    subject: Subject,
    cases: &[PathBuf],
    target: Target<'_>,
    field: &str,
    value: &str,
) -> Result<Option<String>> {
    let (parent, name) = field.rsplit_once('.').unwrap_or(("", field));
    let parent: String =
        parent.split('.').filter(|level| !level.is_empty()).map(|level| format!("/{level}")).collect();
    for dir in cases {
        let text = fs::read(dir.join("config.json")).map_err(|e| Error::io(dir, e))?;
        let wrong = |e: serde_json::Error| {
            Error::case(dir, e.to_string(), "make the case again with `cargo xtask reference`")
        };
        let mut config: Json = serde_json::from_slice(&text).map_err(wrong)?;
        if config.pointer(&parent).is_none() && Some(dir) == cases.last() {
            config[parent.trim_start_matches('/')] = Json::Object(serde_json::Map::new());
        }
        let Some(Json::Object(fields)) = config.pointer_mut(&parent) else { continue };
        fields.insert(name.to_owned(), serde_json::from_str(value).map_err(wrong)?);
        let copy = Copy::of(dir).map_err(|e| Error::io(dir, e))?;
        let path = copy.0.join("config.json");
        fs::write(&path, config.to_string()).map_err(|e| Error::io(&path, e))?;
        let weights = Case::open(dir)?.weights()?;
        let answer = (subject.build)(target.request(&copy.0.to_string_lossy(), weights));
        return Ok(match answer {
            Ok(()) => Some("was taken".to_owned()),
            Err(error) => {
                let said = error.to_string();
                (!said.contains(name)).then(|| format!("is refused without naming it: {said}"))
            }
        });
    }
    Ok(Some("no case has a configuration there".to_owned()))
}

/// What is wrong with how a checkpoint was opened, or not opened.
fn excess(opened: &Result<()>, took: Duration, more: u64) -> Option<String> {
    let helps = match opened {
        Ok(()) | Err(Error::Graph { .. }) => true,
        Err(error) => error.to_string().contains("\n  help: "),
    };
    match () {
        () if took > TIME => Some(format!("took {:.1} s", took.as_secs_f64())),
        () if more > BYTES => Some(format!("took {} MB", more >> 20)),
        () if !helps => opened.as_ref().err().map(|error| format!("names no way out: {error}")),
        () => None,
    }
}

/// The pointers of whole numbers; of each list the first.
fn numbers(json: &Json, place: String) -> Vec<String> {
    match json {
        Json::Number(number) if number.is_i64() || number.is_u64() => vec![place],
        Json::Object(fields) => {
            let fields = fields.iter().filter(|(name, _)| *name != "label2id");
            fields.flat_map(|(name, field)| numbers(field, format!("{place}/{name}"))).collect()
        }
        Json::Array(items) => {
            items.first().map_or_else(Vec::new, |first| numbers(first, format!("{place}/0")))
        }
        _ => vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_whole_number_is_found() {
        let config = serde_json::json!({
            "a": 1, "b": {"c": [2, 3], "d": 0.5, "e": [[4]]}, "label2id": {"x": 0}, "f": true, "g": "5"
        });
        assert_eq!(numbers(&config, String::new()), ["/a", "/b/c/0", "/b/e/0/0"]);
    }

    #[test]
    fn time_memory_and_errors_without_help_are_told() {
        let error = |text: &str| Err(Error::config("config.json", text, "compare it"));
        let short = Duration::from_millis(3);
        assert_eq!(excess(&error("is 0"), short, 0), None);
        assert_eq!(excess(&Ok(()), short, 0), None);
        assert_eq!(excess(&Ok(()), Duration::from_secs(9), 0).as_deref(), Some("took 9.0 s"));
        assert_eq!(excess(&error("is 0"), short, 1 << 30).as_deref(), Some("took 1024 MB"));
        let engine = Err(Error::engine(crate::Hardware::Cpu, "gave up"));
        assert!(excess(&engine, short, 0).is_some_and(|problem| problem.starts_with("names no way out")));
        assert!(peak() > 0 || !cfg!(target_os = "linux"));
    }
}
