//! `config` of a spec, as the fields and checks of a Rust struct.

use indexmap::IndexMap;
use serde::Serialize;

use crate::spec::check::join;
use crate::spec::document::{Problem, nearest_name};
use crate::spec::load::Resolved;
use crate::spec::model::{ConfigEntry, ConfigField, ConfigType, Scalar};
use crate::spec::yaml::Place;

/// The runtime's variant of an activation function, by the name that configurations use for it.
pub fn activation(name: &str) -> Option<&'static str> {
    ACTIVATIONS.iter().find(|(known, _)| *known == name).map(|(_, variant)| *variant)
}

/// The names that configurations use for activation functions, and the runtime's variants for them.
const ACTIVATIONS: [(&str, &str); 17] = [
    ("gelu", "Gelu"),
    ("gelu_python", "Gelu"),
    ("gelu_new", "GeluNew"),
    ("gelu_fast", "GeluNew"),
    ("gelu_pytorch_tanh", "GeluNew"),
    ("gelu_python_tanh", "GeluNew"),
    ("gelu_accurate", "GeluNew"),
    ("quick_gelu", "QuickGelu"),
    ("relu", "Relu"),
    ("relu2", "Relu2"),
    ("relu6", "Relu6"),
    ("silu", "Silu"),
    ("swish", "Silu"),
    ("sigmoid", "Sigmoid"),
    ("tanh", "Tanh"),
    ("mish", "Mish"),
    ("linear", "Linear"),
];

/// `config.json` as templates see it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Config {
    /// The fields, in the spec's order.
    pub fields: Vec<Field>,
    /// Whether every field has a default.
    pub complete: bool,
    /// The field with the class names, if there is one.
    pub labels: Option<String>,
    /// Whether there is a field `num_labels` too.
    pub counts_labels: bool,
    /// Whether a field is an activation function.
    pub activations: bool,
    /// The sizes that must not be zero.
    pub sizes: Vec<Size>,
    /// What else is checked.
    pub checks: Vec<Check>,
    /// Fields that something is wrong with.
    #[serde(skip)]
    broken: Vec<String>,
}

/// A field of the struct.
#[derive(Clone, Debug, Serialize)]
pub struct Field {
    /// Its name in the spec.
    pub name: String,
    /// Its name in `config.json`, where that is another.
    pub key: Option<String>,
    /// Its name in Rust.
    pub ident: String,
    /// Its Rust type.
    pub rust: String,
    /// Its default as a Rust expression; it must be given where there is none.
    pub default: Option<String>,
    /// What it means.
    pub doc: String,
}

/// A size that must not be zero.
#[derive(Clone, Debug, Serialize)]
pub struct Size {
    /// Its name in Rust.
    pub ident: String,
    /// Its name in `config.json`.
    pub key: String,
}

/// A condition that must not hold, and what it means if it does.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// The fields that it names as they are, besides those of `self`.
    pub reads: Vec<String>,
    /// A Rust expression.
    pub fails: String,
    /// A Rust expression that gives the message.
    pub message: String,
}

impl Config {
    /// Whether there is a field of that name.
    pub fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|field| field.name == name) || self.broken.iter().any(|broken| broken == name)
    }

    /// The names of all fields.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|field| field.name.as_str())
    }
}

/// Lowers the fields; `shared` says what is known of a field by its name alone.
pub fn lower(
    model: &Resolved,
    shared: &IndexMap<String, ConfigField>,
    problems: &mut Vec<Problem>,
) -> Config {
    let mut config = Config { complete: true, ..Config::default() };
    for (name, entry) in &model.spec.config {
        let given = match entry {
            ConfigEntry::Explicit(field) => field.clone(),
            ConfigEntry::Default(value) => {
                ConfigField { default: Some(value.clone()), ..ConfigField::default() }
            }
        };
        let known = shared.get(name).cloned().unwrap_or_default();
        let at = model.node.get("config").and_then(|node| node.entry(name)).map(|entry| entry.at.clone());
        let at = at.unwrap_or_else(|| model.node.at.clone());
        if let Err(problem) = add(&mut config, model, name, fill(given, known), &at) {
            problems.push(problem);
            config.broken.push(name.clone());
        }
    }
    config
}

