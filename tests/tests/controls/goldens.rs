//! Goldens that must fail, and libraries that must be found missing.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use libtest_mimic::{Completion, Failed, Trial};
use serde_json::{Value as Json, json};

use crate::binary::{Cases, Outcome, command};

pub fn trials() -> Vec<Trial> {
    let all: [(&str, fn()); 15] = [
        ("a_sound_golden_passes", sound),
        ("a_wrong_weight_fails", wrong_weight),
        ("a_missing_output_fails", missing_output),
        ("a_wrong_output_shape_fails", wrong_shape),
        ("a_parameter_that_the_graph_leaves_out_fails", ignored_parameter),
        ("a_wrong_answer_fails", wrong_answer),
        ("a_near_tie_is_judged_by_its_logits", near_tie),
        ("a_tolerance_without_a_reason_is_refused", unfounded_tolerance),
        ("a_known_failure_may_fail", known_failure_fails),
        ("a_known_failure_that_passes_is_an_error", known_failure_passes),
        ("a_known_failure_without_a_reason_is_refused", unexplained_failure),
        ("a_removed_library_is_missing", removed_library),
        ("an_empty_cache_is_missing", empty_cache),
        ("task_folders_are_verified", verify_task),
        ("tasks_take_weights_by_the_rule", task_by_rule),
    ];
    let trial = |(name, test): (&str, fn())| {
        Trial::ignorable_test(name, move || {
            if let Err(error) = weft::engine::available(weft::Hardware::Cpu) {
                return Ok(Completion::ignored_with(error.to_string()));
            }
            test();
            Ok::<_, Failed>(Completion::Completed)
        })
    };
    all.map(trial).into()
}

fn sound() {
    let outcome = Cases::of("file").test("plain", &[]);
    assert!(outcome.success, "{outcome:?}");
    assert_eq!(outcome.record(), ("device", true, ""));
}

fn wrong_weight() {
    let cases = Cases::of("file");
    flip(&cases.path("file/model.safetensors"), "bert.encoder.layer.1.attention.self.value.weight");
    let outcome = cases.test("plain", &[]);
    assert!(!outcome.success, "{outcome:?}");
    assert!(outcome.stdout.contains("logits: off by "), "{outcome:?}");
    assert_eq!(outcome.record(), ("failed", false, ""));
}

/// Turns the sign of a tensor's largest element.
fn flip(path: &Path, tensor: &str) {
    let mut bytes = fs::read(path).unwrap();
    let data = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: Json = serde_json::from_slice(&bytes[8..data]).unwrap();
    let [start, end]: [usize; 2] = serde_json::from_value(header[tensor]["data_offsets"].clone()).unwrap();
    let value = |i: &usize| f32::from_le_bytes(bytes[*i..i + 4].try_into().unwrap()).abs();
    let largest = (data + start..data + end).step_by(4).max_by(|a, b| value(a).total_cmp(&value(b))).unwrap();
    bytes[largest + 3] ^= 0x80;
    fs::write(path, bytes).unwrap();
}

fn missing_output() {
    let cases = Cases::of("file");
    rename(&cases.path("file/io.safetensors"), "out.logits", "out.scores");
    let outcome = cases.test("plain", &[]);
    assert!(!outcome.success, "{outcome:?}");
    assert!(outcome.stdout.contains("scores: the model has no such output"), "{outcome:?}");
}

fn wrong_shape() {
    let cases = Cases::of("file");
    change_header(&cases.path("file/io.safetensors"), |header| {
        let shape = header["out.logits"]["shape"].as_array_mut().unwrap();
        shape.swap(1, 2);
    });
    let outcome = cases.test("plain", &[]);
    assert!(!outcome.success, "{outcome:?}");
    assert!(outcome.stdout.contains(", the reference has ["), "{outcome:?}");
}

fn rename(path: &Path, old: &str, new: &str) {
    change_header(path, |header| {
        let entry = header.as_object_mut().unwrap().shift_remove(old).unwrap();
        header[new] = entry;
    });
}

fn change_header(path: &Path, change: impl FnOnce(&mut Json)) {
    let bytes = fs::read(path).unwrap();
    let data = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut header: Json = serde_json::from_slice(&bytes[8..data]).unwrap();
    change(&mut header);
    let header = header.to_string();
    let length = (header.len() as u64).to_le_bytes();
    fs::write(path, [length.as_slice(), header.as_bytes(), &bytes[data..]].concat()).unwrap();
}

fn change_json(path: &Path, change: impl FnOnce(&mut Json)) {
    let mut json: Json = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    change(&mut json);
    fs::write(path, json.to_string()).unwrap();
}

fn ignored_parameter() {
    let cases = Cases::of("base");
    change_json(&cases.path("base/case.json"), |case| {
        case["parameters"]["pooler.gate.weight"] = json!([32, 32]);
    });
    let outcome = cases.test("plain", &[]);
    assert!(!outcome.success, "{outcome:?}");
    let said = r#"the graph does not use the reference's parameters ["pooler.gate.weight"]"#;
    assert_eq!(outcome.record(), ("failed", false, said));
}

