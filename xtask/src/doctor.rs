//! `cargo xtask doctor`: what this machine can run, and what is missing.

mod choices;
mod device;
mod graphics;
mod loading;
mod machine;

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use serde::Serialize;
use weft_generator::spec::hardware::{EvidenceLevel, Hardware, HardwareSpec, HardwareSpecs};
use weft_generator::spec::packages::{Package, Platform};

use crate::setup::Cache;
use crate::terminal;
use crate::workspace::root;
use device::{Device, Finding};
use machine::Machine;

/// Show which backends this machine can run, what was found, and what is missing.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Also build a generated crate's tests, and let them load each engine: what it says of itself and its devices, and what
    /// `Hardware::Auto` makes of these
    #[arg(long)]
    load: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// Everything found.
#[derive(Debug, Serialize)]
struct Report {
    platform: Option<Platform>,
    processor: String,
    cores: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_mb: Option<u64>,
    cache: Option<PathBuf>,
    tools: Vec<Tool>,
    backends: Vec<Backend>,
}

/// A program that Weft calls.
#[derive(Debug, Serialize)]
struct Tool {
    name: &'static str,
    version: Option<String>,
    purpose: &'static str,
}

/// What was found for one backend.
#[derive(Debug, Serialize)]
struct Backend {
    hardware: Hardware,
    state: State,
    libraries: Vec<Library>,
    devices: Vec<Device>,
    /// What is not there, each with the way to get it.
    missing: Vec<String>,
    /// Worth knowing; nothing is missing.
    notes: Vec<String>,
    /// What its engine says, loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    loaded: Option<loading::Loaded>,
}

/// Whether a backend can run here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    /// On its hardware.
    Ready,
    /// On an emulator or a software device.
    Emulated,
    /// As soon as its packages are set up.
    SetupNeeded,
    /// Not without something this machine lacks.
    Unavailable,
}

/// A package of a backend.
#[derive(Debug, Serialize)]
struct Library {
    name: String,
    version: String,
    path: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<String>,
}

/// What a process needs in its environment to run a backend on this machine.
pub fn environment(hardware: Hardware) -> Vec<(&'static str, OsString)> {
    match hardware {
        Hardware::Webgpu => graphics::environment(&Machine::this()),
        _ => vec![],
    }
}

/// The verb; it reports, so what is missing is no failure.
pub fn run(args: &Args) -> Result<bool> {
    let specs = HardwareSpecs::load(&root().join("model_specs"))?;
    let machine = Machine::this();
    let mut report = examine(&machine, &specs);
    if args.load {
        let binary = loading::binary()?;
        for backend in &mut report.backends {
            let loaded = loading::load(&binary, backend.hardware);
            if loaded.engine.is_none() {
                backend.state = State::Unavailable;
            }
            backend.loaded = Some(loaded);
        }
    }
    if args.json {
        terminal::say(serde_json::to_string_pretty(&report)?)?;
    } else {
        terminal::say(text(&report))?;
    }
    Ok(true)
}

fn examine(machine: &Machine, specs: &HardwareSpecs) -> Report {
    let platform = Platform::host();
    let cache = platform.and_then(|platform| Cache::open(platform).ok());
    let backends = specs
        .iter()
        .map(|spec| {
            let packages = specs.packages(spec.hardware);
            let libraries: Vec<_> = packages
                .into_iter()
                .filter(|package| !package.optional)
                .map(|package| library(package, spec, platform, cache.as_ref()))
                .collect();
            let at = |name: &str| libraries.iter().find(|l| l.name == name).and_then(|l| l.path.clone());
            let finding = device::find(machine, spec.hardware, &at);
            backend(spec, libraries, finding)
        })
        .collect();
    Report {
        platform,
        processor: machine.processor(),
        cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        memory_mb: machine.memory_mb(),
        cache: cache.map(|cache| cache.packages().to_owned()),
        tools: tools(),
        backends,
    }
}

fn backend(spec: &HardwareSpec, libraries: Vec<Library>, finding: Finding) -> Backend {
    let set_up = libraries.iter().all(|library| library.path.is_some());
    let real = finding.devices.iter().any(|device| device.evidence == EvidenceLevel::Device);
    let state = match (finding.devices.is_empty() || !finding.missing.is_empty(), set_up) {
        (true, _) => State::Unavailable,
        (false, false) => State::SetupNeeded,
        (false, true) if real => State::Ready,
        (false, true) => State::Emulated,
    };
    Backend {
        hardware: spec.hardware,
        state,
        libraries,
        devices: finding.devices,
        missing: finding.missing,
        notes: finding.notes,
        loaded: None,
    }
}

