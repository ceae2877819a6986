//! `--bisect CASE --intermediates FILE`: which part of a graph is the first to depart from the reference.

use std::path::Path;
use std::process::ExitCode;

use super::Suite;
use super::arguments::Arguments;
use super::subject::{Request, Subject};
use crate::golden::{Case, OutputReport, TOLERANCE, compare, tensors};
use crate::graph::probe::Probe;
use crate::{AnyModel, Error, Result, Value, Values};

/// Prints a line for each part that both sides have, in the order in which the graph computes them.
pub(super) fn main(subject: Subject, suite: &Suite, arguments: &[String]) -> Result<ExitCode> {
    let arguments = Arguments::parse(arguments)?;
    let ([dir], Some(file)) = (arguments.alone.as_slice(), arguments.get("intermediates")) else {
        let help = "write `--bisect CASE --intermediates FILE`";
        return Err(Error::input("--bisect", "needs a case and what the reference's modules give", help));
    };
    let (hardware, precision) = (arguments.hardware()?, arguments.precision()?);
    let tolerance = suite.backend(hardware).map_or(TOLERANCE, |backend| backend.tolerance(precision));
    let (case, wanted) = (Case::open(Path::new(dir))?, tensors(Path::new(file))?);
    let parts: Vec<String> = wanted.keys().cloned().collect();
    let loaded = (subject.load)(Request {
        checkpoint: dir,
        hardware: Some(hardware),
        precision,
        weights: case.weights()?,
        probes: &parts,
        ..Request::default()
    })?;
    let got = loaded.run(case.inputs.clone())?;
    let reports = reports(loaded.probed(), &got, &wanted, tolerance);
    for report in &reports {
        println!("  {}", line(report));
    }
    match reports.iter().find(|report| departs(report)) {
        Some(first) => {
            println!("{}: departs first in {}", case.name, first.name);
            Ok(ExitCode::FAILURE)
        }
        None => {
            let compared = reports.iter().filter(|report| report.max_rel.is_some()).count();
            println!("{}: {compared} of {} parts compared, none departs", case.name, wanted.len());
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// How each part compares, by the value of it that is nearest to what the reference's module gives: a sum that the
/// reference makes elsewhere may carry the part's name too.
fn reports(probed: &[Probe], got: &Values, wanted: &Values, tolerance: f64) -> Vec<OutputReport> {
    let report = |(part, outputs): &Probe| {
        let want = wanted.get(part)?;
        let one = |value: &Value| Values::from([(part.clone(), value.clone())]);
        let values = outputs.iter().filter_map(|output| got.get(output));
        let reports = values.filter_map(|value| compare(&one(value), &one(want), tolerance).pop());
        let off = |report: &OutputReport| report.max_rel.unwrap_or(f64::INFINITY);
        reports.reduce(|best, other| if off(&other) < off(&best) { other } else { best })
    };
    probed.iter().filter_map(report).collect()
}

/// A shape that differs says that the reference's module gives something else, not that numbers are wrong.
fn departs(report: &OutputReport) -> bool {
    let other = report.problem.as_ref().is_some_and(|problem| problem.starts_with("shape"));
    !report.passed && !other
}

fn line(report: &OutputReport) -> String {
    let verdict = match (departs(report), report.passed) {
        (true, _) => "departs",
        (false, true) => "agrees",
        (false, false) => "other",
    };
    let found = match (&report.problem, report.max_rel) {
        (Some(problem), _) => problem.clone(),
        (None, off) => format!("{:.1e}", off.unwrap_or(f64::NAN)),
    };
    format!("{verdict:<8} {} {:?}: {found}", report.name, report.shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_part_that_departs_is_told_from_one_of_another_shape() {
        let value = |numbers: &[f32]| Value::F32(ndarray::arr1(numbers).into_dyn());
        let named = |pairs: &[(&str, &[f32])]| -> Values {
            pairs.iter().map(|(name, numbers)| ((*name).to_owned(), value(numbers))).collect()
        };
        let got = named(&[("probe.0", &[1.0, 2.0]), ("probe.1", &[7.0, 2.0]), ("logits", &[3.0])]);
        let wanted = named(&[("a", &[1.0, 2.0]), ("b", &[1.0, 5.0]), ("c", &[4.0]), ("d", &[3.0])]);
        let parts: [(&str, &[&str]); 4] = [
            ("a", &["probe.0", "probe.1"]),
            ("b", &["logits"]),
            ("c", &["probe.1", "logits"]),
            ("d", &["logits"]),
        ];
        let probed = parts.map(|(part, outputs)| {
            (part.to_owned(), outputs.iter().map(|&output| output.to_owned()).collect::<Vec<_>>())
        });
        let reports = reports(&probed, &got, &wanted, 1e-4);
        let lines: Vec<_> = reports.iter().map(line).collect();
        assert_eq!(
            lines,
            [
                "agrees   a [2]: 0.0e0",
                "other    b [2]: shape [1], the reference has [2]",
                "departs  c [1]: 2.5e-1",
                "agrees   d [1]: 0.0e0",
            ]
        );
        assert_eq!(reports.iter().find(|report| departs(report)).map(|r| r.name.as_str()), Some("c"));
    }
}
