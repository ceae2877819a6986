//! Specs and front matter say what models are in words, numbers and expressions; Rust is in templates alone.

use std::path::Path;

use weft_generator::spec::yaml::{Data, Node, parse};
use weft_tests::root;

/// Keys under which prose stands, or JSON (`arguments`).
const PROSE: [&str; 6] = ["about", "arguments", "because", "doc", "no_effect", "read_by"];

/// What no word, name or expression has in it, and Rust that reads a configuration or builds a graph does.
const RUST: [&str; 15] =
    ["c.", "g.", "w.", "o.", "::", "&", "|", ";", "!(", "!c", " as ", "array!", "Some(", "None", "unwrap"];

/// The texts below a node that look like Rust, each with its line.
fn rust(node: &Node, found: &mut Vec<(usize, String)>) {
    match &node.data {
        Data::Text(text) => {
            let starts = |sign: &str| {
                let word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
                text.match_indices(sign).any(|(at, _)| !sign.ends_with('.') || !text[..at].ends_with(word))
            };
            if RUST.iter().any(|sign| starts(sign)) {
                found.push((node.at.line, text.clone()));
            }
        }
        Data::List(items) => items.iter().for_each(|item| rust(item, found)),
        Data::Map(entries) => {
            let said = entries.iter().filter(|entry| !PROSE.contains(&entry.key.as_str()));
            said.for_each(|entry| rust(&entry.value, found));
        }
        _ => {}
    }
}

fn files(folder: &str, ending: &str) -> Vec<std::path::PathBuf> {
    let entries = walkdir::WalkDir::new(root().join(folder)).sort_by_file_name();
    let files = entries.into_iter().filter_map(Result::ok).map(walkdir::DirEntry::into_path);
    files.filter(|path| path.to_string_lossy().ends_with(ending)).collect()
}

/// What is in these entries of a document, or in all where none are named.
fn all_of(path: &Path, text: &str, skipped: usize, entries: &[&str]) -> Vec<String> {
    let node = match parse(path, text, skipped) {
        Ok(node) => node,
        Err(problem) => return vec![problem.to_string()],
    };
    let mut found = vec![];
    match entries {
        [] => rust(&node, &mut found),
        entries => entries.iter().filter_map(|key| node.get(key)).for_each(|node| rust(node, &mut found)),
    }
    let shown = path.strip_prefix(root()).unwrap_or(path).display();
    found.into_iter().map(|(line, text)| format!("{shown}:{line}: {text}")).collect()
}

#[test]
fn no_spec_has_rust_in_it() {
    let mut found = vec![];
    for path in files("model_specs", ".yaml") {
        found.extend(all_of(&path, &std::fs::read_to_string(&path).unwrap(), 0, &["config", "graph"]));
    }
    let fields = root().join("templates/fields.yaml");
    found.extend(all_of(&fields, &std::fs::read_to_string(&fields).unwrap(), 0, &[]));
    assert!(found.is_empty(), "Rust in specs; expressions are in docs/specs.md:\n{}", found.join("\n"));
}

#[test]
fn no_front_matter_has_rust_in_it() {
    let mut found = vec![];
    for path in files("templates", ".tera") {
        let text = std::fs::read_to_string(&path).unwrap();
        let head = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n"));
        found.extend(head.iter().flat_map(|(head, _)| all_of(&path, head, 1, &[])));
    }
    assert!(
        found.is_empty(),
        "Rust in front matter; expressions are in docs/specs.md:\n{}",
        found.join("\n")
    );
}

#[test]
fn rust_is_found() {
    let look = |text: &str| all_of(Path::new("a.yaml"), text, 0, &[]).len();
    for text in [
        "a: c.hidden_size * 2",
        "a: \"nn::slides(&c.layer_types, index)\"",
        "a: {b: [\"x.map(|x| x)\"]}",
        "a: \"!c.alibi\"",
        "a: Some(1.0)",
        "a: (hidden_size as f64)",
        "a: \"array![[1]]\"",
    ] {
        assert_eq!(look(text), 1, "{text}");
    }
    for text in
        ["a: attention.c.x", "a: layer % 2 == 0 ?? true", "a: {doc: c.x}", "a: [x, 1.5, text_config.y]"]
    {
        assert_eq!(look(text), 0, "{text}");
    }
}
