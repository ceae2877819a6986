//! The arguments of the binary's own modes: `--name value` pairs, flags, and what stands alone.

use std::str::FromStr;

use crate::{Error, Hardware, Precision, Result};

/// Arguments, taken apart.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    pub alone: Vec<String>,
    named: Vec<(String, String)>,
    pub json: bool,
}

impl Arguments {
    pub(super) fn parse(arguments: &[String]) -> Result<Self> {
        let mut parsed = Self::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.strip_prefix("--") {
                Some("json") => parsed.json = true,
                Some(name) => {
                    let value = rest.next().ok_or_else(|| {
                        Error::input(argument.as_str(), "has no value", format!("write `{argument} VALUE`"))
                    })?;
                    parsed.named.push((name.to_owned(), value.clone()));
                }
                None => parsed.alone.push(argument.clone()),
            }
        }
        Ok(parsed)
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.named.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn number(&self, name: &str, default: usize) -> Result<usize> {
        self.get(name).map_or(Ok(default), |value| {
            let wrong = || {
                Error::input(format!("--{name}"), format!("`{value}` is no number"), "give a whole number")
            };
            value.parse().map_err(|_| wrong())
        })
    }

    /// `true`, `false`, or not given.
    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>> {
        let wrong = |value: &str| {
            Error::input(
                format!("--{name}"),
                format!("`{value}` is neither true nor false"),
                "give one of them",
            )
        };
        self.get(name).map(|value| value.parse().map_err(|_| wrong(value))).transpose()
    }

    pub(super) fn hardware(&self) -> Result<Hardware> {
        self.get("hw").map_or(Ok(Hardware::Cpu), Hardware::from_str)
    }

    /// What is asked for, or what the hardware computes in unasked.
    pub(super) fn precision(&self) -> Result<Precision> {
        match self.get("precision") {
            None => Ok(self.hardware()?.default_precision()),
            Some(name) => Precision::from_str(name),
        }
    }
}
