//! The fields of `config.json` that the reference reads: each is read, refused or listed as without effect.

use std::fs;

use weft_generator::spec::fields::ReferenceFields;
use weft_generator::unlisted_fields;
use weft_tests::{Workshop, root};

use crate::templates::own;

/// What the pinned release reads, as `cargo xtask reference --fields` keeps it.
fn reference() -> ReferenceFields {
    let text = fs::read_to_string(root().join("tests/goldens/fields.json")).expect("the list is there");
    serde_json::from_str(&text).expect("the list is understood")
}

#[test]
fn no_spec_passes_over_a_field_in_silence() {
    let unlisted = unlisted_fields(&own(), &reference()).unwrap();
    assert!(unlisted.is_empty(), "run `cargo xtask reference --fields`:\n{}", unlisted.join("\n"));
}

#[test]
fn the_list_is_of_the_pinned_release_and_says_the_same_when_written_again() {
    let pins = fs::read_to_string(root().join("tests/reference/requirements.txt")).unwrap();
    let reference = reference();
    assert!(pins.lines().any(|pin| pin == format!("transformers=={}", reference.transformers)));
    let text = reference.text().unwrap();
    assert_eq!(text, fs::read_to_string(root().join("tests/goldens/fields.json")).unwrap());
}

/// What a spec with these fields passes over, where the reference's class has others.
#[allow(clippy::unwrap_used, reason = "the test cannot go on without the list")]
fn unlisted(config: &str) -> String {
    let text = r#"{
        "transformers": "1.0",
        "model_types": {"mine": {"": "MineConfig", "inner_config": "InnerConfig"}},
        "classes": {
            "MineConfig": {"hidden_size": ["mine.py:4"], "dropout": ["mine.py:5"], "slope": ["mine.py:6"],
                "depth": ["mine.py:7"], "unused": []},
            "InnerConfig": {"width": ["mine.py:8"]}
        },
        "defaults": {
            "MineConfig": {"declared": {"hidden_size": 4, "depth": 1, "slope": null, "act": "gelu_python", "heads": null,
                "rope_parameters": null}, "settled": {"heads": 2, "rope_parameters": {"rope_theta": 100.0,
                "partial_rotary_factor": 0.5, "rope_type": "default"}}},
            "InnerConfig": {"declared": {"width": 4}}
        }
    }"#;
    let workshop = Workshop::new();
    let head = "model: mine\ntitle: Mine\narchitecture: encoder-only\n";
    workshop
        .spec("text-encoders/mine.yaml", &format!("{head}config:\n{config}graph: {{template: encoder}}\n"));
    let unlisted = unlisted_fields(&workshop.request(), &serde_json::from_str(text).unwrap()).unwrap();
    let own = unlisted.into_iter().filter(|line| line.contains("mine.yaml"));
    own.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_field_that_is_neither_read_nor_listed_is_named_with_its_place() {
    let inner = "  inner_config: {width: 4}\n";
    let listed =
        "  slope: {no_effect: of training}\n  depth: {default: 1, only: 1, because: no other is known}\n";
    assert_eq!(unlisted(&format!("  hidden_size: 4\n{listed}{inner}")), "");
    assert_eq!(unlisted(&format!("  d_model: {{default: 4, aliases: [hidden_size]}}\n{listed}{inner}")), "");
    insta::assert_snapshot!(unlisted(&format!("  hidden_size: 4\n  depth: 1\n{inner}")), @"specs/text-encoders/mine.yaml:5: `config.slope`: the reference reads it in mine.py:6 (MineConfig), and this crate passes over it: read it, refuse what is not supported by `only`, or say `{no_effect: why}` if inference does not depend on it");
    insta::assert_snapshot!(unlisted(&format!("  hidden_size: 4\n{listed}  inner_config: {{height: 4}}\n")), @"specs/text-encoders/mine.yaml:5: `config.inner_config.width`: the reference reads it in mine.py:8 (InnerConfig), and this crate passes over it: read it, refuse what is not supported by `only`, or say `{no_effect: why}` if inference does not depend on it");
}

