//! A headless browser as a child process that never outlives this one.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::programs::Programs;
use crate::{Error, Hardware, Result};

/// How long a browser may take to open its DevTools port.
const START: Duration = Duration::from_secs(60);

/// How long it may take to end by itself.
const END: Duration = Duration::from_secs(3);

/// A running browser.
pub(super) struct Process {
    child: Child,
    profile: PathBuf,
    /// The port of its DevTools.
    pub port: u16,
    /// The path of the browser's own target.
    pub path: String,
}

impl Process {
    /// Starts it with a fresh profile.
    pub(super) fn start(hardware: Hardware, programs: &Programs) -> Result<Self> {
        let profile = fresh_profile().map_err(|e| Error::io(std::env::temp_dir(), e))?;
        let mut command = contained(&programs.browser, &profile);
        command.args(flags(hardware, programs, &profile)).arg("about:blank");
        if let Some(package) = &programs.package {
            environment(&mut command, package);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let browser = programs.browser.display();
        let child = command.spawn().map_err(|e| {
            let _ = fs::remove_dir_all(&profile);
            Error::engine(hardware, format!("{browser} cannot be started: {e}"))
        })?;
        let mut process = Self { child, profile, port: 0, path: String::new() };
        match process.wait_for_port() {
            Ok(()) => Ok(process),
            Err(problem) => Err(Error::engine(hardware, format!("{browser} {problem}"))),
        }
    }

    /// Waits until the browser has written where its DevTools are.
    fn wait_for_port(&mut self) -> std::result::Result<(), String> {
        let deadline = Instant::now() + START;
        let file = self.profile.join("DevToolsActivePort");
        let log = Log::follow(&mut self.child);
        while Instant::now() < deadline {
            let written = fs::read_to_string(&file).unwrap_or_default();
            if let Some((port, path)) = written.split_once('\n')
                && let Ok(port) = port.parse()
                && path.trim().starts_with('/')
            {
                (self.port, self.path) = (port, path.trim().to_owned());
                return Ok(());
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("ended at once ({status}): {}", log.last()));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(format!("did not open its DevTools port within {} s: {}", START.as_secs(), log.last()))
    }

    /// Whether it still runs.
    pub(super) fn runs(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Closing the pipe tells the browser to end, and its shell to remove the profile.
        drop(self.child.stdin.take());
        let deadline = Instant::now() + END;
        while self.runs() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        if self.runs() {
            kill(&mut self.child);
            let _ = self.child.wait();
        }
        let _ = fs::remove_dir_all(&self.profile);
    }
}

/// On Unix the browser also listens to a DevTools pipe that only this process holds: the system closes it
/// however this process ends, and the browser ends with it. The shell then removes the profile.
#[cfg(unix)]
fn contained(browser: &Path, profile: &Path) -> Command {
    use std::os::unix::process::CommandExt;
    let script =
        r#"profile=$1; shift; "$@" 3<&0 4>/dev/null </dev/null; status=$?; rm -rf "$profile"; exit $status"#;
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script, "weft-browser"]).arg(profile).arg(browser).arg("--remote-debugging-pipe");
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

fn flags(hardware: Hardware, programs: &Programs, profile: &Path) -> Vec<String> {
    let mut flags: Vec<String> = [
        "--headless",
        "--remote-debugging-port=0",
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
    // The sandbox refuses to work for root, and the package has no helper for it.
    if root() || programs.package.is_some() {
        flags.push("--no-sandbox".to_owned());
    }
    flags
}

#[cfg(unix)]
fn root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
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

/// A folder of this process's own.
fn fresh_profile() -> io::Result<PathBuf> {
    use std::sync::atomic::{AtomicU32, Ordering};
    static STARTED: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let name =
            format!("weft-browser-{}-{number}-{:08x}", std::process::id(), super::server::random() as u32);
        let profile = std::env::temp_dir().join(name);
        match fs::create_dir(&profile) {
            Ok(()) => return Ok(profile),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
}

/// The last of what a browser writes about itself; reading it also keeps the browser from waiting.
struct Log(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl Log {
    const KEPT: usize = 4096;

    fn follow(child: &mut Child) -> Self {
        let kept = Self(std::sync::Arc::default());
        let Some(mut from) = child.stderr.take() else { return kept };
        let lines = std::sync::Arc::clone(&kept.0);
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
