//! How long a further generated crate takes to build with its test binary, when all that it stands on is built.

use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde::Serialize;

use super::table::median;
use crate::binaries::{self, Profile};
use crate::workspace::{Member, cargo};

/// Builds that are timed.
const BUILDS: usize = 5;

/// The library and the test binary of one crate, from cargo's start to its end, in the profile that tests run in.
#[derive(Debug, Default, Serialize)]
pub struct Building {
    /// The median.
    pub crate_ms: f64,
    pub each_ms: Vec<f64>,
}

/// Builds the crate again and again; what it stands on stays built.
pub fn measure(member: &Member) -> Result<Building> {
    binaries::build_one(member, Profile::Dev)?;
    let mut each_ms = Vec::with_capacity(BUILDS);
    for _ in 0..BUILDS {
        forget(member)?;
        let start = Instant::now();
        binaries::build_one(member, Profile::Dev)?;
        each_ms.push(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(Building { crate_ms: median(&each_ms), each_ms })
}

/// Removes what was built of this crate alone, so that nothing of it is taken from an earlier build.
fn forget(member: &Member) -> Result<()> {
    let cleaned = cargo().args(["clean", "--quiet", "--package", &member.package]).status();
    let status = cleaned.context("starting cargo: is it on the PATH?")?;
    if !status.success() {
        bail!("cargo could not clean {} ({status}): what it says is above", member.package);
    }
    Ok(())
}
