//! Leaves out of a file what nothing leads to, so that templates can offer more than a model needs.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{File, ImplItem, Item, Visibility};

/// Leaves out private functions, methods and types that nothing public and nothing in `kept` leads to.
pub(super) fn prune(file: &mut File, kept: &BTreeSet<String>) {
    loop {
        let named: Vec<_> = file.items.iter().map(|item| idents(item.to_token_stream())).collect();
        let private: Vec<_> = file.items.iter().map(|item| private(item).or_else(|| owner(item))).collect();
        let hidden: HashSet<_> = file.items.iter().filter_map(self::private).collect();
        // Items that can be left out are known by a name; the blocks of a hidden type share its fate.
        let name = |index: usize| private[index].as_ref().filter(|name| hidden.contains(*name));
        let mut reached: HashSet<String> =
            kept.iter().filter(|name| hidden.contains(*name)).cloned().collect();
        loop {
            let kept =
                (0..named.len()).filter(|&index| name(index).is_none_or(|name| reached.contains(name)));
            let mut next: HashSet<String> =
                kept.flat_map(|index| named[index].intersection(&hidden)).cloned().collect();
            next.extend(reached.iter().cloned());
            if next.len() == reached.len() {
                break;
            }
            reached = next;
        }
        let mut index = 0..;
        let before = file.items.len();
        file.items.retain(|_| {
            index.next().is_none_or(|index: usize| name(index).is_none_or(|name| reached.contains(name)))
        });
        let methods = prune_methods(file);
        if file.items.len() == before && !methods {
            return;
        }
    }
}

/// Leaves out private methods that nothing names; whether there were any.
fn prune_methods(file: &mut File) -> bool {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for item in &file.items {
        count(item.to_token_stream(), &mut counts);
    }
    let mut pruned = false;
    for item in &mut file.items {
        let Item::Impl(block) = item else { continue };
        if block.trait_.is_some() {
            continue;
        }
        let before = block.items.len();
        block.items.retain(|item| match item {
            ImplItem::Fn(method) if matches!(method.vis, Visibility::Inherited) => {
                counts.get(&method.sig.ident.to_string()).is_some_and(|&count| count > 1)
            }
            _ => true,
        });
        pruned |= block.items.len() != before;
    }
    pruned
}

/// The name of a private item that may be left out.
fn private(item: &Item) -> Option<String> {
    match item {
        Item::Fn(item) if matches!(item.vis, Visibility::Inherited) => Some(item.sig.ident.to_string()),
        Item::Struct(item) if matches!(item.vis, Visibility::Inherited) => Some(item.ident.to_string()),
        Item::Const(item) if matches!(item.vis, Visibility::Inherited) => Some(item.ident.to_string()),
        _ => None,
    }
}

/// The type that an `impl` block belongs to.
fn owner(item: &Item) -> Option<String> {
    match item {
        Item::Impl(block) => match &*block.self_ty {
            syn::Type::Path(path) => path.path.get_ident().map(ToString::to_string),
            _ => None,
        },
        _ => None,
    }
}

/// The names that occur.
pub(super) fn idents(tokens: TokenStream) -> HashSet<String> {
    let mut counts = BTreeMap::new();
    count(tokens, &mut counts);
    counts.into_keys().collect()
}

fn count(tokens: TokenStream, counts: &mut BTreeMap<String, usize>) {
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => *counts.entry(ident.to_string()).or_default() += 1,
            TokenTree::Group(group) => count(group.stream(), counts),
            _ => {}
        }
    }
}

/// Makes a file a module of another: its documentation is `doc`, and its parent sees the items of these names.
pub(super) fn enclose(file: &mut File, doc: &[String], seen: &BTreeSet<String>) {
    file.attrs.clear();
    for line in doc {
        let line = if line.is_empty() { String::new() } else { format!(" {line}") };
        file.attrs.push(syn::parse_quote!(#![doc = #line]));
    }
    let visibility = |name: &syn::Ident| -> Visibility {
        if seen.contains(&name.to_string()) { syn::parse_quote!(pub(super)) } else { Visibility::Inherited }
    };
    for item in &mut file.items {
        match item {
            Item::Fn(item) => item.vis = visibility(&item.sig.ident),
            Item::Const(item) => item.vis = visibility(&item.ident),
            Item::Struct(item) => {
                item.vis = visibility(&item.ident);
                for field in &mut item.fields {
                    field.vis = visibility(&item.ident);
                }
            }
            Item::Impl(block) if block.trait_.is_none() => {
                for item in &mut block.items {
                    if let ImplItem::Fn(method) = item {
                        method.vis = visibility(&method.sig.ident);
                    }
                }
            }
            _ => {}
        }
    }
}
