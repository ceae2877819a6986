//! The report as one page that needs no network: the data, and a script that draws it.

mod data;

use anyhow::Result;

use super::gather::Report;
use super::markdown::provenance;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");
const SCRIPTS: [&str; 3] = [include_str!("model.js"), include_str!("views.js"), include_str!("page.js")];

pub fn page(report: &Report) -> Result<String> {
    let line = provenance(report).replace('&', "&amp;").replace('<', "&lt;");
    // `</script>` and `<!--` inside strings would end the element that holds the data.
    let data = serde_json::to_string(&data::Page::new(report))?.replace('<', "\\u003c");
    let page = PAGE.replace("{{STYLE}}", STYLE).replace("{{SCRIPT}}", &SCRIPTS.concat());
    Ok(page.replace("{{PROVENANCE}}", &line).replace("{{DATA}}", &data))
}
