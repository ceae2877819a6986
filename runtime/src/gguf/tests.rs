//! Tokenizers against those that the vocabularies were taken from, and how files are found.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::*;
use crate::graph::Weight;
use crate::hub::Checkpoint;
use crate::text::chat::{ChatOptions, ChatTemplate, Message};
use crate::text::{EncodeOptions, Text, Tokenizer};
use crate::weights::{Names, Weights};

fn goldens() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/goldens/gguf")
}

fn open(path: &Path) -> Result<Checkpoint> {
    Checkpoint::open(path.to_str().unwrap())
}

#[test]
fn texts_become_the_tokens_of_the_original_tokenizers() {
    let bytes = ["gpt-2", "qwen2", "qwen35", "olmo", "command-r"];
    let pieces = ["llama", "gemma", "gemma4", "granite", "t5", "bert"];
    for name in bytes.into_iter().chain(pieces) {
        let folder = goldens().join("tokenizers").join(name);
        let tokenizer = Tokenizer::from_checkpoint(&open(&folder).unwrap()).unwrap();
        let texts: Json = serde_json::from_slice(&std::fs::read(folder.join("texts.json")).unwrap()).unwrap();
        for case in texts.as_array().unwrap() {
            let text = case["text"].as_str().unwrap();
            let rows = tokenizer.encode(&[Text::from(text)], &EncodeOptions::default()).unwrap();
            let wanted: Vec<i64> = serde_json::from_value(case["ids"].clone()).unwrap();
            assert_eq!(rows[0].ids, wanted, "{name}: {text:?}");
            // SentencePiece's prefix goes, GPT-2's bytes come back.
            if ["gpt-2", "llama", "gemma", "gemma4", "granite"].contains(&name) {
                assert_eq!(tokenizer.decode(&rows[0].ids, true).unwrap(), text, "{name}");
            }
        }
    }
}

#[test]
fn chat_templates_and_special_tokens_are_metadata() {
    let checkpoint = open(&goldens().join("tokenizers/qwen2")).unwrap();
    let tokenizer = Tokenizer::from_checkpoint(&checkpoint).unwrap();
    let template = ChatTemplate::from_checkpoint(&checkpoint, &tokenizer).unwrap().unwrap();
    let said = template.render(&[Message::user("Hello")], &ChatOptions::default()).unwrap();
    assert_eq!(said, "[user] Hello\n");
    assert_eq!(tokenizer.settings().eos_token.as_deref(), Some("<|endoftext|>"));
    assert_eq!(tokenizer.settings().model_max_length, Some(64));
    let generation = checkpoint.json("generation_config.json").unwrap().unwrap();
    assert_eq!(generation, serde_json::json!({"eos_token_id": 0}));
}

/// A golden's file in a folder of its own, under other names.
fn copied(names: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in names {
        std::fs::copy(goldens().join("llama/q4_0/model.gguf"), folder.path().join(name)).unwrap();
    }
    folder
}

#[test]
fn a_file_opens_by_its_path_and_by_its_folder() {
    let folder = copied(&["tiny.Q4_0.gguf", "mmproj-tiny.gguf"]);
    for path in [folder.path().to_owned(), folder.path().join("tiny.Q4_0.gguf")] {
        let config = open(&path).unwrap().json("config.json").unwrap().unwrap();
        assert_eq!((&config["model_type"], &config["hidden_size"]), (&"llama".into(), &32.into()));
    }
    let several = copied(&["a.gguf", "b.gguf"]);
    let text = open(several.path()).unwrap_err().to_string();
    assert!(
        text.contains("several GGUF files: a.gguf, b.gguf")
            && text.contains("a.gguf\n") | text.ends_with("a.gguf"),
        "{text}"
    );
    // Weights of the reference's own format go first.
    std::fs::write(several.path().join("model.safetensors"), "").unwrap();
    assert!(open(several.path()).unwrap().gguf().is_none());
}

