//! `cargo xtask reference`: remakes the goldens with the pinned Python packages, in an environment of its own.

use std::collections::BTreeSet;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};
use weft_generator::spec::fields::ReferenceFields;

use crate::generate;
use crate::setup;
use crate::specs::{Catalog, model_types};
use crate::terminal::{Usage, note};
use crate::workspace::{self, root};

/// Remake the goldens in tests/goldens with the reference implementation.
///
/// Needs Python 3.11 or newer. The pinned packages of tests/reference/requirements.txt are installed once, into the
/// cache folder; PyTorch makes that a download of some gigabytes. A golden that says the same is left alone.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// A model family; several may be given. Without any: all
    #[arg(long = "model", value_name = "M")]
    models: Vec<String>,
    /// Only goldens whose path contains this text; several may be given
    #[arg(long = "case", value_name = "TEXT")]
    cases: Vec<String>,
    /// Write nothing, tell which goldens are not as made, and exit with 1 when there are any
    #[arg(long)]
    check: bool,
    /// In place of goldens, compare the fields of `config.json` that the reference reads with those that the specs read,
    /// refuse or list as without effect, and keep the reference's in tests/goldens/fields.json
    #[arg(long, conflicts_with_all = ["cases", "jobs", "again", "intermediate"])]
    fields: bool,
    /// Families made at a time; by default as many as there are cores
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Also remake families whose sources and goldens have not changed since they were made here
    #[arg(long)]
    again: bool,
    /// Also write what every module of the reference gives, into DIR/<case>/intermediates.safetensors
    #[arg(long, value_name = "DIR")]
    intermediate: Option<PathBuf>,
    /// A Python that has the pinned packages already; none is installed then
    #[arg(long, value_name = "PATH", env = PYTHON)]
    python: Option<PathBuf>,
}

/// Names a Python that has the pinned packages.
pub const PYTHON: &str = "WEFT_REFERENCE_PYTHON";

/// The verb; false when `--check` found a difference.
pub fn run(args: &Args) -> Result<bool> {
    if args.fields {
        return fields(args);
    }
    let mut command = with_diffusers(&python(args.python.as_deref())?)?;
    command.args(["-m", "weft_reference"]);
    for model in &args.models {
        command.args(["--model", model]);
    }
    for case in &args.cases {
        command.args(["--case", case]);
    }
    if args.check {
        command.arg("--check");
    }
    if let Some(jobs) = args.jobs {
        command.args(["--jobs", &jobs.to_string()]);
    }
    if !args.again {
        command.arg("--stamps").arg(workspace::target_dir().join("weft-reference.json"));
    }
    if let Some(folder) = &args.intermediate {
        command.arg("--intermediate").arg(std::path::absolute(folder)?);
    }
    let status = command.status().with_context(|| format!("starting {}", command.get_program().display()))?;
    match status.code() {
        Some(0) => Ok(true),
        Some(1) if args.check => Ok(false),
        Some(2) => Err(Usage("the reference knows no such goldens (see above)".into()).into()),
        _ => bail!("the reference did not finish ({status}); what it says is above"),
    }
}

