//! `weft setup`: the runtime libraries of backends, fetched into the cache folder.

use std::fmt::Display;

use serde_json::json;
use weft::{Error, Hardware, Result};
use weft_setup::packages::{Package, Platform};
use weft_setup::{Cache, Pins, Watch, install};

use crate::options;
use crate::terminal::{bad_input, note, say};

/// Fetches the runtime libraries of backends, with the machine's own pip or npm, into the cache folder.
///
/// Every file is pinned by name, version and SHA-256. What is there already is not fetched again, so a second run needs
/// no network. Models run without Python: pip and npm are used for downloading alone.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example: weft setup --hw cpu --hw openvino\n\n\
    WEFT_CACHE names another cache folder, WEFT_PYTHON the Python whose pip is used.")]
pub struct Args {
    /// The backend to set up; several may be given. Without any: cpu
    #[arg(long = "hw", value_name = "HW", value_parser = options::hardware())]
    hardware: Vec<Hardware>,
    /// Fetch for another platform, to be copied there.
    #[arg(long, value_parser = Platform::ALL.map(Platform::name))]
    platform: Option<String>,
    /// Fetch again what is there already.
    #[arg(long)]
    force: bool,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// Runs the verb; false when a package could not be had.
pub fn run(args: &Args) -> Result<bool> {
    let platform = match &args.platform {
        Some(name) => Platform::from_name(name),
        None => Platform::host(),
    };
    let platform = platform.ok_or_else(|| {
        let (os, processor) = (std::env::consts::OS, std::env::consts::ARCH);
        let known = Platform::ALL.map(Platform::name).join(", ");
        let help = "build ONNX Runtime yourself and name it in ORT_DYLIB_PATH";
        bad_input(
            "platform",
            format!("no packages are pinned for {os} on {processor}: they are for {known}"),
            help,
        )
    })?;
    let pins = Pins::of_this_release().map_err(failed)?;
    let asked = if args.hardware.is_empty() { &[Hardware::Cpu][..] } else { &args.hardware };
    if asked.contains(&Hardware::Auto) {
        return Err(bad_input("--hw", "auto is no backend of its own", "name those to choose from"));
    }
    let wanted: Vec<&Package> = pins.needed_by(asked.iter().map(|hardware| hardware.name()));
    let cache = Cache::open(platform).map_err(failed)?;
    let done = install(&cache, platform, &wanted, args.force, &Lines);
    if args.json {
        let document = json!({ "platform": platform, "cache": cache.packages(), "packages": done });
        say(format!("{document:#}"));
    } else {
        done.iter().for_each(|one| say(one.to_string()));
    }
    Ok(done.iter().all(|one| one.library.is_some()))
}

/// Progress as lines on standard error.
struct Lines;

impl Watch for Lines {
    fn begin(&self, _packages: usize) {}

    fn line(&self, text: &str) {
        note(text);
    }

    fn step(&self, _package: &str) {}

    fn stopped(&self) -> bool {
        false
    }
}

fn failed(error: impl Display) -> Error {
    bad_input("setup", format!("{error:#}"), "mend that, then run it again")
}
