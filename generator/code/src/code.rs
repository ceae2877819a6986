//! Rendered text to Rust source: parsed, its imports found, what nobody calls left out, printed with blank lines.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{File, Item, Visibility};

use crate::layout::relax;
use crate::names::{Fields, after_c, after_module, is_settled, settled};
use crate::prune::{count, documentation, enclosed, prune};

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

/// Parsed code.
#[derive(Clone)]
pub struct Code {
    attrs: Vec<syn::Attribute>,
    pub(crate) items: Vec<Rc<Unit>>,
}

/// An item and what is known of it. Models share most of their code, so that each thread keeps what it has parsed.
pub(crate) struct Unit {
    pub item: Item,
    /// How often each name occurs.
    pub names: HashMap<String, usize>,
    /// What it reads from `c`, the configuration: each a path, and whether its end is called.
    reads: OnceCell<BTreeSet<(Vec<String>, bool)>>,
    printed: OnceCell<String>,
}

impl Unit {
    pub fn new(item: Item) -> Rc<Self> {
        let tokens = item.to_token_stream();
        Self::of(item, tokens)
    }

    /// An item that was parsed from these tokens.
    fn of(item: Item, tokens: TokenStream) -> Rc<Self> {
        let mut names = HashMap::new();
        count(tokens, &mut names);
        Rc::new(Self { item, names, reads: OnceCell::new(), printed: OnceCell::new() })
    }

    fn reads(&self) -> &BTreeSet<(Vec<String>, bool)> {
        self.reads.get_or_init(|| {
            let mut names = BTreeSet::new();
            if self.names.contains_key("c") {
                after_c(self.item.to_token_stream(), &mut names);
            }
            names
        })
    }

    /// The item as source, with marks for comments.
    fn printed(&self) -> &str {
        self.printed.get_or_init(|| {
            let text = print(vec![], vec![self.item.clone()]);
            relax(&if Kind::of(&self.item) == Kind::Block { spaced(&text) } else { text })
        })
    }
}

/// What a piece of text is when it is parsed.
type Parsed = (Vec<syn::Attribute>, Vec<Rc<Unit>>);

thread_local! {
    static PARSED: RefCell<HashMap<String, Parsed>> = RefCell::default();
    /// The comment lines that marks stand for, by number.
    static COMMENTS: RefCell<Vec<String>> = RefCell::default();
    /// Their numbers.
    static NUMBERS: RefCell<HashMap<String, usize>> = RefCell::default();
}

/// Parses rendered text.
///
/// # Errors
/// It is not Rust.
pub fn parse(text: &str) -> Result<Code, Invalid> {
    let mut pieces = vec![String::with_capacity(256)];
    let mut blank = false;
    for line in text.lines() {
        let trimmed = line.trim_start();
        // A line at the left edge after a blank one begins something new; what a piece breaks is parsed as a whole.
        if blank && trimmed.len() == line.len() && !line.is_empty() && !line.starts_with(['}', ')', ']']) {
            pieces.push(String::with_capacity(256));
        }
        blank = trimmed.is_empty();
        let Some(piece) = pieces.last_mut() else { continue };
        if trimmed.starts_with("//") && !trimmed.starts_with("///") && !trimmed.starts_with("//!") {
            piece.push_str(&mark(trimmed.trim_end()));
        } else {
            piece.push_str(line);
        }
        piece.push('\n');
    }
    let mut code = Code { attrs: vec![], items: vec![] };
    for piece in &pieces {
        let Ok((attrs, items)) = parse_piece(piece) else {
            let (attrs, items) = parse_piece(&pieces.concat()).map_err(|error| {
                let line = error.span().start().line;
                let line = text.lines().nth(line.saturating_sub(1)).unwrap_or_default().trim().to_owned();
                Invalid { message: error.to_string(), line }
            })?;
            return Ok(Code { attrs, items });
        };
        code.attrs.extend(attrs);
        code.items.extend(items);
    }
    Ok(code)
}

/// What stands for a comment line.
fn mark(comment: &str) -> String {
    let number = NUMBERS.with_borrow(|numbers| numbers.get(comment).copied()).unwrap_or_else(|| {
        let number = COMMENTS.with_borrow_mut(|known| {
            known.push(comment.to_owned());
            known.len() - 1
        });
        NUMBERS.with_borrow_mut(|numbers| numbers.insert(comment.to_owned(), number));
        number
    });
    format!("{COMMENT}!({number});")
}

fn parse_piece(text: &str) -> syn::Result<Parsed> {
    if let Some(parsed) = PARSED.with_borrow(|known| known.get(text).cloned()) {
        return Ok(parsed);
    }
    let tokens: TokenStream = text.parse()?;
    let File { attrs, mut items, .. } = syn::parse2(tokens.clone())?;
    let units = match items.pop() {
        // The names of a piece are those of its only item: to write the item out again takes longer than to parse it.
        Some(item) if items.is_empty() && attrs.is_empty() => vec![Unit::of(item, tokens)],
        last => items.into_iter().chain(last).map(Unit::new).collect(),
    };
    let parsed = (attrs, units);
    PARSED.with_borrow_mut(|known| known.insert(text.to_owned(), parsed.clone()));
    Ok(parsed)
}

