//! Rendered text to Rust source: parsed, its imports found, what nobody calls left out, printed with blank lines.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeSet;
use std::ops::Deref;
use std::rc::Rc;

use quote::ToTokens;
use rustc_hash::FxHashMap;
use syn::buffer::TokenBuffer;
use syn::parse::{ParseStream, Parser};
use syn::{File, Item, Visibility};

use crate::layout::relax;
use crate::names::{Fields, Found, after_path, is_settled, settled};
use crate::prune::{documentation, enclosed, prune, shown};
use crate::remarks::{COMMENT, Remarks, marked, restore};

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
    pub(crate) attrs: Vec<(Vec<syn::Attribute>, Remarks)>,
    pub(crate) items: Vec<Placed>,
}

/// An item where it stands: with the remarks that are this model's own.
#[derive(Clone)]
pub(crate) struct Placed {
    pub unit: Rc<Unit>,
    pub remarks: Remarks,
}

impl Deref for Placed {
    type Target = Unit;

    fn deref(&self) -> &Unit {
        &self.unit
    }
}

impl From<Rc<Unit>> for Placed {
    fn from(unit: Rc<Unit>) -> Self {
        Self { unit, remarks: Rc::default() }
    }
}

/// An item and what is known of it. Models share most of their code, but for remarks, so that each thread keeps what
/// it has parsed.
pub(crate) struct Unit {
    /// The item alone, as it is printed.
    file: File,
    pub found: Found,
    printed: OnceCell<String>,
}

impl Unit {
    pub fn new(item: Item) -> Rc<Self> {
        let mut found = Found::default();
        found.add(TokenBuffer::new2(item.to_token_stream()).begin());
        Self::of(item, found)
    }

    /// An item that names this.
    fn of(item: Item, found: Found) -> Rc<Self> {
        let file = File { shebang: None, frontmatter: None, attrs: vec![], items: vec![item] };
        Rc::new(Self { file, found, printed: OnceCell::new() })
    }

    pub fn item(&self) -> &Item {
        &self.file.items[0]
    }

    /// The item as source, with marks for remarks.
    pub fn printed(&self) -> &str {
        self.printed.get_or_init(|| {
            let text = prettyplease::unparse(&self.file);
            relax(&if Kind::of(self.item()) == Kind::Block { spaced(&text) } else { text })
        })
    }
}

/// What a piece of text is when it is parsed.
pub(crate) type Parsed = (Vec<syn::Attribute>, Vec<Rc<Unit>>);

thread_local! {
    static PARSED: RefCell<FxHashMap<String, Parsed>> = RefCell::default();
}

/// Parses rendered text.
///
/// # Errors
/// It is not Rust.
pub fn parse(text: &str) -> Result<Code, Invalid> {
    let mut code = Code { attrs: vec![], items: vec![] };
    if pieces(text).into_iter().all(|piece| code.add(piece).is_ok()) {
        return Ok(code);
    }
    code = Code { attrs: vec![], items: vec![] };
    code.add(text).map_err(|error| {
        let line = error.span().start().line;
        let line = text.lines().nth(line.saturating_sub(1)).unwrap_or_default().trim().to_owned();
        Invalid { message: error.to_string(), line }
    })?;
    Ok(code)
}

/// A text in pieces: a line at the left edge after a blank one begins another.
fn pieces(text: &str) -> Vec<&str> {
    let (mut pieces, mut start, mut at, mut blank) = (vec![], 0, 0, false);
    for line in text.split_inclusive('\n') {
        if blank && !line.starts_with(char::is_whitespace) && !line.starts_with(['}', ')', ']']) {
            pieces.push(&text[start..at]);
            start = at;
        }
        blank = line.trim().is_empty();
        at += line.len();
    }
    pieces.push(&text[start..]);
    pieces
}

