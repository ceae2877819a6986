//! Modules that are one of several models, by the `model_type` of their configuration.

use weft_tests::Workshop;

const SPEC: &str = include_str!("../../fixtures/choice.yaml");

fn workshop(spec: &str) -> Workshop {
    let workshop = Workshop::new();
    workshop
        .template("graph/choice.rs.tera", include_str!("../../fixtures/choice.rs.tera"))
        .template("graph/parts/head/choice.rs.tera", include_str!("../../fixtures/choice_head.rs.tera"))
        .spec("multimodal/choice.yaml", spec);
    workshop
}

#[test]
fn the_configuration_chooses_the_module() {
    let workshop = workshop(SPEC);
    workshop.run().unwrap();
    let files = workshop.files("out/multimodal/choice/src");
    let graphs: Vec<_> = files.keys().filter(|path| path.starts_with("graph")).collect();
    assert_eq!(graphs, ["graph.rs", "graph/text.rs", "graph/text/bert.rs", "graph/text/electra.rs"]);
    insta::assert_snapshot!("choice_graph_text_rs", files["graph/text.rs"]);
    let config = &files["config.rs"];
    let start = config.rfind("/// `text_config` of `config.json`: one of").unwrap();
    insta::assert_snapshot!(
        "choice_config_rs",
        &config[start..config.find("pub struct BertConfig").unwrap()]
    );
    assert!(config.contains("unwrap_or_else(|| self.text_config.hidden_size())"), "{config}");
    // What is said of one is that one's; the type of the inputs is that of both.
    assert!(files["graph/text/electra.rs"].contains("[\"q\", "));
    assert!(files["graph/text/bert.rs"].contains("\"self.query\""));
    assert!(files["graph/text/bert.rs"].contains("use super::Inputs;"));
    assert!(!files["graph/text/bert.rs"].contains("struct Inputs"));
    assert!(files["model.rs"].contains("MODULE_TYPES"));
    assert!(files["model.rs"].contains(r#"("text_config", &["bert", "electra"])"#), "{}", files["model.rs"]);
}

#[test]
fn descendants_choose_one_or_others() {
    let workshop = workshop(SPEC);
    let child = |name: &str, text: &str| {
        format!(
            "title: {name}\nextends: choice\ncategory: multimodal\nconfig: {{text_config: {{hidden_size: 64}}}}\n\
             graph: {{modules: {{text: {text}}}}}\n"
        )
    };
    workshop.spec("multimodal/single.yaml", &child("Single", "{model: bert}"));
    workshop.spec("multimodal/others.yaml", &child("Others", "{one_of: [electra, bert]}"));
    workshop.run().unwrap();
    let files = workshop.files("out/multimodal");
    assert!(files["single/src/config.rs"].contains("pub struct TextConfig"));
    assert!(!files.contains_key("single/src/graph/text/bert.rs"));
    let others = &files["others/src/config.rs"];
    assert!(others.contains("Self::Electra(ElectraConfig {"), "{others}");
    assert!(others.contains("hidden_size: 64,"), "{others}");
}

/// What the generator says of the fixture with something in it replaced.
fn wrong(old: &str, new: &str) -> String {
    assert!(SPEC.contains(old), "{old} is not in the fixture");
    workshop(&SPEC.replace(old, new)).errors()
}

#[test]
fn models_that_cannot_be_chosen() {
    insta::assert_snapshot!(wrong("[bert, {", "[bret, {"), @"specs/multimodal/choice.yaml:13: `graph.modules.text.one_of[0]`: there is no spec `bret` to take a module from; did you mean `bert`?");
    insta::assert_snapshot!(wrong("[bert, {model: electra,", "[bert, {"), @"specs/multimodal/choice.yaml:13: `graph.modules.text.one_of[1]`: expected the name of a spec, or a map with `model` and what differs, found a map");
    insta::assert_snapshot!(wrong("[bert, {model: electra, attention: {query: q}}]", "bert"), @r#"specs/multimodal/choice.yaml:13: `graph.modules.text.one_of`: expected a list of specs, such as `[llama, qwen2]`, found the text "bert""#);
    insta::assert_snapshot!(wrong("[bert, {model: electra,", "[bert, {model: bert,"), @"specs/multimodal/choice.yaml:13: `graph.modules.text.one_of[1]`: `bert` is listed twice");
    insta::assert_snapshot!(wrong("{model: electra,", "{model: electra, model_types: [electra, bert],"), @"specs/multimodal/choice.yaml:13: `graph.modules.text.one_of[1]`: `electra` has the `model_type` `bert`, and so has `bert`; leave one out, or say other `model_types` of it");
    insta::assert_snapshot!(wrong("one_of: [", "model: bert, one_of: ["), @"specs/multimodal/choice.yaml:13: `graph.modules.text.model`: is given beside `one_of`; a module is one model or one of several: leave one of the two out");
    insta::assert_snapshot!(wrong("one_of: [", "pooler: cls_dense, one_of: ["), @"specs/multimodal/choice.yaml:13: `graph.modules.text.pooler`: is given beside `one_of`; say it of the models it is for: `{model: llama, pooler: …}`");
    insta::assert_snapshot!(wrong("{config: text_config, one_of", "{one_of"), @"specs/multimodal/choice.yaml:13: `graph.modules.text.config`: is missing; expected the field of config that holds `bert`'s configuration, or `.` for config itself");
    insta::assert_snapshot!(wrong("config: text_config, one_of", "config: ., one_of"), @"specs/multimodal/choice.yaml:13: `graph.modules.text.config`: one of several models needs a field of its own, whose `model_type` says which");
    insta::assert_snapshot!(wrong("attention: {query: q}", "atention: {query: q}"), @"specs/multimodal/choice.yaml:13: `graph.modules.text.one_of.electra.atention`: unknown key for templates/graph/encoder.rs.tera; expected one of template, config, model, model_types, modules, inputs, embeddings, mask, layers, block, attention, mlp, norm, pooler, lm_head; did you mean `attention`?");
    insta::assert_snapshot!(wrong("{vocab_size: 99}", "{vocab_sise: 99}"), @"specs/multimodal/choice.yaml:9: `config.text_config.vocab_sise`: expected the value of a field of `bert`, the first of `one_of`; did you mean `vocab_size`?");
    insta::assert_snapshot!(wrong("{vocab_size: 99}", "{vocab_size: many}"), @r#"specs/multimodal/choice.yaml:9: `config.text_config.vocab_size`: `"many"` does not fit its type, usize"#);
}

#[test]
fn models_that_differ_in_what_is_called() {
    insta::assert_snapshot!(wrong("{model: electra, attention: {query: q}}", "distilbert"), @"specs/multimodal/choice.yaml:1: `graph.modules.text.one_of`: `distilbert` cannot stand here: it has another `Inputs` than `bert`, and others see it");
    insta::assert_snapshot!(wrong("{model: electra, attention: {query: q}}", "llama"), @"specs/multimodal/choice.yaml:1: `graph.modules.text.one_of`: `llama` cannot stand here: it has another `Inputs` than `bert`, and others see it");
    insta::assert_snapshot!(wrong("text_config.hidden_size}", "text_config.embedding_size}"), @"specs/multimodal/choice.yaml:8: `config.projection_dim.or`: `text_config.embedding_size` is not a field of config; did you mean `text_config.hidden_size`?");
    let template = include_str!("../../fixtures/choice.rs.tera")
        .replace("text_config.layer_norm_eps", "text_config.embedding_size");
    insta::assert_snapshot!(workshop(SPEC).template("graph/choice.rs.tera", &template).errors(), @"specs/multimodal/choice.yaml:1: `config.text_config`: specs/templates/graph/choice.rs.tera reads `c.text_config.embedding_size`, which is not a field of config.text_config where that is `bert`");
}
