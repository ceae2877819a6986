//! The results that are kept: `results/bench.json`, and `docs/speed.md` drawn from it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::super::rows::{WORKS, Work};
use super::Results;
use crate::workspace::root;

pub(super) const RESULTS: &str = "results/bench.json";
const DOCUMENT: &str = "docs/speed.md";

impl Results {
    /// The committed results with these in place of what they measured anew.
    ///
    /// # Errors
    /// When the committed ones are of another machine, other threads or other versions: one table would mix them.
    pub fn into_committed(self) -> Result<Self> {
        let path = root().join(RESULTS);
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let committed = serde_json::from_str(&text).with_context(|| format!("reading {}", path.display()))?;
        self.replacing(committed)
    }

    /// Those with these in place of what they measured anew.
    fn replacing(self, mut committed: Self) -> Result<Self> {
        let other = |name: &String| {
            let (ours, theirs) = (self.versions.get(name), committed.versions.get(name));
            theirs.is_some() && ours != theirs
        };
        if (&self.machine, self.threads, self.rounds)
            != (&committed.machine, committed.threads, committed.rounds)
            || self.versions.keys().any(other)
        {
            bail!(
                "{RESULTS} is of {}, {} threads, {} rounds and {:?}, these rows of {}, {}, {} and {:?}: measure all of \
                 them, without --model",
                committed.machine,
                committed.threads,
                committed.rounds,
                committed.versions,
                self.machine,
                self.threads,
                self.rounds,
                self.versions
            );
        }
        committed
            .rows
            .retain(|row| !self.rows.iter().any(|new| (&new.model, &new.what) == (&row.model, &row.what)));
        committed.opened.retain(|opened| !self.opened.iter().any(|new| new.model == opened.model));
        committed.memory.retain(|memory| !self.memory.iter().any(|new| new.model == memory.model));
        committed.failed.retain(|name, _| !WORKS.iter().any(|work| work.name == name && self.has(work)));
        committed.take(self);
        let place = |model: &str, what: Option<&str>| {
            let of = |work: &Work| {
                work.title == model
                    && what.is_none_or(|what| work.measures.iter().any(|measure| measure.what == what))
            };
            WORKS.iter().position(of)
        };
        committed.rows.sort_by_key(|row| place(&row.model, Some(&row.what)));
        committed.opened.sort_by_key(|opened| place(&opened.model, None));
        committed.memory.sort_by_key(|memory| place(&memory.model, None));
        Ok(committed)
    }

    /// Whether there are rows of a work.
    fn has(&self, work: &Work) -> bool {
        self.rows.iter().any(|row| row.model == work.title)
    }

    /// Writes the results, and the page drawn from them.
    pub fn write(&self) -> Result<()> {
        let json = serde_json::to_string_pretty(self)? + "\n";
        for (path, text) in [(RESULTS, json), (DOCUMENT, self.markdown())] {
            fs::write(root().join(path), text).with_context(|| format!("writing {path}"))?;
        }
        Ok(())
    }
}

/// The committed figures, one for each measure and contender, as `cargo xtask query` has them.
pub fn figures() -> Result<Vec<Value>> {
    figures_of(&root().join(RESULTS))
}

/// Those of a file; none where nothing was measured yet.
fn figures_of(path: &Path) -> Result<Vec<Value>> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(vec![]),
        text => text.with_context(|| format!("reading {}", path.display()))?,
    };
    let results: Results =
        serde_json::from_str(&text).with_context(|| format!("reading {}", path.display()))?;
    Ok(results.figures())
}

#[cfg(test)]
mod tests {
    use super::super::Row;
    use super::super::tests::row;
    use super::*;

    #[test]
    fn nothing_measured_is_no_error_and_a_damaged_file_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bench.json");
        assert!(figures_of(&path).unwrap().is_empty());
        fs::write(&path, "{").unwrap();
        assert!(figures_of(&path).unwrap_err().to_string().contains("bench.json"));
    }

    #[test]
    fn some_rows_come_into_the_committed_ones() {
        let results = |rows: Vec<Row>| Results { machine: "one".into(), rows, ..Results::new(2, 5) };
        let vit = |ms: f64, what: &str| {
            let work = Row { model: "ViT-base".into(), what: what.into(), ..row("run", ms, vec![], &[]) };
            assert!(
                WORKS.iter().any(|known| known.title == work.model && known.measures[0].what == work.what)
            );
            work
        };
        let [one, eight] = ["1 image, 224 px", "8 images, 224 px"];
        let committed = || results(vec![vit(2.0, eight)]);
        let times = |results: Results| results.rows.iter().map(|row| row.weft.median_ms).collect::<Vec<_>>();
        assert_eq!(times(results(vec![vit(1.0, one)]).replacing(committed()).unwrap()), [1.0, 2.0]);
        assert_eq!(times(results(vec![vit(3.0, eight)]).replacing(committed()).unwrap()), [3.0]);
        let mut other = results(vec![]);
        other.machine = "another".into();
        let refused = other.replacing(committed()).unwrap_err().to_string();
        assert!(
            refused.contains("these rows of another, 2") && refused.contains("without --model"),
            "{refused}"
        );
    }

    #[test]
    fn the_page_is_of_the_committed_results() {
        let Ok(json) = fs::read_to_string(root().join(RESULTS)) else { return };
        let results: Results = serde_json::from_str(&json).expect("results/bench.json is read");
        let page = fs::read_to_string(root().join(DOCUMENT)).expect("docs/speed.md is there");
        assert_eq!(page, results.markdown());
    }
}
