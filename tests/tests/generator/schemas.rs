//! The JSON schemas that editors check specs with are those of the types.

use std::fs;

use weft_tests::root;

#[test]
fn schemas_are_those_of_the_types() {
    let update = std::env::var_os("WEFT_UPDATE_SCHEMAS").is_some();
    for (name, text) in weft_generator::schema::all() {
        let path = root().join("schemas").join(name);
        if update {
            fs::create_dir_all(root().join("schemas")).unwrap();
            fs::write(&path, &text).unwrap();
        }
        let committed = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == text,
            "schemas/{name} is not up to date: run this test with WEFT_UPDATE_SCHEMAS=1 and commit the file"
        );
    }
}
