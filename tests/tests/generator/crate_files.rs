//! All files of one crate.

use weft_tests::Workshop;

#[test]
fn all_files_of_a_crate() {
    let workshop = Workshop::with_fixture();
    workshop.run().unwrap();
    let root = weft_tests::root().display().to_string();
    for (path, text) in workshop.files("out/text-encoders/minerva") {
        insta::assert_snapshot!(path.replace(['/', '.'], "_"), text.replace(&root, "[repository]"));
    }
}

#[test]
fn every_way_to_write_a_field() {
    let workshop = Workshop::with_fixture();
    workshop.spec(
        "text-encoders/fields.yaml",
        "model: fields\ntitle: Fields\nextends: bert\ncategory: text-encoders\nconfig:\n  required: {type: usize}\n  \
         sizes: [1, 2]\n  rates: [0.5]\n  names: [a, b]\n  offset: -3\n  type: x\n  optional: {type: f64, optional: true, \
         default: 2, min: 1}\n  mode: {default: absolute, only: absolute, because: nothing else is published}\n",
    );
    workshop.run().unwrap();
    insta::assert_snapshot!(workshop.files("out/text-encoders/fields/src")["config.rs"]);
}

#[test]
fn templates_of_ones_own_override_and_add() {
    let workshop = Workshop::with_fixture();
    workshop
        .template(
            "graph/parts/norm/rms_norm.rs.tera",
            "---\nabout: x\n---\ng.rms_norm(&{{ w }}, &{{ x }}, 1e-6)\n",
        )
        .template("crate/NOTES.md.tera", "Notes on {{ model.title }}.\n")
        .spec(
            "text-encoders/own.yaml",
            "model: own\ntitle: Own\nextends: bert\ncategory: text-encoders\ngraph: {norm: rms_norm}\n",
        );
    workshop.run().unwrap();
    let files = workshop.files("out/text-encoders/own");
    assert!(files["src/graph.rs"].contains("g.rms_norm(&w.scope(\"LayerNorm\"), &x, 1e-6)"));
    assert!(files["NOTES.md"].ends_with("Notes on Own.\n"));
}
