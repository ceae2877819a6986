//! What the page holds, small enough for hundreds of models: texts once, a case's differences in three characters.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexSet;
use serde::Serialize;
use weft_generator::spec::not_yet::Elsewhere;

use super::super::covered::Covered;
use super::super::gather::{self, Declared, Report};
use super::super::groups::Group;
use super::super::precisions::Accuracy;

/// The page's data. Numbers in the place of names are positions in `texts` and `declared`.
#[derive(Serialize)]
pub struct Page<'a> {
    backends: &'a [&'static str],
    texts: Vec<String>,
    declared: Vec<Declared>,
    models: Vec<Model<'a>>,
    architectures: &'a [Group],
    categories: &'a [Group],
    covered: &'a [Covered],
    elsewhere: &'a [Elsewhere],
    /// Model, backend, what.
    gaps: Vec<(usize, usize, usize)>,
}

#[derive(Serialize)]
struct Model<'a> {
    name: &'a str,
    title: &'a str,
    category: usize,
    architecture: usize,
    /// Cases by the class that serves them; other lists count them through.
    cases: Vec<(&'a str, Vec<&'a str>)>,
    /// One per backend.
    cells: Vec<Cell<'a>>,
}

#[derive(Serialize)]
struct Cell<'a> {
    /// The evidence.
    is: &'a str,
    declared: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    precisions: Vec<Precision<'a>>,
    /// Nodes by device.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    nodes: &'a BTreeMap<String, u64>,
    /// Milliseconds of loading and of the first run, megabytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    numbers: Option<[Option<f64>; 3]>,
    /// Why cases do not count as passed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    why: Vec<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    machines: Vec<usize>,
}

#[derive(Serialize)]
struct Precision<'a> {
    name: &'a str,
    is: &'a str,
    /// How near the reference's outputs quantized weights came, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    near: Option<String>,
    /// Three characters a case: `31h` for 3.1e-7, `0` for none, `ok`, and nothing for what was not run.
    cases: String,
    /// What did not pass: the case, whether it is a known failure, why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    bad: Vec<(usize, bool, usize)>,
}

impl<'a> Page<'a> {
    pub fn new(report: &'a Report) -> Self {
        let (mut texts, mut declared) = (IndexSet::new(), Vec::new());
        let models = report.models.iter().map(|own| model(own, &mut texts, &mut declared)).collect();
        let at: BTreeMap<_, _> =
            report.models.iter().enumerate().map(|(at, model)| (model.model.as_str(), at)).collect();
        let gaps = report.gaps.iter().filter_map(|gap| {
            let backend = report.backends.iter().position(|backend| *backend == gap.backend)?;
            Some((*at.get(gap.model.as_str())?, backend, note(&mut texts, &gap.what)))
        });
        let gaps = gaps.collect();
        Self {
            backends: &report.backends,
            texts: texts.into_iter().collect(),
            declared,
            models,
            architectures: &report.architectures,
            categories: &report.categories,
            covered: &report.covered,
            elsewhere: &report.elsewhere,
            gaps,
        }
    }
}

/// A text's position.
fn note(texts: &mut IndexSet<String>, text: &str) -> usize {
    texts.get_index_of(text).unwrap_or_else(|| texts.insert_full(text.to_owned()).0)
}

fn model<'a>(
    own: &'a gather::Model,
    texts: &mut IndexSet<String>,
    declared: &mut Vec<Declared>,
) -> Model<'a> {
    let of_class: BTreeSet<_> = own
        .cells
        .iter()
        .flat_map(|cell| &cell.cases)
        .map(|case| (case.case.as_str(), case.class.as_str()))
        .collect();
    // A case that only failed before its class was known has another with it.
    let classes: BTreeMap<&str, &str> = of_class.into_iter().collect();
    let mut cases: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (case, class) in classes {
        cases.entry(class).or_default().push(case);
    }
    let order: Vec<&str> = cases.values().flatten().copied().collect();
    let cells = own.cells.iter().map(|cell| self::cell(cell, &order, texts, declared)).collect();
    Model {
        name: &own.model,
        title: &own.title,
        category: note(texts, &own.category),
        architecture: note(texts, &own.architecture),
        cases: cases.into_iter().collect(),
        cells,
    }
}

