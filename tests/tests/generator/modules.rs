//! Models of several parts: configurations within configurations, modules, inputs and outputs of other types.

use weft_tests::Workshop;

const SPEC: &str = include_str!("../../fixtures/duo.yaml");

fn workshop(spec: &str) -> Workshop {
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