/// A task golden, and another beside it: a folder of cases needs one that is no task.
fn task_case(case: &str) -> Cases {
    let cases = Cases::of(case);
    for file in ["case.json", "config.json", "io.safetensors", "model.safetensors"] {
        let golden = Cases::of("file");
        fs::create_dir_all(cases.path("file")).unwrap();
        fs::copy(golden.path("file").join(file), cases.path("file").join(file)).unwrap();
    }
    cases
}

/// Half precision chooses other classes for tokens, and other spans, than the reference.
fn near_tie() {
    let said = |outcome: &Outcome| {
        let record = outcome.records.iter().find(|record| record["kind"] == "task").unwrap();
        serde_json::to_string(&record["outputs"]).unwrap()
    };
    let cases = task_case("tasks/question-answering");
    let outcome = cases.test("halved", &[]);
    assert!(outcome.success && said(&outcome).contains(", forced"), "{outcome:?}");
    // Its logits are off by more than this.
    let path = cases.path("tasks/question-answering/task.json");
    let outcome = cases.test("tightened", &[]);
    assert!(!outcome.success, "{outcome:?}");
    change_json(&path, |case| {
        for call in case["calls"].as_array_mut().unwrap() {
            call["margin"] = json!(0.0);
        }
    });
    let outcome = cases.test("tightened", &[]);
    assert!(!outcome.success && outcome.stdout.contains(", forced: off by "), "{outcome:?}");
    // What is no near tie must be the reference's answer.
    change_json(&path, |case| {
        for call in case["calls"].as_array_mut().unwrap() {
            call["margin"] = json!(0.5);
        }
    });
    let outcome = cases.test("halved", &[]);
    assert!(!outcome.success && !said(&outcome).contains("forced"), "{outcome:?}");
    // The teacher must give the reference's answer.
    change_json(&path, |case| {
        case["calls"][0]["margin"] = json!(0.0);
        case["calls"][0]["output"]["start"] = json!(0);
    });
    let outcome = cases.test("halved", &[]);
    assert!(!outcome.success, "{outcome:?}");
    let wrong = "single precision on the CPU has another answer than the reference: at start";
    assert!(said(&outcome).contains(wrong), "{outcome:?}");
}

fn wrong_answer() {
    let cases = task_case("tasks/fill-mask");
    let task = cases.path("tasks/fill-mask/task.json");
    assert!(cases.test("plain", &[]).success);
    change_json(&task, |case| {
        let score = &mut case["calls"][0]["output"][0]["score"];
        *score = json!(score.as_f64().unwrap() + 3e-4);
    });
    assert!(!cases.test("plain", &[]).success);
    change_json(&task, |case| case["calls"][0]["output"][0]["token"] = json!(1));
    let outcome = cases.test("plain", &[]);
    assert!(outcome.stdout.contains("calls[0]: at [0].token: "), "{outcome:?}");
}

fn unfounded_tolerance() {
    let cases = Cases::of("file");
    change_json(&cases.path("file/case.json"), |case| case["tolerance"] = json!(0.5));
    let outcome = cases.test("plain", &[]);
    assert!(!outcome.success, "{outcome:?}");
    let (evidence, passed, reason) = outcome.record();
    assert_eq!((evidence, passed), ("failed", false));
    assert!(reason.contains("case.json: has a `tolerance` without `tolerance_reason`"), "{reason}");
    let outcome = Cases::of("file").test("unfounded", &[]);
    assert!(!outcome.success && outcome.records.is_empty(), "{outcome:?}");
    assert!(outcome.stderr.contains("the tolerance 0.5 of f32 has no reason"), "{outcome:?}");
}

const CURSED: &str = r#"{"model": "bert", "case": "file", "reason": "it is cursed"}"#;

fn known_failure_fails() {
    let cases = Cases::of("file");
    flip(&cases.path("file/model.safetensors"), "bert.encoder.layer.1.attention.self.value.weight");
    cases.known(CURSED);
    let outcome = cases.test("plain", &[]);
    assert!(outcome.success, "{outcome:?}");
    assert_eq!(outcome.record(), ("failed", false, ""));
    assert_eq!(outcome.records[0]["expected_failure"], "it is cursed");
}

fn known_failure_passes() {
    let cases = Cases::of("file");
    cases.known(CURSED);
    let outcome = cases.test("plain", &[]);
    assert!(!outcome.success, "{outcome:?}");
    let said = "passes although it is listed as a known failure (it is cursed): take it off the list";
    assert!(outcome.stdout.contains(said), "{outcome:?}");
}

