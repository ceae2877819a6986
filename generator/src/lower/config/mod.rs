//! `config` of a spec, as the fields and checks of Rust structs.

mod checks;
mod field;
mod literal;
mod methods;
mod names;
mod rust_names;
mod variants;

use indexmap::IndexMap;
use serde::Serialize;

pub use checks::{Check, Refused, Size};
use field::fill;
pub use field::{Field, Read};
pub use literal::{activation, grouped};
use literal::{literal, rust};
pub use methods::Method;
pub use names::Fields;
use rust_names::{TOP, ident, no_name, type_name};
pub use variants::Variant;

use crate::spec::check::join;
use crate::spec::document::{Problem, nearest_name};
use crate::spec::load::Resolved;
use crate::spec::model::{ConfigEntry, ConfigField, ConfigType, Scalar};
use crate::spec::yaml::{Node, Place};

/// `config.json`, or a configuration within it, as templates see it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Config {
    /// The name of the struct.
    pub name: String,
    /// Where it is in `config.json`: nothing, or `text_config`.
    pub path: String,
    /// What it is.
    pub doc: String,
    /// The fields, in the spec's order.
    pub fields: Vec<Field>,
    /// The name of the Rust module with its defaults, where it has one.
    pub defaults: String,
    /// Whether every field has a default.
    pub complete: bool,
    /// Whether other entries are refused.
    pub closed: bool,
    /// Whether older files say a field otherwise.
    pub prepares: bool,
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
    /// For each field of which one value is the only one supported, another one, which tests set.
    #[serde(skip)]
    pub refused: Vec<Refused>,
    /// Calls that refuse lists with unknown words or of another length.
    pub lists: Vec<String>,
    /// Fields that are read through a method.
    pub methods: Vec<Method>,
    /// Those that it is one of, by its `model_type`; then the fields are what all of them have, read by methods.
    pub variants: Vec<Variant>,
    /// Whether older files say a field of one of them otherwise.
    pub variants_prepare: bool,
    /// What a configuration that is one of several is where `config.json` has none, as a Rust expression.
    pub initial: String,
    /// The configurations within it, by the field that holds them.
    #[serde(skip)]
    pub nested: IndexMap<String, Config>,
    /// Where the spec has it: its path, through the variants that it is one of.
    #[serde(skip)]
    site: String,
    /// Fields that something is wrong with.
    #[serde(skip)]
    broken: Vec<String>,
}

impl weft_code::Fields for Config {
    fn field(&self, name: &str) -> Option<weft_code::Read<'_>> {
        self.read(name).map(|read| match read {
            Read::Field => weft_code::Read::Field,
            Read::Method => weft_code::Read::Method,
            Read::Nested(within) => weft_code::Read::Nested(within),
        })
    }
}

impl Config {
    /// Whether there is a field of that name; dots lead to fields of configurations within this one.
    pub fn has(&self, path: &str) -> bool {
        match path.split_once('.') {
            Some((first, rest)) => self.nested.get(first).is_some_and(|config| config.has(rest)),
            None => {
                self.fields.iter().any(|field| field.name == path)
                    || self.broken.iter().any(|name| name == path)
            }
        }
    }

    /// The field of that name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The field at a path whose dots lead into configurations within this one.
    pub fn at(&self, path: &str) -> Option<&Field> {
        match path.split_once('.') {
            Some((first, rest)) => self.nested.get(first)?.at(rest),
            None => self.field(path),
        }
    }

    /// The names of all fields, with those within as dotted paths.
    pub fn names(&self) -> Vec<String> {
        let own = self.fields.iter().map(|field| field.name.clone());
        let within = self.nested.iter().flat_map(|(field, config)| {
            config.names().into_iter().map(move |name| format!("{field}.{name}"))
        });
        own.chain(within).collect()
    }

    /// The field whose name is nearest.
    pub fn nearest(&self, name: &str) -> Option<String> {
        let names = self.names();
        nearest_name(name, names.iter().map(String::as_str)).map(str::to_owned)
    }

