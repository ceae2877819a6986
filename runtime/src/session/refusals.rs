//! What `config.json` says that changes the numbers and that no graph follows: refused by name.

use std::path::Path;

use serde_json::Value as Json;

use super::config::class_of;
use crate::Architecture;
use crate::weights::published::Published;
use crate::{Error, Result};

/// Refuses weights quantized by methods that are not read, classes of the checkpoint's own code and modules of other architectures.
pub(super) fn check<A: Architecture>(raw: &Json, path: &Path) -> Result<()> {
    Published::named(raw, path)?;
    refuse_own_code::<A>(raw, path)?;
    refuse_modules::<A>(raw, path)
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

/// Fields that the reference reads of every configuration, which no graph follows.
const EVERYWHERE: [&str; 5] = [
    "per_layer_config",
    "attention_chunk_size",
    "kv_sharing_modes",
    "tie_last_hidden_states",
    "transformers_weights",
];

/// Refuses what the reference reads of every configuration and this one's type, whose fields these are, passes over; and
/// decoders whose attention is not causal where the graph knows causal attention alone.
pub(super) fn refuse_passed_over(raw: &Json, fields: &Json, path: &Path) -> Result<()> {
    let refuse = |problem: String| {
        let help = "take the field out if the reference gives the same numbers without it";
        Err(Error::config(path, problem, help))
    };
    let Json::Object(raw) = raw else { return Ok(()) };
    let read = |name: &str| fields.get(name).is_some();
    for name in EVERYWHERE {
        if raw.get(name).is_some_and(|value| !value.is_null()) && !read(name) {
            return refuse(format!(
                "`{name}` is not supported: the graph is the same for all layers and lengths"
            ));
        }
    }
    let says = |name: &str, value: bool| raw.get(name) == Some(&Json::Bool(value));
    if says("is_decoder", true) && says("is_causal", false) && !read("is_causal") {
        return refuse("`is_causal` is false where `is_decoder` is set, which is not supported".to_owned());
    }
    let within = raw.iter().filter(|(name, _)| name.ends_with("_config"));
    within.into_iter().try_for_each(|(name, config)| refuse_passed_over(config, &fields[name], path))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problem(raw: &Json, fields: &Json) -> String {
        let checked = refuse_passed_over(raw, fields, Path::new("config.json"));
        checked.map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn what_a_graph_passes_over_is_refused_by_name_at_any_depth() {
        let none = json!({});
        for name in EVERYWHERE {
            let within = json!({"text_config": {name: 4}});
            assert!(problem(&json!({name: 4}), &none).contains(&format!("`{name}`")));
            assert!(problem(&within, &none).contains(&format!("`{name}`")));
            assert_eq!(problem(&json!({name: null}), &none), "");
            assert_eq!(problem(&within, &json!({"text_config": {name: 4}})), "");
        }
        let decoder = json!({"is_decoder": true, "is_causal": false});
        assert!(problem(&decoder, &none).contains("`is_causal`"));
        assert_eq!(problem(&decoder, &json!({"is_causal": false})), "");
        assert_eq!(problem(&json!({"is_decoder": false, "is_causal": false}), &none), "");
    }
}
