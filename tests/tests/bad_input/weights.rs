//! `safetensors` files that are damaged, do not fit the configuration, or reach for what is not theirs.

use std::fs;

use insta::assert_snapshot;
use serde_json::{Value as Json, json};
use weft::Hardware;
use weft_bert::Head;

use crate::checkpoint::{Checkpoint, safetensors};

const QUERY: &str = "bert.encoder.layer.0.attention.self.query.weight";
const KEY: &str = "bert.encoder.layer.0.attention.self.key.weight";

#[test]
fn no_weights() {
    assert_snapshot!(Checkpoint::sound().remove("model.safetensors").refusal(), @r"
        DIR: has neither model.safetensors nor model.safetensors.index.json
          help: load the checkpoint with the reference and save it with `save_pretrained`, which writes safetensors
        ");
    let other = Checkpoint::sound();
    other.remove("model.safetensors").write("pytorch_model.bin", b"PK");
    assert_snapshot!(other.refusal(), @r"
        DIR: has neither model.safetensors nor model.safetensors.index.json; its pytorch_model.bin is not read: such files run code
          help: load the checkpoint with the reference and save it with `save_pretrained`, which writes safetensors
        ");
}

#[test]
fn the_file_is_cut_short() {
    let cut = |length: usize| {
        let checkpoint = Checkpoint::sound();
        let whole = fs::read(checkpoint.path("model.safetensors")).unwrap();
        let redacted = checkpoint.write("model.safetensors", &whole[..length.min(whole.len() - 1)]).refusal();
        redacted.replace(&(whole.len() - 1).to_string(), "(all but one)")
    };
    assert_snapshot!(cut(0), @r"
        DIR/model.safetensors: is empty
          help: download the file again and compare its size with the published one
        ");
    assert_snapshot!(cut(5), @r"
        DIR/model.safetensors: is not a safetensors file: only 5 bytes
          help: download the file again and compare its size with the published one
        ");
    assert_snapshot!(cut(100), @r"
        DIR/model.safetensors: is cut off within its header, at 100 bytes
          help: download the file again and compare its size with the published one
        ");
    assert_snapshot!(cut(usize::MAX), @r"
        DIR/model.safetensors: does not hold the data its header lists: it is cut off or has bytes too many, at (all but one) bytes
          help: download the file again and compare its size with the published one
        ");
}

#[test]
fn bytes_too_many() {
    let mut checkpoint = Checkpoint::sound();
    checkpoint.data.extend([0; 16]);
    let refusal = checkpoint.write_weights().refusal();
    assert!(refusal.contains("or has bytes too many"), "{refusal}");
}

#[test]
fn the_header_is_not_one() {
    let with = |bytes: &[u8]| Checkpoint::sound().write("model.safetensors", bytes).refusal();
    assert_snapshot!(with(&[&200_000_000_u64.to_le_bytes()[..], b"{}"].concat()), @r"
        DIR/model.safetensors: is not a safetensors file: its header claims to be over 100 MB
          help: download the file again and compare its size with the published one
        ");
    assert_snapshot!(with(&[&u64::MAX.to_le_bytes()[..], b"{}"].concat()), @r"
        DIR/model.safetensors: is not a safetensors file: its header claims to be over 100 MB
          help: download the file again and compare its size with the published one
        ");
    assert_snapshot!(with(b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 440449768\n"), @r"
        DIR/model.safetensors: is a pointer of Git LFS, not the weights
          help: fetch the files themselves: `git lfs pull` in the folder, or `hf download`
        ");
    assert_snapshot!(with(&[&6_u64.to_le_bytes()[..], b"{\"a\": "].concat()), @r"
        DIR/model.safetensors: is not a valid safetensors file: invalid JSON in header: EOF while parsing a value at line 1 column 6
          help: download the file again and compare its size with the published one
        ");
    assert_snapshot!(with(&safetensors(&json!({"a": {"dtype": "F32"}}), &[])), @r"
        DIR/model.safetensors: is not a valid safetensors file: invalid JSON in header: missing field `shape` at line 1 column 21
          help: download the file again and compare its size with the published one
        ");
    assert_snapshot!(with(&safetensors(&json!({"a": {"dtype": "Q3", "shape": [1], "data_offsets": [0, 1]}}), &[0])), @r"
        DIR/model.safetensors: is not a valid safetensors file: invalid JSON in header: unknown variant `Q3`, expected one of `BOOL`, `F4`, `F6_E2M3`, `F6_E3M2`, `U8`, `I8`, `F8_E5M2`, `F8_E4M3`, `F8_E8M0`, `F8_E4M3FNUZ`, `F8_E5M2FNUZ`, `I16`, `U16`, `F16`, `BF16`, `I32`, `U32`, `F32`, `C64`, `F64`, `I64`, `U64` at line 1 column 53
          help: download the file again and compare its size with the published one
        ");
}

#[test]
fn a_tensor_is_missing() {
    let spoilt = Checkpoint::sound().header(|header| rename(header, QUERY, "elsewhere"));
    assert_snapshot!(spoilt.refusal(), @r"
        DIR/model.safetensors: tensor `bert.encoder.layer.0.attention.self.query.weight` [32, 32] is missing
          help: config.json and the weights must be of one checkpoint, and its `architectures` must name the class that was saved; choose another head otherwise
        ");
}

#[test]
fn many_tensors_are_missing() {
    let spoilt = Checkpoint::sound().config(|config| config["num_hidden_layers"] = json!(40));
    assert_snapshot!(spoilt.refusal(), @r"
        DIR/model.safetensors: tensor `bert.encoder.layer.2.attention.self.query.weight` [32, 32] is missing; tensor `bert.encoder.layer.2.attention.self.query.bias` [32] is missing; tensor `bert.encoder.layer.2.attention.self.key.weight` [32, 32] is missing; tensor `bert.encoder.layer.2.attention.self.key.bias` [32] is missing; tensor `bert.encoder.layer.2.attention.self.value.weight` [32, 32] is missing; and 603 more
          help: config.json and the weights must be of one checkpoint, and its `architectures` must name the class that was saved; choose another head otherwise
        ");
}

#[test]
fn the_weights_are_of_another_class() {
    let spoilt =
        Checkpoint::sound().config(|config| config["architectures"] = json!(["BertForQuestionAnswering"]));
    assert_snapshot!(spoilt.refusal(), @r"
        DIR/model.safetensors: tensor `qa_outputs.weight` [2, 32] is missing; tensor `qa_outputs.bias` [2] is missing
          help: config.json and the weights must be of one checkpoint, and its `architectures` must name the class that was saved; choose another head otherwise
        ");
}

#[test]
fn a_tensor_has_the_wrong_shape() {
    let spoilt = Checkpoint::sound().header(|header| {
        let elements: u64 =
            header[QUERY]["shape"].as_array().unwrap().iter().filter_map(Json::as_u64).product();
        header[QUERY]["shape"] = json!([elements]);
    });
    assert_snapshot!(spoilt.refusal(), @r"
        DIR/model.safetensors: tensor `bert.encoder.layer.0.attention.self.query.weight` is [1024], but config.json asks for [32, 32]
          help: config.json and the weights must be of one checkpoint, and its `architectures` must name the class that was saved; choose another head otherwise
        ");
}

#[test]
fn a_tensor_has_the_wrong_dtype() {
    let spoilt = Checkpoint::sound().header(|header| header[QUERY]["dtype"] = json!("I32"));
    assert_snapshot!(spoilt.refusal(), @r"
        DIR/model.safetensors: tensor `bert.encoder.layer.0.attention.self.query.weight` is I32; F32, F16 and BF16 can be used
          help: config.json does not say how the weights are quantized: add its `quantization_config`, or load the checkpoint with the reference in float32 and save it with `save_pretrained`
        ");
    let mut quantized = Checkpoint::sound();
    let [start, end] = range(&quantized.header[QUERY]);
    let tail = quantized.data.split_off(end);
    quantized.data.truncate(start + (end - start) / 4);
    let kept = quantized.data.len();
    quantized.data.extend(tail);
    let quantized = quantized.header(|header| {
        header[QUERY]["dtype"] = json!("I8");
        for (_, entry) in header.as_object_mut().unwrap() {
            let shift = |offset: usize| if offset >= end { offset - end + kept } else { offset };
            entry["data_offsets"] = json!(range(entry).map(shift));
        }
    });
    assert_snapshot!(quantized.refusal(), @r"
        DIR/model.safetensors: tensor `bert.encoder.layer.0.attention.self.query.weight` is I8; F32, F16 and BF16 can be used
          help: config.json does not say how the weights are quantized: add its `quantization_config`, or load the checkpoint with the reference in float32 and save it with `save_pretrained`
        ");
}

#[test]
fn the_bytes_do_not_fit_the_shape() {
    let spoilt = Checkpoint::sound().header(|header| header[QUERY]["dtype"] = json!("F64"));
    assert_snapshot!(spoilt.refusal(), @r"
        DIR/model.safetensors: tensor `bert.encoder.layer.0.attention.self.query.weight` has a shape and a dtype that do not fit the number of its bytes
          help: download the file again and compare its size with the published one
        ");
    let beyond = Checkpoint::sound().header(|header| header[QUERY]["shape"] = json!([u64::MAX, 8]));
    assert_snapshot!(beyond.refusal(), @r"
        DIR/model.safetensors: tensor `bert.encoder.layer.0.attention.self.query.weight` has a shape and a dtype that do not fit the number of its bytes
          help: download the file again and compare its size with the published one
        ");
}

#[test]
fn ranges_overlap() {
    let spoilt = Checkpoint::sound()
        .header(|header| header[KEY]["data_offsets"] = json!(range(&header[KEY]).map(|offset| offset - 4)));
    assert_snapshot!(spoilt.refusal(), @r"
        DIR/model.safetensors: tensor `bert.encoder.layer.0.attention.self.key.weight` overlaps another one, or leaves a gap: the header's offsets are wrong
          help: download the file again and compare its size with the published one
        ");
    let backwards = Checkpoint::sound().header(|header| {
        let [start, end] = range(&header[QUERY]);
        header[QUERY]["data_offsets"] = json!([end, start]);
    });
    assert_snapshot!(backwards.refusal(), @r"
        DIR/model.safetensors: tensor `bert.encoder.layer.0.attention.self.query.weight` overlaps another one, or leaves a gap: the header's offsets are wrong
          help: download the file again and compare its size with the published one
        ");
}

#[test]
fn the_index_is_not_one() {
    let with = |text: &str| {
        let checkpoint = Checkpoint::sound();
        checkpoint.remove("model.safetensors").write("model.safetensors.index.json", text.as_bytes());
        checkpoint.refusal()
    };
    assert_snapshot!(with("{"), @r"
        DIR/model.safetensors.index.json: is not valid JSON: EOF while parsing an object at line 1 column 1
          help: download the checkpoint again, or save it again with `save_pretrained`
        ");
    assert_snapshot!(with("{}"), @r"
        DIR/model.safetensors.index.json: has no `weight_map`
          help: download the checkpoint again, or save it again with `save_pretrained`
        ");
    assert_snapshot!(with(r#"{"weight_map": []}"#), @r"
        DIR/model.safetensors.index.json: has no `weight_map`
          help: download the checkpoint again, or save it again with `save_pretrained`
        ");
    assert_snapshot!(with(r#"{"weight_map": {"a": 7}}"#), @r"
        DIR/model.safetensors.index.json: tensor `a` is said to be in 7, which is not a file of this folder
          help: do not open it: no published checkpoint does this
        ");
}

#[test]
fn the_index_leads_out_of_the_folder() {
    for file in ["../model.safetensors", "/etc/passwd", "a/../../b", "..", "C:model.safetensors", r"..\b"] {
        let refusal = sharded(file);
        assert!(refusal.contains("which is not a file of this folder"), "{refusal}");
    }
    assert_snapshot!(sharded("../model.safetensors"), @r#"
        DIR/model.safetensors.index.json: tensor `bert.encoder.layer.0.attention.self.query.weight` is said to be in "../model.safetensors", which is not a file of this folder
          help: do not open it: no published checkpoint does this
        "#);
}

#[test]
fn a_shard_is_missing() {
    assert_snapshot!(sharded("model-00001-of-00002.safetensors"), @r"
        DIR/model.safetensors.index.json: names model-00001-of-00002.safetensors, which is not there
          help: fetch that file as well: every one that `weight_map` names is needed
        ");
}

#[test]
fn a_tensor_stands_in_two_shards() {
    let checkpoint = Checkpoint::sound();
    let index = json!({"weight_map": {QUERY: "a.safetensors", KEY: "b.safetensors"}});
    checkpoint.write("model.safetensors.index.json", index.to_string().as_bytes());
    for shard in ["a.safetensors", "b.safetensors"] {
        fs::copy(checkpoint.path("model.safetensors"), checkpoint.path(shard)).unwrap();
    }
    let refusal = checkpoint.remove("model.safetensors").refusal();
    assert!(refusal.starts_with("DIR/b.safetensors: tensor `"), "{refusal}");
    assert!(refusal.contains("also stands in another shard"), "{refusal}");
}

/// What a checkpoint says whose index names this file.
fn sharded(file: &str) -> String {
    let checkpoint = Checkpoint::sound();
    let index = json!({"weight_map": {QUERY: file}});
    checkpoint.remove("model.safetensors");
    checkpoint.write("model.safetensors.index.json", index.to_string().as_bytes()).refusal()
}

fn rename(header: &mut Json, old: &str, new: &str) {
    let entry = header.as_object_mut().unwrap().shift_remove(old).unwrap();
    header[new] = entry;
}

fn range(entry: &Json) -> [usize; 2] {
    serde_json::from_value(entry["data_offsets"].clone()).unwrap()
}

#[test]
fn a_tensor_beside_read_ones_is_not_read() {
    let with = |name: &str| {
        let mut checkpoint = Checkpoint::sound();
        let start = checkpoint.data.len();
        checkpoint.data.extend([0; 16]);
        checkpoint.header(|header| {
            header[name] = json!({"dtype": "F32", "shape": [4], "data_offsets": [start, start + 16]});
        })
    };
    assert_snapshot!(with("bert.encoder.layer.0.attention.self.distance_embedding.weight").refusal(), @r"
        DIR/model.safetensors: holds `bert.encoder.layer.0.attention.self.distance_embedding.weight`, which no part of the model that config.json describes reads: the numbers would be wrong
          help: config.json and the weights must be of one checkpoint; names that the reference ignores as well belong into `weights: {ignore_unexpected: ..}` of the spec
        ");
    // A buffer of older releases, and a head that this class does not have.
    for name in ["bert.embeddings.position_ids", "classifier.weight"] {
        let opened = weft_bert::Model::open(with(name).id()).unwrap().hardware(Hardware::Cpu).load();
        assert!(opened.is_ok() || !crate::checkpoint::runs(), "{name}");
    }
}

/// The checkpoint of a masked language model has no pooler, as those made with `add_pooling_layer=False`.
#[test]
fn a_base_model_without_a_pooler_gives_hidden_states_alone() {
    if !crate::checkpoint::runs() {
        return;
    }
    let opened = |checkpoint: &Checkpoint| {
        weft_bert::Model::open(checkpoint.id()).unwrap().hardware(Hardware::Cpu).head(Head::Model).load()
    };
    let mut checkpoint = Checkpoint::sound();
    let model = opened(&checkpoint).unwrap();
    let ids = ndarray::array![[5_i64, 6, 7]].into_dyn();
    let outputs = model.run([("input_ids".to_owned(), ids.into())].into()).unwrap();
    assert_eq!(outputs.keys().collect::<Vec<_>>(), ["last_hidden_state"]);
    assert_eq!(outputs["last_hidden_state"].shape(), [1, 3, 32]);
    // Half a pooler is no pooler left out.
    let start = checkpoint.data.len();
    checkpoint.data.extend([0; 4 * 32 * 32]);
    let half = checkpoint.header(|header| {
        header["bert.pooler.dense.weight"] =
            json!({"dtype": "F32", "shape": [32, 32], "data_offsets": [start, start + 4 * 32 * 32]});
    });
    let error = half.shown(&opened(&half).expect_err("half a pooler was taken"));
    assert!(error.contains("pooler.dense.bias` [32] is missing"), "{error}");
}
