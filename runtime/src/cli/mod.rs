//! `examples/run.rs` of every generated crate, and `weft run`: a checkpoint and inputs on the command line, answers on
//! standard output.

mod answers;
mod arguments;
mod inputs;

use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::process::ExitCode;

use serde_json::{Value as Json, json};

use crate::clock::Instant;
use crate::hub::Checkpoint;
use crate::session::millis;
use crate::tasks::{JsonPipeline, Task, json_pipeline};
use crate::{Architecture, DynArchitecture, DynLoader, Error, ExpertUsage, Hardware, LayerUsage, Result};
pub use arguments::Arguments;

/// Answers the program's own command line.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> std::process::ExitCode {
/// weft::cli::main::<A>()
/// # }
/// ```
pub fn main<A: Architecture>() -> ExitCode {
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    ExitCode::from(with::<A>(&words, &mut std::io::stdout()))
}

/// Answers a command line: 1 where an answer failed, 2 where the command line is wrong; what is wrong and what was
/// loaded goes to standard error.
pub fn with<A: Architecture>(words: &[String], out: &mut dyn Write) -> u8 {
    let architecture = const { DynArchitecture::of::<A>() };
    let arguments = match Arguments::parse(words) {
        Ok(arguments) if arguments.help => {
            print(out, &arguments::help(architecture.name(), &architecture.tasks()));
            return 0;
        }
        Ok(arguments) => arguments,
        Err(problem) => {
            eprintln!("{problem}\n\n`--help` tells what there is.");
            return 2;
        }
    };
    let open = |checkpoint: &str| Ok(architecture.loader(Checkpoint::open(checkpoint)?));
    match run(&arguments, open, out) {
        Ok(sound) => u8::from(!sound),
        Err(error) => {
            eprintln!("{error}");
            1
        }
    }
}

/// A loaded pipeline, and what to say of it.
struct Opened {
    task: Task,
    pipeline: Box<dyn JsonPipeline>,
    about: String,
    hardware: Hardware,
    /// Why it runs there.
    reason: String,
    /// How often experts were selected.
    usage: ExpertUsage,
}

/// With what an assistant is loaded with too.
fn configured(mut loader: DynLoader, arguments: &Arguments) -> DynLoader {
    loader = loader.hardware(arguments.hardware).cache_quantized(arguments.cache);
    if let Some(precision) = arguments.precision {
        loader = loader.precision(precision);
    }
    if let Some(precision) = arguments.kv_cache {
        loader = loader.kv_cache(precision);
    }
    if let Some(threads) = arguments.threads {
        loader = loader.threads(threads);
    }
    loader
}

fn load(arguments: &Arguments, open: &dyn Fn(&str) -> Result<DynLoader>) -> Result<Opened> {
    let mut loader = configured(open(&arguments.checkpoint)?, arguments);
    for (module, precision) in &arguments.precision_of {
        loader = loader.precision_of(module, *precision);
    }
    for (path, scale) in &arguments.lora {
        loader = loader.lora(path, *scale);
    }
    if let Some(class) = &arguments.head {
        loader = loader.class(class);
    }
    let usage = ExpertUsage::default();
    if arguments.json {
        loader = loader.expert_usage(&usage);
    }
    let task = match arguments.task {
        Some(task) => task.meant_by(&loader.architecture().tasks()),
        None => with_labels(loader.task()?, !arguments.labels.is_empty()),
    };
    let start = Instant::now();
    let model = loader.load_for(task)?;
    // Why the other backends were passed over is what `weft info` and `--json` tell.
    let place = model.explanation().lines().next().unwrap_or_default();
    let about = format!("{} for {task}, loaded in {:.0} ms on {place}", model.class(), millis(start));
    let (hardware, reason) = (model.hardware(), model.explanation().to_owned());
    let mut pipeline = json_pipeline(task, model)?;
    if let Some(assistant) = &arguments.assistant {
        pipeline.set_assistant(configured(open(assistant)?, arguments).load_assistant(task)?)?;
    }
    if let Some(vocoder) = &arguments.vocoder {
        pipeline.set_vocoder(open(vocoder)?.hardware(arguments.hardware).load()?)?;
    }
    Ok(Opened { task, pipeline, about, hardware, reason, usage })
}

