//! Starting what is measured: the generated crate, and its peers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::super::peer::Served;
use super::rows::{self, PYTORCH, Work};
use crate::terminal::note;
use crate::workspace::{cargo, root, target_dir};
use crate::{binaries, reference, setup};

/// The package that carries llama.cpp.
const LLAMA_CPP_PACKAGE: &str = "@node-llama-cpp/linux-x64";

fn folder() -> PathBuf {
    root().join("tests/peers")
}

fn python_command(python: &Path, script: &str) -> Result<Command> {
    let mut command = reference::with_diffusers(python)?;
    command.current_dir(folder()).arg(script);
    Ok(command)
}

/// The work's checkpoint and inputs; made once.
pub fn checkpoint(python: &Path, work: &Work) -> Result<PathBuf> {
    let dir = target_dir().join("weft-bench/speed").join(work.name);
    if !dir.is_dir() {
        note(format!("making {} with random weights in {}", work.title, dir.display()));
        // Made beside and moved, so that a half-written one is never taken for whole.
        let partial = dir.with_extension("partial");
        if partial.exists() {
            fs::remove_dir_all(&partial)?;
        }
        let mut command = python_command(python, "checkpoints.py")?;
        let made = command.arg(work.name).arg("--out").arg(&partial).status();
        if !made.context("starting the reference's Python")?.success() {
            bail!("the checkpoint could not be made: what Python says is above");
        }
        fs::rename(&partial, &dir)?;
    }
    let quantized = work.peers.iter().filter_map(|peer| rows::gguf(peer.name())).chain(work.gguf);
    for file in quantized.filter(|file| file.starts_with("model-q") && !dir.join(file).is_file()) {
        note(format!("quantizing {} to {file}", work.title));
        let made = llama_cpp(python, file)?.arg(&dir).arg("--quantize").status();
        if !made.context("starting the reference's Python")?.success() {
            bail!("{file} could not be made: what Python says is above");
        }
    }
    Ok(dir)
}

/// The generated crate.
pub fn weft(binary: &Path, checkpoint: &Path, work: &Work, threads: usize) -> Result<Served> {
    let mut command = binaries::command(binary);
    let opened = work.gguf.map_or_else(|| checkpoint.to_owned(), |file| checkpoint.join(file));
    command.arg("--bench").arg(opened).args(["--serve", "stdin", "--hw", "cpu", "--json"]);
    command.arg("--inputs").arg(checkpoint.join("inputs.safetensors"));
    command.args(["--threads", &threads.to_string()]);
    if let Some(precision) = work.precision {
        command.args(["--precision", precision.name]);
    }
    if work.tokens > 0 {
        command.args(["--generate", &work.tokens.to_string()]);
    }
    Served::ready(command)
}

/// A peer of the work, by its name.
pub fn peer(name: &str, python: &Path, checkpoint: &Path, work: &Work, threads: usize) -> Result<Served> {
    let mut command = match (name, rows::gguf(name)) {
        (PYTORCH, _) => python_command(python, "torch_peer.py")?,
        (_, Some(file)) => llama_cpp(python, file)?,
        _ => return Served::ready(candle(checkpoint, work, threads)?),
    };
    command.arg(checkpoint).args(["--threads", &threads.to_string()]);
    command.args(["--generate", &work.tokens.to_string()]);
    let said = target_dir().join("weft-bench").join(format!("{}.log", name.replace(' ', "-")));
    command.stderr(fs::File::create(&said).with_context(|| format!("writing {}", said.display()))?);
    Served::ready(command).with_context(|| format!("what {name} says is in {}", said.display()))
}

/// What the machine does at most.
pub fn machine(python: &Path, threads: usize) -> Result<Served> {
    let mut command = python_command(python, "machine.py")?;
    command.args(["--threads", &threads.to_string()]);
    Served::ready(command)
}

/// llama.cpp over this file of the checkpoint.
fn llama_cpp(python: &Path, file: &str) -> Result<Command> {
    let library = setup::ensure_package(LLAMA_CPP_PACKAGE)?;
    let mut command = python_command(python, "llama_cpp.py")?;
    command.arg("--library").arg(library).args(["--file", file]);
    Ok(command)
}

/// candle's own program, built for this processor.
fn candle(checkpoint: &Path, work: &Work, threads: usize) -> Result<Command> {
    let target = target_dir().join("weft-bench/candle");
    if !target.is_dir() {
        note("building candle: some minutes");
    }
    let built = cargo()
        .args(["build", "--quiet", "--release", "--locked", "--manifest-path"])
        .arg(folder().join("candle/Cargo.toml"))
        .env("CARGO_TARGET_DIR", &target)
        .env("RUSTFLAGS", "-C target-cpu=native")
        .stdin(Stdio::null())
        .status();
    if !built.context("starting cargo")?.success() {
        bail!("candle could not be built: what cargo says is above");
    }
    let mut command = Command::new(target.join("release/weft-peer-candle"));
    command.arg(checkpoint).arg(work.tokens.to_string());
    command.env("RAYON_NUM_THREADS", threads.to_string());
    Ok(command)
}
