//! A module that is one of several: functions of the same names, of which the configuration chooses one.

use std::collections::BTreeSet;

use proc_macro2::{Ident, Span};
use quote::{ToTokens, quote};
use syn::{FnArg, Item, ItemFn, Pat, Signature};

use crate::code::{Code, Placed, Unit};
use crate::prune::shown;

/// One of the modules.
#[derive(Clone, Copy)]
pub struct Choice<'a> {
    /// The module.
    pub module: &'a str,
    /// The variant of `Config` that chooses it.
    pub variant: &'a str,
    /// Its code.
    pub code: &'a Code,
}

/// What keeps modules from standing for each other.
#[derive(Debug)]
pub struct Differs {
    /// The module.
    pub module: String,
    /// What is wrong with it.
    pub problem: String,
}

impl Code {
    /// The module that stands for these where others name these of its items: each function calls that of the module which
    /// the configuration, `c`, is of. Types that it shows must be the same in all; they become its own, and their names are
    /// returned.
    ///
    /// # Errors
    /// What one of the modules lacks, or has in another form than the first.
    pub fn dispatch(
        choices: &[Choice<'_>],
        named: &BTreeSet<String>,
    ) -> Result<(Self, BTreeSet<String>), Differs> {
        let mut code = Self { attrs: vec![], items: vec![] };
        let Some(first) = choices.first() else { return Ok((code, BTreeSet::new())) };
        let shown = shown(&first.code.items, named);
        let shared = shared(&first.code.items, &shown);
        for name in &shared {
            same(choices, name)?;
        }
        for placed in &first.code.items {
            match placed.item() {
                Item::Fn(item) if shown.contains(&item.sig.ident.to_string()) => {
                    code.items.push(choose(choices, placed, &item.sig)?);
                }
                item if name_of(item).is_some_and(|name| shared.contains(&name)) => {
                    code.items.push(placed.clone());
                }
                _ => {}
            }
        }
        for choice in &choices[1..] {
            let functions = choice.code.items.iter().filter_map(|placed| match placed.item() {
                Item::Fn(item) => Some(item.sig.ident.to_string()),
                _ => None,
            });
            if let Some(name) = functions
                .into_iter()
                .find(|name| named.contains(name) && function(first.code, name).is_none())
            {
                return Err(differs(first, format!("has no `{name}`, which `{}` has", choice.module)));
            }
        }
        Ok((code, shared))
    }

    /// Leaves out the types of these names, with their blocks, and what is private to them.
    pub fn without(&mut self, names: &BTreeSet<String>) {
        self.items.retain(|placed| name_of(placed.item()).is_none_or(|name| !names.contains(&name)));
    }
}

/// The types that a module shows, and the items that they are made of.
fn shared(items: &[Placed], shown: &BTreeSet<String>) -> BTreeSet<String> {
    let is_function = |item: &Item, name: &str| matches!(item, Item::Fn(item) if item.sig.ident == name);
    let names: Vec<_> = items.iter().filter_map(|placed| name_of(placed.item())).collect();
    let is_shown_function =
        |name: &String| shown.contains(name) && items.iter().any(|placed| is_function(placed.item(), name));
    let mut shared: BTreeSet<String> =
        names.iter().filter(|name| shown.contains(*name) && !is_shown_function(name)).cloned().collect();
    loop {
        let before = shared.len();
        for placed in items {
            if name_of(placed.item()).is_some_and(|name| shared.contains(&name)) {
                let within = names.iter().filter(|name| placed.found.names.contains_key(*name));
                shared.extend(within.filter(|name| !is_shown_function(name)).cloned());
            }
        }
        if shared.len() == before {
            return shared;
        }
    }
}

/// The name of an item, and of the type that a block is for.
fn name_of(item: &Item) -> Option<String> {
    match item {
        Item::Fn(item) => Some(item.sig.ident.to_string()),
        Item::Struct(item) => Some(item.ident.to_string()),
        Item::Const(item) => Some(item.ident.to_string()),
        Item::Impl(block) => match &*block.self_ty {
            syn::Type::Path(path) => path.path.get_ident().map(ToString::to_string),
            _ => None,
        },
        _ => None,
    }
}

/// Refuses items of a name that are not the same in all modules.
fn same(choices: &[Choice<'_>], name: &str) -> Result<(), Differs> {
    let text = |choice: &Choice<'_>| -> Vec<String> {
        let items = choice.code.items.iter().map(|placed| placed.item());
        items
            .filter(|item| name_of(item).is_some_and(|other| other == name))
            .map(|item| item.to_token_stream().to_string())
            .collect()
    };
    let first = text(&choices[0]);
    match choices.iter().find(|choice| text(choice) != first) {
        None => Ok(()),
        Some(choice) => {
            let what = if text(choice).is_empty() { "has no" } else { "has another" };
            Err(differs(choice, format!("{what} `{name}` than `{}`, and others see it", choices[0].module)))
        }
    }
}

fn differs(choice: &Choice<'_>, problem: String) -> Differs {
    Differs { module: choice.module.to_owned(), problem }
}

fn function<'a>(code: &'a Code, name: &str) -> Option<(&'a ItemFn, &'a Placed)> {
    code.items.iter().find_map(|placed| match placed.item() {
        Item::Fn(item) if item.sig.ident == name => Some((item, placed)),
        _ => None,
    })
}

