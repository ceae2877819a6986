//! `config.json` that is missing, damaged, of another model, or contradicts itself.

use insta::assert_snapshot;
use serde_json::{Value as Json, json};

use crate::checkpoint::Checkpoint;

fn with(field: &str, value: Json) -> String {
    Checkpoint::sound().config(|config| config[field] = value).refusal()
}

fn without(field: &str) -> String {
    Checkpoint::sound().config(|config| _ = config.as_object_mut().unwrap().shift_remove(field)).refusal()
}

#[test]
fn the_file_is_missing() {
    assert_snapshot!(Checkpoint::sound().remove("config.json").refusal(), @r"
        DIR: no config.json in DIR
          help: put config.json into that folder, or give the folder that has it
        ");
}

#[test]
fn the_file_is_not_json() {
    let text = r#"{"model_type": "bert", "hidden_size": "#;
    assert_snapshot!(Checkpoint::sound().write("config.json", text.as_bytes()).refusal(), @r"
        DIR/config.json: not JSON: EOF while parsing a value at line 1 column 38
          help: the file is damaged or cut short: fetch it again
        ");
    assert_snapshot!(Checkpoint::sound().write("config.json", b"").refusal(), @r"
        DIR/config.json: not JSON: EOF while parsing a value at line 1 column 0
          help: the file is damaged or cut short: fetch it again
        ");
    assert_snapshot!(Checkpoint::sound().write("config.json", b"\xff\xfe{}").refusal(), @r"
        DIR/config.json: not JSON: expected value at line 1 column 1
          help: the file is damaged or cut short: fetch it again
        ");
    assert_snapshot!(Checkpoint::sound().write("config.json", b"[1, 2]").refusal(), @r#"
        DIR/config.json: is no JSON object
          help: write `"model_type": "bert"`
        "#);
}

#[test]
fn a_field_is_missing() {
    assert_snapshot!(without("model_type"), @r#"
        DIR/config.json: has no `model_type`
          help: write `"model_type": "bert"`
        "#);
    // The reference's default, 768, stands for it, and the weights do not fit that.
    assert_snapshot!(without("hidden_size"), @r"
        DIR/model.safetensors: tensor `bert.embeddings.word_embeddings.weight` is [700, 32], but config.json asks for [700, 768]; tensor `bert.embeddings.token_type_embeddings.weight` is [2, 32], but config.json asks for [2, 768]; tensor `bert.embeddings.position_embeddings.weight` is [48, 32], but config.json asks for [48, 768]; tensor `bert.embeddings.LayerNorm.weight` is [32], but config.json asks for [768]; tensor `bert.embeddings.LayerNorm.bias` is [32], but config.json asks for [768]; and 34 more
          help: config.json and the weights must be of one checkpoint, and its `architectures` must name the class that was saved; choose another head otherwise
        ");
}

#[test]
fn a_field_has_the_wrong_type() {
    assert_snapshot!(with("hidden_size", json!("wide")), @r#"
        DIR/config.json: hidden_size: invalid type: string "wide", expected usize
          help: compare the file with the published one; `save_pretrained` of the reference writes every field
        "#);
    assert_snapshot!(with("num_hidden_layers", json!(-2)), @r"
        DIR/config.json: num_hidden_layers: invalid value: integer `-2`, expected usize
          help: compare the file with the published one; `save_pretrained` of the reference writes every field
        ");
    assert_snapshot!(with("num_attention_heads", json!(2.5)), @r"
        DIR/config.json: num_attention_heads: invalid type: floating point `2.5`, expected usize
          help: compare the file with the published one; `save_pretrained` of the reference writes every field
        ");
    assert_snapshot!(with("hidden_size", json!(null)), @r"
        DIR/config.json: hidden_size: invalid type: null, expected usize
          help: compare the file with the published one; `save_pretrained` of the reference writes every field
        ");
    assert_snapshot!(with("layer_norm_eps", json!([1e-12])), @r"
        DIR/config.json: layer_norm_eps: invalid type: sequence, expected f64
          help: compare the file with the published one; `save_pretrained` of the reference writes every field
        ");
    assert_snapshot!(with("hidden_act", json!("gelu_fats")), @r"
        DIR/config.json: hidden_act: unknown variant `gelu_fats`, expected one of `gelu`, `gelu_python`, `gelu_accurate`, `gelu_fast`, `gelu_new`, `gelu_python_tanh`, `gelu_pytorch_tanh`, `quick_gelu`, `relu`, `relu2`, `relu6`, `silu`, `swish`, `sigmoid`, `tanh`, `elu`, `mish`, `hardswish`, `hardsigmoid`, `linear`
          help: compare the file with the published one; `save_pretrained` of the reference writes every field
        ");
    assert_snapshot!(with("id2label", json!({"0": 7})), @r"
        DIR/config.json: id2label.0: invalid type: integer `7`, expected a string
          help: compare the file with the published one; `save_pretrained` of the reference writes every field
        ");
    assert_snapshot!(with("model_type", json!(7)), @r#"
        DIR/config.json: `model_type` is 7, not a text
          help: write `"model_type": "bert"`
        "#);
    assert_snapshot!(with("architectures", json!("BertForMaskedLM")), @r#"
        DIR/config.json: architectures: invalid type: string "BertForMaskedLM", expected a sequence
          help: write a list, such as `["BertModel"]`
        "#);
    assert_snapshot!(with("architectures", json!([1])), @r#"
        DIR/config.json: architectures: invalid type: integer `1`, expected a string
          help: write a list, such as `["BertModel"]`
        "#);
}

#[test]
fn another_model() {
    assert_snapshot!(with("model_type", json!("distilbert")), @r"
        DIR/config.json: `model_type` is `distilbert`, but weft-bert opens `bert`
          help: use the crate weft-distilbert; where there is none, `cargo xtask new distilbert --from DIR/config.json` drafts its spec
        ");
    assert_snapshot!(with("architectures", json!(["BertForSomethingElse"])), @r"
        DIR/config.json: `architectures` names `BertForSomethingElse`, which weft-bert does not have
          help: choose one of BertModel, BertForPreTraining, BertForMaskedLM, BertLMHeadModel, BertForNextSentencePrediction, BertForSequenceClassification, BertForMultipleChoice, BertForTokenClassification, BertForQuestionAnswering with `.head(..)`
        ");
}

#[test]
fn sizes_that_contradict_each_other() {
    assert_snapshot!(with("num_attention_heads", json!(3)), @r"
        DIR/config.json: hidden_size: 32 is not a multiple of num_attention_heads, 3
          help: compare the file with the published one; `save_pretrained` of the reference writes every field
        ");
    assert_snapshot!(with("num_attention_heads", json!(0)), @r"
        DIR/config.json: num_attention_heads: is 0, but must be at least 1
          help: compare the file with the published one; `save_pretrained` of the reference writes every field
        ");
    assert_snapshot!(with("hidden_size", json!(0)), @r"
        DIR/config.json: hidden_size: is 0, but must be at least 1
          help: compare the file with the published one; `save_pretrained` of the reference writes every field
        ");
    assert_snapshot!(with("vocab_size", json!(0)), @r"
        DIR/config.json: vocab_size: is 0, but must be at least 1
          help: compare the file with the published one; `save_pretrained` of the reference writes every field
        ");
    assert_snapshot!(with("add_cross_attention", json!(true)), @r"
        DIR/config.json: add_cross_attention: must be false: attention to an encoder's output is not supported
          help: compare the file with the published one; `save_pretrained` of the reference writes every field
        ");
}

#[test]
fn sizes_beyond_all_measure() {
    assert_snapshot!(with("vocab_size", json!(u64::MAX)), @r"
        DIR/config.json: vocab_size: is 18446744073709551615, but no model has more than 16777216
          help: compare the file with the published one; `save_pretrained` of the reference writes every field
        ");
    let wide = Checkpoint::sound().config(|config| {
        for field in ["hidden_size", "num_attention_heads"] {
            config[field] = json!(1 << 24);
        }
    });
    assert_snapshot!(wide.refusal(), @r"
        DIR/model.safetensors: tensor `bert.embeddings.word_embeddings.weight` [700, 16777216] would have far more elements than all 40892 that are stored
          help: config.json and the weights must be of one checkpoint: compare its sizes with the published one's
        ");
}

#[test]
fn the_weights_are_quantized_by_what_is_not_read() {
    assert_snapshot!(with("quantization_config", json!({"quant_method": "aqlm"})), @r"
        DIR/config.json: `quantization_config` says that the weights are quantized by `aqlm`, which is not read
          help: open the checkpoint that was quantized, or one quantized by `gptq`, `awq`, `compressed-tensors`, `fp8`, `mxfp4`, `bitsandbytes`, `torchao`, `hqq`, `quanto`, `bitnet`; or dequantize it with the reference and save it with `save_pretrained`
        ");
    let gemv = json!({"quant_method": "awq", "bits": 4, "version": "gemv"});
    assert_snapshot!(with("quantization_config", gemv), @r"
        DIR/config.json: `quantization_config`, of `awq`, says `version` `gemv`, which is not read
          help: open the checkpoint that was quantized, or one quantized by `gptq`, `awq`, `compressed-tensors`, `fp8`, `mxfp4`, `bitsandbytes`, `torchao`, `hqq`, `quanto`, `bitnet`; or dequantize it with the reference and save it with `save_pretrained`
        ");
    assert_snapshot!(with("quantization_config", json!({"bits": 4})), @r"
        DIR/config.json: `quantization_config` has no `quant_method`: how the weights are quantized is not said
          help: open the checkpoint that was quantized, or one quantized by `gptq`, `awq`, `compressed-tensors`, `fp8`, `mxfp4`, `bitsandbytes`, `torchao`, `hqq`, `quanto`, `bitnet`; or dequantize it with the reference and save it with `save_pretrained`
        ");
    let marlin = json!({"quant_method": "gptq", "bits": 4, "checkpoint_format": "marlin"});
    let within = with("text_config", json!({"quantization_config": marlin}));
    assert!(within.contains("`checkpoint_format` `marlin`"), "{within}");
}

#[test]
fn the_weights_are_said_to_be_quantized_and_are_not() {
    assert_snapshot!(with("quantization_config", json!({"quant_method": "gptq", "bits": 4})), @r"
        DIR/model.safetensors: holds no quantized tensor, but the weights are said to be quantized by `gptq`
          help: fetch config.json and the weights of one checkpoint; or take out `quantization_config` to run these weights as they are
        ");
}

#[test]
fn the_checkpoint_has_code_of_its_own() {
    let map = json!({"AutoConfig": "configuration_bert.JinaBertConfig", "AutoModel": "modeling_bert.JinaBertModel"});
    assert_snapshot!(with("auto_map", map), @r"
        DIR/config.json: `auto_map` names code of the checkpoint's own, `JinaBertModel`, which weft-bert cannot stand for
          help: take out `auto_map` if the reference gives the same numbers without `trust_remote_code`
        ");
}

#[test]
fn layers_are_fewer_than_the_checkpoint_has() {
    assert_snapshot!(with("num_hidden_layers", json!(1)), @r"
        DIR/model.safetensors: holds `bert.encoder.layer.1.attention.output.LayerNorm.bias`, `bert.encoder.layer.1.attention.output.LayerNorm.weight`, `bert.encoder.layer.1.attention.output.dense.bias`, `bert.encoder.layer.1.attention.output.dense.weight`, `bert.encoder.layer.1.attention.self.key.bias` and 11 more, which no part of the model that config.json describes reads: the numbers would be wrong
          help: config.json and the weights must be of one checkpoint; names that the reference ignores as well belong into `weights: {ignore_unexpected: ..}` of the spec
        ");
}
