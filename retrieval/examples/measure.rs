//! Measures an index: `measure FOLDER --index INDEX` embeds a folder's text files with a BERT (all-MiniLM-L6-v2), and prints
//! how long that and the linking took, how long questions take, and how many of the nearest passages a search finds.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Parser;
use serde_json::{Value, json};
use walkdir::WalkDir;
use weft_retrieval::{Embed, Found, Index, Progress, Splitting};

/// Measure an index of a folder's text files: time to build it, time of a query, memory, recall
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
    /// Words of a passage at most
    #[arg(long, default_value_t = Splitting::default().words)]
    words: usize,
    /// Questions to ask; each is the first twelve words of a passage
    #[arg(long, default_value_t = 200)]
    questions: usize,
    /// Passages to find for each
    #[arg(long, default_value_t = 10)]
    passages: usize,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let embedding = weft_bert::tasks::SentenceEmbedding::open(&args.embedding)?.load()?;
    let splitting = Splitting { words: args.words, overlap: args.words / 6 };
    let built = build(&args, &embedding, &splitting)?;
    let index = Index::open(&args.index)?;
    let asked = questions(&args, &splitting, index.len()? as usize)?;
    let (mut embedded, mut searched, mut compared) = (vec![], vec![], vec![]);
    let mut recalled = 0;
    for question in &asked {
        let began = Instant::now();
        let vector = embedding.embed_queries(&[question])?.row(0).to_vec();
        embedded.push(began.elapsed());
        let began = Instant::now();
        let found = index.search(&vector, args.passages)?;
        searched.push(began.elapsed());
        let began = Instant::now();
        let nearest = index.search_exactly(&vector, args.passages)?;
        compared.push(began.elapsed());
        let place = |found: &Found| (found.passage.source.clone(), found.passage.start);
        recalled += nearest.iter().filter(|one| found.iter().any(|other| place(other) == place(one))).count();
    }
    let measured = json!({
        "passages": index.len()?,
        "dimension": index.about().dimension,
        "built": built,
        "index_mb": bytes(&args.index) / 1_000_000,
        "questions": asked.len(),
        "embed_query_ms": spread(embedded),
        "search_ms": spread(searched),
        "search_exactly_ms": spread(compared),
        "recall": recalled as f64 / (asked.len() * args.passages) as f64,
        "memory_kb": memory(),
    });
    println!("{}", serde_json::to_string_pretty(&measured)?);
    Ok(())
}

fn build(args: &Args, embedding: &dyn Embed, splitting: &Splitting) -> Result<Value> {
    let mut index = Index::create(&args.index, embedding)?;
    let began = Instant::now();
    let mut embedded = Duration::ZERO;
    let mut said = Instant::now();
    let updated = index.update(&args.folder, embedding, splitting, &mut |progress| match progress {
        Progress::Embedded(done, all) => {
            embedded = began.elapsed();
            if said.elapsed() > Duration::from_secs(10) {
                eprintln!("embedded {done} of {all} after {:.0} s", embedded.as_secs_f64());
                said = Instant::now();
            }
        }
        Progress::Building => eprintln!("linking"),
    })?;
    let linking = began.elapsed().saturating_sub(embedded);
    Ok(json!({
        "skipped_files": updated.skipped.len(),
        "embedding_s": embedded.as_secs_f64(),
        "linking_s": linking.as_secs_f64(),
        "memory_kb": memory(),
    }))
}

/// The beginnings of passages, evenly over all files.
fn questions(args: &Args, splitting: &Splitting, passages: usize) -> Result<Vec<String>> {
    let step = (passages / args.questions.max(1)).max(1);
    let mut asked = vec![];
    let mut count = 0;
    let files = WalkDir::new(&args.folder).sort_by_file_name().into_iter();
    for file in files.filter_map(Result::ok).filter(|entry| entry.file_type().is_file()) {
        let Ok(text) = fs::read_to_string(file.path()) else { continue };
        for passage in splitting.passages("", &text) {
            if count % step == 0 && asked.len() < args.questions {
                asked.push(passage.text.split_whitespace().take(12).collect::<Vec<_>>().join(" "));
            }
            count += 1;
        }
    }
    if asked.is_empty() {
        bail!("{} has no text to ask about", args.folder.display());
    }
    Ok(asked)
}

/// The median and what nineteen of twenty are below, in milliseconds.
fn spread(mut times: Vec<Duration>) -> Value {
    times.sort();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1e3;
    json!({"median": at(50), "p95": at(95)})
}

fn bytes(folder: &Path) -> u64 {
    let files = WalkDir::new(folder).into_iter().filter_map(Result::ok);
    files.filter_map(|entry| entry.metadata().ok()).filter(fs::Metadata::is_file).map(|file| file.len()).sum()
}

/// Private and mapped memory now, in kilobytes, where the system says (Linux).
fn memory() -> Value {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().trim_end_matches(" kB").parse::<u64>().ok()
    };
    json!({"private": kilobytes("RssAnon:"), "mapped": kilobytes("RssFile:")})
}
