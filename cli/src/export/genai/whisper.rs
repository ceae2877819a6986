//! Whisper for ONNX Runtime GenAI, the one encoder-decoder that it runs: keys and values of cross-attention go from the encoder
//! to the decoder.

use serde_json::{Value as Json, json};
use weft::Result;
use weft::onnx::ValueInfo;

use super::{Files, heads_and_size, session};
use crate::export::seq2seq::STATES;
use crate::terminal::bad_input;

/// `genai_config.json` of a decoder with these inputs.
pub fn describe(inputs: &[ValueInfo], files: &Files) -> Result<Json> {
    let of_layers = |name: &str| {
        let fits =
            |input: &&ValueInfo| input.name.starts_with("past_key_values.") && input.name.ends_with(name);
        inputs.iter().filter(fits).count()
    };
    let key = inputs.iter().find(|input| input.name == "past_key_values.0.decoder.key");
    let sizes = key.and_then(heads_and_size).filter(|_| files.config["model_type"] == "whisper");
    let Some((heads, size)) = sizes else {
        let problem = "is an encoder-decoder, of which GenAI runs Whisper alone";
        return Err(bad_input("class", problem, "export it with `--to onnx` or `--to transformersjs`"));
    };
    let width = files.number("d_model");
    let encoder_heads = files.number("encoder_attention_heads");
    let context = files.number("max_target_positions");
    Ok(json!({
        "model": {
            "type": "whisper",
            "bos_token_id": files.token("bos_token_id"),
            "eos_token_id": files.token("eos_token_id"),
            "pad_token_id": files.padding(),
            "decoder_start_token_id": files.token("decoder_start_token_id"),
            "context_length": context,
            "vocab_size": files.number("vocab_size"),
            "encoder": {
                "filename": "encoder.onnx",
                "session_options": session(),
                "head_size": width.as_u64().unwrap_or(0) / encoder_heads.as_u64().unwrap_or(1).max(1),
                "hidden_size": width,
                "num_attention_heads": encoder_heads,
                "num_hidden_layers": files.number("encoder_layers"),
                "inputs": { "audio_features": "input_features" },
                "outputs": {
                    "encoder_hidden_states": STATES,
                    "cross_present_key_names": "present.%d.encoder.key",
                    "cross_present_value_names": "present.%d.encoder.value",
                },
            },
            "decoder": {
                "filename": "decoder.onnx",
                "session_options": session(),
                "head_size": size,
                "hidden_size": width,
                "num_attention_heads": heads,
                "num_key_value_heads": heads,
                "num_hidden_layers": of_layers(".decoder.key"),
                "inputs": {
                    "input_ids": "input_ids",
                    "past_key_names": "past_key_values.%d.decoder.key",
                    "past_value_names": "past_key_values.%d.decoder.value",
                    "cross_past_key_names": "past_key_values.%d.encoder.key",
                    "cross_past_value_names": "past_key_values.%d.encoder.value",
                },
                "outputs": {
                    "logits": "logits",
                    "present_key_names": "present.%d.decoder.key",
                    "present_value_names": "present.%d.decoder.value",
                },
            },
        },
        "search": {
            "do_sample": false,
            "early_stopping": true,
            "max_length": context,
            "num_beams": 1,
            "num_return_sequences": 1,
            "past_present_share_buffer": false,
            "repetition_penalty": 1.0,
            "temperature": 1.0,
            "top_k": 1,
            "top_p": 1.0,
        },
    }))
}

/// `audio_processor_config.json`: log-mel spectrograms, as `WhisperFeatureExtractor` makes them.
pub fn processor(config: &Json, preprocessor: &Json) -> Json {
    let of = |name: &str, otherwise: u64| preprocessor[name].as_u64().unwrap_or(otherwise);
    let (window, hop) = (of("n_fft", 400), of("hop_length", 160));
    let step = |name: &str, kind: &str, attributes: Option<Json>| {
        let mut operation = json!({ "name": name, "type": kind });
        if let Some(attributes) = attributes {
            operation["attrs"] = attributes;
        }
        json!({ "operation": operation })
    };
    let spectrum = json!({ "n_fft": window, "frame_length": window, "hop_length": hop });
    let mel = json!({
        "chunk_size": of("chunk_length", 30), "hop_length": hop, "n_fft": window,
        "n_mel": config["num_mel_bins"],
    });
    json!({ "feature_extraction": { "sequence": [
        step("audio_decoder", "AudioDecoder", None),
        step("STFT", "STFTNorm", Some(spectrum)),
        step("log_mel_spectrogram", "LogMelSpectrum", Some(mel)),
    ] } })
}

#[cfg(test)]
mod tests {
    use weft::{Dim, Dtype};

    use super::*;

    #[test]
    fn whisper_alone_is_described() {
        let shape = [Dim::symbol("batch"), Dim::Fixed(2), Dim::symbol("past"), Dim::Fixed(8)];
        let names = [0, 1].map(|layer| format!("past_key_values.{layer}.decoder.key"));
        let inputs = names.map(|name| ValueInfo::new(&name, Dtype::F32, &shape));
        let config = json!({ "model_type": "whisper", "d_model": 16, "encoder_attention_heads": 4,
                             "num_mel_bins": 80, "max_target_positions": 448, "eos_token_id": 7 });
        let mut files = Files { config, generation: Json::Null };
        let found = describe(&inputs, &files).unwrap();
        let (encoder, decoder) = (&found["model"]["encoder"], &found["model"]["decoder"]);
        assert_eq!((&encoder["head_size"], &decoder["head_size"]), (&json!(4), &json!(8)));
        assert_eq!((&decoder["num_hidden_layers"], &found["model"]["pad_token_id"]), (&json!(2), &json!(7)));
        assert_eq!(
            processor(&files.config, &Json::Null)["feature_extraction"]["sequence"][2]["operation"]["attrs"]
                ["n_mel"],
            80
        );
        files.config["model_type"] = json!("t5");
        let text = describe(&inputs, &files).unwrap_err().to_string();
        assert!(text.contains("Whisper alone") && text.contains("--to onnx"), "{text}");
    }
}
