//! What the compact form keeps, how it reads, and what becomes of a file that is not whole.

use std::path::Path;

use anyhow::Result;
use indexmap::IndexMap;
use serde_json::Value;

use super::line::{FORMAT, FORMER, Header, proves};
use super::reading::kind;
use super::*;
use crate::record::{Output, Record};

fn output(name: &str, max_rel: f64, problem: Option<&str>) -> Output {
    Output {
        name: name.into(),
        shape: vec![2, 7],
        max_abs: Some(max_rel * 2.0),
        max_rel: Some(max_rel),
        tolerance: Some(1e-4),
        passed: problem.is_none(),
        problem: problem.filter(|text| !text.is_empty()).map(str::to_owned),
    }
}

fn record(case: &str, evidence: &str, time: u64) -> Record {
    let pairs = |pairs: &[(&str, &str)]| pairs.iter().map(|&(a, b)| (a.to_owned(), b.to_owned())).collect();
    let ran = proves(evidence);
    Record {
        run: "run-1".into(),
        time: time.to_string(),
        model: "bert".into(),
        case: case.into(),
        class: "BertModel".into(),
        kind: kind(case).into(),
        backend: "qnn".into(),
        precision: "f16".into(),
        evidence: evidence.into(),
        passed: ran,
        reason: (!ran).then(|| "no such operator".into()),
        outputs: vec![output("logits", 3.149e-7, None), output("pooler", 2.06e-6, None)],
        placement: [("CPU".to_owned(), 2), ("QNN".to_owned(), 41)].into_iter().collect(),
        ms: [("graph", 0.26), ("emit", 1.0), ("load", 12.345), ("first", 327.36)]
            .map(|(stage, ms)| (stage.to_owned(), ms))
            .into_iter()
            .collect(),
        memory_bytes: Some(25_678_901),
        versions: pairs(&[("weft", "0.1.0")]),
        machine: pairs(&[("os", "linux"), ("cpu", "EPYC")]),
        ..Record::default()
    }
}

fn records() -> Vec<Record> {
    let task = Record {
        outputs: Vec::new(),
        placement: IndexMap::new(),
        ms: [("load".to_owned(), 3.0), ("first".to_owned(), 1.0)].into_iter().collect(),
        ..record("tasks/fill-mask", "emulator", 120)
    };
    let known = Record {
        expected_failure: Some("half precision overflows".into()),
        reason: None,
        outputs: vec![
            output("logits", 0.5, Some("")),
            output("pooler", 0.1, None),
            output("x", 0.9, Some("is [3]")),
        ],
        ..record("wide", "failed", 130)
    };
    vec![record("masked", "emulator", 110), record("base", "emulator", 100), task, known, {
        Record { outputs: Vec::new(), ms: IndexMap::new(), ..record("base", "untested", 90) }
    }]
}

fn read(text: &str) -> Result<Vec<Record>> {
    parse(text, Path::new("results/qnn.jsonl"))
}

#[test]
fn a_file_says_once_what_its_cases_share() {
    insta::assert_snapshot!(text("qnn", &records()).unwrap());
}

#[test]
fn what_was_lowered_has_no_times_of_another_device() {
    let written =
        |evidence: &str| read(&text("qnn", &[record("base", evidence, 100)]).unwrap()).unwrap().remove(0);
    let (lowered, emulated) = (written("lowered"), written("emulator"));
    assert!(lowered.passed && lowered.ms.is_empty() && lowered.memory_bytes.is_none());
    assert_eq!(emulated.ms["load"], 12.0);
    assert_eq!(lowered.placement, emulated.placement);
}

