//! The text of a draft: what `config.json` shows, and what a person must decide.

use std::fmt::Write;

use serde_json::{Map, Value};
use weft_generator::spec::model::{ConfigEntry, ModelSpec, Scalar};

use super::nearest::{Nearest, classes, own_fields};

/// A spec to be.
pub struct Draft {
    pub category: String,
    pub text: String,
}

impl Draft {
    /// Lines that wait for a person.
    pub fn decisions(&self) -> usize {
        self.text.lines().filter(|line| line.contains("# decide:")).count()
    }
}

/// What the classes of `architectures` end with, and the kind of model they belong to.
const HEADS: [(&str, &str, &str); 14] = [
    ("ForMaskedLM", "encoder-only", "text-encoders"),
    ("ForSequenceClassification", "encoder-only", "text-encoders"),
    ("ForTokenClassification", "encoder-only", "text-encoders"),
    ("ForQuestionAnswering", "encoder-only", "text-encoders"),
    ("ForCausalLM", "decoder-only", "text-decoders"),
    ("LMHeadModel", "decoder-only", "text-decoders"),
    ("ForImageTextToText", "multimodal", "vision-language"),
    ("ForImageClassification", "vision", "vision"),
    ("ForObjectDetection", "vision", "vision"),
    ("ForSemanticSegmentation", "vision", "vision"),
    ("ForCTC", "speech", "audio"),
    ("ForSpeechSeq2Seq", "speech", "speech-text"),
    ("ForAudioClassification", "speech", "audio"),
    ("ForConditionalGeneration", "encoder-decoder", "encoder-decoders"),
];

pub fn draft(
    name: &str,
    category: Option<&str>,
    config: &Map<String, Value>,
    near: Option<&Nearest<'_>>,
) -> Draft {
    let classes = classes(config);
    let (kind, guessed) = kind(config, &classes);
    let parent = near.map(|near| near.spec);
    let category =
        category.or(parent.and_then(|spec| spec.category.as_deref())).unwrap_or(guessed).to_owned();
    let model_type = config.get("model_type").and_then(Value::as_str).unwrap_or(name);
    let mut text = String::new();
    let mut line = |line: &str| {
        text.push_str(line);
        text.push('\n');
    };
    let shown = if classes.is_empty() { String::new() } else { format!(" of {}", classes.join(", ")) };
    line(&format!(
        "# Drafted from a config.json{shown}. Every line with `decide:` waits for a person; remove the mark then."
    ));
    line(&format!("model: {name}"));
    let prefix =
        classes.first().and_then(|class| prefix(class)).map_or_else(|| camel(model_type), str::to_owned);
    line(&format!("title: {}  # decide: its name in prose", scalar(&Value::from(prefix.as_str()))));
    match near {
        Some(near) => {
            line(&format!("extends: {}  # decide: nearest known model ({})", near.spec.model, near.why()));
        }
        None => line(&format!(
            "architecture: {kind}  # decide: one of the types in model_specs/architectures.yaml"
        )),
    }
    line(&format!("category: {category}"));
    line("# decide: a sentence or two that opens the documentation, with the paper.");
    line(&format!("summary: {}.", scalar(&Value::from(format!("The {prefix} architecture")))));
    line("# decide: published checkpoints, the best known first.");
    line("checkpoints: []");
    if near.is_some_and(|near| near.exact) {
        line(&format!(
            "# decide: `{model_type}` already stands for this model_type, and two specs cannot; a second spec is only for",
        ));
        line("# a model that differs in more than the values of its config.json.");
        line(&format!("model_types: [{name}]"));
    } else if model_type != name {
        line(&format!("model_types: [{}]", scalar(&Value::from(model_type))));
    }
    line(&format!("class_prefix: {}", scalar(&Value::from(prefix.as_str()))));
    if parent.is_some_and(|spec| !spec.weights.prefix.is_empty()) {
        line("weights:");
        let prefix = scalar(&Value::from(model_type));
        line(&format!(
            "  prefix: {prefix}  # decide: what head classes put before the base model's tensor names"
        ));
    }
    fields(&mut text, config, parent);
    graph(&mut text, parent);
    Draft { category, text }
}

/// The fields that differ from the parent's; all of them without one.
fn fields(text: &mut String, config: &Map<String, Value>, parent: Option<&ModelSpec>) {
    let mut lines = Vec::new();
    for key in own_fields(config) {
        let value = &config[key];
        match parent.and_then(|spec| spec.config.get(key)) {
            Some(entry) if same(default(entry), value) => {}
            Some(_) if is_plain(value) => lines.push(format!("  {key}: {}", scalar(value))),
            Some(_) => {
                lines
                    .push(format!("  # decide: {key} is {}, which its parent does not expect", short(value)));
            }
            None if is_plain(value) => {
                let known =
                    parent.map_or(String::new(), |spec| format!("; `{}` does not have it", spec.model));
                lines.push(format!(
                    "  {key}: {}  # decide: whether the graph depends on it{known}",
                    scalar(value)
                ));
            }
            None => {
                lines.push(format!("  # decide: {key} is {}: describe it, or leave it out", short(value)));
            }
        }
    }
    for (key, entry) in parent.into_iter().flat_map(|spec| &spec.config) {
        let required = !matches!(entry, ConfigEntry::Explicit(field) if field.optional == Some(true));
        if required && !config.contains_key(key) && key != "id2label" {
            let shown = default(entry).map_or_else(String::new, |value| format!(" ({})", scalar(value)));
            lines.push(format!(
                "  # decide: {key} is not in config.json: its parent's default{shown}, or {{remove: true}}"
            ));
        }
    }
    if lines.is_empty() {
        return;
    }
    text.push_str(
        "\n# decide: these are one checkpoint's values; a spec holds the architecture's own defaults.\n",
    );
    let only_comments = lines.iter().all(|line| line.trim_start().starts_with('#'));
    text.push_str(if only_comments { "config: {}\n" } else { "config:\n" });
    for line in lines {
        let _ = writeln!(text, "{line}");
    }
}

