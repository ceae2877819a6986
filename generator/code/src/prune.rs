//! Leaves out of a file what nothing leads to, so that templates can offer more than a model needs.

use std::collections::{BTreeSet, HashSet};

use quote::ToTokens;
use syn::buffer::TokenBuffer;
use syn::{ImplItem, Item, Visibility};

use crate::code::{Placed, Unit};
use crate::names::Found;

/// Leaves out private functions, methods and types that nothing public and nothing in `kept` leads to.
pub(crate) fn prune(items: &mut Vec<Placed>, kept: &BTreeSet<String>) {
    loop {
        let private: Vec<_> =
            items.iter().map(|unit| private(unit.item()).or_else(|| owner(unit.item()))).collect();
        let hidden: HashSet<_> = items.iter().filter_map(|unit| self::private(unit.item())).collect();
        // Items that can be left out are known by a name; the blocks of a hidden type share its fate.
        let name = |index: usize| private[index].as_ref().filter(|name| hidden.contains(*name));
        let leads = |unit: &Unit| {
            hidden.iter().filter(|name| unit.found.names.contains_key(*name)).collect::<Vec<_>>()
        };
        let mut waiting: Vec<(usize, Vec<&String>)> =
            items.iter().map(|unit| leads(unit)).enumerate().collect();
        let mut reached: HashSet<&String> = kept.iter().filter_map(|name| hidden.get(name)).collect();
        loop {
            let before = waiting.len();
            waiting.retain(|(index, leads)| {
                let is_reached = name(*index).is_none_or(|name| reached.contains(name));
                if is_reached {
                    reached.extend(leads);
                }
                !is_reached
            });
            if waiting.len() == before {
                break;
            }
        }
        let mut index = 0..;
        let before = items.len();
        items.retain(|_| {
            index.next().is_none_or(|index: usize| name(index).is_none_or(|name| reached.contains(name)))
        });
        let methods = prune_methods(items);
        if items.len() == before && !methods {
            return;
        }
    }
}

/// Leaves out private methods that nothing names; whether there were any.
fn prune_methods(items: &mut [Placed]) -> bool {
    let mut pruned = vec![];
    for (index, unit) in items.iter().enumerate() {
        let Item::Impl(block) = unit.item() else { continue };
        if block.trait_.is_some() {
            continue;
        }
        let named = |item: &ImplItem| match item {
            ImplItem::Fn(method) if matches!(method.vis, Visibility::Inherited) => {
                let name = method.sig.ident.to_string();
                items.iter().filter_map(|unit| unit.found.names.get(&name)).sum::<usize>() > 1
            }
            _ => true,
        };
        if !block.items.iter().all(named) {
            let mut block = block.clone();
            block.items.retain(named);
            pruned.push((index, Unit::new(Item::Impl(block))));
        }
    }
    let any = !pruned.is_empty();
    for (index, unit) in pruned {
        items[index].unit = unit;
    }
    any
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

/// The inner documentation of these lines.
pub(crate) fn documentation(lines: &[String]) -> Vec<syn::Attribute> {
    let attribute = |line: &String| {
        let line = if line.is_empty() { String::new() } else { format!(" {line}") };
        syn::parse_quote!(#![doc = #line])
    };
    lines.iter().map(attribute).collect()
}

/// The names that a module shows when others name these: types in what is shown are shown too.
pub(crate) fn shown(items: &[Placed], named: &BTreeSet<String>) -> BTreeSet<String> {
    let types: BTreeSet<_> = (items.iter())
        .filter_map(|placed| match placed.item() {
            Item::Struct(item) => Some(item.ident.to_string()),
            _ => None,
        })
        .collect();
    let mut shown = named.clone();
    loop {
        let is_shown = |name: &syn::Ident| shown.contains(&name.to_string());
        let mut found = Found::default();
        let mut add = |tokens| found.add(TokenBuffer::new2(tokens).begin());
        for placed in items {
            match placed.item() {
                Item::Fn(item) if is_shown(&item.sig.ident) => add(item.sig.to_token_stream()),
                Item::Struct(item) if is_shown(&item.ident) => add(item.fields.to_token_stream()),
                Item::Impl(block) if block.trait_.is_none() => {
                    for item in &block.items {
                        match item {
                            ImplItem::Fn(method) if is_shown(&method.sig.ident) => {
                                add(method.sig.to_token_stream());
                            }
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        let before = shown.len();
        shown.extend(types.iter().filter(|name| found.names.contains_key(*name)).cloned());
        if shown.len() == before {
            return shown;
        }
    }
}

/// An item as one of a module that shows items of these names; nothing if that changes nothing.
pub(crate) fn enclosed(item: &Item, seen: &BTreeSet<String>, shown: &Visibility) -> Option<Item> {
    let visibility = |name: &syn::Ident| -> Visibility {
        if seen.contains(&name.to_string()) { shown.clone() } else { Visibility::Inherited }
    };
    let mut item = item.clone();
    match &mut item {
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
        _ => return None,
    }
    Some(item)
}
