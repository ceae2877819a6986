//! The report as a picture: for each category and backend, its models by the evidence they reached.

use std::fmt::Write;

use super::gather::Report;
use super::groups::{Group, GroupCell};

/// The levels from left to right, with the colours of the page.
const LEVELS: [(&str, &str); 6] = [
    ("device", "#1f8a4c"),
    ("emulator", "#4fae7b"),
    ("lowered", "#d9a514"),
    ("failed", "#d0402b"),
    ("unsupported", "#8b93a3"),
    ("untested", "#e4e7ec"),
];

const LEFT: usize = 170;
const TOP: usize = 52;
const CELL: usize = 92;
const BAR: usize = 80;
const ROW: usize = 34;

/// The categories that have models.
pub fn text(report: &Report) -> String {
    let rows: Vec<_> = report.categories.iter().filter(|group| group.models > 0).collect();
    let (width, height) = (LEFT + report.backends.len() * CELL + 10, TOP + rows.len() * ROW + 44);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\" fill=\"#1c2330\" role=\"img\">\n\
         <title>Models by the evidence they reached, by category and backend</title>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"10\" fill=\"#fff\" stroke=\"#dfe3ea\"/>\n"
    );
    for (index, backend) in report.backends.iter().enumerate() {
        let x = LEFT + index * CELL + BAR / 2;
        let _ = writeln!(
            svg,
            "<text x=\"{x}\" y=\"32\" text-anchor=\"middle\" font-weight=\"600\">{backend}</text>"
        );
    }
    for (index, group) in rows.iter().enumerate() {
        row(&mut svg, group, TOP + index * ROW);
    }
    legend(&mut svg, height - 16);
    svg.push_str("</svg>\n");
    svg
}

fn row(svg: &mut String, group: &Group, y: usize) {
    let Group { name, models, .. } = group;
    let middle = y + 13;
    let _ =
        writeln!(svg, "<text x=\"16\" y=\"{middle}\">{name} <tspan fill=\"#5d6779\">{models}</tspan></text>");
    for (index, cell) in group.cells.iter().enumerate() {
        bar(svg, cell, group.models, LEFT + index * CELL, y);
    }
}

/// A bar as long as all models, cut by level; how many ran or were lowered stands in it.
fn bar(svg: &mut String, cell: &GroupCell, models: usize, x: usize, y: usize) {
    let mut start = 0;
    for (level, colour) in LEVELS {
        let count = cell.observed.get(level).copied().unwrap_or_default();
        let (from, to) = (start * BAR / models, (start + count) * BAR / models);
        if to > from {
            let (x, width) = (x + from, to - from);
            let _ = writeln!(
                svg,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"18\" fill=\"{colour}\"><title>{}: {count} \
                 {level}</title></rect>",
                cell.backend
            );
        }
        start += count;
    }
}

fn legend(svg: &mut String, y: usize) {
    let mut x = 16;
    for (level, colour) in LEVELS {
        let (top, text) = (y - 10, x + 18);
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{top}\" width=\"12\" height=\"12\" rx=\"3\" fill=\"{colour}\"/>\
             <text x=\"{text}\" y=\"{y}\" font-size=\"12\" fill=\"#5d6779\">{level}</text>"
        );
        x += 110;
    }
}
