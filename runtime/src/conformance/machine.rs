//! The machine that results come from, and the memory of this process.

use std::collections::BTreeMap;

/// Operating system, architecture and processor.
pub(super) fn describe() -> BTreeMap<String, String> {
    let mut machine = BTreeMap::from([
        ("os".to_owned(), std::env::consts::OS.to_owned()),
        ("arch".to_owned(), std::env::consts::ARCH.to_owned()),
    ]);
    if let Some(cpu) = cpu() {
        machine.insert("cpu".to_owned(), cpu);
    }
    if let Ok(cores) = std::thread::available_parallelism() {
        machine.insert("cores".to_owned(), cores.to_string());
    }
    machine
}

fn cpu() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, name)| name.trim().to_owned())
}

/// The memory that belongs to this process alone, in bytes; pages of mapped files do not count.
pub(super) fn private_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").ok()?;
    let kilobytes = |key: &str| -> Option<u64> {
        text.lines().find_map(|line| line.strip_prefix(key))?.split_whitespace().next()?.parse().ok()
    };
    Some((kilobytes("Private_Clean:")? + kilobytes("Private_Dirty:")?) * 1024)
}
