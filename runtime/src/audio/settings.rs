//! What a checkpoint says about its feature extractor.

use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use crate::hub::Checkpoint;
use crate::{Error, Result};

const OWN: &str = "preprocessor_config.json";
const JOINT: &str = "processor_config.json";

/// The settings of a feature extractor, and the file they are from.
pub(super) struct Settings {
    path: PathBuf,
    json: Json,
    processor: Option<String>,
}

impl Settings {
    /// Those of `processor_config.json` where it has them, else `preprocessor_config.json`.
    pub(super) fn read(checkpoint: &Checkpoint) -> Result<Self> {
        if let Some(mut joint) = checkpoint.json(JOINT)? {
            let nested = ["feature_extractor", "audio_processor"].iter().find(|key| joint[**key].is_object());
            if let Some(key) = nested {
                let processor = joint["processor_class"].as_str().map(str::to_owned);
                return Ok(Self { path: checkpoint.dir().join(JOINT), json: joint[*key].take(), processor });
            }
        }
        let path = checkpoint.require(OWN)?;
        let json = checkpoint.json(OWN)?.unwrap_or_default();
        let processor = json["processor_class"].as_str().map(str::to_owned);
        Ok(Self { path, json, processor })
    }

    /// The class of the processor that the extractor is a part of (`processor_class`); files of extractors alone do not say.
    pub(super) fn processor(&self) -> Option<&str> {
        self.processor.as_deref()
    }

    /// The class that the settings are of; older files do not say.
    pub(super) fn class(&self) -> Option<&str> {
        self.json["feature_extractor_type"].as_str()
    }

    pub(super) fn has(&self, key: &str) -> bool {
        !self.json[key].is_null()
    }

    pub(super) fn typed<T: DeserializeOwned>(&self) -> Result<T> {
        serde_path_to_error::deserialize(&self.json).map_err(|e| {
            let problem = format!("`{}`: {}", e.path(), e.inner());
            Error::config(&self.path, problem, "use the file as the checkpoint publishes it")
        })
    }

    pub(super) fn refuse(&self, problem: impl Into<String>) -> Error {
        Error::config(&self.path, problem, "use the file as the checkpoint publishes it")
    }
}

/// A setting that must be at least one, and no more than any model has.
pub(super) fn positive(settings: &Settings, name: &str, value: usize) -> Result<()> {
    let most = match name {
        "sampling_rate" | "hop_length" => 1 << 21,
        _ => 1 << 14,
    };
    match value {
        0 => Err(settings.refuse(format!("`{name}` is 0, must be at least 1"))),
        _ if value > most => Err(settings.refuse(format!("`{name}` is {value}, must be at most {most}"))),
        _ => Ok(()),
    }
}

/// The samples of so many seconds, which must not make more frames than any model takes.
pub(super) fn samples(settings: &Settings, seconds: usize, rate: u32, hop: usize) -> Result<usize> {
    let samples = seconds.saturating_mul(rate as usize);
    if samples > 1 << 26 || samples / hop > 1 << 16 {
        let problem =
            format!("{seconds} s are {samples} samples at {rate} Hz, too many for frames {hop} apart");
        return Err(settings.refuse(problem));
    }
    Ok(samples)
}

/// All extractors pad on the right; the reference's own arithmetic assumes it.
pub(super) fn right_padded(settings: &Settings, side: Option<&str>) -> Result<()> {
    match side {
        None | Some("right") => Ok(()),
        Some(side) => {
            Err(settings.refuse(format!("`padding_side` is \"{side}\"; only \"right\" is supported")))
        }
    }
}
