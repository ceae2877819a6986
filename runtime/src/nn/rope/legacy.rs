//! Legacy `rope_theta` and `rope_scaling` of older `config.json` files, as today's `rope_parameters`.

use serde_json::{Map, Value as Json, json};

/// The names that files have for a kind of scaling, and today's.
const NAMES: [(&str, &str); 4] =
    [("axial", "default"), ("mrope", "default"), ("su", "longrope"), ("xdrope", "dynamic")];

/// Gathers what a configuration says of rotary embeddings in `field`, as `RopeParameters` reads it; `theta` is the
/// architecture's base where the file has none.
pub fn prepare(raw: &mut Json, field: &str, theta: f64) {
    let Json::Object(raw) = raw else { return };
    let found = given(raw, field);
    let rope = settled(found, raw, theta);
    raw.insert(field.to_owned(), rope);
}

/// As [`prepare`], for architectures whose kinds of layers turn differently: a map by the kinds in `layer_types`. What a
/// file says once holds for all kinds, but for how it stretches: that is for full attention.
pub fn prepare_layers(raw: &mut Json, field: &str, theta: f64) {
    let Json::Object(raw) = raw else { return };
    let found = given(raw, field);
    let nested = !found.is_empty() && found.values().all(|value| value.is_object() || value.is_null());
    let kinds: Vec<String> = match raw.get("layer_types").and_then(Json::as_array) {
        _ if nested => found.keys().cloned().collect(),
        Some(kinds) => kinds.iter().filter_map(Json::as_str).map(str::to_owned).collect(),
        None if found.is_empty() && !raw.contains_key("rope_theta") => return,
        None => vec!["full_attention".to_owned(), "sliding_attention".to_owned()],
    };
    let mut layers = Map::new();
    for kind in kinds {
        let own = match nested {
            true => found.get(&kind).and_then(Json::as_object).cloned(),
            false if kind == "full_attention" => Some(found.clone()),
            false => Some(found.iter().filter(|(name, _)| *name == "rope_theta").map(owned).collect()),
        };
        if let Some(own) = own {
            layers.insert(kind, settled(own, raw, theta));
        }
    }
    raw.insert(field.to_owned(), Json::Object(layers));
}

/// The share of a head that turns (`partial_rotary_factor`) of an architecture whose standard is less than all of it,
/// where the file says none by any name.
pub fn prepare_partial(raw: &mut Json, share: f64) {
    let Json::Object(raw) = raw else { return };
    let given =
        raw.get("rotary_pct").is_some_and(|value| !value.is_null()) || rotated_fraction(raw).is_some();
    if !given {
        raw.insert("rotary_pct".to_owned(), json!(share));
    }
}

/// What stretches the positions of an architecture that does so as a standard, where the file does not say: with
/// `rope_theta`, which then counts in place of the file's, as in the reference.
pub fn prepare_scaling<const N: usize>(raw: &mut Json, field: &str, standard: [(&str, Json); N]) {
    let Json::Object(raw) = raw else { return };
    if given(raw, field).is_empty() {
        raw.insert(
            field.to_owned(),
            standard.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        );
    }
}

fn owned((name, value): (&String, &Json)) -> (String, Json) {
    (name.clone(), value.clone())
}

/// `rope_scaling` goes before the field, as in the reference.
fn given(raw: &Map<String, Json>, field: &str) -> Map<String, Json> {
    let object = |name: &str| raw.get(name).and_then(Json::as_object).filter(|map| !map.is_empty()).cloned();
    object("rope_scaling").or_else(|| object(field)).unwrap_or_default()
}

fn settled(mut rope: Map<String, Json>, raw: &Map<String, Json>, theta: f64) -> Json {
    let present =
        |map: &Map<String, Json>, name: &str| map.get(name).filter(|value| !value.is_null()).cloned();
    let kind =
        present(&rope, "rope_type").or_else(|| present(&rope, "type")).unwrap_or_else(|| json!("default"));
    let name = kind.as_str().and_then(|kind| NAMES.iter().find(|(older, _)| *older == kind));
    let kind = name.map_or(kind, |(_, name)| json!(name));
    // A base that is given as null is none: OLMo Hybrid's published files (`OlmoHybridModel`).
    let kind = if rope.get("rope_theta").is_some_and(Json::is_null) { json!("none") } else { kind };
    let scaled = ["llama3", "yarn", "longrope"].iter().any(|scaled| kind == *scaled);
    rope.insert("rope_type".to_owned(), kind);
    let fields = [
        ("rope_theta", "rotary_emb_base", Some(json!(theta))),
        ("partial_rotary_factor", "rotary_pct", None),
    ];
    for (name, older, standard) in fields {
        let value = present(&rope, name).or_else(|| present(raw, name)).or_else(|| present(raw, older));
        let value =
            value.or_else(|| (name == "partial_rotary_factor").then(|| rotated_fraction(raw)).flatten());
        let value = value.or(standard);
        rope.remove(name);
        rope.extend(value.map(|value| (name.to_owned(), value)));
    }
    let original = "original_max_position_embeddings";
    if let (true, Some(value)) = (scaled, present(raw, original)) {
        rope.insert(original.to_owned(), value);
    }
    Json::Object(rope)
}

/// The fraction of a head that is rotated, of files that say its width, `rotary_dim` (MiniMax).
fn rotated_fraction(raw: &Map<String, Json>) -> Option<Json> {
    let number = |name: &str| raw.get(name).and_then(Json::as_f64).filter(|number| *number > 0.0);
    Some(json!(number("rotary_dim")? / number("head_dim")?))
}