    /// What code that reads this name gets; nothing if there is no such field.
    pub fn read(&self, name: &str) -> Option<Read<'_>> {
        if let Some(config) = self.nested.get(name) {
            return Some(Read::Nested(config));
        }
        let method = self.field(name).is_some_and(|field| field.method);
        if method || name == "num_labels" && self.labels.is_some() {
            return Some(Read::Method);
        }
        self.has(name).then_some(Read::Field)
    }

    /// The expression that reads a field, from code where the configuration is `c`.
    pub fn expression(&self, path: &str) -> String {
        let mut config = self;
        let mut text = "c".to_owned();
        for name in path.split('.') {
            text = format!("{text}.{name}");
            match config.read(name) {
                Some(Read::Nested(within)) => config = within,
                Some(Read::Method) => text.push_str("()"),
                _ => {}
            }
        }
        text
    }

    /// The structs of this configuration and those within it, each with the name that it would have in a crate of its
    /// own: what templates call it, wherever their configuration stands.
    pub fn structs(&self) -> Vec<(String, &str)> {
        fn add<'a>(config: &'a Config, own: &str, structs: &mut Vec<(String, &'a str)>) {
            for (field, within) in &config.nested {
                let name = type_name(field, own, |name| structs.iter().any(|(taken, _)| taken == name));
                structs.push((name.clone(), &within.name));
                add(within, &name, structs);
            }
        }
        let mut structs = vec![(TOP.to_owned(), self.name.as_str())];
        add(self, TOP, &mut structs);
        structs
    }

    /// This configuration, then those within it.
    pub fn all(&self) -> Vec<&Self> {
        let variants = self.variants.iter().map(|variant| &variant.config);
        [self].into_iter().chain(self.nested.values().chain(variants).flat_map(Self::all)).collect()
    }

    /// The values that are refused of it and of those within it, but not of those that it is one of.
    pub fn refused(&self) -> Vec<&Refused> {
        self.refused.iter().chain(self.nested.values().flat_map(Self::refused)).collect()
    }

    /// Adds a field that holds a configuration.
    fn hold(&mut self, name: &str, ident: String, field: &ConfigField, within: Self, doc: String) {
        let type_name = within.name.clone();
        let optional = field.optional.unwrap_or(false);
        let (rust, default) = match (optional, within.complete) {
            (true, _) => (format!("Option<{type_name}>"), Some("None".to_owned())),
            (false, true) => (type_name.clone(), Some(format!("{type_name}::default()"))),
            (false, false) => (type_name.clone(), None),
        };
        self.complete &= default.is_some();
        let names = field::names(name, field);
        self.prepares |= within.prepares || !names.is_empty();
        self.fields.push(Field {
            name: name.to_owned(),
            key: field.key.clone(),
            ident,
            names,
            rust,
            kind: None,
            holds: Some(type_name),
            optional,
            prepares: within.prepares,
            theta: None,
            partial_rotary_factor: None,
            rope_scaling: None,
            default,
            doc,
            method: false,
            min: 0,
            of: vec![],
        });
        self.nested.insert(name.to_owned(), within);
    }
}

/// Lowers the fields; `shared` says what is known of a field by its name alone.
pub fn lower(
    model: &Resolved,
    shared: &IndexMap<String, ConfigField>,
    problems: &mut Vec<Problem>,
) -> Config {
    let doc =
        "`config.json`, as far as it shapes inference. Fields that only training reads are passed over.";
    let mut config = Config {
        name: TOP.to_owned(),
        doc: doc.to_owned(),
        defaults: "default".to_owned(),
        complete: true,
        ..Config::default()
    };
    let mut lowering = Lowering { model, shared, problems, taken: vec![config.name.clone()] };
    let node = model.node.get("config");
    lowering.fields(&mut config, &model.spec.config, node.unwrap_or(&model.node));
    config
}

struct Lowering<'a> {
    model: &'a Resolved,
    shared: &'a IndexMap<String, ConfigField>,
    problems: &'a mut Vec<Problem>,
    /// The names of structs.
    taken: Vec<String>,
}

