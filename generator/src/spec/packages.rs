//! Pinned packages: which file of which release, by platform, and what is inside.

use std::fmt;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::document::{self, Problem, Problems};

/// A release of a package, pinned file by file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// The name under which the registry has it.
    pub name: String,
    /// The release.
    pub version: String,
    /// The registry.
    pub index: Index,
    /// What it is needed for.
    pub purpose: String,
    /// Fetched only when asked for by name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// The file for each platform, or for `any` of them.
    pub platforms: IndexMap<Platform, PlatformPin>,
    /// What it says of its own licence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
}

/// A package registry, reached through its own client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Index {
    /// Python packages, through `pip`.
    Pypi,
    /// JavaScript packages, through `npm`.
    Npm,
}

/// Operating system and processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Platform {
    /// Every platform: the package holds no machine code.
    #[serde(rename = "any")]
    Any,
    /// Linux with glibc on x86-64.
    #[serde(rename = "linux-x86_64")]
    LinuxX86,
    /// Linux with glibc on 64-bit Arm.
    #[serde(rename = "linux-aarch64")]
    LinuxArm,
    /// macOS on Apple silicon.
    #[serde(rename = "macos-arm64")]
    MacosArm,
    /// Windows on x86-64.
    #[serde(rename = "windows-x86_64")]
    WindowsX86,
}

impl Platform {
    /// The platforms that every package must say something about.
    pub const ALL: [Self; 4] = [Self::LinuxX86, Self::LinuxArm, Self::MacosArm, Self::WindowsX86];

    /// The platform this program was built for, if it is one of [`Platform::ALL`].
    pub fn host() -> Option<Self> {
        match (std::env::consts::OS, std::env::consts::ARCH) {
            ("linux", "x86_64") => Some(Self::LinuxX86),
            ("linux", "aarch64") => Some(Self::LinuxArm),
            ("macos", "aarch64") => Some(Self::MacosArm),
            ("windows", "x86_64") => Some(Self::WindowsX86),
            _ => None,
        }
    }

    /// The name used in specs and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::LinuxX86 => "linux-x86_64",
            Self::LinuxArm => "linux-aarch64",
            Self::MacosArm => "macos-arm64",
            Self::WindowsX86 => "windows-x86_64",
        }
    }

    /// The platform of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|platform| platform.name() == name)
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The file for one platform, or the reason why there is none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlatformPin {
    /// The file's name in the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    /// SHA-256 of that file, in lower-case hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Its size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// What is loaded, run or opened: a path inside the unpacked package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// Further files that must be there: paths inside the unpacked package.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub companions: Vec<String>,
    /// Brotli-compressed members to unpack after the package itself: member to folder or file.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub brotli: IndexMap<String, String>,
    /// Links to make, since programs look for libraries under another name: link to its target beside it.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub links: IndexMap<String, String>,
    /// Why this platform has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub none: Option<String>,
}

/// A file to fetch: what is left of a [`PlatformPin`] when the platform has one.
#[derive(Clone, Copy, Debug)]
pub struct Artifact<'a> {
    /// The package.
    pub package: &'a Package,
    /// The pin it comes from.
    pub pin: &'a PlatformPin,
    /// The file's name in the registry.
    pub filename: &'a str,
    /// SHA-256 of that file.
    pub sha256: &'a str,
    /// What is loaded, run or opened: a path inside the unpacked package.
    pub library: &'a str,
}

impl Package {
    /// The file for a platform.
    ///
    /// # Errors
    /// The reason why the platform has none.
    pub fn artifact(&self, platform: Platform) -> Result<Artifact<'_>, String> {
        let pin = self.platforms.get(&platform).or_else(|| self.platforms.get(&Platform::Any));
        let pin = pin.ok_or_else(|| format!("not pinned for {platform}"))?;
        match (&pin.filename, &pin.sha256, &pin.library) {
            (Some(filename), Some(sha256), Some(library)) => {
                Ok(Artifact { package: self, pin, filename, sha256, library })
            }
            _ => Err(pin.none.clone().unwrap_or_else(|| "the pin is incomplete".to_owned())),
        }
    }

    /// The folder it is unpacked to, under `packages/` of the cache: name and version, a scope joined by a dash.
    pub fn folder(&self) -> String {
        format!("{}-{}", self.name.trim_start_matches('@').replace('/', "-"), self.version)
    }

    /// Adds what is wrong with it; `key` is where it stands in the document.
    pub(crate) fn check(&self, file: &Path, text: &str, key: &str, problems: &mut Problems) {
        let mut wrong = |at: String, message: String| problems.0.push(Problem::at(file, text, &at, message));
        if !self.platforms.contains_key(&Platform::Any) {
            for platform in
                Platform::ALL.into_iter().filter(|platform| !self.platforms.contains_key(platform))
            {
                wrong(
                    format!("{key}.{}", self.name),
                    format!("`platforms` lacks {platform}: give its file, or `none: REASON`"),
                );
            }
        }
        for (platform, pin) in &self.platforms {
            let at = format!("{key}.{}.{platform}", self.name);
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
                let escapes =
                    path.starts_with('/') || path.contains('\\') || path.split('/').any(|p| p == "..");
                if escapes {
                    wrong(at.clone(), format!("`{path}` must be a relative path inside the package"));
                }
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
            package.check(&file, &text, "packages", &mut problems);
        }
        problems.or(packages)
    }

    /// The package of that name.
    pub fn get(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }
}
