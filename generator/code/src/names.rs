//! Names in code: what it reads from the configuration `c`, and from modules, and what it must import.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use rustc_hash::{FxHashMap, FxHashSet};
use syn::buffer::Cursor;

/// What a configuration has, for code that reads it.
pub trait Fields {
    /// What code that reads this name gets; nothing if there is no such field.
    fn field(&self, name: &str) -> Option<Read<'_>>;
}

/// What a name in code that reads a configuration is.
#[derive(Clone, Copy)]
pub enum Read<'a> {
    /// A plain field.
    Field,
    /// A method.
    Method,
    /// A configuration within this one.
    Nested(&'a dyn Fields),
}

/// What code names.
#[derive(Default)]
pub(crate) struct Found {
    /// How often each name occurs.
    pub names: FxHashMap<String, usize>,
    /// What it reads from `c`, the configuration: each a path, and whether its end is called.
    pub reads: BTreeSet<(Vec<String>, bool)>,
    /// Names that something must stand for: capitalised ones, modules, functions and macros that begin a path.
    pub begins: FxHashSet<String>,
    /// Names that it gives to something itself, at any depth, or imports.
    pub declares: FxHashSet<String>,
}

/// What stands before a name.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    Other,
    /// A dot: the name is a field or a method.
    Dot,
    Colon,
    /// Two colons: the name is one of what stands before them.
    Path,
    /// `fn` or `mod`, whose names are those of items.
    Item,
    Let,
    /// `const`, `struct` and the like.
    Declaration,
    /// The name that these declare, or `impl`.
    Declared,
    /// Between the `<` after that and the first bound or the end.
    Parameters,
}

impl Before {
    fn punct(self, punct: char) -> Self {
        match (self, punct) {
            (Self::Colon, ':') => Self::Path,
            (_, ':') => Self::Colon,
            (Self::Dot, '.') => Self::Other,
            (_, '.') => Self::Dot,
            (Self::Declared, '<') | (Self::Parameters, ',') => Self::Parameters,
            _ => Self::Other,
        }
    }

    fn name(self, name: &str) -> Self {
        match (self, name) {
            (Self::Let | Self::Declaration, "mut") => self,
            (_, "let") => Self::Let,
            (_, "const" | "static" | "struct" | "enum" | "type" | "trait") => Self::Declaration,
            (_, "fn" | "mod") => Self::Item,
            (Self::Parameters, _) => Self::Parameters,
            (_, "impl") | (Self::Item | Self::Declaration, _) => Self::Declared,
            _ => Self::Other,
        }
    }
}

impl Found {
    /// Adds what is between here and the end of a group.
    pub fn add(&mut self, cursor: Cursor<'_>) {
        self.walk(cursor, false);
    }

    fn walk(&mut self, mut cursor: Cursor<'_>, mut import: bool) {
        let mut name = String::new();
        let mut before = Before::Other;
        loop {
            cursor = if let Some((ident, next)) = cursor.ident() {
                name.clear();
                let _ = write!(name, "{ident}");
                if name == "c" {
                    self.read(next);
                }
                match self.names.get_mut(&name) {
                    Some(known) => *known += 1,
                    None => drop(self.names.insert(name.clone(), 1)),
                }
                import |= name == "use";
                self.place(&name, before, next, import);
                before = before.name(&name);
                next
            } else if let Some((inner, _, _, next)) = cursor.any_group() {
                self.walk(inner, import);
                before = Before::Other;
                next
            } else if let Some((punct, next)) = cursor.punct() {
                import &= punct.as_char() != ';';
                before = before.punct(punct.as_char());
                next
            } else if let Some((_, next)) = cursor.token_tree() {
                before = Before::Other;
                next
            } else {
                return;
            }
        }
    }

    /// Adds a name to those that something must stand for, or that are declared here.
    fn place(&mut self, name: &str, before: Before, next: Cursor<'_>, import: bool) {
        let follows = |sign: char| next.punct().is_some_and(|(punct, _)| punct.as_char() == sign);
        let path = next.punct().and_then(|(_, next)| next.punct());
        let path = follows(':') && path.is_some_and(|(punct, _)| punct.as_char() == ':');
        let capital = is_capitalised(name);
        let declared = match before {
            _ if import => !path && next.ident().is_none_or(|(ident, _)| ident != "as"),
            Before::Dot | Before::Path => return,
            Before::Let => !capital,
            Before::Declaration | Before::Parameters => true,
            // A type parameter with its bound.
            _ => capital && follows(':') && !path,
        };
        let names = if declared { &mut self.declares } else { &mut self.begins };
        let called = || path || follows('!') || next.group(Delimiter::Parenthesis).is_some();
        if (declared || !import && before != Before::Item && (capital || called())) && !names.contains(name) {
            names.insert(name.to_owned());
        }
    }