/// What a spec says of a field, and what is known of it by its name where the spec says nothing.
fn fill(given: ConfigField, known: ConfigField) -> ConfigField {
    ConfigField {
        kind: given.kind.or(known.kind),
        key: given.key,
        optional: given.optional.or(known.optional),
        default: given.default,
        doc: given.doc.or(known.doc),
        min: given.min.or(known.min),
        multiple_of: given.multiple_of,
        only: given.only,
        because: given.because,
        remove: given.remove,
    }
}

fn add(
    config: &mut Config,
    model: &Resolved,
    name: &str,
    field: ConfigField,
    at: &Place,
) -> Result<(), Problem> {
    let key = join("config", name);
    if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        || name.starts_with(|c: char| c.is_ascii_digit())
    {
        return Err(at.problem(key, "is not a name that a Rust field can have"));
    }
    let Some(kind) = shown_kind(model, name, &field) else {
        let message = "has no type: give a default that shows it, or `{type: …, optional: true}`";
        return Err(at.problem(key, message));
    };
    let value = field.default.as_ref().map(|value| literal(kind, value));
    let value =
        value.transpose().map_err(|(message, nearest)| Problem { nearest, ..at.problem(&key, message) })?;
    let ident =
        if syn::parse_str::<syn::Ident>(name).is_ok() { name.to_owned() } else { format!("r#{name}") };
    let optional = field.optional.unwrap_or(false);
    let shown = field.key.as_deref().unwrap_or(name);
    let (rust, default) = match (kind, optional) {
        (ConfigType::Labels, _) => {
            config.labels = Some(ident.clone());
            ("Option<BTreeMap<String, String>>".to_owned(), Some("None".to_owned()))
        }
        (kind, true) => {
            let default = value.map_or_else(|| "None".to_owned(), |value| format!("Some({value})"));
            (format!("Option<{}>", rust(kind)), Some(default))
        }
        (kind, false) => (rust(kind).to_owned(), value),
    };
    config.counts_labels |= name == "num_labels";
    config.activations |= kind == ConfigType::Activation;
    config.complete &= default.is_some();
    if let Some(min) = field.min {
        if !matches!(kind, ConfigType::Usize | ConfigType::I64 | ConfigType::F64) {
            return Err(at.problem(join(&key, "min"), "only numbers have a least value"));
        }
        match (kind, min, optional) {
            (ConfigType::Usize, 1, false) => {
                config.sizes.push(Size { ident: ident.clone(), key: shown.to_owned() });
            }
            _ => config.checks.push(least(shown, &ident, kind, min, optional)),
        }
    }
    if let Some(divisor) = &field.multiple_of {
        let counts = kind == ConfigType::Usize && !optional;
        if !counts {
            return Err(
                at.problem(join(&key, "multiple_of"), "only sizes that are always given can be multiples")
            );
        }
        if !model.spec.config.contains_key(divisor) {
            let mut problem =
                at.problem(join(&key, "multiple_of"), format!("`{divisor}` is not a field of config"));
            problem.nearest =
                nearest_name(divisor, model.spec.config.keys().map(String::as_str)).map(str::to_owned);
            return Err(problem);
        }
        config.checks.push(Check {
            reads: vec![name.to_owned(), divisor.clone()],
            fails: format!("!{name}.is_multiple_of(*{divisor})"),
            message: format!(
                "format!(\"{shown}: {{{name}}} is not a multiple of {}, {{{divisor}}}\")",
                key_of(model, divisor)
            ),
        });
    }
    if let Some(only) = &field.only {
        let value = literal(kind, only).map_err(|(message, _)| at.problem(join(&key, "only"), message))?;
        let because = field.because.as_deref().unwrap_or("no other value is supported");
        let text = format!("{shown}: must be {}: {because}", only.show());
        let fails = match kind {
            ConfigType::Bool if value == "false" => format!("self.{ident}"),
            ConfigType::Bool => format!("!self.{ident}"),
            _ => format!("self.{ident} != {}", value.trim_end_matches(".to_owned()")),
        };
        config.checks.push(Check { reads: vec![], fails, message: format!("{text:?}.to_owned()") });
    }
    let doc = field.doc.unwrap_or_else(|| format!("`{shown}` of `config.json`."));
    config.fields.push(Field { name: name.to_owned(), key: field.key.clone(), ident, rust, default, doc });
    Ok(())
}

