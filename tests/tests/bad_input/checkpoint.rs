//! A sound checkpoint in a folder of its own, to be spoilt in one place.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use tempfile::TempDir;
use weft::Hardware;
use weft::weights::rule;
use weft_bert::Model;

/// The tokenizer, the configuration and the list of parameters come from this golden.
const SOUND: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/goldens/bert/tasks/fill-mask");

pub struct Checkpoint {
    folder: TempDir,
    /// The header of `model.safetensors`.
    pub header: Json,
    /// What follows it.
    pub data: Vec<u8>,
}

impl Checkpoint {
    /// A masked language model with its tokenizer.
    pub fn sound() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for file in ["config.json", "tokenizer.json", "tokenizer_config.json"] {
            fs::copy(Path::new(SOUND).join(file), folder.path().join(file)).unwrap();
        }
        let (header, data) = weights(&Path::new(SOUND).join("task.json"));
        let checkpoint = Self { folder, header, data };
        checkpoint.write_weights();
        checkpoint
    }

    /// Writes `header` and `data` to `model.safetensors`.
    pub fn write_weights(&self) -> &Self {
        self.write("model.safetensors", &safetensors(&self.header, &self.data))
    }

    /// Changes the header, and writes it.
    pub fn header(mut self, change: impl FnOnce(&mut Json)) -> Self {
        change(&mut self.header);
        self.write_weights();
        self
    }

    /// Changes `config.json`.
    pub fn config(self, change: impl FnOnce(&mut Json)) -> Self {
        let path = self.path("config.json");
        let mut config: Json = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        change(&mut config);
        fs::write(path, config.to_string()).unwrap();
        self
    }

    pub fn write(&self, file: &str, bytes: &[u8]) -> &Self {
        fs::write(self.path(file), bytes).unwrap();
        self
    }

    pub fn remove(&self, file: &str) -> &Self {
        fs::remove_file(self.path(file)).unwrap();
        self
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    /// What it is opened by.
    pub fn id(&self) -> &str {
        self.folder.path().to_str().unwrap()
    }

    /// What loading it says; it must fail.
    pub fn refusal(&self) -> String {
        let loaded = Model::open(self.id()).and_then(|loader| loader.hardware(Hardware::Cpu).load());
        self.shown(&loaded.expect_err("the checkpoint was taken"))
    }

    /// An error with the folder's name taken out.
    pub fn shown(&self, error: &weft::Error) -> String {
        let real = self.folder.path().canonicalize().unwrap();
        let text = error.to_string().replace(real.to_str().unwrap(), "DIR");
        text.replace(self.id(), "DIR").replace('\\', "/")
    }
}

/// Whether ONNX Runtime is set up: tests that run a model have nothing to say otherwise.
pub fn runs() -> bool {
    match weft::engine::available(Hardware::Cpu) {
        Ok(_) => true,
        Err(error) => {
            eprintln!("skipped: {error}");
            false
        }
    }
}

/// The header and the data of the weights that the rule gives for a case's list of parameters.
pub fn weights(case: &Path) -> (Json, Vec<u8>) {
    let case: Json = serde_json::from_slice(&fs::read(case).unwrap()).unwrap();
    let (mut header, mut data) = (json!({}), vec![]);
    for (name, shape) in case["parameters"].as_object().unwrap() {
        let sizes: Vec<usize> = serde_json::from_value(shape.clone()).unwrap();
        let start = data.len();
        data.extend(rule::generate(name, &sizes).iter().flat_map(|x| x.to_le_bytes()));
        header[name] = json!({"dtype": "F32", "shape": sizes, "data_offsets": [start, data.len()]});
    }
    (header, data)
}

/// A file of the format, with whatever header.
pub fn safetensors(header: &Json, data: &[u8]) -> Vec<u8> {
    let header = header.to_string();
    let length = (header.len() as u64).to_le_bytes();
    [length.as_slice(), header.as_bytes(), data].concat()
}
