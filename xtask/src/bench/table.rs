//! Medians, their ratios, and whether the limits are kept.

use std::fmt::Write;

use anyhow::Result;
use serde::Serialize;

use super::{Measured, Shape};
use crate::table::Table;

/// A limit, and what was measured.
#[derive(Debug, Serialize)]
pub struct Verdict {
    pub what: String,
    pub value: f64,
    pub limit: f64,
    pub unit: &'static str,
    pub kept: bool,
}

impl Verdict {
    fn at_most(what: impl Into<String>, value: f64, limit: f64, unit: &'static str) -> Self {
        Self { what: what.into(), value, limit, unit, kept: value <= limit }
    }
}

/// PyTorch with the attention it chooses by itself, and its export.
const PYTORCH: &str = "pytorch";
const EXPORTED: &str = "onnxruntime";

pub fn verdicts(measured: &Measured, shapes: &[Shape]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for shape in shapes {
        let name = shape.name();
        let own = median_of(measured, &name, "weft");
        for (peer, limit) in [(PYTORCH, shape.limit), (EXPORTED, 1.0)] {
            let ratio = own / median_of(measured, &name, peer);
            verdicts.push(Verdict::at_most(format!("{name}: time of {peer}'s"), ratio, limit, "×"));
        }
    }
    let opening = &measured.opening;
    let memory = opening.private_bytes / opening.weights_bytes;
    let building = opening.graph_ms + opening.emit_ms;
    verdicts.push(Verdict::at_most("config + safetensors to first result", opening.first_ms, 1000.0, " ms"));
    verdicts.push(Verdict::at_most("graph building and ONNX emission", building, 20.0, " ms"));
    verdicts.push(Verdict::at_most("private memory of the weights", memory, 1.3, "×"));
    verdicts.push(Verdict::at_most("regenerating a model", measured.generator.model_ms, 10.0, " ms"));
    verdicts.push(Verdict::at_most(
        "generate with nothing to do",
        measured.generator.nothing_ms,
        100.0,
        " ms",
    ));
    let building = measured.building.crate_ms;
    verdicts.push(Verdict::at_most("building a further crate and its tests", building, 1500.0, " ms"));
    verdicts
}

pub fn text(measured: &Measured, shapes: &[Shape], verdicts: &[Verdict]) -> String {
    let mut table =
        Table::new(["shape", "contender", "median ms", "fastest", "slowest", "runs", "weft / it"]);
    for shape in shapes {
        let name = shape.name();
        let own = median_of(measured, &name, "weft");
        let contenders = measured.runs_ms.get(&name).into_iter().flatten();
        let mut contenders: Vec<_> = contenders.collect();
        contenders.sort_by_key(|(contender, _)| *contender != "weft");
        for (contender, times) in contenders {
            let ends = (times.iter().copied().reduce(f64::min), times.iter().copied().reduce(f64::max));
            let ms = |value: f64| format!("{value:.1}");
            table.row([
                name.clone(),
                contender.clone(),
                ms(median(times)),
                ends.0.map(ms).unwrap_or_default(),
                ends.1.map(ms).unwrap_or_default(),
                times.len().to_string(),
                if contender == "weft" { "-".into() } else { format!("{:.2}", own / median(times)) },
            ]);
        }
    }
    let opening = &measured.opening;
    let mut text =
        format!("\n{}, float32, {} threads, in turns\n\n{}", measured.model, measured.threads, table.text());
    let _ = writeln!(
        text,
        "\nopened: graph {:.1} ms, ONNX {:.1} ms, loaded after {:.0} ms, first result after {:.0} ms; \
         {:.0} MB private for {:.0} MB of weights",
        opening.graph_ms,
        opening.emit_ms,
        opening.load_ms,
        opening.first_ms,
        opening.private_bytes / 1e6,
        opening.weights_bytes / 1e6
    );
    let each = |times: &[f64]| times.iter().map(|ms| format!("{ms:.0}")).collect::<Vec<_>>().join(", ");
    let _ = writeln!(
        text,
        "first result of each process, ms: {}; each build of the crate, ms: {}",
        each(&opening.each_first_ms),
        each(&measured.building.each_ms)
    );
    let mut limits = Table::new(["limit", "measured", "at most", "verdict"]);
    for verdict in verdicts {
        let Verdict { what, value, limit, unit, kept } = verdict;
        let digits = if *unit == "×" { 2 } else { 1 };
        limits.row([
            what.clone(),
            format!("{value:.digits$}{unit}"),
            format!("{limit}{unit}"),
            if *kept { "kept".into() } else { "missed".into() },
        ]);
    }
    let _ = write!(text, "\n{}", limits.text());
    text
}

pub fn json(measured: &Measured, verdicts: &[Verdict]) -> Result<String> {
    let mut value = serde_json::to_value(measured)?;
    value["limits"] = serde_json::to_value(verdicts)?;
    Ok(serde_json::to_string_pretty(&value)?)
}

fn median_of(measured: &Measured, shape: &str, contender: &str) -> f64 {
    measured.runs_ms.get(shape).and_then(|runs| runs.get(contender)).map_or(f64::NAN, |times| median(times))
}

/// The middle value; of an even number, the mean of the two in the middle.
pub fn median(times: &[f64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[odd / 2],
        even => f64::midpoint(sorted[even / 2 - 1], sorted[even / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Building, Generator, Opening, SHAPES};
    use super::*;

    #[test]
    fn ratios_are_of_medians_and_an_unknown_is_no_pass() {
        let times = |base: f64| vec![base, base + 1.0, base * 9.0];
        let of_shape = |own: f64| {
            [("weft", own), (PYTORCH, 200.0), (EXPORTED, 130.0)]
                .map(|(name, ms)| (name.to_owned(), times(ms)))
                .into()
        };
        let measured = Measured {
            model: "bert".into(),
            threads: 2,
            rounds: 3,
            runs_ms: [("1x128".to_owned(), of_shape(120.0)), ("8x128".to_owned(), of_shape(150.0))].into(),
            opening: Opening {
                graph_ms: 3.0,
                emit_ms: 4.0,
                load_ms: 300.0,
                first_ms: 420.0,
                private_bytes: 5e8,
                weights_bytes: f64::NAN,
                each_first_ms: vec![420.0, 410.0, 600.0],
            },
            building: Building { crate_ms: 900.0, each_ms: vec![900.0] },
            generator: Generator { models: 1, model_ms: 4.0, nothing_ms: 12.0 },
            contenders: Vec::new(),
        };
        let verdicts = verdicts(&measured, &SHAPES);
        assert!(verdicts.iter().any(|verdict| verdict.value.is_nan() && !verdict.kept));
        insta::assert_snapshot!(text(&measured, &SHAPES, &verdicts));
    }

    #[test]
    fn medians() {
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < 1e-12);
        assert!((median(&[4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-12);
        assert!(median(&[]).is_nan());
    }
}
