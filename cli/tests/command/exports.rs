//! `weft export`: what is written gives the goldens' numbers, and has the layout that its consumers read.
//!
//! What it writes stays in `target/tmp/exports`, where `tests/exports/check.sh` shows it to the consumers themselves.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ndarray::{ArrayD, Axis, concatenate};
use prost::Message;
use serde_json::json;
use weft::engine::{self, Options};
use weft::golden::{Case, compare};
use weft::lower::Lowered;
use weft::{Hardware, Value, Values, onnx};

use crate::{answer, checkpoint, golden, read, refusal};

/// The folder of an export, written anew.
fn exported(name: &str, from: &str, options: &[&str]) -> PathBuf {
    exported_from(name, checkpoint(from, |_| ()).path(), options)
}

fn exported_from(name: &str, folder: &Path, options: &[&str]) -> PathBuf {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("exports").join(name);
    let _ = fs::remove_dir_all(&out);
    fs::create_dir_all(out.parent().unwrap()).unwrap();
    let words = ["export", folder.to_str().unwrap(), out.to_str().unwrap()];
    answer(&[&words, options].concat(), "");
    out
}

/// The outputs of an exported model for the inputs that `give` has for its own.
fn run_file(path: &Path, give: impl Fn(&str) -> Value) -> Values {
    let model = onnx::Model::decode(fs::read(path).unwrap().as_slice()).unwrap();
    let wanted: Vec<_> = model.graph.as_ref().unwrap().input.iter().map(|input| input.name.clone()).collect();
    let (memory, operators) = (BTreeMap::new(), BTreeMap::new());
    let folder = path.parent().unwrap().canonicalize().unwrap();
    let lowered = Lowered { model, folder: Some(folder), memory, operators };
    let compiled = engine::compile(Hardware::Cpu, &lowered, &Options::default()).unwrap();
    compiled.run(&wanted.into_iter().map(|name| (name.clone(), give(&name))).collect()).unwrap()
}

/// The outputs of an exported model for a golden's inputs and those that begin a cache.
fn run(folder: &Path, inputs: &Values) -> Values {
    let rows = inputs["input_ids"].shape().to_vec();
    run_file(&folder.join("model.onnx"), |name| {
        inputs.get(name).cloned().unwrap_or_else(|| match name {
            "position_ids" => Value::I64(ArrayD::from_shape_fn(rows.clone(), |at| at[1] as i64)),
            "token_type_ids" => Value::I64(ArrayD::zeros(rows.clone())),
            past => {
                assert!(past.starts_with("past_key_values."), "`{past}` is not given by consumers");
                Value::F32(ArrayD::zeros(vec![rows[0], 2, 0, 8]))
            }
        })
    })
}

/// Runs an exported encoder-decoder as its consumers do: all tokens but the last with the encoder's hidden states, the last one
/// with the cache; the logits of all of them against the golden's.
fn agrees_in_steps(name: &str, from: &str, size: [usize; 2]) {
    let out = exported(name, from, &["--to", "onnx"]);
    let case = Case::open(&golden(from)).unwrap();
    let mut encoded = run_file(&out.join("encoder_model.onnx"), |name| case.inputs[name].clone());
    assert_eq!(encoded.len(), 1, "hidden states alone");
    let states = encoded.remove("last_hidden_state").unwrap();
    let Value::I64(ids) = &case.inputs["decoder_input_ids"] else { panic!("ids are whole numbers") };
    let count = ids.shape()[1];
    let mut cache = Values::new();
    let mut logits = vec![];
    for (cached, tokens) in [(false, 0..count - 1), (true, count - 1..count)] {
        let given = run_file(&out.join("decoder_model_merged.onnx"), |name| match name {
            "input_ids" => Value::I64(ids.slice_axis(Axis(1), tokens.clone().into()).to_owned()),
            "encoder_attention_mask" => case.inputs["attention_mask"].clone(),
            "encoder_hidden_states" => states.clone(),
            "use_cache_branch" => Value::Bool(ArrayD::from_elem(vec![1], cached)),
            past => cache.get(past).cloned().unwrap_or_else(|| {
                assert!(past.starts_with("past_key_values."), "`{past}` is not given by consumers");
                Value::F32(ArrayD::zeros(vec![ids.shape()[0], size[0], 0, size[1]]))
            }),
        });
        for (name, value) in given {
            if name == "logits" {
                let Value::F32(value) = value else { panic!("logits are single precision") };
                logits.push(value);
            } else if !(cached && name.contains(".encoder.")) {
                cache.insert(name.replacen("present", "past_key_values", 1), value);
            }
        }
    }
    let views: Vec<_> = logits.iter().map(|steps| steps.view()).collect();
    let got = [("logits".to_owned(), Value::F32(concatenate(Axis(1), &views).unwrap()))].into();
    let want = [("logits".to_owned(), case.outputs["logits"].clone())].into();
    for report in compare(&got, &want, 1e-4) {
        assert!(report.passed, "{name}: {report:?}");
    }
    fs::copy(golden(from).join("io.safetensors"), out.join("io.safetensors")).unwrap();
}

