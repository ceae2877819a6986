//! An index on disk with vectors made by hand: what it finds, what it keeps, and what it refuses.

use std::cell::Cell;
use std::path::Path;

use ndarray::Array2;
use weft_retrieval::{Embed, Error, Generate, Index, Passage, Progress, Rag, Splitting};

/// Counts letters: texts of the same words are alike.
struct Letters {
    name: &'static str,
    calls: Cell<usize>,
}

impl Letters {
    fn new() -> Self {
        Self { name: "letters", calls: Cell::new(0) }
    }
}

impl Embed for Letters {
    fn embed(&self, texts: &[&str]) -> weft::Result<Array2<f32>> {
        self.calls.set(self.calls.get() + texts.len());
        let mut vectors = Array2::zeros((texts.len(), 26));
        for (row, text) in texts.iter().enumerate() {
            for letter in text.bytes().filter(u8::is_ascii_alphabetic) {
                vectors[[row, usize::from(letter.to_ascii_lowercase() - b'a')]] += 1.0;
            }
        }
        Ok(vectors)
    }

    fn name(&self) -> String {
        self.name.to_owned()
    }
}

/// Answers with its own prompt.
struct Echo;

impl Generate for Echo {
    fn generate(&self, prompt: &str) -> weft::Result<String> {
        Ok(format!(" {prompt}\n"))
    }
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(path, text).expect("a file");
}

fn update(index: &mut Index, folder: &Path, model: &Letters) -> weft_retrieval::Updated {
    index.update(folder, model, &Splitting { words: 6, overlap: 0 }, &mut |_| {}).expect("an update")
}

#[test]
fn a_folder_is_indexed_found_in_and_brought_up_to_date() {
    let scratch = tempfile::tempdir().unwrap();
    let (folder, model) = (scratch.path().join("texts"), Letters::new());
    write(&folder, "zoo/bears.txt", "Bears sleep in winter.\n\nZebras quiz zoologists.");
    write(&folder, "weave.md", "The weft crosses the warp.");
    write(&folder, "picture.png", "no text");
    std::fs::write(folder.join("bytes.txt"), [0xff, 0xfe, 0x00]).unwrap();
    let mut index = Index::create(&scratch.path().join("index"), &model).unwrap();
    let mut seen = vec![];
    let first = index
        .update(&folder, &model, &Splitting { words: 6, overlap: 0 }, &mut |progress| seen.push(progress))
        .unwrap();
    assert_eq!((first.read, first.passages, first.removed), (2, 3, 0));
    assert_eq!(first.skipped, ["bytes.txt", "picture.png"]);
    assert_eq!(seen, [Progress::Embedded(0, 3), Progress::Embedded(3, 3), Progress::Building]);
    let ask = |index: &Index, question: &str| {
        let vector = model.embed(&[question]).unwrap();
        index.search(&vector.row(0).to_vec(), 2).unwrap()
    };
    let found = ask(&index, "zebras quiz zoologists");
    assert_eq!(found[0].passage.text, "Zebras quiz zoologists.");
    assert_eq!((found[0].passage.source.as_str(), found[0].passage.start), ("zoo/bears.txt", 24));
    assert!((found[0].score - 1.0).abs() < 1e-5 && found[1].score < 0.9, "{found:?}");

    // What is as it was is not embedded again; what changed or is gone is not found any more.
    let calls = model.calls.get();
    assert_eq!(update(&mut index, &folder, &model).unchanged, 2);
    assert_eq!(model.calls.get(), calls);
    write(&folder, "zoo/bears.txt", "Bears hum.");
    std::fs::remove_file(folder.join("weave.md")).unwrap();
    let second = update(&mut index, &folder, &model);
    assert_eq!((second.read, second.removed, second.passages, second.unchanged), (1, 1, 1, 0));
    assert_eq!(index.len().unwrap(), 1);
    assert_eq!(ask(&index, "zebras quiz zoologists")[0].passage.text, "Bears hum.");

    // It is there when it is opened again, by the same model alone.
    drop(index);
    let index = Index::open(&scratch.path().join("index")).unwrap();
    assert_eq!((index.len().unwrap(), index.about().dimension), (1, 26));
    let other = Letters { name: "others", calls: Cell::new(0) };
    let refused = index.of(&other).unwrap_err().to_string();
    assert!(refused.contains("are of letters") && refused.contains("of others"), "{refused}");
}

