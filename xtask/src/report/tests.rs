//! The formats, from a few records of two machines.

use super::gather::{Report, evidence};
use super::{csv, html, markdown, svg};
use crate::record::{Output, Record};
use crate::specs::Catalog;
use weft_generator::spec::architectures::Architectures;
use weft_generator::spec::model::ModelSpec;
use weft_generator::spec::not_yet::{Entry, NotYet};

fn catalog() -> Catalog {
    let mut architectures = Architectures::load(&crate::workspace::root().join("model_specs")).unwrap();
    architectures.architectures.retain(|name, _| ["encoder-only", "state-space"].contains(&name.as_str()));
    architectures.categories.retain(|name, _| ["text-encoders", "state-space"].contains(&name.as_str()));
    let spec = |model: &str, category: &str, architecture: &str| ModelSpec {
        model: model.into(),
        category: Some(category.into()),
        architecture: Some(architecture.into()),
        ..ModelSpec::default()
    };
    let models = [spec("bert", "text-encoders", "encoder-only"), spec("mamba", "state-space", "state-space")];
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let xlnet = Entry {
        model_type: Some("xlnet".into()),
        title: Some("XLNet".into()),
        reason: "two streams".into(),
        ..Entry::default()
    };
    let others = Entry {
        model_types: names(&["rwkv", "mamba", "xlstm"]),
        reason: "not begun".into(),
        ..Entry::default()
    };
    let reference = [
        ("text-encoders".to_owned(), names(&["bert", "xlnet"])),
        ("state-space".to_owned(), names(&["mamba", "rwkv", "xlstm"])),
    ];
    let not_yet = [("text-encoders".to_owned(), vec![xlnet]), ("state-space".to_owned(), vec![others])];
    let not_yet = NotYet {
        reference: reference.into_iter().collect(),
        not_yet: not_yet.into_iter().collect(),
        ..NotYet::default()
    };
    let models = models.map(|spec| (spec.model.clone(), spec)).into_iter().collect();
    Catalog { architectures, models, not_yet }
}

fn record(case: &str, backend: &str, evidence: &str, cpu: &str) -> Record {
    let passed = !matches!(evidence, "failed" | "untested");
    Record {
        run: "run-1".into(),
        time: "1800000000".into(),
        model: "bert".into(),
        case: case.into(),
        class: "BertModel".into(),
        kind: "golden".into(),
        backend: backend.into(),
        precision: "f32".into(),
        evidence: evidence.into(),
        passed,
        reason: (!passed).then(|| "no <such> | thing, at all".into()),
        outputs: vec![Output { name: "logits".into(), max_rel: Some(3e-7), passed, ..Output::default() }],
        placement: [("CPUExecutionProvider".to_owned(), 40)].into_iter().collect(),
        ms: [("load".to_owned(), 12.0), ("first".to_owned(), 3.5)].into_iter().collect(),
        memory_bytes: Some(25_000_000),
        versions: [("weft".to_owned(), "0.1.0".to_owned())].into_iter().collect(),
        machine: [("os".to_owned(), "linux".to_owned()), ("cpu".to_owned(), cpu.to_owned())]
            .into_iter()
            .collect(),
        ..Record::default()
    }
}

fn report() -> Report {
    let records = vec![
        record("base", "cpu", "failed", "one"),
        Record { time: "1800000100".into(), ..record("base", "cpu", "device", "one") },
        record("masked", "cpu", "device", "one"),
        record("base", "cuda", "lowered", "one"),
        record("base", "cuda", "device", "two"),
        record("base", "qnn", "emulator", "one"),
        record("masked", "qnn", "failed", "one"),
        record("base", "webnn", "untested", "one"),
    ];
    Report::new(&catalog(), records)
}

#[test]
fn a_cell_takes_the_newest_record_the_strongest_machine_and_any_failure() {
    let report = report();
    let levels: Vec<_> =
        report.models[1].cells.iter().map(|c| format!("{} {}", c.backend, c.evidence)).collect();
    insta::assert_snapshot!(levels.join("\n"), @r"
    cpu device
    cuda device
    rocm untested
    metal untested
    openvino untested
    qnn failed
    webgpu untested
    webnn untested
    ");
    let (weak, strong) = (record("a", "qnn", "emulator", "one"), record("b", "qnn", "device", "one"));
    assert_eq!(evidence(&[&weak, &strong]), "emulator", "one machine proves what all its cases prove");
}

#[test]
fn a_model_is_proven_that_runs_somewhere_and_fails_nowhere() {
    let counts = |report: &Report| {
        let rows = report.covered.iter();
        rows.map(|row| [row.models, row.proven, row.failing, row.not_run, row.not_yet()]).collect::<Vec<_>>()
    };
    assert_eq!(counts(&report()), [[1, 0, 1, 0, 1], [1, 0, 0, 1, 2]]);
    let one = Report::new(&catalog(), vec![record("base", "cpu", "device", "one")]);
    assert_eq!(counts(&one), [[1, 1, 0, 0, 1], [1, 0, 0, 1, 2]]);
}

#[test]
fn markdown_has_every_section() {
    insta::assert_snapshot!(markdown::text(&report()));
}

#[test]
fn csv_has_a_line_for_each_backend_and_precision() {
    insta::assert_snapshot!(csv::text(&report()));
}

#[test]
fn svg_has_a_row_for_each_category_with_models() {
    insta::assert_snapshot!(svg::text(&report()));
}

#[test]
fn html_holds_the_data_without_ending_its_element() {
    let page = html::page(&report()).unwrap();
    let (_, data) = page.split_once("id=\"data\">").unwrap();
    let (data, _) = data.split_once("</script>").unwrap();
    let value: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!(value["models"][1]["name"], "bert");
    assert_eq!(value["models"][1]["cells"][5]["precisions"][0]["cases"], "30h30h");
    assert_eq!(value["covered"][1]["reasons"][0]["names"][1], "xlstm");
    assert!(!data.contains('<'));
    assert!(!page.contains("http://") && !page.contains("https://"), "the page needs no network");
}

#[test]
fn a_page_of_seven_hundred_models_is_small() {
    let mut catalog = catalog();
    let bert = catalog.models["bert"].clone();
    let models = (0..700).map(|at| format!("model-{at:03}"));
    catalog.models =
        models.clone().map(|model| (model.clone(), ModelSpec { model, ..bert.clone() })).collect();
    let backends = ["cpu", "cuda", "rocm", "metal", "openvino", "qnn", "webgpu", "webnn"];
    let mut records = Vec::new();
    for (model, backend) in models.flat_map(|model| backends.map(|backend| (model.clone(), backend))) {
        let cases = (0..8).map(|at| record(&format!("case-{at}"), backend, "device", "one"));
        let halved = cases.clone().map(|record| Record { precision: "f16".into(), ..record });
        records.extend(cases.chain(halved).map(|record| Record { model: model.clone(), ..record }));
    }
    let page = html::page(&Report::new(&catalog, records)).unwrap();
    assert!(page.len() < 2_500_000, "{} bytes", page.len());
}
