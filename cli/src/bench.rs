//! `weft bench`: how long a checkpoint takes to load and to answer.

use std::ops::ControlFlow;
use std::time::Instant;

use serde_json::{Value as Json, json};
use weft::tasks::json_pipeline;
use weft::{Result, Task};

use crate::options::{self, LoadOptions};
use crate::terminal::{bad_input, say, table};

/// Times loading and answering: the median of several runs, and tokens a second where text is generated.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// A folder, an id of the Hugging Face hub, or a GGUF file.
    checkpoint: String,
    /// What to answer; a text where not given, which tasks of images and audio do not take.
    #[arg(value_name = "INPUT")]
    input: Option<String>,
    /// What to do; what the checkpoint's class is for where not given.
    #[arg(long, value_name = "TASK", value_parser = options::task(), hide_possible_values = true)]
    task: Option<Task>,
    #[command(flatten)]
    load: LoadOptions,
    /// How often to answer, after once to warm up.
    #[arg(long, value_name = "N", default_value_t = 10)]
    runs: usize,
    /// Text generation: how many tokens to generate.
    #[arg(long, value_name = "N", default_value_t = 64)]
    tokens: usize,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// What is answered where nothing was given.
const TEXT: &str = "Weft weaves model architectures with hardware backends: a spec for each, a typed crate from it, and \
                    tests that prove it.";

/// Runs the verb.
pub fn run(args: &Args) -> Result<bool> {
    let loader = args.load.open(&args.checkpoint)?;
    let task = match args.task {
        Some(task) => task,
        None => loader.task()?,
    };
    let start = Instant::now();
    let model = loader.load_for(task)?;
    let (hardware, class) = (model.hardware(), model.class());
    let load_ms = millis(start);
    let pipeline = json_pipeline(task, model)?;
    let (input, parameters) = call(task, args)?;
    let (mut times, mut firsts) = (vec![], vec![]);
    for run in 0..=args.runs {
        let start = Instant::now();
        let mut first = None;
        let mut on_text = |_: &str| {
            first.get_or_insert_with(|| millis(start));
            ControlFlow::Continue(())
        };
        pipeline.run_streaming(&input, &parameters, &mut on_text)?;
        if run > 0 {
            times.push(millis(start));
            firsts.extend(first);
        }
    }
    let (median, least) = (middle(&mut times), times.first().copied().unwrap_or_default());
    let generates = parameters["max_new_tokens"].is_number();
    let rate = generates.then(|| args.tokens as f64 / median * 1e3);
    let first = (!firsts.is_empty()).then(|| middle(&mut firsts));
    if args.json {
        let report = json!({ "class": class, "task": task.name(), "hardware": hardware, "load_ms": load_ms,
                             "median_ms": median, "least_ms": least, "runs": args.runs,
                             "first_text_ms": first, "tokens_per_second": rate });
        say(format!("{report:#}"));
        return Ok(true);
    }
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let mut rows = vec![
        row("class", format!("{class} for {task} on {hardware}")),
        row("load", format!("{load_ms:.1} ms")),
        row("answer", format!("{median:.2} ms, the median of {}; {least:.2} ms the least", args.runs)),
    ];
    rows.extend(first.map(|first| row("first text", format!("{first:.1} ms"))));
    rows.extend(rate.map(|rate| row("rate", format!("{rate:.1} tokens/s, prompt included"))));
    say(table(&rows));
    Ok(true)
}

/// The input and the parameters of a run.
fn call(task: Task, args: &Args) -> Result<(Json, Json)> {
    let given = args.input.as_deref();
    let none = Json::Null;
    let text = Json::from(given.unwrap_or(TEXT));
    Ok(match task {
        Task::FeatureExtraction
        | Task::SentenceEmbedding
        | Task::TextClassification
        | Task::TokenClassification => (text, none),
        Task::FillMask => {
            let help =
                "give a text with the checkpoint's mask token: `weft bench CHECKPOINT \"A [MASK] thread.\"`";
            (given.ok_or_else(|| bad_input("INPUT", "is missing", help))?.into(), none)
        }
        Task::TextGeneration => (
            text,
            json!({ "max_new_tokens": args.tokens, "min_new_tokens": args.tokens, "do_sample": false }),
        ),
        Task::Text2TextGeneration | Task::Summarization | Task::Translation => {
            (text, json!({ "max_new_tokens": args.tokens, "min_new_tokens": args.tokens }))
        }
        Task::QuestionAnswering => (json!({ "question": "What does it weave?", "context": text }), none),
        Task::ZeroShotClassification => (text, json!({ "candidate_labels": ["cloth", "code"] })),
        Task::ZeroShotImageClassification
        | Task::ZeroShotObjectDetection
        | Task::ZeroShotObjectTracking
        | Task::ZeroShotVideoClassification
        | Task::ZeroShotAudioClassification => {
            (file(given)?, json!({ "candidate_labels": ["cloth", "code"] }))
        }
        // Images, audio, video and series are the caller's own.
        _ => (file(given)?, none),
    })
}

fn file(given: Option<&str>) -> Result<Json> {
    let help = "give the path of an image, audio or video file: `weft bench CHECKPOINT FILE`";
    let given = given.ok_or_else(|| bad_input("INPUT", "is missing", help))?;
    let json = given.starts_with(['{', '[']).then(|| serde_json::from_str(given).ok()).flatten();
    Ok(json.unwrap_or_else(|| given.into()))
}

fn millis(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

/// The median; sorts the times.
fn middle(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(middle(&mut [9.0, 1.0, 5.0]), 5.0);
        assert_eq!(middle(&mut []), 0.0);
    }
}
