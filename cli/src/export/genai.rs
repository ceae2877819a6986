//! The layout of ONNX Runtime GenAI: `genai_config.json` beside the decoder, with the tokenizer's files.

use std::fs;

use serde_json::{Map, Value as Json, json};
use weft::Result;
use weft::onnx::{ValueInfo, dimension};

use super::storage::Stored;
use super::transformersjs::field;
use super::{Export, copy_files, graphs, io};
use crate::terminal::bad_input;

/// Writes the folder.
pub fn write(export: &Export<'_>) -> Result<Vec<Stored>> {
    let dtype = export.dtypes[0];
    let lowered = graphs::lowered(export, dtype)?;
    let graph = lowered.model.graph.as_ref();
    let inputs = graph.map(|graph| graph.input.as_slice()).unwrap_or_default();
    let config = export.loader.checkpoint().json("config.json")?.unwrap_or_default();
    let generation = export.loader.checkpoint().json("generation_config.json")?.unwrap_or_default();
    let described = describe(inputs, &config, &generation)?;
    drop(lowered);
    let stored = graphs::write(export, dtype, export.out, "model", export.storage)?;
    copy_files(export.loader.checkpoint(), export.out)?;
    let path = export.out.join("genai_config.json");
    let text = serde_json::to_string_pretty(&described).unwrap_or_default();
    fs::write(&path, text).map_err(|source| io(&path, source))?;
    Ok(stored)
}

/// `genai_config.json` of a decoder with these inputs.
fn describe(inputs: &[ValueInfo], config: &Json, generation: &Json) -> Result<Json> {
    let has = |name: &str| inputs.iter().any(|input| input.name == name);
    let key = inputs.iter().find(|input| input.name == "past_key_values.0.key");
    let Some((heads, size)) = key.and_then(heads_and_size) else {
        let problem = "generates no text from a KV cache of keys and values by heads, which GenAI needs";
        return Err(bad_input("class", problem, "export it with `--to onnx`"));
    };
    let layers = inputs
        .iter()
        .filter(|input| input.name.starts_with("past_key_values.") && input.name.ends_with(".key"));
    let number = |name: &str| field(config, name).clone();
    let token = |name: &str| match &generation[name] {
        Json::Null => number(name),
        found => found.clone(),
    };
    let context = number("max_position_embeddings");
    let context = if context.is_number() { context } else { json!(2048) };
    let mut named = Map::from_iter([("input_ids".to_owned(), json!("input_ids"))]);
    for name in ["attention_mask", "position_ids"].into_iter().filter(|name| has(name)) {
        named.insert(name.to_owned(), json!(name));
    }
    named.insert("past_key_names".to_owned(), json!("past_key_values.%d.key"));
    named.insert("past_value_names".to_owned(), json!("past_key_values.%d.value"));
    let eos = token("eos_token_id");
    let first = if eos.is_array() { eos[0].clone() } else { eos.clone() };
    let pad = token("pad_token_id");
    Ok(json!({
        "model": {
            "type": "decoder",
            "bos_token_id": token("bos_token_id"),
            "eos_token_id": eos,
            "pad_token_id": if pad.is_number() { pad } else { first },
            "context_length": context,
            "vocab_size": number("vocab_size"),
            "decoder": {
                "filename": "model.onnx",
                "session_options": { "log_id": "onnxruntime-genai", "provider_options": [] },
                "head_size": size,
                "hidden_size": number("hidden_size"),
                "num_attention_heads": number("num_attention_heads"),
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
        let found = describe(&inputs, &config, &json!({ "eos_token_id": 5, "top_k": 7 })).unwrap();
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
        let text = describe(&inputs[..1], &config, &Json::Null).unwrap_err().to_string();
        assert!(text.contains("--to onnx"), "{text}");
    }
}
