//! Against the goldens in `tests/goldens/generation`, and what has no counterpart in the reference.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ndarray::Array2;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use super::processors::processors;
use super::*;
use crate::hub::Checkpoint;
use crate::text::Tokenizer;
use crate::weights::rule;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/goldens/generation")
}

fn golden<T: DeserializeOwned>(name: &str) -> T {
    serde_json::from_slice(&std::fs::read(folder().join(name)).unwrap()).unwrap()
}

fn matrix(rows: &[Vec<i64>]) -> Array2<i64> {
    Array2::from_shape_vec((rows.len(), rows[0].len()), rows.concat()).unwrap()
}

fn number(value: &Json) -> f32 {
    value.as_f64().map_or_else(|| value.as_str().unwrap().parse().unwrap(), |number| number as f32)
}

#[derive(Deserialize)]
struct Processing {
    cases: Vec<ProcessingCase>,
}

#[derive(Deserialize)]
struct ProcessingCase {
    config: Json,
    prompt: Vec<Vec<i64>>,
    mask: Vec<Vec<i64>>,
    encoder: Vec<Vec<i64>>,
    ids: Vec<Vec<i64>>,
    scores: Vec<Vec<Json>>,
    want: Vec<Vec<Json>>,
}

#[test]
fn processors_give_the_references_scores() {
    let golden: Processing = golden("processors.json");
    assert!(golden.cases.len() > 100);
    for case in golden.cases {
        let config = GenerationConfig::from_json(&case.config).unwrap();
        let prompt = Prompt {
            input_ids: matrix(&case.prompt),
            attention_mask: matrix(&case.mask),
            encoder_input_ids: Some(matrix(&case.encoder)),
        };
        let lengths = config.lengths(prompt.length(), None).unwrap();
        let list = processors(&config, &prompt, lengths, vec![]).unwrap();
        for (r, (given, want)) in case.scores.iter().zip(&case.want).enumerate() {
            let mut scores: Vec<f32> = given.iter().map(number).collect();
            let prompt = r / config.num_beams();
            for processor in &list {
                processor.process(Row { prompt, ids: &case.ids[prompt] }, &mut scores);
            }
            for (token, (got, want)) in scores.iter().zip(want).enumerate() {
                let want = number(want);
                let same = *got == want || (got - want).abs() <= 2e-6 * want.abs().max(1.0);
                assert!(same, "{} row {r} token {token}: {got}, not {want}", case.config);
            }
        }
    }
}

/// The golden's model: a table by the weight rule.
struct Table {
    vocab: usize,
    scores: Vec<f32>,
    before: Vec<(i64, i64)>,
}

impl Table {
    fn new(vocab: usize, scale: f32) -> Self {
        let scores =
            rule::generate("scores", &[vocab, vocab, vocab]).iter().map(|score| score * scale).collect();
        Self { vocab, scores, before: vec![] }
    }

    fn scores(&self) -> Array2<f32> {
        let rows = self.before.iter().flat_map(|(a, b)| {
            let start = (*a as usize * self.vocab + *b as usize) * self.vocab;
            self.scores[start..start + self.vocab].to_vec()
        });
        Array2::from_shape_vec((self.before.len(), self.vocab), rows.collect()).unwrap()
    }
}

impl Decoder for Table {
    fn prefill(&mut self, prompt: &Prompt) -> Result<Array2<f32>> {
        let last = |row: Vec<i64>| (row[row.len().saturating_sub(2)], row[row.len() - 1]);
        self.before = prompt.rows().into_iter().map(last).collect();
        Ok(self.scores())
    }

    fn decode(&mut self, ids: &[i64], beam_idx: Option<&[usize]>) -> Result<Array2<f32>> {
        if let Some(beam_idx) = beam_idx {
            self.before = beam_idx.iter().map(|parent| self.before[*parent]).collect();
        }
        assert_eq!(ids.len(), self.before.len());
        self.before.iter_mut().zip(ids).for_each(|(before, id)| *before = (before.1, *id));
        Ok(self.scores())
    }
}

