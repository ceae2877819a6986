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

/// A table that remembers the whole row.
struct Remembering {
    table: Table,
    ids: Vec<i64>,
    runs: usize,
}

impl Remembering {
    fn new(table: Table) -> Self {
        Self { table, ids: vec![], runs: 0 }
    }
}

impl Decoder for Remembering {
    fn prefill(&mut self, prompt: &Prompt) -> Result<Array2<f32>> {
        self.ids = prompt.rows().concat();
        self.runs += 1;
        self.table.prefill(prompt)
    }

    fn decode(&mut self, ids: &[i64], _: Option<&[usize]>) -> Result<Array2<f32>> {
        self.decode_many(ids)
    }

    fn decode_many(&mut self, ids: &[i64]) -> Result<Array2<f32>> {
        self.runs += 1;
        let rows = ids.iter().map(|id| {
            self.ids.push(*id);
            self.table.prefill(&Prompt::new(std::slice::from_ref(&self.ids), None).unwrap()).unwrap()
        });
        let rows: Vec<_> = rows.collect();
        let views: Vec<_> = rows.iter().map(|row| row.view()).collect();
        Ok(ndarray::concatenate(ndarray::Axis(0), &views).unwrap())
    }

    fn crop(&mut self, count: usize) -> Result<()> {
        self.ids.truncate(self.ids.len() - count);
        Ok(())
    }
}

/// Runs of the target, and how candidates fared.
fn assisted(config: &GenerationConfig, assistant: Option<Table>) -> (usize, Option<Acceptance>) {
    let prompt = Prompt::new(&[vec![4, 5, 6, 4]], None).unwrap();
    let alone = GenerationConfig { prompt_lookup_num_tokens: None, ..config.clone() };
    let alone = Generation::new(&prompt, &alone).seed(Some(7)).run(&mut table()).unwrap();
    let mut target = Remembering::new(table());
    let mut generation = Generation::new(&prompt, config).seed(Some(7));
    if let Some(table) = assistant {
        generation = generation.candidates(Box::new(AssistantModel::new(Remembering::new(table), config)));
    }
    let mut told = vec![];
    let mut watch = |tokens: &[Option<i64>]| {
        told.extend(tokens.iter().copied().flatten());
        ControlFlow::Continue(())
    };
    let got = generation.run_watched(&mut target, &mut watch).unwrap();
    assert_eq!((&got.sequences, &got.ends, &got.stops), (&alone.sequences, &alone.ends, &alone.stops));
    assert_eq!(told, got.new_tokens(0));
    (target.runs, got.acceptance)
}

#[test]
fn assisted_decoding_gives_the_tokens_of_the_target_alone() {
    let greedy = |json: Json| GenerationConfig::from_json(&json).unwrap();
    let drawn =
        sampling(&json!({"max_new_tokens": 40, "temperature": 9.0, "assistant_confidence_threshold": 0}));
    let configs = [
        greedy(json!({"max_new_tokens": 40})),
        greedy(json!({"max_new_tokens": 40, "num_assistant_tokens": 3, "repetition_penalty": 1.3})),
        greedy(
            json!({"max_new_tokens": 40, "num_assistant_tokens_schedule": "heuristic", "no_repeat_ngram_size": 3}),
        ),
        greedy(
            json!({"max_new_tokens": 40, "eos_token_id": [0, 1, 2], "assistant_confidence_threshold": 0.0}),
        ),
        greedy(json!({"max_new_tokens": 2})),
        drawn,
    ];
    for config in &configs {
        // A model drafts well for itself, another one badly.
        let (runs, acceptance) = assisted(config, Some(table()));
        let Acceptance { drafted, accepted, .. } = acceptance.unwrap();
        assert_eq!(drafted, accepted, "{config:?}");
        assert!(runs <= 2 + drafted, "{runs} {acceptance:?}");
        assisted(config, Some(Table::new(17, 40.0)));
        assisted(config, Some(Table::new(17, -48.0)));
        assisted(&GenerationConfig { prompt_lookup_num_tokens: Some(4), ..config.clone() }, None);
    }
    let (runs, acceptance) = assisted(&configs[0], Some(table()));
    assert!(runs < 20 && acceptance.unwrap().accepted > 20, "{runs} {acceptance:?}");
    assert_eq!(assisted(&configs[0], None), (40, None));
}

#[test]
fn assisted_decoding_takes_one_text_and_no_beams() {
    let refused = |rows: &[Vec<i64>], json: Json| {
        let prompt = Prompt::new(rows, None).unwrap();
        let config = GenerationConfig::from_json(&json).unwrap();
        Generation::new(&prompt, &config).run(&mut Remembering::new(table())).unwrap_err().to_string()
    };
    let text = refused(&[vec![4, 5], vec![6, 7]], json!({"prompt_lookup_num_tokens": 3}));
    assert!(text.contains("batch_size"), "{text}");
    let text = refused(&[vec![4]], json!({"prompt_lookup_num_tokens": 3, "num_beams": 2}));
    assert!(text.contains("num_beams"), "{text}");
    let text = refused(
        &[vec![4]],
        json!({"prompt_lookup_num_tokens": 3, "num_return_sequences": 2, "do_sample": true}),
    );
    assert!(text.contains("num_return_sequences"), "{text}");
    let text = refused(&[vec![4]], json!({"num_assistant_tokens_schedule": "rising"}));
    assert!(text.contains("heuristic_transient"), "{text}");
    // A decoder that takes a token at a time.
    let assistant = AssistantModel::new(Remembering::new(table()), &GenerationConfig::default());
    let prompt = Prompt::new(&[vec![4, 5]], None).unwrap();
    let config = GenerationConfig::default();
    let text = Generation::new(&prompt, &config)
        .candidates(Box::new(assistant))
        .run(&mut table())
        .unwrap_err()
        .to_string();
    assert!(text.contains("takes some of them back"), "{text}");
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
