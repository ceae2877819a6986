//! The runner against a small fake of a test binary.

use std::os::unix::fs::PermissionsExt;

use super::summary::Counts;
use super::*;
use crate::record::Outcome;

/// A test binary in shell: honours `--list` and `--skip`; `crash` kills itself, `hang` never ends.
const FAKE: &str = r#"#!/bin/sh
all="cpu::f32::base cpu::f32::crash cpu::f32::masked cpu::f32::hang cpu::f32::wrong cpu::f32::absent qnn::f32::base"
if [ "$1" = --list ]; then
  for t in $all; do echo "$t: test"; done
  exit 0
fi
skipped=" $* "
record() {
  echo "{\"run\":\"$WEFT_RUN\",\"model\":\"fake\",\"case\":\"${1##*::}\",\"kind\":\"golden\",\"backend\":\"cpu\",\"precision\":\"f32\",\"evidence\":\"$2\",\"passed\":$3,\"outputs\":[{\"name\":\"logits\",\"shape\":[2,3],\"max_abs\":1e-6,\"max_rel\":$4,\"tolerance\":1e-4,\"passed\":$3}],\"ms\":{\"load\":10,\"first\":5}}" >>"$WEFT_RESULTS"
}
for t in $all; do
  case "$skipped" in *" --skip $t "*) continue;; esac
  printf 'test %s ... ' "$t"
  case "$t" in
    *crash) echo "heap is broken" >&2; kill -SEGV $$;;
    *hang) sleep 60;;
    *wrong) record "$t" failed false 0.5; echo FAILED;;
    *absent) echo "ignored, no such library";;
    *) record "$t" device true 3e-7; echo ok;;
  esac
done
"#;

fn fake(dir: &Path) -> Job {
    let binary = dir.join("hardware");
    fs::write(&binary, FAKE).unwrap();
    fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).unwrap();
    let all = job::list(&binary, "").unwrap();
    let member = Member {
        category: "fakes".into(),
        model: "fake".into(),
        package: "weft-fake".into(),
        dir: dir.to_owned(),
    };
    let tests = all.iter().filter(|name| name.starts_with("cpu::")).cloned().collect();
    Job { member, binary, hardware: Hardware::Cpu, tests, all }
}

#[test]
fn a_crash_and_a_hang_cost_only_their_own_cases() {
    let dir = tempfile::tempdir().unwrap();
    let job = fake(dir.path());
    let settings = Settings {
        run: "run-1".into(),
        limit: Duration::from_secs(1),
        scratch: dir.path().to_owned(),
        precisions: String::new(),
        undeclared: false,
    };
    let file = dir.path().join("run-1.jsonl");
    let mut records = run_all(std::slice::from_ref(&job), &settings, 2, &file).unwrap();
    assert_eq!(record::read_all(std::slice::from_ref(&file)).unwrap().len(), records.len());
    let seen: Vec<_> =
        records.iter().map(|r| format!("{} {:?} {}", r.test_name(), r.outcome(), r.explanation())).collect();
    insta::assert_snapshot!(seen.join("\n"), @r"
    cpu::f32::base Passed no reason was recorded
    cpu::f32::crash Failed the test process was killed by SIGSEGV (11): heap is broken
    cpu::f32::masked Passed no reason was recorded
    cpu::f32::hang Failed no result within 1 s; the test process was ended
    cpu::f32::wrong Failed logits is off by 5.0e-1, allowed 1e-4
    cpu::f32::absent Skipped no such library
    ");

    records.iter_mut().for_each(|record| record.time = String::new());
    let seconds = Duration::from_secs(2);
    let path = Path::new("target/weft-results/run-1.jsonl");
    let summary = Summary::new(&records, "run-1", path, seconds, seconds * 2, false);
    assert!(!summary.good());
    insta::assert_snapshot!(summary.text());
    insta::assert_snapshot!("json", summary.json().unwrap());
    insta::assert_snapshot!("junit", junit::xml(&records));
}

#[test]
fn a_listed_failure_is_not_a_failure() {
    let record = Record {
        evidence: "failed".into(),
        expected_failure: Some("no such operator".into()),
        ..Record::default()
    };
    assert_eq!(record.outcome(), Outcome::Known);
    let counts = Counts::of([&record]);
    assert_eq!(counts, Counts { known: 1, ..Counts::default() });
}

#[test]
fn shares_are_disjoint_and_complete() {
    let shards: Vec<Shard> = ["1/3", "2/3", "3/3"].iter().map(|text| text.parse().unwrap()).collect();
    for position in 0..10 {
        assert_eq!(shards.iter().filter(|shard| shard.has(position)).count(), 1);
    }
    for wrong in ["0/3", "4/3", "3", "a/b", "1/0"] {
        assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
    }
}