#[test]
fn what_is_read_is_written_as_it_was() {
    let once = text("qnn", &records()).unwrap();
    let back = read(&once).unwrap();
    assert_eq!(text("qnn", &back).unwrap(), once);
    let find = |case: &str| back.iter().find(|r| r.case == case && r.evidence != "untested").unwrap();
    let base = find("base");
    assert_eq!(base.outputs.len(), 1, "the worst of those that are close enough");
    assert_eq!((base.max_rel(), base.outputs[0].tolerance), (Some(2.1e-6), Some(1e-4)));
    assert_eq!((base.placement["QNN"], base.ms["first"], base.memory_bytes), (41, 327.0, Some(26_000_000)));
    assert_eq!((base.time.as_str(), base.kind.as_str()), ("110", "golden"), "the last of its group");
    let (task, known) = (find("tasks/fill-mask"), find("wide"));
    assert_eq!((task.kind.as_str(), task.ms.len(), task.placement.len()), ("task", 2, 0));
    assert_eq!(known.outcome(), crate::record::Outcome::Known);
    assert_eq!(known.outputs.len(), 3);
    assert_eq!(known.outputs[2].problem.as_deref(), Some("is [3]"));
}

#[test]
fn a_file_cut_anywhere_is_named_with_its_line_and_gives_no_record() {
    let whole = text("qnn", &records()).unwrap();
    for end in (0..whole.len()).filter(|&end| whole.is_char_boundary(end) && is_compact(&whole[..end])) {
        let error = read(&whole[..end]).unwrap_err().to_string();
        let line = whole[..end].lines().count();
        assert!(error.starts_with(&format!("results/qnn.jsonl:{line} is cut short")), "{end}: {error}");
    }
}

#[test]
fn a_file_that_lost_or_gained_lines_is_refused() {
    let whole = text("qnn", &records()).unwrap();
    let lines: Vec<_> = whole.lines().collect();
    for index in 0..lines.len() {
        let without: Vec<_> =
            lines.iter().enumerate().filter(|(at, _)| *at != index).map(|(_, line)| *line).collect();
        assert!(read(&(without.join("\n") + "\n")).is_err(), "without line {}: {}", index + 1, lines[index]);
    }
    let merged = format!("{}\n<<<<<<< ours\n{}\n", lines[..3].join("\n"), lines[3..].join("\n"));
    insta::assert_snapshot!(read(&merged).unwrap_err(), @"results/qnn.jsonl:4 is cut short or spoilt (expected value at line 1 column 1): take the file again from git or from the machine that wrote it; of a merge keep both sides' files and run `cargo xtask report --compact`");
}

/// A file in which each run has its versions and its machine, and lines of cases have names.
fn in_the_third_form(whole: &str) -> String {
    let header: Header = serde_json::from_str::<Value>(whole.lines().next().unwrap())
        .and_then(|line| serde_json::from_value(line["file"].clone()))
        .unwrap();
    let named = |line: &str| match line.strip_prefix(r#"{"cases":"#).and_then(|line| line.strip_suffix('}')) {
        Some(shared) => {
            let named = header.named(serde_json::from_str(shared).unwrap()).unwrap();
            format!(r#"{{"cases":{named}}}"#)
        }
        None => line.to_owned(),
    };
    let (environments, others): (Vec<_>, Vec<_>) =
        whole.lines().partition(|line| line.starts_with(r#"{"environment":"#));
    let [environment] = environments.as_slice() else { panic!("one environment: {environments:?}") };
    let (id, own) = environment.split_once(r#","versions":"#).unwrap();
    let id = id.rsplit_once("\"id\":").unwrap().1;
    let own = format!(r#""versions":{}"#, own.strip_suffix("}}").unwrap());
    others.iter().map(|line| named(line).replace(&format!(r#""environment":{id}"#), &own) + "\n").collect()
}

#[test]
fn former_files_say_more_in_each_line() {
    let whole = text("qnn", &records()).unwrap();
    let third = in_the_third_form(&whole).replace(FORMAT, FORMER[2]);
    let outputs =
        [("[0,4.1e-6", "pooler"), ("[0,1.0,0.5", "logits"), ("[1,0.2,0.1", "pooler"), ("[2,1.8,0.9", "x")];
    let second = outputs.iter().fold(third.replace(FORMER[2], FORMER[1]), |text, (place, name)| {
        text.replace(place, &format!("[\"{name}\"{}", &place[2..]))
    });
    let first = second.replace(FORMER[1], FORMER[0]).replace("\",0,[", "\",\"BertModel\",[");
    for former in [first, second, third] {
        assert_ne!(former, whole);
        assert_eq!(text("qnn", &read(&former).unwrap()).unwrap(), whole);
    }
}
