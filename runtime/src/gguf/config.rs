//! Metadata as the `config.json` of a checkpoint.

mod layers;

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json, json};

use super::Gguf;
use super::architectures::{Model, Rope, Source, When};
use super::value::Value;
use crate::Result;
use crate::nn::normal_share;

/// More positions of padding than any model has.
const MOST_PADDING: u64 = 1 << 10;
/// Deviations from the mean beyond which a normal distribution has nothing.
const MOST_DEVIATIONS: f64 = 30.0;
/// What frequencies are divided by at least where they are to be none.
const NO_FREQUENCY: f32 = 1e20;
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
        When::LacksTensor(name) => gguf.tensor(name).is_none(),
        When::Tokenizer(kind) => {
            gguf.files[0].metadata.get("tokenizer.ggml.model").and_then(Value::text) == Some(kind)
        }
        When::TextSplit(kind) => {
            gguf.files[0].metadata.get("tokenizer.ggml.pre").and_then(Value::text) == Some(kind)
        }
    };
    let mut candidates = gguf.architecture.models.iter().filter(fits);
    let first = candidates.clone().next();
    candidates.find(|model| models.contains(&model.model_type)).or(first)
}

/// `config.json` of the first model that fits, among those named where any is.
pub(super) fn json(gguf: &Gguf, models: &[&str]) -> Result<Json> {
    let model = model(gguf, models).ok_or_else(|| gguf.wrong("is of no model of its architecture"))?;
    let architecture = gguf.architecture;
    let mut own = Map::new();
    if let Some(rope) = rope(gguf)? {
        own.insert("rope_parameters".to_owned(), rope);
    }
    fill(&mut own, gguf, architecture.fields.iter().copied().flatten())?;
    let mut config = match architecture.within {
        Some((object, fields)) => {
            let mut outer = Map::from_iter([(object.to_owned(), Json::Object(own))]);
            fill(&mut outer, gguf, fields)?;
            outer
        }
        None => own,
    };
    config.insert("model_type".to_owned(), json!(model.model_type));
    config.insert("architectures".to_owned(), json!([model.class]));
    for (key, field) in [("bos", "bos_token_id"), ("eos", "eos_token_id"), ("padding", "pad_token_id")] {
        let id = gguf.files[0].metadata.get(&format!("tokenizer.ggml.{key}_token_id"));
        if let Some(id) = id.and_then(Value::whole) {
            config.insert(field.to_owned(), json!(id));
        }
    }
    Ok(Json::Object(config))
}

