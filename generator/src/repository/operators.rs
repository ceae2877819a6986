//! The published operator tables as Rust that the runtime looks operators up in.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::spec::hardware::HardwareSpecs;
use crate::spec::operators::{Operators, Standard};
use crate::spec::vocabulary::Hardware;

/// Operators by domain and name: versions, types, constant operands.
type Entries<'a> = BTreeMap<(&'static str, &'a str), (&'a [u16], String, &'a [u8])>;

/// The text of the runtime's `lower/operators.rs`, and of a file for each backend below it by the module's name, in the
/// form that rustfmt leaves them in.
pub fn render(specs: &HardwareSpecs, standard: &Standard) -> (String, Vec<(Hardware, String)>) {
    let mut text = "//! The operators that backends publish, for machines that have none of them.\n\n\
                    use super::published::{Operator, Table};\nuse crate::Hardware;\n"
        .to_owned();
    let tables: Vec<_> =
        specs.iter().filter_map(|spec| Some((spec.hardware, spec.operators.as_ref()?))).collect();
    let entries: Vec<_> = tables.iter().map(|(_, table)| entries(table)).collect();
    let mut types: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, types_of, _) in entries.iter().flat_map(BTreeMap::values) {
        types.insert(types_of, 0);
    }
    text.push('\n');
    let mut modules: Vec<_> = tables.iter().map(|(hardware, _)| hardware.name()).collect();
    modules.sort_unstable();
    let start = text.find("use super").unwrap_or_default();
    let modules: String = modules.iter().map(|name| format!("mod {name};\n")).collect();
    text.insert_str(start, &format!("{modules}\n"));
    for (number, (names, place)) in types.iter_mut().enumerate() {
        *place = number;
        let _ = writeln!(text, "const T{number}: &str = {names:?};");
    }
    text.push_str("\n/// The tables, by backend.\npub(super) const TABLES: &[Table] = &[\n");
    for (hardware, table) in &tables {
        let (variant, name) = (hardware.type_name(), hardware.name());
        let _ = writeln!(text, "    Table {{");
        let _ = writeln!(text, "        hardware: Hardware::{variant},");
        let _ = writeln!(text, "        source: {:?},", table.source);
        let _ = writeln!(text, "        operators: {name}::OPERATORS,\n    }},");
    }
    text.push_str("];\n");
    let mut files = vec![];
    for ((hardware, _), entries) in tables.iter().zip(&entries) {
        let mut used: Vec<_> = entries
            .values()
            .map(|(_, names, _)| types.get(names.as_str()).copied().unwrap_or_default())
            .collect();
        used.sort_unstable();
        used.dedup();
        let used = listed(&used);
        let mut text = "//! The operators that the backend publishes.\n\n".to_owned();
        let _ = writeln!(text, "{used}");
        let _ = writeln!(text, "pub(super) const OPERATORS: &[Operator] = &[");
        for ((domain, operator), (versions, types_of, constant)) in entries {
            let place = types.get(types_of.as_str()).copied().unwrap_or_default();
            let _ = writeln!(
                text,
                "    Operator::new({domain:?}, {operator:?}, &{versions:?}, T{place}, &{constant:?}),"
            );
        }
        text.push_str("];\n");
        files.push((*hardware, text));
    }
    text.push_str(
        "\n/// The versions of the standard's operators, oldest first, where a table tells versions.\n",
    );
    text.push_str("pub(super) const STANDARD: &[(&str, &[i64])] = &[\n");
    let versioned = |name: &str| {
        entries
            .iter()
            .any(|entries| entries.get(&("", name)).is_some_and(|(versions, ..)| !versions.is_empty()))
    };
    let mut known: Vec<_> = standard.operators.iter().filter(|(name, _)| versioned(name)).collect();
    known.sort();
    for (name, versions) in known {
        let _ = writeln!(text, "    ({name:?}, &{versions:?}),");
    }
    text.push_str("];\n");
    (text, files)
}

/// `use super::{Operator, T0, T1};`, in lines as long as rustfmt makes them.
fn listed(types: &[usize]) -> String {
    let mut names: Vec<_> = types.iter().map(|place| format!("T{place}")).collect();
    names.sort_by_key(|name| (name.len(), name.clone()));
    names.insert(0, "Operator".to_owned());
    let whole = format!("use super::{{{}}};", names.join(", "));
    if whole.len() <= 110 {
        return format!("{whole}\n");
    }
    let mut text = "use super::{".to_owned();
    let mut width = usize::MAX;
    for name in names {
        if width.saturating_add(name.len() + 2) > 110 {
            text.push_str("\n    ");
            width = 4;
        } else {
            text.push(' ');
            width += 1;
        }
        text.push_str(&name);
        text.push(',');
        width += name.len() + 1;
    }
    text.push_str("\n};\n");
    text
}

fn entries(table: &Operators) -> Entries<'_> {
    let domains = [("", &table.standard), ("com.microsoft", &table.contrib)];
    let all = domains.into_iter().flat_map(|(domain, operators)| {
        operators.iter().map(move |(name, operator)| {
            let mut types = table.types(operator);
            types.sort_unstable();
            types.dedup();
            let entry = (operator.versions.as_slice(), types.join(" "), operator.constant.as_slice());
            ((domain, name.as_str()), entry)
        })
    });
    all.collect()
}
