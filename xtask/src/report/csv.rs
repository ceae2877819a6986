//! The report as a table for spreadsheets: a line for each model, backend and precision.

use super::gather::Report;

/// A header and a line for each; backends that were never tried have one line without a precision.
pub fn text(report: &Report) -> String {
    let mut text = String::from(
        "model,category,architecture,backend,declared,precision,evidence,passed,failed,known_failures,not_run,max_rel,\
         load_ms,first_ms,memory_bytes,reasons\n",
    );
    for model in &report.models {
        for cell in &model.cells {
            let tried: Vec<(&str, &str)> = match cell.precisions.is_empty() {
                true => vec![("", &cell.evidence)],
                false => {
                    cell.precisions.iter().map(|(p, evidence)| (p.as_str(), evidence.as_str())).collect()
                }
            };
            for (precision, evidence) in tried {
                let count = |outcome: &str| {
                    let own =
                        |case: &&super::gather::Case| case.precision == precision && case.outcome == outcome;
                    cell.cases.iter().filter(own).count().to_string()
                };
                let worst =
                    cell.cases.iter().filter(|case| case.precision == precision).filter_map(|c| c.max_rel);
                let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
                let fields = [
                    model.model.clone(),
                    model.category.clone(),
                    model.architecture.clone(),
                    cell.backend.to_owned(),
                    cell.declared.support.to_owned(),
                    precision.to_owned(),
                    evidence.to_owned(),
                    count("passed"),
                    count("failed"),
                    count("known failure"),
                    count("not run"),
                    number(worst.reduce(f64::max)),
                    number(cell.load_ms),
                    number(cell.first_ms),
                    cell.memory_bytes.map(|bytes| bytes.to_string()).unwrap_or_default(),
                    cell.reasons.join("; "),
                ];
                text.push_str(&fields.map(|field| quote(&field)).join(","));
                text.push('\n');
            }
        }
    }
    text
}

/// RFC 4180; a leading `=`, `+`, `-` or `@` would be a formula to a spreadsheet, unless it is a number.
fn quote(field: &str) -> String {
    let formula = field.starts_with(['=', '+', '-', '@']) && field.parse::<f64>().is_err();
    let field = if formula { format!("'{field}") } else { field.to_owned() };
    if field.contains([',', '"', '\n', '\r']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field }
}

#[cfg(test)]
mod tests {
    use super::quote;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!(quote("plain"), "plain");
        assert_eq!(quote("a, \"b\""), "\"a, \"\"b\"\"\"");
        assert_eq!(quote("=1+1"), "'=1+1");
        assert_eq!(quote("-1.5e-3"), "-1.5e-3");
    }
}
