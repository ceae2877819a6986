//! What older files say of their fields in another place than today's.

use serde_json::{Map, Value as Json};

/// Puts what older files say where it is read: `text_config_dict` in place of `text_config`, and the layers that
/// `attention_types` counts out in `attention_layers`, as the reference does; and numbers in place of infinity.
pub(super) fn prepare(raw: &mut Json) {
    infinities(raw);
    let Json::Object(fields) = raw else { return };
    config_dicts(fields);
    flat_text_config(fields);
    attention_layers(fields);
    hybrid_pattern(fields);
    block_types(fields);
    for name in ["layer_types", "layers_block_type"] {
        fields.get_mut(name).and_then(Json::as_array_mut).into_iter().flatten().for_each(layer_type);
    }
    for name in AUTOMATIC {
        if fields.get(name).is_some_and(|value| value == "auto") {
            fields.remove(name);
        }
    }
}

/// `M*-E` as the `layers_block_type` that its letters stand for, and how many layers those are (`NemotronHConfig`).
fn hybrid_pattern(fields: &mut Map<String, Json>) {
    const KINDS: [(char, &str); 4] =
        [('M', "linear_attention"), ('*', "full_attention"), ('-', "mlp"), ('E', "moe")];
    let given =
        ["layers_block_type", "layer_types"].iter().any(|name| fields.get(*name).is_some_and(Json::is_array));
    if let (false, Some(Json::String(pattern))) = (given, fields.get("hybrid_override_pattern")) {
        let kind = |letter: char| match KINDS.iter().find(|(known, _)| *known == letter) {
            Some((_, kind)) => Json::from(*kind),
            None => letter.to_string().into(),
        };
        let kinds: Vec<_> = pattern.chars().map(kind).collect();
        fields.insert("layers_block_type".to_owned(), kinds.into());
    }
    let layers = fields.get("layers_block_type").and_then(Json::as_array).map(Vec::len);
    if let (Some(layers), None) = (layers, fields.get("num_hidden_layers")) {
        fields.insert("num_hidden_layers".to_owned(), layers.into());
    }
}

/// As many layers as no model has, of which each would take room.
const MOST_LAYERS: u64 = 4096;

/// `block_types`, over and over, as `layer_types` (`RecurrentGemmaConfig`).
fn block_types(fields: &mut Map<String, Json>) {
    let Some(blocks) = fields.get("block_types").and_then(Json::as_array).filter(|blocks| !blocks.is_empty())
    else {
        return;
    };
    let layers = fields.get("num_hidden_layers").and_then(Json::as_u64).unwrap_or_default();
    let kinds =
        blocks.iter().cycle().take(layers.min(MOST_LAYERS) as usize).map(|block| match block.as_str() {
            Some("recurrent") => "linear_attention".into(),
            Some("attention") => "sliding_attention".into(),
            _ => block.clone(),
        });
    let kinds: Vec<Json> = kinds.collect();
    fields.insert("layer_types".to_owned(), kinds.into());
}

/// Sizes of state spaces that `auto` leaves to the others.
const AUTOMATIC: [&str; 3] = ["time_step_rank", "mamba_dt_rank", "mamba_d_head"];

/// What older files call layers (`remap_legacy_layer_types`).
fn layer_type(kind: &mut Json) {
    match kind.as_str() {
        Some("mamba") => *kind = "linear_attention".into(),
        Some("attention") => *kind = "full_attention".into(),
        _ => {}
    }
}

/// Infinity, which JSON has not and the reference writes as `{"__float__": "Infinity"}`, as the largest number.
fn infinities(value: &mut Json) {
    match value {
        Json::Array(items) => items.iter_mut().for_each(infinities),
        Json::Object(fields) => match fields.get("__float__").and_then(Json::as_str) {
            Some("Infinity") => *value = f64::MAX.into(),
            Some("-Infinity") => *value = f64::MIN.into(),
            _ => fields.values_mut().for_each(infinities),
        },
        _ => {}
    }
}

/// A configuration within, as it was written first: it stands for the one beside it, whose other fields hold no more.
fn config_dicts(fields: &mut Map<String, Json>) {
    for name in ["text_config", "vision_config", "image_config", "multimodal_config"] {
        let Some(Json::Object(mut whole)) = fields.remove(&format!("{name}_dict")) else { continue };
        if let Some(kind) =
            fields.get(name).and_then(|config| config.get("model_type")).filter(|kind| !kind.is_null())
        {
            whole.entry("model_type").or_insert_with(|| kind.clone());
        }
        fields.insert(name.to_owned(), Json::Object(whole));
    }
}

