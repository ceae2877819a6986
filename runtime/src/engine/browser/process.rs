//! A headless browser as a child process that never outlives this one, and that nobody else can drive.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use super::devtools::{Connection, Pipe};
use super::programs::Programs;
use crate::engine::folder::OwnFolder;
use crate::{Error, Hardware, Result};

/// How long a browser may take to answer for the first time.
const START: Duration = Duration::from_secs(60);

/// How long it may take to end by itself.
const END: Duration = Duration::from_secs(3);

/// A running browser.
pub(super) struct Process {
    child: Child,
    _profile: OwnFolder,
    /// What it is driven by.
    pub pipe: Arc<Pipe>,
}

impl Process {
    /// Starts it with a fresh profile; without its sandbox only where it does not start with it.
    pub(super) fn start(hardware: Hardware, programs: &Programs) -> Result<Self> {
        let browser = programs.browser.display();
        let failed = |problem| Error::engine(hardware, format!("{browser} {problem}"));
        if !cfg!(unix) {
            let problem = "a browser is driven by a pipe, which other programs can only be given on Unix";
            return Err(Error::unavailable(hardware, problem, "run it on Linux or macOS"));
        }
        if root() {
            tracing::warn!(%browser, "runs without its sandbox, which refuses to work for root");
            return Self::attempt(hardware, programs, false)?.map_err(failed);
        }
        Self::attempt(hardware, programs, true)?.or_else(|problem| {
            tracing::warn!(%browser, problem, "runs without its sandbox, as it does not start with it");
            Self::attempt(hardware, programs, false)?.map_err(failed)
        })
    }

    /// Starts it; what it said where it ended or did not answer.
    fn attempt(
        hardware: Hardware,
        programs: &Programs,
        sandbox: bool,
    ) -> Result<std::result::Result<Self, String>> {
        let place = std::env::temp_dir();
        let profile = OwnFolder::new(&place, "weft-browser-").map_err(|e| Error::io(&place, e))?;
        let mut command = contained(&programs.browser, profile.path());
        command.args(flags(hardware, profile.path(), sandbox)).arg("about:blank");
        if let Some(package) = &programs.package {
            environment(&mut command, package);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let browser = programs.browser.display();
        let refused = |e| Error::engine(hardware, format!("{browser} cannot be started: {e}"));
        let mut child = command.spawn().map_err(refused)?;
        let log = Log::follow(&mut child);
        let (Some(commands), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Ok(Err("has no pipe".to_owned()));
        };
        let process = Self { child, _profile: profile, pipe: Pipe::new(commands, answers) };
        let connection = Connection::new(&process.pipe);
        let answer = connection.call("start", "Browser.getVersion", &json!({}), START);
        Ok(answer.map(|_| process).map_err(|trouble| format!("does not start: {trouble}: {}", log.last())))
    }

    /// Whether it still runs.
    pub(super) fn runs(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Closing the pipe tells the browser to end, and its shell to remove the profile.
        self.pipe.hang_up();
        let deadline = Instant::now() + END;
        while self.runs() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        if self.runs() {
            kill(&mut self.child);
            let _ = self.child.wait();
        }
    }
}

/// The browser listens to a DevTools pipe that only this process holds: the system closes it however this process ends,
/// and the browser ends with it. The shell then removes the profile. There is no port that others could connect to.
#[cfg(unix)]
fn contained(browser: &Path, profile: &Path) -> Command {
    use std::os::unix::process::CommandExt;
    let script = r#"profile=$1; shift; "$@" 3<&0 4>&1 </dev/null >/dev/null; status=$?; rm -rf "$profile"; exit $status"#;
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script, "weft-browser"]).arg(profile).arg(browser);
    // A group of its own: Ctrl-C reaches this process, which decides when the browser ends.
    command.process_group(0);
    command
}

#[cfg(not(unix))]
fn contained(browser: &Path, _profile: &Path) -> Command {
    Command::new(browser)
}

#[cfg(unix)]
fn kill(child: &mut Child) {
    let group = format!("-{}", child.id());
    let _ = Command::new("kill").args(["-9", "--", &group]).stderr(Stdio::null()).status();
}

#[cfg(not(unix))]
fn kill(child: &mut Child) {
    let _ = child.kill();
}

fn flags(hardware: Hardware, profile: &Path, sandbox: bool) -> Vec<String> {
    let mut flags: Vec<String> = [
        "--headless",
        "--remote-debugging-pipe",
        "--no-first-run",
        "--no-default-browser-check",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-default-apps",
        "--disable-extensions",
        "--disable-quic",
        "--disable-sync",
        // Tabs are in the background all the time.
        "--disable-background-timer-throttling",
        "--disable-renderer-backgrounding",
        // Containers have a small /dev/shm.
        "--disable-dev-shm-usage",
        "--mute-audio",
    ]
    .map(str::to_owned)
    .into();
    flags.push(format!("--user-data-dir={}", profile.display()));
    match hardware {
        Hardware::Webgpu => {
            flags.extend(["--enable-unsafe-webgpu", "--enable-unsafe-swiftshader"].map(str::to_owned));
        }
        _ => flags.push("--enable-features=WebMachineLearningNeuralNetwork".to_owned()),
    }
    if !sandbox {
        flags.push("--no-sandbox".to_owned());
    }
    flags
}

#[cfg(unix)]
fn root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

#[cfg(not(unix))]
fn root() -> bool {
    false
}

/// The package brings the libraries and fonts that a system without a desktop lacks.
fn environment(command: &mut Command, package: &Path) {
    let known = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let folders = std::env::split_paths(&known).chain([package.join("al2023/lib"), package.join("bin")]);
    if let Ok(folders) = std::env::join_paths(folders.filter(|folder| !folder.as_os_str().is_empty())) {
        command.env("LD_LIBRARY_PATH", folders);
    }
    if !Path::new("/etc/fonts/fonts.conf").exists() {
        command.env("FONTCONFIG_PATH", package.join("fonts"));
    }
}

/// The last of what a browser writes about itself; reading it also keeps the browser from waiting.
struct Log(Arc<std::sync::Mutex<Vec<u8>>>);

impl Log {
    const KEPT: usize = 4096;

    fn follow(child: &mut Child) -> Self {
        let kept = Self(Arc::default());
        let Some(mut from) = child.stderr.take() else { return kept };
        let lines = Arc::clone(&kept.0);
        std::thread::spawn(move || {
            let mut part = [0; 1024];
            while let Ok(count @ 1..) = from.read(&mut part) {
                let mut lines = lines.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                lines.extend_from_slice(&part[..count]);
                let excess = lines.len().saturating_sub(Self::KEPT);
                lines.drain(..excess);
            }
        });
        kept
    }

    fn last(&self) -> String {
        // What it wrote last may still be on its way.
        std::thread::sleep(Duration::from_millis(50));
        let lines = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let lines = String::from_utf8_lossy(&lines).trim().to_owned();
        if lines.is_empty() { "it said nothing".to_owned() } else { lines }
    }
}
