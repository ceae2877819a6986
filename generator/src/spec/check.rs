//! Checks a YAML tree against the JSON schema of a Rust type, and reports everything that is wrong at once.
//!
//! The schema is the one that editors are given, so both say the same.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use schemars::JsonSchema;
use serde_json::Value;

use super::document::{Problem, nearest_name};
use super::yaml::{Data, Node};

/// Everything in `node` that does not fit `T`.
pub fn check<T: JsonSchema + 'static>(node: &Node) -> Vec<Problem> {
    run::<T>(node, false)
}

/// Everything in `node` that does not fit `T`; keys without a value are let pass, since they take something away.
pub fn check_difference<T: JsonSchema + 'static>(node: &Node) -> Vec<Problem> {
    run::<T>(node, true)
}

fn run<T: JsonSchema + 'static>(node: &Node, nulls: bool) -> Vec<Problem> {
    let root = schema::<T>();
    let mut checker = Checker { root: &root, nulls, problems: vec![] };
    checker.value(node, &root, "");
    checker.problems
}

/// The schema of a type, made once.
fn schema<T: JsonSchema + 'static>() -> Arc<Value> {
    static KNOWN: LazyLock<Mutex<HashMap<TypeId, Arc<Value>>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let made = || Arc::new(schemars::schema_for!(T).to_value());
    Arc::clone(known.entry(TypeId::of::<T>()).or_insert_with(made))
}

struct Checker<'a> {
    root: &'a Value,
    nulls: bool,
    problems: Vec<Problem>,
}

