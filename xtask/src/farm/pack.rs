//! What tasks need of this machine: test binaries with the runtime, goldens, the backends' packages.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use weft_generator::spec::hardware::Hardware;

use super::folder::Folder;
use super::worker;
use crate::binaries::{self, Profile};
use crate::setup;
use crate::terminal::note;
use crate::workspace::{self, root};

/// The file that makes a pack count, written last.
const COMPLETE: &str = ".complete";

/// What starts a task on a node: the folder of the run, the batch, the place in it; or all, the folder and its backends.
const SCRIPT: &str = "#!/bin/sh
# Runs one task:                       sh task.sh FOLDER BATCH PLACE
# Runs all that have no result yet:    sh task.sh FOLDER [--hw HW]...
set -eu
folder=$(cd \"$1\" && pwd)
shift
set -- \"$folder\" \"$@\"
export WEFT_GOLDENS=\"$1/pack/tests/goldens\" WEFT_CACHE=\"$1/pack/cache\" CARGO_MANIFEST_DIR=\"$1/pack/xtask\"
export LD_LIBRARY_PATH=\"$1/pack/bin${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\"
exec \"$1/pack/bin/xtask\" farm-task \"$@\"
";

/// Builds and packs, once.
pub fn pack(folder: &Folder) -> Result<()> {
    let pack = folder.pack();
    if pack.join(COMPLETE).exists() {
        note("packed already");
        return Ok(());
    }
    let plan = folder.plan();
    let models: BTreeSet<_> = plan.tasks.iter().flat_map(|task| task.models.clone()).collect();
    let models: Vec<_> = models.into_iter().collect();
    let hardware: Vec<_> = Hardware::ALL
        .into_iter()
        .filter(|hardware| plan.tasks.iter().any(|task| task.backend == hardware.name()))
        .collect();
    let members = workspace::select(root(), &[], &models)?;
    note(format!("building the tests of {} model(s) …", members.len()));
    let built = binaries::build(&members, Profile::Dev)?;

    note("packing");
    let bin = pack.join("bin");
    fs::create_dir_all(&bin).with_context(|| format!("creating {}", bin.display()))?;
    for member in &members {
        if let Some(binary) = built.get(&member.package) {
            copy(binary, &bin.join(format!("{}{}", member.model, std::env::consts::EXE_SUFFIX)))?;
        }
        for cases in ["tests/goldens", "tests/goldens/gguf"] {
            tree(&root().join(cases).join(&member.model), &pack.join(cases).join(&member.model))?;
        }
    }
    for shared in built.values().next().map(|binary| binaries::shared(binary)).into_iter().flatten() {
        let name = shared.file_name().context("a library has a name")?;
        copy(&shared, &bin.join(name))?;
    }
    copy(&std::env::current_exe().context("finding this program")?, &worker(&pack))?;
    for entry in fs::read_dir(root().join("tests/goldens"))?.flatten().filter(|entry| entry.path().is_file())
    {
        copy(&entry.path(), &pack.join("tests/goldens").join(entry.file_name()))?;
    }
    tree(&root().join("tests/known_failures"), &pack.join("tests/known_failures"))?;
    for installed in setup::ensure(&hardware)? {
        let from = installed.path.context("a package that is there has a folder")?;
        let name = from.file_name().context("a package's folder has a name")?;
        tree(&from, &pack.join("cache/packages").join(name))?;
    }
    fs::write(folder.path().join("task.sh"), SCRIPT)?;
    fs::write(pack.join(COMPLETE), "").with_context(|| format!("writing to {}", pack.display()))
}

/// A folder with all that is in it.
fn tree(from: &Path, to: &Path) -> Result<()> {
    if !from.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(to).with_context(|| format!("creating {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("listing {}", from.display()))? {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        if path.is_dir() { tree(&path, &to.join(name))? } else { copy(&path, &to.join(name))? }
    }
    Ok(())
}

/// A link where both are on one disk: what is packed is replaced by builds, and never written to.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent).with_context(|| format!("creating {}", parent.display()))?;
    }
    let _ = fs::remove_file(to);
    let from = fs::canonicalize(from).with_context(|| format!("reading {}", from.display()))?;
    if fs::hard_link(&from, to).is_err() {
        fs::copy(&from, to).with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
    }
    Ok(())
}