/// The task of a checkpoint where labels to choose from are given: classifiers of entailment are asked for these.
fn with_labels(task: Task, labels: bool) -> Task {
    match task {
        Task::TextClassification if labels => Task::ZeroShotClassification,
        other => other,
    }
}

/// Answers all inputs with what `open` finds; whether none failed. What was loaded goes to standard error.
///
/// # Errors
/// When there is no input, or the checkpoint cannot be loaded for the task.
pub fn run(
    arguments: &Arguments,
    open: impl Fn(&str) -> Result<DynLoader>,
    out: &mut dyn Write,
) -> Result<bool> {
    let terminal = std::io::stdin().is_terminal();
    if arguments.inputs.is_empty() && terminal {
        let help = "write it after the checkpoint, or one a line on standard input";
        return Err(Error::input("INPUT", "is missing", help));
    }
    let Opened { task, pipeline, about, hardware, reason, usage } = load(arguments, &open)?;
    eprintln!("{about}");
    let parameters = arguments.all_parameters();
    let mut all = vec![];
    let mut sound = true;
    let several = arguments.inputs.len() > 1;
    let mut one = |shown: &str, input: Json| {
        let start = Instant::now();
        if !arguments.json && several {
            print(out, shown);
        }
        let mut stream = Stream { out, prompt: input.as_str(), any: false };
        let answer = match arguments.json {
            true => pipeline.run_json(&input, &parameters),
            false => pipeline.run_streaming(&input, &parameters, &mut |piece| stream.write(piece)),
        };
        let any = stream.any;
        match answer {
            Ok(output) if arguments.json => {
                let place = json!({ "hardware": hardware, "reason": reason });
                let mut answer =
                    json!({ "input": input, "output": output, "ms": millis(start), "ran_on": place });
                let experts: Vec<Json> = usage.take().into_iter().map(selected).collect();
                if !experts.is_empty() {
                    answer["expert_usage"] = experts.into();
                }
                all.push(answer);
            }
            Ok(_) if any => print(out, ""),
            Ok(output) => print(out, &answers::show(&output)),
            Err(error) => {
                sound = false;
                eprintln!("{shown}: {error}");
            }
        }
    };
    for (shown, input) in inputs::of(task, &arguments.inputs, arguments)? {
        one(&shown, input);
    }
    if arguments.inputs.is_empty() {
        for line in std::io::stdin().lines().map_while(std::io::Result::ok).filter(|line| !line.is_empty()) {
            for (shown, input) in inputs::of(task, std::slice::from_ref(&line), arguments)? {
                one(&shown, input);
            }
        }
    }
    if arguments.json {
        let document = Json::Array(all);
        print(out, &serde_json::to_string_pretty(&document).unwrap_or_else(|_| document.to_string()));
    }
    Ok(sound)
}

/// How often each expert of a layer was selected.
fn selected((layer, counts): LayerUsage) -> Json {
    json!({ "layer": layer, "selected": counts })
}

/// Generated text, printed as it is streamed, after its prompt.
struct Stream<'a> {
    out: &'a mut dyn Write,
    prompt: Option<&'a str>,
    any: bool,
}

impl Stream<'_> {
    fn write(&mut self, piece: &str) -> ControlFlow<()> {
        let prompt = if self.any { "" } else { self.prompt.unwrap_or_default() };
        self.any = true;
        match write!(self.out, "{prompt}{piece}").and_then(|()| self.out.flush()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}

/// Standard output may be closed before all is said: `| head`.
fn print(out: &mut dyn Write, text: &str) {
    let _ = writeln!(out, "{}", text.trim_end());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_ask_a_classifier_of_entailment() {
        assert_eq!(with_labels(Task::TextClassification, true), Task::ZeroShotClassification);
        assert_eq!(with_labels(Task::TextClassification, false), Task::TextClassification);
        assert_eq!(with_labels(Task::ZeroShotImageClassification, true), Task::ZeroShotImageClassification);
    }
}
