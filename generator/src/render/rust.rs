//! Rendered text to Rust source: parsed, its imports found, what nobody calls left out, printed with blank lines.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use quote::ToTokens;
use syn::{File, Item, Visibility};

use super::layout::relax;
use super::names::{after_c, after_module, settled};
use super::prune::{enclose, idents, prune};
use crate::lower::config::Config;

/// What stands for a comment line while the code is parsed and printed.
const COMMENT: &str = "__comment";

/// What is wrong with rendered Rust, and the line of the rendered text.
#[derive(Debug)]
pub struct Invalid {
    /// The parser's message.
    pub message: String,
    /// The line that it is about.
    pub line: String,
}

/// Parsed code and its comment lines.
pub struct Code {
    file: File,
    comments: Vec<String>,
}

/// Parses rendered text.
///
/// # Errors
/// It is not Rust.
pub fn parse(text: &str) -> Result<Code, Invalid> {
    let mut comments = vec![];
    let mut lines = vec![];
    for line in text.lines() {
        let trimmed = line.trim_start();
        if trimmed.starts_with("//") && !trimmed.starts_with("///") && !trimmed.starts_with("//!") {
            lines.push(format!("{COMMENT}!({});", comments.len()));
            comments.push(trimmed.trim_end().to_owned());
        } else {
            lines.push(line.to_owned());
        }
    }
    let file = syn::parse_file(&lines.join("\n")).map_err(|error| {
        let line = error.span().start().line;
        let line = text.lines().nth(line.saturating_sub(1)).unwrap_or_default().trim().to_owned();
        Invalid { message: error.to_string(), line }
    })?;
    Ok(Code { file, comments })
}

impl Code {
    /// Leaves out private functions, methods and types that nothing public leads to.
    pub fn prune(&mut self) {
        self.prune_but(&BTreeSet::new());
    }

    /// As [`Code::prune`], but keeps what has one of these names.
    pub fn prune_but(&mut self, kept: &BTreeSet<String>) {
        prune(&mut self.file, kept);
    }

    /// Makes the file a module: its items are its own, but for those of these names, which its parent sees.
    pub fn enclose(&mut self, doc: &[String], seen: &BTreeSet<String>) {
        enclose(&mut self.file, doc, seen);
    }

    /// Declares modules in files of their own.
    pub fn declare<'a>(&mut self, modules: impl Iterator<Item = &'a str>) {
        let declared = modules.filter_map(|name| syn::parse_str::<Item>(&format!("mod {name};")).ok());
        let items = std::mem::take(&mut self.file.items);
        self.file.items = declared.chain(items).collect();
    }

    /// The names that follow `module::` anywhere, with those that follow them in turn.
    pub fn names_of(&self, module: &str) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for item in &self.file.items {
            after_module(item.to_token_stream(), module, &mut names);
        }
        names
    }

    /// Gives every read of the configuration, `c`, the form of what it reads: a field, or the call of a method.
    pub fn settle(&mut self, config: &Config) {
        for item in &mut self.file.items {
            let mut changed = false;
            let tokens = settled(item.to_token_stream(), config, &mut changed);
            if changed && let Ok(settled) = syn::parse2(tokens) {
                *item = settled;
            }
        }
    }

    /// Imports those of these paths whose last name occurs, one `use` for each module.
    pub fn import(&mut self, paths: &[String]) {
        let mut used = HashSet::new();
        for item in &self.file.items {
            used.extend(idents(item.to_token_stream()));
        }
        let mut modules: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for path in paths {
            let Some((module, name)) = path.rsplit_once("::") else { continue };
            let called = match name.split_once(" as ") {
                Some((_, called)) => called,
                None if name == "self" => module.rsplit("::").next().unwrap_or(module),
                None => name,
            };
            if used.contains(called) {
                modules.entry(module).or_default().insert(name);
            }
        }
        let statements = modules.into_iter().filter_map(|(module, names)| {
            let names: Vec<_> = names.into_iter().collect();
            let text = match names.as_slice() {
                ["self"] => format!("use {module};"),
                [one] => format!("use {module}::{one};"),
                many => {
                    let (own, rest): (Vec<&str>, Vec<&str>) = many.iter().partition(|name| **name == "self");
                    let names = [own, rest].concat();
                    format!("use {module}::{{{}}};", names.join(", "))
                }
            };
            syn::parse_str::<Item>(&text).ok()
        });
        let items = std::mem::take(&mut self.file.items);
        self.file.items = statements.chain(items).collect();
    }

    /// What the code reads from `c`, the configuration: each a path, and whether its end is called.
    pub fn config_names(&self) -> BTreeSet<(Vec<String>, bool)> {
        let mut names = BTreeSet::new();
        for item in &self.file.items {
            after_c(item.to_token_stream(), &mut names);
        }
        names
    }

    /// The source: imports in groups, a blank line between items.
    pub fn print(self) -> String {
        let Self { file, comments } = self;
        let print =
            |attrs, items| prettyplease::unparse(&File { shebang: None, frontmatter: None, attrs, items });
        let mut text = print(file.attrs, vec![]);
        let mut previous: Option<Kind> = None;
        for item in sorted(file.items) {
            let kind = Kind::of(&item);
            let together = match (previous, kind) {
                (Some(Kind::Comment), _) => true,
                (Some(before), now) => before == now && !matches!(now, Kind::Block | Kind::Other),
                (None, _) => false,
            };
            if !together && !text.is_empty() {
                text.push('\n');
            }
            let item = print(vec![], vec![item]);
            text.push_str(&relax(&if kind == Kind::Block { spaced(&item) } else { item }));
            previous = Some(kind);
        }
        restore(&text, &comments)
    }
}

