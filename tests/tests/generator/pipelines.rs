//! `docs/pipelines.md` says which tasks each kind of pipeline offers, as the templates do.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use weft_generator::spec::architectures::Architectures;
use weft_generator::template::{self, Templates};
use weft_tests::root;

/// The tasks of each row of the page's tables.
fn documented(page: &str) -> BTreeMap<String, BTreeSet<String>> {
    let rows = page.lines().filter_map(|line| {
        let cells: Vec<_> = line.strip_prefix("| `")?.split(" | ").collect();
        let tasks = cells.get(2)?.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        Some((cells[0].trim_end_matches('`').to_owned(), tasks))
    });
    rows.collect()
}

#[test]
fn the_page_lists_what_the_templates_offer() {
    let page = fs::read_to_string(root().join("docs/pipelines.md")).unwrap();
    let dir = root().join("templates");
    let folder = template::Folder { dir, label: "templates".into(), shown: "templates".into() };
    let templates = Templates::parse(&template::find(&[folder]).unwrap()).unwrap();
    let architectures = Architectures::load(&root().join("model_specs")).unwrap();
    let kinds = architectures.architectures.values().map(|kind| kind.pipeline.name().to_owned());
    let mut offered: BTreeMap<String, BTreeSet<String>> =
        kinds.map(|pipeline| (pipeline, BTreeSet::new())).collect();
    for name in templates.names("pipeline/") {
        for pipeline in &templates.get(&format!("pipeline/{name}.rs")).unwrap().front.pipelines {
            offered.entry(pipeline.name().to_owned()).or_default().insert(name.to_owned());
        }
    }
    assert_eq!(documented(&page), offered);
}