fn graph(text: &mut String, parent: Option<&ModelSpec>) {
    match parent {
        Some(spec) => {
            let _ = writeln!(
                text,
                "\n# decide: the graph is `{}`'s; name the parts that differ (templates/graph/parts/):",
                spec.model
            );
            for (key, value) in &spec.graph {
                if let Value::String(part) = value {
                    let _ = writeln!(text, "#   {key}: {part}");
                }
            }
            let heads = spec.graph.get("heads").and_then(Value::as_object);
            if let Some(heads) = heads {
                let names: Vec<_> = heads.keys().map(String::as_str).collect();
                let _ = writeln!(text, "#   heads: {}", names.join(", "));
            }
            text.push_str("graph: {}\n");
        }
        None => text.push_str(
            "\n# decide: the graph template and its parts (templates/graph/); an architecture that no template describes\n\
             # needs one of its own, see CONTRIBUTING.md.\ngraph:\n  template: decide\n\n\
             # decide: the tasks it serves, by the names `transformers.pipeline` uses.\ntasks: []\n",
        ),
    }
}

/// The kind of model and its folder, from the classes and a few telling fields.
fn kind(config: &Map<String, Value>, classes: &[&str]) -> (&'static str, &'static str) {
    let has = |name: &str| config.contains_key(name);
    if has("vision_config") && has("text_config") {
        return ("multimodal", "vision-language");
    }
    if ["num_experts", "num_local_experts", "n_routed_experts"].into_iter().any(has) {
        return ("mixture-of-experts", "mixture-of-experts");
    }
    if has("state_size") || has("ssm_cfg") {
        return ("state-space", "state-space");
    }
    let by_class = HEADS.iter().find(|(head, ..)| classes.iter().any(|class| class.ends_with(head)));
    if let Some((_, kind, category)) = by_class {
        return (kind, category);
    }
    match config.get("is_encoder_decoder") {
        Some(Value::Bool(true)) => ("encoder-decoder", "encoder-decoders"),
        _ if has("image_size") => ("vision", "vision"),
        _ if has("num_mel_bins") => ("speech", "audio"),
        _ => ("encoder-only", "text-encoders"),
    }
}

/// What the classes of an architecture start with: `Roberta` in `RobertaForMaskedLM`.
fn prefix(class: &str) -> Option<&str> {
    let end = class.find("For").or_else(|| class.find("LMHead")).or_else(|| class.rfind("Model"))?;
    Some(&class[..end]).filter(|prefix| !prefix.is_empty())
}

fn camel(name: &str) -> String {
    let word = |word: &str| {
        let mut chars = word.chars();
        chars.next().map(|c| c.to_ascii_uppercase()).into_iter().chain(chars).collect::<String>()
    };
    name.split(['-', '_']).map(word).collect()
}

fn default(entry: &ConfigEntry) -> Option<&Scalar> {
    match entry {
        ConfigEntry::Default(value) => Some(value),
        ConfigEntry::Explicit(field) => field.default.as_ref(),
    }
}

fn same(default: Option<&Scalar>, value: &Value) -> bool {
    match default.map(serde_json::to_value) {
        Some(Ok(Value::Number(a))) if value.is_number() => a.as_f64() == value.as_f64(),
        Some(Ok(default)) => default == *value,
        _ => value.is_null(),
    }
}

fn is_plain(value: &Value) -> bool {
    match value {
        Value::Null | Value::Object(_) => false,
        Value::Array(items) => {
            let kind = |value: &Value| (value.is_number(), value.is_string(), value.is_boolean());
            items.iter().all(|item| is_plain(item) && !item.is_array() && kind(item) == kind(&items[0]))
                && !items.is_empty()
        }
        _ => true,
    }
}

/// A value as YAML writes it.
fn scalar(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(text)) => {
            let plain = serde_yaml::to_string(&text).unwrap_or_default();
            if plain.contains(['|', '>']) { format!("{text:?}") } else { plain.trim_end().to_owned() }
        }
        Ok(Value::Array(items)) => format!("[{}]", items.iter().map(scalar).collect::<Vec<_>>().join(", ")),
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}

/// A value that has no place in a spec as it is, in a few words.
fn short(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Object(map) => format!("an object with {} fields", map.len()),
        Value::Array(items) => format!("a list of {}", items.len()),
        other => other.to_string(),
    }
}
