//! What a task case must refuse: its files, its inputs and its checkpoint, each spoilt in one place. The answer is an
//! error that names what is wrong and the way out; another answer, or a panic, fails the test.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value as Json, json};

use super::Record;
use super::run::{Target, evidence, recorded};
use super::subject::Subject;
use super::tasks::{self, Call, TaskCase};
use crate::golden::{OutputReport, rule};
use crate::tasks::JsonPipeline;
use crate::{Error, Result, engine};

/// Files that say how images and audio become tensors.
const PROCESSORS: [&str; 2] = ["preprocessor_config.json", "processor_config.json"];

const TOKENIZERS: [&str; 2] = ["tokenizer.json", "vocab.json"];

/// A word that the tokenizer has and the model has not.
const FOREIGN: &str = "<foreign>";

/// More words than any case's model has positions for.
const MANY: usize = 5000;

/// Tasks that cut long texts, or run them in pieces, as the reference does.
const CUT: [&str; 6] = [
    "document-question-answering",
    "generative-question-answering",
    "question-answering",
    "sentence-embedding",
    "token-classification",
    "zero-shot-classification",
];

/// Tasks that answer empty texts unless they are told not to, as the reference does.
const EMPTY: [&str; 11] = [
    "feature-extraction",
    "fill-mask",
    "sentence-embedding",
    "summarization",
    "text-classification",
    "text-generation",
    "text2text-generation",
    "token-classification",
    "translation",
    "visual-question-answering",
    "zero-shot-classification",
];

/// Spoils a task case in every way that applies to it.
pub(super) fn golden(subject: Subject, dir: &Path, target: Target<'_>) -> Record {
    recorded(subject, dir, target, attempt)
}

fn attempt(subject: Subject, dir: &Path, target: Target<'_>, record: &mut Record) -> Result<()> {
    let case = tasks::read(&dir.join(tasks::FILE))?;
    record.class = case.meta.class.clone().unwrap_or_default();
    record.versions.insert("engine".to_owned(), engine::available(target.hardware)?);
    let copy = Copy::of(dir).map_err(|e| Error::io(dir, e))?;
    let call = &case.calls[0];
    let sound = copy.load(subject, &case, target)?;
    let cuts = CUT.contains(&case.task.as_str()) || copy.fills(subject, &case, target)?;
    for spoilt in copy.files(call).into_iter().chain(copy.calls(&case.task, call, cuts)) {
        let answer = spoilt.within(&copy, |inputs| sound.run_json(inputs, &spoilt.parameters));
        record.outputs.push(spoilt.judge(answer));
    }
    for spoilt in copy.checkpoints(call) {
        let answer = spoilt
            .within(&copy, |inputs| copy.load(subject, &case, target)?.run_json(inputs, &spoilt.parameters));
        record.outputs.push(spoilt.judge(answer));
    }
    record.passed = record.outputs.iter().all(|output| output.passed);
    record.evidence = if record.passed { evidence(target.hardware) } else { "failed" }.to_owned();
    Ok(())
}

/// A call with one thing wrong: in it, or in a file.
struct Spoilt {
    /// What is wrong.
    what: String,
    /// What the message must name.
    names: String,
    inputs: Json,
    parameters: Json,
    /// A file, and what it holds; nothing where it is not there.
    file: Option<(String, Option<Vec<u8>>)>,
}

impl Spoilt {
    fn call(what: &str, names: &str, inputs: Json, parameters: Json) -> Self {
        Self { what: what.to_owned(), names: names.to_owned(), inputs, parameters, file: None }
    }

    fn file(what: &str, name: &str, bytes: Option<Vec<u8>>, call: &Call) -> Self {
        let (inputs, parameters) = (call.inputs.clone(), call.parameters.clone());
        let file = Some((name.to_owned(), bytes));
        Self { what: format!("{name} {what}"), names: name.to_owned(), inputs, parameters, file }
    }

    /// What `run` answers to the inputs while the file is spoilt.
    fn within(&self, copy: &Copy, run: impl FnOnce(&Json) -> Result<Json>) -> Result<Json> {
        let inputs = tasks::in_folder(&copy.0, &self.inputs);
        let Some((name, bytes)) = &self.file else { return run(&inputs) };
        let path = copy.0.join(name);
        let sound = fs::read(&path).map_err(|e| Error::io(&path, e))?;
        match bytes {
            Some(bytes) => fs::write(&path, bytes),
            None => fs::remove_file(&path),
        }
        .map_err(|e| Error::io(&path, e))?;
        let answer = run(&inputs);
        fs::write(&path, sound).map_err(|e| Error::io(&path, e))?;
        answer
    }

