//! What reads files, each with the goldens' files that it reads: the corpus.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::json;
use weft::audio::{Audio, ExtractOptions, FeatureExtractor};
use weft::generation::GenerationConfig;
use weft::graph::Weight;
use weft::hub::Checkpoint;
use weft::image::{Image, ImageProcessor};
use weft::text::chat::{ChatOptions, ChatTemplate, Message};
use weft::text::{EncodeOptions, Text, Tokenizer};
use weft::video::Video;
use weft::weights::{Files, Names as WeightNames, Weights};
use weft::{Architecture, Hardware};

use crate::mutate::Kind;

pub const NAMES: [&str; 14] = [
    "jpeg",
    "image",
    "frames",
    "audio",
    "chat",
    "safetensors",
    "gguf",
    "tokenizer",
    "processor",
    "generation",
    "config",
    "quantized",
    "quantization",
    "spec",
];

/// Reads an input; whether it is refused does not matter.
pub type Reader = Box<dyn Fn(&[u8])>;

pub struct Target {
    pub kind: Kind,
    pub corpus: Vec<Vec<u8>>,
    pub run: Reader,
}

/// The target of a name.
pub fn named(name: &str) -> Target {
    let (kind, files, run): (_, Vec<PathBuf>, Reader) = match name {
        "jpeg" => (Kind::Binary, goldens("processors/image/files", &["jpg"]), Box::new(image)),
        "image" => {
            (Kind::Binary, goldens("processors/image/files", &["png", "webp", "gif"]), Box::new(image))
        }
        "frames" => {
            let files = goldens("processors/image/files", &["gif", "webp"]);
            (Kind::Binary, files, in_folder(FRAMES, frames))
        }
        "audio" => (Kind::Binary, goldens("processors/audio/files", &[""]), Box::new(audio)),
        "chat" => (Kind::Text, goldens("chat", &["jinja"]), Box::new(chat)),
        "safetensors" => {
            let files = goldens("bert", &["io.safetensors"]);
            (Kind::Binary, files, in_folder("model.safetensors", |dir| _ = Files::open(&checkpoint(dir))))
        }
        "gguf" => (Kind::Binary, goldens("gguf", &["model.gguf"]), in_folder("model.gguf", gguf)),
        "tokenizer" => {
            (Kind::Text, goldens("generation", &["tokenizer.json"]), in_folder("tokenizer.json", tokenizer))
        }
        "processor" => {
            let files = goldens("processors", &["preprocessor_config.json", "processor_config.json"]);
            (Kind::Text, files, in_folder("preprocessor_config.json", processor))
        }
        "generation" => {
            let files = goldens("", &["generation_config.json"]);
            let read = |dir: &Path| _ = GenerationConfig::from_checkpoint(&checkpoint(dir));
            (Kind::Text, files, in_folder("generation_config.json", read))
        }
        "config" => {
            let files =
                ["bert", "llava"].iter().flat_map(|model| goldens(model, &["/config.json"])).collect();
            (Kind::Text, files, in_folder("config.json", config))
        }
        "quantized" => {
            let folders = QUANTIZED.iter().map(|name| format!("llama/quantized-{name}/model.safetensors"));
            let files = folders.flat_map(|file| goldens("llama", &[&file])).collect();
            let configs: Vec<_> = QUANTIZED.iter().map(|name| golden(name, "config.json")).collect();
            let read = move |dir: &Path| {
                for config in &configs {
                    std::fs::write(dir.join("config.json"), config).unwrap();
                    quantized(dir);
                }
            };
            (Kind::Binary, files, in_folder("model.safetensors", read))
        }
        "quantization" => {
            let folders = QUANTIZED.iter().map(|name| format!("llama/quantized-{name}/config.json"));
            let files = folders.flat_map(|file| goldens("llama", &[&file])).collect();
            let weights: Vec<_> = QUANTIZED.iter().map(|name| golden(name, "model.safetensors")).collect();
            let read = move |dir: &Path| {
                for weights in &weights {
                    std::fs::write(dir.join("model.safetensors"), weights).unwrap();
                    quantized(dir);
                }
            };
            (Kind::Text, files, in_folder("config.json", read))
        }
        "spec" => (Kind::Text, files(&root().join("../model_specs"), &["yaml"]), Box::new(spec)),
        other => panic!("no target {other}; one of {}", NAMES.join(", ")),
    };
    let corpus: Vec<_> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    assert!(!corpus.is_empty(), "{name} has no corpus");
    Target { kind, corpus, run }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn goldens(folder: &str, endings: &[&str]) -> Vec<PathBuf> {
    files(&root().join("goldens").join(folder), endings)
}

/// The files below a folder whose names end so, none large, in order.
fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let entries = walkdir::WalkDir::new(folder).sort_by_file_name().into_iter().map(Result::unwrap);
    let small =
        entries.filter(|entry| entry.file_type().is_file() && entry.metadata().unwrap().len() < 1 << 16);
    let paths = small.map(walkdir::DirEntry::into_path);
    paths.filter(|path| endings.iter().any(|ending| path.to_string_lossy().ends_with(ending))).collect()
}

