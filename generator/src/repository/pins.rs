//! The pins of all packages, for programs that have no specs beside them.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use serde_json::json;

use crate::spec::hardware::HardwareSpecs;
use crate::spec::packages::{Package, Packages};

/// What has packages: a backend, or what tests and builds use beside the backends.
const OTHERS: &str = "others";

/// Modules by name: the first says which packages each backend needs, the others have the packages of one backend each, with
/// their file by platform.
pub fn render(specs: &HardwareSpecs, others: &Packages) -> Vec<(String, String)> {
    let needed = |package: &&Package| !package.optional;
    let backends: IndexMap<_, Vec<_>> = specs
        .iter()
        .map(|spec| {
            let packages = specs.packages(spec.hardware).into_iter().filter(needed);
            (spec.hardware.name(), packages.map(|package| package.name.as_str()).collect())
        })
        .collect();
    let own = specs.iter().map(|spec| (spec.hardware.name(), &spec.packages));
    let own = own.chain([(OTHERS, &others.packages)]).filter(|(_, packages)| !packages.is_empty());
    let modules: Vec<(&str, _)> = own.collect();
    let names: BTreeSet<_> = modules.iter().map(|(name, _)| *name).collect();
    let declared: String = names.iter().map(|name| format!("mod {name};\n")).collect();
    let listed: String = modules.iter().map(|(name, _)| format!("    {name}::PACKAGES,\n")).collect();
    let first = format!(
        "//! The pins of this release.\n\n{declared}\n/// Names of the packages that each backend needs, as JSON.\npub const BACKENDS: \
         &str = r##\"{:#}\"##;\n\n/// The packages, backends' own first, each a list as JSON.\npub const PACKAGES: &[&str] = \
         &[\n{listed}];\n",
        json!(backends)
    );
    let module = |(name, packages): (&str, &Vec<Package>)| {
        let of = if name == OTHERS { "of no backend".to_owned() } else { format!("of the backend {name}") };
        let text = format!(
            "//! The packages {of}.\n\n/// The packages as JSON.\npub(super) const PACKAGES: &str = r##\"{:#}\"##;\n",
            json!(packages)
        );
        (format!("pins/{name}"), text)
    };
    [("pins".to_owned(), first)].into_iter().chain(modules.into_iter().map(module)).collect()
}
