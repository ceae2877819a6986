//! The report as one page that needs no network: the data, and a script that draws it.

use anyhow::Result;
use serde_json::Value;

use super::gather::Report;
use super::markdown::provenance;

const PAGE: &str = include_str!("page.html");

pub fn page(report: &Report) -> Result<String> {
    let line = provenance(report).replace('&', "&amp;").replace('<', "&lt;");
    let mut report = serde_json::to_value(report)?;
    leave_out_what_was_not_run(&mut report);
    // `</script>` and `<!--` inside strings would end the element that holds the data.
    let data = serde_json::to_string(&report)?.replace('<', "\\u003c");
    Ok(PAGE.replace("{{PROVENANCE}}", &line).replace("{{DATA}}", &data))
}

/// A cell counts those cases and gives their reasons; listing each would be most of the page.
fn leave_out_what_was_not_run(report: &mut Value) {
    let Some(models) = report["models"].as_array_mut() else { return };
    for cell in models.iter_mut().filter_map(|model| model["cells"].as_array_mut()).flatten() {
        if let Some(cases) = cell["cases"].as_array_mut() {
            cases.retain(|case| case["outcome"] != "not run");
        }
    }
}
