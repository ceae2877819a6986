//! `--bisect MODEL`: which module of the reference a graph is the first to depart from.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use weft_generator::spec::hardware::Hardware;

use crate::binaries::{self, Profile};
use crate::record;
use crate::terminal::{interrupted, note, say};
use crate::workspace::{self, Member};
use crate::{doctor, reference};

/// What the reference's modules give for a case.
const FILE: &str = "intermediates.safetensors";

/// Lets the reference write what its modules give, and holds the graph against it; whether nothing departs.
pub fn run(
    model: &str,
    filter: Option<&str>,
    hardware: &[Hardware],
    precision: Option<&str>,
) -> Result<bool> {
    let members = workspace::select(workspace::root(), &[], &[model.to_owned()])?;
    let member = members.first().context("no such crate")?;
    let dir = workspace::target_dir().join("weft-bisect");
    note(format!("asking the reference what the modules of {model} give …"));
    intermediates(member, filter, &dir)?;
    let cases = cases(&dir.join(&member.model))?;
    if cases.is_empty() {
        bail!(
            "{model} has no golden{}",
            filter.map(|text| format!(" whose name contains `{text}`")).unwrap_or_default()
        );
    }
    let binary = binaries::build_one(member, Profile::Dev)?;
    let goldens = workspace::root().join("tests/goldens").join(&member.model);
    let mut good = true;
    for &hardware in hardware {
        for case in &cases {
            if interrupted() {
                return Ok(false);
            }
            let name = case.file_name().unwrap_or_default();
            let output = binaries::command(&binary)
                .arg("--bisect")
                .arg(goldens.join(name))
                .arg("--intermediates")
                .arg(case.join(FILE))
                .args(["--hw", hardware.name()])
                .args(precision.iter().flat_map(|precision| ["--precision", precision]))
                .envs(doctor::environment(hardware))
                .output()
                .with_context(|| format!("starting {}", binary.display()))?;
            good &= output.status.success();
            let text = [output.stdout, output.stderr].concat();
            say(format!("{hardware} {}", record::without_home(String::from_utf8_lossy(&text).trim_end())))?;
        }
    }
    Ok(good)
}

/// Makes the files afresh: those of other cases would be looked at too.
fn intermediates(member: &Member, filter: Option<&str>, dir: &Path) -> Result<()> {
    let own = dir.join(&member.model);
    if own.exists() {
        std::fs::remove_dir_all(&own).with_context(|| format!("emptying {}", own.display()))?;
    }
    let mut command = reference::with_diffusers(&reference::python(None)?)?;
    command.args(["-m", "weft_reference", "--model", &member.model, "--intermediate"]).arg(dir);
    // A scratch folder for the goldens: looking into them leaves the committed ones as they are.
    command.arg("--out").arg(dir.join("goldens"));
    if let Some(filter) = filter {
        command.args(["--case", filter]);
    }
    let output = command.output().context("starting the reference's Python")?;
    if !output.status.success() {
        bail!("the reference did not finish: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// The folders that hold what modules give.
fn cases(dir: &Path) -> Result<Vec<PathBuf>> {
    if !dir.is_dir() {
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(dir).with_context(|| format!("listing {}", dir.display()))?;
    let mut cases = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    cases.retain(|case| case.join(FILE).is_file());
    cases.sort();
    Ok(cases)
}