#[test]
fn shards_are_counted_by_their_names() {
    assert_eq!(shards("x-00002-of-00003.gguf")[0], "x-00001-of-00003.gguf");
    assert_eq!(shards("x-00002-of-00003.gguf").len(), 3);
    for whole in ["x.gguf", "x-2-of-3.gguf", "x-00001-of-00001.gguf"] {
        assert_eq!(shards(whole), [whole]);
    }
    let folder = copied(&["x-00001-of-00002.gguf"]);
    let text = open(folder.path()).unwrap_err().to_string();
    assert!(text.contains("has no x-00002-of-00002.gguf, one of 2 shards"), "{text}");
    let folder = copied(&["x-00001-of-00002.gguf", "x-00002-of-00002.gguf"]);
    let text = open(folder.path()).unwrap_err().to_string();
    assert!(text.contains("one of 1 shards, but its name counts 2"), "{text}");
}

#[test]
fn the_text_half_of_a_model_is_named_so() {
    let mut bytes = std::fs::read(goldens().join("granite/q8_0/model.gguf")).unwrap();
    // Behind the key, the kind of its value and the length of that.
    let name = behind(&bytes, "general.architecture") + 4 + 8;
    bytes[name..name + 7].copy_from_slice(b"qwen2vl");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("model.gguf"), bytes).unwrap();
    let text = open(folder.path()).unwrap_err().to_string();
    assert!(text.contains("`qwen2vl`, and holds the text half of a vision-language model alone"), "{text}");
}

#[test]
fn models_that_share_an_architecture_are_chosen_by_who_asks() {
    let checkpoint = open(&goldens().join("llama/q4_0")).unwrap();
    let gguf = checkpoint.gguf().unwrap();
    assert_eq!(gguf.config(&["mistral"]).unwrap()["architectures"][0], "MistralForCausalLM");
    assert_eq!(gguf.config(&["mixtral"]).unwrap()["model_type"], "llama");
    let mixture = open(&goldens().join("mixtral/q4_0")).unwrap();
    assert_eq!(mixture.gguf().unwrap().config(&["llama"]).unwrap()["model_type"], "mixtral");
}

/// What is said of the weights of a golden in whose bytes something was changed.
fn refused(golden: &str, change: impl FnOnce(&mut [u8])) -> String {
    let mut bytes = std::fs::read(goldens().join(golden).join("model.gguf")).unwrap();
    change(&mut bytes);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("model.gguf"), bytes).unwrap();
    Weights::open(&open(folder.path()).unwrap()).unwrap_err().to_string()
}

/// Where the bytes behind a text begin.
fn behind(bytes: &[u8], text: &str) -> usize {
    bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap() + text.len()
}

#[test]
fn parts_of_a_split_tensor_belong_together() {
    let up = "blk.0.ffn_up_exps.weight";
    let missing = refused("gpt_oss/mxfp4", |bytes| {
        let end = behind(bytes, up);
        bytes[end - up.len()..end].copy_from_slice(b"blk.0.ffn_no_exps.weight");
    });
    assert!(missing.contains("has tensor `blk.0.ffn_gate_exps.weight` but not `blk.0.ffn_up_exps.weight`"));
    // [columns, rows, experts] behind the number of axes.
    let other = refused("gpt_oss/mxfp4", |bytes| {
        let rows = behind(bytes, up) + 4 + 8;
        bytes[rows..rows + 16].rotate_left(8);
    });
    assert!(
        other.contains("`blk.0.ffn_gate_exps.weight` [3, 64, 32] and `blk.0.ffn_up_exps.weight` [64, 3, 32], which do not"),
        "{other}"
    );
    let heads = refused("falcon/two-norms", |bytes| {
        let value = behind(bytes, "falcon.attention.head_count_kv") + 4;
        bytes[value] = 3;
    });
    assert!(
        heads.contains("tensor `blk.0.attn_qkv.weight` has 64 rows, which its heads do not divide"),
        "{heads}"
    );
}