/// Sets fields to what the file has for them.
fn fill<'a>(
    config: &mut Map<String, Json>,
    gguf: &Gguf,
    fields: impl IntoIterator<Item = &'a (&'static str, Source)>,
) -> Result<()> {
    for (field, source) in fields {
        if let Some(value) = field_value(gguf, source)? {
            insert(config, field, value);
        }
    }
    Ok(())
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
        Source::Layers => Some(json!(layer_count(gguf)?)),
        Source::Window => {
            let window = optional(gguf, &["attention.sliding_window"])?;
            Some(window.filter(|window| *window != 0).unwrap_or_default())
        }
        Source::Has(tensor) => Some(json!(gguf.tensor(tensor).is_some())),
        Source::Lacks(tensor) => Some(json!(gguf.tensor(tensor).is_none())),
        Source::MaybeRows(tensor) => gguf.tensor(tensor).map(|found| json!(found.1.shape[0])),
        Source::Rows(tensor) => {
            let found = gguf.tensor(tensor).ok_or_else(|| gguf.wrong(format!("has no tensor `{tensor}`")))?;
            Some(json!(found.1.shape[0]))
        }
        Source::Positions => Some(json!(whole(gguf, "context_length")?.saturating_add(padding_rows(gguf)))),
        Source::Fixed(value) => serde_json::from_str(value).ok(),
        Source::LayerTypes => by_layer(gguf, "attention.sliding_window_pattern", |window| {
            if window == 0.0 { "full_attention" } else { "sliding_attention" }
        }),
        Source::WindowPeriod(period) => Some(layers::windows(gguf, *period)?),
        Source::KeyHeadLayers(other) => {
            let word = |heads| if heads == 0.0 { *other } else { "full_attention" };
            by_layer(gguf, "attention.head_count_kv", word)
        }
        Source::InLayers(name) => Some(json!(!layers::with(gguf, name).is_empty())),
        Source::WithoutInLayers(name, other) => {
            let others = layers::with(gguf, other);
            Some(json!(!layers::with(gguf, name).is_subset(&others)))
        }
        Source::LayersWith(name) => Some(json!(layers::with(gguf, name))),
        Source::PeriodOf(name) => Some(json!(layers::period(gguf, name)?)),
        Source::OffsetOf(name) => Some(json!(layers::offset(gguf, name)?)),
        Source::LayerKinds(kinds) => Some(layers::kinds(gguf, kinds)?),
        Source::Most(key) => Some(json!(layers::of_all(gguf, key)?.into_iter().max())),
        Source::Least(key) => Some(json!(layers::of_all(gguf, key)?.into_iter().min())),
        Source::Differs(key) => {
            let numbers = layers::of_all(gguf, key)?;
            Some(json!(numbers.iter().any(|number| *number != numbers[0])))
        }
        Source::Each(key) => {
            let numbers = layers::of_all(gguf, key)?;
            Some(if let [one] = numbers[..] { json!(one) } else { json!(numbers) })
        }
        Source::ForLayers(key) => numbers(gguf, key).map(|numbers| layers::whole_numbers(&numbers)),
        Source::LayerBases(key) => layers::bases(gguf, key)?,
        Source::NormalShares(key) => {
            let share = |number| if number > -MOST_DEVIATIONS { normal_share(number) } else { 0.0 };
            numbers(gguf, key).map(|numbers| numbers.into_iter().map(share).collect())
        }
        Source::OfSliding(key, slides) => layers::of_sliding(gguf, key, *slides)?.map(|number| json!(number)),
        Source::IsNot(key, number) => Some(json!(gguf.value(key).and_then(Value::whole) != Some(*number))),
        Source::Choice(key, [yes, no]) => {
            let is = gguf.value(key).and_then(Value::json) == Some(Json::Bool(true));
            serde_json::from_str(if is { yes } else { no }).ok()
        }
        Source::ByNumber(key, number, [yes, no]) => {
            let is = gguf.value(key).and_then(Value::whole) == Some(*number);
            serde_json::from_str(if is { yes } else { no }).ok()
        }
        Source::LeadingDense => {
            let dense = required(gguf, &["leading_dense_block_count"])?.as_u64().unwrap_or(0);
            let layers = layer_count(gguf)?.min(MOST_LAYERS);
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
    let mut numbers = gguf.files[0].numbers(&format!("{}.{key}", gguf.architecture.name))?;
    numbers.truncate(end_of_layers(gguf).map_or(usize::MAX, |end| end as usize));
    Some(numbers)
}

/// The number of the first layer of multi-token prediction, which models do without; none where there is none, or where all
/// layers are: those of a drafter.
pub(crate) fn end_of_layers(gguf: &Gguf) -> Option<u64> {
    let whole = |key| gguf.value(key).and_then(Value::whole);
    let behind = whole("nextn_predict_layers").filter(|behind| *behind > 0)?;
    whole("block_count")?.checked_sub(behind).filter(|end| *end > 0)
}

/// The layers with a tensor.
pub(crate) fn layers_with(gguf: &Gguf, tensor: &str) -> BTreeSet<u64> {
    layers::with(gguf, tensor)
}

/// How many layers each stack of a model has whose blocks are those of one stack, then those of another.
pub(crate) fn layers_of_stack(gguf: &Gguf) -> Option<u64> {
    gguf.value("hrm.layers_per_stack").and_then(Value::whole).filter(|layers| *layers > 0)
}

fn layer_count(gguf: &Gguf) -> Result<u64> {
    match end_of_layers(gguf) {
        Some(end) => Ok(end),
        None => whole(gguf, "block_count"),
    }
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
        Some(first) if numbers.iter().all(|number| number == first) => {
            Ok(Some(if first.fract() == 0.0 { json!(*first as i64) } else { json!(first) }))
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

/// The positions of padding, which are before all others: as many as the padding token's number, and one.
pub(crate) fn padding_rows(gguf: &Gguf) -> u64 {
    let id = gguf.files[0].metadata.get("tokenizer.ggml.padding_token_id").and_then(Value::whole);
    id.unwrap_or(1).min(MOST_PADDING) + 1
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
    let proportional = gguf.architecture.rope == Rope::Proportional;
    let mut rope = if proportional { self::proportional(gguf)? } else { scaling(gguf)? };
    rope.insert("rope_theta".to_owned(), theta);
    // All of a head where the file does not say, whatever the architecture's `config.json` has as a standard.
    let in_part = gguf.architecture.rope == Rope::Part || proportional;
    let share = if in_part { 1.0 } else { turned_share(gguf, "rope.dimension_count")?.unwrap_or(1.0) };
    rope.entry("partial_rotary_factor").or_insert_with(|| json!(share));
    let local = match gguf.architecture.rope {
        Rope::ByLayers(local) => Some(local),
        Rope::Proportional => Some(10_000.0),
        _ => None,
    };
    Ok(Some(match local {
        Some(local) => {
            let local = optional(gguf, &["rope.freq_base_swa"])?.unwrap_or_else(|| json!(local));
            let mut sliding = json!({"rope_type": "default", "rope_theta": local});
            if !proportional {
                let own = turned_share(gguf, "rope.dimension_count_swa")?;
                sliding["partial_rotary_factor"] = json!(own.unwrap_or(share));
            }
            json!({"full_attention": rope, "sliding_attention": sliding})
        }
        None => Json::Object(rope),
    }))
}

/// The share of a head that turns, by how many dimensions a key says.
fn turned_share(gguf: &Gguf, key: &str) -> Result<Option<f64>> {
    let Some(turned) = gguf.value(key).and_then(Value::whole) else { return Ok(None) };
    let width = head_dim(gguf)?;
    if turned > width || turned == 0 {
        return Err(gguf.wrong(format!("turns {turned} of the {width} dimensions of a head")));
    }
    Ok(Some(turned as f64 / width as f64))
}

/// The share of a head that turns: frequencies behind it are divided by so much that they do not.
fn proportional(gguf: &Gguf) -> Result<Map<String, Json>> {
    let factors = factors(gguf, "rope_freqs.weight")?.filter(|factors| !factors.is_empty());
    let factors = factors.unwrap_or_else(|| vec![1.0]);
    let turned = factors.iter().take_while(|factor| **factor == 1.0).count();
    if factors[turned..].iter().any(|factor| *factor < NO_FREQUENCY) {
        return Err(gguf.wrong("divides frequencies of rotary position embeddings by what is not known"));
    }
    let share = json!(turned as f64 / factors.len() as f64);
    Ok([("rope_type".to_owned(), json!("proportional")), ("partial_rotary_factor".to_owned(), share)]
        .into_iter()
        .collect())
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
