//! Records as JUnit XML, for the machines that show test results.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::summary::Counts;
use crate::record::{Outcome, Record};

/// One suite for each model and backend.
pub fn xml(records: &[Record]) -> String {
    let mut suites: BTreeMap<_, Vec<&Record>> = BTreeMap::new();
    for record in records {
        suites.entry((&record.model, &record.backend)).or_default().push(record);
    }
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for ((model, backend), records) in suites {
        let Counts { failed, skipped, known, .. } = Counts::of(records.iter().copied());
        let _ = writeln!(
            text,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{failed}\" errors=\"0\" skipped=\"{}\">",
            escape(&format!("{model} {backend}")),
            records.len(),
            skipped + known
        );
        for record in records {
            let _ = write!(
                text,
                "    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\"",
                escape(model),
                escape(&record.test_name()),
                record.total_ms() / 1000.0
            );
            let tag = match record.outcome() {
                Outcome::Passed => {
                    text.push_str("/>\n");
                    continue;
                }
                Outcome::Failed => "failure",
                Outcome::Skipped | Outcome::Known => "skipped",
            };
            let _ = writeln!(text, "><{tag} message=\"{}\"/></testcase>", escape(&record.explanation()));
        }
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
}

/// Control characters have no place in XML 1.0; the rest is escaped.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
