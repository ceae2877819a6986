//! What is made ready when a checkpoint opens: what its task runs, and no graph beside.

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use weft::tasks::TextGeneration;
use weft::{Architecture, Hardware};
use weft_gemma4_text::{Head, Model};

/// The operator of a decoder's graph with a cache.
const CACHED: &str = "weft.CachedAttention";

const THERE: &str = "the goldens are there, and a folder can be written";

/// A checkpoint with a tokenizer.
fn checkpoint() -> TempDir {
    let goldens = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens");
    let folder = tempfile::tempdir().expect(THERE);
    for file in [
        "generation/drafted/gemma4/target/config.json",
        "generation/drafted/gemma4/target/model.safetensors",
        "dots1/tasks/text-generation/tokenizer.json",
    ] {
        let name = Path::new(file).file_name().expect(THERE);
        fs::copy(goldens.join(file), folder.path().join(name)).expect(THERE);
    }
    folder
}

#[test]
fn text_is_generated_without_the_graph_that_has_no_cache() {
    let folder = checkpoint();
    let path = folder.path().to_str().unwrap();
    let generator = TextGeneration::<Model>::open(path).unwrap().hardware(Hardware::Cpu).load().unwrap();
    let ready = generator.model().session();
    assert!(ready.operators().contains_key(CACHED), "{:?}", ready.operators());

    // By itself a class runs the reference's `forward`, whose inputs are those that a pipeline's model has too.
    let model = Model::open(path).unwrap().head(Head::ForCausalLM).hardware(Hardware::Cpu).load().unwrap();
    assert!(!model.session().operators().contains_key(CACHED), "{:?}", model.session().operators());
    let names = |model: &Model| -> Vec<String> {
        model.session().inputs().iter().map(|input| input.name.clone()).collect()
    };
    assert_eq!(names(generator.model()), names(&model));
}
