//! The processor time and the memory that an input takes.

use std::fmt;
use std::fs;
use std::time::Duration;

/// Measures one input.
pub struct Watch(Duration);

impl Watch {
    pub fn start() -> Self {
        // Starts the count of the most memory again (`man 5 proc_pid_clear_refs`).
        let _ = fs::write("/proc/self/clear_refs", "5");
        Self(processor_time())
    }

    /// The processor time of all threads since the start, and the most memory that the process had meanwhile, bytes.
    pub fn stop(self) -> (Duration, u64) {
        (processor_time().saturating_sub(self.0), peak())
    }
}

/// The most that any input took, and which.
#[derive(Clone, Copy, Debug, Default)]
pub struct Most {
    time: (u64, u64),
    bytes: (u64, u64),
}

impl Most {
    pub fn see(&mut self, number: u64, time: Duration, bytes: u64) {
        self.time = self.time.max((time.as_micros() as u64, number));
        self.bytes = self.bytes.max((bytes, number));
    }

    pub fn join(&mut self, other: Self) {
        self.time = self.time.max(other.time);
        self.bytes = self.bytes.max(other.bytes);
    }

    /// As numbers, of a fixed width.
    pub fn noted(&self) -> String {
        let Self { time, bytes } = self;
        format!("{:<20} {:<20} {:<20} {:<20} ", time.0, time.1, bytes.0, bytes.1)
    }

    pub fn read(numbers: &[u64]) -> Self {
        let at = |index: usize| numbers.get(index).copied().unwrap_or_default();
        Self { time: (at(0), at(1)), bytes: (at(2), at(3)) }
    }
}

impl fmt::Display for Most {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((micros, slowest), (bytes, largest)) = (self.time, self.bytes);
        let (seconds, megabytes) = (micros as f64 / 1e6, bytes >> 20);
        write!(f, "longest {seconds:.3} s ({slowest}), most {megabytes} MB ({largest})")
    }
}

#[cfg(unix)]
fn processor_time() -> Duration {
    let clock = nix::time::ClockId::CLOCK_PROCESS_CPUTIME_ID;
    nix::time::clock_gettime(clock).map(Duration::from).unwrap_or_default()
}

/// Elsewhere the time that passes stands for it.
#[cfg(not(unix))]
fn processor_time() -> Duration {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed()
}

/// The most memory that the process has had, bytes; 0 where the system does not say.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or(0) << 10
}
