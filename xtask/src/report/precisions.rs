//! Number formats: what is declared of each, and how near the reference quantized weights came.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::Serialize;

use super::gather::{Cell, Report};
use crate::record::Record;
use crate::table::Table;

/// How near the reference's outputs quantized weights came on one backend.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Accuracy {
    /// The size of the difference over that of the reference's output: the worst output of each case, their median.
    pub relative: f64,
    /// The mean Kullback-Leibler divergence of logits from the reference's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kl: Option<f64>,
    /// How often the first choice is the reference's, on average.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top1: Option<f64>,
}

impl Accuracy {
    /// That of some cases; none where nothing was measured.
    pub fn of(records: &[&Record]) -> Option<Self> {
        let all: Vec<_> = records.iter().filter_map(|record| record.accuracy()).collect();
        let values = |key: &str| all.iter().filter_map(|own| own.get(key).copied()).collect::<Vec<f64>>();
        let mut relative = values("relative");
        relative.sort_by(f64::total_cmp);
        let mean =
            |values: Vec<f64>| (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
        let relative = *relative.get(relative.len() / 2)?;
        Some(Self { relative, kl: mean(values("kl")), top1: mean(values("top1")) })
    }

    /// `0.15, kl 0.02, 73 %`.
    pub fn text(&self) -> String {
        let kl = self.kl.map(|kl| format!(", kl {}", short(kl)));
        let top1 = self.top1.map(|top1| format!(", {:.0} %", 100.0 * top1));
        format!("{}{}{}", short(self.relative), kl.unwrap_or_default(), top1.unwrap_or_default())
    }
}

/// Two significant digits.
pub fn short(value: f64) -> String {
    let value: f64 = format!("{value:.1e}").parse().unwrap_or(value);
    if value != 0.0 && value < 1e-3 { format!("{value:.1e}") } else { value.to_string() }
}

/// Whether a format's weights are quantized.
pub fn is_quantized(name: &str) -> bool {
    name.starts_with("int")
}

/// What the sources say of each format, by its name here.
pub fn declared(said: &IndexMap<String, String>) -> BTreeMap<String, String> {
    let name = |said: &str| match said {
        "32-bit" => "f32".to_owned(),
        "16-bit" => "f16".to_owned(),
        said => match said.strip_suffix(" mixed").unwrap_or(said).strip_suffix("-bit") {
            Some(bits) if said.ends_with("mixed") => format!("int{bits}-mixed"),
            Some(bits) => format!("int{bits}"),
            None => said.to_owned(),
        },
    };
    said.iter().map(|(format, how)| (name(format), how.clone())).collect()
}

/// Formats of quantized weights by model, a row each; declared words, evidence, cases, accuracy.
pub fn table(report: &Report) -> Table {
    let backends = report.backends.iter().map(|&name| name.to_owned());
    let mut table =
        Table::with_columns(["model", "precision"].map(str::to_owned).into_iter().chain(backends).collect());
    for model in &report.models {
        for precision in crate::test::PRECISIONS.into_iter().filter(|name| is_quantized(name)) {
            if model.cells.iter().all(|cell| !cell.precisions.contains_key(precision)) {
                continue;
            }
            let cells = model.cells.iter().map(|cell| shown(cell, precision));
            table.row([model.model.clone(), precision.to_owned()].into_iter().chain(cells));
        }
    }
    table
}

fn shown(cell: &Cell, precision: &str) -> String {
    let declared = cell.declared.precision.get(precision).map(|word| format!("{word}: "));
    let own = || cell.cases.iter().filter(|case| case.precision == precision);
    let passed = own().filter(|case| case.outcome == "passed").count();
    let observed = match cell.precisions.get(precision).map(String::as_str) {
        None | Some("untested") => "-".into(),
        Some(level) => {
            let accuracy = cell.accuracy.get(precision).map(|own| format!(" ({})", own.text()));
            format!("{level} {passed}/{}{}", own().count(), accuracy.unwrap_or_default())
        }
    };
    format!("{}{observed}", declared.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_formats_have_the_names_of_precisions() {
        let said = ["16-bit", "8-bit", "4-bit mixed", "2-bit", "other"];
        let said = said.into_iter().map(|name| (name.to_owned(), "good".to_owned())).collect();
        let names: Vec<_> = declared(&said).into_keys().collect();
        assert_eq!(names, ["f16", "int2", "int4-mixed", "int8", "other"]);
    }

    #[test]
    fn accuracy_is_a_median_and_means() {
        let record = |relative: f64, top1: f64| {
            let accuracy =
                serde_json::json!({"x relative": 0.01, "logits relative": relative, "logits top1": top1});
            Record { other: [("accuracy".to_owned(), accuracy)].into_iter().collect(), ..Record::default() }
        };
        let records = [record(0.1, 1.0), record(0.3, 0.5), record(0.2, 0.0), Record::default()];
        let accuracy = Accuracy::of(&records.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(accuracy, Accuracy { relative: 0.2, kl: None, top1: Some(0.5) });
        assert_eq!(accuracy.text(), "0.2, 50 %");
        assert_eq!(Accuracy::of(&[&Record::default()]), None);
        assert_eq!([short(0.000_314_15), short(0.019_6), short(0.0)], ["3.1e-4", "0.02", "0"]);
    }
}
