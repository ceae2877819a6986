//! Tables of names: what modules of an original layout are called in `diffusers`.

use super::shapes::Shapes;
use super::{Piece, Tensor};
use crate::Result;

/// A module in the file, or a tensor, and what stands for it today; `*` is a number. Several are rows of the one in the file.
pub(super) struct Rule(pub &'static str, pub &'static [&'static str], pub Cut);

/// How several of today's modules share a stored one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// In equal parts; one alone has all.
    Equal,
    /// All but the last have as many rows as a hidden state is wide.
    Rest,
    /// It is one, whose halves are the other way round.
    Swapped,
}

/// The tensors by rules; `width` is that of hidden states. Names without a rule stay where `same`, and are refused otherwise.
pub(super) fn tensors(shapes: &Shapes, rules: &[Rule], width: usize, same: bool) -> Result<Vec<Tensor>> {
    let mut all = vec![];
    for (name, shape) in shapes.iter() {
        let (module, kind) = match name.rsplit_once('.') {
            Some((module, kind @ ("weight" | "bias"))) => (module, kind),
            _ => (name, ""),
        };
        let Some((rule, numbers, kind)) = found(rules, module, kind).or_else(|| found(rules, name, ""))
        else {
            match same {
                true => all.push(Tensor::whole(name, name)),
                false => return Err(shapes.unknown(name)),
            }
            continue;
        };
        let rows = shape.first().copied().unwrap_or_default();
        let count = rule.1.len();
        for (index, target) in rule.1.iter().enumerate() {
            let piece = match rule.2 {
                Cut::Swapped => Piece::Swapped,
                Cut::Equal if count == 1 => Piece::Whole,
                Cut::Equal => Piece::Rows { first: index * (rows / count), count: rows / count },
                Cut::Rest if index + 1 < count => Piece::Rows { first: index * width, count: width },
                Cut::Rest => Piece::Rows { first: index * width, count: rows.saturating_sub(index * width) },
            };
            let dot = if kind.is_empty() { "" } else { "." };
            let name_today = format!("{}{dot}{kind}", filled(target, &numbers));
            all.push(Tensor { name: name_today, stored: name.to_owned(), piece });
        }
    }
    Ok(all)
}

/// The rule for a module, the numbers of its name, and what of the module it is.
fn found<'a>(rules: &'a [Rule], name: &'a str, kind: &'a str) -> Option<(&'a Rule, Vec<&'a str>, &'a str)> {
    rules.iter().find_map(|rule| Some((rule, numbers(name, rule.0)?, kind)))
}

impl Tensor {
    pub(super) fn whole(name: &str, stored: &str) -> Self {
        Self { name: name.to_owned(), stored: stored.to_owned(), piece: Piece::Whole }
    }
}

/// The numbers of a name that a pattern is.
fn numbers<'a>(name: &'a str, pattern: &str) -> Option<Vec<&'a str>> {
    let (mut names, mut pieces) = (name.split('.'), pattern.split('.'));
    let mut numbers = vec![];
    loop {
        match (names.next(), pieces.next()) {
            (None, None) => return Some(numbers),
            (Some(number), Some("*")) if number.bytes().all(|c| c.is_ascii_digit()) => numbers.push(number),
            (Some(name), Some(piece)) if name == piece => {}
            _ => return None,
        }
    }
}

/// A pattern with its numbers.
fn filled(pattern: &str, numbers: &[&str]) -> String {
    let mut numbers = numbers.iter();
    let pieces = pattern.split('.').map(|piece| match piece {
        "*" => numbers.next().copied().unwrap_or_default(),
        piece => piece,
    });
    pieces.collect::<Vec<_>>().join(".")
}
