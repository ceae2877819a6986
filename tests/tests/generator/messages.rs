//! Every message about specs and templates: file, line, key, what was expected, the nearest name; nothing written.

use weft_tests::Workshop;

/// What the generator says of one spec, a difference to `bert`.
fn spec(rest: &str) -> String {
    let workshop = Workshop::new();
    let text = format!("model: mine\ntitle: Mine\nextends: bert\ncategory: text-encoders\n{rest}");
    unlisted(&workshop.spec("text-encoders/mine.yaml", &text).errors())
}

/// The text without the names of all templates of a folder: there will be more.
fn unlisted(text: &str) -> String {
    let line = |line: &str| {
        let listed = ["in templates/", "`graph.template`: is missing", "`graph.heads."];
        let Some((before, list)) =
            line.split_once("expected one of ").filter(|_| listed.iter().any(|from| line.contains(from)))
        else {
            return line.to_owned();
        };
        let end = [";", ", found"].iter().filter_map(|end| list.find(end)).min().unwrap_or(list.len());
        format!("{before}expected one of […]{}", &list[end..])
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// What the generator says of one template.
fn template(path: &str, text: &str) -> String {
    let workshop = Workshop::with_fixture();
    workshop.template(path, text).errors()
}

#[test]
fn unknown_keys() {
    insta::assert_snapshot!(spec("taskss: []\nhardware:\n  cpu: {raeson: x}\n"), @r"
        specs/text-encoders/mine.yaml:5: `taskss`: unknown key; expected one of model, title, extends, category, architecture, summary, checkpoints, model_types, class_prefix, reference, weights, config, graph, processing, tasks, hardware; did you mean `tasks`?
        specs/text-encoders/mine.yaml:7: `hardware.cpu.raeson`: unknown key; expected one of support, reason, performance, memory, precision, notes, optimizations, cpu_fallback_ops, tolerances; did you mean `reason`?
        ");
}

#[test]
fn wrong_types() {
    insta::assert_snapshot!(spec("tasks: fill-mask\ncheckpoints: [1]\nhardware: {cpu: {support: maybe}}\n"), @r#"
        specs/text-encoders/mine.yaml:5: `tasks`: expected a list, found the text "fill-mask"
        specs/text-encoders/mine.yaml:6: `checkpoints[0]`: expected a text, found the number 1
        specs/text-encoders/mine.yaml:7: `hardware.cpu.support`: expected one of full, limited, no, found the text "maybe"
        "#);
    insta::assert_snapshot!(spec("hardware: {cpu: {support: ful}}\nconfig: {hidden_size: {type: usiz}}\n"), @r#"
        specs/text-encoders/mine.yaml:5: `hardware.cpu.support`: expected one of full, limited, no, found the text "ful"; did you mean `full`?
        specs/text-encoders/mine.yaml:6: `config.hidden_size.type`: expected one of usize, i64, f64, bool, string, [usize], [f64], [string], [bool], [i64], [[i64]], [[usize]], [pair], [[pair]], [[conv_block]], [[numbers]], [depth_bins], [relative_bias], pair, edge, period, tokens, layers, ratio, per_layer, layer_overrides, words, rope, ropes, activation, feed_forward, counts, labels, found the text "usiz"; did you mean `usize`?
        "#);
}

#[test]
fn not_yaml() {
    insta::assert_snapshot!(spec("tasks: [a\n"), @"specs/text-encoders/mine.yaml:6: is not YAML: while parsing a flow sequence, expected ',' or ']'");
    insta::assert_snapshot!(spec("tasks: []\ntasks: []\n"), @"specs/text-encoders/mine.yaml:6: `tasks`: is given twice; the first is in line 5");
}

#[test]
fn missing_keys() {
    let workshop = Workshop::new();
    insta::assert_snapshot!(workshop.spec("text-encoders/mine.yaml", "model: mine\n").errors(), @r"
        specs/text-encoders/mine.yaml:1: `title`: is missing; expected the model's name in prose
        specs/text-encoders/mine.yaml:1: `architecture`: is missing; expected one of the types in architectures.yaml
        ");
    let workshop = Workshop::new();
    let text = "model: mine\ntitle: Mine\narchitecture: encoder-only\n";
    insta::assert_snapshot!(unlisted(&workshop.spec("text-encoders/mine.yaml", text).errors()), @"specs/text-encoders/mine.yaml:1: `graph.template`: is missing; expected one of […]");
}

#[test]
fn missing_parent() {
    let workshop = Workshop::new();
    workshop.spec("text-encoders/mine.yaml", "model: mine\ntitle: Mine\nextends: bret\n");
    insta::assert_snapshot!(workshop.errors(), @"specs/text-encoders/mine.yaml:3: `extends`: there is no spec `bret` to extend; did you mean `bert`?");
}

#[test]
fn cycle() {
    let workshop = Workshop::new();
    for (name, parent) in [("a", "b"), ("b", "c"), ("c", "a")] {
        let text = format!("model: {name}\ntitle: X\nextends: {parent}\n");
        workshop.spec(&format!("vision/{name}.yaml"), &text);
    }
    insta::assert_snapshot!(workshop.errors(), @r"
        specs/vision/a.yaml:3: `extends`: extends itself: b -> c -> a -> b; one of them must stand alone
        specs/vision/b.yaml:3: `extends`: extends itself: c -> a -> b -> c; one of them must stand alone
        specs/vision/c.yaml:3: `extends`: extends itself: a -> b -> c -> a; one of them must stand alone
        ");
}

#[test]
fn two_specs_with_one_name() {
    let workshop = Workshop::with_fixture();
    workshop.spec("vision/minerva.yaml", "model: minerva\ntitle: Minerva\nextends: bert\n");
    workshop.spec("text-encoders/bert.yaml", "model: bert\ntitle: BERT\nextends: bert\n");
    insta::assert_snapshot!(workshop.errors(), @r"
        specs/text-encoders/bert.yaml:1: `model`: `bert` is the name of model_specs/text-encoders/bert.yaml too; rename one of the files, and its `model`
        specs/vision/minerva.yaml:1: `model`: `minerva` is the name of specs/text-encoders/minerva.yaml too; rename one of the files, and its `model`
        ");
}

#[test]
fn name_and_category_are_those_of_the_file() {
    let workshop = Workshop::new();
    workshop.spec("text-encoders/mine.yaml", "model: yours\ntitle: Mine\nextends: bert\ncategory: vision\n");
    workshop.spec("text-encoder/other.yaml", "model: other\ntitle: Other\nextends: bert\n");
    workshop.spec("top.yaml", "model: top\ntitle: Top\nextends: bert\n");
    workshop.spec("vision/Big.yaml", "model: Big\ntitle: Big\nextends: bert\n");
    insta::assert_snapshot!(workshop.errors(), @r"
        specs/text-encoder/other.yaml:1: `category`: `text-encoder` is not a category; expected one of text-encoders, text-decoders, encoder-decoders, vision, audio, vision-language, multimodal, video, speech-text, diffusion, mixture-of-experts, state-space, rag, time-series; did you mean `text-encoders`?
        specs/text-encoders/mine.yaml:1: `model`: is `yours`, but the file is named `mine`; they must be the same
        specs/text-encoders/mine.yaml:4: `category`: is `vision`, but the file is in the folder `text-encoders`; they must be the same
        specs/top.yaml:1: `category`: is missing; expected one of text-encoders, text-decoders, encoder-decoders, vision, audio, vision-language, multimodal, video, speech-text, diffusion, mixture-of-experts, state-space, rag, time-series
        specs/vision/Big.yaml:1: `model`: `Big`, the file's name, must be lower-case letters, digits, `-` and `_`, and start with a letter
        ");
}

#[test]
fn architecture() {
    insta::assert_snapshot!(spec("architecture: encoder-onyl\n"), @"specs/text-encoders/mine.yaml:5: `architecture`: `encoder-onyl` is not a type; expected one of encoder-only, decoder-only, encoder-decoder, vision, vision-encoder-text-decoder, speech, multimodal, diffusion, mixture-of-experts, state-space, rag; did you mean `encoder-only`?");
}

#[test]
fn config() {
    let text = "config:\n  hidden_act: gleu\n  vocab_size: -1\n  layer_norm_eps: tiny\n  \
                hidden_size: {multiple_of: num_attention_head}\n  is_decoder: {min: 1}\n  not-a-name: 1\n";
    insta::assert_snapshot!(spec(text), @r#"
        specs/text-encoders/mine.yaml:6: `config.hidden_act`: `gleu` is not an activation function that is known; expected one of gelu, gelu_python, gelu_new, gelu_fast, gelu_pytorch_tanh, gelu_python_tanh, gelu_accurate, quick_gelu, relu, relu2, relu6, silu, swish, sigmoid, tanh, mish, hardswish, linear; did you mean `gelu`?
        specs/text-encoders/mine.yaml:7: `config.vocab_size`: `-1` does not fit its type, usize
        specs/text-encoders/mine.yaml:8: `config.layer_norm_eps`: `"tiny"` does not fit its type, f64
        specs/text-encoders/mine.yaml:9: `config.hidden_size.multiple_of`: `num_attention_head` is not a field of config; did you mean `num_attention_heads`?
        specs/text-encoders/mine.yaml:10: `config.is_decoder.min`: only numbers have a least value
        specs/text-encoders/mine.yaml:11: `config.not-a-name`: is not a name that a Rust field can have
        "#);
}

#[test]
fn config_without_a_type() {
    insta::assert_snapshot!(spec("config: {empty: {optional: true}, list: [], both: null}\n"), @"specs/text-encoders/mine.yaml:5: `config.both`: expected a map or true or false or a whole number or a number or a text or a list, found nothing");
    insta::assert_snapshot!(spec("config: {empty: {optional: true}, list: []}\n"), @r"
        specs/text-encoders/mine.yaml:5: `config.empty`: has no type: give a default that shows it, or `{type: …, optional: true}`
        specs/text-encoders/mine.yaml:5: `config.list`: has no type: give a default that shows it, or `{type: …, optional: true}`
        ");
}

#[test]
fn graph() {
    insta::assert_snapshot!(spec("graph: {template: encodr}\n"), @"specs/text-encoders/mine.yaml:5: `graph.template`: there is no `encodr` in templates/graph/; expected one of […]; did you mean `encoder`?");
    insta::assert_snapshot!(spec("graph: {atention: multi_head, causal: is_decodr, layers: 3}\n"), @r"
        specs/text-encoders/mine.yaml:5: `graph.atention`: unknown key for templates/graph/encoder.rs.tera; expected one of template, heads, modules, inputs, embeddings, mask, layers, block, attention, mlp, norm, pooler, lm_head; did you mean `attention`?
        specs/text-encoders/mine.yaml:5: `graph.causal`: unknown key for templates/graph/encoder.rs.tera; expected one of template, heads, modules, inputs, embeddings, mask, layers, block, attention, mlp, norm, pooler, lm_head
        specs/text-encoders/mine.yaml:5: `graph.layers`: expected the name of a part or a map with its options, found the number 3
        ");
    insta::assert_snapshot!(spec("graph: {norm: layernorm, attention: {part: multi_hed}, mlp: [dense]}\n"), @r"
        specs/text-encoders/mine.yaml:5: `graph.attention`: there is no `multi_hed` in templates/graph/parts/attention/; expected one of […]; did you mean `multi_head`?
        specs/text-encoders/mine.yaml:5: `graph.mlp`: expected the name of a part or a map with its options, found a list
        specs/text-encoders/mine.yaml:5: `graph.norm`: there is no `layernorm` in templates/graph/parts/norm/; expected one of […]; did you mean `layer_norm`?
        ");
    insta::assert_snapshot!(spec("graph: {attention: {qery: q, key: a..b}, lm_head: {width: heads}}\n"), @r#"
        specs/text-encoders/mine.yaml:5: `graph.attention.qery`: unknown key for templates/graph/parts/attention/multi_head.rs.tera; expected one of part, query, key, value, output; did you mean `query`?
        specs/text-encoders/mine.yaml:5: `graph.attention.key`: expected a name in the checkpoint, such as `output.dense`, found the text "a..b"
        specs/text-encoders/mine.yaml:5: `graph.lm_head.width`: `heads` is not a field of config
        "#);
    insta::assert_snapshot!(spec("graph: {heads: {forMaskedLM: masked_lm, ForX: masked_ml, ForY: {class: Y}}}\n"), @r"
        specs/text-encoders/mine.yaml:5: `graph.heads.forMaskedLM`: must be a Rust name that starts with a capital
        specs/text-encoders/mine.yaml:5: `graph.heads.ForX`: there is no `masked_ml` in templates/graph/parts/head/; expected one of […]; did you mean `masked_lm`?
        specs/text-encoders/mine.yaml:5: `graph.heads.ForY`: expected one of […], found a map
        ");
    insta::assert_snapshot!(spec("graph: {heads: null}\n"), @"specs/text-encoders/mine.yaml:5: `graph.heads`: is missing; expected the reference's classes, without what all their names start with, such as `Model: base`");
}

#[test]
fn fields_that_the_graph_reads() {
    insta::assert_snapshot!(spec("config: {intermediate_size: {remove: true}, id2label: {remove: true}}\n"), @r"
        specs/text-encoders/mine.yaml:1: `config`: templates/graph/encoder.rs.tera reads `c.intermediate_size`, which is not a field of config
        specs/text-encoders/mine.yaml:1: `config`: templates/graph/encoder.rs.tera counts labels, and config has no field of the type labels: add `id2label`
        ");
    insta::assert_snapshot!(spec("config: {layer_norm_eps: {remove: true}, type_vocab_size: {remove: true}}\n"), @r"
        specs/text-encoders/mine.yaml:1: `graph.norm.eps`: `layer_norm_eps` is not a field of config (the default of templates/graph/parts/norm/layer_norm.rs.tera); set it
        specs/text-encoders/mine.yaml:1: `config`: `type_vocab_size` is not a field of config, and the input `token_type_ids` of templates/graph/parts/embeddings/summed.rs.tera must stay below it
        ");
}

#[test]
fn fields_that_are_taken_away() {
    insta::assert_snapshot!(spec("config: {remove: [is_decodr, mlp_bias, [a]], mlp_bias: false}\n"), @r"
        specs/text-encoders/mine.yaml:5: `config.remove`: `mlp_bias` is given and taken away; remove one of the two
        specs/text-encoders/mine.yaml:5: `config.remove`: expected names of inherited fields, found a list
        ");
    insta::assert_snapshot!(spec("config: {remove: is_decoder}\n"), @r#"specs/text-encoders/mine.yaml:5: `config.remove`: expected a list of inherited fields, found the text "is_decoder""#);
    insta::assert_snapshot!(spec("config: {remove: [is_decodr]}\n"), @"specs/text-encoders/mine.yaml:5: `config.is_decodr`: is taken away, and no spec that this one extends has it; leave it out; did you mean `is_decoder`?");
    let workshop = Workshop::new();
    let text = "model: mine\ntitle: Mine\narchitecture: encoder-only\nconfig: {remove: [is_decoder]}\n";
    insta::assert_snapshot!(workshop.spec("text-encoders/mine.yaml", text).errors(), @"specs/text-encoders/mine.yaml:4: `config.remove`: takes inherited fields away, and this spec extends none; name the other spec under `extends`");
}

#[test]
fn tasks_that_a_spec_does_not_name() {
    let tasks = |rest: &str| {
        let workshop = Workshop::new();
        workshop.spec("text-encoders/mine.yaml", &format!("model: mine\ntitle: Mine\nextends: bert\n{rest}"));
        workshop.run().unwrap();
        let file = &workshop.files("out/text-encoders/mine/src")["tasks.rs"];
        let types = file.lines().filter_map(|line| line.strip_prefix("pub type ")?.split(' ').next());
        types.collect::<Vec<_>>().join(", ")
    };
    insta::assert_snapshot!(tasks("graph: {heads: {ForMaskedLM: null, ForQuestionAnswering: null}}\n"), @"FeatureExtraction, SentenceEmbedding, TextClassification, ZeroShotClassification, TokenClassification");
    insta::assert_snapshot!(tasks("tasks: null\n"), @"TextGeneration, FeatureExtraction, SentenceEmbedding, FillMask, TextClassification, ZeroShotClassification, TokenClassification, QuestionAnswering");
}

#[test]
fn tasks() {
    insta::assert_snapshot!(spec("tasks: [fil-mask, fill-mask, fill-mask]\n"), @r"
        specs/text-encoders/mine.yaml:5: `tasks[0]`: there is no `fil-mask` in templates/pipeline/; expected one of […]; did you mean `fill-mask`?
        specs/text-encoders/mine.yaml:5: `tasks[2]`: `fill-mask` is given twice
        ");
    insta::assert_snapshot!(spec("tasks: [fill-mask]\ngraph: {heads: {ForMaskedLM: null}}\n"), @"specs/text-encoders/mine.yaml:5: `tasks[0]`: `fill-mask` needs a head of the kind masked_lm, and `graph.heads` has none");
}

#[test]
fn hardware() {
    insta::assert_snapshot!(spec("hardware:\n  gpu: {}\n  cudaa: {}\n"), @r"
        specs/text-encoders/mine.yaml:6: `hardware.gpu`: unknown key; expected one of cpu, cuda, rocm, metal, openvino, qnn, webgpu, webnn; did you mean `cpu`?
        specs/text-encoders/mine.yaml:7: `hardware.cudaa`: unknown key; expected one of cpu, cuda, rocm, metal, openvino, qnn, webgpu, webnn; did you mean `cuda`?
        ");
    insta::assert_snapshot!(spec("hardware:\n  qnn: {support: no}\n  cuda: {support: limited, reason: \"\"}\n"), @r"
        specs/text-encoders/mine.yaml:6: `hardware.qnn.reason`: support that is not full needs a `reason`: users read it when they ask for this backend
        specs/text-encoders/mine.yaml:7: `hardware.cuda.reason`: support that is not full needs a `reason`: users read it when they ask for this backend
        ");
    let text = "hardware: {cuda: {tolerances: {f32: {relative: 0.1}}}}\n";
    insta::assert_snapshot!(spec(text), @"specs/text-encoders/mine.yaml:5: `hardware.cuda.tolerances.f32.reason`: is missing; expected a text");
}

#[test]
fn inherited_mistakes_are_named_once_and_where_they_are() {
    let workshop = Workshop::new();
    workshop.spec("text-encoders/parent.yaml", "model: parent\ntitle: P\nextends: bert\ntasks: [fil-mask]\n");
    workshop.spec("text-encoders/child.yaml", "model: child\ntitle: C\nextends: parent\n");
    insta::assert_snapshot!(unlisted(&workshop.errors()), @"specs/text-encoders/parent.yaml:4: `tasks[0]`: there is no `fil-mask` in templates/pipeline/; expected one of […]; did you mean `fill-mask`?");
}

#[test]
fn all_mistakes_of_a_run_are_shown_together() {
    let workshop = Workshop::new();
    workshop.spec("text-encoders/a.yaml", "model: a\ntitle: A\nextends: bert\ntasks: [fil-mask]\n");
    workshop.spec("text-encoders/b.yaml", "model: b\ntitle: B\nextends: bert\nmodle: b\n");
    workshop.spec("text-encoders/c.yaml", "model: c\ntitle: C\nextends: bert\n");
    insta::assert_snapshot!(unlisted(&workshop.errors()), @r"
        specs/text-encoders/a.yaml:4: `tasks[0]`: there is no `fil-mask` in templates/pipeline/; expected one of […]; did you mean `fill-mask`?
        specs/text-encoders/b.yaml:4: `modle`: unknown key; expected one of model, title, extends, category, architecture, summary, checkpoints, model_types, class_prefix, reference, weights, config, graph, processing, tasks, hardware; did you mean `model`?
        ");
}

#[test]
fn unknown_choices() {
    let mut workshop = Workshop::with_fixture();
    workshop.adjust = |request| request.models = vec!["minevra".to_owned()];
    insta::assert_snapshot!(workshop.errors(), @"there is no model `minevra`; did you mean `minerva`?");
    workshop.adjust = |request| request.categories = vec!["text-encoder".to_owned()];
    insta::assert_snapshot!(workshop.errors(), @"there is no category `text-encoder`; did you mean `text-encoders`?");
}

#[test]
fn template_syntax() {
    insta::assert_snapshot!(template("crate/src/lib.rs.tera", "//! A crate.\n\n{% if model.tasks %}\n"), @"specs/templates/crate/src/lib.rs.tera:4: Unexpected end of input");
    insta::assert_snapshot!(template("crate/src/lib.rs.tera", "//! A crate.\n{{ model.title | uper }}\n"), @"specs/templates/crate/src/lib.rs.tera:2: Unknown filter `uper`");
    insta::assert_snapshot!(template("graph/parts/mlp/dense.rs.tera", "{{ nrom(w=\"w\") }}\n"), @"specs/templates/graph/parts/mlp/dense.rs.tera:1: Unknown function `nrom`");
}

#[test]
fn template_values() {
    insta::assert_snapshot!(template("crate/src/lib.rs.tera", "//! A crate.\n\n// {{ model.titel }}\n"), @"specs/templates/crate/src/lib.rs.tera:3: Field `titel` is not defined. Available fields: architecture, architecture_title, category, checkpoints, class_prefix, classes, config, example, example_import, fused_weights, graph, graph_kinds, hardware, heads, ignore_unexpected, inputs, key_mapping, legacy_suffixes, library, model_types, module_types, name, package, parents, prefix, processing, recommendation, reference, route, route_types, source, summary, supported, tasks, title");
    let text = "---\nabout: x\n---\nfn mlp() {\n    {{ o.act }}\n}\n";
    insta::assert_snapshot!(template("graph/parts/mlp/dense.rs.tera", text), @"specs/templates/graph/parts/mlp/dense.rs.tera:5: Field `act` is not defined.");
    insta::assert_snapshot!(template("graph/parts/mlp/dense.rs.tera", "{{ mlp() }}\n"), @"specs/templates/graph/parts/mlp/dense.rs.tera:1: is called by the parts that it calls; parts must not go in a circle");
    insta::assert_snapshot!(template("crate/src/lib.rs.tera", "{{ head() }}\n"), @"specs/templates/crate/src/lib.rs.tera:1: calls the slot `head`, which its graph template does not have");
}

#[test]
fn template_front_matter() {
    let path = "graph/parts/mlp/dense.rs.tera";
    insta::assert_snapshot!(template(path, "---\nabot: x\noptions: {up: {type: scop}}\n---\nx\n"), @r#"
        specs/templates/graph/parts/mlp/dense.rs.tera:2: `abot`: unknown key; expected one of about, options, slots, modules, inputs, gives, outputs, takes, graphs, holds, axes, heads, any_class, named, type, pipelines, arguments, features; did you mean `about`?
        specs/templates/graph/parts/mlp/dense.rs.tera:3: `options.up.type`: expected one of bool, int, float, scope, scopes, field, flag, usize, f64, schedule, rope, word, activation, found the text "scop"; did you mean `scope`?
        "#);
    insta::assert_snapshot!(template(path, "---\nabout: x\nx\n"), @"specs/templates/graph/parts/mlp/dense.rs.tera:1: opens front matter with `---` and never closes it; expected a second line `---`");
    insta::assert_snapshot!(template(path, "---\nabout: [\n---\nx\n"), @"specs/templates/graph/parts/mlp/dense.rs.tera:3: is not YAML: while parsing a node, did not find expected node content");
    insta::assert_snapshot!(template("fields.yaml", "hidden_act: {typ: activation}\n"), @"specs/templates/fields.yaml:1: `hidden_act.typ`: unknown key; expected one of type, key, optional, default, or, aliases, overridden_by, fields, closed, one_of, doc, min, multiple_of, of, length, min_length, only, because, partial_rotary_factor, rope_scaling, no_effect, read_by, remove; did you mean `type`?");
}

#[test]
fn parts_that_front_matter_names() {
    let text = "---\nabout: x\ntype: FillMask\nheads: [maskd_lm]\npipelines: [text]\n---\nx\n";
    insta::assert_snapshot!(template("pipeline/fill-mask.rs.tera", text), @"specs/templates/pipeline/fill-mask.rs.tera:4: `heads`: there is no part `maskd_lm` in templates/graph/parts/head/; did you mean `masked_lm`?");
    let text = "---\nabout: x\nholds: [masked_lm, next_sentence]\n---\nx\n";
    insta::assert_snapshot!(template("graph/parts/head/pre_training.rs.tera", text), @"specs/templates/graph/parts/head/pre_training.rs.tera:3: `holds`: there is no part `next_sentence` in templates/graph/parts/head/");
}

#[test]
fn names_that_nothing_stands_for() {
    let text = "---\nabout: x\n---\nfn mlp(g: &mut Graph, c: &Config, w: &Scope, x: &Tensor) -> Result<Tensor> {\n    \
                g.act(x, Activaton::Gelu)\n}\n";
    insta::assert_snapshot!(template("graph/parts/mlp/dense.rs.tera", text), @"specs/templates/graph/parts/mlp/dense.rs.tera:5: `Activaton`: is neither defined in the code nor listed in templates/uses.yaml; write its whole path, or list what it is imported from; did you mean `Activation`?");
    insta::assert_snapshot!(template("crate/src/lib.rs.tera", "//! A crate.\n\npub struct A(\n    Modle,\n);\n"), @"specs/templates/crate/src/lib.rs.tera:4: `Modle`: is neither defined in the code nor listed in templates/uses.yaml; write its whole path, or list what it is imported from; did you mean `Model`?");
    insta::assert_snapshot!(template("uses.yaml", "weft: {dims: x}\n"), @"specs/templates/uses.yaml:1: `weft`: expected a list, found a map");
    insta::assert_snapshot!(template("uses.yaml", "weft: [Graph]\nweft::graph:\n  - Dim\n  - Graph\n"), @"specs/templates/uses.yaml:4: `weft::graph`: `Graph` stands for `weft::Graph` already; a name is one thing");
}

#[test]
fn rust_that_is_none() {
    insta::assert_snapshot!(template("crate/src/lib.rs.tera", "//! A crate.\n\npub fn a() {\n    let x = ;\n}\n"), @"specs/templates/crate/src/lib.rs.tera:1: gives no valid Rust for `minerva`: expected an expression in the line `let x = ;`");
}

#[test]
fn files_in_the_way() {
    let workshop = Workshop::with_fixture();
    workshop.write("out/text-encoders/minerva/src/lib.rs", "//! Mine.\n");
    insta::assert_snapshot!(workshop.errors(), @"out/text-encoders/minerva/src/lib.rs: is in the way: it was not generated, since it does not begin with the generated header; move it, or delete it if it is not needed");
}

#[test]
fn folders_that_would_be_orphaned() {
    let workshop = Workshop::with_fixture();
    workshop.spec("text-encoders/other.yaml", "model: other\ntitle: Other\nextends: bert\n");
    workshop.run().unwrap();
    workshop.write("out/text-encoders/minerva/src/mine.rs", "//! Mine.\n");
    std::fs::remove_file(workshop.path("specs/text-encoders/minerva.yaml")).unwrap();
    insta::assert_snapshot!(workshop.errors(), @"out/text-encoders/minerva: has no spec any more, but holds files that were not generated: text-encoders/minerva/src/mine.rs; move them, or bring the spec back");
}
