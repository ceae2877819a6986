//! Values as Python writes them: `str`, `repr` and `json.dumps`.

use std::fmt::Write as _;

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, Value};

use super::limits::{self, MOST_DEPTH, MOST_TEXT};

type Result<T> = std::result::Result<T, Error>;

/// `str(value)`.
pub(super) fn text(value: &Value) -> Result<String> {
    let mut out = String::new();
    match value.as_str() {
        Some(text) => out.push_str(text),
        None if value.is_undefined() => {}
        None => represent(value, 0, &mut out)?,
    }
    Ok(out)
}

/// Appends `repr(value)`.
fn represent(value: &Value, depth: usize, out: &mut String) -> Result<()> {
    bounded(depth, out)?;
    match value.kind() {
        ValueKind::None => out.push_str("None"),
        ValueKind::Bool => out.push_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::Number => out.push_str(&number(value)),
        ValueKind::String => out.push_str(&quoted(value.as_str().unwrap_or_default())),
        ValueKind::Seq | ValueKind::Iterable => {
            out.push('[');
            for (index, item) in value.try_iter().into_iter().flatten().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                represent(&item, depth + 1, out)?;
            }
            out.push(']');
        }
        ValueKind::Map => {
            out.push('{');
            for (index, key) in value.try_iter().into_iter().flatten().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                represent(&key, depth + 1, out)?;
                out.push_str(": ");
                represent(&value.get_item(&key).unwrap_or_default(), depth + 1, out)?;
            }
            out.push('}');
        }
        _ => out.push_str(&value.to_string()),
    }
    Ok(())
}

/// Refuses values that nest too deep, or whose text is too long.
fn bounded(depth: usize, out: &str) -> Result<()> {
    let problem = match () {
        () if depth > MOST_DEPTH => format!("a value nests more than {MOST_DEPTH} deep"),
        () if out.len() > MOST_TEXT => format!("a value takes more than {MOST_TEXT} bytes to write"),
        () => return Ok(()),
    };
    Err(Error::new(ErrorKind::InvalidOperation, problem))
}

/// A text in the quotes that Python chooses.
fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for letter in text.chars() {
        match letter {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            letter if letter == quote => out.extend(['\\', letter]),
            letter if printable(letter) => out.push(letter),
            letter => {
                let _ = match u32::from(letter) {
                    code @ ..0x100 => write!(out, "\\x{code:02x}"),
                    code @ ..0x1_0000 => write!(out, "\\u{code:04x}"),
                    code => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push(quote);
    out
}

/// Whether a letter is shown as it is.
fn printable(letter: char) -> bool {
    // Behind another letter, marks that combine with it are shown too.
    let pair: String = ['a', letter].into_iter().collect();
    matches!(letter, '"' | '\'') || pair.escape_debug().count() == 2
}

/// Whole numbers as they are; others with the shortest digits that give them back.
fn number(value: &Value) -> String {
    let Ok(float) = f64::try_from(value.clone()) else { return value.to_string() };
    if value.is_integer() {
        return value.to_string();
    }
    if !float.is_finite() {
        return float.to_string().to_lowercase();
    }
    let digits = format!("{float:e}");
    let (mantissa, exponent) = digits.split_once('e').unwrap_or((&digits, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if float != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    format!("{float:?}")
}

/// `json.dumps` with the options that the reference's filter takes.
#[derive(Debug)]
struct Style {
    ensure_ascii: bool,
    indent: Option<String>,
    item: String,
    key: String,
    sort_keys: bool,
}

/// `value | tojson(ensure_ascii=False, indent=None, separators=None, sort_keys=False)`.
///
/// Jinja's own filter escapes for HTML; this one does not.
#[allow(clippy::needless_pass_by_value, reason = "filters are given their arguments so")]
pub(super) fn to_json(value: &Value, options: Kwargs) -> Result<String> {
    let indent = match options.get::<Option<Value>>("indent")? {
        None => None,
        Some(value) if value.is_none() || value.is_undefined() => None,
        Some(value) => Some(match value.as_usize() {
            Some(width) => " ".repeat(limits::width(width)?),
            None => value.as_str().unwrap_or_default().to_owned(),
        }),
    };
    let separators = options.get::<Option<Vec<String>>>("separators")?;
    let (item, key) = match separators.as_deref() {
        Some([item, key]) => (item.clone(), key.clone()),
        _ => (if indent.is_some() { "," } else { ", " }.to_owned(), ": ".to_owned()),
    };
    let style = Style {
        ensure_ascii: options.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
        indent,
        item,
        key,
        sort_keys: options.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
    };
    options.assert_all_used()?;
    let mut out = String::new();
    dump(value, &style, 0, &mut out)?;
    Ok(out)
}

fn dump(value: &Value, style: &Style, depth: usize, out: &mut String) -> Result<()> {
    bounded(depth, out)?;
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => out.push_str(&number(value)),
        ValueKind::String => escape(value.as_str().unwrap_or_default(), style, out),
        ValueKind::Seq | ValueKind::Iterable => {
            let items: Vec<Value> = value.try_iter()?.collect();
            block(out, style, depth, ['[', ']'], &items, |item, out| dump(item, style, depth + 1, out))?;
        }
        ValueKind::Map => {
            let mut keys: Vec<Value> = value.try_iter()?.collect();
            if style.sort_keys {
                keys.sort();
            }
            block(out, style, depth, ['{', '}'], &keys, |key, out| {
                escape(&key_text(key)?, style, out);
                out.push_str(&style.key);
                dump(&value.get_item(key)?, style, depth + 1, out)
            })?;
        }
        kind => {
            let problem = format!("a value of kind {kind} cannot be written as JSON");
            return Err(Error::new(ErrorKind::BadSerialization, problem));
        }
    }
    Ok(())
}

/// A list or an object, in one line or indented.
fn block(
    out: &mut String,
    style: &Style,
    depth: usize,
    [open, close]: [char; 2],
    items: &[Value],
    mut one: impl FnMut(&Value, &mut String) -> Result<()>,
) -> Result<()> {
    out.push(open);
    let line = |out: &mut String, depth: usize| {
        if let Some(indent) = &style.indent {
            out.push('\n');
            out.push_str(&indent.repeat(depth));
        }
    };
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push_str(&style.item);
        }
        line(out, depth + 1);
        one(item, out)?;
    }
    if !items.is_empty() {
        line(out, depth);
    }
    out.push(close);
    Ok(())
}

/// Keys that are no texts are written as JSON writes them.
fn key_text(key: &Value) -> Result<String> {
    match key.kind() {
        ValueKind::Bool => Ok(key.is_true().to_string()),
        ValueKind::None => Ok("null".to_owned()),
        _ => text(key),
    }
}

fn escape(text: &str, style: &Style, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            letter if letter < ' ' || (style.ensure_ascii && !letter.is_ascii()) => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
}
