//! `weft` as it is called: on tiny checkpoints of the goldens, by their weight rule, and on what it must refuse.

#![allow(clippy::unwrap_used, reason = "all of it is tests")]

mod exports;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::{Value as Json, json};
use tempfile::TempDir;
use weft::weights::rule;

/// A golden of this repository.
fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/goldens").join(name)
}

fn read(path: &Path) -> Json {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// A golden's checkpoint with its weights, which the rule gives; `change` may take some away or add others.
fn checkpoint(name: &str, change: impl FnOnce(&mut BTreeMap<String, Vec<usize>>)) -> TempDir {
    let (from, folder) = (golden(name), tempfile::tempdir().unwrap());
    for entry in fs::read_dir(&from).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_file()) {
        fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    let case = ["task.json", "case.json"].into_iter().find(|file| from.join(file).exists()).unwrap();
    let mut shapes: BTreeMap<String, Vec<usize>> =
        serde_json::from_value(read(&from.join(case))["parameters"].clone()).unwrap();
    change(&mut shapes);
    let tensors: Vec<_> = shapes
        .iter()
        .map(|(name, shape)| {
            let values: Vec<u8> = rule::generate(name, shape).iter().flat_map(|x| x.to_le_bytes()).collect();
            (name, shape, values)
        })
        .collect();
    let views = tensors.iter().map(|(name, shape, values)| {
        (name.as_str(), TensorView::new(Dtype::F32, (*shape).clone(), values).unwrap())
    });
    safetensors::serialize_to_file(views, None, &folder.path().join("model.safetensors")).unwrap();
    folder
}

fn weft(words: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_weft"))
        .args(words)
        .env("HF_HUB_OFFLINE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A call that ends before it reads its input closes it.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn answer(words: &[&str], input: &str) -> String {
    let output = weft(words, input);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{words:?}: {error}");
    assert!(!error.contains('\u{1b}'), "colour without a terminal: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// The exit code and what is said on standard error.
fn refusal(words: &[&str]) -> (i32, String) {
    let output = weft(words, "");
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn the_task_is_that_of_the_class_and_the_answer_the_references() {
    let folder = checkpoint("bert/tasks/fill-mask", |_| ());
    let call = &read(&golden("bert/tasks/fill-mask/task.json"))["calls"][0];
    let words =
        ["run", folder.path().to_str().unwrap(), call["inputs"].as_str().unwrap(), "--json", "--hw", "cpu"];
    let got: Json = serde_json::from_str(&answer(&words, "")).unwrap();
    let tokens =
        |list: &Json| list.as_array().unwrap().iter().map(|found| found["token"].clone()).collect::<Vec<_>>();
    assert_eq!(tokens(&got[0]["output"]), tokens(&call["output"]));
    assert_eq!(got[0]["ran_on"]["hardware"], "cpu");
}

#[test]
fn labels_make_a_classifier_of_entailment_choose_from_them() {
    let folder = checkpoint("bert/tasks/zero-shot-classification", |_| ());
    let call = &read(&golden("bert/tasks/zero-shot-classification/task.json"))["calls"][0];
    let mut words = vec!["run", folder.path().to_str().unwrap(), call["inputs"].as_str().unwrap()];
    for label in call["parameters"]["candidate_labels"].as_array().unwrap() {
        words.extend(["--label", label.as_str().unwrap()]);
    }
    let text = answer(&words, "");
    let labels: Vec<_> = text.lines().filter_map(|line| Some(line.split_once("  ")?.1)).collect();
    let wanted: Vec<_> =
        call["output"]["labels"].as_array().unwrap().iter().map(|x| x.as_str().unwrap()).collect();
    assert_eq!(labels, wanted, "{text}");
}

#[test]
fn text_is_generated_from_lines_of_standard_input() {
    let folder = checkpoint("llama/tasks/text-generation", |_| ());
    let call = &read(&golden("llama/tasks/text-generation/task.json"))["calls"][0];
    let words =
        ["run", folder.path().to_str().unwrap(), "--set", "max_new_tokens=10", "--set", "do_sample=false"];
    let got = answer(&words, &format!("{}\n", call["inputs"].as_str().unwrap()));
    assert_eq!(got.trim_end(), call["output"][0]["generated_text"].as_str().unwrap().trim_end());
}

#[test]
fn a_cache_of_8_bits_gives_the_same_text() {
    let folder = checkpoint("llama/tasks/text-generation", |_| ());
    let id = folder.path().to_str().unwrap();
    let call = &read(&golden("llama/tasks/text-generation/task.json"))["calls"][0];
    let words = ["run", id, call["inputs"].as_str().unwrap(), "--set", "max_new_tokens=10"];
    let more = ["--set", "do_sample=false", "--hw", "cpu", "--kv-cache", "int8"];
    let got = answer(&[&words[..], &more].concat(), "");
    assert_eq!(got.trim_end(), call["output"][0]["generated_text"].as_str().unwrap().trim_end());
    let (code, said) = refusal(&[&words[..], &["--kv-cache", "int3"]].concat());
    assert!(code == 2 && said.contains("int8, int4"), "{said}");
}

#[test]
fn an_assistant_changes_no_text_and_must_have_the_same_tokens() {
    let (folder, other) =
        (checkpoint("llama/tasks/text-generation", |_| ()), checkpoint("gpt2/tasks/text-generation", |_| ()));
    let (id, other) = (folder.path().to_str().unwrap(), other.path().to_str().unwrap());
    let call = &read(&golden("llama/tasks/text-generation/task.json"))["calls"][0];
    let words = ["run", id, call["inputs"].as_str().unwrap(), "--set", "max_new_tokens=10", "--hw", "cpu"];
    let words = [&words[..], &["--set", "do_sample=false"]].concat();
    let wanted = call["output"][0]["generated_text"].as_str().unwrap().trim_end();
    // Another architecture with these tokens as well.
    for more in [&["--assistant", id][..], &["--assistant", other], &["--set", "prompt_lookup_num_tokens=3"]]
    {
        assert_eq!(answer(&[&words[..], more].concat(), "").trim_end(), wanted, "{more:?}");
    }
    let tokenizer = Path::new(other).join("tokenizer.json");
    let mut changed = read(&tokenizer);
    let vocab = changed["model"]["vocab"].as_object_mut().unwrap();
    let (first, last) = (vocab.keys().next().unwrap().clone(), vocab.keys().next_back().unwrap().clone());
    let (one, another) = (vocab[&first].clone(), vocab[&last].clone());
    vocab.insert(first, another);
    vocab.insert(last, one);
    fs::write(&tokenizer, changed.to_string()).unwrap();
    let (code, said) = refusal(&[&words[..], &["--assistant", other]].concat());
    assert!(code == 1 && said.contains("tokenizer.json") && said.contains("other tokens"), "{said}");
}

#[test]
fn what_is_not_read_is_refused() {
    let folder = checkpoint("llama/tasks/text-generation", |_| ());
    let words = ["run", folder.path().to_str().unwrap(), "Hi.", "--hw", "cpu"];
    let (code, said) = refusal(&[&words[..], &["--lora", "absent.safetensors"]].concat());
    assert!(code == 1 && said.contains("absent.safetensors"), "{said}");
}

#[test]
fn a_chat_goes_on_from_what_was_said() {
    let folder = checkpoint("llama/tasks/text-generation", |_| ());
    let id = folder.path().to_str().unwrap();
    let words = ["chat", id, "--max-new-tokens", "6", "--set", "do_sample=false", "--json", "--hw", "cpu"];
    let got = answer(&words, "Hi.\nAnd now?\n/clear\nHi.\n");
    let answers: Vec<Json> = got.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), 3);
    assert_eq!(answers[0], answers[2], "after /clear it is the first turn again");
    let user = |text: &str| json!({ "role": "user", "content": text });
    let whole = json!([user("Hi."), answers[0], user("And now?")]).to_string();
    let set =
        ["run", id, &whole, "--set", "max_new_tokens=6", "--set", "do_sample=false", "--hw", "cpu", "--json"];
    let once: Json = serde_json::from_str(&answer(&set, "")).unwrap();
    let last = once[0]["output"][0]["generated_text"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(answers[1], last, "the second turn is told the first");
}

#[test]
fn info_counts_without_loading_and_names_what_is_missing_and_unused() {
    let whole = checkpoint("llama/causal-lm", |_| ());
    let info =
        |folder: &TempDir| weft(&["info", folder.path().to_str().unwrap(), "--json", "--context", "100"], "");
    let output = info(&whole);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Json = serde_json::from_slice(&output.stdout).unwrap();
    let parameters = read(&golden("llama/causal-lm/case.json"))["parameters"].clone();
    let shapes: BTreeMap<String, Vec<u64>> = serde_json::from_value(parameters).unwrap();
    let elements: u64 = shapes.values().map(|shape| shape.iter().product::<u64>()).sum();
    assert_eq!(found["parameters"], elements);
    assert_eq!((&found["class"], &found["model_type"]), (&json!("LlamaForCausalLM"), &json!("llama")));
    assert_eq!(found["stored_types"], json!({ "F32": 4 * elements }));
    // Two layers with keys and values of two heads of 8 numbers.
    assert_eq!(found["cache_bytes_per_token"], 2 * 2 * 2 * 8 * 4);
    assert_eq!(found["memory"][0]["contexts"], json!([[100, 4 * elements + 100 * 256]]));
    assert_eq!(found["backends"].as_array().unwrap().len(), 8);
    assert_eq!((&found["missing"], &found["unused"]), (&json!([]), &json!([])));

    let wrong = checkpoint("llama/causal-lm", |shapes| {
        shapes.remove("model.layers.1.mlp.up_proj.weight");
        shapes.insert("model.norm.weight".to_owned(), vec![7]);
        shapes.insert("visual.weight".to_owned(), vec![2]);
    });
    let output = info(&wrong);
    assert_eq!(output.status.code(), Some(1));
    let found: Json = serde_json::from_slice(&output.stdout).unwrap();
    let missing =
        ["`model.layers.1.mlp.up_proj.weight`", "`model.norm.weight` is [7], but config.json asks for [32]"];
    assert_eq!(found["missing"], json!(missing));
    assert_eq!(found["unused"], json!(["model.norm.weight", "visual.weight"]));
    let text = answer(&["info", whole.path().to_str().unwrap()], "");
    assert!(text.contains("KV cache       256 B a token") && text.contains("with 4096 tokens"), "{text}");
    assert!(text.contains("int4-mixed") && text.contains("taken by auto"), "{text}");
}

#[test]
fn what_cannot_be_opened_says_why_and_what_to_do() {
    let (code, text) = refusal(&["run", "/no/such/folder", "x"]);
    assert!(code == 1 && text.contains("no such folder") && text.starts_with("error: "), "{text}");
    let folder = tempfile::tempdir().unwrap();
    let refused = |model_type: &str| {
        fs::write(folder.path().join("config.json"), json!({ "model_type": model_type }).to_string())
            .unwrap();
        refusal(&["info", folder.path().to_str().unwrap()])
    };
    let (code, text) = refused("lama");
    assert!(code == 1 && text.contains("`lama`, which no crate opens; did you mean `llama`?"), "{text}");
    let known: Json = serde_json::from_str(&answer(&["models", "--all", "--json"], "")).unwrap();
    let known = known.as_array().unwrap();
    assert!(known.iter().any(|model| model["name"] == "whisper"), "every model is known");
    if let Some(absent) = known.iter().find(|model| model["built"] == false) {
        let (code, text) = refused(absent["model_types"][0].as_str().unwrap());
        let feature = format!("--features weft-models/{}", absent["category"].as_str().unwrap());
        assert!(code == 1 && text.contains("made without") && text.contains(&feature), "{text}");
    }
    let (code, text) = refusal(&["run", "x", "--hw", "gpu"]);
    assert!(code == 2 && text.contains("invalid value 'gpu'"), "{text}");
    let bert = checkpoint("bert/tasks/fill-mask", |_| ());
    let id = bert.path().to_str().unwrap();
    let (code, text) = refusal(&["chat", id]);
    assert!(code == 1 && text.contains("is for fill-mask") && text.contains("weft run"), "{text}");
    let (code, text) = refusal(&["run", id, "x", "--task", "image-classification"]);
    assert!(code == 1 && text.contains("one of feature-extraction, sentence-embedding"), "{text}");
    let (code, text) = refusal(&["info", bert.path().to_str().unwrap(), "--class", "BertForNothing"]);
    assert!(code == 1 && text.contains("BertForNothing") && text.contains("BertForMaskedLM"), "{text}");
}

#[test]
fn every_model_type_leads_to_one_model() {
    let known: Json = serde_json::from_str(&answer(&["models", "--all", "--json"], "")).unwrap();
    let mut owners = BTreeMap::new();
    for model in known.as_array().unwrap() {
        for name in model["model_types"].as_array().unwrap() {
            let other = owners.insert(name.to_string(), model["name"].clone());
            assert_eq!(other, None, "{name} is opened by two models");
        }
    }
}

#[test]
fn a_quantized_checkpoint_is_smaller_and_opens() {
    let folder = checkpoint("llama/tasks/text-generation", |_| ());
    let out = tempfile::tempdir().unwrap();
    let out = out.path().join("q8");
    let text =
        answer(&["quantize", folder.path().to_str().unwrap(), out.to_str().unwrap(), "--bits", "8"], "");
    assert!(text.contains("weights in 8 bits"), "{text}");
    let text = answer(&["bench", out.to_str().unwrap(), "--runs", "2", "--tokens", "4", "--hw", "cpu"], "");
    assert!(text.contains("tokens/s") && text.contains("LlamaForCausalLM"), "{text}");
}

#[test]
fn shells_and_man_know_every_verb() {
    let script = answer(&["completions", "bash"], "");
    assert!(script.contains("--precision") && script.contains("int4-mixed") && script.contains("webgpu"));
    let folder = tempfile::tempdir().unwrap();
    answer(&["man", folder.path().to_str().unwrap()], "");
    let page = fs::read_to_string(folder.path().join("weft-info.1")).unwrap();
    assert!(page.contains("without loading"), "{page}");
    let doctor: Json = serde_json::from_slice(&weft(&["doctor", "--json"], "").stdout).unwrap();
    assert_eq!(doctor.as_array().unwrap().len(), 8);
}

#[test]
fn setup_names_what_downloading_lacks_and_keeps_nothing() {
    let cache = tempfile::tempdir().unwrap();
    let setup = |words: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_weft"))
            .arg("setup")
            .args(words)
            .env("WEFT_CACHE", cache.path())
            .env("WEFT_PYTHON", "weft-no-such-python")
            .output()
            .unwrap()
    };
    let done = setup(&["--json"]);
    let document: Json = serde_json::from_slice(&done.stdout).unwrap();
    let reason = document["packages"][0]["reason"].as_str().unwrap();
    assert!(reason.starts_with("Python was not found") && reason.contains("WEFT_PYTHON"), "{reason}");
    assert_eq!(document["packages"][0]["name"], "onnxruntime");
    assert_eq!(done.status.code(), Some(1));
    assert_eq!(fs::read_dir(cache.path().join("packages")).unwrap().count(), 0);
    assert_eq!(setup(&["--hw", "abacus"]).status.code(), Some(2));
}