/// The type that is given, the one that the first default in the chain of specs shows, or the default's own.
fn shown_kind(model: &Resolved, name: &str, field: &ConfigField) -> Option<ConfigType> {
    let inherited = || model.types.get(name).copied();
    field.kind.or_else(inherited).or_else(|| field.default.as_ref().and_then(Scalar::kind))
}

/// What `config.json` calls a field.
fn key_of<'a>(model: &'a Resolved, name: &'a str) -> &'a str {
    match model.spec.config.get(name) {
        Some(ConfigEntry::Explicit(ConfigField { key: Some(key), .. })) => key,
        _ => name,
    }
}

fn least(name: &str, ident: &str, kind: ConfigType, min: i64, optional: bool) -> Check {
    let bound = if kind == ConfigType::F64 { format!("{min}.0") } else { min.to_string() };
    let (fails, shown) = if optional {
        (
            format!("self.{ident}.is_some_and(|value| value < {bound})"),
            format!("self.{ident}.unwrap_or_default()"),
        )
    } else {
        (format!("self.{ident} < {bound}"), format!("self.{ident}"))
    };
    Check { reads: vec![], fails, message: format!("format!(\"{name}: {{}} is less than {min}\", {shown})") }
}

impl Scalar {
    /// The value as `config.json` has it.
    fn show(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

fn rust(kind: ConfigType) -> &'static str {
    match kind {
        ConfigType::Usize => "usize",
        ConfigType::I64 => "i64",
        ConfigType::F64 => "f64",
        ConfigType::Bool => "bool",
        ConfigType::String => "String",
        ConfigType::Usizes => "Vec<usize>",
        ConfigType::Floats => "Vec<f64>",
        ConfigType::Strings => "Vec<String>",
        ConfigType::Activation => "Activation",
        ConfigType::Labels => "BTreeMap<String, String>",
    }
}

/// A value as a Rust expression of this type; or what is wrong with it, and the nearest valid name.
fn literal(kind: ConfigType, value: &Scalar) -> Result<String, (String, Option<String>)> {
    let element = match kind {
        ConfigType::Usizes => Some(ConfigType::Usize),
        ConfigType::Floats => Some(ConfigType::F64),
        ConfigType::Strings => Some(ConfigType::String),
        _ => None,
    };
    if let (Some(element), Scalar::List(values)) = (element, value) {
        let values: Result<Vec<_>, _> = values.iter().map(|value| literal(element, value)).collect();
        return values.map(|values| format!("vec![{}]", values.join(", ")));
    }
    let text = match (kind, value) {
        (ConfigType::Usize, Scalar::Int(number)) if *number >= 0 => grouped(*number),
        (ConfigType::I64, Scalar::Int(number)) => grouped(*number),
        (ConfigType::F64, Scalar::Int(number)) => format!("{number}.0"),
        (ConfigType::F64, Scalar::Float(number)) => format!("{number:?}"),
        (ConfigType::Bool, Scalar::Bool(value)) => value.to_string(),
        (ConfigType::String, Scalar::Text(text)) => format!("{text:?}.to_owned()"),
        (ConfigType::Activation, Scalar::Text(name)) => {
            let variant = ACTIVATIONS.iter().find(|(known, _)| known == name);
            let names = || ACTIVATIONS.iter().map(|(known, _)| *known);
            let Some((_, variant)) = variant else {
                let message = format!(
                    "`{name}` is not an activation function that is known; expected one of {}",
                    names().collect::<Vec<_>>().join(", ")
                );
                return Err((message, nearest_name(name, names()).map(str::to_owned)));
            };
            format!("Activation::{variant}")
        }
        _ => return Err((format!("`{}` does not fit its type, {}", value.show(), rust(kind)), None)),
    };
    Ok(text)
}

/// `30522` as `30_522`.
fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && digits.len() > 4 && (digits.len() - index).is_multiple_of(3) {
            text.push('_');
        }
        text.push(digit);
    }
    if number < 0 { format!("-{text}") } else { text }
}