#[test]
fn a_field_that_is_listed_without_need_is_named() {
    let config = "  hidden_size: {default: 4, aliases: [depth]}\n  slope: {no_effect: of training}\n  \
         depth: {no_effect: of training}\n  unused: {no_effect: of training}\n  slopes: {no_effect: of training}\n";
    insta::assert_snapshot!(unlisted(config), @r"
    specs/text-encoders/mine.yaml:7: `config.depth`: is read under another name, and listed as without effect
    specs/text-encoders/mine.yaml:9: `config.slopes`: is no field of MineConfig: leave it out; did you mean `slope`?
    specs/text-encoders/mine.yaml:8: `config.unused`: is read nowhere in the reference: leave it out
    ");
}

#[test]
fn a_model_that_the_list_does_not_know_is_named() {
    let workshop = Workshop::new();
    workshop.spec(
        "text-encoders/mine.yaml",
        "model: mine\ntitle: Mine\nextends: bert\ncategory: text-encoders\n",
    );
    let unlisted = unlisted_fields(&workshop.request(), &reference()).unwrap();
    let own: Vec<_> = unlisted.into_iter().filter(|line| line.contains("`mine`")).collect();
    assert!(own.len() == 1 && own[0].contains("cargo xtask reference --fields"), "{own:?}");
}

#[test]
fn a_field_without_effect_is_none_of_the_crate_and_gives_way_to_one_that_is_read() {
    let workshop = Workshop::new();
    let head = "model: mine\ntitle: Mine\nextends: bert\ncategory: text-encoders\nconfig:\n";
    let fields = "  slope: {no_effect: of training}\n  is_causal: {default: true, doc: Whether.}\n";
    workshop.spec("text-encoders/mine.yaml", &format!("{head}{fields}"));
    workshop.run().unwrap();
    let config = fs::read_to_string(workshop.path("out/text-encoders/mine/src/config.rs")).unwrap();
    assert!(!config.contains("slope") && config.contains("pub is_causal: bool"), "{config}");
}

#[test]
fn a_field_is_without_effect_or_described() {
    let workshop = Workshop::new();
    let text = "model: mine\ntitle: Mine\nextends: bert\ncategory: text-encoders\nconfig: {slope: {no_effect: of training, default: 1}}\n";
    insta::assert_snapshot!(workshop.spec("text-encoders/mine.yaml", text).errors(), @"specs/text-encoders/mine.yaml:5: `config.slope`: has no effect, and is described as a field: leave out one of the two");
}

#[test]
fn a_default_that_is_not_the_references_is_named() {
    let listed = "  slope: {no_effect: of training}\n  inner_config: {width: 4}\n";
    let same = "  hidden_size: 4\n  depth: 1.0\n  act: {type: activation, default: gelu}\n  heads: {type: usize, or: hidden_size / 2}\n  \
         rope_parameters: {type: rope, default: 100.0, partial_rotary_factor: 0.5}\n";
    assert_eq!(unlisted(&format!("{same}{listed}")), "");
    let other = "  hidden_size: {default: 8, aliases: [depth]}\n  act: {type: activation, default: relu}\n  heads: {type: usize, or: hidden_size}\n  \
         rope_parameters: {type: rope, default: 100.0}\n";
    let inner = "  slope: {no_effect: of training}\n  inner_config: {width: 5}\n";
    insta::assert_snapshot!(unlisted(&format!("{other}{inner}")), @r#"
    specs/text-encoders/mine.yaml:5: `config.hidden_size`: is 8 where a file does not say, and 4 in MineConfig
    specs/text-encoders/mine.yaml:5: `config.act`: is "relu" where a file does not say, and "gelu_python" in MineConfig
    specs/text-encoders/mine.yaml:5: `config.heads`: is 8 where a file does not say, and 2 in MineConfig
    specs/text-encoders/mine.yaml:5: `config.rope_parameters`: is {"rope_theta":100.0,"partial_rotary_factor":1.0,"rope_type":"default"} where a file does not say, and {"rope_theta":100.0,"partial_rotary_factor":0.5,"rope_type":"default"} in MineConfig
    specs/text-encoders/mine.yaml:5: `config.inner_config.width`: is 5 where a file does not say, and 4 in InnerConfig
    "#);
}
