//! Configurations that say which of several models a module is.

use insta::assert_snapshot;
use serde_json::{Value as Json, json};
use weft::{Configuration, Hardware};
use weft_llava::{Config, Model, TextConfig, VisionConfig};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/goldens/llava/qwen2/config.json");

/// What opening a checkpoint with this in the field says; it must fail.
fn refusal(field: &str, change: impl FnOnce(&mut Json)) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut config: Json = serde_json::from_slice(&std::fs::read(GOLDEN).unwrap()).unwrap();
    change(&mut config[field]);
    std::fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    let dir = folder.path().to_str().unwrap();
    let loaded = Model::open(dir).and_then(|loader| loader.hardware(Hardware::Cpu).load());
    loaded.expect_err("it was opened").to_string().replace(dir, "DIR")
}

fn config(mut raw: Json) -> Config {
    Config::prepare(&mut raw);
    let config: Config = serde_json::from_value(raw).unwrap();
    assert_eq!(config.check(), Ok(()));
    config
}

#[test]
fn models_that_are_not_composed() {
    assert_snapshot!(refusal("text_config", |text| text["model_type"] = json!("qwen2_moe")), @r"
        DIR/config.json: `text_config.model_type` is `qwen2_moe`, but weft-llava runs `llama`, `mistral`, `qwen2`, `qwen3`, `gemma`, `gemma2`, `phi3` there
          help: only checkpoints of this composition can be opened; a spec that composes the other one adds them
        ");
    assert_snapshot!(refusal("vision_config", |vision| vision["model_type"] = json!("siglip")), @r"
        DIR/config.json: `vision_config.model_type` is `siglip`, but weft-llava runs `clip_vision_model`, `siglip_vision_model` there
          help: only checkpoints of this composition can be opened; a spec that composes the other one adds them
        ");
    assert_snapshot!(refusal("text_config", |text| text["model_type"] = json!(7)), @r"
        DIR/config.json: text_config.model_type: invalid type: integer `7`, expected variant identifier
          help: compare the file with the published one; `save_pretrained` of the reference writes every field
        ");
    assert_snapshot!(refusal("text_config", |text| text["hidden_size"] = json!("wide")), @r#"
        DIR/config.json: text_config: hidden_size: invalid type: string "wide", expected usize
          help: compare the file with the published one; `save_pretrained` of the reference writes every field
        "#);
    assert_snapshot!(refusal("text_config", |text| text["num_key_value_heads"] = json!(0)), @r"
        DIR/config.json: text_config.num_key_value_heads: 0 is less than 1
          help: compare the file with the published one; `save_pretrained` of the reference writes every field
        ");
}

#[test]
fn each_model_has_defaults_of_its_own() {
    let nested =
        config(json!({"text_config": {"model_type": "mistral"}, "vision_config": {"hidden_size": 96}}));
    let TextConfig::Mistral(text) = &nested.text_config else { panic!("{nested:?}") };
    assert_eq!((text.sliding_window, text.num_key_value_heads()), (Some(4096), 8));
    let VisionConfig::ClipVision(vision) = &nested.vision_config else { panic!("{nested:?}") };
    assert_eq!((vision.hidden_size, vision.image_size, vision.patch_size), (96, 224, 32));

    let none = config(
        json!({"text_config": {"model_type": "mistral", "sliding_window": null}, "vision_config": null}),
    );
    let TextConfig::Mistral(text) = &none.text_config else { panic!("{none:?}") };
    assert_eq!(text.sliding_window, None);
    // Where there is none, LLaVA has one of its own.
    let VisionConfig::ClipVision(vision) = &none.vision_config else { panic!("{none:?}") };
    assert_eq!((vision.hidden_size, vision.image_size, vision.patch_size), (1024, 336, 14));

    let first = config(json!({"text_config": {"rope_theta": 5e5}}));
    assert!(matches!(&first.text_config, TextConfig::Llama(text) if text.num_key_value_heads() == 32));
    assert_eq!(config(json!({})), config(json!({"text_config": {}})));
    assert_eq!(config(serde_json::to_value(&none).unwrap()), none);
}
