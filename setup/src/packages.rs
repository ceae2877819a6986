//! Pinned packages: which file of which release, by platform, and what is inside.

use std::fmt;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// A release of a package, pinned file by file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Index {
    /// Python packages, through `pip`.
    Pypi,
    /// JavaScript packages, through `npm`.
    Npm,
}

/// Operating system and processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
}
