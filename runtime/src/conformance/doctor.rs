//! `--doctor HW…`: loads the engine of each backend and tells what it finds, one JSON object a line.

use std::process::ExitCode;

use serde_json::{Value as Json, json};

use super::arguments::Arguments;
use crate::{Error, Hardware, Result, engine};

pub(super) fn main(arguments: &[String]) -> Result<ExitCode> {
    let arguments = Arguments::parse(arguments)?;
    for name in &arguments.alone {
        println!("{}", examine(name.parse()?));
    }
    Ok(ExitCode::SUCCESS)
}

fn examine(hardware: Hardware) -> Json {
    match engine::available(hardware).and_then(|engine| Ok((engine, engine::devices(hardware)?))) {
        Ok((engine, devices)) => json!({ "hardware": hardware, "engine": engine, "devices": devices }),
        Err(Error::Unavailable { problem, help, .. }) => {
            json!({ "hardware": hardware, "missing": problem, "help": help })
        }
        Err(other) => json!({ "hardware": hardware, "missing": other.to_string() }),
    }
}
