//! What a checkpoint says of how its weights are quantized: `quantization_config`, or the files of older tools.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::{FORMATS, Format};
use crate::hub::Checkpoint;
use crate::{Dtype, Error, Result};

/// How the weights of a checkpoint are quantized.
#[derive(Clone, Debug)]
pub(crate) struct Published {
    pub format: &'static Format,
    /// `quantization_config`.
    pub config: Json,
    /// What its weights were before, as `config.json` says: single precision where it does not.
    pub dtype: Dtype,
}

const CONFIG: &str = "config.json";

/// Files beside `config.json` of tools that left it alone, with the method that each means.
const OLDER: [(&str, &str); 3] =
    [("quantize_config.json", "gptq"), ("quant_config.json", "awq"), ("quanto_qmap.json", "quanto")];

impl Published {
    /// What `config.json` says, or a file beside it; none where the weights are not quantized.
    ///
    /// # Errors
    /// When a file is not JSON, or the method is not one of those that are read.
    pub(crate) fn of(checkpoint: &Checkpoint) -> Result<Option<Self>> {
        let path = checkpoint.path(CONFIG)?.unwrap_or_else(|| PathBuf::from(CONFIG));
        let raw = checkpoint.json(CONFIG)?.unwrap_or_default();
        if let Some(found) = Self::named(&raw, &path)? {
            return Ok(Some(found));
        }
        for (file, method) in OLDER {
            if let Some(mut config) = checkpoint.json(file)?.filter(Json::is_object) {
                config["quant_method"].is_null().then(|| config["quant_method"] = method.into());
                let path = checkpoint.path(file)?.unwrap_or_else(|| PathBuf::from(file));
                return published(config, &raw, ("the file", &path)).map(Some);
            }
        }
        Ok(None)
    }

    /// What the configuration itself says.
    ///
    /// # Errors
    /// When the method is not one of those that are read.
    pub(crate) fn named(raw: &Json, path: &Path) -> Result<Option<Self>> {
        for within in [raw, &raw["text_config"], &raw["llm_config"]] {
            for name in ["quantization_config", "compression_config"] {
                if within[name].is_object() {
                    let dtype = if within["dtype"].is_null() && within["torch_dtype"].is_null() {
                        raw
                    } else {
                        within
                    };
                    return published(within[name].clone(), dtype, (name, path)).map(Some);
                }
            }
        }
        Ok(None)
    }

    /// A whole number of the configuration, under any of these names.
    pub(super) fn number(&self, names: &[&str]) -> Option<i64> {
        names.iter().find_map(|name| self.config[name].as_i64())
    }

    /// Whether modules may differ from the configuration.
    pub(super) fn varies(&self, field: &str) -> bool {
        self.config[field].as_object().is_some_and(|overrides| !overrides.is_empty())
    }

    /// Values in the checkpoint's own dtype.
    pub(super) fn stored(&self, values: &[f32]) -> (Dtype, Vec<u8>) {
        let bytes = match self.dtype {
            Dtype::F16 => values.iter().flat_map(|x| half::f16::from_f32(*x).to_le_bytes()).collect(),
            Dtype::Bf16 => values.iter().flat_map(|x| half::bf16::from_f32(*x).to_le_bytes()).collect(),
            _ => return (Dtype::F32, values.iter().flat_map(|x| x.to_le_bytes()).collect()),
        };
        (self.dtype, bytes)
    }

    /// How many elements a stored one of so many bits stands for, where it holds codes.
    pub(crate) fn elements(&self, bits: usize) -> usize {
        let own = self.number(&["bits", "w_bit", "nbits"]).and_then(|bits| usize::try_from(bits).ok());
        match own.filter(|own| [2, 3, 4, 8].contains(own)) {
            Some(own) => (bits / own).max(1),
            None => (bits / 4).max(1),
        }
    }
}

/// The format that a configuration names.
fn published(config: Json, raw: &Json, (name, path): (&str, &Path)) -> Result<Published> {
    let dtype = match raw["dtype"].as_str().or_else(|| raw["torch_dtype"].as_str()) {
        Some("bfloat16") => Dtype::Bf16,
        Some("float16") => Dtype::F16,
        _ => Dtype::F32,
    };
    let method = method(&config);
    let known = || FORMATS.iter().map(|format| format.name).collect::<Vec<_>>().join("`, `");
    let refuse = |problem: String| {
        let help = format!(
            "open the checkpoint that was quantized, or one quantized by `{}`; or dequantize it with the reference and \
             save it with `save_pretrained`",
            known()
        );
        Err(Error::config(path, problem, help))
    };
    let Some(format) = FORMATS.iter().find(|format| format.name == method) else {
        return match method.as_str() {
            "" => {
                refuse(format!("`{name}` has no `quant_method`: how the weights are quantized is not said"))
            }
            _ => refuse(format!(
                "`{name}` says that the weights are quantized by `{method}`, which is not read"
            )),
        };
    };
    let published = Published { format, config, dtype };
    match (format.refuses)(&published.config) {
        Some(what) => refuse(format!("`{name}`, of `{method}`, says {what}, which is not read")),
        None => Ok(published),
    }
}

/// The method's name, where tools differ by what they write.
fn method(config: &Json) -> String {
    let named = config["quant_method"].as_str().unwrap_or_default().to_lowercase();
    let says = |field: &str| config[field].as_bool() == Some(true);
    match named.as_str() {
        "" if says("load_in_4bit") || says("load_in_8bit") => "bitsandbytes".to_owned(),
        "auto-round" | "intel/auto-round" => {
            let packing = config["packing_format"].as_str().unwrap_or("auto_round:auto_gptq");
            let gptq = packing.ends_with("auto_gptq");
            let awq = packing.ends_with("awq");
            if gptq {
                "gptq".to_owned()
            } else if awq {
                "awq".to_owned()
            } else {
                packing.to_owned()
            }
        }
        "sparseml" => "compressed-tensors".to_owned(),
        _ => named,
    }
}