fn checkpoint(dir: &Path) -> Checkpoint {
    Checkpoint::open(dir.to_str().unwrap()).unwrap()
}

/// Writes the input into a folder, and reads that.
fn in_folder(name: &'static str, read: impl Fn(&Path) + 'static) -> Reader {
    let dir = tempfile::tempdir().unwrap();
    Box::new(move |input| {
        std::fs::write(dir.path().join(name), input).unwrap();
        read(dir.path());
    })
}

fn image(input: &[u8]) {
    let _ = Image::decode(input);
}

const FRAMES: &str = "frames.gif";

fn frames(dir: &Path) {
    let path = dir.join(FRAMES);
    // What begins otherwise goes to a program that may not be there.
    let bytes = std::fs::read(&path).unwrap();
    if bytes.starts_with(b"GIF8") || bytes.starts_with(b"RIFF") {
        let _ = Video::open(path);
    }
}

fn audio(input: &[u8]) {
    let _ = Audio::decode(input).and_then(|audio| audio.resample(16_000));
}

fn chat(input: &[u8]) {
    let Ok(template) = ChatTemplate::from_source(&String::from_utf8_lossy(input)) else { return };
    let messages = [Message::system("Be brief."), Message::user("Hello"), Message::assistant("Hi")];
    let tools = json!([{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]);
    let tools = tools.as_array().cloned();
    let options = ChatOptions { tools, add_generation_prompt: true, ..ChatOptions::default() };
    let _ = template.render(&messages, &options);
}

/// The header, the configuration, the tokenizer, and the bytes of every tensor.
fn gguf(dir: &Path) {
    let Ok(checkpoint) = Checkpoint::open(dir.to_str().unwrap()) else { return };
    let _ = checkpoint.json("config.json");
    let _ = Tokenizer::from_checkpoint(&checkpoint);
    let Ok(Weights::Gguf(tensors)) = Weights::open(&checkpoint) else { return };
    for name in tensors.names() {
        let wanted = Weight {
            name: name.clone(),
            transposed: false,
            integers: false,
            shape: tensors.shape(name).unwrap().to_vec(),
        };
        let _ = Weights::Gguf(tensors.clone()).locate(&[wanted], &WeightNames::default());
    }
}

fn tokenizer(dir: &Path) {
    let Ok(tokenizer) = Tokenizer::from_checkpoint(&checkpoint(dir)) else { return };
    let _ = tokenizer.encode(&[Text::from("Some words, 12.5 and ünïcode.")], &EncodeOptions::default());
}

fn processor(dir: &Path) {
    let checkpoint = checkpoint(dir);
    if let Ok(processor) = ImageProcessor::from_checkpoint(&checkpoint) {
        let image = Image::open(root().join("goldens/processors/image/files/tiny.png")).unwrap();
        let _ = processor.process(&[image]);
    }
    if let Ok(extractor) = FeatureExtractor::read(&checkpoint) {
        let _ = extractor.extract(&[&[0.5; 1000]], &ExtractOptions::default());
    }
}

/// A golden of each format of quantized weights.
const QUANTIZED: [&str; 14] = [
    "awq",
    "bitnet",
    "bitsandbytes-int8",
    "bitsandbytes-nested",
    "compressed-mxfp4",
    "compressed-zeros",
    "fp8",
    "gptq-3",
    "gptq-desc-act",
    "hqq-3",
    "hqq-4",
    "quanto-4",
    "torchao-int4",
    "torchao-int8",
];

fn golden(name: &str, file: &str) -> Vec<u8> {
    std::fs::read(root().join("goldens/llama").join(format!("quantized-{name}")).join(file)).unwrap()
}

/// Unpacks weights of every linear layer.
fn quantized(dir: &Path) {
    let Ok(files) = Files::open(&checkpoint(dir)) else { return };
    let weights = Weights::Files(files);
    let layer = "model.layers.0.";
    for (name, shape) in [
        ("self_attn.q_proj", [64, 64]),
        ("self_attn.k_proj", [32, 64]),
        ("mlp.gate_proj", [96, 64]),
        ("mlp.down_proj", [64, 96]),
    ] {
        for transposed in [false, true] {
            let mut shape = shape.to_vec();
            if transposed {
                shape.reverse();
            }
            let wanted = Weight { name: format!("{layer}{name}.weight"), shape, transposed, integers: false };
            if let Ok(found) = weights.locate(&[wanted], &WeightNames::default()) {
                let _ = found[0].bytes.read();
            }
        }
    }
}

fn config(dir: &Path) {
    let dir = dir.to_str().unwrap();
    // Some weights of any names: what is there does not matter before the graph is built.
    let weights = || Weights::Rule(BTreeMap::from([("some.weight".to_owned(), vec![512, 512])]));
    let _ = weft_bert::Model::open(dir).map(|loader| loader.weights(weights()).lower(Hardware::Cpu));
    let _ = weft_llava::Model::open(dir).map(|loader| loader.weights(weights()).lower(Hardware::Cpu));
    let _ = weft_bert::Model::NAME;
}

fn spec(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let _ = weft_generator::spec::yaml::parse(Path::new("spec.yaml"), &text, 0);
    let _ = weft_generator::expression::Expression::parse(&text);
}
