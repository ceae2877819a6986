//! Metadata as the `config.json` of a checkpoint.

use serde_json::{Map, Value as Json, json};

use super::Gguf;
use super::architectures::{Model, Rope, Source, When};
use super::value::Value;
use crate::Result;

/// More layers than any model has.
const MOST_LAYERS: u64 = 1 << 12;

/// The first model that a file can be of, among those named where any is.
pub(super) fn model(gguf: &Gguf, models: &[&str]) -> Option<&'static Model> {
    let fits = |model: &&Model| match model.when {
        When::Always => true,
        When::Has(key) => gguf.value(key).is_some(),
        When::Lacks(key) => gguf.value(key).is_none(),
        When::Holds(key) => gguf.value(key).and_then(Value::json) == Some(Json::Bool(true)),
        When::Is(key, number) => gguf.value(key).and_then(Value::whole) == Some(number),
        When::HasTensor(name) => gguf.tensor(name).is_some(),
    };
    let mut candidates = gguf.architecture.models.iter().filter(fits);
    let first = candidates.clone().next();
    candidates.find(|model| models.contains(&model.model_type)).or(first)
}

/// `config.json` of the first model that fits, among those named where any is.
pub(super) fn json(gguf: &Gguf, models: &[&str]) -> Result<Json> {
    let model = model(gguf, models).ok_or_else(|| gguf.wrong("is of no model of its architecture"))?;
    let mut config = Map::new();
    config.insert("model_type".to_owned(), json!(model.model_type));
    config.insert("architectures".to_owned(), json!([model.class]));
    if let Some(rope) = rope(gguf)? {
        config.insert("rope_parameters".to_owned(), rope);
    }
    for (field, source) in gguf.architecture.fields.iter().copied().flatten() {
        if let Some(value) = field_value(gguf, source)? {
            insert(&mut config, field, value);
        }
    }
    for (key, field) in [("bos", "bos_token_id"), ("eos", "eos_token_id"), ("padding", "pad_token_id")] {
        let id = gguf.files[0].metadata.get(&format!("tokenizer.ggml.{key}_token_id"));
        if let Some(id) = id.and_then(Value::whole) {
            config.insert(field.to_owned(), json!(id));
        }
    }
    Ok(Json::Object(config))
}

/// Sets a field, or `object.field` of an object that is there.
fn insert(config: &mut Map<String, Json>, field: &str, value: Json) {
    let Some((object, field)) = field.split_once('.') else {
        config.insert(field.to_owned(), value);
        return;
    };
    if let Some(Json::Object(object)) = config.get_mut(object) {
        object.insert(field.to_owned(), value);
    }
}

fn field_value(gguf: &Gguf, source: &Source) -> Result<Option<Json>> {
    Ok(match source {
        Source::Key(keys) => Some(required(gguf, keys)?),
        Source::Maybe(keys) => optional(gguf, keys)?,
        Source::OrNull(keys) => Some(optional(gguf, keys)?.unwrap_or_default()),
        Source::Or(key, other) => match optional(gguf, &[key])? {
            None => serde_json::from_str(other).ok(),
            found => found,
        },
        Source::Times(key, times) => {
            let found = optional(gguf, &[key])?.and_then(|value| value.as_f64());
            found.map(|number| json!(number * times))
        }
        Source::Difference(keys, less) => {
            let (whole, less) = (whole_of(gguf, keys)?, whole(gguf, less)?);
            let left = whole.checked_sub(less).filter(|left| *left > 0);
            let wrong = || gguf.wrong(format!("has heads of {whole}, of which {less} are turned"));
            Some(json!(left.ok_or_else(wrong)?))
        }
        Source::Window => {
            let window = optional(gguf, &["attention.sliding_window"])?;
            Some(window.filter(|window| *window != 0).unwrap_or_default())
        }
        Source::Has(tensor) => Some(json!(gguf.tensor(tensor).is_some())),
        Source::Lacks(tensor) => Some(json!(gguf.tensor(tensor).is_none())),
        Source::Rows(tensor) => {
            let found = gguf.tensor(tensor).ok_or_else(|| gguf.wrong(format!("has no tensor `{tensor}`")))?;
            Some(json!(found.1.shape[0]))
        }
        Source::Fixed(value) => serde_json::from_str(value).ok(),
        Source::LayerTypes => by_layer(gguf, "attention.sliding_window_pattern", |window| {
            if window == 0.0 { "full_attention" } else { "sliding_attention" }
        }),
        Source::KeyHeadLayers(other) => {
            let word = |heads| if heads == 0.0 { *other } else { "full_attention" };
            by_layer(gguf, "attention.head_count_kv", word)
        }
        Source::InLayers(name) => {
            let of_layer = |tensor: &str| {
                tensor.strip_prefix("blk.").and_then(|rest| rest.split_once('.')).map(|(_, name)| name)
                    == Some(name)
            };
            let mut tensors = gguf.files.iter().flat_map(|file| &file.tensors);
            Some(json!(tensors.any(|tensor| of_layer(&tensor.name))))
        }
        Source::Choice(key, [yes, no]) => {
            let is = gguf.value(key).and_then(Value::json) == Some(Json::Bool(true));
            serde_json::from_str(if is { yes } else { no }).ok()
        }
        Source::LeadingDense => {
            let dense = required(gguf, &["leading_dense_block_count"])?.as_u64().unwrap_or(0);
            let layers = whole(gguf, "block_count")?.min(MOST_LAYERS);
            let word = |layer| if layer < dense { "dense" } else { "sparse" };
            Some((0..layers).map(word).collect())
        }
        Source::MostKeyHeads => match most_key_heads(gguf) {
            Some(most) => Some(json!(most)),
            None => optional(gguf, &["attention.head_count_kv"])?,
        },
        Source::Quotient(key, by) => Some(json!(whole(gguf, key)? / whole(gguf, by)?)),
        Source::HeadDim => Some(json!(head_dim(gguf)?)),
        Source::QueryScalar(layers) => {
            let by_heads = whole(gguf, "block_count")? == *layers;
            let width =
                if by_heads { whole(gguf, "embedding_length")? / heads(gguf)? } else { head_dim(gguf)? };
            Some(json!(width))
        }
    })
}