/// The documentation of an item, line by line.
fn documentation(placed: &Placed) -> Vec<&str> {
    placed.remarks.iter().map(String::as_str).filter(|remark| remark.starts_with("///")).collect()
}

/// The types of what a function takes, and what it gives.
fn types(signature: &Signature) -> Vec<String> {
    let inputs = signature.inputs.iter().map(|argument| match argument {
        FnArg::Typed(argument) => argument.ty.to_token_stream().to_string(),
        FnArg::Receiver(_) => "self".to_owned(),
    });
    inputs.chain([signature.output.to_token_stream().to_string()]).collect()
}

/// A function with the signature of the first module's that calls the one of the module which `c` is of.
fn choose(choices: &[Choice<'_>], placed: &Placed, signature: &Signature) -> Result<Placed, Differs> {
    let name = &signature.ident;
    let docs = documentation(placed);
    let mut same = !docs.is_empty();
    for choice in choices {
        let Some((item, other)) = function(choice.code, &name.to_string()) else {
            return Err(differs(choice, format!("has no `{name}`, which `{}` has", choices[0].module)));
        };
        if types(&item.sig) != types(signature) {
            let problem = format!(
                "has `{}`, where `{}` has `{}`",
                print(&item.sig),
                choices[0].module,
                print(signature)
            );
            return Err(differs(choice, problem));
        }
        same &= documentation(other) == docs;
    }
    let mut signature = signature.clone();
    let mut arguments = vec![];
    let mut chooses = false;
    for (index, argument) in signature.inputs.iter_mut().enumerate() {
        let FnArg::Typed(argument) = argument else { continue };
        let is_config = argument.ty.to_token_stream().to_string() == "& Config";
        let ident = match &*argument.pat {
            _ if is_config => Ident::new("c", Span::call_site()),
            Pat::Ident(pattern) => pattern.ident.clone(),
            _ => argument_name(choices, &name.to_string(), index),
        };
        chooses |= is_config;
        *argument.pat = syn::parse_quote!(#ident);
        arguments.push(ident);
    }
    if !chooses {
        let problem =
            format!("has `{}`, which takes no `c: &Config` that could choose it", print(&signature));
        return Err(differs(&choices[0], problem));
    }
    let arms = choices.iter().map(|choice| {
        let (module, variant) =
            (Ident::new(choice.module, Span::call_site()), Ident::new(choice.variant, Span::call_site()));
        quote!(Config::#variant(c) => #module::#name(#(#arguments),*),)
    });
    let doc = format!(" `{name}` of the model that `c` is of.");
    let attrs = match placed.item() {
        Item::Fn(item) if same => item.attrs.clone(),
        _ => vec![syn::parse_quote!(#[doc = #doc])],
    };
    let item: ItemFn = syn::parse_quote!(#(#attrs)* #signature { match c { #(#arms)* } });
    let remarks = if same { placed.remarks.clone() } else { [].into() };
    Ok(Placed { unit: Unit::new(Item::Fn(item)), remarks })
}

/// What a module calls an argument that the first one does not name.
fn argument_name(choices: &[Choice<'_>], name: &str, index: usize) -> Ident {
    let named = choices.iter().filter_map(|choice| function(choice.code, name)).find_map(|(item, _)| {
        match item.sig.inputs.iter().nth(index)? {
            FnArg::Typed(argument) => match &*argument.pat {
                Pat::Ident(pattern) => Some(pattern.ident.clone()),
                _ => None,
            },
            FnArg::Receiver(_) => None,
        }
    });
    named.unwrap_or_else(|| Ident::new(&format!("argument_{index}"), Span::call_site()))
}

/// A signature on one line.
fn print(signature: &Signature) -> String {
    let item: Item = syn::parse_quote!(#signature {});
    let line = Unit::new(item).printed().split_whitespace().collect::<Vec<_>>().join(" ");
    line.trim_end_matches("{}").trim().replace("( ", "(").replace(", )", ")")
}