impl Lowering<'_> {
    fn fields(&mut self, config: &mut Config, fields: &IndexMap<String, ConfigEntry>, node: &Node) {
        for (name, entry) in fields {
            let given = match entry {
                ConfigEntry::Explicit(field) => (**field).clone(),
                ConfigEntry::Default(value) => {
                    ConfigField { default: Some(value.clone()), ..ConfigField::default() }
                }
            };
            let found = node.entry(name);
            let at = found.map_or(&node.at, |entry| &entry.at).clone();
            if given.no_effect.is_some() {
                let alone = ConfigField { no_effect: given.no_effect.clone(), ..ConfigField::default() };
                if given != alone {
                    let message = "has no effect, and is described as a field: leave out one of the two";
                    self.problems.push(at.problem(join("config", &join(&config.path, name)), message));
                }
                continue;
            }
            let added = match &given.fields {
                _ if !given.one_of.is_empty() => {
                    self.one_of(config, name, &given, found.map_or(node, |entry| &entry.value))
                }
                Some(within) => {
                    let node = found.and_then(|entry| entry.value.get("fields")).unwrap_or(node);
                    self.nest(config, name, &given, within, node)
                }
                None => {
                    let known = self.shared.get(name).cloned().unwrap_or_default();
                    self.add(config, name, fill(given, known), fields, &at)
                }
            };
            if let Err(problem) = added {
                self.problems.push(problem);
                config.broken.push(name.clone());
            }
        }
        methods::add(config, fields, node, self.problems);
        if config.complete || config.fields.iter().all(|field| field.default.is_none()) {
            config.defaults.clear();
        }
    }

    /// A field that holds a configuration.
    fn nest(
        &mut self,
        config: &mut Config,
        name: &str,
        field: &ConfigField,
        fields: &IndexMap<String, ConfigEntry>,
        node: &Node,
    ) -> Result<(), Problem> {
        let path = join(&config.path, name);
        let ident = ident(name).ok_or_else(|| no_name(&node.at, &path))?;
        let type_name = self.take(name, &config.name);
        let doc = field.doc.clone().unwrap_or_else(|| format!("`{name}` of `config.json`."));
        let mut within = Config {
            name: type_name.clone(),
            defaults: format!("{}_default", path.replace('.', "_")),
            site: join(&config.site, name),
            path,
            doc: doc.clone(),
            complete: true,
            closed: field.closed.unwrap_or(false),
            ..Config::default()
        };
        self.fields(&mut within, fields, node);
        config.hold(name, ident, field, within, doc);
        Ok(())
    }

    fn add(
        &mut self,
        config: &mut Config,
        name: &str,
        field: ConfigField,
        fields: &IndexMap<String, ConfigEntry>,
        at: &Place,
    ) -> Result<(), Problem> {
        let path = join(&config.path, name);
        let key = join("config", &path);
        let ident = ident(name).ok_or_else(|| no_name(at, &path))?;
        let optional = field.optional.unwrap_or(false) || field.otherwise.is_some();
        let Some(kind) = self.kind(&join(&config.site, name), &field) else {
            let message = "has no type: give a default that shows it, or `{type: …, optional: true}`";
            return Err(at.problem(key, message));
        };
        let rope = matches!(kind, ConfigType::Rope | ConfigType::Ropes);
        let theta = || Scalar::Float(10_000.0);
        let theta = rope.then(|| literal(ConfigType::F64, &field.default.clone().unwrap_or_else(theta)));
        let theta = theta
            .transpose()
            .map_err(|(message, nearest)| Problem { nearest, ..at.problem(&key, message) })?;
        let value = match kind {
            ConfigType::Ropes => Some(Ok("BTreeMap::new()".to_owned())),
            ConfigType::Rope => field.default.as_ref().map(|value| literal::rope(&field, value)),
            _ => field.default.as_ref().map(|value| literal(kind, value)),
        };
        let value = value
            .transpose()
            .map_err(|(message, nearest)| Problem { nearest, ..at.problem(&key, message) })?;
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
        let names = field::names(name, &field);
        config.prepares |= rope || !names.is_empty();
        config.counts_labels |= name == "num_labels";
        config.activations |= matches!(kind, ConfigType::Activation | ConfigType::FeedForward);
        config.complete &= default.is_some();
        checks::add(config, name, &ident, kind, &field, fields, &key, at)?;
        let shown = field.key.as_deref().unwrap_or(name);
        let doc = field.doc.clone().unwrap_or_else(|| format!("`{shown}` of `config.json`."));
        let share = literal::share(&field);
        config.fields.push(Field {
            name: name.to_owned(),
            key: field.key,
            ident,
            names,
            rust,
            kind: Some(kind),
            holds: None,
            optional,
            prepares: rope,
            theta,
            partial_rotary_factor: share,
            rope_scaling: field.rope_scaling.as_ref().map(literal::pairs),
            default,
            doc,
            method: field.otherwise.is_some(),
            min: field.min.unwrap_or_default(),
            of: field.of,
        });
        Ok(())
    }

    /// The type that is given, the one that the first default in the chain of specs shows, or the default's own.
    fn kind(&self, path: &str, field: &ConfigField) -> Option<ConfigType> {
        let inherited = || self.model.types.get(path).copied();
        field.kind.or_else(inherited).or_else(|| field.default.as_ref().and_then(Scalar::kind))
    }
}
