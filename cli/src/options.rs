//! Options that several verbs share: where a checkpoint runs, and in what.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use weft::{DynLoader, DynModel, Error, Hardware, Precision, Result, Task};

/// Where and how a checkpoint is loaded.
#[derive(clap::Args, Clone, Debug)]
pub struct LoadOptions {
    /// Where to run; `auto` takes the fastest backend that is known to be on this machine.
    #[arg(long = "hw", value_name = "HW", default_value = "auto", value_parser = hardware())]
    pub hardware: Hardware,
    /// What to compute in, or into what weights are quantized; f32 where not given, but f16 on qnn.
    #[arg(long, value_name = "P", value_parser = precision())]
    pub precision: Option<Precision>,
    /// What a module's weights are in: those whose name holds MODULE, or is of its pattern with `*`. Of floating point, they stay as stored.
    #[arg(long, value_name = "MODULE=P", value_parser = precision_of)]
    pub precision_of: Vec<(String, Precision)>,
    /// Keep quantized weights on disk for the next time; `weft cache` tells how much, and removes it.
    #[arg(long)]
    pub cache: bool,
    /// What a decoder's cached keys and values are kept in; f32 where not given.
    #[arg(long, value_name = "P", value_parser = cache_precision())]
    pub kv_cache: Option<Precision>,
    /// The reference's class to load; the one that config.json names where not given.
    #[arg(long = "class", visible_alias = "head", value_name = "CLASS")]
    pub class: Option<String>,
    /// Threads within an operation; the physical cores where not given.
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Low-rank updates to add to the weights: a file (kohya-ss, diffusers) or a folder (PEFT), with `=0.8` behind it that much of it.
    #[arg(long, value_name = "FILE[=SCALE]", value_parser = lora)]
    pub lora: Vec<(PathBuf, f32)>,
}

impl LoadOptions {
    /// The checkpoint, with these options.
    pub fn open(&self, checkpoint: &str) -> Result<DynLoader> {
        let mut loader = weft_models::loader(checkpoint)?.hardware(self.hardware).cache_quantized(self.cache);
        if let Some(precision) = self.precision {
            loader = loader.precision(precision);
        }
        for (module, precision) in &self.precision_of {
            loader = loader.precision_of(module, *precision);
        }
        if let Some(precision) = self.kv_cache {
            loader = loader.kv_cache(precision);
        }
        if let Some(threads) = self.threads {
            loader = loader.threads(threads);
        }
        loader = self.lora.iter().fold(loader, |loader, (path, scale)| loader.lora(path, *scale));
        if let Some(class) = &self.class {
            loader = loader.class(class);
        }
        Ok(loader)
    }

    /// A smaller model that drafts for a task, loaded as the checkpoint is but for what is said of that alone.
    pub fn assistant(&self, checkpoint: &str, task: Task) -> Result<DynModel> {
        let own = Self { class: None, lora: vec![], precision_of: vec![], ..self.clone() };
        own.open(checkpoint)?.load_assistant(task)
    }
}

/// A file of low-rank updates and its scale, 1 where not given.
fn lora(text: &str) -> std::result::Result<(PathBuf, f32), String> {
    match text.rsplit_once('=') {
        Some((path, scale)) => match scale.parse() {
            Ok(scale) => Ok((path.into(), scale)),
            Err(_) => Err(format!("`{scale}` is no number: FILE=0.8 adds that much of a file")),
        },
        None => Ok((text.into(), 1.0)),
    }
}

/// The backends by name.
pub fn hardware() -> impl TypedValueParser<Value = Hardware> {
    let names = Hardware::ALL.map(Hardware::name);
    PossibleValuesParser::new([Hardware::Auto.name()].into_iter().chain(names))
        .try_map(|name| name.parse::<Hardware>())
}

/// The precisions by name.
pub fn precision() -> impl TypedValueParser<Value = Precision> {
    PossibleValuesParser::new(Precision::ALL.map(Precision::name)).try_map(|name| name.parse::<Precision>())
}

/// A module and the precision of its weights.
fn precision_of(text: &str) -> std::result::Result<(String, Precision), String> {
    match text.split_once('=') {
        Some((module, precision)) if !module.is_empty() => precision
            .parse()
            .map(|precision| (module.to_owned(), precision))
            .map_err(|error: Error| error.to_string()),
        _ => Err("vision_tower=int8 names a module and its precision".to_owned()),
    }
}

/// The precisions of a cache by name.
fn cache_precision() -> impl TypedValueParser<Value = Precision> {
    let names = [Precision::F32, Precision::Int8, Precision::Int4].map(Precision::name);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Precision>())
}

/// The tasks by name.
pub fn task() -> impl TypedValueParser<Value = Task> {
    PossibleValuesParser::new(Task::ALL.map(Task::name)).try_map(|name| name.parse::<Task>())
}

#[cfg(test)]
mod tests {
    use super::lora;

    #[test]
    fn a_scale_stands_behind_a_file() {
        assert_eq!(lora("style.safetensors").unwrap(), ("style.safetensors".into(), 1.0));
        assert_eq!(lora("a=b/style.safetensors=0.8").unwrap(), ("a=b/style.safetensors".into(), 0.8));
        assert!(lora("style.safetensors=much").unwrap_err().contains("`much`"));
    }
}