fn agrees(name: &str, from: &str, options: &[&str], tolerance: f64) -> PathBuf {
    let out = exported(name, from, options);
    let case = Case::open(&golden(from)).unwrap();
    let got = run(&out, &case.inputs);
    let got = got.into_iter().filter(|(name, _)| case.outputs.contains_key(name)).collect();
    for report in compare(&got, &case.outputs, tolerance) {
        assert!(report.passed, "{name}: {report:?}");
    }
    fs::copy(golden(from).join("io.safetensors"), out.join("io.safetensors")).unwrap();
    out
}

#[test]
fn onnx_models_give_the_goldens_numbers() {
    let out = agrees("bert", "bert/base", &["--to", "onnx"], 1e-4);
    assert!(out.join("model.onnx_data").is_file() && !out.join("model.safetensors").exists());
    let out = agrees("bert-linked", "bert/base", &["--to", "onnx", "--link"], 1e-4);
    assert!(out.join("model.safetensors").is_file() && !out.join("model.onnx_data").exists());
    agrees("bert-half", "bert/base", &["--to", "onnx", "--dtype", "fp16"], 1e-2);
    // Positions that depend on which tokens are padding, and positions beside a cache.
    agrees("roberta", "roberta/masked-lm", &["--to", "openvino"], 1e-4);
    agrees("llama", "llama/causal-lm", &["--to", "onnx"], 1e-4);
}

#[test]
fn encoder_decoders_take_hidden_states_first_and_the_cache_then() {
    agrees_in_steps("t5", "t5/conditional-generation", [3, 6]);
    agrees_in_steps("bart", "bart/conditional-generation", [2, 8]);
    agrees_in_steps("whisper-steps", "whisper/speech-no-mask", [2, 8]);
}

#[test]
fn weights_of_half_precision_take_half_the_room() {
    let bytes = |name: &str, dtype| {
        let out = exported(name, "bert/base", &["--to", "onnx", "--dtype", dtype]);
        fs::metadata(out.join("model.onnx_data")).unwrap().len() as f64
    };
    let ratio = bytes("bert-size-half", "fp16") / bytes("bert-size", "fp32");
    assert!((0.45..0.6).contains(&ratio), "{ratio}");
}