/// Compares what the reference reads of `config.json` with what the specs say; false where they or the kept list differ.
fn fields(args: &Args) -> Result<bool> {
    let catalog = Catalog::load()?;
    let chosen = |name: &String| args.models.is_empty() || args.models.contains(name);
    let specs = catalog.models.iter().filter(|(name, _)| chosen(name)).map(|(_, spec)| spec);
    let types: BTreeSet<_> = specs.filter_map(|spec| model_types(spec).next()).collect();
    let mut command = with_diffusers(&python(args.python.as_deref())?)?;
    let output = command.args(["-m", "weft_reference.fields"]).args(types).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("starting {}", command.get_program().display()))?;
    if !output.status.success() {
        bail!("the reference did not finish ({}); what it says is above", output.status);
    }
    let mut reference: ReferenceFields = serde_json::from_slice(&output.stdout)
        .context("what the reference says of its fields is not understood")?;
    let kept = root().join("tests/goldens/fields.json");
    let known = fs::read_to_string(&kept).unwrap_or_default();
    // What is not asked again stays as it was, if it is the same release's.
    if let Ok(all) = serde_json::from_str::<ReferenceFields>(&known)
        && !args.models.is_empty()
        && all.transformers == reference.transformers
    {
        reference = all.with(reference);
    }
    let text = reference.text()?;
    let same = known == text;
    if !same && !args.check {
        fs::write(&kept, text).with_context(|| format!("writing {}", kept.display()))?;
    }
    if !same {
        note(format!("{}: {}", kept.display(), if args.check { "is not as made" } else { "is made again" }));
    }
    let unlisted = generate::unlisted_fields(&args.models, &reference)?;
    for problem in &unlisted {
        note(problem);
    }
    note(match unlisted.len() {
        0 => "every field that the reference reads is read, refused or listed".to_owned(),
        count => format!("{count} fields are neither read nor listed, or listed without need"),
    });
    Ok(unlisted.is_empty() && (same || !args.check))
}

/// The folder of the Python that makes goldens and measures peers.
pub fn folder() -> PathBuf {
    root().join("tests/reference")
}

/// A Python command in that folder, which leaves no compiled files there.
pub fn command(python: &Path) -> Command {
    let mut command = Command::new(python);
    command.current_dir(folder()).env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONHASHSEED", "0");
    command
}

/// A Python command that finds `diffusers` and `open_clip` too, and `weft_reference` from any folder: what
/// tests/reference/requirements-diffusion.txt pins lies in a folder of its own in the cache, over the environment of all else,
/// so that neither makes the other again.
pub fn with_diffusers(python: &Path) -> Result<Command> {
    let requirements = folder().join("requirements-diffusion.txt");
    let pins = fs::read(&requirements).with_context(|| format!("reading {}", requirements.display()))?;
    let packages = setup::cache_folder()?.join("reference-diffusion").join(fingerprint(&pins));
    let complete = packages.join(".complete");
    if !complete.is_file() {
        note(format!("installing {} into {}", requirements.display(), packages.display()));
        let mut pip = Command::new(python);
        pip.args([
            "-m",
            "pip",
            "install",
            "--disable-pip-version-check",
            "--no-deps",
            "--upgrade",
            "--target",
        ]);
        pip.arg(&packages).arg("--requirement").arg(&requirements).stdout(Stdio::null());
        if !pip.status().with_context(|| format!("starting {}", python.display()))?.success() {
            bail!(
                "pip could not install {} (what it says is above); the next run tries again",
                requirements.display()
            );
        }
        fs::write(&complete, &pins).with_context(|| format!("writing {}", complete.display()))?;
    }
    let mut command = command(python);
    let others = std::env::var_os("PYTHONPATH").unwrap_or_default();
    let paths = [packages, folder()].into_iter().chain(std::env::split_paths(&others));
    command.env("PYTHONPATH", std::env::join_paths(paths).context("joining PYTHONPATH")?);
    Ok(command)
}

/// The Python with the pinned packages: the one that was named, else the environment in the cache, made on first use.
pub fn python(named: Option<&Path>) -> Result<PathBuf> {
    let named = named.map(Path::to_path_buf).or_else(|| std::env::var_os(PYTHON).map(PathBuf::from));
    if let Some(python) = named {
        return located(&python);
    }
    let requirements = folder().join("requirements.txt");
    let pins = fs::read(&requirements).with_context(|| format!("reading {}", requirements.display()))?;
    let environment = setup::cache_folder()?.join("reference").join(fingerprint(&pins));
    let python = environment.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    let complete = environment.join(".complete");
    if !complete.is_file() {
        make_environment(&environment, &python, &requirements)?;
        fs::write(&complete, &pins).with_context(|| format!("writing {}", complete.display()))?;
    }
    Ok(python)
}