/// Of another model every line may be, of this one only what a test can meet.
fn unexplained_failure() {
    let other = r#"{"model": "t5", "case": "none", "reason": "it is old"}"#;
    for (line, said) in [
        (
            r#"{"model": "bert", "case": "file", "reason": " "}"#,
            "the known failure `file` of bert has no reason",
        ),
        (r#"{"model": "bert", "case": "heads", "reason": "it is cursed"}"#, "bert has no case `heads`"),
        (
            r#"{"model": "bert", "case": "file", "precision": "bf16", "reason": "so"}"#,
            "bf16 is not run on cpu",
        ),
        (r#"{"model": "bert", "cause": "file", "reason": "so"}"#, "unknown field `cause`"),
    ] {
        let cases = Cases::of("file");
        cases.known(&format!("{other}\n{line}\n"));
        let outcome = cases.test("plain", &[]);
        assert!(!outcome.success && outcome.records.is_empty(), "{outcome:?}");
        assert!(outcome.stderr.contains("cpu.jsonl") && outcome.stderr.contains("line 2: "), "{outcome:?}");
        assert!(outcome.stderr.contains(said), "{outcome:?}");
    }
}

fn removed_library() {
    let nowhere = OsString::from("/nowhere/libonnxruntime.so");
    let outcome = Cases::of("file").test("plain", &[("ORT_DYLIB_PATH", nowhere)]);
    assert!(outcome.success && outcome.stdout.contains("0 passed; 0 failed; 1 ignored"), "{outcome:?}");
    let (evidence, passed, reason) = outcome.record();
    assert_eq!((evidence, passed), ("untested", false));
    assert!(
        reason.starts_with("ORT_DYLIB_PATH is /nowhere/libonnxruntime.so, which is no file; "),
        "{reason}"
    );

    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("libonnxruntime.so");
    fs::write(&text, "no library").unwrap();
    let outcome = Cases::of("file").test("plain", &[("ORT_DYLIB_PATH", text.into())]);
    let (evidence, passed, reason) = outcome.record();
    assert_eq!((evidence, passed), ("untested", false), "{outcome:?}");
    assert!(reason.contains("libonnxruntime.so cannot be loaded: "), "{reason}");
}

fn empty_cache() {
    let folder = tempfile::tempdir().unwrap();
    let environment = [("WEFT_CACHE", folder.path().into()), ("ORT_DYLIB_PATH", OsString::new())];
    let outcome = Cases::of("file").test("plain", &environment);
    assert!(outcome.success && outcome.stdout.contains("0 passed; 0 failed; 1 ignored"), "{outcome:?}");
    let (evidence, passed, reason) = outcome.record();
    assert_eq!((evidence, passed), ("untested", false));
    assert!(reason.starts_with("its runtime library is not in "), "{reason}");
    assert!(
        reason.ends_with("; run `weft setup --hw cpu` (in Weft's repository: `cargo xtask setup --hw cpu`)"),
        "{reason}"
    );
    let mut verify = command("plain");
    verify.arg("--verify").arg(Cases::of("file").path("file")).arg("--json").envs(environment);
    let outcome = Outcome::of(&mut verify);
    assert!(!outcome.success, "what was not run was verified: {outcome:?}");
}

fn verify_task() {
    let cases = Cases::of("tasks/fill-mask");
    let verify = || {
        let mut verify = command("plain");
        let outcome = Outcome::of(verify.arg("--verify").arg(cases.path("tasks/fill-mask")).arg("--json"));
        let record: Json = serde_json::from_str(outcome.stdout.trim()).unwrap();
        (outcome.success, record)
    };
    let (success, record) = verify();
    assert!(success && record["passed"] == true, "{record}");
    assert!(record["outputs"].as_array().unwrap().len() > 3, "{record}");
    let task = cases.path("tasks/fill-mask/task.json");
    change_json(&task, |case| case["calls"][0]["output"][0]["token_str"] = json!("wrong"));
    assert!(!verify().0);
    change_json(&task, |case| case["calls"] = json!([]));
    let (success, record) = verify();
    assert!(!success && record["reason"].as_str().unwrap().contains("has no `calls`"), "{record}");
}

fn task_by_rule() {
    let cases = Cases::of("tasks/fill-mask");
    let case: Json =
        serde_json::from_slice(&fs::read(cases.path("tasks/fill-mask/task.json")).unwrap()).unwrap();
    let call = &case["calls"][0];
    let mut task = command("plain");
    task.args(["--task", "fill-mask", "--hw", "cpu", "--json", "--checkpoint"])
        .arg(cases.path("tasks/fill-mask"));
    let mut child = task.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let line = json!({"inputs": call["inputs"], "parameters": call["parameters"]});
    writeln!(child.stdin.take().unwrap(), "{line}").unwrap();
    let output = child.wait_with_output().unwrap();
    let answer: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert!(output.status.success(), "{answer}");
    for (got, want) in answer["output"].as_array().unwrap().iter().zip(call["output"].as_array().unwrap()) {
        assert_eq!(got["token_str"], want["token_str"]);
    }
}
