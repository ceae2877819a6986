//! How far results of each backend may be off, as Rust for the runtime's tests.

use std::fmt::Write as _;

use crate::spec::hardware::HardwareSpecs;
use crate::spec::vocabulary::Hardware;

/// The longest line that rustfmt leaves alone.
const WIDTH: usize = 110;

/// The text of the runtime's `conformance/tolerances.rs`, in the form that rustfmt leaves it in.
pub fn render(specs: &HardwareSpecs) -> String {
    let mut text = "//! How far results of each backend may be off.\n\n\
                    use super::Tolerance;\nuse crate::{Hardware, Precision};\n\n\
                    /// The precisions that a backend is tested in, the default first, and those that are asked for.\n\
                    pub(super) const fn tolerances(hardware: Hardware) -> &'static [Tolerance] {\n    \
                    match hardware {\n"
        .to_owned();
    for spec in specs.iter() {
        let auto = if spec.hardware == Hardware::Cpu { " | Hardware::Auto" } else { "" };
        let arm = format!("        Hardware::{}{auto} => &[", spec.hardware.type_name());
        let alone = spec.precisions.len() == 1;
        let (indent, end) = if alone { (8, "],\n") } else { (12, ",\n") };
        let start = if alone { arm.clone() } else { " ".repeat(indent) };
        if !alone {
            let _ = writeln!(text, "{arm}");
        }
        for (precision, bound) in &spec.precisions {
            let fields = [
                format!("precision: Precision::{}", precision.type_name()),
                format!("relative: {:?}", bound.relative),
                format!("reason: {:?}", bound.reason.clone().unwrap_or_default()),
                format!("asked: {}", bound.asked),
            ];
            let whole = format!("Tolerance {{ {} }}", fields.join(", "));
            let line = format!("{start}{whole}{end}");
            if line.trim_end().len() <= WIDTH {
                text.push_str(&line);
                continue;
            }
            if alone && 12 + "&[]".len() + whole.len() <= WIDTH {
                let _ =
                    writeln!(text, "{}{{\n            &[{whole}]\n        }}", arm.trim_end_matches("&["));
                continue;
            }
            let (pad, inner) = (" ".repeat(indent), " ".repeat(indent + 4));
            let fields: String = fields.iter().map(|field| format!("{inner}{field},\n")).collect();
            let _ = write!(text, "{start}Tolerance {{\n{fields}{pad}}}{end}");
        }
        if !alone {
            text.push_str("        ],\n");
        }
    }
    text.push_str("    }\n}\n");
    text
}