#[derive(Deserialize)]
struct Searches {
    vocab_size: usize,
    scale: f32,
    cases: Vec<SearchCase>,
}

#[derive(Deserialize)]
struct SearchCase {
    config: Json,
    prompt: Vec<Vec<i64>>,
    mask: Vec<Vec<i64>>,
    sequences: Vec<Vec<i64>>,
    scores: Option<Vec<f32>>,
}

#[test]
fn searches_give_the_references_tokens() {
    let golden: Searches = golden("searches.json");
    assert!(golden.cases.len() > 70);
    let mut table = Table::new(golden.vocab_size, golden.scale);
    for case in golden.cases {
        let config = GenerationConfig::from_json(&case.config).unwrap();
        let prompt = Prompt {
            input_ids: matrix(&case.prompt),
            attention_mask: matrix(&case.mask),
            encoder_input_ids: None,
        };
        let got = Generation::new(&prompt, &config).run(&mut table).unwrap();
        assert_eq!(got.sequences, case.sequences, "{} after {:?}", case.config, case.prompt);
        for (got, want) in got.scores.iter().flatten().zip(case.scores.iter().flatten()) {
            assert!((got - want).abs() <= 1e-5 * want.abs().max(1.0), "{}: {got}, not {want}", case.config);
        }
        assert_eq!(got.scores.is_some(), case.scores.is_some());
    }
}

fn table() -> Table {
    Table::new(17, 48.0)
}

fn sampling(json: &Json) -> GenerationConfig {
    let own = GenerationConfig { do_sample: Some(true), top_k: Some(0), ..Default::default() };
    GenerationConfig::from_json(json).unwrap().or(own)
}

#[test]
fn seeds_reproduce_draws_whatever_stands_beside_a_row() {
    let config = sampling(&json!({"max_new_tokens": 30, "temperature": 2.0}));
    let run = |rows: &[Vec<i64>], seed| {
        let prompt = Prompt::new(rows, None).unwrap();
        let generated = Generation::new(&prompt, &config).seed(Some(seed)).run(&mut table()).unwrap();
        generated.new_tokens(0).to_vec()
    };
    let alone = run(&[vec![4, 5]], 1);
    assert_eq!(run(&[vec![4, 5], vec![6, 7]], 1), alone);
    assert_ne!(run(&[vec![4, 5]], 2), alone);
    assert!(alone.len() == 30);
}

#[test]
fn several_answers_to_one_prompt_differ() {
    let config = sampling(&json!({"max_new_tokens": 12, "num_return_sequences": 3, "temperature": 3.0}));
    let prompt = Prompt::new(&[vec![4, 5], vec![6, 7]], None).unwrap();
    let generated = Generation::new(&prompt, &config).seed(Some(3)).run(&mut table()).unwrap();
    assert_eq!(generated.sequences.len(), 6);
    assert_ne!(generated.new_tokens(0), generated.new_tokens(1));
    assert!(generated.sequences[..3].iter().all(|row| row.starts_with(&[4, 5])));
    let beams = sampling(&json!({"max_new_tokens": 6, "num_beams": 3, "num_return_sequences": 3}));
    let run = || Generation::new(&prompt, &beams).seed(Some(3)).run(&mut table()).unwrap();
    assert_eq!(run(), run());
}