#[test]
fn the_graph_finds_what_comparing_with_all_finds() {
    let scratch = tempfile::tempdir().unwrap();
    let mut index = Index::create(scratch.path(), &Letters::new()).unwrap();
    // A generator of Knuth's: vectors without any structure are the hardest.
    let mut state = 1_u64;
    let mut number = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / 2_f32.powi(23) - 1.0
    };
    let vectors = Array2::from_shape_fn((1000, 26), |_| number());
    let passages: Vec<_> =
        (0..1000).map(|at| Passage { source: format!("{at}"), start: 0, text: "x".repeat(at % 7) }).collect();
    index.add(&passages, &vectors.view()).unwrap();
    let (mut found, mut wanted) = (0, 0);
    for _ in 0..20 {
        let query: Vec<f32> = (0..26).map(|_| number()).collect();
        let exact = index.search_exactly(&query, 10).unwrap();
        assert!(exact.windows(2).all(|pair| pair[0].score >= pair[1].score));
        let near = index.search(&query, 10).unwrap();
        wanted += exact.len();
        found += exact.iter().filter(|one| near.iter().any(|other| other.passage == one.passage)).count();
    }
    assert!(found * 100 >= wanted * 97, "{found} of {wanted}");
}

#[test]
fn answers_carry_their_sources() {
    let scratch = tempfile::tempdir().unwrap();
    let (folder, model) = (scratch.path().join("texts"), Letters::new());
    write(&folder, "a.txt", "The weft crosses the warp.");
    write(&folder, "b.txt", "Bears sleep {question}.");
    let mut index = Index::create(&scratch.path().join("index"), &model).unwrap();
    update(&mut index, &folder, &model);
    let rag = Rag::new(&index, &model, &Echo).passages(1);
    let answer = rag.run("What crosses the warp, the weft?").unwrap();
    assert_eq!(answer.sources.len(), 1);
    assert_eq!(answer.sources[0].passage.source, "a.txt");
    assert!(answer.answer.contains("[1] (a.txt) The weft crosses the warp."), "{}", answer.answer);
    assert!(
        answer.answer.ends_with("Question: What crosses the warp, the weft?\nAnswer:"),
        "{}",
        answer.answer
    );
    // What stands in a passage is no part of the template.
    let rag = Rag::new(&index, &model, &Echo).template("{passages}|{question}").unwrap();
    assert!(rag.run("bears").unwrap().answer.contains("sleep {question}.\n"));
    let refused = Rag::new(&index, &model, &Echo).template("{question}").err().unwrap().to_string();
    assert!(refused.contains("{passages}"), "{refused}");
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let missing = Index::open(scratch.path()).unwrap_err().to_string();
    assert!(missing.contains("there is no index") && missing.contains("help:"), "{missing}");
    let mut index = Index::create(scratch.path(), &Letters::new()).unwrap();
    assert!(index.search(&[1.0; 26], 3).unwrap().is_empty());
    let passage = Passage { source: "a".into(), start: 0, text: "a".into() };
    let wrong = index.add(std::slice::from_ref(&passage), &Array2::zeros((1, 3)).view()).unwrap_err();
    assert!(wrong.to_string().contains("3 numbers, and those of the index 26"), "{wrong}");
    let fewer = index.add(std::slice::from_ref(&passage), &Array2::zeros((2, 26)).view()).unwrap_err();
    assert!(fewer.to_string().contains("1 passages have 2 vectors"), "{fewer}");
    let mut vectors = Array2::from_elem((2, 26), 1.0);
    vectors[[1, 4]] = f32::NAN;
    let spoilt = index.add(&[passage.clone(), passage], &vectors.view()).unwrap_err();
    assert!(spoilt.to_string().contains("not finite"), "{spoilt}");
    assert!(index.is_empty().unwrap());
    assert!(matches!(index.search(&[1.0], 1), Err(Error::Index { .. })));

    std::fs::write(scratch.path().join("data.mdb"), b"not a database").unwrap();
    drop(index);
    assert!(Index::open(scratch.path()).is_err());
}
