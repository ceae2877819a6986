//! The parameters of each pipeline: the names that its code asks for, with the types of the options that they become.

use std::collections::BTreeMap;

use super::rust::{Field, Types};

/// A parameter as TypeScript has it, and what it is.
pub type Parameters = BTreeMap<String, (Kind, String)>;

/// Where a parameter's type is found.
#[derive(Clone)]
pub enum Kind {
    /// In the runtime.
    Rust(syn::Type),
    /// In `GIVEN`, since the pipeline reads it in several forms.
    Given(&'static str),
}

/// Parameters that are read as JSON of several forms. `out`, a file to be written, is none of a page's.
const GIVEN: [(&str, &str); 26] = [
    ("targets", "string | string[]"),
    ("candidate_labels", "string | string[]"),
    ("tools", "Record<string, unknown>[]"),
    ("documents", "Record<string, unknown>[]"),
    ("tokenizer_encode_kwargs", "Record<string, unknown>"),
    ("return_timestamps", "boolean | 'char' | 'word'"),
    ("stride_length_s", "number | [number, number]"),
    ("language", "string"),
    ("target_language", "string"),
    ("tgt_lang", "string"),
    ("punctuation", "boolean"),
    ("task", "'transcribe' | 'translate'"),
    ("return_language", "boolean"),
    ("return_full_text", "boolean"),
    ("stop_sequence", "string | string[]"),
    ("truncation", "boolean | 'longest_first' | 'do_not_truncate'"),
    ("mask", "ImageInput"),
    ("control_image", "ImageInput"),
    ("boxes", "[number, number, number, number][] | [number, number, number, number][][]"),
    ("speaker_embeddings", "number[] | number[][]"),
    ("image_processor_kwargs", "Record<string, unknown>"),
    ("control_image_scale", "number"),
    ("allow_empty", "boolean"),
    ("batch_size", "number"),
    ("num_frames", "number"),
    ("fps", "number"),
];

/// Objects of parameters within parameters.
const INNER: [(&str, &str); 5] = [
    ("generate_kwargs", "GenerationConfig"),
    ("tokenizer_kwargs", "TokenizerParameters"),
    ("tokenize_kwargs", "TokenizerParameters"),
    ("video_metadata", "{ fps?: number }"),
    ("forward_params", "Record<string, unknown>"),
];

/// What a call on the parameters asks for beside a single name: the type that has those.
const GROUPS: [(&str, &str); 3] = [
    (".text(", "TextParameters"),
    (".tokenizer()", "TokenizerParameters"),
    ("parameters.generation()", "GenerationConfig"),
];

/// Source code of the pipelines, file by file, and the types that it names.
pub struct Sources<'a> {
    pub files: Vec<String>,
    pub types: &'a Types,
}

/// What one pipeline takes: single parameters, and the names of types whose fields are parameters as well.
#[derive(Default)]
pub struct Taken {
    pub own: Parameters,
    pub groups: Vec<&'static str>,
    pub unknown: Vec<String>,
}

