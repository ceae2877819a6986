//! The pins of all packages, for programs that have no specs beside them.

use indexmap::IndexMap;
use serde_json::json;

use crate::spec::hardware::HardwareSpecs;
use crate::spec::packages::{Package, Packages};

/// The module: which packages each backend needs, and each package with its file by platform.
pub fn render(specs: &HardwareSpecs, others: &Packages) -> String {
    let needed = |package: &&Package| !package.optional;
    let backends: IndexMap<_, Vec<_>> = specs
        .iter()
        .map(|spec| {
            let packages = specs.packages(spec.hardware).into_iter().filter(needed);
            (spec.hardware.name(), packages.map(|package| package.name.as_str()).collect())
        })
        .collect();
    let packages: Vec<_> = specs.iter().flat_map(|spec| &spec.packages).chain(&others.packages).collect();
    let pins = json!({ "backends": backends, "packages": packages });
    format!(
        "//! The pins of this release.\n\n/// What [`crate::Pins`] reads, as JSON.\npub const PINS: &str = r##\"{pins:#}\"##;\n"
    )
}
