//! The reference's classes as types: a struct of inputs for heads that take the same, a struct of outputs for each.

use serde::Serialize;

use super::heads::Head;
use super::inputs::Input;
use super::tasks::enumerated;
use crate::template::{InputType, OutputSpec};

/// A class as its types are written.
#[derive(Clone, Debug, Serialize)]
pub struct Class {
    /// Its variant of `Head`, and the name of its type.
    pub variant: String,
    /// Its name in the reference.
    pub class: String,
    /// What it does.
    pub about: String,
    /// The struct that it takes.
    pub inputs: String,
    /// The struct that it gives, and those in it, each what a sub-model gives.
    pub structs: Vec<Struct>,
}

/// A struct of tensors.
#[derive(Clone, Debug, Serialize)]
pub struct Struct {
    /// Its name.
    pub name: String,
    /// Whose inputs or outputs it holds.
    pub about: String,
    /// Its fields.
    pub fields: Vec<Field>,
}

/// A tensor, or the struct of a sub-model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Field {
    /// The reference's name; of one that is a tensor in a map of those, `shared_kv_states.full_attention.key`, with `_` for dots.
    pub name: String,
    /// The name of that tensor.
    pub tensor: Option<String>,
    /// What it is, with its axes where it is a tensor.
    pub doc: String,
    /// Its type where it is there: `Array2<i64>`.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Whether it may be left out, or not be there.
    pub optional: bool,
    /// Whether it is a tuple of tensors.
    pub tuple: bool,
    /// What examples give for it.
    #[serde(skip)]
    pub shown: String,
}

/// The structs of inputs, and the classes that take and give them.
pub fn classes(inputs: &[Input], heads: &[Head]) -> (Vec<Struct>, Vec<Class>) {
    let taken: Vec<_> = heads.iter().map(|head| taken(inputs, head)).collect();
    // What most classes take has the plain name.
    let shared = |fields: &Vec<Field>| taken.iter().filter(|other| *other == fields).count();
    let most = taken.iter().map(shared).max().unwrap_or_default();
    let plain = taken.iter().find(|fields| shared(fields) == most);
    let name = |head: &Head, fields| {
        if Some(fields) == plain { "Inputs".to_owned() } else { format!("{}Inputs", head.variant) }
    };
    let mut structs: Vec<Struct> = vec![];
    let mut classes: Vec<Class> = vec![];
    for (head, fields) in heads.iter().zip(&taken) {
        let known = structs.iter().position(|known| known.fields == *fields).unwrap_or(structs.len());
        if known == structs.len() {
            let takers = heads.iter().zip(&taken).filter(|(_, other)| *other == fields);
            let takers: Vec<_> = takers.map(|(head, _)| head.clone()).collect();
            let verb = if takers.len() > 1 { "take" } else { "takes" };
            let about = format!("What {} {verb}.", enumerated(&takers));
            structs.push(Struct { name: name(head, fields), about, fields: fields.clone() });
        }
        classes.push(Class {
            variant: head.variant.clone(),
            class: head.class.clone(),
            about: head.about.clone(),
            inputs: structs[known].name.clone(),
            structs: given(head, &classes),
        });
    }
    (structs, classes)
}

/// What a head takes, what must be given first.
fn taken(inputs: &[Input], head: &Head) -> Vec<Field> {
    let field = |input: &Input| {
        let spec = &input.spec;
        let axes = head.axes.iter();
        let shape: Vec<String> =
            spec.shape.iter().take(1).chain(axes).chain(spec.shape.iter().skip(1)).cloned().collect();
        Field {
            name: spec.name.replace('.', "_"),
            tensor: spec.name.contains('.').then(|| spec.name.clone()),
            doc: format!("{} `[{}]`", spec.doc, shape.join(", ")),
            type_name: array(&shape, spec.dtype),
            optional: spec.fill.is_some() || spec.optional,
            tuple: false,
            shown: input.shown.clone(),
        }
    };
    let mut fields: Vec<_> = inputs.iter().filter(|input| input.taken(head)).map(field).collect();
    fields.sort_by_key(|field| field.optional);
    fields
}

/// What a head gives, and what its sub-models do: outputs named `text_model_output.last_hidden_state`. Where another class before it
/// has a struct of that name, the class goes before it.
fn given(head: &Head, before: &[Class]) -> Vec<Struct> {
    let about = format!("What `{}` gives.", head.class);
    let mut structs = vec![Struct { name: format!("{}Output", head.variant), about, fields: vec![] }];
    for output in &head.outputs {
        let Some((field, name)) = output.name.split_once('.') else {
            structs[0].fields.push(tensor(&output.name, output));
            continue;
        };
        let plain = camel(field);
        let taken = before.iter().flat_map(|class| &class.structs).any(|known| known.name == plain);
        let type_name = if taken { format!("{}{plain}", head.variant) } else { plain };
        let place = structs.iter().position(|known| known.name == type_name).unwrap_or(structs.len());
        if place == structs.len() {
            let of = field.trim_end_matches("_output");
            let about = format!("What `{of}` of `{}` gives.", head.class);
            structs[0].fields.push(Field {
                name: field.to_owned(),
                tensor: None,
                doc: format!("What `{of}` gives."),
                type_name: type_name.clone(),
                optional: false,
                tuple: false,
                shown: String::new(),
            });
            structs.push(Struct { name: type_name, about, fields: vec![] });
        }
        structs[place].fields.push(tensor(name, output));
    }
    structs
}

fn tensor(name: &str, output: &OutputSpec) -> Field {
    Field {
        name: name.to_owned(),
        tensor: None,
        doc: format!("{} `[{}]`", output.doc, output.shape.join(", ")),
        type_name: match array(&output.shape, output.dtype) {
            array if output.tuple => format!("Vec<{array}>"),
            array => array,
        },
        optional: output.optional,
        tuple: output.tuple,
        shown: String::new(),
    }
}

/// An array of as many axes; of any number where some are not always there, `input_size?`.
fn array(shape: &[String], dtype: InputType) -> String {
    let element = match dtype {
        InputType::I64 => "i64",
        InputType::F32 => "f32",
        InputType::Bool => "bool",
    };
    match shape.iter().any(|axis| axis.ends_with('?')) {
        true => format!("ArrayD<{element}>"),
        false => format!("Array{}<{element}>", shape.len()),
    }
}

/// `text_model_output` as `TextModelOutput`.
fn camel(name: &str) -> String {
    let word = |word: &str| {
        let mut chars = word.chars();
        chars.next().map(|first| first.to_ascii_uppercase().to_string() + chars.as_str()).unwrap_or_default()
    };
    name.split('_').map(word).collect()
}

/// The statements of an example that runs a class: `let outputs = model.forward(Inputs::new(array![[1, 2, 3]]))?;`.
pub fn example(inputs: &[Struct], class: &Class) -> Vec<String> {
    let taken = inputs.iter().find(|inputs| inputs.name == class.inputs);
    let fields = taken.iter().flat_map(|inputs| &inputs.fields).filter(|field| !field.optional);
    let needed: Vec<_> = fields.map(|field| field.shown.as_str()).collect();
    let call = format!("{}::new({})", class.inputs, needed.join(", "));
    let line = format!("let outputs = model.forward({call})?;");
    if line.chars().count() <= 100 {
        return vec![line];
    }
    let mut lines = vec![format!("let inputs = {}::new(", class.inputs)];
    lines.extend(needed.iter().map(|shown| format!("    {shown},")));
    lines.extend([");".to_owned(), "let outputs = model.forward(inputs)?;".to_owned()]);
    lines
}
