//! Known failures: `known_failures/<backend>.jsonl` beside the folder of the goldens, one a line, with its reason.

use std::path::Path;

use serde::Deserialize;

use super::BackendSuite;
use crate::{Error, Hardware, Precision, Result};

/// A case that is known to fail; a run errors when it passes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KnownFailure {
    model: String,
    /// As the test's name has it: `tasks/fill-mask`.
    case: String,
    /// What it fails in; everything where not given.
    precision: Option<Precision>,
    /// Why.
    pub reason: String,
}

impl KnownFailure {
    pub(super) fn is_of(&self, case: &str, precision: Precision) -> bool {
        self.case == case && self.precision.is_none_or(|own| own == precision)
    }
}

/// A model's known failures on a backend. None are known where there is no file; an entry that nobody answers for, or
/// that no test can meet, is an error with its line.
pub(super) fn read(
    goldens: &Path,
    model: &str,
    suite: &BackendSuite,
    has: &dyn Fn(&str) -> bool,
) -> Result<Vec<KnownFailure>> {
    let hardware = suite.declared.hardware;
    let Some(path) = file(goldens, hardware).filter(|path| path.is_file()) else { return Ok(vec![]) };
    let text = std::fs::read_to_string(&path).map_err(|error| Error::io(&path, error))?;
    let mut own: Vec<KnownFailure> = vec![];
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |problem: String| {
            let help = r#"a line is {"model": .., "case": .., "precision": .., "reason": ..}, `precision` only where one fails"#;
            Error::case(&path, format!("line {}: {problem}", index + 1), help)
        };
        let known: KnownFailure = serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
        if known.reason.trim().is_empty() {
            return Err(wrong(format!(
                "the known failure `{}` of {} has no reason",
                known.case, known.model
            )));
        }
        if known.model != model {
            continue;
        }
        if !has(&known.case) {
            return Err(wrong(format!("{model} has no case `{}`", known.case)));
        }
        let runs = |precision: Precision| {
            precision.is_quantized() || suite.precisions.iter().any(|bound| bound.precision == precision)
        };
        if let Some(precision) = known.precision.filter(|&precision| !runs(precision)) {
            return Err(wrong(format!("{precision} is not run on {hardware}")));
        }
        if own.iter().any(|other| other.case == known.case && other.precision == known.precision) {
            return Err(wrong(format!("`{}` of {model} is listed twice", known.case)));
        }
        own.push(known);
    }
    Ok(own)
}

/// `tests/known_failures/cuda.jsonl` for `tests/goldens/bert`.
fn file(goldens: &Path, hardware: Hardware) -> Option<std::path::PathBuf> {
    let beside = goldens.parent()?.parent()?;
    Some(beside.join("known_failures").join(format!("{hardware}.jsonl")))
}
