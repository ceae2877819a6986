//! Models of several parts: configurations within configurations, modules, inputs and outputs of other types.

use weft_tests::Workshop;

pub const SPEC: &str = include_str!("../../fixtures/duo.yaml");

pub fn workshop(spec: &str) -> Workshop {
    let workshop = Workshop::new();
    workshop
        .template("graph/duo.rs.tera", include_str!("../../fixtures/duo.rs.tera"))
        .template("graph/parts/head/duo.rs.tera", include_str!("../../fixtures/duo_head.rs.tera"))
        .spec("multimodal/duo.yaml", spec);
    workshop
}

#[test]
fn a_model_of_modules() {
    let workshop = workshop(SPEC);
    workshop.run().unwrap();
    let files = workshop.files("out/multimodal/duo/src");
    for path in ["config.rs", "graph.rs", "graph/text.rs", "model.rs", "lib.rs"] {
        insta::assert_snapshot!(format!("duo_{}", path.replace(['/', '.'], "_")), files[path]);
    }
}

#[test]
fn descendants_say_what_differs() {
    let workshop = workshop(SPEC);
    let child = "model: solo\ntitle: Solo\nextends: duo\ncategory: multimodal\nconfig:\n  text_config: {hidden_size: 64, \
                 head_dim: 16, type_vocab_size: {remove: true}}\n  head_config: {fields: {depth: 5}}\n  kv_heads: 2\ngraph: {modules: \
                 {text: {embeddings: {token_type_embeddings: null}, attention: {query: q}}}}\n";
    let head = include_str!("../../fixtures/duo_head.rs.tera").replace(" token_type_ids,", "");
    workshop.template("graph/parts/head/duo.rs.tera", &head).spec("multimodal/solo.yaml", child);
    workshop.run().unwrap();
    let files = workshop.files("out/multimodal");
    let changed = |file: &str| {
        let diff = |a: &str, b: &str| {
            let lines =
                files[b].lines().skip(4).map(|line| line.replace("Solo", "Duo").replace("solo", "duo"));
            lines.filter(|line| !files[a].contains(line.as_str())).collect::<Vec<_>>().join("\n")
        };
        diff(&format!("duo/src/{file}"), &format!("solo/src/{file}"))
    };
    insta::assert_snapshot!(changed("config.rs"), @r"
        Some(2)
        64
        Some(16)
        Self { depth: 5 }
        ");
    insta::assert_snapshot!(changed("graph/text.rs"), @r#"
        /// The sum of token and position embeddings, normalised (`BertEmbeddings`).
                projections: ["q", "self.key", "self.value", "output.dense"],
        "#);
}

/// What the generator says of the fixture with something in it replaced.
fn wrong(old: &str, new: &str) -> String {
    assert!(SPEC.contains(old), "{old} is not in the fixture");
    workshop(&SPEC.replace(old, new)).errors()
}

#[test]
fn modules_that_do_not_fit() {
    insta::assert_snapshot!(wrong("    text: {", "    txt: {"), @"specs/multimodal/duo.yaml:22: `graph.modules.txt`: unknown module for specs/templates/graph/duo.rs.tera; expected one of text, code; did you mean `text`?");
    insta::assert_snapshot!(wrong("config: text_config, model: bert", "config: text_confg, model: bert"), @"specs/multimodal/duo.yaml:22: `graph.modules.text.config`: `text_confg` is not a field of config; add it, with what differs from `bert`'s; did you mean `text_config`?");
    insta::assert_snapshot!(wrong("config: text_config, model: bert", "config: projection_dim"), @r"
        specs/multimodal/duo.yaml:14: `config.text_config.head_dim.or`: `num_attention_heads` is not a field of config
        specs/multimodal/duo.yaml:22: `graph.modules.text.config`: `projection_dim` is a plain field of config; expected one that holds a configuration
        ");
    insta::assert_snapshot!(wrong("config: text_config, model: bert", "model: bert"), @"specs/multimodal/duo.yaml:22: `graph.modules.text.config`: is missing; expected the field of config that holds `bert`'s configuration, or `.` for config itself");
    insta::assert_snapshot!(wrong("model: bert", "model: bret"), @"specs/multimodal/duo.yaml:22: `graph.modules.text.model`: there is no spec `bret` to take a module from; did you mean `bert`?");
    insta::assert_snapshot!(wrong("model: bert", "model: duo"), @"specs/multimodal/duo.yaml:22: `graph.modules.text.model`: `duo` has this module itself; a model must not be a part of itself");
    insta::assert_snapshot!(wrong("model: bert", "model: [bert]"), @"specs/multimodal/duo.yaml:22: `graph.modules.text.model`: expected the name of a spec, found a list");
    insta::assert_snapshot!(wrong("pooler: cls_dense", "heads: {Model: base}, poler: x"), @r"
        specs/multimodal/duo.yaml:22: `graph.modules.text.heads`: unknown key for templates/graph/encoder.rs.tera; expected one of template, config, model, model_types, modules, inputs, embeddings, mask, layers, block, attention, mlp, norm, pooler, lm_head
        specs/multimodal/duo.yaml:22: `graph.modules.text.poler`: unknown key for templates/graph/encoder.rs.tera; expected one of template, config, model, model_types, modules, inputs, embeddings, mask, layers, block, attention, mlp, norm, pooler, lm_head; did you mean `pooler`?
        ");
    insta::assert_snapshot!(wrong("{config: text_config, model: bert, pooler: cls_dense}", "bert"), @r#"
        specs/multimodal/duo.yaml:14: `config.text_config.head_dim.or`: `num_attention_heads` is not a field of config
        specs/multimodal/duo.yaml:22: `graph.modules.text`: expected a map with the module's template and its options, found the text "bert"
        "#);
    insta::assert_snapshot!(wrong("pooler: cls_dense}", "pooler: cls_dense}\n    code: {template: encoder, config: text_config}"), @"specs/templates/graph/duo.rs.tera:5: `modules.code`: declares the module `code` and calls nothing of it in `duo`");
}

#[test]
fn null_takes_away_what_the_template_does_not_have() {
    let with = |more: &str| SPEC.replace("pooler: cls_dense}", &format!("pooler: cls_dense, {more}}}"));
    workshop(&with("layer_stack: null")).run().unwrap();
    let wrong = workshop(&with("layer_stack: sequential")).errors();
    assert!(
        wrong.contains("`graph.modules.text.layer_stack`: unknown key for templates/graph/encoder.rs.tera"),
        "{wrong}"
    );
}

#[test]
fn fields_that_do_not_fit() {
    insta::assert_snapshot!(wrong("or: hidden_size / num_attention_heads", "or: hiden_size / 2"), @"specs/multimodal/duo.yaml:14: `config.text_config.head_dim.or`: `hiden_size` is not a field of config; did you mean `hidden_size`?");
    insta::assert_snapshot!(wrong("or: hidden_size / num_attention_heads", "or: hidden_size minus 2"), @"specs/multimodal/duo.yaml:14: `config.text_config.head_dim.or`: `minus` stands behind what is already an expression, `hidden_size`");
    insta::assert_snapshot!(wrong("or: hidden_size / num_attention_heads", "or: layer_norm_eps"), @"specs/multimodal/duo.yaml:14: `config.text_config.head_dim.or`: `layer_norm_eps` is a number; expected a count");
    insta::assert_snapshot!(wrong("{type: usize, or: num_attention_heads,", "{type: string, or: num_attention_heads,"), @"specs/multimodal/duo.yaml:11: `config.kv_heads.or`: is for numbers, truth values and activation functions");
    insta::assert_snapshot!(wrong("default: 224", "default: [1, 2, 3]"), @"specs/multimodal/duo.yaml:16: `config.text_config.image_size`: `[1,2,3]` is not a height and a width");
    insta::assert_snapshot!(wrong("rope_parameters: 500000.0", "rope_parameters: fast"), @r#"specs/multimodal/duo.yaml:15: `config.text_config.rope_parameters`: `"fast"` does not fit its type, f64"#);
    insta::assert_snapshot!(wrong("    hidden_size: 48\n", "    hidden_size: 48\n    vocab_size: {min: x}\n    two words: 1\n"), @r#"specs/multimodal/duo.yaml:14: `config.text_config.vocab_size.min`: expected a whole number, found the text "x""#);
    insta::assert_snapshot!(wrong("    hidden_size: 48\n", "    hidden_size: 48\n    vocab_size: {remove: true}\n"), @"specs/multimodal/duo.yaml:21: `config.text_config`: `vocab_size` is not a field of config, and the input `input_ids` of templates/graph/parts/inputs/text.rs.tera must stay below it");
}

#[test]
fn templates_that_do_not_fit() {
    let wrong = |old: &str, new: &str| {
        let template = include_str!("../../fixtures/duo.rs.tera");
        assert!(template.contains(old), "{old} is not in the template");
        workshop(SPEC).template("graph/duo.rs.tera", &template.replace(old, new)).errors()
    };
    insta::assert_snapshot!(wrong("c.text_config.hidden_size", "c.text_config.hiden_size"), @"specs/multimodal/duo.yaml:1: `config.text_config`: specs/templates/graph/duo.rs.tera reads `c.text_config.hiden_size`, which is not a field of config.text_config; did you mean `hidden_size`?");
    insta::assert_snapshot!(wrong("c.text_config.head_dim", "c.txt_config.head_dim"), @"specs/multimodal/duo.yaml:1: `config`: specs/templates/graph/duo.rs.tera reads `c.txt_config`, which is not a field of config; did you mean `text_config`?");
    insta::assert_snapshot!(wrong("optional: true}", "template: encoder, config: text_config}"), @"specs/templates/graph/duo.rs.tera:5: `modules.code`: declares the module `code` and calls nothing of it in `duo`");
    insta::assert_snapshot!(wrong("  - {name: pixel_values", "  - {name: pixels, below: sizes"), @"specs/multimodal/duo.yaml:20: `config`: `sizes` is not a field of config, and the input `pixels` of specs/templates/graph/duo.rs.tera must stay below it");
    let head = include_str!("../../fixtures/duo_head.rs.tera").replace("[input_ids", "[inputs");
    insta::assert_snapshot!(workshop(SPEC).template("graph/parts/head/duo.rs.tera", &head).errors(), @"specs/templates/graph/parts/head/duo.rs.tera:3: `takes`: `inputs` is an input of no template of `graph/duo.rs`");
}