#[test]
fn an_architecture_is_of_the_first_models_that_fit() {
    for (golden, model) in [
        ("deepseek_v2/lite", "deepseek_v2"),
        ("deepseek_v3/q8_0", "deepseek_v3"),
        ("granitemoe/f16", "granitemoe"),
        ("granitemoeshared/q4_1", "granitemoeshared"),
        ("granitemoehybrid/dense", "granitemoehybrid"),
        ("bamba/q8_0", "bamba"),
        ("nemotron_h/moe", "nemotron_h"),
        ("gemma3_text/embedding", "gemma3_text"),
        ("bert/q8_0", "bert"),
        ("distilbert/q8_0", "distilbert"),
        ("roberta/q8_0", "roberta"),
        ("xlm-roberta/q8_0", "xlm-roberta"),
        ("t5/q8_0", "t5"),
        ("t5/v1-1", "t5"),
        ("t5/encoder", "t5"),
        ("mt5/q8_0", "t5"),
        ("umt5/q8_0", "umt5"),
    ] {
        let config = open(&goldens().join(golden)).unwrap().json("config.json").unwrap().unwrap();
        assert_eq!(config["model_type"], model, "{golden}");
    }
    let config = open(&goldens().join("deepseek_v3/q8_0")).unwrap().json("config.json").unwrap().unwrap();
    assert_eq!(config["qk_nope_head_dim"], 32);
    assert_eq!(config["mlp_layer_types"], serde_json::json!(["dense", "sparse", "sparse"]));
    assert_eq!(config["rope_parameters"].get("partial_rotary_factor"), Some(&serde_json::json!(1.0)));
}

fn config(golden: &str) -> Json {
    open(&goldens().join(golden)).unwrap().json("config.json").unwrap().unwrap()
}

#[test]
fn what_differs_by_layer_is_found_by_tensors() {
    let jamba = config("jamba/q4_0");
    let of = |field: &str| jamba[field].as_u64().unwrap();
    // One layer of four with attention, and two with experts.
    assert_eq!([of("attn_layer_period"), of("attn_layer_offset")], [5, 1]);
    assert_eq!([of("expert_layer_period"), of("expert_layer_offset")], [2, 1]);
    let dense = config("jamba/dense");
    let of = |field: &str| dense[field].as_u64().unwrap();
    assert_eq!([of("attn_layer_period"), of("attn_layer_offset")], [5, 2]);
    assert_eq!([of("expert_layer_period"), of("expert_layer_offset")], [5, 4]);
    assert_eq!(config("bamba/q8_0")["attn_layer_indices"], serde_json::json!([1]));
    let kinds = serde_json::json!(["linear_attention", "mlp", "full_attention", "mlp"]);
    assert_eq!(config("nemotron_h/q8_0")["layers_block_type"], kinds);
    // A layer of multi-token prediction is none.
    assert_eq!(config("glm4_moe/nextn")["num_hidden_layers"], 2);
}

/// Takes the last axes of a tensor, which are of one element, out of a file's bytes.
fn without_last_axes(bytes: &mut Vec<u8>, tensor: &str, axes: usize) {
    let end = behind(bytes, tensor);
    let left = bytes[end] as usize - axes;
    bytes[end] = left as u8;
    let first = end + 4 + 8 * left;
    assert!(bytes[first..first + 8 * axes].chunks(8).all(|axis| axis[0] == 1));
    bytes.drain(first..first + 8 * axes);
}

