//! The layout of ONNX Runtime GenAI: `genai_config.json` beside the decoder, with the tokenizer's files.

mod whisper;

use std::fs;

use serde_json::{Map, Value as Json, json};
use weft::Result;
use weft::onnx::{ValueInfo, dimension};

use super::seq2seq::Form;
use super::storage::Stored;
use super::transformersjs::field;
use super::{Export, copy_files, graphs, io};
use crate::terminal::bad_input;

/// Writes the folder.
pub fn write(export: &Export<'_>) -> Result<Vec<Stored>> {
    let checkpoint = export.loader.checkpoint();
    let read = |name: &str| Ok(checkpoint.json(name)?.unwrap_or_default());
    let files = Files { config: read("config.json")?, generation: read("generation_config.json")? };
    let graphs = graphs::lowered(export, export.dtypes[0], Form::Cached)?;
    let inputs = graphs.last().and_then(|(_, lowered)| lowered.model.graph.as_ref());
    let inputs = inputs.map(|graph| graph.input.as_slice()).unwrap_or_default();
    let mut documents = vec![];
    if graphs.len() == 1 {
        documents.push(("genai_config.json", describe(inputs, &files)?));
    } else {
        documents.push(("genai_config.json", whisper::describe(inputs, &files)?));
        let processor = read("preprocessor_config.json")?;
        documents.push(("audio_processor_config.json", whisper::processor(&files.config, &processor)));
    }
    let mut stored = vec![];
    for (stem, lowered) in graphs {
        stored.extend(graphs::write(lowered, export.out, stem, export.storage)?);
    }
    copy_files(checkpoint, export.out)?;
    for (name, document) in documents {
        let path = export.out.join(name);
        let text = serde_json::to_string_pretty(&document).unwrap_or_default();
        fs::write(&path, text).map_err(|source| io(&path, source))?;
    }
    Ok(stored)
}

/// What describes a checkpoint.
struct Files {
    /// `config.json`.
    config: Json,
    /// `generation_config.json`.
    generation: Json,
}

impl Files {
    /// A field of `config.json`, or of its text model.
    fn number(&self, name: &str) -> Json {
        field(&self.config, name).clone()
    }

    /// A token of generation, as its own file has it before `config.json`.
    fn token(&self, name: &str) -> Json {
        match &self.generation[name] {
            Json::Null => self.number(name),
            found => found.clone(),
        }
    }

    /// The token that rows are filled up with; the first that ends a text where there is none.
    fn padding(&self) -> Json {
        let (pad, eos) = (self.token("pad_token_id"), self.token("eos_token_id"));
        let first = if eos.is_array() { eos[0].clone() } else { eos };
        if pad.is_number() { pad } else { first }
    }
}

/// `session_options` of a graph.
fn session() -> Json {
    json!({ "log_id": "onnxruntime-genai", "provider_options": [] })
}

/// `genai_config.json` of a decoder with these inputs.
fn describe(inputs: &[ValueInfo], files: &Files) -> Result<Json> {
    let has = |name: &str| inputs.iter().any(|input| input.name == name);
    let key = inputs.iter().find(|input| input.name == "past_key_values.0.key");
    let Some((heads, size)) = key.and_then(heads_and_size) else {
        let problem = "generates no text from a KV cache of keys and values by heads, which GenAI needs";
        return Err(bad_input("class", problem, "export it with `--to onnx`"));
    };
    let layers = inputs
        .iter()
        .filter(|input| input.name.starts_with("past_key_values.") && input.name.ends_with(".key"));
    let context = files.number("max_position_embeddings");
    let context = if context.is_number() { context } else { json!(2048) };
    let mut named = Map::from_iter([("input_ids".to_owned(), json!("input_ids"))]);
    for name in ["attention_mask", "position_ids"].into_iter().filter(|name| has(name)) {
        named.insert(name.to_owned(), json!(name));
    }
    named.insert("past_key_names".to_owned(), json!("past_key_values.%d.key"));
    named.insert("past_value_names".to_owned(), json!("past_key_values.%d.value"));
    let generation = &files.generation;
    Ok(json!({
        "model": {
            "type": "decoder",
            "bos_token_id": files.token("bos_token_id"),
            "eos_token_id": files.token("eos_token_id"),
            "pad_token_id": files.padding(),
            "context_length": context,
            "vocab_size": files.number("vocab_size"),
            "decoder": {
                "filename": "model.onnx",
                "session_options": session(),
                "head_size": size,
                "hidden_size": files.number("hidden_size"),
                "num_attention_heads": files.number("num_attention_heads"),
                "num_key_value_heads": heads,
                "num_hidden_layers": layers.count(),
                "inputs": named,
                "outputs": {
                    "logits": "logits",
                    "present_key_names": "present.%d.key",
                    "present_value_names": "present.%d.value",
                },
            },
        },
        "search": {
            "do_sample": generation["do_sample"].as_bool().unwrap_or(false),
            "max_length": context,
            "num_beams": 1,
            "num_return_sequences": 1,
            "past_present_share_buffer": false,
            "temperature": generation["temperature"].as_f64().unwrap_or(1.0),
            "top_k": generation["top_k"].as_u64().unwrap_or(50),
            "top_p": generation["top_p"].as_f64().unwrap_or(1.0),
            "repetition_penalty": generation["repetition_penalty"].as_f64().unwrap_or(1.0),
        },
    }))
}

/// The heads of cached keys and their size, `[batch, heads, past, size]`.
fn heads_and_size(keys: &ValueInfo) -> Option<(i64, i64)> {
    let lengths = super::triton::lengths(keys)?;
    match lengths.as_slice() {
        [_, dimension::Value::Number(heads), _, dimension::Value::Number(size)] => Some((*heads, *size)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use weft::{Dim, Dtype};

    use super::*;

    #[test]
    fn a_decoder_is_described_by_its_inputs() {
        let shape = [Dim::symbol("batch"), Dim::Fixed(2), Dim::symbol("past"), Dim::Fixed(8)];
        let cached = |name: &str| ValueInfo::new(name, Dtype::F32, &shape);
        let inputs = [
            ValueInfo::new("input_ids", Dtype::I64, &[]),
            cached("past_key_values.0.key"),
            cached("past_key_values.0.value"),
            cached("past_key_values.1.key"),
        ];
        let config =
            json!({ "vocab_size": 61, "hidden_size": 32, "eos_token_id": [2, 3], "num_attention_heads": 4 });
        let files = Files { config, generation: json!({ "eos_token_id": 5, "top_k": 7 }) };
        let found = describe(&inputs, &files).unwrap();
        let decoder = &found["model"]["decoder"];
        assert_eq!((&decoder["num_hidden_layers"], &decoder["head_size"]), (&json!(2), &json!(8)));
        assert_eq!(
            (&decoder["num_key_value_heads"], &decoder["num_attention_heads"]),
            (&json!(2), &json!(4))
        );
        assert_eq!(
            (&found["model"]["eos_token_id"], &found["model"]["pad_token_id"]),
            (&json!(5), &json!(5))
        );
        assert_eq!(decoder["inputs"].get("position_ids"), None);
        let text = describe(&inputs[..1], &files).unwrap_err().to_string();
        assert!(text.contains("--to onnx"), "{text}");
    }
}
