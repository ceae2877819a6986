//! Pinned packages: which file of which release, by platform, and what is inside.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::document::{self, Problem, Problems};

pub use weft_setup::packages::{Artifact, Index, Package, Platform, PlatformPin};

/// Adds what is wrong with a package; `key` is where it stands in the document.
pub(crate) fn check(package: &Package, file: &Path, text: &str, key: &str, problems: &mut Problems) {
    let mut wrong = |at: String, message: String| problems.0.push(Problem::at(file, text, &at, message));
    if !package.platforms.contains_key(&Platform::Any) {
        for platform in Platform::ALL.into_iter().filter(|platform| !package.platforms.contains_key(platform))
        {
            wrong(
                format!("{key}.{}", package.name),
                format!("`platforms` lacks {platform}: give its file, or `none: REASON`"),
            );
        }
    }
    for (platform, pin) in &package.platforms {
        let at = format!("{key}.{}.{platform}", package.name);
        let given = [&pin.filename, &pin.sha256, &pin.library].into_iter().flatten().count();
        match (&pin.none, given) {
            (None, 3) | (Some(_), 0) => {}
            (Some(_), _) => wrong(at.clone(), "`none` and a file cannot both be given".to_owned()),
            (None, _) => wrong(
                at.clone(),
                "needs `filename`, `sha256` and `library`, or `none` with a reason".to_owned(),
            ),
        }
        let hex = |hash: &String| {
            hash.len() == 64 && hash.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c))
        };
        if pin.sha256.as_ref().is_some_and(|hash| !hex(hash)) {
            wrong(at.clone(), "`sha256` must be 64 lower-case hexadecimal digits".to_owned());
        }
        let inside = pin.library.iter().chain(&pin.companions).chain(pin.brotli.keys());
        for path in inside.chain(pin.brotli.values()).chain(pin.links.keys()) {
            let escapes = path.starts_with('/') || path.contains('\\') || path.split('/').any(|p| p == "..");
            if escapes {
                wrong(at.clone(), format!("`{path}` must be a relative path inside the package"));
            }
        }
    }
}

/// `packages.yaml`: packages that belong to no backend: demonstration checkpoints, tools.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Packages {
    /// The packages.
    pub packages: Vec<Package>,
}

impl Packages {
    /// Reads `packages.yaml` in the folder of the specs.
    ///
    /// # Errors
    /// Every problem found in it.
    pub fn load(model_specs: &Path) -> Result<Self, Problems> {
        let file: PathBuf = model_specs.join("packages.yaml");
        let (packages, text): (Self, String) = document::read(&file)?;
        let mut problems = Problems::default();
        for package in &packages.packages {
            check(package, &file, &text, "packages", &mut problems);
        }
        problems.or(packages)
    }

    /// The package of that name.
    pub fn get(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }
}
