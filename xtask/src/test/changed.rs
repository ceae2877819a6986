//! `--changed`: leaves out models that passed on a backend before, when nothing that their tests depend on has changed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use super::job::Job;
use crate::binaries;
use crate::record::{Outcome, Record};
use crate::setup;
use crate::workspace;

/// What passed: a fingerprint by model and backend.
pub struct Passed {
    file: PathBuf,
    known: BTreeMap<String, String>,
    /// The hash of each shared library that binaries are linked to, so that none is read for every model.
    runtimes: Mutex<BTreeMap<PathBuf, Vec<u8>>>,
}

impl Passed {
    /// What earlier runs in this target folder left.
    pub fn load() -> Self {
        Self::at(workspace::target_dir().join("weft-passed.json"))
    }

    fn at(file: PathBuf) -> Self {
        let known = fs::read(&file).ok().and_then(|text| serde_json::from_slice(&text).ok());
        Self { file, known: known.unwrap_or_default(), runtimes: Mutex::default() }
    }

    /// Whether the job passed in this very state.
    pub fn has(&self, job: &Job, goldens: &Path) -> Result<bool> {
        match self.known.get(&key(job)) {
            Some(known) => Ok(*known == self.fingerprint(job, goldens)?),
            None => Ok(false),
        }
    }

    /// Takes in how whole jobs went, and keeps that for later runs.
    pub fn keep(&mut self, jobs: &[Job], records: &[Record], goldens: &Path) -> Result<()> {
        for job in jobs {
            let own =
                |record: &&Record| record.model == job.member.model && record.backend == job.hardware.name();
            let own: Vec<_> = records.iter().filter(own).collect();
            let passed =
                own.len() == job.tests.len() && own.iter().all(|record| record.outcome() != Outcome::Failed);
            if passed {
                let fingerprint = self.fingerprint(job, goldens)?;
                self.known.insert(key(job), fingerprint);
            } else {
                self.known.remove(&key(job));
            }
        }
        let text = serde_json::to_vec_pretty(&self.known)?;
        fs::write(&self.file, text).with_context(|| format!("writing {}", self.file.display()))
    }

    /// The tests' binary, which holds the specs, the runtime that it is linked to, the model's goldens, what it is known
    /// to fail, and the packages that are set up.
    fn fingerprint(&self, job: &Job, goldens: &Path) -> Result<String> {
        let mut hash = Sha256::new();
        add_file(&mut hash, &job.binary)?;
        hash.update(self.runtime(&job.binary)?);
        add_folder(&mut hash, &goldens.join(&job.member.model))?;
        let known = goldens.with_file_name("known_failures").join(format!("{}.jsonl", job.hardware));
        let own = format!("\"model\": \"{}\"", job.member.model);
        let known = fs::read_to_string(known).unwrap_or_default();
        known.lines().filter(|line| line.contains(&own)).for_each(|line| hash.update(line));
        if let Ok(cache) = setup::cache_folder() {
            for package in entries(&cache.join("packages"))? {
                hash.update(package.as_os_str().as_encoded_bytes());
            }
        }
        Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The hash of the runtime's shared library; nothing where a binary holds the runtime itself.
    fn runtime(&self, binary: &Path) -> Result<Vec<u8>> {
        let library = binaries::runtime(binary);
        let mut runtimes = self.runtimes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = runtimes.get(&library) {
            return Ok(known.clone());
        }
        let mut hash = Sha256::new();
        if library.is_file() {
            add_file(&mut hash, &library)?;
        }
        let hash = hash.finalize().to_vec();
        runtimes.insert(library, hash.clone());
        Ok(hash)
    }
}

fn key(job: &Job) -> String {
    format!("{} {}", job.member.model, job.hardware)
}

fn add_folder(hash: &mut Sha256, dir: &Path) -> Result<()> {
    for path in entries(dir)? {
        hash.update(path.as_os_str().as_encoded_bytes());
        if path.is_dir() { add_folder(hash, &path)? } else { add_file(hash, &path)? }
    }
    Ok(())
}

fn add_file(hash: &mut Sha256, path: &Path) -> Result<()> {
    hash.update(fs::read(path).with_context(|| format!("reading {}", path.display()))?);
    Ok(())
}

/// What a folder holds, by name; nothing where there is none.
fn entries(dir: &Path) -> Result<Vec<PathBuf>> {
    if !dir.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(dir).with_context(|| format!("listing {}", dir.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use weft_generator::spec::hardware::Hardware;

    use super::*;
    use crate::workspace::Member;

    #[test]
    fn what_passed_is_left_out_until_its_binary_or_a_golden_changes() {
        let dir = tempfile::tempdir().unwrap();
        let goldens = dir.path().join("goldens");
        fs::create_dir_all(goldens.join("fake/base")).unwrap();
        let (binary, golden) = (dir.path().join("hardware"), goldens.join("fake/base/io"));
        fs::write(&binary, "binary").unwrap();
        fs::write(&golden, "golden").unwrap();
        let member = Member {
            category: "fakes".into(),
            model: "fake".into(),
            package: "weft-fake".into(),
            dir: dir.path().to_owned(),
        };
        let tests = vec!["cpu::f32::base".to_owned()];
        let all = tests.clone();
        let job = Job { member, binary: binary.clone(), hardware: Hardware::Cpu, tests, all };
        let record = |passed: bool| Record {
            model: "fake".into(),
            backend: "cpu".into(),
            evidence: if passed { "device" } else { "failed" }.into(),
            passed,
            ..Record::default()
        };
        let file = dir.path().join("passed.json");
        let jobs = std::slice::from_ref(&job);
        let mut passed = Passed::at(file.clone());
        assert!(!passed.has(&job, &goldens).unwrap());
        passed.keep(jobs, &[record(true)], &goldens).unwrap();
        let again = Passed::at(file.clone());
        assert!(again.has(&job, &goldens).unwrap());
        fs::write(&golden, "another").unwrap();
        assert!(!again.has(&job, &goldens).unwrap());
        fs::write(&golden, "golden").unwrap();
        assert!(again.has(&job, &goldens).unwrap());
        fs::write(binaries::runtime(&binary), "another runtime").unwrap();
        assert!(!Passed::at(file.clone()).has(&job, &goldens).unwrap());
        passed.keep(jobs, &[record(false)], &goldens).unwrap();
        assert!(!Passed::at(file).has(&job, &goldens).unwrap());
    }
}
