//! The keys under `graph:`, checked against the front matter of the templates they are for.

use serde_json::{Map, Value};

use super::config::{Config, activation};
use super::expressions;
use crate::spec::check::join;
use crate::spec::document::{Problem, nearest_name};
use crate::spec::yaml::{Data, Entry, Node, Place};
use crate::template::{OptionSpec, OptionType, Template};

/// The options of a template as it sees them: what is given, and defaults for the rest.
///
/// `other` names keys that are not options but may stand beside them; `home` is where options can be added. What the template does
/// not have may be null: a module with another template than the model that it names takes the keys of that away.
pub fn options(
    template: &Template,
    given: &Node,
    other: &[&str],
    key: &str,
    home: &Place,
    config: &Config,
    problems: &mut Vec<Problem>,
) -> Map<String, Value> {
    let specs = &template.front.options;
    for entry in given.entries().iter().filter(|entry| !other.contains(&entry.key.as_str())) {
        if !specs.contains_key(&entry.key) && !matches!(entry.value.data, Data::Null) {
            problems.push(unknown(entry, template, other, key));
        }
    }
    let mut options = Map::new();
    for (name, spec) in specs {
        let path = join(key, name);
        let value = match given.entry(name) {
            Some(entry) => value(spec, &entry.value, &path, config, problems),
            None => default(template, spec, home, &path, config, problems),
        };
        options.insert(name.clone(), value);
    }
    expressions::check_variables(specs, &options, given, home, key, problems);
    options
}

fn unknown(entry: &Entry, template: &Template, other: &[&str], key: &str) -> Problem {
    let names = || other.iter().copied().chain(template.front.options.keys().map(String::as_str));
    let list = names().collect::<Vec<_>>().join(", ");
    let expected =
        if list.is_empty() { "none is expected".to_owned() } else { format!("expected one of {list}") };
    let message = format!("unknown key for {}; {expected}", template.label);
    let nearest = nearest_name(&entry.key, names()).map(str::to_owned);
    Problem { nearest, ..entry.at.problem(join(key, &entry.key), message) }
}

fn default(
    template: &Template,
    spec: &OptionSpec,
    home: &Place,
    key: &str,
    config: &Config,
    problems: &mut Vec<Problem>,
) -> Value {
    let Some(value) = &spec.default else {
        if !spec.optional {
            let message = format!("is missing; {} expects {}", template.label, expected(spec));
            problems.push(home.problem(key, message));
        }
        return Value::Null;
    };
    let node = node(&template.place("options"), value);
    let mut wrong = vec![];
    let value = self::value(spec, &node, key, config, &mut wrong);
    for mut problem in wrong {
        // A default that does not suit this model: the spec is where it can be set.
        problem.file = home.file.to_path_buf();
        problem.line = Some(home.line);
        problem.message = format!("{} (the default of {}); set it", problem.message, template.label);
        problems.push(problem);
    }
    value
}

fn data(at: &Place, value: &Value) -> Data {
    match value {
        Value::Bool(value) => Data::Bool(*value),
        Value::Number(number) => {
            number.as_i64().map_or_else(|| Data::Float(number.as_f64().unwrap_or_default()), Data::Int)
        }
        Value::String(text) => Data::Text(text.clone()),
        Value::Array(items) => Data::List(items.iter().map(|item| node(at, item)).collect()),
        Value::Object(entries) => {
            let entry =
                |(key, value)| Entry { key: String::clone(key), at: at.clone(), value: node(at, value) };
            Data::Map(entries.iter().map(entry).collect())
        }
        Value::Null => Data::Null,
    }
}

fn node(at: &Place, value: &Value) -> Node {
    Node { at: at.clone(), data: data(at, value) }
}

/// What a template sees for a value: itself, or a Rust expression where the option allows a field of `config`.
fn value(spec: &OptionSpec, node: &Node, key: &str, config: &Config, problems: &mut Vec<Problem>) -> Value {
    let field = |name: &str, problems: &mut Vec<Problem>| {
        if !config.has(name) {
            let message = format!("`{name}` is not a field of config");
            problems.push(Problem { nearest: config.nearest(name), ..node.at.problem(key, message) });
        }
    };
    match (spec.kind, &node.data) {
        (_, Data::Null) if spec.optional => Value::Null,
        (
            OptionType::Flag | OptionType::Usize | OptionType::F64 | OptionType::Schedule | OptionType::Rope,
            _,
        ) => expressions::value(spec, node, key, config, problems),
        (OptionType::Bool, Data::Bool(value)) => (*value).into(),
        (OptionType::Int, Data::Int(number)) => (*number).into(),
        (OptionType::Float, Data::Int(_) | Data::Float(_)) => node.to_json(),
        (OptionType::Scope, Data::Text(path)) if is_path(path) => path.as_str().into(),
        (OptionType::Scopes, Data::List(items))
            if items.iter().all(|item| item.text().is_some_and(|path| !path.is_empty() && is_path(path))) =>
        {
            node.to_json()
        }
        (OptionType::Field, Data::Text(name)) => {
            field(name, problems);
            name.as_str().into()
        }
        (OptionType::Activation, Data::Text(name)) => match activation(name).filter(|_| !config.has(name)) {
            Some(variant) => format!("Activation::{variant}").into(),
            None => {
                field(name, problems);
                config.expression(name).into()
            }
        },
        (OptionType::Word, Data::Text(word)) if spec.of.contains(word) => word.as_str().into(),
        _ => {
            let message = format!("expected {}, found {}", expected(spec), node.found());
            let words = spec.of.iter().map(String::as_str);
            let nearest = node.text().and_then(|text| nearest_name(text, words)).map(str::to_owned);
            problems.push(Problem { nearest, ..node.at.problem(key, message) });
            Value::Null
        }
    }
}

fn is_path(path: &str) -> bool {
    path.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.')
        && path.split('.').any(str::is_empty) == path.is_empty()
}

pub(super) fn expected(spec: &OptionSpec) -> String {
    match spec.kind {
        OptionType::Bool => "true or false".to_owned(),
        OptionType::Int => "a whole number".to_owned(),
        OptionType::Float => "a number".to_owned(),
        OptionType::Scopes => "a list of names in the checkpoint, such as `[output.dense]`".to_owned(),
        OptionType::Scope => "a name in the checkpoint, such as `output.dense`".to_owned(),
        OptionType::Field => "the name of a field of config".to_owned(),
        OptionType::Flag => "true, false or an expression over fields of config".to_owned(),
        OptionType::Usize => "a count or an expression over fields of config".to_owned(),
        OptionType::F64 => "a number or an expression over fields of config".to_owned(),
        OptionType::Schedule => {
            "true, false, an expression over fields of config, or a map with `of`, `kind`, `or` and `when`"
                .to_owned()
        }
        OptionType::Rope => {
            "the name of a field of config, or a map with `of`, `kind` and `theta`".to_owned()
        }
        OptionType::Activation => "an activation function or the name of a field of config".to_owned(),
        OptionType::Word => format!("one of {}", spec.of.join(", ")),
    }
}
