//! What a file must import, and what it names that stands for nothing.

use std::collections::{BTreeMap, BTreeSet};

use syn::Item;

use crate::code::{Code, Placed, Unit, parse_piece};
use crate::names::is_capitalised;

/// What code may name without an import.
#[rustfmt::skip]
const PRELUDE: [&str; 40] = [
    "AsMut", "AsRef", "Box", "Clone", "Copy", "Debug", "Default", "DoubleEndedIterator", "Drop", "Eq", "Err",
    "ExactSizeIterator", "Extend", "Fn", "FnMut", "FnOnce", "From", "FromIterator", "Hash", "Into", "IntoIterator",
    "Iterator", "None", "Ok", "Option", "Ord", "PartialEq", "PartialOrd", "Result", "Self", "Send", "Sized", "Some",
    "String", "Sync", "ToOwned", "ToString", "TryFrom", "TryInto", "Vec",
];

impl Code {
    /// Imports what the code uses of these names, each with the path that it is imported from, one `use` for each module.
    pub fn import(&mut self, paths: &BTreeMap<String, String>) {
        let defined = self.defined();
        let used = |name: &str| {
            let mut units = self.items.iter().map(|unit| &unit.found);
            !defined.contains(name)
                && units.any(|found| {
                    // A variable that holds a function is known where it is; a type of an `impl` block is not.
                    let own = !is_capitalised(name) && found.declares.contains(name);
                    found.begins.contains(name) && !own
                })
        };
        let mut modules: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (_, path) in paths.iter().filter(|(name, _)| used(name)) {
            if let Some((module, name)) = path.rsplit_once("::") {
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
        let statements: Vec<_> = statements.flatten().map(Placed::from).collect();
        self.items.splice(0..0, statements);
    }

    /// Capitalised names that stand for nothing: neither imported nor defined here, nor known everywhere.
    pub fn unknown(&self) -> BTreeSet<&str> {
        let defined = self.defined();
        let found = || self.items.iter().map(|unit| &unit.found);
        let known = |name: &str| {
            PRELUDE.contains(&name)
                || defined.contains(name)
                || found().any(|found| found.declares.contains(name))
        };
        let names = found().flat_map(|found| found.begins.iter().map(String::as_str));
        names.filter(|name| is_capitalised(name) && !known(name)).collect()
    }

    /// The names of the file's own items and of what it imports.
    fn defined(&self) -> BTreeSet<String> {
        self.items.iter().flat_map(|unit| unit.defined()).collect()
    }
}

impl Unit {
    /// The names that the item gives to something, for the whole file.
    fn defined(&self) -> Vec<String> {
        let ident = match self.item() {
            Item::Use(_) => return self.found.declares.iter().cloned().collect(),
            Item::Enum(item) => {
                let variants = item.variants.iter().map(|variant| &variant.ident);
                return variants.chain([&item.ident]).map(ToString::to_string).collect();
            }
            Item::Const(item) => &item.ident,
            Item::Fn(item) => &item.sig.ident,
            Item::Mod(item) => &item.ident,
            Item::Static(item) => &item.ident,
            Item::Struct(item) => &item.ident,
            Item::Trait(item) => &item.ident,
            Item::Type(item) => &item.ident,
            _ => return vec![],
        };
        vec![ident.to_string()]
    }
}