#[test]
fn every_layout_has_its_files() {
    let from = "llama/tasks/text-generation";
    let out = exported("llama-js", from, &["--to", "transformersjs", "--dtype", "fp32", "--dtype", "q4"]);
    for file in ["config.json", "tokenizer.json", "onnx/model.onnx", "onnx/model_q4.onnx"] {
        assert!(out.join(file).is_file(), "{file}");
    }
    let out = exported("llama-genai", from, &["--to", "genai"]);
    let config = read(&out.join("genai_config.json"));
    let decoder = &config["model"]["decoder"];
    assert_eq!((&decoder["num_hidden_layers"], &decoder["num_key_value_heads"]), (&json!(4), &json!(2)));
    assert_eq!(decoder["inputs"]["position_ids"], "position_ids");
    for name in ["llama-js", "llama-genai"] {
        let out = out.with_file_name(name);
        fs::copy(golden(from).join("task.json"), out.join("task.json")).unwrap();
    }
    let out = exported("repository", "bert/base", &["--to", "triton"]);
    assert!(out.join("repository/1/model.onnx").is_file());
    let text = fs::read_to_string(out.join("repository/config.pbtxt")).unwrap();
    assert!(text.contains("name: \"pooler_output\""), "{text}");
}

#[test]
fn encoder_decoders_have_two_graphs_in_every_layout() {
    let t5 = "t5/tasks/text2text-generation";
    let out = exported("t5-js", t5, &["--to", "transformersjs", "--dtype", "fp32", "--dtype", "fp16"]);
    fs::copy(golden(t5).join("task.json"), out.join("task.json")).unwrap();
    for file in ["encoder_model.onnx", "decoder_model_merged.onnx", "decoder_model_merged_fp16.onnx"] {
        assert!(out.join("onnx").join(file).is_file(), "{file}");
    }
    let speech = "whisper/tasks/automatic-speech-recognition";
    let out = exported("whisper-js", speech, &["--to", "transformersjs"]);
    for file in ["task.json", "sweep.wav"] {
        fs::copy(golden(speech).join(file), out.join(file)).unwrap();
    }
    let out = exported("repository-t5", t5, &["--to", "triton"]);
    for half in ["encoder", "decoder"] {
        let text = fs::read_to_string(out.join(format!("repository-t5_{half}/config.pbtxt"))).unwrap();
        assert!(text.contains("present.1.") && text.contains(&format!("t5_{half}\"")), "{text}");
    }
    let folder = checkpoint(t5, |_| ());
    let (id, place) = (folder.path().to_str().unwrap(), tempfile::tempdir().unwrap());
    let (code, text) = refusal(&["export", id, place.path().join("out").to_str().unwrap(), "--to", "genai"]);
    assert!(code == 1 && text.contains("Whisper alone") && text.contains("--to onnx"), "{text}");
}

#[test]
fn genai_reads_whisper_of_thirty_seconds() {
    let from = "whisper/tasks/automatic-speech-recognition";
    let folder = checkpoint(from, |shapes| {
        shapes.insert("model.encoder.embed_positions.weight".to_owned(), vec![1500, 16]);
    });
    let path = folder.path().join("config.json");
    let mut config = read(&path);
    config["max_source_positions"] = json!(1500);
    fs::write(&path, config.to_string()).unwrap();
    exported_from("whisper", folder.path(), &["--to", "onnx"]);
    let out = exported_from("whisper-genai", folder.path(), &["--to", "genai"]);
    let model = &read(&out.join("genai_config.json"))["model"];
    assert_eq!((&model["type"], &model["decoder"]["head_size"]), (&json!("whisper"), &json!(8)));
    let processor = read(&out.join("audio_processor_config.json"));
    let mel = &processor["feature_extraction"]["sequence"][2]["operation"]["attrs"]["n_mel"];
    assert_eq!(*mel, 10);
}

#[test]
fn what_cannot_be_exported_says_why_and_leaves_nothing() {
    let folder = checkpoint("bert/base", |_| ());
    let (id, place) = (folder.path().to_str().unwrap(), tempfile::tempdir().unwrap());
    let out = place.path().join("out");
    let (code, text) = refusal(&["export", id, out.to_str().unwrap(), "--to", "genai"]);
    assert!(code == 1 && text.contains("KV cache") && text.contains("--to onnx"), "{text}");
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0, "nothing is left");
    let (code, text) = refusal(&["export", id, place.path().to_str().unwrap(), "--to", "onnx"]);
    assert!(code == 1 && text.contains("is there already"), "{text}");
}
