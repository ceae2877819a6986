//! Options that are expressions over `config`, schedules of layers, or rotary position embeddings.

use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::config::{Config, Fields};
use super::options::expected;
use crate::expression::{CLOSE, Checked, Expression, Item, Kind, Name, Names, OPEN, Wrong};
use crate::spec::check::join;
use crate::spec::document::{Problem, nearest_name};
use crate::spec::model::ConfigType;
use crate::spec::yaml::{Data, Node, Place};
use crate::template::{OptionSpec, OptionType, VariableType};

/// Fields of `config`, and the variables that an option has.
struct Scope<'a> {
    fields: Fields<'a>,
    variables: &'a IndexMap<String, VariableType>,
}

impl Names for Scope<'_> {
    fn name(&self, path: &str) -> Result<Name, Wrong> {
        let Some(variable) = self.variables.get(path) else {
            return self.fields.name(path).map_err(|wrong| {
                let nearest = nearest_name(path, self.variables.keys().map(String::as_str));
                Wrong { nearest: nearest.map(str::to_owned).or(wrong.nearest), ..wrong }
            });
        };
        let kind = match variable {
            VariableType::Usize => Kind::Usize,
            VariableType::Bool => Kind::Bool,
        };
        Ok(Name { kind, optional: false, rust: format!("{OPEN}{path}{CLOSE}"), min: 0, of: vec![] })
    }
}

/// What a template gets for such an option: Rust, or a truth value that is one whatever the configuration says.
pub(super) fn value(
    spec: &OptionSpec,
    node: &Node,
    key: &str,
    config: &Config,
    problems: &mut Vec<Problem>,
) -> Value {
    let scope = Scope { fields: Fields { config, root: "c" }, variables: &spec.with };
    let option = Reading { spec, key, scope };
    let found = match (spec.kind, &node.data) {
        (OptionType::Flag | OptionType::Schedule, Data::Bool(value)) if !spec.nullable => {
            return (*value).into();
        }
        (OptionType::Schedule, Data::Map(_)) => option.schedule(node),
        (OptionType::Rope, Data::Map(_)) => option.rope(node),
        (OptionType::Rope, Data::Text(name)) => option.rope_of_all(name, node),
        (OptionType::Flag | OptionType::Schedule, _) => option.expression(node, Kind::Bool),
        (OptionType::Usize, _) => option.expression(node, Kind::Usize),
        (OptionType::F64, _) => option.expression(node, Kind::F64),
        _ => Err(option.unexpected(node)),
    };
    found.unwrap_or_else(|problem| {
        if !problem.message.is_empty() {
            problems.push(*problem);
        }
        Value::Null
    })
}

/// Refuses expressions over an option that the spec does not set.
pub(super) fn check_variables(
    specs: &IndexMap<String, OptionSpec>,
    options: &Map<String, Value>,
    given: &Node,
    home: &Place,
    key: &str,
    problems: &mut Vec<Problem>,
) {
    for (name, value) in options {
        let Some(text) = value.as_str() else { continue };
        for (other, value) in options.iter().filter(|(other, _)| specs.contains_key(*other)) {
            if value.is_null() && text.contains(&format!("{OPEN}{other}{CLOSE}")) {
                let at = given.entry(name).map_or(home, |entry| &entry.at);
                let message = format!("speaks of `{other}`, which is not set; set it beside");
                problems.push(at.problem(join(key, name), message));
            }
        }
    }
}

type Found<T> = Result<T, Box<Problem>>;

/// An option that is being read.
struct Reading<'a> {
    spec: &'a OptionSpec,
    key: &'a str,
    scope: Scope<'a>,
}

