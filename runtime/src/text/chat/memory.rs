//! The memory that a template's values may take, and the bytes that sorting and looking up may compare. Jinja gives memory and
//! time for any length, within one instruction; here they are counted before they are given.

use std::cell::Cell;
use std::fmt::{self, Write as _};

use minijinja::value::{Rest, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, Value};

use super::limits::MOST_TEXT;

type Result<T> = std::result::Result<T, Error>;

/// The bytes of values that a template may make, freed ones too, and how many more for each byte of the chat. Published
/// templates make a chat's text some ten times.
const MEMORY: usize = 256 << 20;
const MEMORY_PER_BYTE: usize = 32;

/// The most elements of a list.
const MOST_ITEMS: usize = 1 << 20;

/// What an element of a list takes beside its text.
const ITEM: usize = 40;

thread_local! {
    /// The bytes that are left to the template which this thread fills in: of values, and of text that is written.
    static LEFT: Cell<usize> = const { Cell::new(0) };
    static TEXT: Cell<usize> = const { Cell::new(0) };
}

/// Begins to count for a chat of so many bytes.
pub(super) fn begin(chat: usize) {
    LEFT.set(chat.saturating_mul(MEMORY_PER_BYTE).saturating_add(MEMORY));
    TEXT.set(MOST_TEXT);
}

/// Counts a value of so many bytes, before it is made.
pub(super) fn take(bytes: usize) -> Result<()> {
    let left = LEFT.get().checked_sub(bytes);
    let problem = || format!("its values take more than {} MB", MEMORY >> 20);
    LEFT.set(left.ok_or_else(|| Error::new(ErrorKind::InvalidOperation, problem()))?);
    Ok(())
}

/// Counts bytes that are compared, on the account of values: they take time as those take memory.
fn compare(bytes: usize) -> Result<()> {
    let problem = |_| {
        let problem = format!("it compares, sorts or looks up more than {} MB", MEMORY >> 20);
        Error::new(ErrorKind::InvalidOperation, problem)
    };
    take(bytes).map_err(problem)
}

/// Counts text that is written, also into a variable.
pub(super) fn write(bytes: usize) -> Result<()> {
    let left = TEXT.get().checked_sub(bytes);
    let problem = || format!("it writes more than {MOST_TEXT} bytes");
    TEXT.set(left.ok_or_else(|| Error::new(ErrorKind::InvalidOperation, problem()))?);
    Ok(())
}

/// Counts what an operator is about to make of two values.
type Check = fn(&Value, &Value) -> Result<()>;

/// Makes operators and filters count what they are about to make.
pub(super) fn count(environment: &mut Environment<'static>) {
    let operators: [(_, Check); 4] = [("+", sum), ("*", product), ("~", concatenation), ("==", comparison)];
    for (name, check) in operators {
        environment.add_function(name, move |arguments: Rest<Value>| -> Result<Value> {
            let [a, b] = arguments.as_slice() else { return Ok(Value::UNDEFINED) };
            checked(&arguments, check(a, b))
        });
    }
    environment.add_function(SLICE, |arguments: Rest<Value>| checked(&arguments, slice(&arguments)));
    environment.add_function(TEST, |arguments: Rest<Value>| checked(&arguments, compare(sizes(&arguments))));
    macro_rules! filters {
        ($($public:literal $name:ident),*) => {
            $(
                environment.add_filter(concat!("_", $public), minijinja::filters::$name);
                environment.add_filter($public, |state: &State<'_, '_>, arguments: Rest<Value>| -> Result<Value> {
                    filter($public, &arguments)?;
                    state.apply_filter(concat!("_", $public), &arguments)
                });
            )*
        };
    }
    filters!(
        "batch" batch, "capitalize" capitalize, "chain" chain, "count" length, "dictsort" dictsort, "e" escape,
        "escape" escape, "format" format, "groupby" groupby, "indent" indent, "items" items, "join" join,
        "length" length, "lines" lines, "list" list, "lower" lower, "map" map, "max" max, "min" min,
        "pprint" pprint, "reject" reject, "rejectattr" rejectattr, "replace" replace, "reverse" reverse,
        "safe" safe, "select" select, "selectattr" selectattr, "slice" slice, "sort" sort, "split" split,
        "sum" sum, "title" title, "trim" trim, "unique" unique, "upper" upper, "zip" zip
    );
}

