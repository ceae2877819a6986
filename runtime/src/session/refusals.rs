//! What `config.json` says that changes the numbers and that no graph follows: refused by name.

use std::path::Path;

use serde_json::Value as Json;

use super::config::class_of;
use crate::Architecture;
use crate::{Error, Result};

/// Refuses quantized weights, classes of the checkpoint's own code and modules of other architectures.
pub(super) fn check<A: Architecture>(raw: &Json, path: &Path) -> Result<()> {
    refuse_quantized(raw, path)?;
    refuse_own_code::<A>(raw, path)?;
    refuse_modules::<A>(raw, path)
}

/// Refuses weights that are quantized: their tensors hold codes, not values.
fn refuse_quantized(raw: &Json, path: &Path) -> Result<()> {
    let quantization = ["quantization_config", "compression_config"].into_iter();
    let Some((name, config)) =
        quantization.map(|name| (name, &raw[name])).find(|(_, config)| config.is_object())
    else {
        return Ok(());
    };
    let method =
        config["quant_method"].as_str().map_or_else(String::new, |method| format!(", by `{method}`"));
    let problem = format!("`{name}` says that the weights are quantized{method}: such weights are not read");
    let help = "open the checkpoint that was quantized, or dequantize it with the reference and save it with \
                `save_pretrained`";
    Err(Error::config(path, problem, help))
}

/// Refuses checkpoints whose classes are code of their own (`trust_remote_code`): none that `auto_map` names is one of the
/// reference's for this architecture.
fn refuse_own_code<A: Architecture>(raw: &Json, path: &Path) -> Result<()> {
    let map = raw["auto_map"].as_object();
    let models = map.into_iter().flatten().filter(|(auto, _)| auto.starts_with("AutoModel"));
    let classes: Vec<&str> = models.filter_map(|(_, code)| code.as_str()?.rsplit('.').next()).collect();
    match classes.first() {
        Some(class) if !classes.iter().any(|class| class_of::<A>(class).is_some()) => {
            let problem = format!(
                "`auto_map` names code of the checkpoint's own, `{class}`, which weft-{} cannot stand for",
                A::NAME
            );
            let help =
                "take out `auto_map` if the reference gives the same numbers without `trust_remote_code`";
            Err(Error::config(path, problem, help))
        }
        _ => Ok(()),
    }
}

/// Refuses modules of other architectures than the graph's, such as a LLaVA over Qwen2.
fn refuse_modules<A: Architecture>(raw: &Json, path: &Path) -> Result<()> {
    for (field, known) in A::MODULE_TYPES {
        let within = field.split('.').fold(raw, |within, name| &within[name]);
        if let Some(found) = within["model_type"].as_str()
            && !known.contains(&found)
        {
            let known = known.join("`, `");
            let problem =
                format!("`{field}.model_type` is `{found}`, but weft-{} runs `{known}` there", A::NAME);
            let help = "only checkpoints of this composition can be opened; a spec that composes the other one adds them";
            return Err(Error::config(path, problem, help));
        }
    }
    Ok(())
}
