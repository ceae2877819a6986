//! What is printed: colour on terminals alone, and no complaint where whoever reads has left.

use std::io::Write;

use anstyle::{AnsiColor, Style};
use weft::Error;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const HEADING: Style = Style::new().bold();
const FAINT: Style = Style::new().dimmed();

/// A line of the answer.
pub fn say(text: impl AsRef<str>) {
    // Standard output may be closed before all is said: `| head`.
    let _ = writeln!(anstream::stdout(), "{}", text.as_ref());
}

/// A line about the work.
pub fn note(text: impl AsRef<str>) {
    let _ = writeln!(anstream::stderr(), "{FAINT}{}{FAINT:#}", text.as_ref());
}

/// What went wrong.
pub fn error(text: &str) {
    let _ = writeln!(anstream::stderr(), "{ERROR}error:{ERROR:#} {text}");
}

/// An argument or an input that will not do.
pub fn bad_input(name: &str, problem: impl Into<String>, help: &str) -> Error {
    Error::Input { name: name.to_owned(), problem: problem.into(), help: help.to_owned() }
}

/// A text that stands out on a terminal.
pub fn heading(text: &str) -> String {
    format!("{HEADING}{text}{HEADING:#}")
}

/// Rows of cells as columns, the first and the last aligned to the left, numbers between to the right.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            let number = cell.chars().next().is_some_and(|first| first.is_ascii_digit());
            if number && column > 0 { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        format!("  {}", cells.collect::<Vec<_>>().join("  ")).trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// `1.3 TB`, `440.5 MB`.
pub fn bytes(bytes: u64) -> String {
    scaled(bytes, &[("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)], "B")
}

/// `6.74 billion`, `22.7 million`.
pub fn count(count: u64) -> String {
    scaled(count, &[("trillion", 1e12), ("billion", 1e9), ("million", 1e6)], "").trim_end().to_owned()
}

fn scaled(number: u64, units: &[(&str, f64)], rest: &str) -> String {
    let number = number as f64;
    match units.iter().find(|(_, size)| number >= *size) {
        Some((unit, size)) => format!("{:.1} {unit}", number / size),
        None => format!("{number:.0} {rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_counts_are_rounded_to_a_unit() {
        assert_eq!([bytes(999), bytes(1_300_000_000_000), bytes(90_900_000)], ["999 B", "1.3 TB", "90.9 MB"]);
        assert_eq!([count(300), count(22_713_216)], ["300", "22.7 million"]);
    }

    #[test]
    fn numbers_stand_under_each_other() {
        let row = |cells: &[&str]| cells.iter().map(|&cell| cell.to_owned()).collect::<Vec<_>>();
        let text = table(&[row(&["f32", "90.9 MB", "x"]), row(&["int4", "9 MB", "yy"])]);
        assert_eq!(text, "  f32   90.9 MB  x\n  int4     9 MB  yy");
    }
}
