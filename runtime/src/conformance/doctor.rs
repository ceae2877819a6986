//! `--doctor HW…`: loads the engine of each backend and tells what it finds, and what `Hardware::Auto` makes of it, one JSON
//! object a line.

use std::process::ExitCode;

use serde_json::{Value as Json, json};

use super::arguments::Arguments;
use crate::auto::{Found, Workload, device, verdict};
use crate::{Error, Hardware, Result, engine};

pub(super) fn main(arguments: &[String]) -> Result<ExitCode> {
    let arguments = Arguments::parse(arguments)?;
    for name in &arguments.alone {
        println!("{}", examine(name.parse()?));
    }
    Ok(ExitCode::SUCCESS)
}

fn examine(hardware: Hardware) -> Json {
    let mut found = engine_of(hardware);
    found["auto"] = match device::find(hardware, None) {
        Ok(Found { device, .. }) => {
            let verdicts = Workload::ALL.map(|workload| {
                let verdict = verdict(hardware, device, device::vendor(), workload);
                json!({ "workload": workload, "taken": verdict.taken, "reason": verdict.reason })
            });
            json!({ "device": device, "verdicts": verdicts })
        }
        Err(_) => Json::Null,
    };
    found
}

fn engine_of(hardware: Hardware) -> Json {
    match engine::available(hardware).and_then(|engine| Ok((engine, engine::devices(hardware)?))) {
        Ok((engine, devices)) => json!({ "hardware": hardware, "engine": engine, "devices": devices }),
        Err(Error::Unavailable { problem, help, .. }) => {
            json!({ "hardware": hardware, "missing": problem, "help": help })
        }
        Err(other) => json!({ "hardware": hardware, "missing": other.to_string() }),
    }
}
