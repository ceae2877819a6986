//! A machine as its files and programs show it; a folder can stand in for it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where to look.
pub struct Machine {
    root: PathBuf,
    pub os: String,
    pub arch: String,
    /// Whether programs and variables of this process's surroundings may be asked.
    real: bool,
}

impl Machine {
    pub fn this() -> Self {
        let (os, arch) = (env::consts::OS.to_owned(), env::consts::ARCH.to_owned());
        Self { root: PathBuf::from("/"), os, arch, real: true }
    }

    /// A machine whose files are under a folder, and which has no programs.
    #[cfg(test)]
    pub fn at(root: &Path, os: &str, arch: &str) -> Self {
        Self { root: root.to_owned(), os: os.to_owned(), arch: arch.to_owned(), real: false }
    }

    /// A path from the machine's root.
    pub fn path(&self, absolute: &str) -> PathBuf {
        self.root.join(absolute.trim_start_matches('/'))
    }

    pub fn has(&self, absolute: &str) -> bool {
        self.path(absolute).exists()
    }

    /// The first line of a file.
    pub fn line(&self, absolute: &str) -> Option<String> {
        let text = fs::read_to_string(self.path(absolute)).ok()?;
        Some(text.lines().next()?.trim().to_owned())
    }

    /// The entries of a folder, by name.
    pub fn list(&self, absolute: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path(absolute)).into_iter().flatten().flatten();
        let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        paths
    }

    /// What a program prints; none when it is absent or fails.
    pub fn ask(&self, command: &[&str]) -> Option<String> {
        if self.real { ask(command) } else { None }
    }

    /// An environment variable that is not empty.
    pub fn variable(&self, name: &str) -> Option<String> {
        env::var(name).ok().filter(|value| self.real && !value.is_empty())
    }

    /// A program on the search path.
    pub fn program(&self, names: &[&str]) -> Option<PathBuf> {
        let path = self.variable("PATH")?;
        let end = if self.os == "windows" { ".exe" } else { "" };
        let mut all = names
            .iter()
            .flat_map(|name| env::split_paths(&path).map(move |dir| dir.join(format!("{name}{end}"))));
        all.find(|file| file.is_file())
    }

    /// Whether the loader finds a shared library.
    pub fn library(&self, name: &str) -> bool {
        let listed = || self.ask(&["ldconfig", "-p"]).or_else(|| self.ask(&["/sbin/ldconfig", "-p"]));
        let named = self.variable("LD_LIBRARY_PATH").unwrap_or_default();
        env::split_paths(&named).any(|dir| dir.join(name).is_file())
            || listed().is_some_and(|text| text.lines().any(|line| line.trim_start().starts_with(name)))
    }

    /// Vendors of PCI devices of a class (its first two hexadecimal digits), by slot.
    pub fn pci(&self, vendor: &str, class: &str) -> Vec<String> {
        let is = |dir: &Path, file: &str, start: &str| {
            fs::read_to_string(dir.join(file)).is_ok_and(|text| text.trim().starts_with(start))
        };
        let devices = self.list("/sys/bus/pci/devices");
        let found =
            devices.iter().filter(|dir| is(dir, "vendor", vendor) && is(dir, "class", &format!("0x{class}")));
        found.filter_map(|dir| Some(dir.file_name()?.to_string_lossy().into_owned())).collect()
    }

    /// The processor's name.
    pub fn processor(&self) -> String {
        let info = fs::read_to_string(self.path("/proc/cpuinfo")).unwrap_or_default();
        let named = info
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name));
        let name = named.map(|name| name.trim().to_owned());
        let name = name.or_else(|| self.ask(&["sysctl", "-n", "machdep.cpu.brand_string"]));
        let name = name.or_else(|| self.variable("PROCESSOR_IDENTIFIER"));
        name.unwrap_or_else(|| format!("{} processor", self.arch))
    }

    /// Main memory.
    pub fn memory_mb(&self) -> Option<u64> {
        if let Some(line) = self.line("/proc/meminfo") {
            let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
            return Some(kilobytes * 1024 / 1_000_000);
        }
        let bytes: u64 = self.ask(&["sysctl", "-n", "hw.memsize"])?.parse().ok()?;
        Some(bytes / 1_000_000)
    }
}

/// What a program prints, without the end of the line; none when it is absent or fails.
fn ask(command: &[&str]) -> Option<String> {
    let (program, arguments) = command.split_first()?;
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

/// The version a program gives itself, without its own name and what follows.
pub fn version(command: &[&str]) -> Option<String> {
    let said = ask(command)?;
    let word = said
        .split_whitespace()
        .find(|word| word.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit()))?;
    Some(word.trim_start_matches('v').to_owned())
}
