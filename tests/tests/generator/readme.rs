//! The README's Rust compiles with the dependencies that the README names.

use std::fs;

use weft_tests::{Workshop, root};

use crate::outside::{as_here, check};

/// The code blocks of a language.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let opens = format!("\n```{language}\n");
    text.split(&opens).skip(1).filter_map(|rest| Some(rest.split_once("\n```")?.0)).collect()
}

#[test]
fn the_readmes_rust_compiles() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let dependencies = blocks(&readme, "toml")[0].replace("\"weft/", &format!("\"{}/", root().display()));
    let workshop = Workshop::new();
    let package =
        "[package]\nname = \"readme\"\nedition = \"2024\"\n\n[workspace]\nmembers = [\"tests/unified\"]\n\n";
    workshop.write("out/Cargo.toml", &format!("{package}{dependencies}\n"));
    as_here(&workshop);
    let examples = blocks(&readme, "rust");
    assert!(examples.len() > 1, "the README shows tasks and classes");
    for (index, code) in examples.iter().enumerate() {
        let main = format!("fn main() -> weft::Result<()> {{\n{code}\nOk(())\n}}\n");
        workshop.write(&format!("out/src/bin/example{index}.rs"), &main);
    }
    check(&workshop, &["--package", "readme", "--bins"]).unwrap();
}
