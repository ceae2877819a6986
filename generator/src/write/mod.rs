//! The one place that writes: compares first, replaces files whole, removes stale ones, leaves others alone.

pub mod cache;

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use walkdir::WalkDir;

use crate::render::{Output, is_generated};
use crate::spec::document::Problem;

/// The ending of files that are being written. One that is left over was interrupted, and is removed.
const UNFINISHED: &str = ".weft-unfinished";

/// Writes the manifest of a workspace around crates of one's own, unless `out` has a manifest already.
///
/// # Errors
/// It cannot be written.
pub fn workspace(out: &Path) -> io::Result<()> {
    let manifest = out.join("Cargo.toml");
    if manifest.exists() {
        return Ok(());
    }
    let text = "[workspace]\nresolver = \"3\"\nmembers = [\"*/*\"]\nexclude = [\"target\", \"goldens\", \"known_failures\"]\n";
    fs::write(&manifest, text).map_err(|error| named(&error, &manifest))
}

/// How a file differs from what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    /// It is not there.
    Missing,
    /// It holds something else.
    Differs,
    /// It was generated once and no longer is.
    Stale,
}

impl Difference {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Differs => "differs",
            Self::Stale => "stale",
        }
    }
}

/// What there is to do so that a folder holds these files.
#[derive(Debug, Default)]
pub struct Plan {
    /// What differs, in the order of the paths from the folder.
    pub changes: Vec<(String, Difference)>,
    /// Files that are as they should be.
    pub same: usize,
    write: Vec<Output>,
    remove: Vec<PathBuf>,
    abandon: Vec<String>,
}

/// Compares `outputs` with what is in `out`; stale files are looked for in `scopes`, folders in `out`, except `kept`.
///
/// # Errors
/// A file without the generated header is where one is to be written; a file cannot be read.
pub fn plan(
    out: &Path,
    shown: &Path,
    outputs: Vec<Output>,
    kept: &BTreeSet<String>,
    scopes: &[String],
) -> Result<Plan, Vec<Problem>> {
    let mut plan = Plan::default();
    let mut problems = vec![];
    let expected: BTreeSet<String> = outputs.iter().map(|output| output.path.clone()).collect();
    let compared =
        || outputs.par_iter().map(|output| compare(&out.join(&output.path), &output.text)).collect();
    let there = || scopes.iter().flat_map(|scope| files(&out.join(scope))).collect();
    let (states, there): (Vec<_>, Vec<PathBuf>) = rayon::join(compared, there);
    for (output, state) in outputs.into_iter().zip(states) {
        let path = shown.join(&output.path);
        match state {
            Ok(State::Same) => plan.same += 1,
            Ok(State::Missing) => {
                plan.changes.push((output.path.clone(), Difference::Missing));
                plan.write.push(output);
            }
            Ok(State::Differs) => {
                plan.changes.push((output.path.clone(), Difference::Differs));
                plan.write.push(output);
            }
            Ok(State::Foreign) => problems.push(Problem::new(
                &path,
                "is in the way: it was not generated, since it does not begin with the generated header; move it, or \
                 delete it if it is not needed",
            )),
            Err(error) => problems.push(Problem::new(&path, format!("cannot be read: {error}"))),
        }
    }
    for path in there {
        let inside = path.strip_prefix(out).unwrap_or(&path).to_string_lossy().replace('\\', "/");
        if inside.ends_with(UNFINISHED) {
            plan.remove.push(path);
        } else if !expected.contains(&inside) && !kept.contains(&inside) && begins_generated(&path) {
            plan.changes.push((inside, Difference::Stale));
            plan.remove.push(path);
        }
    }
    problems.extend(abandon(&mut plan, out, shown));
    plan.changes.sort();
    if problems.is_empty() { Ok(plan) } else { Err(problems) }
}

/// Finds crates that are stale as a whole. Those with files of somebody's own are a problem: without its manifest,
/// such a folder would stop cargo.
fn abandon(plan: &mut Plan, out: &Path, shown: &Path) -> Vec<Problem> {
    let mut problems = vec![];
    let manifests = plan.changes.iter().filter_map(|(path, difference)| {
        let folder = crate_of(path)?;
        (*difference == Difference::Stale && *path == format!("{folder}/Cargo.toml")).then_some(folder)
    });
    for folder in manifests.collect::<Vec<_>>() {
        let own: Vec<_> =
            files(&out.join(&folder)).into_iter().filter(|path| !plan.remove.contains(path)).collect();
        if own.is_empty() {
            plan.abandon.push(folder);
            continue;
        }
        let names: Vec<_> =
            own.iter().map(|path| path.strip_prefix(out).unwrap_or(path).display().to_string()).collect();
        let message = format!(
            "has no spec any more, but holds files that were not generated: {}; move them, or bring the spec back",
            names.join(", ")
        );
        problems.push(Problem::new(&shown.join(&folder), message));
    }
    problems
}