#[test]
fn a_watcher_sees_every_token_and_may_end_it() {
    let prompt = Prompt::new(&[vec![4, 5], vec![6, 7]], None).unwrap();
    let config = GenerationConfig { max_new_tokens: Some(9), ..Default::default() };
    let mut seen = vec![];
    let mut watch = |tokens: &[Option<i64>]| {
        seen.push(tokens[0].unwrap());
        if seen.len() == 4 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let generated = Generation::new(&prompt, &config).run_watched(&mut table(), &mut watch).unwrap();
    assert_eq!(generated.new_tokens(0), seen);
    assert_eq!(generated.stops, [Stop::Cancelled; 2]);
    let beams = GenerationConfig { num_beams: Some(2), ..config };
    let mut steps = 0;
    let mut watch = |_: &[Option<i64>]| {
        steps += 1;
        if steps == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let generated = Generation::new(&prompt, &beams).run_watched(&mut table(), &mut watch).unwrap();
    assert_eq!(generated.new_tokens(1).len(), 3);
}

#[test]
fn time_ends_generating() {
    let prompt = Prompt::new(&[vec![4, 5]], None).unwrap();
    let config = GenerationConfig { max_new_tokens: Some(9), max_time: Some(0.0), ..Default::default() };
    let generated = Generation::new(&prompt, &config).run(&mut table()).unwrap();
    assert_eq!((generated.new_tokens(0).len(), generated.stops[0]), (1, Stop::Time));
}

#[test]
fn nothing_possible_is_an_error() {
    let prompt = Prompt::new(&[vec![4, 5]], None).unwrap();
    let config = sampling(&json!({"suppress_tokens": (0..17).collect::<Vec<_>>()}));
    let text = Generation::new(&prompt, &config).run(&mut table()).unwrap_err().to_string();
    assert!(text.contains("no token is possible"), "{text}");
}

#[derive(Deserialize)]
struct Texts {
    cases: Vec<TextCase>,
}

#[derive(Deserialize)]
struct TextCase {
    tokenizer: String,
    ids: Vec<i64>,
    text: String,
    stops: BTreeMap<String, Vec<usize>>,
}

fn tokenizer(name: &str) -> Tokenizer {
    let folder = folder().join(name);
    Tokenizer::from_checkpoint(&Checkpoint::open(folder.to_str().unwrap()).unwrap()).unwrap()
}

#[test]
fn stop_strings_end_texts_where_the_reference_ends_them() {
    let golden: Texts = golden("stops.json");
    let mut found = 0;
    for case in golden.cases {
        let tokenizer = tokenizer(&case.tokenizer);
        for (stop, ends) in case.stops {
            let config = GenerationConfig { stop_strings: Some(vec![stop.clone()]), ..Default::default() };
            let mut stopping = Stopping::new(&config, usize::MAX, Some(&tokenizer)).unwrap();
            let got: Vec<usize> = (1..=case.ids.len())
                .filter(|end| stopping.check(&case.ids[..*end]).unwrap() == Some(Stop::Text))
                .collect();
            assert_eq!(got, ends, "{} `{stop}` in {:?}", case.tokenizer, case.text);
            found += got.len();
        }
    }
    assert!(found > 20);
}

#[test]
fn streams_give_whole_characters_and_the_whole_text() {
    let golden: Texts = golden("stops.json");
    for case in golden.cases {
        let tokenizer = tokenizer(&case.tokenizer);
        let mut stream = TextStream::new(&tokenizer, true);
        let mut pieces: Vec<String> = case.ids.iter().map(|id| stream.push(*id).unwrap()).collect();
        pieces.push(stream.finish().unwrap());
        assert!(pieces.iter().all(|piece| !piece.contains(char::REPLACEMENT_CHARACTER)), "{pieces:?}");
        assert_eq!(pieces.concat(), case.text, "{}", case.tokenizer);
        if case.text.contains("weaver") {
            assert!(pieces.iter().filter(|piece| !piece.is_empty()).count() > 8, "{pieces:?}");
        }
    }
}

#[test]
fn half_a_character_at_the_end_is_given_as_the_tokenizer_decodes_it() {
    let tokenizer = tokenizer("byte-level");
    let ids = tokenizer.encode(&["a😀".into()], &Default::default()).unwrap()[0].ids.clone();
    let mut stream = TextStream::new(&tokenizer, true);
    let mut text = String::new();
    for id in &ids[..ids.len() - 1] {
        text += &stream.push(*id).unwrap();
    }
    assert_eq!(text, "a");
    text += &stream.finish().unwrap();
    assert_eq!(text, tokenizer.decode(&ids[..ids.len() - 1], true).unwrap());
}