#[test]
fn axes_of_one_element_may_be_left_out() {
    let whole = goldens().join("kimi_linear/q4_0");
    let mut bytes = std::fs::read(whole.join("model.gguf")).unwrap();
    // 32 bytes in all, by which what follows is aligned.
    without_last_axes(&mut bytes, "blk.0.ssm_a", 2);
    without_last_axes(&mut bytes, "blk.0.ssm_conv1d_q.weight", 1);
    without_last_axes(&mut bytes, "blk.0.ssm_conv1d_k.weight", 1);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("model.gguf"), bytes).unwrap();
    let [whole, cut] = [&whole, folder.path()].map(|path| Weights::open(&open(path).unwrap()).unwrap());
    for (name, shape) in [("A_log", vec![1, 1, 4, 1]), ("q_conv1d.weight", vec![128, 1, 3])] {
        let name = format!("model.layers.0.self_attn.{name}");
        let weight = |weights: &Weights| {
            let data = weights.locate(&[Weight::new(&name, &shape)], &Names::default()).unwrap().remove(0);
            (data.shape.clone(), data.bytes.read().unwrap().into_owned())
        };
        assert_eq!(weight(&cut), weight(&whole), "{name}");
        assert_eq!(weight(&cut).0, shape);
    }
}

#[test]
fn sliding_layers_turn_the_same_share_of_a_head_and_have_key_heads_of_their_own() {
    let config = config("mimo_v2_flash/q4_0");
    assert_eq!([&config["num_key_value_heads"], &config["v_head_dim"]], [1, 8]);
    for kind in ["full_attention", "sliding_attention"] {
        assert_eq!(config["rope_parameters"][kind]["partial_rotary_factor"], 0.5);
    }
    assert_eq!(config["mlp_layer_types"], serde_json::json!(["dense", "sparse", "sparse"]));
}

#[test]
fn lists_for_layers_and_their_standards_are_read() {
    let gated = config("laguna/q4_0");
    assert_eq!(gated["num_attention_heads_per_layer"], serde_json::json!([2, 4, 4, 4, 2]));
    // The file has a window, and does not say which layers.
    let [full, sliding] = ["full_attention", "sliding_attention"];
    assert_eq!(gated["layer_types"], serde_json::json!([full, sliding, sliding, sliding, full]));
    let turned = |kind| gated["rope_parameters"][kind]["partial_rotary_factor"].as_f64();
    assert_eq!([turned(full), turned(sliding)], [Some(0.5), Some(1.0)]);
    assert_eq!(config("laguna/full")["layer_types"], serde_json::json!([full, full]));
    let bases = &config("granite_swa/some-positions")["layer_rope_theta"];
    assert_eq!(*bases, serde_json::json!([0.0, 10_000.0, 10_000.0]));
    assert_eq!(config("granite_swa/q8_0")["model_type"], "granite_swa");
    assert_eq!(config("granitemoe_swa/q4_0")["model_type"], "granitemoe_swa");
    assert_eq!(config("solar_open/q4_0")["model_type"], "solar_open");
    // A bound that all layers share, which is no whole number.
    assert_eq!(config("hy_v4/q4_0")["swiglu_limit"], 0.5);
}

