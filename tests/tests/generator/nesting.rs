//! Modules that are made of modules: their files, their configurations, what is said of them from outside.

use weft_tests::Workshop;

pub const SPEC: &str = include_str!("../../fixtures/trio.yaml");

pub fn workshop(spec: &str) -> Workshop {
    let workshop = crate::modules::workshop(crate::modules::SPEC);
    workshop
        .template("graph/trio.rs.tera", include_str!("../../fixtures/trio.rs.tera"))
        .template("graph/parts/head/trio.rs.tera", include_str!("../../fixtures/trio_head.rs.tera"))
        .spec("multimodal/trio.yaml", spec);
    workshop
}

#[test]
fn each_module_has_a_file_within_its_parents_folder() {
    let workshop = workshop(SPEC);
    workshop.run().unwrap();
    let files = workshop.files("out/multimodal/trio/src");
    let graphs: Vec<_> = files.keys().filter(|path| path.starts_with("graph")).collect();
    assert_eq!(graphs, ["graph.rs", "graph/pair.rs", "graph/pair/text.rs", "graph/words.rs"]);
    for path in ["config.rs", "graph.rs", "graph/pair.rs", "graph/pair/text.rs"] {
        insta::assert_snapshot!(format!("trio_{}", path.replace(['/', '.'], "_")), files[path]);
    }
    // `projected` and the head's function are the pair's own, and nobody calls them here.
    assert!(!files["graph/pair.rs"].contains("fn projected"));
    // The same module taken alone has other options, and is seen by its parent alone.
    assert!(files["graph/words.rs"].contains("pub(super) fn encoder"));
    assert!(files["graph/words.rs"].contains("\"self.query\""));
}

#[test]
fn inputs_come_up_through_every_module() {
    let workshop = workshop(SPEC);
    workshop.run().unwrap();
    let heads = &workshop.files("out/multimodal/trio/src")["heads.rs"];
    for input in ["input_ids", "attention_mask", "token_type_ids", "pixel_values"] {
        assert!(heads.contains(&format!("pub {input}")), "{input} is no input of {heads}");
    }
}

#[test]
fn descendants_reach_into_modules_of_modules() {
    let workshop = workshop(SPEC);
    let child = "model: solo\ntitle: Solo\nextends: trio\ncategory: multimodal\nconfig:\n  duo_config: {text_config: {hidden_size: \
                 64, type_vocab_size: {remove: true}}}\ngraph: {modules: {pair: {modules: {text: {embeddings: {token_type_embeddings: null}}}}}}\n";
    workshop.spec("multimodal/solo.yaml", child);
    workshop.run().unwrap();
    let files = workshop.files("out/multimodal");
    assert!(files["trio/src/graph/pair/text.rs"].contains("token_type_ids"));
    assert!(!files["solo/src/graph/pair/text.rs"].contains("token_type_ids"));
    // The words are duo's text still, with types.
    assert_eq!(body(&files["solo/src/graph/words.rs"]), body(&files["trio/src/graph/words.rs"]));
}

#[test]
fn another_model_may_stand_where_a_module_of_a_module_does() {
    let workshop = workshop(&SPEC.replace("{text: {attention: {query: q}}}", "{text: {model: roberta}}"));
    workshop.run().unwrap();
    let text = &workshop.files("out/multimodal/trio/src")["graph/pair/text.rs"];
    assert!(text.contains("Trio's `pair::text`, as in `roberta`."), "{text}");
}

fn body(text: &str) -> String {
    text.lines()
        .skip_while(|line| !line.starts_with("//!"))
        .collect::<Vec<_>>()
        .join("\n")
        .replace("Solo", "Trio")
}

/// What the generator says of the fixture with something in it replaced.
fn wrong(old: &str, new: &str) -> String {
    assert!(SPEC.contains(old), "{old} is not in the fixture");
    workshop(&SPEC.replace(old, new)).errors()
}

#[test]
fn modules_of_modules_that_do_not_fit() {
    insta::assert_snapshot!(wrong("modules: {text: {attention", "modules: {txt: {attention"), @"specs/multimodal/trio.yaml:15: `graph.modules.pair.modules.txt`: unknown module for specs/templates/graph/duo.rs.tera; expected one of text, code; did you mean `text`?");
    insta::assert_snapshot!(wrong("{attention: {query: q}}", "{atention: {query: q}}"), @"specs/multimodal/trio.yaml:15: `graph.modules.pair.modules.text.atention`: unknown key for templates/graph/encoder.rs.tera; expected one of template, config, model, model_types, modules, inputs, embeddings, mask, layers, block, attention, mlp, norm, pooler, lm_head; did you mean `attention`?");
    insta::assert_snapshot!(wrong("{attention: {query: q}}", "{model: bret}"), @"specs/multimodal/trio.yaml:15: `graph.modules.pair.modules.text.model`: there is no spec `bret` to take a module from; did you mean `bert`?");
    insta::assert_snapshot!(wrong("{attention: {query: q}}", "{config: txt_config}"), @"specs/multimodal/trio.yaml:15: `graph.modules.pair.modules.text.config`: `txt_config` is not a field of config.duo_config; add it, with what differs from `bert`'s; did you mean `text_config`?");
    insta::assert_snapshot!(wrong("{attention: {query: q}}", "{model: duo}"), @"specs/multimodal/trio.yaml:15: `graph.modules.pair.modules.text.model`: `duo` has this module itself; a model must not be a part of itself");
    insta::assert_snapshot!(wrong("model: duo.text", "model: duo.txt"), @"specs/multimodal/trio.yaml:16: `graph.modules.words.model`: `duo` has no module `txt`; expected one of text; did you mean `text`?");
    insta::assert_snapshot!(wrong("model: duo.text", "model: duo.text.inner"), @"specs/multimodal/trio.yaml:16: `graph.modules.words.model`: `duo.text` has no module `inner`; it has none");
    insta::assert_snapshot!(wrong("model: duo.text", "model: duet.text"), @"specs/multimodal/trio.yaml:16: `graph.modules.words.model`: there is no spec `duet` to take a module from; did you mean `deit`?");
    insta::assert_snapshot!(wrong("model: duo.text", "model: trio.pair"), @"specs/multimodal/trio.yaml:16: `graph.modules.words.model`: `trio` has this module itself; a model must not be a part of itself");
}

#[test]
fn modules_of_modules_that_nobody_calls() {
    let template = include_str!("../../fixtures/duo.rs.tera")
        .replace("let hidden = text::encoder(", "let hidden = encoder(");
    let template =
        template.replace("inputs: &text::Inputs", "inputs: &()").replace("-> text::Inputs", "-> ()");
    let template = template.replace("    text::Inputs::new(g, &c", "    inputs(g, &c");
    insta::assert_snapshot!(workshop(SPEC).template("graph/duo.rs.tera", &template).errors(), @"specs/templates/graph/duo.rs.tera:5: `modules.text`: declares the module `text` and calls nothing of it in `trio`");
}
