//! `--verify DIR…`: runs case folders and gives a record for each.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use super::arguments::Arguments;
use super::lowered::Presence;
use super::run::{Target, golden};
use super::subject::Subject;
use super::{Suite, tasks};
use crate::golden::TOLERANCE;
use crate::{Error, Result};

/// One JSON record a line, into the file of `--records` or printed with `--json`; a line for each output otherwise.
///
/// Engines' libraries print to standard output as well, so that a program reads the file.
pub(super) fn main(subject: Subject, suite: &Suite, arguments: &[String]) -> Result<ExitCode> {
    let arguments = Arguments::parse(arguments)?;
    let (hardware, precision) = (arguments.hardware()?, arguments.precision()?);
    let tolerance = suite.backend(hardware).map_or(TOLERANCE, |backend| backend.tolerance(precision));
    let cpu_fallback = suite.backend(hardware).map_or(&[][..], |backend| backend.cpu_fallback_ops);
    let presence = Presence::of(hardware);
    let absent = presence.published();
    let target =
        Target { hardware, precision, tolerance, kind: "verify", absent, cpu_fallback, refused: &[] };
    let mut passed = !arguments.alone.is_empty();
    let mut records = match arguments.get("records").map(Path::new) {
        Some(path) => Some((File::create(path).map_err(|e| Error::io(path, e))?, path)),
        None => None,
    };
    for dir in &arguments.alone {
        let dir = Path::new(dir);
        let of_task = !dir.join("io.safetensors").is_file() && dir.join(tasks::FILE).is_file();
        let record = if of_task { tasks::golden(subject, dir, target) } else { golden(subject, dir, target) };
        passed &= record.passed;
        if let Some((file, path)) = &mut records {
            let line = serde_json::to_string(&record).unwrap_or_default() + "\n";
            file.write_all(line.as_bytes()).map_err(|e| Error::io(path, e))?;
            continue;
        }
        if arguments.json {
            println!("{}", serde_json::to_string(&record).unwrap_or_default());
            continue;
        }
        println!("{}: {}", dir.display(), if record.passed { "passed" } else { "failed" });
        if let Some(reason) = record.reason.as_ref().filter(|_| record.passed) {
            println!("  {}: {reason}", record.evidence);
        }
        for output in &record.outputs {
            let (abs, rel) = (output.max_abs.unwrap_or(f64::NAN), output.max_rel.unwrap_or(f64::NAN));
            println!("  {} {:?}: max abs {abs:.2e}, max rel {rel:.2e}", output.name, output.shape);
        }
        if !record.passed {
            println!("  {}", record.failure().replace('\n', "\n  "));
        }
    }
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