fn cell<'a>(
    own: &'a gather::Cell,
    order: &[&str],
    texts: &mut IndexSet<String>,
    declared: &mut Vec<Declared>,
) -> Cell<'a> {
    let machines: BTreeSet<_> = own.cases.iter().map(|case| case.machine.as_str()).collect();
    let megabytes = own.memory_bytes.map(|bytes| (bytes / 1_000_000) as f64);
    let tenths = |ms: Option<f64>| ms.map(|ms| (ms * 10.0).round() / 10.0);
    let numbers = [tenths(own.load_ms), tenths(own.first_ms), megabytes];
    let place = declared.iter().position(|known| *known == own.declared).unwrap_or_else(|| {
        declared.push(own.declared.clone());
        declared.len() - 1
    });
    Cell {
        is: &own.evidence,
        declared: place,
        precisions: precisions(own).map(|(name, is)| precision(own, name, is, order, texts)).collect(),
        nodes: &own.placement,
        numbers: numbers.iter().any(Option::is_some).then_some(numbers),
        why: own.reasons.iter().map(|reason| note(texts, reason)).collect(),
        machines: machines.into_iter().map(|machine| note(texts, machine)).collect(),
    }
}

/// The formats that were tried, from the widest.
fn precisions(cell: &gather::Cell) -> impl Iterator<Item = (&str, &str)> {
    let known = crate::test::PRECISIONS;
    let rank = |name: &str| known.iter().position(|known| *known == name).unwrap_or(known.len());
    let mut tried: Vec<_> = cell.precisions.iter().map(|(name, is)| (name.as_str(), is.as_str())).collect();
    tried.sort_by_key(|(name, _)| rank(name));
    tried.into_iter()
}

fn precision<'a>(
    cell: &gather::Cell,
    name: &'a str,
    is: &'a str,
    order: &[&str],
    texts: &mut IndexSet<String>,
) -> Precision<'a> {
    let own: BTreeMap<_, _> = cell
        .cases
        .iter()
        .filter(|case| case.precision == name)
        .map(|case| (case.case.as_str(), case))
        .collect();
    let (mut codes, mut bad) = (String::new(), Vec::new());
    for (at, case) in order.iter().enumerate() {
        let Some(case) = own.get(case) else {
            codes += "   ";
            continue;
        };
        if matches!(case.outcome, "failed" | "known failure") {
            let why = note(texts, case.reason.as_deref().unwrap_or_default());
            bad.push((at, case.outcome != "failed", why));
        }
        codes += &code(case.outcome, case.max_rel);
    }
    let near = cell.accuracy.get(name).map(Accuracy::text);
    Precision { name, is, near, cases: codes.trim_end().to_owned(), bad }
}

fn code(outcome: &str, max_rel: Option<f64>) -> String {
    match max_rel {
        _ if outcome == "not run" => "   ".into(),
        None => "ok ".into(),
        Some(0.0) => "0  ".into(),
        Some(value) => difference(value).unwrap_or_else(|| "?  ".into()),
    }
}

/// Two digits and a letter: `a` for one, `b` for a tenth, `A` for ten.
fn difference(value: f64) -> Option<String> {
    let text = format!("{value:.1e}");
    let (mantissa, exponent) = text.split_once('e')?;
    let exponent: i32 = exponent.parse().ok()?;
    let letter = match exponent {
        ..=0 => b'a'.checked_add(u8::try_from(-exponent).ok()?).filter(u8::is_ascii_lowercase)?,
        _ => b'A'.checked_add(u8::try_from(exponent - 1).ok()?).filter(u8::is_ascii_uppercase)?,
    };
    Some(format!("{}{}", mantissa.replace('.', ""), char::from(letter)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_two_digits_and_its_power_of_ten() {
        let codes: Vec<_> = [1.0, 3.14e-7, 0.05, 25.0, 9.96e-3].into_iter().filter_map(difference).collect();
        assert_eq!(codes, ["10a", "31h", "50c", "25A", "10c"]);
        assert_eq!([difference(1e-40), difference(f64::INFINITY)], [None, None]);
        assert_eq!(
            [code("passed", None), code("passed", Some(0.0)), code("not run", None)],
            ["ok ", "0  ", "   "]
        );
    }
}