    fn judge(&self, answer: Result<Json>) -> OutputReport {
        let said = match answer {
            Ok(answer) => format!("was taken: {answer}"),
            Err(error) => error.to_string(),
        };
        let passed = said.contains(&self.names) && said.contains("\n  help: ");
        let problem = format!("expected an error that names `{}` and the way out; {said}", self.names);
        OutputReport::claim(self.what.clone(), (!passed).then_some(problem))
    }
}

/// A copy of a case's folder, removed when it is dropped.
pub(super) struct Copy(pub(super) PathBuf);

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Copy {
    pub(super) fn of(dir: &Path) -> std::io::Result<Self> {
        let copy = Self::empty()?;
        copy_folder(dir, &copy.0)?;
        Ok(copy)
    }

    /// A folder of its own with nothing in it.
    pub(super) fn empty() -> std::io::Result<Self> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("weft-refusals-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }

    fn load(&self, subject: Subject, case: &TaskCase, target: Target<'_>) -> Result<Box<dyn JsonPipeline>> {
        let dir = self.0.to_string_lossy();
        (subject.pipeline)(&case.task, target.request(&dir, rule(&self.0, &case.meta)?))
    }

    /// Whether the model was trained on texts of one length, so that its tasks cut longer ones as the reference does.
    fn fills(&self, subject: Subject, case: &TaskCase, target: Target<'_>) -> Result<bool> {
        let dir = self.0.to_string_lossy();
        let model = (subject.load)(target.request(&dir, rule(&self.0, &case.meta)?))?;
        Ok(model.processing().max_length.is_some())
    }

    fn json(&self, file: &str) -> Option<Json> {
        serde_json::from_slice(&fs::read(self.0.join(file)).ok()?).ok()
    }

    /// The first image or audio clip of a call, and its name.
    fn media<'a>(&self, inputs: &'a Json) -> Option<&'a str> {
        match inputs {
            Json::String(name) => self.0.join(name).is_file().then_some(name),
            Json::Array(list) => list.iter().find_map(|inner| self.media(inner)),
            Json::Object(object) => object.values().find_map(|inner| self.media(inner)),
            _ => None,
        }
    }

    /// The call's image or audio clip: cut short, without anything in it, something else, not there.
    fn files(&self, call: &Call) -> Vec<Spoilt> {
        let Some(name) = self.media(&call.inputs) else { return vec![] };
        let bytes = fs::read(self.0.join(name)).unwrap_or_default();
        let mut all = vec![
            ("is empty", Some(vec![])),
            ("is something else", Some(b"neither an image nor audio".to_vec())),
            ("is cut short", Some(bytes[..bytes.len().min(30)].to_vec())),
        ];
        if name.ends_with(".wav") {
            all.push(("has no samples", Some(without_samples(&bytes))));
            all.push(("has a rate of 0", Some(with_rate(&bytes, 0))));
        } else {
            all.push(("lacks its second half", Some(bytes[..bytes.len() / 2].to_vec())));
        }
        let mut spoilt: Vec<_> =
            all.into_iter().map(|(what, bytes)| Spoilt::file(what, name, bytes, call)).collect();
        let missing = tasks::texts(&call.inputs, &|text| {
            if text == name { "no such file".to_owned() } else { text.to_owned() }
        });
        spoilt.push(Spoilt::call(
            "a file that is not there",
            "no such file",
            missing,
            call.parameters.clone(),
        ));
        spoilt
    }

    /// Texts that are empty, too long or do not go with their images; a parameter that there is not.
    fn calls(&self, task: &str, call: &Call, cuts: bool) -> Vec<Spoilt> {
        let mut spoilt = vec![];
        let mut add = |what: &str, names: &str, (inputs, parameters): (Json, Json)| {
            spoilt.push(Spoilt::call(what, names, inputs, parameters));
        };
        let with = |name: &str, value: Json, (inputs, mut parameters): (Json, Json)| {
            parameters[name] = value;
            (inputs, parameters)
        };
        let sound = || (call.inputs.clone(), call.parameters.clone());
        add(
            "a parameter that there is not",
            "no_such_parameter",
            with("no_such_parameter", json!(1), sound()),
        );
        if !call.parameters["candidate_labels"].is_null() {
            add("no labels", "candidate_labels", with("candidate_labels", json!([]), sound()));
        }
        let token = self.image_token(call);
        // Of a text with no place for it, an image stands before it.
        let with_places = ["image-text-to-text", "video-text-to-text"].contains(&task);
        let before = with_places && !call.inputs.to_string().contains(&token);
        let empty = self.with_text(call, &|_| String::new());
        if let Some(empty) = empty.filter(|_| !self.is_label(call) && !before) {
            let empty = if EMPTY.contains(&task) { with("allow_empty", json!(false), empty) } else { empty };
            let names = if with_places { token.clone() } else { "is empty".to_owned() };
            add("an empty text", &names, empty);
        }
        let long = |text: &str| format!("{text}{}", " warp".repeat(MANY));
        if let Some(long) = self.with_text(call, &long).filter(|_| self.is_limited() && !cuts) {
            add("a text that is too long", "positions", long);
        }
        if before {
            let (mut inputs, parameters) = sound();
            inputs["images"] = json!([inputs["images"].clone(), inputs["images"].clone()]);
            add("an image too many", "images", (inputs, parameters));
        } else if with_places {
            for (what, places) in [("no place for the image", 0), ("a place too many", 2)] {
                let change = |text: &str| text.replace(&token, &token.repeat(places));
                add(what, &token, self.with_text(call, &change).unwrap_or_default());
            }
        }
        spoilt
    }

    /// What stands for an image in the texts of a call.
    fn image_token(&self, call: &Call) -> String {
        let settings = self.json("tokenizer_config.json").unwrap_or_default();
        let inputs = call.inputs.to_string();
        let named = ["boi_token", "context_image_token", "image_token", "video_token"].iter();
        let mut named = named.filter_map(|key| settings[key].as_str());
        named.find(|token| inputs.contains(*token)).unwrap_or("<image>").to_owned()
    }

    /// Whether a call's only texts are labels.
    fn is_label(&self, call: &Call) -> bool {
        !call.parameters["candidate_labels"].is_null() && self.media(&call.inputs).is_some()
    }

    /// The call with another text in a list of two, if it takes texts.
    fn with_text(&self, call: &Call, change: &dyn Fn(&str) -> String) -> Option<(Json, Json)> {
        let (mut inputs, mut parameters) = (call.inputs.clone(), call.parameters.clone());
        let text = match &mut inputs {
            Json::Object(object) => {
                let key =
                    ["text", "context", "question"].into_iter().find(|key| object.contains_key(*key))?;
                object.get_mut(key)?
            }
            Json::String(text) if !self.0.join(&*text).is_file() => {
                let changed = change(text);
                return Some((json!([text, changed]), parameters));
            }
            _ => parameters.get_mut("candidate_labels")?.get_mut(1)?,
        };
        *text = change(text.as_str()?).into();
        Some((inputs, parameters))
    }

    /// Whether the model has a longest text.
    fn is_limited(&self) -> bool {
        let config = self.json("config.json").unwrap_or_default();
        [&config, &config["text_config"]].iter().any(|config| !config["max_position_embeddings"].is_null())
    }

    /// The processor's and the tokenizer's files cut short or not there; a token that the model does not have.
    fn checkpoints(&self, call: &Call) -> Vec<Spoilt> {
        let mut spoilt = vec![];
        for name in PROCESSORS.iter().chain(&TOKENIZERS).filter(|name| self.0.join(name).is_file()) {
            let bytes = fs::read(self.0.join(name)).unwrap_or_default();
            spoilt.push(Spoilt::file("is cut short", name, Some(bytes[..bytes.len() / 2].to_vec()), call));
            // Beside a file for images alone, it says nothing that `config.json` does not.
            if *name != "processor_config.json" || !self.0.join("preprocessor_config.json").is_file() {
                spoilt.push(Spoilt::file("is not there", name, None, call));
            }
        }
        if let Some(mut tokenizer) = self.json("tokenizer.json") {
            let vocabulary = tokenizer["model"]["vocab"].as_object().map_or(0, serde_json::Map::len);
            let added = tokenizer["added_tokens"].as_array_mut();
            let token = json!({"id": vocabulary + 1000, "content": FOREIGN, "single_word": false, "lstrip": false,
                               "rstrip": false, "normalized": false, "special": false});
            added.into_iter().for_each(|added| added.push(token.clone()));
            if let Some((inputs, parameters)) = self.with_text(call, &|text| format!("{FOREIGN} {text}")) {
                let file = Some(("tokenizer.json".to_owned(), Some(tokenizer.to_string().into_bytes())));
                spoilt.push(Spoilt {
                    file,
                    ..Spoilt::call("a token that the model has not", FOREIGN, inputs, parameters)
                });
            }
        }
        spoilt
    }
}

fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// A WAV file's header, of an audio clip of no length.
fn without_samples(wav: &[u8]) -> Vec<u8> {
    let start = wav.windows(4).position(|four| four == b"data").map_or(wav.len(), |at| at + 8);
    let mut header = wav[..start].to_vec();
    let rest = (start as u32).saturating_sub(8).to_le_bytes();
    header[4..8].copy_from_slice(&rest);
    header[start - 4..].fill(0);
    header
}

/// A WAV file with another number of samples a second.
fn with_rate(wav: &[u8], rate: u32) -> Vec<u8> {
    let mut wav = wav.to_vec();
    wav[24..28].copy_from_slice(&rate.to_le_bytes());
    wav
}
