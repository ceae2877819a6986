//! What a person sees: text on standard output, notes and progress on standard error, Ctrl-C.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use weft_generator::spec::document::nearest_name;

/// The command line was understood, but asks for something that does not exist: exit code 2.
#[derive(Debug)]
pub struct Usage(pub String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Writes the result of a command to standard output; a reader that has gone away is an error, not a panic.
pub fn say(text: impl AsRef<str>) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_ref().as_bytes())?;
    if !text.as_ref().ends_with('\n') {
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

/// Writes one line of progress to standard error; nothing is lost if nobody reads it.
pub fn note(text: impl AsRef<str>) {
    let _ = writeln!(io::stderr(), "{}", text.as_ref());
}

/// A progress bar on a terminal; elsewhere the same messages as plain lines.
pub struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    pub fn new(total: usize) -> Self {
        if !io::stderr().is_terminal() {
            return Self { bar: None };
        }
        let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{bar:32} {pos}/{len}  {elapsed}  {wide_msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar: Some(bar) }
    }

    /// One more thing is done; `what` stands beside the bar.
    pub fn step(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(what.to_owned());
            bar.inc(1);
        }
    }

    /// A line that stays.
    pub fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => note(text),
        }
    }

    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Ctrl-C asks the running verb to stop, keep what it has and report it; a second one ends it at once.
pub fn catch_interrupts() -> Result<()> {
    Ok(ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::SeqCst) {
            std::process::exit(1);
        }
        note("\ninterrupted: stopping; what was finished is kept (Ctrl-C again to leave at once)");
    })?)
}

pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// "unknown model `brt`; did you mean `bert`?"
pub fn unknown<'a>(what: &str, name: &str, known: impl IntoIterator<Item = &'a str>) -> Usage {
    let mut known: Vec<_> = known.into_iter().collect();
    known.sort_unstable();
    known.dedup();
    let hint = match nearest_name(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => "there are none yet".into(),
        None => format!("there are: {}", known.join(", ")),
    };
    Usage(format!("unknown {what} `{name}`; {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_name_gets_the_nearest_one() {
        let known = ["bert", "roberta", "llama"];
        assert_eq!(unknown("model", "brt", known).0, "unknown model `brt`; did you mean `bert`?");
        assert_eq!(unknown("model", "xyz", known).0, "unknown model `xyz`; there are: bert, llama, roberta");
    }
}