impl Plan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.write.is_empty() && self.remove.is_empty()
    }

    /// Does it. All new texts are in `staging`, a folder on the same disk, before the first file is replaced, so an
    /// interruption leaves every file whole, and almost always the tree as it was. A new crate arrives as a whole:
    /// cargo refuses to work while there is a folder of a crate without a manifest.
    ///
    /// # Errors
    /// A file cannot be written or removed; the message names it.
    pub fn apply(&self, out: &Path, staging: &Path) -> io::Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        remove_all(staging)?;
        self.write.par_iter().try_for_each(|output| {
            let path = staging.join(&output.path);
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).map_err(|error| named(&error, folder))?;
            }
            fs::write(&path, &output.text).map_err(|error| named(&error, &path))
        })?;
        let mut whole: BTreeSet<String> = BTreeSet::new();
        for output in &self.write {
            let folder = crate_of(&output.path).filter(|folder| !out.join(folder).exists());
            let Some(folder) = folder else { continue };
            let target = out.join(&folder);
            if let Some(category) = target.parent() {
                fs::create_dir_all(category).map_err(|error| named(&error, category))?;
            }
            if fs::rename(staging.join(&folder), &target).is_ok() {
                whole.insert(folder);
            }
        }
        let arrived = |path: &str| crate_of(path).is_some_and(|folder| whole.contains(&folder));
        for output in self.write.iter().filter(|output| !arrived(&output.path)) {
            replace(&staging.join(&output.path), &out.join(&output.path))?;
        }
        for (number, folder) in self.abandon.iter().enumerate() {
            // The same the other way round: a crate goes as a whole.
            let away = staging.join(format!("removed-{number}"));
            fs::create_dir_all(staging).map_err(|error| named(&error, staging))?;
            let _ = fs::rename(out.join(folder), away);
        }
        for path in &self.remove {
            match fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(named(&error, path)),
                _ => remove_empty_folders(path, out),
            }
        }
        remove_all(staging)
    }
}

/// The folder of the crate that a path is in: its first two levels.
fn crate_of(path: &str) -> Option<String> {
    let mut levels = path.splitn(3, '/');
    let (category, model, _) = (levels.next()?, levels.next()?, levels.next()?);
    Some(format!("{category}/{model}"))
}

/// Puts a staged file in place; by way of a copy beside it where the two are on different disks.
fn replace(staged: &Path, path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| named(&error, folder))?;
    }
    if fs::rename(staged, path).is_ok() {
        return Ok(());
    }
    let unfinished = PathBuf::from(format!("{}{UNFINISHED}", path.display()));
    fs::copy(staged, &unfinished).map_err(|error| named(&error, &unfinished))?;
    fs::rename(&unfinished, path).map_err(|error| named(&error, path))
}

fn remove_all(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(named(&error, folder)),
        _ => Ok(()),
    }
}

enum State {
    Same,
    Missing,
    Differs,
    Foreign,
}

fn compare(path: &Path, text: &str) -> io::Result<State> {
    match fs::read(path) {
        Ok(found) if found == text.as_bytes() => Ok(State::Same),
        Ok(found) if is_generated(&String::from_utf8_lossy(&found[..found.len().min(200)])) => {
            Ok(State::Differs)
        }
        Ok(_) => Ok(State::Foreign),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(State::Missing),
        Err(error) => Err(error),
    }
}

/// All files below a folder, but not those of builds and of version control.
fn files(folder: &Path) -> Vec<PathBuf> {
    let skipped = |name: &std::ffi::OsStr| name == "target" || name.to_string_lossy().starts_with('.');
    let walk = WalkDir::new(folder).sort_by_file_name().into_iter();
    let walk = walk.filter_entry(|entry| {
        entry.depth() == 0 || !entry.file_type().is_dir() || !skipped(entry.file_name())
    });
    walk.filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_file())
        .map(walkdir::DirEntry::into_path)
        .collect()
}

fn begins_generated(path: &Path) -> bool {
    use std::io::Read;
    let mut start = vec![];
    let read = fs::File::open(path).and_then(|file| file.take(200).read_to_end(&mut start));
    read.is_ok() && is_generated(&String::from_utf8_lossy(&start))
}

fn remove_empty_folders(path: &Path, out: &Path) {
    let mut folder = path.parent();
    // `remove_dir` refuses folders that hold anything.
    while let Some(inner) = folder.filter(|inner| *inner != out && inner.starts_with(out)) {
        if fs::remove_dir(inner).is_err() {
            return;
        }
        folder = inner.parent();
    }
}

fn named(error: &io::Error, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