/// A path as the shell would take it, so that it holds in another folder; a bare name is left to the search path.
fn located(python: &Path) -> Result<PathBuf> {
    if python.components().count() == 1 {
        return Ok(python.to_path_buf());
    }
    if !python.is_file() {
        return Err(Usage(format!("there is no Python at {}", python.display())).into());
    }
    Ok(std::path::absolute(python)?)
}

/// Names an environment by what is installed in it.
fn fingerprint(pins: &[u8]) -> String {
    Sha256::digest(pins).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn make_environment(environment: &Path, python: &Path, requirements: &Path) -> Result<()> {
    if environment.exists() {
        fs::remove_dir_all(environment).with_context(|| {
            format!("removing the unfinished environment {}: remove it yourself", environment.display())
        })?;
    }
    let base = base_python()?;
    note(format!("making the reference's Python environment in {}", environment.display()));
    let made = base.command().args(["-m", "venv"]).arg(environment).stdout(Stdio::null()).status();
    if !made.with_context(|| format!("starting {}", base.name()))?.success() {
        bail!(
            "{} could not make a virtual environment (what it says is above); on Debian and Ubuntu install it with \
             `apt install python3-venv`, or name a Python with the packages of {} in --python",
            base.name(),
            requirements.display()
        );
    }
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--disable-pip-version-check", "--requirement"]).arg(requirements);
    if !pip.status().with_context(|| format!("starting {}", python.display()))?.success() {
        bail!(
            "pip could not install {} (what it says is above); the next run tries again, and --python takes a Python \
             that has the packages already",
            requirements.display()
        );
    }
    Ok(())
}

/// A command line that starts some Python of this machine.
struct Base(Vec<std::ffi::OsString>);

impl Base {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.0[0]);
        command.args(&self.0[1..]);
        command
    }

    fn name(&self) -> String {
        self.0.join(" ".as_ref()).to_string_lossy().into_owned()
    }
}

const OLDEST: (u32, u32) = (3, 11);

/// The first Python that is new enough.
fn base_python() -> Result<Base> {
    let mut too_old = Vec::new();
    for words in setup::pythons(std::env::var_os("WEFT_PYTHON")) {
        let base = Base(words);
        let asked = base
            .command()
            .args(["-c", "import sys; print(*sys.version_info[:2])"])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output();
        let Some(version) = asked.ok().and_then(|output| version(&output.stdout)) else { continue };
        if version >= OLDEST {
            return Ok(base);
        }
        too_old.push(format!("{} is {}.{}", base.name(), version.0, version.1));
    }
    let found = if too_old.is_empty() { "none was found".into() } else { too_old.join(", ") };
    bail!(
        "the reference needs Python {}.{} or newer, and {found}: install one, or name one in WEFT_PYTHON",
        OLDEST.0,
        OLDEST.1
    )
}

fn version(printed: &[u8]) -> Option<(u32, u32)> {
    let text = std::str::from_utf8(printed).ok()?;
    let mut numbers = text.split_whitespace().map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_is_named_by_its_pins() {
        assert_eq!(fingerprint(b"torch==2.15.0\n"), fingerprint(b"torch==2.15.0\n"));
        assert_ne!(fingerprint(b"torch==2.15.0\n"), fingerprint(b"torch==2.15.1\n"));
        assert_eq!(fingerprint(b"").len(), 16);
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(version(b"3 11\n"), Some((3, 11)));
        assert!(version(b"3 9\n") < Some(OLDEST));
        assert_eq!(version(b""), None);
    }

    #[test]
    fn a_named_python_must_be_there() {
        assert_eq!(located(Path::new("python3.12")).unwrap(), Path::new("python3.12"));
        let error = located(Path::new("no/such/python")).unwrap_err();
        assert!(error.is::<Usage>() && error.to_string().contains("no/such/python"), "{error}");
    }
}
