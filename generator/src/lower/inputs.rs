//! What a model reads, and how examples give it.

use serde::Serialize;

use super::config::grouped;
use super::heads::Head;
use crate::template::{Example, ExampleValue, FillWith, InputSpec, InputType};

/// An input as templates see it.
#[derive(Clone, Debug, Serialize)]
pub struct Input {
    /// What its template says of it.
    #[serde(flatten)]
    pub spec: InputSpec,
    /// The heads that alone take it; any may if empty.
    #[serde(skip)]
    pub heads: Vec<String>,
    /// What examples give for it.
    pub shown: String,
    /// What follows `Input::i64(name, shape)` where the graph declares it: axes after the second, default and bound.
    pub declaration: String,
    /// The axes after batch and sequence.
    pub more_axes: Vec<String>,
    /// How long the sequence may get, where these are its positions and they have a table.
    pub longest: Option<Longest>,
}

/// The limit of a sequence's length.
#[derive(Clone, Debug, Serialize)]
pub struct Longest {
    /// In Rust, of the fields of the configuration.
    pub length: String,
    /// Those fields in words.
    pub field: String,
}

impl Input {
    pub(super) fn new(spec: &InputSpec) -> Self {
        Self {
            spec: spec.clone(),
            heads: vec![],
            shown: shown(spec),
            declaration: declaration(spec),
            more_axes: spec.shape.iter().skip(2).cloned().collect(),
            longest: longest(spec),
        }
    }

    /// Whether a head takes it.
    pub(super) fn taken(&self, head: &Head) -> bool {
        let named = head.takes.is_empty() || head.takes.contains(&self.spec.name);
        named && (self.heads.is_empty() || self.heads.contains(&head.variant))
    }
}

/// What an example has to import from `ndarray`.
pub fn example_import(lines: &[String]) -> &'static str {
    let example = lines.concat();
    let array = example.contains("(Array::") || example.contains(" Array::");
    let literal = example.contains("(array![") || example.contains(" array![");
    match (array, literal) {
        (true, true) => "use ndarray::{Array, array};",
        (true, false) => "use ndarray::Array;",
        (false, true) => "use ndarray::array;",
        (false, false) => "",
    }
}

fn declaration(spec: &InputSpec) -> String {
    let axes: String = spec.shape.iter().skip(2).map(|axis| format!(".axis({axis})")).collect();
    let first = spec.first.unwrap_or(0);
    let default = match spec.fill {
        None => String::new(),
        Some(FillWith::Zeros) => ".or(InputDefault::Zeros)".to_owned(),
        Some(FillWith::Ones) => ".or(InputDefault::Ones)".to_owned(),
        Some(FillWith::Positions) if first > 0 => format!(".or(InputDefault::PositionsFrom({first}))"),
        Some(FillWith::Positions) => ".or(InputDefault::Positions)".to_owned(),
        Some(FillWith::TokenPositions) => {
            ".or(InputDefault::TokenPositions { ids: \"input_ids\", padding: c.pad_token_id })".to_owned()
        }
    };
    let below = match (&spec.below, first) {
        (None, _) => String::new(),
        (Some(field), 0) => format!(".below(c.{field}, {field:?})"),
        (Some(field), _) => format!(".below(c.{field} + {first}, \"{field} plus {first}\")"),
    };
    format!("{axes}{default}{below}")
}

/// Default positions reach as far as their table does.
fn longest(spec: &InputSpec) -> Option<Longest> {
    let field = spec.below.as_ref()?;
    match spec.fill? {
        FillWith::Positions => Some(Longest { length: format!("c.{field}"), field: field.clone() }),
        FillWith::TokenPositions => Some(Longest {
            length: format!("c.{field}.saturating_sub(c.pad_token_id + 1)"),
            field: format!("{field} less those up to pad_token_id"),
        }),
        FillWith::Zeros | FillWith::Ones => None,
    }
}

fn shown(spec: &InputSpec) -> String {
    match &spec.example {
        Some(Example::Values(values)) => return format!("array!{}", row(values)),
        Some(Example::Zeros { shape }) => {
            let element = match spec.dtype {
                InputType::I64 => "i64",
                InputType::F32 => "f32",
                InputType::Bool => "bool",
            };
            let lengths: Vec<_> = shape.iter().map(|&length| grouped(length as i64)).collect();
            let any = if spec.shape.iter().any(|axis| axis.ends_with('?')) { ".into_dyn()" } else { "" };
            return format!(
                "ndarray::Array{}::<{element}>::zeros(({})){any}",
                shape.len(),
                lengths.join(", ")
            );
        }
        None => {}
    }
    if spec.dtype == InputType::I64 && spec.shape.len() == 2 {
        return "array![[1, 2, 3]]".to_owned();
    }
    let lengths: Vec<_> = spec.shape.iter().map(|axis| length(axis).to_string()).collect();
    let comma = if lengths.len() == 1 { "," } else { "" };
    let lengths = format!("({}{comma})", lengths.join(", "));
    match spec.dtype {
        InputType::I64 => format!("Array::<i64, _>::zeros({lengths})"),
        InputType::F32 => format!("Array::<f32, _>::zeros({lengths})"),
        InputType::Bool => format!("Array::from_elem({lengths}, true)"),
    }
}

fn row(values: &[ExampleValue]) -> String {
    let text = |value: &ExampleValue| match value {
        ExampleValue::Number(number) => number.to_string(),
        ExampleValue::Row(values) => row(values),
    };
    format!("[{}]", values.iter().map(text).collect::<Vec<_>>().join(", "))
}

/// A length that suits an axis of this name.
fn length(axis: &str) -> usize {
    match axis {
        "batch" => 1,
        "channels" | "num_channels" | "sequence" => 3,
        "height" | "width" | "image_size" => 224,
        "samples" => 16_000,
        "frames" => 3000,
        _ => axis.parse().unwrap_or(8),
    }
}
