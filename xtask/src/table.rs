//! Plain text tables with aligned columns.

/// Rows under a header; numbers are aligned to the right, everything else to the left.
pub struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new<const N: usize>(header: [&str; N]) -> Self {
        Self { header: header.map(str::to_owned).to_vec(), rows: Vec::new() }
    }

    pub fn with_columns(header: Vec<String>) -> Self {
        Self { header, rows: Vec::new() }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let mut row: Vec<_> = cells.into_iter().collect();
        row.resize(self.header.len(), String::new());
        self.rows.push(row);
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// For terminals and logs.
    pub fn text(&self) -> String {
        self.render("", "  ", "", '-', "  ")
    }

    /// A Markdown table.
    pub fn markdown(&self) -> String {
        self.render("| ", " | ", " |", '-', " | ")
    }

    /// A Markdown table for hundreds of rows: nothing is padded, so that it is small and a row does not depend on others.
    pub fn dense_markdown(&self) -> String {
        let cell = |text: &String| text.replace('|', "\\|").replace('\n', " ");
        let line = |row: &Vec<String>| format!("|{}|\n", row.iter().map(cell).collect::<Vec<_>>().join("|"));
        let rule = |column: usize| {
            if is_numeric(self.rows.iter().map(|row| row[column].as_str())) { "-:" } else { "-" }
        };
        let rules = (0..self.header.len()).map(rule).map(str::to_owned).collect();
        [line(&self.header), line(&rules)].into_iter().chain(self.rows.iter().map(line)).collect()
    }

    fn render(&self, left: &str, between: &str, right: &str, rule: char, rule_between: &str) -> String {
        let escaped = !left.is_empty();
        let cell =
            |text: &str| if escaped { text.replace('|', "\\|").replace('\n', " ") } else { text.to_owned() };
        let lines: Vec<Vec<String>> = std::iter::once(&self.header)
            .chain(&self.rows)
            .map(|r| r.iter().map(|c| cell(c)).collect())
            .collect();
        let columns = self.header.len();
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<_> = (0..columns).map(width).collect();
        let numeric: Vec<_> =
            (0..columns).map(|c| is_numeric(self.rows.iter().map(|row| row[c].as_str()))).collect();
        let mut out = String::new();
        for (index, line) in lines.iter().enumerate() {
            let cells: Vec<_> = line
                .iter()
                .enumerate()
                .map(|(c, text)| {
                    let pad = " ".repeat(widths[c] - text.chars().count());
                    if numeric[c] { format!("{pad}{text}") } else { format!("{text}{pad}") }
                })
                .collect();
            let line = format!("{left}{}{right}", cells.join(between));
            out.push_str(line.trim_end());
            out.push('\n');
            if index == 0 {
                let rules: Vec<_> = widths
                    .iter()
                    .zip(&numeric)
                    .map(|(width, numeric)| {
                        let dashes = rule.to_string().repeat((*width).max(1));
                        if escaped && *numeric { format!("{}:", &dashes[..dashes.len() - 1]) } else { dashes }
                    })
                    .collect();
                out.push_str(format!("{left}{}{right}", rules.join(rule_between)).trim_end());
                out.push('\n');
            }
        }
        out
    }
}

/// Whether every cell that says something is a number.
fn is_numeric<'a>(mut cells: impl Iterator<Item = &'a str> + Clone) -> bool {
    let blank = |text: &str| matches!(text, "" | "-");
    cells.clone().any(|text| !blank(text)) && cells.all(|text| blank(text) || text.parse::<f64>().is_ok())
}

/// A difference as people compare them: `3.1e-7`, `0` for none.
pub fn difference(value: f64) -> String {
    if value == 0.0 { "0".into() } else { format!("{value:.1e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(["model", "passed"]);
        table.row(["bert".into(), "12".into()]);
        table.row(["a|b".into(), "7".into()]);
        insta::assert_snapshot!(table.text(), @r"
        model  passed
        -----  ------
        bert       12
        a|b         7
        ");
        insta::assert_snapshot!(table.markdown(), @r"
        | model | passed |
        | ----- | -----: |
        | bert  |     12 |
        | a\|b  |      7 |
        ");
        insta::assert_snapshot!(table.dense_markdown(), @r"
        |model|passed|
        |-|-:|
        |bert|12|
        |a\|b|7|
        ");
    }
}
