//! `hardware/*.yaml`: the eight backends: engine, runtime packages, number formats, what to expect.

use std::path::Path;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::document::{self, Problem, Problems};
use super::operators::Operators;
use super::packages::{self, Package};
pub use super::vocabulary::{EvidenceLevel, Hardware, ModelSize, Precision, Support};

/// One backend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HardwareSpec {
    /// The backend; also the file's name.
    pub hardware: Hardware,
    /// Its name in prose.
    pub title: String,
    /// What it is, in a sentence or two.
    pub summary: String,
    /// What executes graphs on it.
    pub engine: Engine,
    /// How the engine is told to use it.
    pub provider: Provider,
    /// What a graph must be made into before it gets there.
    pub lowering: Lowering,
    /// The packages pinned in this file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<Package>,
    /// Packages that it needs and that another backend's file pins.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub shares: IndexMap<Hardware, Vec<String>>,
    /// The command that installs what it needs.
    pub install: String,
    /// What the machine must have besides.
    pub requirements: Vec<String>,
    /// Number formats it computes in, the default first, with the tolerance of each.
    pub precisions: IndexMap<Precision, Tolerance>,
    /// What a run on a machine without the hardware is worth.
    pub evidence: Evidence,
    /// What speaks for it.
    pub benefits: Vec<String>,
    /// What speaks against it.
    pub limitations: Vec<String>,
    /// Estimated memory by size of model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<MemoryEstimate>,
    /// Declared facts about browsers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub browsers: Vec<Browser>,
    /// The backend that a fallback route goes to when a spec gives none; none for the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Hardware>,
    /// The operators it has, where it cannot be tried: its published table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operators: Option<Operators>,
    /// What other sources say, where they say something else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub noted: Vec<String>,
}

/// What executes graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// ONNX Runtime in the same process.
    Onnxruntime,
    /// OpenVINO in the same process.
    Openvino,
    /// ONNX Runtime Web in a browser.
    Browser,
}

/// How an engine is told to use a backend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// The name under which the engine reports nodes that ran there.
    pub name: String,
    /// Whether it is a plugin library, registered before use.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plugin: bool,
    /// Options given to it.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub options: IndexMap<String, String>,
    /// Entries of the session's configuration.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub session: IndexMap<String, String>,
    /// Environment variables it obeys, and what each is for.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub environment: IndexMap<String, String>,
    /// Flags a browser is started with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// Another provider for the same hardware, used when asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alternative: Option<String>,
}

/// What a graph must be made into.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lowering {
    /// Whether dimensions may stay symbolic.
    pub shapes: Shapes,
    /// The integers that indices are computed in.
    pub integers: Integers,
    /// The newest operator set it is given.
    pub opset: u16,
    /// Whether ONNX Runtime's contributed operators may be used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub contrib: bool,
}

/// Whether dimensions may stay symbolic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Shapes {
    /// They may.
    Symbolic,
    /// Every dimension is a number when the graph is compiled.
    Fixed,
}

/// The integers that indices are computed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Integers {
    /// 64-bit, as graphs are written.
    I64,
    /// 32-bit.
    I32,
}

/// How far results may be off: max|got - want| <= relative * max(1, max|want|).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tolerance {
    /// The bound.
    pub relative: f64,
    /// Why it is not the 1e-4 of single precision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether tests run in it only where it is asked for (`--precision`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked: bool,
    /// Options that select this format, beyond the provider's own.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub options: IndexMap<String, String>,
}

/// What a run on a machine without the hardware is worth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// The level reached there.
    pub without_hardware: EvidenceLevel,
    /// How.
    pub how: String,
    /// Options needed there, beyond the provider's own.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub options: IndexMap<String, String>,
}

/// Estimated memory for models of one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryEstimate {
    /// The size's name.
    pub size: ModelSize,
    /// How many parameters such a model has.
    pub parameters: String,
    /// Least memory, in megabytes; none where such models are not supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_mb: Option<u32>,
    /// Most memory, in megabytes; none where there is no upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_mb: Option<u32>,
}

/// Declared facts about one browser.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Browser {
    /// Its name.
    pub name: String,
    /// Whether it has the interface at all.
    pub support: Support,
    /// How far each number format is supported, in the sources' words.
    pub precision: IndexMap<String, String>,
    /// What else is said of it.
    pub notes: String,
}

/// The eight backends.
#[derive(Clone, Debug, PartialEq)]
pub struct HardwareSpecs {
    specs: IndexMap<Hardware, HardwareSpec>,
}

