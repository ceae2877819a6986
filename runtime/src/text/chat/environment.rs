//! Jinja as the reference sets it up.

use std::fmt::Write as _;
use std::time::SystemTime;

use chrono::{DateTime, Local};
use minijinja::value::{Kwargs, Rest};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, State, Value};

use super::instructions::SAME;
use super::{memory, python};

type Result<T> = std::result::Result<T, Error>;

/// An environment with the reference's options, functions and filters.
pub(super) fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_unknown_method_callback(method);
    environment.set_formatter(|out, _, value| {
        if let Some(text) = value.as_str() {
            memory::write(text.len())?;
            return out.write_str(text).map_err(Error::from);
        }
        let text = python::text(value)?;
        memory::write(text.len())?;
        out.write_str(&text).map_err(Error::from)
    });
    environment.add_filter("tojson", |value: &Value, options: Kwargs| -> Result<String> {
        let text = python::to_json(value, options)?;
        memory::take(text.len())?;
        Ok(text)
    });
    environment.add_filter("string", |value: &Value| -> Result<String> {
        memory::take(value.as_str().map_or(0, str::len))?;
        let text = python::text(value)?;
        memory::take(text.len())?;
        Ok(text)
    });
    environment.add_filter(SAME, |value: Value| value);
    memory::count(&mut environment);
    environment.add_function("raise_exception", |message: String| -> Result<Value> {
        Err(Error::new(ErrorKind::InvalidOperation, message))
    });
    environment.add_function("dict", |arguments: Rest<Value>, named: Kwargs| dictionary(&arguments, &named));
    environment.add_function("strftime_now", |format: String| time(crate::clock::now(), &format));
    environment
}

/// Fixes what `strftime_now` tells.
pub(super) fn set_now(environment: &mut Environment<'static>, now: SystemTime) {
    environment.add_function("strftime_now", move |format: String| time(now, &format));
}

fn time(now: SystemTime, format: &str) -> Result<String> {
    let mut text = String::new();
    let written = write!(text, "{}", DateTime::<Local>::from(now).format(format));
    written
        .map_err(|_| Error::new(ErrorKind::InvalidOperation, format!("`{format}` is no format of a time")))?;
    Ok(text)
}

/// `dict(other, key=value)`.
fn dictionary(arguments: &[Value], named: &Kwargs) -> Result<Value> {
    let mut pairs: Vec<(Value, Value)> = Vec::new();
    for map in arguments {
        for key in map.try_iter()? {
            let value = map.get_item(&key)?;
            pairs.push((key, value));
        }
    }
    for name in named.args() {
        pairs.push((name.into(), named.get(name)?));
    }
    Ok(pairs.into_iter().collect())
}

/// Methods of Python's types, with a few more than `minijinja-contrib` has.
fn method(state: &State<'_, '_>, value: &Value, name: &str, arguments: &[Value]) -> Result<Value> {
    memory::method(value, name, arguments)?;
    if let (Some(text), [first, ..]) = (value.as_str(), arguments)
        && let Some(part) = first.as_str()
    {
        let most = arguments.get(1).and_then(Value::as_usize);
        match name {
            "removeprefix" => return Ok(text.strip_prefix(part).unwrap_or(text).into()),
            "removesuffix" => return Ok(text.strip_suffix(part).unwrap_or(text).into()),
            "partition" => {
                return Ok(list(&text.split_once(part).map_or([text, "", ""], |(a, b)| [a, part, b])));
            }
            "rpartition" => {
                return Ok(list(&text.rsplit_once(part).map_or(["", "", text], |(a, b)| [a, part, b])));
            }
            // The library looks for it without end.
            "count" if part.is_empty() => return Ok(Value::from(text.chars().count() + 1)),
            "rsplit" => {
                let most = most.map_or(usize::MAX, |most| most + 1);
                let mut parts: Vec<&str> = text.rsplitn(most, part).collect();
                parts.reverse();
                return Ok(list(&parts));
            }
            _ => {}
        }
    }
    minijinja_contrib::pycompat::unknown_method_callback(state, value, name, arguments)
}

fn list(texts: &[&str]) -> Value {
    texts.iter().map(|text| Value::from(*text)).collect()
}

/// The reference's own tag marks what the assistant wrote, for training; it changes no text. `with` has its scope.
pub(super) fn without_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let Some(length) = rest[start + 2..].find("%}") else { break };
        let tag = &rest[start + 2..][..length];
        let name = tag.trim_matches(['-', '+']).trim();
        let instead = match name {
            "generation" => "with",
            "endgeneration" => "endwith",
            other => other,
        };
        out.push_str(&rest[..start + 2]);
        out.push_str(&if instead == name { tag.to_owned() } else { tag.replace(name, instead) });
        out.push_str("%}");
        rest = &rest[start + length + 4..];
    }
    out.push_str(rest);
    out
}
