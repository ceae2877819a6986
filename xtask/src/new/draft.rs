//! The text of a draft: what `config.json` shows, and what a person must decide.

use std::fmt::Write;

use serde_json::{Map, Value};
use weft_generator::spec::model::ModelSpec;

use super::fields::{self, scalar};
use super::nearest::{Nearest, classes};

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
    fields::draft(&mut text, config, parent);
    graph(&mut text, parent);
    Draft { category, text }
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
             # needs one of its own, see CONTRIBUTING.md.\ngraph:\n  template: decide\n",
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