/// The text's fields, where they stand beside `vision_config` and not in a `text_config` (`Qwen2VLConfig`).
fn flat_text_config(fields: &mut Map<String, Json>) {
    let flat = fields.contains_key("vision_config") && fields.contains_key("num_hidden_layers");
    if !flat || fields.get("text_config").is_some_and(|config| !config.is_null()) {
        return;
    }
    let own = |name: &&String| !matches!(name.as_str(), "vision_config" | "model_type" | "architectures");
    let text = fields.iter().filter(|(name, _)| own(name)).map(|(name, value)| (name.clone(), value.clone()));
    let text = text.collect();
    fields.insert("text_config".to_owned(), Json::Object(text));
}

/// `[[["global", "local"], 2]]` as global, local, global, local; `attention_layers` itself goes before it.
fn attention_layers(fields: &mut Map<String, Json>) {
    if fields.get("attention_layers").is_some_and(|layers| !layers.is_null()) {
        return;
    }
    let Some(types) = fields.get("attention_types").and_then(Json::as_array) else { return };
    let mut layers = vec![];
    for item in types {
        let (Some(kinds), Some(count)) = (item[0].as_array(), item[1].as_u64()) else { return };
        for _ in 0..count.min(MOST) {
            layers.extend(kinds.iter().cloned());
        }
        if layers.len() as u64 > MOST {
            return;
        }
    }
    fields.insert("attention_layers".to_owned(), Json::Array(layers));
}

/// More layers than any model has.
const MOST: u64 = 1 << 12;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn prepared(mut raw: Json) -> Json {
        prepare(&mut raw);
        raw
    }

    #[test]
    fn a_config_dict_stands_for_the_configuration_beside_it() {
        let raw = json!({
            "text_config": {"model_type": "clip_text_model", "hidden_size": 512, "num_hidden_layers": 3},
            "text_config_dict": {"hidden_size": 768},
            "vision_config": {"hidden_size": 1024},
            "vision_config_dict": null,
        });
        let want = json!({
            "text_config": {"model_type": "clip_text_model", "hidden_size": 768},
            "vision_config": {"hidden_size": 1024},
        });
        assert_eq!(prepared(raw), want);
    }

    #[test]
    fn automatic_sizes_are_left_out() {
        assert_eq!(
            prepared(json!({"mamba_d_head": "auto", "hidden_act": "auto"})),
            json!({"hidden_act": "auto"})
        );
    }

    #[test]
    fn older_names_of_layer_types_are_todays() {
        let raw = json!({"layer_types": ["mamba", "attention", "conv"]});
        assert_eq!(prepared(raw), json!({"layer_types": ["linear_attention", "full_attention", "conv"]}));
        let raw = json!({"block_types": ["recurrent", "attention"], "num_hidden_layers": 3});
        let kinds = json!(["linear_attention", "sliding_attention", "linear_attention"]);
        assert_eq!(prepared(raw)["layer_types"], kinds);
        let raw = json!({"hybrid_override_pattern": "M*-E?"});
        let kinds = json!(["linear_attention", "full_attention", "mlp", "moe", "?"]);
        assert_eq!(prepared(raw.clone())["layers_block_type"], kinds);
        assert_eq!(prepared(raw)["num_hidden_layers"], 5);
    }

    #[test]
    fn infinity_is_the_largest_number() {
        let raw =
            json!({"time_step_limit": [0.0, {"__float__": "Infinity"}], "least": {"__float__": "-Infinity"}});
        assert_eq!(prepared(raw), json!({"time_step_limit": [0.0, f64::MAX], "least": f64::MIN}));
    }

    #[test]
    fn attention_types_are_counted_out_where_the_layers_are_not_listed() {
        let types = json!([[["global", "local"], 2], [["global"], 1]]);
        let layers = prepared(json!({"attention_types": types}))["attention_layers"].clone();
        assert_eq!(layers, json!(["global", "local", "global", "local", "global"]));
        let given = json!({"attention_types": types, "attention_layers": ["local"]});
        assert_eq!(prepared(given.clone()), given);
        let hostile = json!({"attention_types": [[["global"], u64::MAX], [["local"], u64::MAX]]});
        assert_eq!(prepared(hostile.clone()), hostile);
    }
}
