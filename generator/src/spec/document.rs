//! Reads one YAML document into a type, and says where it is wrong: file, line, key, what was expected.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

/// One thing wrong with a document, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The document.
    pub file: PathBuf,
    /// Its line, counted from 1, where known.
    pub line: Option<usize>,
    /// The key, as a dotted path from the top of the document; empty for the document as a whole.
    pub key: String,
    /// What is wrong and what was expected.
    pub message: String,
    /// The valid name nearest to the one found.
    pub nearest: Option<String>,
}

impl Problem {
    /// A problem with the document as a whole.
    pub fn new(file: &Path, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line: None, key: String::new(), message: message.into(), nearest: None }
    }

    /// A problem at a dotted key of a document's text; the line is looked up in it.
    pub fn at(file: &Path, text: &str, key: &str, message: impl Into<String>) -> Self {
        Self { line: line_of(text, key), key: key.to_owned(), ..Self::new(file, message) }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.key.is_empty() {
            write!(f, ": `{}`", self.key)?;
        }
        write!(f, ": {}", self.message)?;
        match &self.nearest {
            Some(name) => write!(f, "; did you mean `{name}`?"),
            None => Ok(()),
        }
    }
}

/// Everything wrong with a set of documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    /// `value` if nothing is wrong, all problems otherwise.
    ///
    /// # Errors
    /// The problems themselves, when there are any.
    pub fn or<T>(self, value: T) -> Result<T, Self> {
        if self.0.is_empty() { Ok(value) } else { Err(self) }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            let end = if index == 0 { "" } else { "\n" };
            write!(f, "{end}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

/// Reads a document and the text it was read from.
///
/// # Errors
/// The file cannot be read, is not YAML, or does not fit `T`.
pub fn read<T: DeserializeOwned>(file: &Path) -> Result<(T, String), Problem> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Problem::new(file, format!("cannot be read: {error}")))?;
    let value = parse(file, &text)?;
    Ok((value, text))
}

/// Reads a document from its text; `file` only names it in errors.
///
/// # Errors
/// The text is not YAML or does not fit `T`.
pub fn parse<T: DeserializeOwned>(file: &Path, text: &str) -> Result<T, Problem> {
    serde_yaml::from_str(text).map_err(|error| problem(file, text, &error))
}

/// Takes the parser's one-line message (`a.b: unknown field `x`, expected … at line 3 column 5`) apart.
fn problem(file: &Path, text: &str, error: &serde_yaml::Error) -> Problem {
    let mut message = error.to_string();
    if let Some(end) = message.rfind(" at line ") {
        message.truncate(end);
    }
    let mut key = String::new();
    if let Some((path, rest)) = message.split_once(": ")
        && !path.contains([' ', '`'])
    {
        key = path.to_owned();
        message = rest.to_owned();
    }
    let mut nearest = None;
    if let Some(rest) =
        message.strip_prefix("unknown field `").or_else(|| message.strip_prefix("unknown variant `"))
        && let Some((found, expected)) = rest.split_once('`')
    {
        nearest = nearest_name(found, expected.split('`').skip(1).step_by(2)).map(str::to_owned);
        if message.starts_with("unknown field") {
            key = if key.is_empty() { found.to_owned() } else { format!("{key}.{found}") };
        }
    }
    let line = error.location().map(|at| at.line()).or_else(|| line_of(text, &key));
    Problem { file: file.to_owned(), line, key, message, nearest }
}

/// The candidate that a mistyped name most likely meant, if one is near enough.
pub fn nearest_name<'a>(found: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(found, name), name))
        .filter(|(distance, name)| *distance <= 1 + name.len() / 4)
        .min()
        .map(|(_, name)| name)
}

/// The line, counted from 1, on which a dotted key starts: the first line of each segment, one after the other.
pub fn line_of(text: &str, key: &str) -> Option<usize> {
    let mut lines = text.lines().enumerate();
    let mut found = None;
    for segment in key.split('.').filter(|segment| !segment.is_empty()) {
        let name = segment.split('[').next().unwrap_or(segment);
        let starts = |line: &str| {
            let line = line.trim_start().trim_start_matches("- ").trim_start_matches('"');
            line.strip_prefix(name).is_some_and(|rest| rest.starts_with([':', '"']))
        };
        found = Some(lines.find(|(_, line)| starts(line))?.0 + 1);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Outer {
        name: String,
        inner: Inner,
    }

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Inner {
        precision: u8,
    }

    fn message(text: &str) -> String {
        parse::<Outer>(Path::new("a.yaml"), text).unwrap_err().to_string()
    }

    #[test]
    fn unknown_key_names_file_line_key_and_the_nearest_name() {
        insta::assert_snapshot!(message("name: x\ninner:\n  precisoin: 1\n"), @"a.yaml:3: `inner.precisoin`: unknown field `precisoin`, expected `precision`; did you mean `precision`?");
    }

    #[test]
    fn wrong_type_names_the_key() {
        insta::assert_snapshot!(message("name: x\ninner:\n  precision: high\n"), @r#"a.yaml:3: `inner.precision`: invalid type: string "high", expected u8"#);
    }

    #[test]
    fn missing_key_and_broken_yaml() {
        insta::assert_snapshot!(message("name: x\n"), @"a.yaml:1: missing field `inner`");
        insta::assert_snapshot!(message("name: x\n inner: 1\n"), @"a.yaml:2: mapping values are not allowed in this context");
    }

    #[test]
    fn lines_follow_the_path() {
        let text = "a:\n  b: 1\nc:\n  b: 2\n";
        assert_eq!(line_of(text, "c.b"), Some(4));
        assert_eq!(line_of(text, "c.x"), None);
    }
}
