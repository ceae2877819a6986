//! Runs one child process under watch: its lines as they come, a limit on silence, Ctrl-C, and its whole group ended
//! with it (a test may have started a browser).

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::terminal::interrupted;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Exited(ExitStatus),
    /// It made no progress for the given time and was ended.
    TimedOut(Duration),
    /// A person asked to stop.
    Interrupted,
}

impl End {
    /// What happened, as the reason of a failure.
    pub fn describe(self) -> String {
        match self {
            Self::Exited(status) => match signal(status) {
                Some(signal) => format!("the test process was killed by {signal}"),
                None => format!("the test process ended early ({status})"),
            },
            Self::TimedOut(limit) => {
                format!("no result within {} s; the test process was ended", limit.as_secs())
            }
            Self::Interrupted => "interrupted".into(),
        }
    }
}

/// What a process did.
pub struct Outcome {
    pub end: End,
    /// The last lines of its standard error.
    pub stderr: Vec<String>,
}

/// Lines of standard error that are kept.
const STDERR_LINES: usize = 12;
const TICK: Duration = Duration::from_millis(50);
/// How long a process that has ended may keep its streams open, through a child that left its group.
const DRAIN: Duration = Duration::from_secs(2);
/// Lines that wait to be looked at: a process that prints faster waits itself.
const WAITING: usize = 1024;
/// The longest line, bytes; a longer one is cut into several.
const LINE: u64 = 1 << 20;

/// Runs `command`; `on_line` sees each line of standard output and says whether it is progress.
pub fn watch(
    mut command: Command,
    limit: Duration,
    mut on_line: impl FnMut(&str) -> bool,
) -> Result<Outcome> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child =
        command.spawn().with_context(|| format!("starting {}", command.get_program().display()))?;
    let lines = lines_of(child.stdout.take());
    let errors = lines_of(child.stderr.take());
    let mut stderr = VecDeque::new();
    let mut keep = |line| {
        stderr.push_back(line);
        if stderr.len() > STDERR_LINES {
            stderr.pop_front();
        }
    };
    let mut progress = Instant::now();
    let end = loop {
        errors.try_iter().for_each(&mut keep);
        match lines.recv_timeout(TICK) {
            Ok(line) => {
                if on_line(&line) {
                    progress = Instant::now();
                }
                // What it says is heard to the end before its end, but not beyond the limit.
                if progress.elapsed() <= limit && !interrupted() {
                    continue;
                }
            }
            Err(RecvTimeoutError::Disconnected) => thread::sleep(TICK / 10),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Some(status) = child.try_wait()? {
            break End::Exited(status);
        }
        if interrupted() {
            break End::Interrupted;
        }
        if progress.elapsed() > limit {
            break End::TimedOut(limit);
        }
    };
    end_group(&mut child);
    // Both streams end with the process; on a busy machine their readers may be behind.
    let drained = Instant::now() + 2 * DRAIN;
    let left = || DRAIN.min(drained.saturating_duration_since(Instant::now()));
    while let Ok(line) = lines.recv_timeout(left()) {
        on_line(&line);
    }
    while let Ok(line) = errors.recv_timeout(left()) {
        keep(line);
    }
    let stderr = stderr.into();
    Ok(Outcome { end, stderr })
}

/// A stream's lines as they come.
fn lines_of(stream: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, lines) = mpsc::sync_channel(WAITING);
    let Some(stream) = stream else { return lines };
    thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        while reader.by_ref().take(LINE).read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            if sender.send(String::from_utf8_lossy(&line).trim_end().to_owned()).is_err() {
                return;
            }
            line.clear();
        }
    });
    lines
}

fn end_group(child: &mut Child) {
    #[cfg(unix)]
    if let Ok(id) = i32::try_from(child.id()) {
        use nix::sys::signal::{Signal, killpg};
        let _ = killpg(nix::unistd::Pid::from_raw(id), Signal::SIGKILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<String> {
    let number = std::os::unix::process::ExitStatusExt::signal(&status)?;
    Some(match nix::sys::signal::Signal::try_from(number) {
        Ok(signal) => format!("{signal} ({number})"),
        Err(_) => format!("signal {number}"),
    })
}

#[cfg(not(unix))]
fn signal(_status: ExitStatus) -> Option<String> {
    None
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn run(script: &str, limit: Duration) -> (Outcome, Vec<String>) {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let mut lines = Vec::new();
        let outcome = watch(command, limit, |line| {
            lines.push(line.to_owned());
            true
        });
        (outcome.unwrap(), lines)
    }

    #[test]
    fn lines_and_exit_are_seen() {
        let (outcome, lines) = run("echo a; echo b; echo oops >&2; exit 3", Duration::from_secs(10));
        assert!(matches!(outcome.end, End::Exited(status) if status.code() == Some(3)));
        assert_eq!(lines, ["a", "b"]);
        assert_eq!(outcome.stderr, ["oops"]);
    }

    #[test]
    fn a_crash_names_its_signal() {
        let (outcome, _) = run("kill -SEGV $$", Duration::from_secs(10));
        assert_eq!(outcome.end.describe(), "the test process was killed by SIGSEGV (11)");
    }

    #[test]
    fn a_process_that_prints_without_end_is_ended() {
        for script in ["while :; do echo noise; done", "yes noise", "yes noise >&2", "tr '\\0' x </dev/zero"]
        {
            let start = Instant::now();
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            let outcome = watch(command, Duration::from_millis(300), |_| false).unwrap();
            assert_eq!(outcome.end, End::TimedOut(Duration::from_millis(300)), "{script}");
            assert!(start.elapsed() < Duration::from_secs(5), "{script}: {:?}", start.elapsed());
        }
    }

    #[test]
    fn a_hang_is_ended_with_its_children() {
        let start = Instant::now();
        let (outcome, lines) = run("echo a; sleep 60 & sleep 60", Duration::from_millis(300));
        assert_eq!(outcome.end, End::TimedOut(Duration::from_millis(300)));
        assert_eq!(lines, ["a"]);
        assert!(start.elapsed() < Duration::from_secs(10));
    }
}
