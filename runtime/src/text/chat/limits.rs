//! Bounds on what filters may write: templates come with checkpoints, and Jinja gives memory for any width.

use minijinja::{Error, ErrorKind, Value};

use super::memory;

type Result<T> = std::result::Result<T, Error>;

/// The longest text that a template may write, bytes.
pub(super) const MOST_TEXT: usize = 16 << 20;

/// The widest that lines may be filled or indented, and the most pieces of a list.
pub(super) const MOST_WIDTH: usize = 1_000;

/// How deep lists and objects may nest, as `json` and `repr` have it of Python's recursion.
pub(super) const MOST_DEPTH: usize = 200;

/// Refuses wide numbers among a filter's arguments.
pub(super) fn widths(arguments: &[Value]) -> Result<()> {
    arguments.iter().try_for_each(within)
}

/// A width as it is.
pub(super) fn width(width: usize) -> Result<usize> {
    if width > MOST_WIDTH { Err(too_wide(width)) } else { Ok(width) }
}

/// Refuses a number, or a keyword's number, that is too wide.
fn within(argument: &Value) -> Result<()> {
    if argument.is_kwargs() {
        let items = argument.try_iter()?.map(|name| argument.get_item(&name));
        return items.into_iter().try_for_each(|item| within(&item?));
    }
    match argument.as_i64() {
        Some(number) if number > MOST_WIDTH as i64 => Err(too_wide(number)),
        None if argument.is_integer() => Err(too_wide(argument)),
        _ => Ok(()),
    }
}

/// The widths in a text of printf style; `*` takes one from the arguments.
pub(super) fn percent_format(format: &Value, arguments: &[Value]) -> Result<()> {
    let format = format.as_str().unwrap_or_default();
    for field in format.split('%').skip(1) {
        let field = field.trim_start_matches(['#', '0', '-', ' ', '+']);
        let end = field.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '*')).unwrap_or(field.len());
        digits(&field[..end])?;
        if field[..end].contains('*') {
            arguments.iter().try_for_each(within)?;
        }
    }
    filled(format, format.matches('%').count(), arguments)
}

/// The widths in a text for `str.format`: digits behind the colon of a field.
pub(super) fn brace_format(format: &str, arguments: &[Value]) -> Result<()> {
    for field in format.split('{').skip(1) {
        let field = field.split('}').next().unwrap_or_default();
        // A quote before the colon is that of a JSON text, not a field's.
        match field.split_once(':') {
            Some((name, style)) if !name.contains('"') => digits(style)?,
            _ => {}
        }
    }
    filled(format, format.matches('{').count(), arguments)
}

/// Counts a text in which each field may hold the longest argument, or be filled to the greatest width.
fn filled(format: &str, fields: usize, arguments: &[Value]) -> Result<()> {
    let mut longest = MOST_WIDTH;
    for argument in arguments {
        longest = longest.max(memory::written(argument)?);
    }
    memory::take(fields.saturating_mul(longest).saturating_add(format.len()))
}

fn digits(style: &str) -> Result<()> {
    let numbers = style.split(|c: char| !c.is_ascii_digit()).filter(|number| !number.is_empty());
    let mut wide =
        numbers.filter(|number| number.parse().is_ok_and(|n: usize| n > MOST_WIDTH) || number.len() > 19);
    wide.next().map_or(Ok(()), |number| Err(too_wide(number)))
}

fn too_wide(number: impl std::fmt::Display) -> Error {
    let problem = format!("a width or count of {number}; at most {MOST_WIDTH} are filled");
    Error::new(ErrorKind::InvalidOperation, problem)
}