/// The functions that count what a slice makes of its operands, and what a test reads of its arguments.
pub(super) const SLICE: &str = "[:]";
pub(super) const TEST: &str = "is";

/// The operands as they were, for `UnpackList`, which puts the first one on top.
fn checked(arguments: &[Value], check: Result<()>) -> Result<Value> {
    check?;
    Ok(Value::from(arguments.iter().rev().cloned().collect::<Vec<_>>()))
}

/// A slice is at most what it is of.
fn slice(arguments: &[Value]) -> Result<()> {
    take(arguments.first().map_or(0, size))
}

/// The bytes and elements of all of them.
fn sizes(values: &[Value]) -> usize {
    values.iter().map(size).sum()
}

fn sum(a: &Value, b: &Value) -> Result<()> {
    match (a.as_str(), b.as_str()) {
        (Some(a), Some(b)) => take(a.len() + b.len()),
        _ => items(length(a).saturating_add(length(b))),
    }
}

fn product(a: &Value, b: &Value) -> Result<()> {
    let (value, times) = if a.is_number() { (b, a) } else { (a, b) };
    // What is multiplied with no whole number, the operator refuses.
    let times = times.as_usize().unwrap_or(0);
    match value.as_str() {
        Some(text) => take(text.len().saturating_mul(times)),
        None => items(length(value).saturating_mul(times)),
    }
}

fn concatenation(a: &Value, b: &Value) -> Result<()> {
    take(written(a)? + written(b)?)
}

/// Lists are compared item by item, as deep as they nest; a text is looked up in a list by comparing it with each element.
fn comparison(a: &Value, b: &Value) -> Result<()> {
    match (length(a), length(b)) {
        (0, 0) => Ok(()),
        (0, elements) => compare(size(a).saturating_mul(elements)),
        (_, 0) => Ok(()),
        _ => compare(written(a)?.min(written(b)?)),
    }
}

/// Sorting compares each element with as many others as its number has digits in base 2, by what is written of it or by the
/// attribute that a path leads to.
fn sorting(list: &Value, others: &[Value]) -> Result<()> {
    let mut bytes = 0_usize;
    let mut elements = 0_usize;
    let path: usize = others.iter().map(written).sum::<Result<usize>>()?;
    for item in list.try_iter().into_iter().flatten() {
        elements += 1;
        bytes = bytes.saturating_add(written(&item)?).saturating_add(path);
        if bytes > LEFT.get() {
            break;
        }
    }
    let rounds = (elements + 1).ilog2() as usize + 1;
    compare(bytes.saturating_mul(rounds))
}

/// A test of each element (`select`, `selectattr`) may look through it and through what is given.
fn tested(list: &Value, others: &[Value]) -> Result<()> {
    let mut bytes = length(list).saturating_mul(sizes(others));
    for item in list.try_iter().into_iter().flatten() {
        bytes = bytes.saturating_add(size(&item));
        if bytes > LEFT.get() {
            break;
        }
    }
    compare(bytes)
}

/// Counts a list of so many elements, which are made when they are read.
fn items(count: usize) -> Result<()> {
    if count > MOST_ITEMS {
        let problem = format!("a list of more than {MOST_ITEMS} elements");
        return Err(Error::new(ErrorKind::InvalidOperation, problem));
    }
    take(count)
}

/// The elements of a list or map; none of anything else.
fn length(value: &Value) -> usize {
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => value.len().unwrap_or(MOST_ITEMS),
        _ => 0,
    }
}

