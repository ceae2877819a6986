//! Answers a question from a folder of text files: `ask FOLDER QUESTION --index INDEX --generator CHECKPOINT`, with a BERT
//! that embeds (all-MiniLM-L6-v2) and a Llama that writes.

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use weft_retrieval::{Index, Progress, Rag, Splitting};

/// Bring an index of a folder's text files up to date, find passages for a question and answer it
#[derive(Parser)]
struct Args {
    /// Folder of text files
    folder: PathBuf,
    /// Folder of the index, which is made where there is none
    #[arg(long)]
    index: PathBuf,
    /// Checkpoint of BERT's architecture that embeds: a folder or a hub id
    #[arg(long, default_value = "sentence-transformers/all-MiniLM-L6-v2")]
    embedding: String,
    /// Checkpoint of Llama's architecture that writes the answer; passages alone are shown without one
    #[arg(long)]
    generator: Option<String>,
    /// How many passages to find
    #[arg(long, default_value_t = 4)]
    passages: usize,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    question: String,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let embedding = weft_bert::tasks::SentenceEmbedding::open(&args.embedding)?.load()?;
    let mut index = Index::create(&args.index, &embedding)?;
    let bar =
        ProgressBar::new(0).with_style(ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} {eta}")?);
    let updated =
        index.update(&args.folder, &embedding, &Splitting::default(), &mut |progress| match progress {
            Progress::Embedded(done, all) => {
                bar.set_message("embedding");
                bar.set_length(all as u64);
                bar.set_position(done as u64);
            }
            Progress::Building => bar.set_message("linking"),
        })?;
    bar.finish_and_clear();
    if !args.json && !updated.skipped.is_empty() {
        eprintln!("{} files are no texts", updated.skipped.len());
    }
    let answer = match &args.generator {
        Some(checkpoint) => {
            let generator = weft_llama::tasks::TextGeneration::open(checkpoint)?.load()?;
            Rag::new(&index, &embedding, &generator).passages(args.passages).run(&args.question)?
        }
        None => {
            let vector = weft_retrieval::Embed::embed_queries(&embedding, &[&args.question])?;
            let sources = index.search(&vector.row(0).to_vec(), args.passages)?;
            weft_retrieval::Answer { answer: String::new(), sources }
        }
    };
    if args.json {
        println!("{}", serde_json::to_string_pretty(&answer)?);
        return Ok(());
    }
    if !answer.answer.is_empty() {
        println!("{}\n", answer.answer);
    }
    for source in &answer.sources {
        println!("{:.3}  {} at byte {}", source.score, source.passage.source, source.passage.start);
    }
    Ok(())
}