impl Reading<'_> {
    fn expression(&self, node: &Node, kind: Kind) -> Found<Value> {
        let checked = self.checked(node, self.key, kind, self.spec.nullable)?;
        let rust = checked.rust(kind, self.spec.nullable);
        Ok(match checked.truth().filter(|_| !self.spec.nullable) {
            Some(value) => value.into(),
            None => rust.into(),
        })
    }

    fn checked(&self, node: &Node, key: &str, kind: Kind, nullable: bool) -> Found<Checked> {
        let text = self.text(node, key)?;
        let checked = Expression::parse(&text)
            .and_then(|expression| expression.check(&text, &self.scope, kind, nullable));
        checked.map_err(|wrong| wrong_at(node, key, wrong))
    }

    /// What an expression is written as; a number may stand for itself.
    fn text(&self, node: &Node, key: &str) -> Found<String> {
        match &node.data {
            Data::Text(text) => Ok(text.clone()),
            Data::Bool(value) => Ok(value.to_string()),
            Data::Int(number) => Ok(number.to_string()),
            Data::Float(number) => Ok(format!("{number:?}")),
            Data::Null => Ok("null".to_owned()),
            _ if key == self.key => Err(self.unexpected(node)),
            _ => {
                let message = format!("expected an expression over fields of config, found {}", node.found());
                Err(Box::new(node.at.problem(key, message)))
            }
        }
    }

    /// `{of: layer_types, kind: sliding_attention, or: layer % 2 == 0, when: use_sliding_window}`.
    fn schedule(&self, node: &Node) -> Found<Value> {
        self.keys(node, &["of", "kind", "or", "when"])?;
        let (key, of) = self.entry(node, "of", "the field that lists a kind for each layer")?;
        let list = of.text().ok_or_else(|| self.unexpected(node))?;
        let name = self.scope.name(list).map_err(|wrong| wrong_at(of, &key, wrong))?;
        let kind = match (node.get("kind"), self.spec.of.first()) {
            (Some(kind), _) => match &kind.data {
                Data::Int(number) => number.to_string(),
                _ => format!("{:?}", self.text(kind, &join(self.key, "kind"))?),
            },
            (None, Some(kind)) => format!("{kind:?}"),
            (None, None) => {
                return Err(self.missing(node, "kind", "the kind of the layers for which it holds"));
            }
        };
        if name.kind == Kind::List(Item::Text) && name.of.is_empty() {
            let message = format!("`{list}` does not say which words it holds; give it `of` in config");
            return Err(Box::new(of.at.problem(key, message)));
        }
        let (key, or) = self.entry(node, "or", "what holds where that field says nothing")?;
        self.checked(or, &key, Kind::Bool, false)?;
        let mut text = format!("{list}[layer] == {kind} ?? ({})", self.text(or, &key)?);
        if let Some(when) = node.get("when") {
            let key = join(self.key, "when");
            self.checked(when, &key, Kind::Bool, false)?;
            text = format!("({}) and ({text})", self.text(when, &key)?);
        }
        let at = node.get("kind").unwrap_or(of);
        let whole = Node { at: at.at.clone(), data: Data::Text(text) };
        self.expression(&whole, Kind::Bool)
    }

    /// `{of: rope_parameters, kind: full_attention, theta: 1e6, legacy_theta: rope_local_base_freq}`, or
    /// `{of: rope_parameters, scaled: layer in rope_scaling_layers}`.
    fn rope(&self, node: &Node) -> Found<Value> {
        self.keys(node, &["of", "kind", "theta", "legacy_theta", "scaled"])?;
        let theta = join(self.key, "theta");
        let Some(of) = node.get("of") else {
            let (key, base) = self.entry(node, "theta", "the base of the frequencies")?;
            let base = self.checked(base, &key, Kind::F64, false)?.rust(Kind::F64, false);
            return Ok(format!("RopeParameters::of({base})").into());
        };
        let field = of.text().ok_or_else(|| self.unexpected(node))?;
        let (rust, kind) = self.rope_field(field, of)?;
        if kind == ConfigType::Rope {
            if let Some(kind) = node.get("kind") {
                let message = format!("`{field}` is the same for all kinds of layers");
                return Err(Box::new(kind.at.problem(join(self.key, "kind"), message)));
            }
            if let Some(scaled) = node.get("scaled") {
                let scaled = self.checked(scaled, &join(self.key, "scaled"), Kind::Bool, false)?;
                return Ok(format!("nn::rope_scaled(&{rust}, {})", scaled.rust(Kind::Bool, false)).into());
            }
            let (_, base) = self.entry(node, "theta", "the base where it is not that of `of`")?;
            let base = self.checked(base, &theta, Kind::F64, true)?.rust(Kind::F64, true);
            return Ok(format!("nn::rope_with(&{rust}, {base})").into());
        }
        let (key, kind) = self.entry(node, "kind", "the kind of the layers that it is for")?;
        let word = kind.text().ok_or_else(|| self.unexpected(node))?;
        let known = self.scope.fields.config.field("layer_types").map_or(&[][..], |field| &field.of);
        if !known.is_empty() && !known.iter().any(|known| known == word) {
            let message = format!("`{word}` is not a kind of layers; expected one of {}", known.join(", "));
            let nearest = nearest_name(word, known.iter().map(String::as_str)).map(str::to_owned);
            return Err(Box::new(Problem { nearest, ..kind.at.problem(key, message) }));
        }
        let (_, base) = self.entry(node, "theta", "the base where `of` has none for that kind")?;
        let base = self.checked(base, &theta, Kind::F64, false)?.rust(Kind::F64, false);
        let rope = format!("nn::layer_type_rope(&{rust}, {word:?}, {base})");
        let Some(legacy) = node.get("legacy_theta") else { return Ok(rope.into()) };
        let legacy = self.checked(legacy, &join(self.key, "legacy_theta"), Kind::F64, true)?;
        if !legacy.optional {
            let message = "is always given; expected a field that may be absent";
            return Err(Box::new(node.at.problem(join(self.key, "legacy_theta"), message)));
        }
        Ok(format!("{}.map_or_else(|| {rope}, RopeParameters::of)", legacy.rust(Kind::F64, true)).into())
    }

    /// A field that is for all layers.
    fn rope_of_all(&self, path: &str, node: &Node) -> Found<Value> {
        let (rust, kind) = self.rope_field(path, node)?;
        if kind == ConfigType::Ropes {
            let message =
                format!("`{path}` has some for each kind of layers; say which: `{{of: {path}, kind: …}}`");
            return Err(Box::new(node.at.problem(self.key, message)));
        }
        Ok(rust.into())
    }

    /// The Rust that reads a field of rotary position embeddings, and its type.
    fn rope_field(&self, path: &str, node: &Node) -> Found<(String, ConfigType)> {
        let fields = self.scope.fields;
        let name = fields.name(path).map_err(|wrong| wrong_at(node, self.key, wrong))?;
        match fields.config.at(path).and_then(|field| field.kind) {
            Some(kind @ (ConfigType::Rope | ConfigType::Ropes)) if !name.optional => Ok((name.rust, kind)),
            _ => {
                let is = name.kind.words();
                let message = format!("`{path}` is {is}; expected rotary position embeddings");
                Err(Box::new(node.at.problem(self.key, message)))
            }
        }
    }

    /// Refuses keys that are none of these.
    fn keys(&self, node: &Node, known: &[&str]) -> Found<()> {
        let Some(entry) = node.entries().iter().find(|entry| !known.contains(&entry.key.as_str())) else {
            return Ok(());
        };
        let message = format!("unknown key; expected one of {}", known.join(", "));
        let nearest = nearest_name(&entry.key, known.iter().copied()).map(str::to_owned);
        Err(Box::new(Problem { nearest, ..entry.at.problem(join(self.key, &entry.key), message) }))
    }

    fn entry<'a>(&self, node: &'a Node, name: &str, expected: &str) -> Found<(String, &'a Node)> {
        match node.get(name) {
            Some(value) => Ok((join(self.key, name), value)),
            None => Err(self.missing(node, name, expected)),
        }
    }

    fn missing(&self, node: &Node, name: &str, expected: &str) -> Box<Problem> {
        Box::new(node.at.problem(join(self.key, name), format!("is missing; expected {expected}")))
    }

    fn unexpected(&self, node: &Node) -> Box<Problem> {
        let message = format!("expected {}, found {}", expected(self.spec), node.found());
        Box::new(node.at.problem(self.key, message))
    }
}

fn wrong_at(node: &Node, key: &str, wrong: Wrong) -> Box<Problem> {
    Box::new(Problem { nearest: wrong.nearest, ..node.at.problem(key, wrong.message) })
}
