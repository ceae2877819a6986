//! The report as one page that needs no network: the data, and a script that draws it.

use anyhow::Result;

use super::gather::Report;
use super::markdown::provenance;

const PAGE: &str = include_str!("page.html");

pub fn page(report: &Report) -> Result<String> {
    // `</script>` and `<!--` inside strings would end the element that holds the data.
    let data = serde_json::to_string(report)?.replace('<', "\\u003c");
    let line = provenance(report).replace('&', "&amp;").replace('<', "&lt;");
    Ok(PAGE.replace("{{PROVENANCE}}", &line).replace("{{DATA}}", &data))
}
