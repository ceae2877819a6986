//! Options that are expressions, schedules of layers and rotary position embeddings: what templates get, what is refused.

use weft_tests::Workshop;

const PART: &str = r#"---
about: A layer that says what its options are.
options:
  scale: {type: f64, default: sqrt(hidden_size), doc: A number.}
  width: {type: usize, default: intermediate_size, doc: A count.}
  clip: {type: f64, optional: true, nullable: true, doc: A number or none.}
  biased: {type: flag, default: mlp_bias, doc: A condition.}
  sliding: {type: schedule, of: [sliding_attention, full_attention], with: {layer: usize}, optional: true, doc: Some layers.}
  turned: {type: schedule, with: {layer: usize, sliding: bool}, optional: true, doc: Others.}
  rope: {type: rope, optional: true, doc: Rotary position embeddings.}
---
/// What each option is.
fn mlp(g: &mut Graph, c: &Config, w: &Scope, x: &Tensor) -> Result<Tensor> {
    let (scale, width, biased) = ({{ o.scale }}, {{ o.width }}, {{ o.biased }});
    {%- if o.clip %}
    let clip = {{ o.clip }};
    {%- endif %}
    {%- if o.sliding %}
    let sliding = {{ o.sliding | at(layer="index") }};
    {%- endif %}
    {%- if o.turned %}
    let turned = {{ o.turned | at(layer="index", sliding="sliding") }};
    {%- endif %}
    {%- if o.rope %}
    let rope = {{ o.rope }}.rotary(g);
    {%- endif %}
    all(scale, width, biased)
}
"#;

const FIELDS: &str = "config:\n  clip: {type: f64, optional: true}\n  every: {default: 4, min: 1}\n  use_window: true\n  \
     kinds: {type: \"[string]\", optional: true, of: [sliding_attention, full_attention], length: num_hidden_layers, min_length: every}\n  \
     ropes: {type: ropes}\n";

/// A Llama whose MLPs are the part above with these options.
fn workshop(options: &str) -> Workshop {
    let workshop = Workshop::new();
    let head = "model: mine\ntitle: Mine\nextends: llama\ncategory: text-decoders\n";
    let text = format!("{head}{FIELDS}graph:\n  mlp:\n    part: mine\n{options}");
    workshop.template("graph/parts/mlp/mine.rs.tera", PART).spec("text-decoders/mine.yaml", &text);
    workshop
}

/// The body of the function that the part writes.
fn given(options: &str) -> String {
    let workshop = workshop(options);
    let ran = workshop.run();
    assert!(ran.is_ok(), "{}", workshop.errors());
    let files = workshop.files("out/text-decoders/mine/src");
    let body = files["graph.rs"].lines().skip_while(|line| !line.starts_with("fn mlp("));
    let lines = body.skip(1).take_while(|line| !line.starts_with('}'));
    lines.map(str::trim).collect::<Vec<_>>().join("\n")
}

fn wrong(options: &str) -> String {
    workshop(options).errors()
}

