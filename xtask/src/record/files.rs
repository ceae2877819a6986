//! Files of records: those of runs hold one record a line, committed ones are compact. Reading finds out which.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::{Record, compact};
use crate::terminal::note;

/// How the folder ends that the processes of a run write into.
pub const PARTS: &str = "parts";

/// The `.jsonl` files among `paths`, folders searched whole, in order of their names; but for what a run that was killed has
/// left of its processes, which its own file has, or nobody finished.
pub fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            let entries = fs::read_dir(path).with_context(|| format!("listing {}", path.display()))?;
            let inside = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
            let wanted: Vec<_> = inside
                .into_iter()
                .filter(|p| p.extension().map_or(p.is_dir(), |e| e == "jsonl" || p.is_dir() && e != PARTS))
                .collect();
            found.extend(files(&wanted)?);
        } else {
            found.push(path.clone());
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// The records of all files under `paths`. One that is in a run's own file and in a compact one counts once, as the run
/// wrote it.
pub fn read_all(paths: &[PathBuf]) -> Result<Vec<Record>> {
    let (mut whole, mut short) = (Vec::new(), Vec::new());
    for path in files(paths)? {
        let (is_compact, records) = read_kind(&path)?;
        if is_compact { &mut short } else { &mut whole }.extend(records);
    }
    fn key(record: &Record) -> [&str; 5] {
        [&record.run, &record.model, &record.case, &record.backend, &record.precision].map(String::as_str)
    }
    let known: BTreeSet<_> = whole.iter().map(key).collect();
    short.retain(|record| !known.contains(&key(record)));
    short.extend(whole);
    Ok(short)
}

/// The records of one file. The last line of a run that was killed, or whose disk was full, is no record: it is named
/// and left out.
pub fn read(path: &Path) -> Result<Vec<Record>> {
    Ok(read_kind(path)?.1)
}

fn read_kind(path: &Path) -> Result<(bool, Vec<Record>)> {
    let text = text(path)?;
    if compact::is_compact(&text) {
        return Ok((true, compact::parse(&text, path)?));
    }
    let (records, cut) = parse(&text, path)?;
    if let Some(line) = cut {
        note(format!(
            "{}:{line} was cut short when it was written (a full disk, or a run that was killed): it is left out; run \
             its case again, and delete the line",
            path.display()
        ));
    }
    Ok((false, records))
}

/// The records of a process that may have crashed while it wrote one.
pub fn read_unfinished(path: &Path) -> Result<Vec<Record>> {
    Ok(parse(&text(path)?, path)?.0)
}

fn text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("reading results from {}", path.display()))
}

/// One record a line, and the number of a last line without its end.
fn parse(text: &str, path: &Path) -> Result<(Vec<Record>, Option<usize>)> {
    let mut records = Vec::new();
    let count = text.lines().count();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let last = index + 1 == count && !text.ends_with('\n');
        match serde_json::from_str::<Record>(line) {
            Ok(record) if !record.model.is_empty() && !record.backend.is_empty() => records.push(record),
            _ if last => return Ok((records, Some(index + 1))),
            Ok(_) => {
                bail!("{}:{} names no model or no backend: it is no result record", path.display(), index + 1)
            }
            Err(error) => {
                return Err(error).with_context(|| {
                    format!(
                        "{}:{} is not a result record: take the file from where it was written again, or delete the \
                         line",
                        path.display(),
                        index + 1
                    )
                });
            }
        }
    }
    Ok((records, None))
}

/// Records as lines of JSON.
pub fn lines(records: &[Record]) -> Result<String> {
    let lines = records.iter().map(|record| Ok(serde_json::to_string(record)? + "\n"));
    lines.collect()
}

/// Appends a run's records; what could not be written whole is taken back.
pub fn append(path: &Path, records: &[Record]) -> Result<()> {
    let text = lines(records)?;
    let mut file = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .with_context(|| format!("opening {}", path.display()))?;
    let before = file.metadata().with_context(|| format!("opening {}", path.display()))?.len();
    if let Err(error) = file.write_all(text.as_bytes()).and_then(|()| file.sync_data()) {
        let _ = file.set_len(before);
        return Err(error).with_context(|| format!("writing records to {}", path.display()));
    }
    Ok(())
}

/// Replaces a file at once: whoever reads it sees the one text or the other, also when this process is killed.
pub fn write(path: &Path, text: &str) -> Result<()> {
    let dir = path.parent().context("a file is in a folder")?;
    fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
    let writing = || format!("writing {}", path.display());
    let mut file = tempfile::Builder::new().prefix(".unfinished-").tempfile_in(dir).with_context(writing)?;
    file.write_all(text.as_bytes()).with_context(writing)?;
    file.as_file().sync_all().with_context(writing)?;
    readable(file.path()).with_context(writing)?;
    file.persist(path).with_context(writing)?;
    Ok(())
}

/// Temporary files are their owner's alone.
fn readable(path: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(0o644))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_cut_short_by_a_crash_is_left_out_and_a_wrong_one_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        let good = r#"{"model":"bert","backend":"cpu","later":1}"#;
        fs::write(&path, format!("{good}\n{{\"mod")).unwrap();
        let text = text(&path).unwrap();
        let (records, cut) = parse(&text, &path).unwrap();
        assert_eq!((records.len(), cut), (1, Some(2)));
        assert_eq!(records[0].other["later"], 1);
        fs::write(&path, format!("{{\"mod\n{good}\n")).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("a.jsonl:1 is not a result record"));
        fs::write(&path, format!("{good}\n{{}}\n")).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("a.jsonl:2 names no model"));
    }

    #[test]
    fn result_files_are_found_in_folders() {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["gpu", "2026.1", "killed.parts"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        for name in [
            "b.jsonl",
            "a.jsonl",
            "note.md",
            "gpu/c.jsonl",
            "2026.1/d.jsonl",
            "killed.parts/bert-cpu-0.jsonl",
        ] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let names: Vec<_> = files(&[dir.path().to_owned()])
            .unwrap()
            .iter()
            .map(|path| path.strip_prefix(dir.path()).unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(names, ["2026.1/d.jsonl", "a.jsonl", "b.jsonl", "gpu/c.jsonl"]);
    }

    #[test]
    fn a_file_is_replaced_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/cpu.jsonl");
        write(&path, "one\n").unwrap();
        write(&path, "two\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two\n");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}
