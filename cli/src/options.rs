//! Options that several verbs share: where a checkpoint runs, and in what.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use weft::{DynLoader, Hardware, Precision, Result, Task};

/// Where and how a checkpoint is loaded.
#[derive(clap::Args, Clone, Debug)]
pub struct LoadOptions {
    /// Where to run; `auto` takes the fastest backend that is known to be on this machine.
    #[arg(long = "hw", value_name = "HW", default_value = "auto", value_parser = hardware())]
    pub hardware: Hardware,
    /// What to compute in, or into what weights are quantized; f32 where not given, but f16 on qnn.
    #[arg(long, value_name = "P", value_parser = precision())]
    pub precision: Option<Precision>,
    /// Keep quantized weights on disk for the next time; `weft cache` tells how much, and removes it.
    #[arg(long)]
    pub cache: bool,
    /// The reference's class to load; the one that config.json names where not given.
    #[arg(long = "class", visible_alias = "head", value_name = "CLASS")]
    pub class: Option<String>,
    /// Threads within an operation; the physical cores where not given.
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
}

impl LoadOptions {
    /// The checkpoint, with these options.
    pub fn open(&self, checkpoint: &str) -> Result<DynLoader> {
        let mut loader = weft_models::loader(checkpoint)?.hardware(self.hardware).cache_quantized(self.cache);
        if let Some(precision) = self.precision {
            loader = loader.precision(precision);
        }
        if let Some(threads) = self.threads {
            loader = loader.threads(threads);
        }
        if let Some(class) = &self.class {
            loader = loader.class(class);
        }
        Ok(loader)
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

/// The tasks by name.
pub fn task() -> impl TypedValueParser<Value = Task> {
    PossibleValuesParser::new(Task::ALL.map(Task::name)).try_map(|name| name.parse::<Task>())
}