/// The numbers of a key that has one for each layer.
fn numbers(gguf: &Gguf, key: &str) -> Option<Vec<f64>> {
    gguf.files[0].numbers(&format!("{}.{key}", gguf.architecture.name))
}

/// A word for each layer, where a key has a number for each.
fn by_layer(gguf: &Gguf, key: &str, word: impl Fn(f64) -> &'static str) -> Option<Json> {
    let numbers = numbers(gguf, key)?;
    Some(numbers.into_iter().map(word).collect())
}

fn required(gguf: &Gguf, keys: &[&str]) -> Result<Json> {
    optional(gguf, keys)?.ok_or_else(|| {
        let name = gguf.architecture.name;
        gguf.wrong(format!("has no metadata `{name}.{}`", keys[0]))
    })
}

/// The first of some keys; of those that can differ by layer, the value that all layers have.
fn optional(gguf: &Gguf, keys: &[&str]) -> Result<Option<Json>> {
    let Some((key, value)) = keys.iter().find_map(|key| Some((key, gguf.value(key)?))) else {
        return Ok(None);
    };
    if let Some(value) = value.json() {
        return Ok(Some(value));
    }
    let name = format!("{}.{key}", gguf.architecture.name);
    let numbers = numbers(gguf, key).unwrap_or_default();
    match numbers.first() {
        Some(first) if numbers.iter().all(|number| number == first) && first.fract() == 0.0 => {
            Ok(Some(json!(*first as i64)))
        }
        _ => {
            Err(gguf
                .wrong(format!("has metadata `{name}` that differ by layer, which no such model has here")))
        }
    }
}

/// A positive whole number.
fn whole(gguf: &Gguf, key: &str) -> Result<u64> {
    whole_of(gguf, &[key])
}

/// The first of some keys, a positive whole number.
fn whole_of(gguf: &Gguf, keys: &[&str]) -> Result<u64> {
    let found = required(gguf, keys)?.as_u64().filter(|number| *number > 0);
    found.ok_or_else(|| {
        let name = gguf.architecture.name;
        gguf.wrong(format!("has metadata `{name}.{}` that are no positive number", keys[0]))
    })
}

pub(crate) fn heads(gguf: &Gguf) -> Result<u64> {
    whole(gguf, "attention.head_count")
}

pub(crate) fn kv_heads(gguf: &Gguf) -> Result<u64> {
    match (gguf.value("attention.head_count_kv"), most_key_heads(gguf)) {
        (_, Some(most)) => Ok(most),
        (Some(_), None) => whole(gguf, "attention.head_count_kv"),
        (None, None) => heads(gguf),
    }
}

/// The key heads of layers that have any, where files have a number for each layer.
fn most_key_heads(gguf: &Gguf) -> Option<u64> {
    let numbers = numbers(gguf, "attention.head_count_kv")?;
    Some(numbers.into_iter().fold(0.0, f64::max) as u64).filter(|most| *most > 0)
}

/// The heads of keys of a gated delta rule, and their width.
pub(crate) fn delta_rule_keys(gguf: &Gguf) -> Result<[usize; 2]> {
    Ok([whole(gguf, "ssm.group_count")? as usize, whole(gguf, "ssm.state_size")? as usize])
}