fn library(
    package: &Package,
    spec: &HardwareSpec,
    platform: Option<Platform>,
    cache: Option<&Cache>,
) -> Library {
    let (name, version) = (package.name.clone(), package.version.clone());
    let named =
        std::env::var_os("ORT_DYLIB_PATH").map(PathBuf::from).filter(|path| !path.as_os_str().is_empty());
    if let Some(path) = named.filter(|_| name == "onnxruntime") {
        let missing =
            (!path.is_file()).then(|| format!("ORT_DYLIB_PATH is {}, which is no file", path.display()));
        let version = "as named in ORT_DYLIB_PATH".to_owned();
        return Library { name, version, path: missing.is_none().then_some(path), missing };
    }
    let none = |missing: String| Library {
        name: name.clone(),
        version: version.clone(),
        path: None,
        missing: Some(missing),
    };
    let (Some(platform), Some(cache)) = (platform, cache) else {
        return none("no packages are pinned for this platform".to_owned());
    };
    match package.artifact(platform) {
        Err(reason) => none(format!("none for this platform: {reason}")),
        Ok(artifact) if cache.has(&artifact) => Library {
            path: Some(cache.folder(&artifact).join(artifact.library)),
            missing: None,
            name,
            version,
        },
        Ok(artifact) if cache.folder(&artifact).exists() => {
            none(format!("not whole, or another release: run `{}`", spec.install))
        }
        Ok(_) => none(format!("not set up: run `{}`", spec.install)),
    }
}

fn tools() -> Vec<Tool> {
    let tool = |name, purpose, command: &[&str]| Tool { name, version: machine::version(command), purpose };
    let python = std::env::var("WEFT_PYTHON").ok().filter(|python| !python.is_empty());
    let python = python.as_deref().unwrap_or(if cfg!(windows) { "python" } else { "python3" });
    vec![
        tool("rustc", "builds everything", &["rustc", "--version"]),
        tool("python", "runs pip; makes goldens", &[python, "--version"]),
        tool("pip", "downloads runtime packages", &[python, "-m", "pip", "--version"]),
        tool("node", "runs npm", &["node", "--version"]),
        tool(
            "npm",
            "downloads the packages for browsers",
            if cfg!(windows) { &["cmd", "/C", "npm", "--version"] } else { &["npm", "--version"] },
        ),
    ]
}

fn text(report: &Report) -> String {
    let mut lines = Vec::new();
    let platform = report.platform.map_or("unknown platform", Platform::name);
    let memory = report.memory_mb.map(|mb| format!(", {:.1} GB", mb as f64 / 1000.0)).unwrap_or_default();
    lines.push(format!("machine   {platform}, {}, {} cores{memory}", report.processor, report.cores));
    if let Some(cache) = &report.cache {
        lines.push(format!("cache     {}", cache.display()));
    }
    for tool in &report.tools {
        let version = tool.version.clone().unwrap_or_else(|| format!("not found; it {}", tool.purpose));
        lines.push(format!("{:<10}{version}", tool.name));
    }
    for backend in &report.backends {
        lines.push(String::new());
        let state = match backend.state {
            State::Ready => "ready",
            State::Emulated => "ready, on an emulator or software device",
            State::SetupNeeded => "set up needed",
            State::Unavailable => "not on this machine",
        };
        lines.push(format!("{:<10}{state}", backend.hardware.name()));
        if let Some(loaded) = &backend.loaded {
            lines.push(format!("          {loaded}"));
        }
        for device in &backend.devices {
            lines.push(format!("          {device}"));
        }
        for missing in &backend.missing {
            lines.push(format!("          missing: {missing}"));
        }
        for note in &backend.notes {
            lines.push(format!("          {note}"));
        }
        for library in &backend.libraries {
            let place = match (&library.path, &library.missing) {
                (Some(path), _) => path.display().to_string(),
                (None, missing) => missing.clone().unwrap_or_default(),
            };
            lines.push(format!("          {} {}: {place}", library.name, library.version));
        }
    }
    lines.push(String::new());
    lines.push(choices::text(&report.backends));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_machine_gets_an_answer_for_every_backend() {
        let dir = tempfile::tempdir().unwrap();
        let specs = HardwareSpecs::load(&root().join("model_specs")).unwrap();
        let report = examine(&Machine::at(dir.path(), "linux", "x86_64"), &specs);
        assert_eq!(report.backends.len(), 8);
        for backend in &report.backends {
            let said = !backend.devices.is_empty() || !backend.missing.is_empty();
            assert!(said, "{} has neither a device nor a reason", backend.hardware);
        }
        let cuda = report.backends.iter().find(|backend| backend.hardware == Hardware::Cuda).unwrap();
        assert_eq!(cuda.state, State::Unavailable);
        assert!(text(&report).contains("missing: an NVIDIA GPU"), "{}", text(&report));
    }
}
