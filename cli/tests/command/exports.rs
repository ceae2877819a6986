//! `weft export`: what is written gives the goldens' numbers, and has the layout that its consumers read.
//!
//! What it writes stays in `target/tmp/exports`, where `tests/exports/check.sh` shows it to the consumers themselves.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ndarray::ArrayD;
use prost::Message;
use serde_json::json;
use weft::engine::{self, Options};
use weft::golden::{Case, compare};
use weft::lower::Lowered;
use weft::{Hardware, Value, Values, onnx};

use crate::{answer, checkpoint, golden, read, refusal};

/// The folder of an export, written anew.
fn exported(name: &str, from: &str, options: &[&str]) -> PathBuf {
    let folder = checkpoint(from, |_| ());
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("exports").join(name);
    let _ = fs::remove_dir_all(&out);
    fs::create_dir_all(out.parent().unwrap()).unwrap();
    let words = ["export", folder.path().to_str().unwrap(), out.to_str().unwrap()];
    answer(&[&words, options].concat(), "");
    out
}

/// The outputs of an exported model for a golden's inputs and those that begin a cache.
fn run(folder: &Path, inputs: &Values) -> Values {
    let model = onnx::Model::decode(fs::read(folder.join("model.onnx")).unwrap().as_slice()).unwrap();
    let wanted: Vec<_> = model.graph.as_ref().unwrap().input.iter().map(|input| input.name.clone()).collect();
    let (memory, operators) = (BTreeMap::new(), BTreeMap::new());
    let lowered = Lowered { model, folder: Some(folder.canonicalize().unwrap()), memory, operators };
    let compiled = engine::compile(Hardware::Cpu, &lowered, &Options::default()).unwrap();
    let rows = inputs["input_ids"].shape().to_vec();
    let of = |name: String| {
        let value = inputs.get(&name).cloned().unwrap_or_else(|| match name.as_str() {
            "position_ids" => Value::I64(ArrayD::from_shape_fn(rows.clone(), |at| at[1] as i64)),
            "token_type_ids" => Value::I64(ArrayD::zeros(rows.clone())),
            past => {
                assert!(past.starts_with("past_key_values."), "`{past}` is not given by consumers");
                Value::F32(ArrayD::zeros(vec![rows[0], 2, 0, 8]))
            }
        });
        (name, value)
    };
    compiled.run(&wanted.into_iter().map(of).collect()).unwrap()
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