/// A file's bytes with another key, a number, and one that fills the added bytes up to a multiple of 32 and those that are missing.
fn with_number(mut bytes: Vec<u8>, key: &str, number: u32, missing: usize) -> Vec<u8> {
    let text = |text: &str| [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat();
    let mut added = [text(key), 4_u32.to_le_bytes().to_vec(), number.to_le_bytes().to_vec()].concat();
    let filled = (added.len() + 8 + 1 + 4 + 8).next_multiple_of(32) - added.len() - 8 - 1 - 4 - 8;
    added.extend([text("x"), 8_u32.to_le_bytes().to_vec(), text(&" ".repeat(filled + missing))].concat());
    // The number of keys.
    bytes[16] += 2;
    bytes.splice(24..24, added);
    bytes
}

#[test]
fn the_pooling_of_a_file_is_that_of_sentence_transformers() {
    let whole = std::fs::read(goldens().join("bert/q8_0/model.gguf")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let pooled = |number| {
        let bytes = with_number(whole.clone(), "bert.pooling_type", number, 0);
        std::fs::write(folder.path().join("model.gguf"), bytes).unwrap();
        let checkpoint = open(folder.path()).unwrap();
        let modules = checkpoint.json("modules.json").unwrap();
        modules.map(|modules| {
            let path = modules[1]["path"].as_str().unwrap();
            checkpoint.json(&format!("{path}/config.json")).unwrap().unwrap()["pooling_mode"].clone()
        })
    };
    assert_eq!([1, 2, 3].map(pooled), ["mean", "cls", "lasttoken"].map(|mode| Some(mode.into())));
    // Neither none nor that of a model of ranks.
    assert_eq!([0, 4].map(pooled), [None, None]);
    std::fs::write(folder.path().join("modules.json"), "[]").unwrap();
    assert_eq!(open(folder.path()).unwrap().json("modules.json").unwrap(), Some(serde_json::json!([])));
}

#[test]
fn dense_layers_behind_a_pooling_are_refused() {
    let mut bytes = std::fs::read(goldens().join("gemma3_text/embedding/model.gguf")).unwrap();
    let (norm, dense) = ("blk.0.ffn_norm.weight", "dense_2.weight");
    let end = behind(&bytes, norm);
    let name = end - norm.len();
    bytes[name - 8] = dense.len() as u8;
    bytes.splice(name..end, dense.bytes());
    let folder = tempfile::tempdir().unwrap();
    let padded = with_number(bytes, "general.filled", 0, norm.len() - dense.len());
    std::fs::write(folder.path().join("model.gguf"), padded).unwrap();
    let text = open(folder.path()).unwrap().json("modules.json").unwrap_err().to_string();
    assert!(text.contains("has dense layers behind its pooling, which are not read"), "{text}");
}

#[test]
fn what_differs_by_kind_of_layer_is_found_by_windows() {
    let small = config("gemma4_text/q8_0");
    assert_eq!([&small["head_dim"], &small["global_head_dim"]], [16, 32]);
    assert_eq!(
        [&small["intermediate_size"], &small["use_double_wide_mlp"]],
        [&Json::from(64), &Json::from(true)]
    );
    assert_eq!(small["rope_parameters"]["full_attention"]["partial_rotary_factor"], 0.25);
    let large = config("gemma4_text/keys-as-values");
    assert_eq!([&large["num_key_value_heads"], &large["num_global_key_value_heads"]], [2, 1]);
    assert_eq!(large["attention_k_eq_v"], true);
    let sparse = config("gemma3n_text/q8_0")["activation_sparsity_pattern"].clone();
    let sparse: Vec<f64> = serde_json::from_value(sparse).unwrap();
    assert!(
        sparse.iter().zip([0.9, 0.5, 0.0, 0.0]).all(|(found, wanted)| (found - wanted).abs() < 1e-6),
        "{sparse:?}"
    );
}

#[test]
fn drafters_have_all_layers_of_multi_token_prediction_and_a_nested_configuration() {
    let small = config("gemma4_assistant/q8_0");
    assert_eq!(
        [&small["model_type"], &small["backbone_hidden_size"]],
        [&Json::from("gemma4_assistant"), &64.into()]
    );
    assert_eq!([&small["use_ordered_embeddings"], &small["tie_word_embeddings"]], [false, true]);
    let text = &small["text_config"];
    assert_eq!(
        [&text["num_hidden_layers"], &text["num_kv_shared_layers"], &text["global_head_dim"]],
        [4, 4, 32]
    );
    assert_eq!(text["rope_parameters"]["full_attention"]["rope_type"], "proportional");
    assert_eq!(text["attention_k_eq_v"], false);
    let text = &config("gemma4_assistant/keys-as-values")["text_config"];
    assert_eq!(text["attention_k_eq_v"], true);
    assert_eq!([&text["num_key_value_heads"], &text["num_global_key_value_heads"]], [2, 1]);
}
