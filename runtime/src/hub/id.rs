//! Repository ids: `name`, `org/name`, `org/name@revision`.

use crate::{Error, Result};

/// The longest id the hub gives out.
const LONGEST: usize = 96;

/// A repository on the hub, at one revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepoId {
    name: String,
    revision: String,
}

impl RepoId {
    /// Parses `name`, `org/name` or either with `@revision`: a branch, a tag or a commit; `main` by default.
    ///
    /// ```
    /// let id = weft::hub::RepoId::parse("org/name@v2").unwrap();
    /// assert_eq!((id.name(), id.revision()), ("org/name", "v2"));
    /// assert!(weft::hub::RepoId::parse("org/../name").is_err());
    /// ```
    ///
    /// # Errors
    /// When it breaks the hub's rules for ids, or could lead out of the cache.
    pub fn parse(text: &str) -> Result<Self> {
        let (name, revision) = text.split_once('@').unwrap_or((text, "main"));
        let problem = name_problem(name).or_else(|| revision_problem(revision));
        match problem {
            None => Ok(Self { name: name.into(), revision: revision.into() }),
            Some(problem) => Err(Error::hub(
                text,
                format!("no folder of that name, and not a hub id: {problem}"),
                "give an existing folder, or a hub id such as `org/name` or `org/name@revision`",
            )),
        }
    }

    /// `org/name`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The branch, tag or commit.
    pub fn revision(&self) -> &str {
        &self.revision
    }
}

fn name_problem(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("it is empty".into());
    }
    if name.len() > LONGEST {
        return Some(format!("it is {} characters long, more than {LONGEST}", name.len()));
    }
    if name.split('/').count() > 2 {
        return Some("it has more than one `/`".into());
    }
    for part in name.split('/') {
        if part.is_empty() {
            return Some("a part of it is empty".into());
        }
        if let Some(c) = part.chars().find(|c| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.')) {
            return Some(format!("`{c}` may not be part of an id"));
        }
        if part.contains("..") || part.contains("--") {
            return Some("`..` and `--` may not be part of an id".into());
        }
        if part.starts_with(['.', '-']) || part.ends_with(['.', '-']) {
            return Some(format!("`{part}` begins or ends with `.` or `-`"));
        }
    }
    None
}

/// Branch names may have slashes (`refs/pr/1`), so they are checked for steps upwards only.
fn revision_problem(revision: &str) -> Option<String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '+');
    let sound = !revision.is_empty()
        && revision.chars().all(allowed)
        && revision.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
    (!sound).then(|| format!("`{revision}` is not the name of a branch, a tag or a commit"))
}

/// Whether a person who wrote this meant a path rather than an id.
pub(super) fn looks_like_path(text: &str) -> bool {
    let drive = text.len() > 1 && text.as_bytes()[1] == b':' && text.as_bytes()[0].is_ascii_alphabetic();
    let name = text.split('@').next().unwrap_or(text);
    drive || text.starts_with(['/', '.', '~', '\\']) || text.contains('\\') || name.matches('/').count() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_what_the_hub_accepts() {
        for text in ["gpt2", "org/name", "sentence-transformers/all-MiniLM-L6-v2", "a_b/c.d-e@refs/pr/1"] {
            assert!(RepoId::parse(text).is_ok(), "{text}");
        }
        assert_eq!(RepoId::parse("org/name").unwrap().revision(), "main");
    }

    #[test]
    fn refuses_steps_out_of_the_cache() {
        let bad = [
            "",
            "..",
            "../x",
            "a/../b",
            "a/..",
            "a//b",
            "a/b/c",
            "a b",
            "a/b@",
            "a/b@../x",
            "a/b@x/../y",
            "a--b/c",
        ];
        for text in bad {
            assert!(RepoId::parse(text).is_err(), "{text}");
        }
        assert!(RepoId::parse(&"x".repeat(97)).is_err());
    }

    #[test]
    fn tells_paths_from_ids() {
        for text in ["/a", "./a", "../a", "~/a", "a/b/c", "C:\\a", "a\\b"] {
            assert!(looks_like_path(text), "{text}");
        }
        assert!(!looks_like_path("org/name@refs/pr/1"));
    }
}
