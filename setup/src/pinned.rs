//! What is pinned in this release.

use anyhow::{Context, Result};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::packages::Package;
use crate::pins::{BACKENDS, PACKAGES};

/// The packages of this release, and which of them each backend needs.
#[derive(Debug, Serialize, Deserialize)]
pub struct Pins {
    /// Names of packages by backend, without those that are fetched only when asked for.
    pub backends: IndexMap<String, Vec<String>>,
    /// The packages, backends' own first.
    pub packages: Vec<Package>,
}

impl Pins {
    /// The pins that were compiled in.
    ///
    /// # Errors
    /// None, unless the generator and this crate are of two releases.
    pub fn of_this_release() -> Result<Self> {
        let read = || {
            let backends = serde_json::from_str(BACKENDS)?;
            let packages = PACKAGES.iter().map(|list| serde_json::from_str::<Vec<Package>>(list));
            let packages = packages.collect::<serde_json::Result<Vec<_>>>()?.concat();
            Ok::<_, serde_json::Error>(Self { backends, packages })
        };
        read().context("the pins that were compiled in cannot be read")
    }

    /// The package of that name.
    pub fn package(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }

    /// The packages that backends need, each once.
    pub fn needed_by<'a>(&self, backends: impl IntoIterator<Item = &'a str>) -> Vec<&Package> {
        let names = backends.into_iter().filter_map(|backend| self.backends.get(backend)).flatten();
        let mut wanted: Vec<&Package> = Vec::new();
        for package in names.filter_map(|name| self.package(name)) {
            if !wanted.iter().any(|other| other.name == package.name) {
                wanted.push(package);
            }
        }
        wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backends_share_packages() {
        let pins = Pins::of_this_release().unwrap();
        assert_eq!(pins.backends.len(), 8);
        let names: Vec<_> =
            pins.needed_by(["cpu", "qnn"]).iter().map(|package| package.name.as_str()).collect();
        assert_eq!(names, ["onnxruntime", "onnxruntime-qnn"]);
        assert!(pins.backends.values().flatten().all(|name| pins.package(name).is_some()));
    }
}
