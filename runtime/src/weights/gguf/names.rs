//! The checkpoint's names of a file's tensors.

use std::collections::{BTreeSet, HashMap};

use super::{Entry, Place};
use crate::gguf::{Gguf, config};

/// More experts than any model has.
const MOST_EXPERTS: usize = 1 << 12;

/// The checkpoint's names by the file's.
pub(super) struct Names {
    by_file: HashMap<&'static str, &'static str>,
    /// Names of the tensors of some layers, before those of all.
    of_some: Vec<(&'static str, BTreeSet<u64>, &'static str)>,
    /// How many blocks are of the first stack, whose letter takes the place of `{stack}`; the rest are of the second.
    of_stack: Option<u64>,
}

impl Names {
    pub fn of(gguf: &Gguf) -> Self {
        let (mut by_file, mut of_some) = (HashMap::new(), vec![]);
        for (file, checkpoint) in gguf.architecture.tensors.iter().copied().flatten() {
            match file.split_once(" with ") {
                Some((file, tensor)) => of_some.push((file, config::layers_with(gguf, tensor), *checkpoint)),
                None => _ = by_file.insert(*file, *checkpoint),
            }
        }
        Self { by_file, of_some, of_stack: config::layers_of_stack(gguf) }
    }

    /// Adds a tensor under its name, or under those of all experts that it holds; under its own where it has no other.
    pub fn add(&self, name: &str, entry: Entry, entries: &mut HashMap<String, Entry>) {
        if let Some(found) = self.named(name) {
            entries.insert(found, entry);
            return;
        }
        let (stem, ending) = match name.rsplit_once('.') {
            Some((stem, ending @ ("weight" | "bias"))) => (stem, Some(ending)),
            _ => (name, None),
        };
        let found = self.named(stem);
        let named = |stem: &str| ending.map_or_else(|| stem.to_owned(), |ending| format!("{stem}.{ending}"));
        match found {
            None => _ = entries.insert(name.to_owned(), entry),
            Some(found) if found.contains("{}") && entry.shape.len() > 1 => {
                let experts = entry.shape[0].min(MOST_EXPERTS);
                for expert in 0..experts {
                    let place = Place { expert, experts: entry.shape[0], ..entry.place };
                    let entry = Entry { place, shape: entry.shape[1..].to_vec(), undo: entry.undo.clone() };
                    entries.insert(named(&found.replace("{}", &expert.to_string())), entry);
                }
            }
            Some(found) => _ = entries.insert(named(&found), entry),
        }
    }

    /// What a name stands for, with the number of its layer.
    fn named(&self, name: &str) -> Option<String> {
        match layered(name) {
            Some((before, layer, rest)) => {
                let (name, number) = (format!("{before}blk.{{}}.{rest}"), layer.parse::<u64>().ok());
                let of_some = self.of_some.iter().find(|(file, layers, _)| {
                    *file == name && number.is_some_and(|number| layers.contains(&number))
                });
                let found = of_some.map(|found| &found.2).or_else(|| self.by_file.get(name.as_str()))?;
                let Some(layers) = self.of_stack else { return Some(found.replacen("{}", layer, 1)) };
                let number = number?;
                let stack = if number < layers { "L" } else { "H" };
                let layer = (number % layers).to_string();
                Some(found.replacen("{stack}", stack, 1).replacen("{}", &layer, 1))
            }
            None => self.by_file.get(name).map(|found| (*found).to_owned()),
        }
    }
}

/// What stands before `blk.`, the number of a layer, and its tensor.
fn layered(name: &str) -> Option<(&str, &str, &str)> {
    let before = ["", "enc.", "dec."]
        .into_iter()
        .find(|before| name.strip_prefix(before).is_some_and(|rest| rest.starts_with("blk.")))?;
    let (layer, rest) = name[before.len() + "blk.".len()..].split_once('.')?;
    Some((before, layer, rest))
}