pub(crate) fn parse_piece(text: &str) -> syn::Result<Parsed> {
    if let Some(parsed) = PARSED.with_borrow(|known| known.get(text).cloned()) {
        return Ok(parsed);
    }
    let mut found = Found::default();
    let parser = |input: ParseStream<'_>| {
        found.add(input.cursor());
        input.parse()
    };
    let File { attrs, mut items, .. } = parser.parse_str(text)?;
    let units = match items.pop() {
        // The names of a piece are those of its only item: to write the item out again takes longer than to parse it.
        Some(item) if items.is_empty() && attrs.is_empty() => vec![Unit::of(item, found)],
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

/// The attributes of a file as source.
fn print(attrs: Vec<syn::Attribute>) -> String {
    prettyplease::unparse(&File { shebang: None, frontmatter: None, attrs, items: vec![] })
}

impl Code {
    fn add(&mut self, piece: &str) -> syn::Result<()> {
        let (text, remarks) = marked(piece);
        let remarks: Remarks = remarks.into();
        let (attrs, units) = parse_piece(&text)?;
        if !attrs.is_empty() {
            self.attrs.push((attrs, Rc::clone(&remarks)));
        }
        self.items.extend(units.into_iter().map(|unit| Placed { unit, remarks: Rc::clone(&remarks) }));
        Ok(())
    }

    /// Leaves out private functions, methods and types that nothing public leads to.
    pub fn prune(&mut self) {
        self.prune_but(&BTreeSet::new());
    }

    /// As [`Code::prune`], but keeps what has one of these names.
    pub fn prune_but(&mut self, kept: &BTreeSet<String>) {
        prune(&mut self.items, kept);
    }

    /// Makes the file a module: its items are its own, but for those of these names and their types, which others see. A module of a
    /// module shows them to the whole graph, because what its parent shows may be made of them.
    pub fn enclose(&mut self, doc: &[String], seen: &BTreeSet<String>, depth: usize) {
        self.attrs = vec![(documentation(doc), Rc::default())];
        let visibility =
            if depth > 1 { syn::parse_quote!(pub(in crate::graph)) } else { syn::parse_quote!(pub(super)) };
        let shown = shown(&self.items, seen);
        for placed in &mut self.items {
            if let Some(item) = enclosed(placed.item(), &shown, &visibility) {
                placed.unit = Unit::new(item);
            }
        }
    }

    /// Declares modules in files of their own.
    pub fn declare<'a>(&mut self, modules: impl Iterator<Item = &'a str>) {
        let declared = modules.filter_map(|name| syn::parse_str::<Item>(&format!("mod {name};")).ok());
        self.items.splice(0..0, declared.map(Unit::new).map(Placed::from).collect::<Vec<_>>());
    }

    /// The names that follow this path, such as `text` or `super::text`, anywhere, with those that follow them in turn.
    pub fn names_of(&self, path: &[&str]) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        let within = |unit: &&Placed| path.iter().all(|name| unit.found.names.contains_key(*name));
        for unit in self.items.iter().filter(within) {
            after_path(unit.item().to_token_stream(), path, &mut names);
        }
        names
    }

    /// Gives every read of the configuration, `c`, the form of what it reads: a field, or the call of a method.
    pub fn settle(&mut self, config: &dyn Fields) {
        for placed in &mut self.items {
            if placed.found.reads.iter().all(|(path, called)| is_settled(path, *called, config)) {
                continue;
            }
            let mut changed = false;
            let tokens = settled(placed.item().to_token_stream(), config, &mut changed);
            if changed && let Ok(item) = syn::parse2(tokens) {
                placed.unit = Unit::new(item);
            }
        }
    }

    /// What the code reads from `c`, the configuration: each a path, and whether its end is called.
    pub fn config_names(&self) -> BTreeSet<(Vec<String>, bool)> {
        self.items.iter().flat_map(|unit| unit.found.reads.iter().cloned()).collect()
    }

    /// The source: imports in groups, a blank line between items.
    pub fn print(self) -> String {
        let Self { attrs, items } = self;
        let mut text = String::new();
        for (attrs, remarks) in attrs {
            restore(&mut text, &print(attrs), &remarks);
        }
        let mut previous: Option<Kind> = None;
        for placed in sorted(items) {
            let kind = Kind::of(placed.item());
            let together = match (previous, kind) {
                (Some(Kind::Comment), _) => true,
                (Some(before), now) => before == now && !matches!(now, Kind::Block | Kind::Other),
                (None, _) => false,
            };
            if !together && !text.is_empty() {
                text.push('\n');
            }
            restore(&mut text, placed.printed(), &placed.remarks);
            previous = Some(kind);
        }
        text
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
fn sorted(mut items: Vec<Placed>) -> Vec<Placed> {
    let run = |items: &[Placed], is: fn(&Kind) -> bool| {
        let start = items.iter().position(|unit| is(&Kind::of(unit.item())));
        start.map(|start| {
            let length = items[start..].iter().take_while(|unit| is(&Kind::of(unit.item()))).count();
            start..start + length
        })
    };
    let groups: [fn(&Kind) -> bool; 3] =
        [|kind| matches!(kind, Kind::Use(_)), |kind| *kind == Kind::Mod, |kind| *kind == Kind::PubUse];
    for is in groups {
        if let Some(range) = run(&items, is) {
            items[range].sort_by_cached_key(|unit| {
                let group = if let Kind::Use(group) = Kind::of(unit.item()) { group } else { 0 };
                let text = match unit.item() {
                    Item::Mod(module) => module.ident.to_string(),
                    // What is nearer comes first.
                    Item::Use(item) => {
                        let text = item.tree.to_token_stream().to_string().replace(' ', "");
                        text.strip_prefix("super").map_or(text.clone(), |rest| format!("!{rest}"))
                    }
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
        let starts = [
            "    ///",
            "    #[",
            "    fn ",
            "    pub fn ",
            "    pub(super) fn ",
            "    pub(in crate::graph) fn ",
        ]
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