/// Whether a text can be the name of something in Rust: no keyword, nothing but letters, digits and underscores.
pub fn is_name(text: &str) -> bool {
    syn::parse_str::<syn::Ident>(text).is_ok()
}

fn print(attrs: Vec<syn::Attribute>, items: Vec<Item>) -> String {
    prettyplease::unparse(&File { shebang: None, frontmatter: None, attrs, items })
}

impl Code {
    /// Leaves out private functions, methods and types that nothing public leads to.
    pub fn prune(&mut self) {
        self.prune_but(&BTreeSet::new());
    }

    /// As [`Code::prune`], but keeps what has one of these names.
    pub fn prune_but(&mut self, kept: &BTreeSet<String>) {
        prune(&mut self.items, kept);
    }

    /// Makes the file a module: its items are its own, but for those of these names, which its parent sees.
    pub fn enclose(&mut self, doc: &[String], seen: &BTreeSet<String>) {
        self.attrs = documentation(doc);
        for unit in &mut self.items {
            if let Some(item) = enclosed(&unit.item, seen) {
                *unit = Unit::new(item);
            }
        }
    }

    /// Declares modules in files of their own.
    pub fn declare<'a>(&mut self, modules: impl Iterator<Item = &'a str>) {
        let declared = modules.filter_map(|name| syn::parse_str::<Item>(&format!("mod {name};")).ok());
        self.items.splice(0..0, declared.map(Unit::new).collect::<Vec<_>>());
    }

    /// The names that follow `module::` anywhere, with those that follow them in turn.
    pub fn names_of(&self, module: &str) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for unit in self.items.iter().filter(|unit| unit.names.contains_key(module)) {
            after_module(unit.item.to_token_stream(), module, &mut names);
        }
        names
    }

    /// Gives every read of the configuration, `c`, the form of what it reads: a field, or the call of a method.
    pub fn settle(&mut self, config: &dyn Fields) {
        for unit in &mut self.items {
            if unit.reads().iter().all(|(path, called)| is_settled(path, *called, config)) {
                continue;
            }
            let mut changed = false;
            let tokens = settled(unit.item.to_token_stream(), config, &mut changed);
            if changed && let Ok(item) = syn::parse2(tokens) {
                *unit = Unit::new(item);
            }
        }
    }

    /// Imports those of these paths whose last name occurs, one `use` for each module.
    pub fn import(&mut self, paths: &[String]) {
        let used = |name: &str| self.items.iter().any(|unit| unit.names.contains_key(name));
        let mut modules: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for path in paths {
            let Some((module, name)) = path.rsplit_once("::") else { continue };
            let called = match name.split_once(" as ") {
                Some((_, called)) => called,
                None if name == "self" => module.rsplit("::").next().unwrap_or(module),
                None => name,
            };
            if used(called) {
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
            Some(parse_piece(&text).ok()?.1)
        });
        let statements: Vec<_> = statements.flatten().collect();
        self.items.splice(0..0, statements);
    }

    /// What the code reads from `c`, the configuration: each a path, and whether its end is called.
    pub fn config_names(&self) -> BTreeSet<(Vec<String>, bool)> {
        self.items.iter().flat_map(|unit| unit.reads().iter().cloned()).collect()
    }

    /// The source: imports in groups, a blank line between items.
    pub fn print(self) -> String {
        let Self { attrs, items } = self;
        let mut text = print(attrs, vec![]);
        let mut previous: Option<Kind> = None;
        for unit in sorted(items) {
            let kind = Kind::of(&unit.item);
            let together = match (previous, kind) {
                (Some(Kind::Comment), _) => true,
                (Some(before), now) => before == now && !matches!(now, Kind::Block | Kind::Other),
                (None, _) => false,
            };
            if !together && !text.is_empty() {
                text.push('\n');
            }
            text.push_str(unit.printed());
            previous = Some(kind);
        }
        COMMENTS.with_borrow(|comments| restore(&text, comments))
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
fn sorted(mut items: Vec<Rc<Unit>>) -> Vec<Rc<Unit>> {
    let run = |items: &[Rc<Unit>], is: fn(&Kind) -> bool| {
        let start = items.iter().position(|unit| is(&Kind::of(&unit.item)));
        start.map(|start| {
            let length = items[start..].iter().take_while(|unit| is(&Kind::of(&unit.item))).count();
            start..start + length
        })
    };
    let groups: [fn(&Kind) -> bool; 3] =
        [|kind| matches!(kind, Kind::Use(_)), |kind| *kind == Kind::Mod, |kind| *kind == Kind::PubUse];
    for is in groups {
        if let Some(range) = run(&items, is) {
            items[range].sort_by_cached_key(|unit| {
                let group = if let Kind::Use(group) = Kind::of(&unit.item) { group } else { 0 };
                let text = match &unit.item {
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