impl HardwareSpecs {
    /// Reads `hardware/*.yaml` in the folder of the specs.
    ///
    /// # Errors
    /// Every problem found in any of the files.
    pub fn load(model_specs: &Path) -> Result<Self, Problems> {
        let folder = model_specs.join("hardware");
        let mut problems = Problems::default();
        let mut specs = IndexMap::new();
        let mut texts = Vec::new();
        for hardware in Hardware::ALL {
            let file = folder.join(format!("{hardware}.yaml"));
            match document::read::<HardwareSpec>(&file) {
                Ok((spec, text)) => {
                    if spec.hardware != hardware {
                        let message =
                            format!("is `{}`, but the file is named `{hardware}.yaml`", spec.hardware);
                        problems.0.push(Problem::at(&file, &text, "hardware", message));
                    }
                    specs.insert(hardware, spec);
                    texts.push((hardware, file, text));
                }
                Err(problem) => problems.0.push(problem),
            }
        }
        let all = Self { specs };
        for (hardware, file, text) in &texts {
            if let Some(spec) = all.specs.get(hardware) {
                all.check(spec, file, text, &mut problems);
            }
        }
        problems.or(all)
    }

    /// One backend.
    pub fn get(&self, hardware: Hardware) -> Option<&HardwareSpec> {
        self.specs.get(&hardware)
    }

    /// All backends, in the order of the matrices.
    pub fn iter(&self) -> impl Iterator<Item = &HardwareSpec> {
        self.specs.values()
    }

    /// The packages a backend needs, shared ones first.
    pub fn packages(&self, hardware: Hardware) -> Vec<&Package> {
        let Some(spec) = self.specs.get(&hardware) else { return Vec::new() };
        let shared = spec.shares.iter().flat_map(|(from, names)| {
            names.iter().filter_map(move |name| self.get(*from)?.packages.iter().find(|p| p.name == *name))
        });
        shared.chain(&spec.packages).collect()
    }

    /// The package of that name, whichever backend pins it.
    pub fn package(&self, name: &str) -> Option<&Package> {
        self.iter().flat_map(|spec| &spec.packages).find(|package| package.name == name)
    }

    fn check(&self, spec: &HardwareSpec, file: &Path, text: &str, problems: &mut Problems) {
        for package in &spec.packages {
            packages::check(package, file, text, "packages", problems);
        }
        let mut wrong =
            |key: String, message: String| problems.0.push(Problem::at(file, text, &key, message));
        if spec.precisions.is_empty() {
            wrong("precisions".to_owned(), "must name at least one number format".to_owned());
        }
        for (precision, tolerance) in &spec.precisions {
            if !(tolerance.relative > 0.0 && tolerance.relative < 1.0) {
                wrong(
                    format!("precisions.{}", precision.name()),
                    "`relative` must be between 0 and 1".to_owned(),
                );
            }
        }
        if spec.fallback == Some(spec.hardware) {
            wrong("fallback".to_owned(), "must be another backend".to_owned());
        }
        for (from, names) in &spec.shares {
            let has = |name: &String| {
                self.get(*from)
                    .is_some_and(|other| other.packages.iter().any(|package| package.name == *name))
            };
            for name in names.iter().filter(|name| !has(name)) {
                wrong(format!("shares.{from}"), format!("`{from}.yaml` pins no package `{name}`"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::architectures::Architectures;
    use crate::spec::packages::{Packages, Platform};

    fn specs() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../model_specs"))
    }

    #[test]
    fn the_published_specs_are_sound() {
        let hardware = HardwareSpecs::load(specs()).unwrap_or_else(|problems| panic!("{problems}"));
        assert_eq!(hardware.iter().count(), 8);
        let architectures = Architectures::load(specs()).unwrap_or_else(|problems| panic!("{problems}"));
        assert_eq!(architectures.architectures.len(), 11);
        Packages::load(specs()).unwrap_or_else(|problems| panic!("{problems}"));
    }

    #[test]
    fn shared_packages_come_first() {
        let hardware = HardwareSpecs::load(specs()).unwrap();
        let names: Vec<_> =
            hardware.packages(Hardware::Qnn).iter().map(|package| package.name.as_str()).collect();
        assert_eq!(names, ["onnxruntime", "onnxruntime-qnn"]);
        let none = hardware.package("onnxruntime-qnn").unwrap().artifact(Platform::MacosArm).unwrap_err();
        assert!(none.contains("macOS"), "{none}");
    }
}