impl<'a> Checker<'a> {
    fn value(&mut self, node: &Node, schema: &'a Value, key: &str) {
        if self.nulls && node.data == Data::Null {
            return;
        }
        let schema = self.target(schema);
        if let Some(words) = words(schema) {
            self.word(node, &words, key);
            return;
        }
        if let Some(branches) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array)
        {
            let branches = self.leaves(branches);
            self.branch(node, &branches, key);
            return;
        }
        if !fits(node, schema) {
            let message = format!("expected {}, found {}", self.describe(schema), node.found());
            self.problems.push(node.at.problem(key, message));
            return;
        }
        match &node.data {
            Data::Map(_) => self.map(node, schema, key),
            Data::List(items) => {
                if let Some(schema) = schema.get("items").filter(|items| items.is_object()) {
                    for (index, item) in items.iter().enumerate() {
                        self.value(item, schema, &format!("{key}[{index}]"));
                    }
                }
            }
            Data::Int(number) => {
                let minimum = schema.get("minimum").and_then(Value::as_i64);
                if minimum.is_some_and(|minimum| *number < minimum) {
                    let message = format!("expected a number that is not negative, found {number}");
                    self.problems.push(node.at.problem(key, message));
                }
            }
            _ => {}
        }
    }

    fn map(&mut self, node: &Node, schema: &'a Value, key: &str) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let names = || properties.into_iter().flat_map(|map| map.keys().map(String::as_str));
        let allowed = schema.get("propertyNames").and_then(words);
        for entry in node.entries() {
            let path = join(key, &entry.key);
            if let Some(allowed) = allowed.as_ref().filter(|allowed| !allowed.contains(&entry.key.as_str())) {
                let message = format!("unknown key; expected one of {}", allowed.join(", "));
                let nearest = nearest_name(&entry.key, allowed.iter().copied()).map(str::to_owned);
                self.problems.push(Problem { nearest, ..entry.at.problem(path, message) });
                continue;
            }
            let known = properties.and_then(|map| map.get(&entry.key));
            match (known, schema.get("additionalProperties")) {
                (Some(schema), _) => self.value(&entry.value, schema, &path),
                (None, Some(Value::Bool(false))) => {
                    let list = names().collect::<Vec<_>>().join(", ");
                    let mut problem = entry.at.problem(path, format!("unknown key; expected one of {list}"));
                    problem.nearest = nearest_name(&entry.key, names()).map(str::to_owned);
                    self.problems.push(problem);
                }
                (None, Some(schema @ Value::Object(_))) => self.value(&entry.value, schema, &path),
                _ => {}
            }
        }
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            if let Some(name) = name.as_str().filter(|name| node.get(name).is_none()) {
                let expected = properties.and_then(|map| map.get(name)).map(|schema| self.describe(schema));
                let expected = expected.map_or_else(String::new, |text| format!("; expected {text}"));
                self.problems.push(node.at.problem(join(key, name), format!("is missing{expected}")));
            }
        }
    }

    fn word(&mut self, node: &Node, words: &[&str], key: &str) {
        let text = node.text().unwrap_or_default();
        if words.contains(&text) {
            return;
        }
        let mut problem =
            node.at.problem(key, format!("expected one of {}, found {}", words.join(", "), node.found()));
        problem.nearest = nearest_name(text, words.iter().copied()).map(str::to_owned);
        self.problems.push(problem);
    }

    /// One of several: the first that fits; or, where none does, what is wrong with the nearest.
    fn branch(&mut self, node: &Node, branches: &[&'a Value], key: &str) {
        let mut nearest: Option<Vec<Problem>> = None;
        for branch in branches {
            let mut trial = Checker { root: self.root, nulls: self.nulls, problems: vec![] };
            trial.value(node, branch, key);
            if trial.problems.is_empty() {
                return;
            }
            if fits(node, branch) {
                nearest.get_or_insert(trial.problems);
            }
        }
        let problems = nearest.unwrap_or_else(|| {
            let expected: Vec<_> = branches.iter().map(|branch| self.describe(branch)).collect();
            vec![node.at.problem(key, format!("expected {}, found {}", expected.join(" or "), node.found()))]
        });
        self.problems.extend(problems);
    }

    /// The alternatives, with those within alternatives.
    fn leaves(&self, branches: &'a [Value]) -> Vec<&'a Value> {
        let mut leaves = vec![];
        for branch in branches {
            let branch = self.target(branch);
            match branch.get("anyOf").and_then(Value::as_array) {
                Some(inner) => leaves.extend(self.leaves(inner)),
                None => leaves.push(branch),
            }
        }
        leaves
    }

    /// The schema that a reference leads to.
    fn target(&self, schema: &'a Value) -> &'a Value {
        let name = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
        name.and_then(|name| self.root.get("$defs")?.get(name)).unwrap_or(schema)
    }

    fn describe(&self, schema: &'a Value) -> String {
        let schema = self.target(schema);
        if let Some(words) = words(schema) {
            return format!("one of {}", words.join(", "));
        }
        if let Some(branches) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array)
        {
            return branches.iter().map(|branch| self.describe(branch)).collect::<Vec<_>>().join(" or ");
        }
        let names: Vec<_> = types(schema).filter(|name| *name != "null").map(in_words).collect();
        if names.is_empty() { "nothing".to_owned() } else { names.join(" or ") }
    }
}

/// The words of an enumeration, if the schema is one.
fn words(schema: &Value) -> Option<Vec<&str>> {
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        return words.iter().map(Value::as_str).collect();
    }
    if let Some(word) = schema.get("const").and_then(Value::as_str) {
        return Some(vec![word]);
    }
    let branches = schema.get("oneOf")?.as_array()?;
    let words: Option<Vec<_>> = branches.iter().map(words).collect();
    words.map(|words| words.concat())
}

fn types(schema: &Value) -> impl Iterator<Item = &str> {
    let (one, many) = match schema.get("type") {
        Some(Value::String(name)) => (Some(name.as_str()), None),
        Some(Value::Array(names)) => (None, Some(names.iter().filter_map(Value::as_str))),
        _ => (None, None),
    };
    one.into_iter().chain(many.into_iter().flatten())
}

fn fits(node: &Node, schema: &Value) -> bool {
    if schema.get("type").is_none() {
        return true;
    }
    types(schema).any(|name| match &node.data {
        Data::Null => name == "null",
        Data::Bool(_) => name == "boolean",
        Data::Int(_) => matches!(name, "integer" | "number"),
        Data::Float(_) => name == "number",
        Data::Text(_) => name == "string",
        Data::List(_) => name == "array",
        Data::Map(_) => name == "object",
    })
}

fn in_words(kind: &str) -> &str {
    match kind {
        "boolean" => "true or false",
        "integer" => "a whole number",
        "number" => "a number",
        "string" => "a text",
        "array" => "a list",
        "object" => "a map",
        other => other,
    }
}

/// A dotted path one level further down.
pub fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