    /// Adds the names after `c`, with dots between.
    fn read(&mut self, mut cursor: Cursor<'_>) {
        let mut path = vec![];
        while let Some((name, next)) =
            cursor.punct().filter(|(punct, _)| punct.as_char() == '.').and_then(|(_, next)| next.ident())
        {
            path.push(name.to_string());
            cursor = next;
        }
        if !path.is_empty() {
            self.reads.insert((path, cursor.group(Delimiter::Parenthesis).is_some()));
        }
    }
}

/// Whether a name is that of a type, a trait, a variant or a constant.
pub(crate) fn is_capitalised(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase())
}

/// What follows a path of modules, and what follows that.
pub(crate) fn after_path(tokens: TokenStream, path: &[&str], names: &mut BTreeSet<String>) {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let name = |index: usize| match tokens.get(index) {
        Some(TokenTree::Ident(name)) => Some(name.to_string()),
        _ => None,
    };
    let follows = |index: usize| is(&tokens, index, ':') && is(&tokens, index + 1, ':');
    for (index, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token {
            after_path(group.stream(), path, names);
        }
        let begins = index < 2 || !follows(index - 2);
        let reached = path.iter().enumerate().all(|(step, module)| {
            (step == 0 || follows(index + 3 * step - 2)) && name(index + 3 * step).as_deref() == Some(module)
        });
        if begins && reached {
            let mut next = index + 3 * path.len() - 2;
            while follows(next) {
                names.extend(name(next + 2));
                next += 3;
            }
        }
    }
}

/// Whether code may read this path as it does: [`settled`] would leave it.
pub(crate) fn is_settled(path: &[String], called: bool, config: &dyn Fields) -> bool {
    let mut at = config;
    for (index, name) in path.iter().enumerate() {
        let called = called && index + 1 == path.len();
        match at.field(name) {
            Some(Read::Nested(within)) => at = within,
            Some(Read::Field) => return !called,
            Some(Read::Method) => return called,
            None => return true,
        }
    }
    true
}

/// The same code, where reads of fields that have a method are calls, and reads of plain fields are none.
pub(crate) fn settled(tokens: TokenStream, config: &dyn Fields, changed: &mut bool) -> TokenStream {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let mut output: Vec<TokenTree> = vec![];
    let mut index = 0;
    while let Some(token) = tokens.get(index) {
        index += 1;
        if let TokenTree::Group(group) = token {
            let mut inner = Group::new(group.delimiter(), settled(group.stream(), config, changed));
            inner.set_span(group.span());
            output.push(inner.into());
            continue;
        }
        output.push(token.clone());
        if !matches!(token, TokenTree::Ident(ident) if ident == "c") {
            continue;
        }
        let mut at = config;
        while let (true, Some(TokenTree::Ident(name))) = (is(&tokens, index, '.'), tokens.get(index + 1)) {
            let read = at.field(&name.to_string());
            let call = called(&tokens, index + 2).is_some_and(|group| group.stream().is_empty());
            output.extend(tokens[index..index + 2].iter().cloned());
            index += 2;
            match read {
                Some(Read::Nested(within)) => {
                    at = within;
                    continue;
                }
                Some(Read::Field) if call => {
                    *changed = true;
                    index += 1;
                }
                Some(Read::Method) if !call => {
                    *changed = true;
                    output.push(Group::new(Delimiter::Parenthesis, TokenStream::new()).into());
                }
                _ => {}
            }
            break;
        }
    }
    output.into_iter().collect()
}

fn is(tokens: &[TokenTree], index: usize, c: char) -> bool {
    matches!(tokens.get(index), Some(TokenTree::Punct(punct)) if punct.as_char() == c)
}

fn called(tokens: &[TokenTree], index: usize) -> Option<&Group> {
    match tokens.get(index) {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis => Some(group),
        _ => None,
    }
}