#[test]
fn templates_get_rust() {
    insta::assert_snapshot!(given(""), @r"
        let (scale, width, biased) = ((c.hidden_size as f64).sqrt(), c.intermediate_size, c.mlp_bias);
        all(scale, width, biased)
        ");
    insta::assert_snapshot!(given("    scale: 1 / sqrt(head_dim)\n    width: 2 * intermediate_size\n    clip: clip\n    biased: false\n"), @r"
        let (scale, width, biased) = (1.0 / (c.head_dim() as f64).sqrt(), 2 * c.intermediate_size, false);
        let clip = c.clip;
        all(scale, width, biased)
        ");
    insta::assert_snapshot!(given("    clip: 6 if use_window else null\n    biased: not mlp_bias\n    rope: rope_parameters\n"), @r"
        let (scale, width, biased) = ((c.hidden_size as f64).sqrt(), c.intermediate_size, !c.mlp_bias);
        let clip = if c.use_window { Some(6.0) } else { None };
        let rope = c.rope_parameters.rotary(g);
        all(scale, width, biased)
        ");
}

#[test]
fn schedules_of_layers() {
    insta::assert_snapshot!(given("    sliding: (layer + 1) % every != 0\n    turned: sliding or clip is null\n"), @r"
        let (scale, width, biased) = ((c.hidden_size as f64).sqrt(), c.intermediate_size, c.mlp_bias);
        let sliding = !(index + 1).is_multiple_of(c.every);
        let turned = sliding || c.clip.is_none();
        all(scale, width, biased)
        ");
    insta::assert_snapshot!(given("    sliding: {of: kinds, or: layer % 2 == 0}\n"), @r#"
        let (scale, width, biased) = ((c.hidden_size as f64).sqrt(), c.intermediate_size, c.mlp_bias);
        let sliding = nn::is_layer_kind(&c.kinds, index, "sliding_attention").unwrap_or(index.is_multiple_of(2));
        all(scale, width, biased)
        "#);
    insta::assert_snapshot!(given("    sliding: {of: kinds, kind: full_attention, or: false, when: use_window}\n"), @r#"
        let (scale, width, biased) = ((c.hidden_size as f64).sqrt(), c.intermediate_size, c.mlp_bias);
        let sliding = c.use_window
        && nn::is_layer_kind(&c.kinds, index, "full_attention").unwrap_or(false);
        all(scale, width, biased)
        "#);
}

#[test]
fn rotary_position_embeddings() {
    insta::assert_snapshot!(given("    rope: {theta: 10000}\n"), @r"
        let (scale, width, biased) = ((c.hidden_size as f64).sqrt(), c.intermediate_size, c.mlp_bias);
        let rope = RopeParameters::of(10000.0).rotary(g);
        all(scale, width, biased)
        ");
    insta::assert_snapshot!(given("    rope: {of: ropes, kind: full_attention, theta: clip ?? 1e6}\n"), @r#"
        let (scale, width, biased) = ((c.hidden_size as f64).sqrt(), c.intermediate_size, c.mlp_bias);
        let rope = nn::layer_type_rope(&c.ropes, "full_attention", c.clip.unwrap_or(1e6)).rotary(g);
        all(scale, width, biased)
        "#);
    insta::assert_snapshot!(given("    rope: {of: rope_parameters, theta: clip}\n"), @r"
        let (scale, width, biased) = ((c.hidden_size as f64).sqrt(), c.intermediate_size, c.mlp_bias);
        let rope = nn::rope_with(&c.rope_parameters, c.clip).rotary(g);
        all(scale, width, biased)
        ");
}

#[test]
fn a_schedule_reads_lists_that_are_checked() {
    let workshop = workshop("");
    workshop.run().unwrap();
    let config = &workshop.files("out/text-decoders/mine/src")["config.rs"];
    let calls: Vec<_> = config.lines().filter(|line| line.contains("(\"kinds\"")).map(str::trim).collect();
    insta::assert_snapshot!(calls.join("\n"), @r#"
        weft::config::words("kinds", self.kinds.as_deref(), &["sliding_attention", "full_attention"])?;
        weft::config::length("kinds", self.kinds.as_deref(), "num_hidden_layers", self.num_hidden_layers)?;
        weft::config::min_length("kinds", self.kinds.as_deref(), "every", self.every)?;
        "#);
}

#[test]
fn names_and_types() {
    insta::assert_snapshot!(wrong("    scale: sqrt(hiden_size)\n    width: hidden_size * 1.5\n    biased: use_windows\n"), @r"
        specs/text-decoders/mine.yaml:14: `graph.mlp.scale`: `hiden_size` is not a field of config; did you mean `hidden_size`?
        specs/text-decoders/mine.yaml:15: `graph.mlp.width`: `hidden_size * 1.5` is a number; expected a count
        specs/text-decoders/mine.yaml:16: `graph.mlp.biased`: `use_windows` is not a field of config; did you mean `use_window`?
        ");
    insta::assert_snapshot!(wrong("    width: clip\n    biased: 1\n    scale: [1]\n    sliding: layers == 0\n"), @r"
        specs/text-decoders/mine.yaml:14: `graph.mlp.width`: `clip` is a number; expected a count
        specs/text-decoders/mine.yaml:15: `graph.mlp.biased`: `1` is a count; expected true or false
        specs/text-decoders/mine.yaml:16: `graph.mlp.scale`: expected a number or an expression over fields of config, found a list
        specs/text-decoders/mine.yaml:17: `graph.mlp.sliding`: `layers` is not a field of config; did you mean `layer`?
        ");
    insta::assert_snapshot!(wrong("    biased: layer == 0\n    turned: sliding\n"), @r"
        specs/text-decoders/mine.yaml:14: `graph.mlp.biased`: `layer` is not a field of config
        specs/text-decoders/mine.yaml:15: `graph.mlp.turned`: speaks of `sliding`, which is not set; set it beside
        ");
}

#[test]
fn rust_is_refused() {
    insta::assert_snapshot!(wrong("    scale: (c.hidden_size as f64).sqrt()\n    width: c.intermediate_size\n    biased: \"!c.mlp_bias\"\n    clip: \"Some(1.0)\"\n"), @r"
        specs/text-decoders/mine.yaml:14: `graph.mlp.scale`: expected `)`, found `as` in `(c.hidden_size as f64).sqrt()`
        specs/text-decoders/mine.yaml:15: `graph.mlp.width`: `c.intermediate_size` is not a field of config; did you mean `intermediate_size`?
        specs/text-decoders/mine.yaml:16: `graph.mlp.biased`: `!` is not a sign of expressions; `not` turns a condition round
        specs/text-decoders/mine.yaml:17: `graph.mlp.clip`: `Some` is not a function; expected one of min, max, sqrt
        ");
}

#[test]
fn maps() {
    insta::assert_snapshot!(wrong("    sliding: {of: kind, or: true}\n    rope: {of: ropes, theta: 1}\n"), @r"
        specs/text-decoders/mine.yaml:14: `graph.mlp.sliding.of`: `kind` is not a field of config; did you mean `kinds`?
        specs/text-decoders/mine.yaml:15: `graph.mlp.rope.kind`: is missing; expected the kind of the layers that it is for
        ");
    insta::assert_snapshot!(wrong("    sliding: {of: kinds, kind: sliding, or: true}\n    rope: {of: rope_parameters, kind: full_attention}\n"), @r#"
        specs/text-decoders/mine.yaml:14: `graph.mlp.sliding`: `kinds[layer]` is never "sliding"; it is one of sliding_attention, full_attention
        specs/text-decoders/mine.yaml:15: `graph.mlp.rope.kind`: `rope_parameters` is the same for all kinds of layers
        "#);
    insta::assert_snapshot!(wrong("    sliding: {of: kinds}\n    rope: ropes\n    turned: {of: kinds, or: true}\n"), @r"
        specs/text-decoders/mine.yaml:14: `graph.mlp.sliding.or`: is missing; expected what holds where that field says nothing
        specs/text-decoders/mine.yaml:15: `graph.mlp.rope`: `ropes` has some for each kind of layers; say which: `{of: ropes, kind: …}`
        specs/text-decoders/mine.yaml:16: `graph.mlp.turned.kind`: is missing; expected the kind of the layers for which it holds
        ");
    insta::assert_snapshot!(wrong("    sliding: {of: kinds, ro: true}\n    rope: hidden_size\n"), @r"
        specs/text-decoders/mine.yaml:14: `graph.mlp.sliding.ro`: unknown key; expected one of of, kind, or, when; did you mean `or`?
        specs/text-decoders/mine.yaml:15: `graph.mlp.rope`: `hidden_size` is a count; expected rotary position embeddings
        ");
    insta::assert_snapshot!(wrong("    sliding: {of: kinds, or: every}\n    rope: {theta: use_window}\n"), @r"
        specs/text-decoders/mine.yaml:14: `graph.mlp.sliding.or`: `every` is a count; expected true or false
        specs/text-decoders/mine.yaml:15: `graph.mlp.rope.theta`: `use_window` is true or false; expected a number
        ");
}

#[test]
fn what_stands_for_a_field_is_an_expression() {
    let spec = |fields: &str| {
        let head = "model: mine\ntitle: Mine\nextends: llama\ncategory: text-decoders\n";
        Workshop::new().spec("text-decoders/mine.yaml", &format!("{head}config:\n{fields}")).errors()
    };
    insta::assert_snapshot!(spec("  a: {type: usize, or: hidden_sise}\n  b: {type: usize, or: hidden_size / 2.5}\n  c: {type: usize, or: self.hidden_size}\n"), @r"
        specs/text-decoders/mine.yaml:6: `config.a.or`: `hidden_sise` is not a field of config; did you mean `hidden_size`?
        specs/text-decoders/mine.yaml:7: `config.b.or`: `hidden_size / 2.5` is a number; expected a count
        specs/text-decoders/mine.yaml:8: `config.c.or`: `self.hidden_size` is not a field of config
        ");
    insta::assert_snapshot!(spec("  a: {type: usize, or: b + 1}\n  b: {type: usize, or: a}\n"), @r"
        specs/text-decoders/mine.yaml:6: `config.a.or`: `a` stands for itself where nothing is said
        specs/text-decoders/mine.yaml:7: `config.b.or`: `b` stands for itself where nothing is said
        ");
    insta::assert_snapshot!(spec("  a: {type: \"[string]\", default: [], length: num_layers}\n  b: {default: 1, of: [x]}\n  c: {default: 1, length: b}\n"), @r"
        specs/text-decoders/mine.yaml:6: `config.a.length`: `num_layers` is not a field of config; did you mean `num_labels`?
        specs/text-decoders/mine.yaml:7: `config.b.of`: only texts and lists of texts have words
        specs/text-decoders/mine.yaml:8: `config.c.length`: only lists have a length
        ");
}

#[test]
fn a_template_says_what_variables_are() {
    let part = PART.replace(" | at(layer=\"index\")", "");
    let workshop = workshop("    sliding: layer == 0\n");
    workshop.template("graph/parts/mlp/mine.rs.tera", &part);
    insta::assert_snapshot!(workshop.errors(), @r#"templates/graph/decoder.rs.tera:1: or one of its parts puts an expression over `layer` and does not say what that is; expected `| at(layer="…")` behind the option"#);
}
