//! The runtime's types of options and answers, read from its sources, as TypeScript has them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use syn::{Attribute, Expr, Fields, Item, Lit, Meta, Type};

/// A field of a structure.
#[derive(Clone)]
pub struct Field {
    pub name: String,
    pub doc: String,
    pub ty: Type,
    /// Left out of an answer where there is none.
    pub optional: bool,
    /// One value or a list of them is read.
    pub one_or_many: bool,
}

/// What serde writes or reads of a type.
pub enum Shape {
    Record(Vec<Field>),
    Words(Vec<String>),
}

/// The types of the runtime by name, with the first sentence of their documentation.
#[derive(Default)]
pub struct Types(pub BTreeMap<String, (String, Shape)>);

impl Types {
    /// Reads a file, or all files of a folder.
    pub fn read(&mut self, path: &Path) -> Result<()> {
        if path.is_dir() {
            let entries = fs::read_dir(path).with_context(|| format!("reading {}", path.display()))?;
            for entry in entries {
                self.read(&entry?.path())?;
            }
            return Ok(());
        }
        if path.extension().is_none_or(|ending| ending != "rs") {
            return Ok(());
        }
        let source = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        let file = syn::parse_file(&source).with_context(|| format!("parsing {}", path.display()))?;
        for item in file.items {
            self.take(item)?;
        }
        Ok(())
    }

    fn take(&mut self, item: Item) -> Result<()> {
        match item {
            Item::Struct(item) => {
                let name = item.ident.to_string();
                // What is written as JSON is meant, where another module has a structure of that name.
                if self.0.contains_key(&name) && !derives(&item.attrs) {
                    return Ok(());
                }
                if let Fields::Named(named) = item.fields {
                    let fields = named.named.into_iter().filter_map(field).collect();
                    self.0.insert(name, (doc(&item.attrs), Shape::Record(fields)));
                }
            }
            Item::Enum(item) if derives(&item.attrs) && item.variants.iter().all(|v| v.fields.is_empty()) => {
                let rule = serde(&item.attrs, "rename_all").unwrap_or_default();
                let words = item.variants.iter().map(|variant| {
                    let own = serde(&variant.attrs, "rename");
                    own.unwrap_or_else(|| renamed(&variant.ident.to_string(), &rule))
                });
                self.0.insert(item.ident.to_string(), (doc(&item.attrs), Shape::Words(words.collect())));
            }
            // The fields of `GenerationConfig` are what this macro is given.
            Item::Macro(item) if item.mac.path.is_ident("configuration") => {
                let source =
                    format!("/// How text is generated.\nstruct GenerationConfig {{ {} }}", item.mac.tokens);
                self.take(Item::Struct(syn::parse_str(&source).context("parsing GenerationConfig")?))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// A field of a structure.
    pub fn field(&self, of: &str, name: &str) -> Option<&Field> {
        match &self.0.get(of)?.1 {
            Shape::Record(fields) => fields.iter().find(|field| field.name == name),
            Shape::Words(_) => None,
        }
    }
}

fn field(field: syn::Field) -> Option<Field> {
    let named = field.ident?.to_string();
    if flag(&field.attrs, "skip") || flag(&field.attrs, "flatten") {
        return None;
    }
    Some(Field {
        name: serde(&field.attrs, "rename").unwrap_or(named),
        doc: doc(&field.attrs),
        optional: serde(&field.attrs, "skip_serializing_if").is_some(),
        one_or_many: serde(&field.attrs, "deserialize_with").is_some_and(|by| by == "one_or_many"),
        ty: field.ty,
    })
}

/// A type as TypeScript has it; names of other types that it needs are added to `needed`.
pub fn typescript(ty: &Type, needed: &mut BTreeSet<String>) -> String {
    let list = |item: String| {
        if item.contains('|') && !(item.starts_with('[') && item.ends_with(']')) {
            format!("({item})[]")
        } else {
            format!("{item}[]")
        }
    };
    match ty {
        Type::Reference(reference) => typescript(&reference.elem, needed),
        Type::Slice(slice) => list(typescript(&slice.elem, needed)),
        Type::Array(array) => {
            let item = typescript(&array.elem, needed);
            match &array.len {
                Expr::Lit(literal) => match &literal.lit {
                    Lit::Int(length) => {
                        let length = length.base10_parse().unwrap_or(0);
                        format!("[{}]", vec![item; length].join(", "))
                    }
                    _ => list(item),
                },
                _ => list(item),
            }
        }
        Type::Tuple(tuple) => {
            let items: Vec<String> = tuple.elems.iter().map(|item| typescript(item, needed)).collect();
            format!("[{}]", items.join(", "))
        }
        Type::Path(path) => {
            let Some(last) = path.path.segments.last() else { return "unknown".to_owned() };
            let inner: Vec<String> = match &last.arguments {
                syn::PathArguments::AngleBracketed(of) => {
                    let types = of.args.iter().filter_map(|argument| match argument {
                        syn::GenericArgument::Type(ty) => Some(typescript(ty, needed)),
                        _ => None,
                    });
                    types.collect()
                }
                _ => vec![],
            };
            let first = || inner.first().cloned().unwrap_or_else(|| "unknown".to_owned());
            match last.ident.to_string().as_str() {
                "String" | "str" | "char" => "string".to_owned(),
                "bool" => "boolean".to_owned(),
                "f32" | "f64" | "usize" | "isize" | "u8" | "u16" | "u32" | "u64" | "i32" | "i64" => {
                    "number".to_owned()
                }
                "Option" => format!("{} | null", first()),
                "Vec" | "Array1" => list(first()),
                "Array2" => list(list(first())),
                "Json" | "Value" => "unknown".to_owned(),
                "Map" => "Record<string, unknown>".to_owned(),
                name => {
                    needed.insert(name.to_owned());
                    name.to_owned()
                }
            }
        }
        _ => "unknown".to_owned(),
    }
}

fn derives(attributes: &[Attribute]) -> bool {
    let derived = attributes.iter().filter(|attribute| attribute.path().is_ident("derive"));
    derived.into_iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => {
            ["Serialize", "Deserialize"].iter().any(|name| list.tokens.to_string().contains(name))
        }
        _ => false,
    })
}

/// The value of an attribute of serde: `rename = "box"`.
fn serde(attributes: &[Attribute], name: &str) -> Option<String> {
    of_serde(attributes).find_map(|given| {
        let (_, rest) = given.split_once(&format!("{name} ="))?;
        Some(rest.split('"').nth(1)?.to_owned())
    })
}

/// Whether an attribute of serde is there: `skip`.
fn flag(attributes: &[Attribute], name: &str) -> bool {
    of_serde(attributes).any(|given| given.split(',').any(|one| one.trim() == name))
}

fn of_serde(attributes: &[Attribute]) -> impl Iterator<Item = String> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("serde")).filter_map(|attribute| {
        match &attribute.meta {
            Meta::List(list) => Some(list.tokens.to_string()),
            _ => None,
        }
    })
}

/// The first sentence of the documentation.
fn doc(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value().trim().to_owned()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    });
    let text = lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    let plain = text.replace("[`", "`").replace("`]", "`");
    match plain.find(". ") {
        Some(end) => plain[..=end].to_owned(),
        None => plain,
    }
}

fn renamed(name: &str, rule: &str) -> String {
    match rule {
        "lowercase" => name.to_lowercase(),
        "snake_case" => super::super::pack::kebab(name).replace('-', "_"),
        "kebab-case" => super::super::pack::kebab(name),
        _ => name.to_owned(),
    }
}
