//! Every architecture of the reference has a spec or a reason why not.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use weft_generator::spec::architectures::Architectures;
use weft_generator::spec::load::{self, Folder, Specs};
use weft_generator::spec::not_yet::NotYet;
use weft_tests::root;

/// The `model_type`s that specs describe.
fn described(dir: PathBuf) -> BTreeSet<String> {
    let architectures = Architectures::load(&dir).expect("the architecture types are read");
    let categories: Vec<_> = architectures.categories.keys().map(String::as_str).collect();
    let folder = Folder { dir, label: "model_specs".into(), shown: "model_specs".into(), generate: true };
    let specs = Specs::read(load::find(&[folder]).expect("the specs are found"), &categories);
    let specs = (0..specs.files.len()).map(|index| specs.resolve(index).expect("the spec is right").spec);
    specs
        .flat_map(|spec| if spec.model_types.is_empty() { vec![spec.model] } else { spec.model_types })
        .collect()
}

#[test]
fn specs_and_list_cover_the_reference() {
    let dir = root().join("model_specs");
    let list = NotYet::load(&dir).unwrap();
    if let Err(problems) = list.check(&described(dir), Path::new("model_specs/not_yet.yaml")) {
        panic!("{problems}");
    }
}
