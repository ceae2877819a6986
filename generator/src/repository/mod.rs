//! The files of this repository that come from the backends' specs: the runtime's operator tables and tolerances, the pins of their packages,
//! a page for each.

mod operators;
mod pages;
mod pins;
mod tolerances;

use std::collections::BTreeSet;
use std::path::Path;

use crate::Error;
use crate::render::Output;
use crate::render::header::Header;
use crate::spec::document;
use crate::spec::hardware::HardwareSpecs;
use crate::spec::operators::Standard;
use crate::spec::packages::Packages;
use crate::write::{Difference, plan};

/// What was done, or is to be done: the files that differ, and how many do not.
pub type Changes = (Vec<(String, Difference)>, usize);

/// Writes them below `root`, or only compares.
///
/// # Errors
/// Everything that is wrong with the backends' specs; a file that was not generated is in the way; the disk refuses.
pub fn generate(root: &Path, staging: &Path, check: bool) -> Result<Changes, Error> {
    let outputs = outputs(&root.join("model_specs"))?;
    let plan = plan(root, Path::new(""), outputs, &BTreeSet::new(), &["docs/backends".to_owned()])?;
    if !check {
        plan.apply(root, staging)?;
    }
    Ok((plan.changes, plan.same))
}

/// The files with their texts, by their paths from the repository's root.
///
/// # Errors
/// Everything that is wrong with the backends' specs.
pub fn outputs(model_specs: &Path) -> Result<Vec<Output>, Error> {
    let specs = HardwareSpecs::load(model_specs).map_err(|problems| problems.0)?;
    let (standard, _) = document::read::<Standard>(&model_specs.join("hardware/onnx.yaml"))
        .map_err(|problem| Error::from(vec![problem]))?;
    let (tables, by_backend) = operators::render(&specs, &standard);
    let mut outputs = vec![output("runtime/src/lower/operators.rs", &sources(&specs), &tables)];
    for (hardware, text) in by_backend {
        let source = format!("model_specs/hardware/{hardware}.yaml");
        outputs.push(output(&format!("runtime/src/lower/operators/{hardware}.rs"), &[source], &text));
    }
    let all: Vec<_> =
        specs.iter().map(|spec| format!("model_specs/hardware/{}.yaml", spec.hardware)).collect();
    outputs.push(output("runtime/src/conformance/tolerances.rs", &all, &tolerances::render(&specs)));
    for spec in specs.iter() {
        let source = format!("model_specs/hardware/{}.yaml", spec.hardware);
        let text = pages::render(spec, &specs.packages(spec.hardware));
        outputs.push(output(&format!("docs/backends/{}.md", spec.hardware), &[source], &text));
    }
    let others = Packages::load(model_specs).map_err(|problems| problems.0)?;
    let all: Vec<_> = all.into_iter().chain(["model_specs/packages.yaml".to_owned()]).collect();
    for (module, text) in pins::render(&specs, &others) {
        outputs.push(output(&format!("setup/src/{module}.rs"), &all, &text));
    }
    Ok(outputs)
}

/// The specs that operator tables are in.
fn sources(specs: &HardwareSpecs) -> Vec<String> {
    let tables = specs.iter().filter(|spec| spec.operators.is_some());
    let names = tables.map(|spec| spec.hardware.to_string()).chain(["onnx".to_owned()]);
    names.map(|name| format!("model_specs/hardware/{name}.yaml")).collect()
}

fn output(path: &str, sources: &[String], text: &str) -> Output {
    let (last, rest) = sources.split_last().map_or(("", &[][..]), |(last, rest)| (last.as_str(), rest));
    let header = Header { command: "cargo xtask generate", specs: rest, template: last };
    Output { path: path.to_owned(), text: format!("{}\n{text}", header.text(path)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::is_generated;

    #[test]
    fn every_backend_has_a_page_and_every_table_is_in_the_runtime() {
        let outputs = outputs(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../model_specs"))).unwrap();
        assert_eq!(outputs.len(), 23);
        assert!(outputs.iter().all(|output| is_generated(&output.text)));
        let text = |path: &str| &outputs.iter().find(|output| output.path == path).unwrap().text;
        assert!(text("runtime/src/lower/operators.rs").contains("    (\"Add\", &[1, 6, 7, 13, 14]),"));
        let tables = text("runtime/src/lower/operators/cuda.rs");
        for line in [
            "    Operator::new(\"com.microsoft\", \"FusedMatMul\", &[1], ",
            "    Operator::new(\"\", \"Add\", &[14, 13, 7], ",
        ] {
            assert!(tables.contains(line), "{line}");
        }
        let half = "Hardware::Qnn => &[Tolerance {\n            precision: Precision::F16,\n            relative: 0.02,";
        assert!(text("runtime/src/conformance/tolerances.rs").contains(half));
        assert!(text("docs/backends/webgpu.md").contains("| Safari | limited | partial |"));
        assert!(text("docs/backends/metal.md").contains("| xl | 7B-13B | not supported |"));
        assert!(text("docs/backends/cuda.md").contains("cargo xtask setup --hw cuda"));
    }
}
