//! `weft doctor`: what this machine can run, and what each backend lacks.

use serde_json::json;
use weft::{Error, Hardware, Result, engine};

use crate::options;
use crate::terminal::{heading, say};

/// Tells which backends are on this machine, and what the others lack.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Only these backends.
    #[arg(long = "hw", value_name = "HW", value_parser = options::hardware())]
    hardware: Vec<Hardware>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// Runs the verb; whether the backends that were named are here, or any where none was.
pub fn run(args: &Args) -> Result<bool> {
    let asked = if args.hardware.is_empty() { Hardware::ALL.to_vec() } else { args.hardware.clone() };
    let found: Vec<_> = asked
        .into_iter()
        .map(|hardware| {
            let found = engine::available(hardware);
            let devices = found.is_ok().then(|| engine::devices(hardware).unwrap_or_default());
            (hardware, found, devices.unwrap_or_default())
        })
        .collect();
    if args.json {
        let entry = |(hardware, found, devices): &(Hardware, Result<String>, Vec<String>)| match found {
            Ok(engine) => json!({ "hardware": hardware, "engine": engine, "devices": devices }),
            Err(error) => {
                let (problem, help) = parts(error);
                json!({ "hardware": hardware, "missing": problem, "help": help })
            }
        };
        let all: Vec<_> = found.iter().map(entry).collect();
        say(format!("{:#}", json!(all)));
    } else {
        for (hardware, found, devices) in &found {
            match found {
                Ok(engine) => {
                    say(format!("{}  {engine}", heading(&format!("{:<9}", hardware.name()))));
                    devices.iter().for_each(|device| say(format!("           {device}")));
                }
                Err(error) => {
                    let (problem, help) = parts(error);
                    say(format!("{:<9}  missing: {problem}", hardware.name()));
                    say(format!("           {help}"));
                }
            }
        }
    }
    let all = found.iter().all(|(_, found, _)| found.is_ok());
    Ok(all || (args.hardware.is_empty() && found.iter().any(|(_, found, _)| found.is_ok())))
}

/// What is missing, and the way out.
fn parts(error: &Error) -> (String, String) {
    match error {
        Error::Unavailable { problem, help, .. } => (problem.clone(), help.clone()),
        other => (other.to_string(), String::new()),
    }
}
