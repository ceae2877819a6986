//! `uses.yaml`: what templates may name without its path, by what it is imported from.

use std::collections::BTreeMap;

use super::Source;
use crate::spec::check::check;
use crate::spec::document::Problem;
use crate::spec::yaml;

/// The names that may be imported, by the path of what they are in; `self` is that itself.
pub(crate) type Uses = BTreeMap<String, Vec<String>>;

/// Each name with the path that it is imported from.
pub(super) fn read(source: &Source) -> Result<BTreeMap<String, String>, Vec<Problem>> {
    let node = yaml::parse(&source.shown, &source.text, 0).map_err(|problem| vec![problem])?;
    let mut problems = check::<Uses>(&node);
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut uses = BTreeMap::new();
    for entry in node.entries() {
        let module = &entry.key;
        for item in entry.value.items() {
            let name = item.text().unwrap_or_default();
            let called = match name {
                "self" => module.rsplit("::").next().unwrap_or(module),
                name => name,
            };
            match uses.get(called) {
                None => drop(uses.insert(called.to_owned(), format!("{module}::{name}"))),
                Some(known) => {
                    let message = format!("`{called}` stands for `{known}` already; a name is one thing");
                    problems.push(item.at.problem(module, message));
                }
            }
        }
    }
    if problems.is_empty() { Ok(uses) } else { Err(problems) }
}
