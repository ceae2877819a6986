//! `weft export`: a checkpoint as what other engines load, written without Python.

mod casts;
mod defaults;
mod form;
mod genai;
mod graphs;
mod merged;
mod seq2seq;
mod storage;
mod transformersjs;
mod triton;

use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use weft::hub::Checkpoint;
use weft::{DynLoader, Error, Precision, Result, Task};

use crate::options;
use crate::terminal::{bad_input, bytes, say};
use storage::{Storage, Stored};

/// Writes a checkpoint as what other engines load, without Python.
///
/// `onnx` is a model with its weights beside it; `openvino` the same in operators that OpenVINO fuses; `transformersjs` the
/// folder `onnx/` with a file for each dtype; `genai` the layout of ONNX Runtime GenAI; `triton` a model repository.
/// An encoder-decoder is two files, `encoder_model` and `decoder_model_merged`, as Optimum names them.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  weft export ./all-MiniLM-L6-v2 --to transformersjs out --dtype fp32 --dtype fp16
  weft export ./llama --to genai out
  weft export ./bert --to onnx out --link")]
pub struct Args {
    /// A folder, or an id of the Hugging Face hub.
    checkpoint: String,
    /// What to write.
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Format,
    /// The folder to write, which must not be there.
    out: PathBuf,
    /// The task whose class is exported; the class that config.json names where not given.
    #[arg(long, value_name = "TASK", value_parser = options::task(), hide_possible_values = true)]
    task: Option<Task>,
    /// The reference's class to export.
    #[arg(long, value_name = "CLASS")]
    class: Option<String>,
    /// What floating-point numbers are written in, or weights quantized to; transformersjs takes several.
    #[arg(long = "dtype", value_enum, value_name = "DTYPE")]
    dtypes: Vec<DtypeName>,
    /// Points into the checkpoint's own weight files, by hard links to them where the disk has them, instead of a copy in the
    /// order of use.
    #[arg(long)]
    link: bool,
}

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Onnx,
    Openvino,
    Transformersjs,
    Genai,
    Triton,
}

/// Number formats by the names that transformers.js has for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DtypeName {
    Fp32,
    Fp16,
    /// Weights in blocks of 8 bits.
    Q8,
    /// Weights in blocks of 4 bits.
    Q4,
}

impl DtypeName {
    fn precision(self) -> Precision {
        match self {
            Self::Fp32 => Precision::F32,
            Self::Fp16 => Precision::F16,
            Self::Q8 => Precision::Int8,
            Self::Q4 => Precision::Int4,
        }
    }

    /// What transformers.js puts behind a file's stem.
    fn suffix(self) -> &'static str {
        match self {
            Self::Fp32 => "",
            Self::Fp16 => "_fp16",
            Self::Q8 => "_quantized",
            Self::Q4 => "_q4",
        }
    }
}

/// What is exported, and whereto.
struct Export<'a> {
    loader: DynLoader,
    task: Option<Task>,
    dtypes: Vec<DtypeName>,
    storage: Storage,
    out: &'a Path,
}

/// Runs the verb; true where the folder was written.
pub fn run(args: &Args) -> Result<bool> {
    if args.out.exists() {
        let problem = format!("{} is there already", args.out.display());
        return Err(bad_input("OUT", problem, "name a folder that is not there, or remove it"));
    }
    let mut loader = weft_models::loader(&args.checkpoint)?;
    if let Some(class) = &args.class {
        loader = loader.class(class);
    }
    let mut dtypes = args.dtypes.clone();
    if dtypes.is_empty() {
        dtypes.push(DtypeName::Fp32);
    }
    if dtypes.len() > 1 && args.to != Format::Transformersjs {
        let help = "write one folder for each";
        return Err(bad_input("--dtype", "only transformersjs takes several", help));
    }
    let storage = if args.link { Storage::Link } else { Storage::Pack };
    // Beside its place, so that it is whole or not there.
    let parent = args.out.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = args.out.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let unfinished = parent.join(format!(".{name}.weft-unfinished"));
    let written = remove(&unfinished).and_then(|()| {
        create(&unfinished)?;
        let export = Export { loader, task: args.task, dtypes, storage, out: &unfinished };
        let stored = match args.to {
            Format::Onnx | Format::Openvino => onnx(&export),
            Format::Transformersjs => transformersjs::write(&export),
            Format::Genai => genai::write(&export),
            Format::Triton => triton::write(&export, &name),
        }?;
        fs::rename(&unfinished, &args.out).map_err(|source| io(&args.out, source))?;
        Ok(stored)
    });
    let stored = match written {
        Ok(stored) => stored,
        Err(error) => {
            remove(&unfinished)?;
            return Err(error);
        }
    };
    for file in &stored {
        say(format!("{}: {}", args.out.join(&file.path).display(), bytes(file.bytes)));
    }
    Ok(true)
}

/// `model.onnx`, or an encoder and a decoder, with weights beside them, and the checkpoint's other files.
fn onnx(export: &Export<'_>) -> Result<Vec<Stored>> {
    let stored = graphs::write_all(export, export.dtypes[0], export.out, "", export.storage)?;
    copy_files(export.loader.checkpoint(), export.out)?;
    Ok(stored)
}

/// The checkpoint's files that are no weights: configurations, tokenizers, templates.
fn copy_files(checkpoint: &Checkpoint, out: &Path) -> Result<()> {
    const ENDINGS: [&str; 5] = ["json", "txt", "model", "jinja", "tiktoken"];
    let folder = checkpoint.dir();
    for entry in fs::read_dir(folder).map_err(|source| io(folder, source))?.flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let ends = path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known));
        let index = name.to_string_lossy().ends_with(".index.json");
        if path.is_file() && ends && !index {
            let to = out.join(name);
            fs::copy(&path, &to).map_err(|source| io(&to, source))?;
        }
    }
    Ok(())
}

fn create(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(|source| io(folder, source))
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io(folder, error)),
        _ => Ok(()),
    }
}

fn io(path: &Path, source: std::io::Error) -> Error {
    Error::Io { path: path.to_owned(), source }
}
