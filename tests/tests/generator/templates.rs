//! Templates and parts as their readers meet them: short and described.

use weft_generator::Request;
use weft_generator::template::find;
use weft_tests::{request, root};

/// The repository's own specs and templates.
pub fn own() -> Request {
    let mut request = request(&root().join("target/none"));
    request.specs.truncate(1);
    request.specs[0].generate = true;
    request
}

#[test]
fn templates_are_short_and_say_what_they_are_for() {
    let mut wrong = vec![];
    for source in find(&own().templates).unwrap() {
        if !["graph/", "pipeline/"].iter().any(|folder| source.key.starts_with(folder)) {
            continue;
        }
        let lines = source.text.lines().count();
        if lines > 150 {
            wrong.push(format!("{}: {lines} lines; expected at most 150", source.label));
        }
        if !source.text.starts_with("---\nabout: ") {
            wrong.push(format!("{}: does not begin with `about`", source.label));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