/// What may stand in neighbouring lines.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// An import, by where from: the standard library, another crate, this one.
    Use(u8),
    /// An import for others.
    PubUse,
    /// A module in a file of its own.
    Mod,
    /// A comment.
    Comment,
    /// An implementation without anything in it.
    Marker,
    /// A block of functions.
    Block,
    /// Anything else.
    Other,
}

impl Kind {
    fn of(item: &Item) -> Self {
        match item {
            Item::Use(item) if !matches!(item.vis, Visibility::Inherited) => Self::PubUse,
            Item::Use(item) => Self::Use(match first_segment(&item.tree).as_str() {
                "std" | "core" | "alloc" => 0,
                "crate" | "self" | "super" => 2,
                _ => 1,
            }),
            Item::Mod(module) if module.content.is_none() => Self::Mod,
            Item::Macro(call) if call.mac.path.is_ident(COMMENT) => Self::Comment,
            Item::Impl(block) if block.items.is_empty() => Self::Marker,
            Item::Impl(_) | Item::Trait(_) | Item::Mod(_) => Self::Block,
            _ => Self::Other,
        }
    }
}

fn first_segment(tree: &syn::UseTree) -> String {
    tree.to_token_stream().into_iter().next().map(|token| token.to_string()).unwrap_or_default()
}

/// Neighbouring imports and modules in order: by group, then by name.
fn sorted(mut items: Vec<Item>) -> Vec<Item> {
    let run = |items: &[Item], is: fn(&Kind) -> bool| {
        let start = items.iter().position(|item| is(&Kind::of(item)));
        start.map(|start| {
            let length = items[start..].iter().take_while(|item| is(&Kind::of(item))).count();
            start..start + length
        })
    };
    let groups: [fn(&Kind) -> bool; 3] =
        [|kind| matches!(kind, Kind::Use(_)), |kind| *kind == Kind::Mod, |kind| *kind == Kind::PubUse];
    for is in groups {
        if let Some(range) = run(&items, is) {
            items[range].sort_by_cached_key(|item| {
                let group = if let Kind::Use(group) = Kind::of(item) { group } else { 0 };
                let text = match item {
                    Item::Mod(module) => module.ident.to_string(),
                    Item::Use(item) => item.tree.to_token_stream().to_string().replace(' ', ""),
                    _ => String::new(),
                };
                // Braces come after names, as rustfmt has it.
                (group, text.replace('{', "\u{7f}"))
            });
        }
    }
    items
}

/// A blank line before every function of a block but the first.
fn spaced(text: &str) -> String {
    let mut lines: Vec<&str> = vec![];
    for line in text.lines() {
        let starts = ["    ///", "    #[", "    fn ", "    pub fn ", "    pub(super) fn "]
            .iter()
            .any(|start| line.starts_with(start));
        let follows = lines.last().is_some_and(|last| {
            !(last.starts_with("    ///") || last.starts_with("    #[") || !last.starts_with(' '))
        });
        if starts && follows {
            lines.push("");
        }
        lines.push(line);
    }
    lines.join("\n") + "\n"
}

/// Puts comment lines back.
fn restore(text: &str, comments: &[String]) -> String {
    let mark = format!("{COMMENT}!(");
    let mut output = String::with_capacity(text.len());
    for line in text.lines() {
        let trimmed = line.trim_start();
        let comment = trimmed.strip_prefix(&mark).and_then(|rest| rest.strip_suffix(");"));
        match comment.and_then(|index| comments.get(index.parse::<usize>().ok()?)) {
            Some(comment) => {
                output.push_str(&line[..line.len() - trimmed.len()]);
                output.push_str(comment);
            }
            None => output.push_str(line),
        }
        output.push('\n');
    }
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(text: &str, uses: &[&str]) -> String {
        let mut code = parse(text).unwrap();
        code.prune();
        code.import(&uses.iter().map(|&path| path.to_owned()).collect::<Vec<_>>());
        code.print()
    }

    #[test]
    fn what_nobody_calls_is_left_out() {
        let text = "pub fn a() { b(); T::new(); } fn b() {} fn c() { d() } fn d() { c() }
            struct T; impl T { fn new() -> T { T } fn other() {} } struct U; impl U { fn x() {} }";
        insta::assert_snapshot!(print(text, &[]), @r"
            pub fn a() {
                b();
                T::new();
            }

            fn b() {}

            struct T;

            impl T {
                fn new() -> T {
                    T
                }
            }
            ");
    }

    #[test]
    fn imports_are_what_the_code_names() {
        let text = "//! A module.\n\n/// Builds.\npub fn a(g: &mut Graph) { nn::mask(g); }";
        let uses = ["weft::graph::Graph", "weft::graph::Scope", "weft::nn::self", "crate::Config"];
        insta::assert_snapshot!(print(text, &uses), @r"
            //! A module.

            use weft::graph::Graph;
            use weft::nn;

            /// Builds.
            pub fn a(g: &mut Graph) {
                nn::mask(g);
            }
            ");
    }

    #[test]
    fn comments_stay() {
        let text = "// Before.\npub fn a() {\n    // [batch, 1]\n    let x = 1;\n    x\n}\n";
        insta::assert_snapshot!(print(text, &[]), @r"
            // Before.
            pub fn a() {
                // [batch, 1]
                let x = 1;
                x
            }
            ");
    }

    #[test]
    fn errors_show_the_line() {
        let error = parse("fn a() {\n    let x = ;\n}\n").err().unwrap();
        assert_eq!((error.message.as_str(), error.line.as_str()), ("expected an expression", "let x = ;"));
    }
}
