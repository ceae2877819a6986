//! YAML as a tree in which every key and value knows its file and line.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::Value;

use super::document::Problem;

/// A file and a line in it, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, as errors name it.
    pub file: Arc<Path>,
    /// The line.
    pub line: usize,
}

impl Place {
    /// The first line of a file.
    pub fn start(file: &Path) -> Self {
        Self { file: Arc::from(file), line: 1 }
    }

    /// A problem here; `key` is the dotted path of what it is about.
    pub fn problem(&self, key: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem { line: Some(self.line), key: key.into(), ..Problem::new(&self.file, message) }
    }
}

/// A value and where it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where it starts.
    pub at: Place,
    /// What it is.
    pub data: Data,
}

/// What a value is, by YAML 1.2's core schema (so `no` is a text).
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Nothing, `~` or `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Anything else that is one word or quoted.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// Keys and values, in the document's order.
    Map(Vec<Entry>),
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub at: Place,
    /// The value.
    pub value: Node,
}

impl Node {
    /// The value of a key, if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// A key with its value, if this is a map that has it.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// The entries, if this is a map; none otherwise.
    pub fn entries(&self) -> &[Entry] {
        match &self.data {
            Data::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The elements, if this is a list; none otherwise.
    pub fn items(&self) -> &[Self] {
        match &self.data {
            Data::List(items) => items,
            _ => &[],
        }
    }

    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match &self.data {
            Data::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What it is, in words for an error.
    pub fn found(&self) -> String {
        match &self.data {
            Data::Null => "nothing".to_owned(),
            Data::Bool(value) => format!("`{value}`"),
            Data::Int(value) => format!("the number {value}"),
            Data::Float(value) => format!("the number {value}"),
            Data::Text(text) => format!("the text \"{text}\""),
            Data::List(_) => "a list".to_owned(),
            Data::Map(_) => "a map".to_owned(),
        }
    }

    /// The same value without places.
    pub fn to_json(&self) -> Value {
        match &self.data {
            Data::Null => Value::Null,
            Data::Bool(value) => (*value).into(),
            Data::Int(value) => (*value).into(),
            Data::Float(value) => (*value).into(),
            Data::Text(text) => text.as_str().into(),
            Data::List(items) => items.iter().map(Self::to_json).collect(),
            Data::Map(entries) => {
                Value::Object(entries.iter().map(|e| (e.key.clone(), e.value.to_json())).collect())
            }
        }
    }
}

/// Reads one document; `skipped` lines stand before it in the file.
///
/// # Errors
/// The text is not YAML, has a key twice, or a key that is not a word.
pub fn parse(file: &Path, text: &str, skipped: usize) -> Result<Node, Problem> {
    let file: Arc<Path> = Arc::from(file);
    let mut builder = Builder { file: Arc::clone(&file), open: vec![], anchors: HashMap::new(), root: None };
    for event in Parser::new_from_str(text) {
        let place = |line| Place { file: Arc::clone(&file), line: line + skipped };
        let (event, span) = event.map_err(|error| {
            let info = error.info();
            place(error.marker().line()).problem("", format!("is not YAML: {info}"))
        })?;
        builder.event(event, place(span.start.line()))?;
    }
    Ok(builder.root.unwrap_or(Node { at: Place { file, line: 1 + skipped }, data: Data::Map(vec![]) }))
}

/// A list or map that is still being read.
struct Open {
    at: Place,
    anchor: usize,
    entries: Option<Vec<Entry>>,
    items: Vec<Node>,
    key: Option<(String, Place)>,
}

struct Builder {
    file: Arc<Path>,
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    root: Option<Node>,
}

impl Builder {
    fn event(&mut self, event: Event<'_>, at: Place) -> Result<(), Problem> {
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let data =
                    if style == ScalarStyle::Plain { scalar(&text) } else { Data::Text(text.into_owned()) };
                self.push(Node { at, data }, anchor)
            }
            Event::SequenceStart(anchor, _) => {
                self.open.push(Open { at, anchor, entries: None, items: vec![], key: None });
                Ok(())
            }
            Event::MappingStart(anchor, _) => {
                self.open.push(Open { at, anchor, entries: Some(vec![]), items: vec![], key: None });
                Ok(())
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(open) = self.open.pop() else { return Ok(()) };
                let data = open.entries.map_or(Data::List(open.items), Data::Map);
                self.push(Node { at: open.at, data }, open.anchor)
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor) {
                Some(node) => self.push(node.clone(), 0),
                None => Err(at.problem("", "names an anchor that does not exist")),
            },
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(at.problem("", "holds a second document; one is expected"))
            }
            _ => Ok(()),
        }
    }

    fn push(&mut self, node: Node, anchor: usize) -> Result<(), Problem> {
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        let Some(entries) = &mut open.entries else {
            open.items.push(node);
            return Ok(());
        };
        match open.key.take() {
            Some((key, at)) => entries.push(Entry { key, at, value: node }),
            None => {
                let key = match node.data {
                    Data::Text(text) => text,
                    Data::Int(number) => number.to_string(),
                    Data::Bool(value) => value.to_string(),
                    _ => {
                        return Err(node
                            .at
                            .problem("", format!("a key must be a word, not {}", node.found())));
                    }
                };
                if let Some(first) = entries.iter().find(|entry| entry.key == key) {
                    let message = format!("is given twice; the first is in line {}", first.at.line);
                    return Err(node.at.problem(key, message));
                }
                let at = Place { file: Arc::clone(&self.file), line: node.at.line };
                open.key = Some((key, at));
            }
        }
        Ok(())
    }
}

/// A plain scalar, by the core schema.
fn scalar(text: &str) -> Data {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Data::Null,
        "true" | "True" | "TRUE" => return Data::Bool(true),
        "false" | "False" | "FALSE" => return Data::Bool(false),
        _ => {}
    }
    let digits = text.trim_start_matches(['+', '-']);
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Data::Text(text.to_owned());
    }
    if let Ok(number) = text.trim_start_matches('+').parse() {
        return Data::Int(number);
    }
    let numeric = digits.bytes().all(|c| c.is_ascii_digit() || b".eE+-".contains(&c));
    match text.parse::<f64>() {
        Ok(number) if numeric => Data::Float(number),
        _ => Data::Text(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Node, Problem> {
        parse(Path::new("a.yaml"), text, 0)
    }

    #[test]
    fn scalars_follow_the_core_schema() {
        let node = read("{a: no, b: 1e-12, c: -3, d: '1', e: ~, f: true, g: 1.2.3, h: .5, i: 12b}").unwrap();
        insta::assert_compact_json_snapshot!(node.to_json(), @r#"{"a": "no", "b": 0.000000000001, "c": -3, "d": "1", "e": null, "f": true, "g": "1.2.3", "h": 0.5, "i": "12b"}"#);
    }

    #[test]
    fn every_value_knows_its_line() {
        let node = read("a: 1\nb:\n  - x\n  - {y: 2}\n").unwrap();
        let list = node.get("b").unwrap();
        assert_eq!(node.entry("b").unwrap().at.line, 2);
        assert_eq!(list.items()[1].get("y").unwrap().at.line, 4);
    }

    #[test]
    fn what_is_not_yaml_is_named_with_its_line() {
        insta::assert_snapshot!(read("a: 1\nb: [x\n").unwrap_err(), @"a.yaml:3: is not YAML: while parsing a flow sequence, expected ',' or ']'");
        insta::assert_snapshot!(read("a: 1\nb: 2\na: 3\n").unwrap_err(), @"a.yaml:3: `a`: is given twice; the first is in line 1");
        insta::assert_snapshot!(read("? [x]\n: 2\n").unwrap_err(), @"a.yaml:1: a key must be a word, not a list");
        insta::assert_snapshot!(read("a: 1\n---\nb: 2\n").unwrap_err(), @"a.yaml:2: holds a second document; one is expected");
    }

    #[test]
    fn anchors_are_followed() {
        let node = read("a: &x {b: 1}\nc: *x\n").unwrap();
        assert_eq!(node.get("c").unwrap().get("b").unwrap().data, Data::Int(1));
    }
}