/// The bytes of a value as a text.
pub(super) fn written(value: &Value) -> Result<usize> {
    match value.as_str() {
        Some(text) => Ok(text.len()),
        None => shown(format_args!("{value}")),
    }
}

/// The bytes that a list or map, which may hold others many times, is written with.
fn shown(value: fmt::Arguments<'_>) -> Result<usize> {
    struct Length(usize);
    impl fmt::Write for Length {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0 += text.len();
            if self.0 > MOST_TEXT { Err(fmt::Error) } else { Ok(()) }
        }
    }
    let mut length = Length(0);
    let problem = |_| {
        let problem = format!("a value takes more than {MOST_TEXT} bytes to write");
        Error::new(ErrorKind::InvalidOperation, problem)
    };
    length.write_fmt(value).map_err(problem)?;
    Ok(length.0)
}

/// Counts what a filter makes of these arguments.
fn filter(name: &str, arguments: &[Value]) -> Result<()> {
    let Some((value, others)) = arguments.split_first() else { return Ok(()) };
    let text = value.as_str().unwrap_or_default();
    let other = |index: usize| others.get(index).and_then(Value::as_str).unwrap_or_default();
    match name {
        "dictsort" | "groupby" | "max" | "min" | "sort" | "unique" => sorting(value, others)?,
        "reject" | "rejectattr" | "select" | "selectattr" => tested(value, others)?,
        _ => {}
    }
    take(match name {
        "format" => return super::limits::percent_format(value, others),
        "join" => joined(value, other(0))?,
        "pprint" => shown(format_args!("{value:#?}"))?,
        "replace" => replaced(text, other(0), other(1)),
        "indent" => {
            super::limits::widths(others)?;
            let width = others.iter().filter_map(Value::as_usize).max().unwrap_or(super::limits::MOST_WIDTH);
            text.lines().count().saturating_mul(width) + text.len()
        }
        "batch" | "slice" => {
            super::limits::widths(others)?;
            size(value)
        }
        "split" => pieces(text, others.first().and_then(Value::as_str)),
        "lines" => pieces(text, Some("\n")),
        "e" | "escape" => 6 * text.len(),
        "list" => text.chars().count() * ITEM + size(value),
        _ => sizes(arguments),
    })
}

/// Counts what a method of Python's types makes of a value and its arguments.
pub(super) fn method(value: &Value, name: &str, arguments: &[Value]) -> Result<()> {
    let text = value.as_str().unwrap_or_default();
    let argument = |index: usize| arguments.get(index).and_then(Value::as_str).unwrap_or_default();
    take(match name {
        "format" => return super::limits::brace_format(text, arguments),
        "join" => joined(arguments.first().unwrap_or(&Value::UNDEFINED), text)?,
        "replace" => replaced(text, argument(0), argument(1)),
        "split" | "rsplit" => pieces(text, arguments.first().and_then(Value::as_str)),
        "splitlines" => pieces(text, Some("\n")),
        _ => text.len(),
    })
}

/// What a value is as a part of another: its text, or its elements.
fn size(value: &Value) -> usize {
    value.as_str().map_or_else(|| length(value) * ITEM, str::len)
}

fn joined(list: &Value, between: &str) -> Result<usize> {
    let mut bytes = 0_usize;
    for item in list.try_iter().into_iter().flatten() {
        bytes = bytes.saturating_add(written(&item)?).saturating_add(between.len());
        if bytes > LEFT.get() {
            break;
        }
    }
    Ok(bytes)
}

fn replaced(text: &str, old: &str, new: &str) -> usize {
    text.matches(old).count().saturating_mul(new.len()).saturating_add(text.len())
}

fn pieces(text: &str, between: Option<&str>) -> usize {
    let count =
        between.map_or_else(|| text.split_whitespace().count(), |between| text.matches(between).count() + 1);
    count * ITEM + text.len()
}
