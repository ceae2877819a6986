//! The modules of `src` form layers: no module needs one that needs it.

#![allow(clippy::unwrap_used, reason = "all of it is tests, with functions of their own")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What each module at the top of the crate names of the others, each with a file that does.
type Uses = BTreeMap<String, BTreeMap<String, PathBuf>>;

/// A circle as it is printed: `graph -> nn (graph/op.rs) -> graph (nn/cache.rs)`.
fn circle(uses: &Uses) -> Option<String> {
    fn visit<'a>(uses: &'a Uses, path: &mut Vec<&'a str>, done: &mut BTreeSet<&'a str>) -> Option<String> {
        let module = *path.last()?;
        for used in uses.get(module).into_iter().flatten().map(|(used, _)| used.as_str()) {
            if let Some(start) = path.iter().position(|known| *known == used) {
                let mut text = used.to_owned();
                let steps = path[start..].windows(2).map(|pair| (pair[0], pair[1])).chain([(module, used)]);
                for (from, to) in steps {
                    text += &format!(" -> {to} ({})", uses[from][to].display());
                }
                return Some(text);
            }
            if !done.contains(used) {
                path.push(used);
                if let Some(found) = visit(uses, path, done) {
                    return Some(found);
                }
                path.pop();
            }
        }
        done.insert(module);
        None
    }
    let mut done = BTreeSet::new();
    uses.keys().find_map(|module| visit(uses, &mut vec![module], &mut done))
}

/// The module that each name at the root of the crate comes from: modules, what `lib.rs` re-exports, and macros.
fn origins(lib: &str, modules: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut origins: BTreeMap<_, _> = modules.iter().map(|module| (module.clone(), module.clone())).collect();
    for statement in lib.split(';').filter_map(|text| text.trim().rsplit("pub use ").next()) {
        if let Some((module, names)) =
            statement.split_once("::").filter(|(module, _)| modules.contains(*module))
        {
            origins.extend(words(names).map(|name| (name.to_owned(), module.to_owned())));
        }
    }
    // Macros stand at the root of the crate, wherever they are defined.
    for (name, module) in [("dims", "graph"), ("inputs", "head")] {
        origins.insert(name.to_owned(), module.to_owned());
    }
    origins
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// The names behind `crate::`, of a list in braces the first of each path.
fn named(source: &str) -> Vec<&str> {
    let mut names = vec![];
    for rest in source.split("crate::").skip(1) {
        let Some(list) = rest.strip_prefix('{') else {
            names.extend(words(rest).next());
            continue;
        };
        let (mut depth, mut start) = (0, true);
        for (at, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => start = true,
                c if start && !c.is_whitespace() => {
                    names.extend(words(&list[at..]).next());
                    start = false;
                }
                _ => {}
            }
        }
    }
    names
}

/// A file without comments and without its tests, and the modules of it that are tests alone.
fn without_tests(source: &str) -> (String, Vec<String>) {
    let (mut code, mut tests) = (String::new(), vec![]);
    let mut lines = source.lines().map(|line| line.split("//").next().unwrap_or_default()).peekable();
    while let Some(line) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            code += line;
            code.push('\n');
            continue;
        }
        let item = lines.find(|line| !line.trim().starts_with("#[")).unwrap_or_default();
        let indent = item.len() - item.trim_start().len();
        match item.trim().strip_suffix(';').and_then(|item| item.rsplit_once("mod ")) {
            Some((_, name)) => tests.push(name.to_owned()),
            None if item.trim_end().ends_with([';', '}']) => {}
            None => {
                let _ = lines.find(|line| *line == format!("{}}}", " ".repeat(indent)));
            }
        }
    }
    (code, tests)
}

fn collect(file: &Path, take: &mut dyn FnMut(&Path, &str)) {
    let source = fs::read_to_string(file).unwrap();
    let (code, tests) = without_tests(&source);
    take(file, &code);
    let folder = match file.file_name().and_then(|name| name.to_str()) {
        Some("mod.rs") => file.parent().unwrap().to_path_buf(),
        _ => file.with_extension(""),
    };
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.map(|entry| entry.unwrap().path()) {
        let name = entry.file_stem().unwrap().to_str().unwrap().to_owned();
        let inner = if entry.is_dir() { entry.join("mod.rs") } else { entry };
        // A module beside a folder of its name reads that folder itself.
        if name != "mod" && inner.is_file() && !tests.contains(&name) {
            collect(&inner, take);
        }
    }
}

/// Every module at the top, and what it names of the others.
fn uses(src: &Path) -> Uses {
    let file = |name: &str| {
        let folder = src.join(name).join("mod.rs");
        if folder.is_file() { folder } else { src.join(format!("{name}.rs")) }
    };
    let entries = fs::read_dir(src).unwrap().map(|entry| entry.unwrap().path());
    let modules: BTreeSet<_> = entries
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|name| name != "lib")
        .collect();
    let origins = origins(&fs::read_to_string(src.join("lib.rs")).unwrap(), &modules);
    let mut uses = Uses::new();
    for module in &modules {
        let used = uses.entry(module.clone()).or_default();
        collect(&file(module), &mut |path, code| {
            for name in named(code) {
                let origin = origins
                    .get(name)
                    .unwrap_or_else(|| panic!("{}: whose is `crate::{name}`?", path.display()));
                if origin != module {
                    used.entry(origin.clone()).or_insert_with(|| path.strip_prefix(src).unwrap().to_owned());
                }
            }
        });
    }
    uses
}

#[test]
fn no_module_needs_one_that_needs_it() {
    let uses = uses(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    // Else nothing was read.
    assert!(uses["graph"].contains_key("error") && uses["session"].contains_key("engine"), "{uses:?}");
    assert_eq!(circle(&uses), None);
}

#[test]
fn a_circle_is_named_with_its_files() {
    let one = |to: &str, file: &str| BTreeMap::from([(to.to_owned(), PathBuf::from(file))]);
    let mut uses = Uses::from([
        ("graph".to_owned(), one("nn", "graph/op.rs")),
        ("lower".to_owned(), one("graph", "lower/mod.rs")),
        ("nn".to_owned(), one("value", "nn/cache.rs")),
    ]);
    assert_eq!(circle(&uses), None);
    uses.insert("value".to_owned(), one("graph", "value.rs"));
    let text = "graph -> nn (graph/op.rs) -> value (nn/cache.rs) -> graph (value.rs)";
    assert_eq!(circle(&uses).as_deref(), Some(text));
}

#[test]
fn what_a_file_names_of_the_crate_is_read() {
    let source = "use crate::{Error, graph::{Dim, Graph}, nn};\nlet x = crate::dims![2]; // crate::lower\n#[cfg(test)]\nmod unit;\n\
                  #[cfg(test)]\nmod tests {\n    use crate::engine;\n}\nfn after() { crate::hub::open() }\n";
    let (code, tests) = without_tests(source);
    assert_eq!(named(&code), ["Error", "graph", "nn", "dims", "hub"]);
    assert_eq!(tests, ["unit"]);
}