impl Sources<'_> {
    /// The parameters of a pipeline, `FillMask`; nothing where no file has it.
    pub fn of(&self, pipeline: &str) -> Option<Taken> {
        let mut taken = Taken::default();
        for (file, source) in self.files.iter().enumerate() {
            let at = ["<DynModel>", "<A>"]
                .iter()
                .find_map(|of| source.find(&format!("JsonPipeline for {pipeline}{of}")));
            let Some(at) = at else { continue };
            self.scan(block(&source[at..]), file, &mut taken);
            return Some(taken);
        }
        // Those that a macro makes.
        let file =
            self.files.iter().position(|source| source.contains(&format!("text_to_text!({pipeline})")))?;
        let source = &self.files[file];
        self.scan(block(&source[source.find("macro_rules! text_to_text")?..]), file, &mut taken);
        Some(taken)
    }

    fn scan(&self, body: &str, file: usize, taken: &mut Taken) {
        for (call, group) in GROUPS {
            let used = body.match_indices(call).any(|(at, _)| {
                body[..at].trim_end().ends_with("parameters") || call.starts_with("parameters")
            });
            if used && !taken.groups.contains(&group) {
                taken.groups.push(group);
            }
        }
        for (name, ty) in INNER {
            if body.contains(&format!("parameters.inner(\"{name}\")")) {
                taken.own.insert(name.to_owned(), (Kind::Given(ty), String::new()));
            }
        }
        for (at, _) in body.match_indices(".get") {
            let before = body[..at].trim_end();
            let Some(place) = before.strip_suffix("parameters") else { continue };
            let Some((turbofish, name)) = asked(&body[at + 4..]) else { continue };
            if name == "out" {
                continue;
            }
            let field = field_of(body, place, &name, self.types);
            let doc = field.map(|field| field.doc.clone()).unwrap_or_default();
            let given = GIVEN.iter().find(|(known, _)| *known == name);
            let kind = match (given, turbofish.as_deref(), field, local(place)) {
                (Some((_, ty)), ..) => Kind::Given(ty),
                (None, Some(ty), ..) if ty != "Json" => Kind::Rust(parsed(ty)),
                (None, _, Some(field), _) => Kind::Rust(field.ty.clone()),
                (None, _, None, Some(ty)) if ty.trim() != "Json" => Kind::Rust(parsed(&ty)),
                _ => {
                    taken.unknown.push(name);
                    continue;
                }
            };
            taken.own.insert(name, (kind, doc));
        }
        for (at, _) in body.match_indices("(&parameters") {
            let called = body[..at].rsplit(|letter: char| !letter.is_alphanumeric() && letter != '_').next();
            let Some(called) = called.filter(|called| !called.is_empty()) else { continue };
            let signature = format!("fn {called}(parameters: &Parameters");
            // A file's own function, or the one that several files share.
            let files = [file].into_iter().chain(0..self.files.len());
            let Some(file) = files.into_iter().find(|file| self.files[*file].contains(&signature)) else {
                continue;
            };
            let source = &self.files[file];
            let start = source.find(&signature).unwrap_or(0);
            self.scan(block(&source[start..]), file, taken);
        }
    }
}

/// `::<T>("name")` or `("name")`.
fn asked(text: &str) -> Option<(Option<String>, String)> {
    let (turbofish, rest) = match text.strip_prefix("::<") {
        Some(rest) => rest.split_once(">(").map(|(ty, rest)| (Some(ty.to_owned()), rest))?,
        None => (None, text.strip_prefix('(')?),
    };
    let name = rest.strip_prefix('"')?.split('"').next()?;
    Some((turbofish, name.to_owned()))
}

/// The field of the options that a parameter becomes: `top_k: parameters.get(..)`, or the one of its name.
fn field_of<'a>(body: &str, place: &str, name: &str, types: &'a Types) -> Option<&'a Field> {
    let word = |text: &str| {
        let start =
            text.rfind(|letter: char| !letter.is_alphanumeric() && letter != '_').map_or(0, |at| at + 1);
        text[start..].to_owned()
    };
    let assigned = place.trim_end().strip_suffix(':').map(word);
    let options =
        body.split(|letter: char| !letter.is_alphanumeric()).filter(|word| types.0.contains_key(*word));
    let mut options: Vec<&str> = options.collect();
    options.dedup();
    let names = assigned.iter().map(String::as_str).chain([name]);
    names.into_iter().find_map(|name| options.iter().find_map(|of| types.field(of, name)))
}

/// The type of `let name: T = ` before a call.
fn local(place: &str) -> Option<String> {
    let (_, declared) = place.trim_end().strip_suffix('=')?.rsplit_once("let ")?;
    Some(declared.split_once(':')?.1.trim().to_owned())
}

fn parsed(ty: &str) -> syn::Type {
    syn::parse_str(ty).unwrap_or_else(|_| syn::Type::Verbatim(Default::default()))
}

/// From the first brace to the one that closes it.
fn block(source: &str) -> &str {
    let mut depth = 0_usize;
    for (at, letter) in source.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => {
                depth -= 1;
                if depth == 0 {
                    return &source[..at];
                }
            }
            _ => {}
        }
    }
    source
}
