//! What a model reads, and how examples give it.

use serde::Serialize;

use super::config::grouped;
use super::heads::Head;
use crate::template::{Example, ExampleValue, InputSpec, InputType};

/// An input as templates see it.
#[derive(Clone, Debug, Serialize)]
pub struct Input {
    /// What its template says of it.
    #[serde(flatten)]
    pub spec: InputSpec,
    /// The heads that alone take it; any may if empty.
    #[serde(skip)]
    pub heads: Vec<String>,
    /// Whether every head needs it, so that it must always be given.
    pub required: bool,
    /// The classes that need it, where others do without.
    pub needed_by: Vec<String>,
    /// What examples give for it.
    pub shown: String,
}

impl Input {
    pub(super) fn new(spec: &InputSpec) -> Self {
        Self {
            spec: spec.clone(),
            needed_by: vec![],
            heads: vec![],
            required: spec.fill.is_none() && !spec.optional,
            shown: shown(spec),
        }
    }

    /// Decides whether it is required, now that the heads are known.
    pub(super) fn settle(&mut self, heads: &[Head]) {
        let needed = self.required;
        self.required &= heads.iter().all(|head| self.taken(head));
        if needed && !self.required {
            let taking = heads.iter().filter(|head| self.taken(head));
            self.needed_by = taking.map(|head| head.class.clone()).collect();
        }
    }

    fn taken(&self, head: &Head) -> bool {
        let named = head.takes.is_empty() || head.takes.contains(&self.spec.name);
        named && (self.heads.is_empty() || self.heads.contains(&head.variant))
    }
}

/// The statements of an example that runs a head: `let outputs = model.forward(&Inputs::new(array![[1, 2, 3]]))?;`.
pub fn example(inputs: &[Input], head: &Head) -> Vec<String> {
    let required: Vec<_> =
        inputs.iter().filter(|input| input.required).map(|input| input.shown.as_str()).collect();
    let mut calls = vec![format!("Inputs::new({})", required.join(", "))];
    for input in inputs.iter().filter(|input| !input.required && input.spec.fill.is_none()) {
        if input.taken(head) && !input.spec.optional {
            calls.push(format!(".{}({})", input.spec.name, input.shown));
        }
    }
    let line = format!("let outputs = model.forward(&{})?;", calls.concat());
    if line.chars().count() <= 100 {
        return vec![line];
    }
    let last = calls.len() - 1;
    let mut lines: Vec<_> = calls.iter().map(|call| format!("    {call}")).collect();
    lines[0] = format!("let inputs = {}", calls[0]);
    lines[last].push(';');
    lines.push("let outputs = model.forward(&inputs)?;".to_owned());
    lines
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
            return format!("ndarray::Array{}::<{element}>::zeros(({}))", shape.len(), lengths.join(", "));
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
