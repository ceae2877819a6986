//! Merging: of every cell the newest record, in one compact file a backend.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{Record, compact, files};
use crate::workspace;

/// The newest record of each case on each backend, precision and machine, in their order. What `verify` saw is of no
/// golden.
pub fn newest(records: impl IntoIterator<Item = Record>) -> Vec<Record> {
    let mut newest: BTreeMap<_, Record> = BTreeMap::new();
    for record in records.into_iter().filter(|record| record.kind != "verify") {
        let [model, backend, precision, case] =
            [&record.model, &record.backend, &record.precision, &record.case].map(Clone::clone);
        let key = (model, backend, precision, case, record.machine());
        match newest.get(&key) {
            Some(other) if other.seconds() > record.seconds() => {}
            _ => drop(newest.insert(key, record)),
        }
    }
    newest.into_values().collect()
}

/// Takes records into the compact files of a folder, `<backend>.jsonl`; the files that changed. Those of other names in
/// the folder stay as they are, unless they are among `taken`, whose records these are: then they go.
pub fn merge_into(dir: &Path, records: Vec<Record>, taken: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let _lock = lock()?;
    let mut backends: BTreeMap<String, Vec<Record>> = BTreeMap::new();
    for record in records {
        backends.entry(record.backend.clone()).or_default().push(record);
    }
    let (mut kept, mut written) = (Vec::new(), Vec::new());
    for (backend, new) in backends {
        let path = dir.join(format!("{backend}.jsonl"));
        let old = if path.exists() { files::read(&path)? } else { Vec::new() };
        let text = compact::text(&backend, &newest(old.into_iter().chain(new)))?;
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
            kept.push(path);
        } else {
            files::write(&path, &text)?;
            written.push(path);
        }
    }
    for path in taken.iter().filter(|path| path.parent() == Some(dir)) {
        if !kept.contains(path) && !written.contains(path) {
            fs::remove_file(path).with_context(|| format!("removing {}", path.display()))?;
        }
    }
    Ok(written)
}

/// Two runs that end at the same time must not each write what the other has not read.
fn lock() -> Result<fs::File> {
    let path = workspace::target_dir().join("weft-results.lock");
    let locking = || format!("locking {}", path.display());
    fs::create_dir_all(workspace::target_dir()).with_context(locking)?;
    let file = fs::File::create(&path).with_context(locking)?;
    file.lock().with_context(locking)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(model: &str, backend: &str, time: u64, cpu: &str) -> Record {
        Record {
            run: format!("run-{time}"),
            time: time.to_string(),
            model: model.into(),
            case: "base".into(),
            kind: "golden".into(),
            backend: backend.into(),
            precision: "f32".into(),
            evidence: "device".into(),
            passed: true,
            machine: [("cpu".to_owned(), cpu.to_owned())].into_iter().collect(),
            ..Record::default()
        }
    }

    #[test]
    fn the_newest_record_of_a_cell_is_kept_whichever_file_it_comes_from() {
        let dir = tempfile::tempdir().unwrap();
        let loose = dir.path().join("2026-run.jsonl");
        let runs = vec![
            record("bert", "cpu", 5, "one"),
            record("bert", "cpu", 3, "two"),
            record("t5", "qnn", 1, "one"),
        ];
        fs::write(&loose, files::lines(&runs).unwrap()).unwrap();
        let written =
            merge_into(dir.path(), files::read(&loose).unwrap(), std::slice::from_ref(&loose)).unwrap();
        assert_eq!(written, [dir.path().join("cpu.jsonl"), dir.path().join("qnn.jsonl")]);
        assert!(!loose.exists());
        let older = vec![record("bert", "cpu", 4, "one"), record("bert", "cpu", 4, "two")];
        assert_eq!(merge_into(dir.path(), older.clone(), &[]).unwrap(), [dir.path().join("cpu.jsonl")]);
        assert!(merge_into(dir.path(), older, &[]).unwrap().is_empty(), "the same again changes nothing");
        let mut kept: Vec<_> = files::read_all(&[dir.path().to_owned()])
            .unwrap()
            .iter()
            .map(|record| format!("{} {} {} {}", record.model, record.backend, record.machine(), record.time))
            .collect();
        kept.sort();
        assert_eq!(kept, ["bert cpu one 5", "bert cpu two 4", "t5 qnn one 1"]);
    }

    #[test]
    fn a_record_in_two_files_counts_once() {
        let dir = tempfile::tempdir().unwrap();
        let runs = vec![record("bert", "cpu", 5, "one")];
        merge_into(dir.path(), runs.clone(), &[]).unwrap();
        fs::write(dir.path().join("run-5.jsonl"), files::lines(&runs).unwrap()).unwrap();
        assert_eq!(files::read_all(&[dir.path().to_owned()]).unwrap(), runs);
    }
}
