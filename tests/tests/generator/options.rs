//! Options of templates and parts, and names that they import: each is there because some spec needs it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use weft_generator::parts;
use weft_generator::template::{Templates, find};
use weft_tests::root;

use crate::templates::own;

/// Its templates.
#[allow(clippy::unwrap_used, reason = "the test cannot go on without templates")]
fn templates() -> Templates {
    Templates::parse(&find(&own().templates).unwrap()).unwrap()
}

/// The options of each template and part, and the models whose specs set them.
#[allow(clippy::unwrap_used, reason = "the test cannot go on without specs")]
fn options() -> BTreeMap<String, BTreeSet<String>> {
    let templates = templates();
    let declared = templates.under("").flat_map(|(key, template)| {
        template.front.options.keys().map(move |option| (format!("{key} {option}"), BTreeSet::new()))
    });
    let mut options: BTreeMap<_, BTreeSet<String>> = declared.collect();
    for (model, parts) in parts(&own()).unwrap() {
        for (key, set) in parts {
            for option in set.into_keys() {
                options.entry(format!("{key} {option}")).or_default().insert(model.clone());
            }
        }
    }
    options
}

#[test]
fn every_option_is_set_by_a_spec_and_most_by_several() {
    let options = options();
    let set_by = |count| {
        let names = options.iter().filter(move |(_, models)| models.len() == count);
        names.map(|(name, models)| format!("{name} {models:?}")).collect::<Vec<_>>()
    };
    let (none, one) = (set_by(0), set_by(1));
    assert!(
        none.is_empty(),
        "no spec sets these options; write their defaults into the template:\n{}",
        none.join("\n")
    );
    assert!(
        one.len() < 60,
        "{} options are set by one spec alone; give it a part of its own, or take the fact from elsewhere:\n{}",
        one.len(),
        one.join("\n")
    );
}

/// What no spec of this repository needs, and one of another may: types of fields and outputs, tolerances of its own.
const OF_OTHERS: [&str; 4] = ["Array6", "Precision", "TokenIds", "Tolerance"];

#[test]
fn every_name_that_templates_may_use_is_imported_somewhere() {
    let mut imports: BTreeSet<String> = OF_OTHERS.map(str::to_owned).into();
    for entry in walkdir::WalkDir::new(root().join("generated")) {
        let entry = entry.unwrap();
        if entry.path().extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(entry.path()).unwrap();
            let code = text.split("\nuse ").skip(1).filter_map(|rest| rest.split(';').next());
            let words =
                code.flat_map(|statement| statement.split(|c: char| !c.is_alphanumeric() && c != '_'));
            imports.extend(words.map(str::to_owned));
        }
    }
    let templates = templates();
    let unused: Vec<_> = templates.uses().keys().filter(|name| !imports.contains(*name)).collect();
    assert!(unused.is_empty(), "no crate imports these of templates/uses.yaml: {unused:?}");
}