fn head_dim(gguf: &Gguf) -> Result<u64> {
    match gguf.value("attention.key_length") {
        Some(_) => whole(gguf, "attention.key_length"),
        None => Ok(whole(gguf, "embedding_length")? / heads(gguf)?),
    }
}

/// Parameters of rotary position embeddings, with `rope_freqs` and the factors of long texts, which are tensors.
fn rope(gguf: &Gguf) -> Result<Option<Json>> {
    if gguf.architecture.rope == Rope::Absent {
        return Ok(None);
    }
    let theta = optional(gguf, &["rope.freq_base"])?.unwrap_or_else(|| json!(10_000.0));
    let mut rope = scaling(gguf)?;
    rope.insert("rope_theta".to_owned(), theta);
    // All of a head where the file does not say, whatever the architecture's `config.json` has as a standard.
    let mut share = 1.0;
    let turned = gguf.value("rope.dimension_count").and_then(Value::whole);
    if let Some(turned) = turned.filter(|_| gguf.architecture.rope != Rope::Part) {
        let width = head_dim(gguf)?;
        if turned > width || turned == 0 {
            return Err(gguf.wrong(format!("turns {turned} of the {width} dimensions of a head")));
        }
        share = turned as f64 / width as f64;
    }
    rope.insert("partial_rotary_factor".to_owned(), json!(share));
    Ok(Some(match gguf.architecture.rope {
        Rope::ByLayers(local) => {
            let local = optional(gguf, &["rope.freq_base_swa"])?.unwrap_or_else(|| json!(local));
            json!({"full_attention": rope, "sliding_attention": {"rope_type": "default", "rope_theta": local}})
        }
        _ => Json::Object(rope),
    }))
}

fn scaling(gguf: &Gguf) -> Result<Map<String, Json>> {
    let mut rope = Map::new();
    let original = optional(gguf, &["rope.scaling.original_context_length"])?;
    let mut set = |name: &str, value: Option<Json>| rope.extend(value.map(|value| (name.to_owned(), value)));
    if let Some(long) = factors(gguf, "rope_factors_long.weight")? {
        let short = factors(gguf, "rope_factors_short.weight")?.unwrap_or_else(|| long.clone());
        set("rope_type", Some(json!("longrope")));
        set("long_factor", Some(json!(long)));
        set("short_factor", Some(json!(short)));
        set("attention_factor", optional(gguf, &["rope.scaling.attn_factor"])?);
        set("original_max_position_embeddings", original);
    } else if let Some(factors) = factors(gguf, "rope_freqs.weight")? {
        // Llama 3.1's scaling is in the file as what frequencies are divided by, whatever the length.
        set("rope_type", Some(json!("longrope")));
        set("long_factor", Some(json!(factors)));
        set("short_factor", Some(json!(factors)));
        set("attention_factor", Some(json!(1.0)));
        set("original_max_position_embeddings", Some(required(gguf, &["context_length"])?));
    } else {
        let kind = gguf.value("rope.scaling.type").and_then(Value::text).unwrap_or("none");
        let factor = optional(gguf, &["rope.scaling.factor"])?;
        match kind {
            "none" => set("rope_type", Some(json!("default"))),
            "linear" => {
                set("rope_type", Some(json!("linear")));
                set("factor", factor);
            }
            "yarn" => {
                set("rope_type", Some(json!("yarn")));
                set("factor", factor);
                set("original_max_position_embeddings", original);
                set(
                    "attention_factor",
                    optional(gguf, &["rope.scaling.attn_factor", "rope.scaling.yarn_attn_factor"])?,
                );
                set("beta_fast", optional(gguf, &["rope.scaling.yarn_beta_fast"])?);
                set("beta_slow", optional(gguf, &["rope.scaling.yarn_beta_slow"])?);
            }
            other => {
                return Err(
                    gguf.wrong(format!("scales rotary position embeddings by `{other}`, which is not known"))
                );
            }
        }
    }
    Ok(rope)
}

/// The values of a vector in single precision.
fn factors(gguf: &Gguf, name: &str) -> Result<Option<Vec<f32>>> {
    let Some((file, tensor)) = gguf.tensor(name) else { return Ok(None) };
    if tensor.kind.name != "F32" {
        return Err(gguf.wrong(format!("has a tensor `{name}` of type {}, not F32", tensor.kind.name)));
    }
    let values = file.bytes(tensor).chunks_exact(4).map(|x| f32::from_le_bytes([x[0], x[1], x[2], x[3]]));
    Ok(Some(values.collect()))
}
