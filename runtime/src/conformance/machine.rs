//! The machine that results come from, and the memory of this process.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value as Json;

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
    Some(kilobytes("Anonymous:")? * 1024)
}

/// The most memory that the process has had, bytes; 0 where the system does not say.
pub(super) fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or(0) << 10
}

/// The processor time of all threads of this process, to a hundredth of a second; what has passed where the system does not
/// say.
pub(super) fn processor_time() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    let ticks = std::fs::read_to_string("/proc/self/stat").ok().and_then(|stat| ticks(&stat));
    ticks.map_or_else(|| START.get_or_init(Instant::now).elapsed(), |ticks| Duration::from_millis(10 * ticks))
}

/// Of what `/proc/PID/stat` says, the hundredths of a second in the program and in the system.
fn ticks(stat: &str) -> Option<u64> {
    // Behind the name, which may hold anything, they are the 12th and the 13th.
    let numbers: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(numbers.get(11)?.parse::<u64>().ok()? + numbers.get(12)?.parse::<u64>().ok()?)
}

/// Writes `~` for the home folder in every text: results are shown to others, whom it does not concern.
pub(super) fn hide_home(record: &mut Json) {
    let home = std::env::var(if cfg!(windows) { "USERPROFILE" } else { "HOME" }).unwrap_or_default();
    let home = home.trim_end_matches(['/', '\\']);
    if !home.is_empty() {
        hide(record, home);
    }
}

fn hide(value: &mut Json, home: &str) {
    match value {
        Json::String(text) if text.contains(home) => *text = tilde(text, home),
        Json::Array(values) => values.iter_mut().for_each(|value| hide(value, home)),
        Json::Object(fields) => fields.values_mut().for_each(|value| hide(value, home)),
        _ => {}
    }
}

/// Replaces a folder where it stands as a whole one: `/home/ada/x`, not `/home/adam` nor `/mnt/home/ada`.
fn tilde(text: &str, home: &str) -> String {
    let part_of_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut hidden = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(home) {
        let (before, after) = (&rest[..at], &rest[at + home.len()..]);
        let whole = !before.ends_with(part_of_name) && !after.starts_with(part_of_name);
        hidden.push_str(before);
        hidden.push_str(if whole { "~" } else { home });
        rest = after;
    }
    hidden + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_that_of_work() {
        let start = processor_time();
        let wall = Instant::now();
        while processor_time() - start < Duration::from_millis(50) && wall.elapsed() < Duration::from_secs(60)
        {
            std::hint::black_box((0..1000).sum::<u64>());
        }
        assert!(processor_time() - start >= Duration::from_millis(50));
    }

    #[test]
    fn ticks_are_those_of_the_program_and_the_system() {
        let stat = "7 (a (b) 1 2) R 1 7 7 0 -1 4194304 90 0 0 0 13 4 500 600 20 0 1 0 8053 2 3";
        assert_eq!(ticks(stat), Some(17));
        assert_eq!(ticks("7 (a) R 1"), None);
    }

    #[test]
    fn the_home_folder_is_hidden_wherever_it_stands_whole() {
        let mut record = serde_json::json!({
            "reason": "not in /home/ada/.cache/weft; HOME is /home/ada",
            "outputs": [{"problem": "/home/adam/x, /mnt/home/ada/y, file:///home/ada/z"}],
            "passed": false,
        });
        hide(&mut record, "/home/ada");
        let want = serde_json::json!({
            "reason": "not in ~/.cache/weft; HOME is ~",
            "outputs": [{"problem": "/home/adam/x, /mnt/home/ada/y, file://~/z"}],
            "passed": false,
        });
        assert_eq!(record, want);
    }
}
