//! Assisted decoding by two models in one run: Gemma 4 with a drafter that reads its keys, values and hidden states, against the
//! reference's tokens and first draft; and with a smaller model of the same tokens.

use std::path::Path;
use std::sync::{Arc, Mutex};

use serde::Deserialize;
use weft::generation::{
    AssistantModel, CandidateGenerator, Decoder, Generation, GenerationConfig, ModelDecoder,
    MultiTokenAssistant, NextToken, Prompt,
};
use weft::{AnyModel, Hardware, Result};

#[derive(Deserialize)]
struct Golden {
    new_tokens: usize,
    drafted: usize,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    prompt: Vec<i64>,
    sequence: Vec<i64>,
    first_draft: Vec<i64>,
}

fn folder(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/generation/drafted").join(name).display().to_string()
}

fn golden() -> Golden {
    serde_json::from_slice(&std::fs::read(folder("cases.json")).unwrap()).unwrap()
}

fn target() -> impl AnyModel {
    let loader = weft_gemma4_text::Model::open(&folder("target")).unwrap();
    loader.head(weft_gemma4_text::Head::ForCausalLM).hardware(Hardware::Cpu).threads(1).load().unwrap()
}

fn drafter() -> impl AnyModel {
    let loader = weft_gemma4_assistant::Model::open(&folder("assistant")).unwrap();
    loader.hardware(Hardware::Cpu).threads(1).load().unwrap()
}

/// Notes what another proposes.
struct Noting<G> {
    inner: G,
    drafts: Arc<Mutex<Vec<Vec<i64>>>>,
}

impl<G: CandidateGenerator> CandidateGenerator for Noting<G> {
    fn candidates(
        &mut self,
        ids: &[i64],
        most: usize,
        target: &mut dyn Decoder,
        next: &NextToken<'_>,
    ) -> Result<Vec<i64>> {
        let candidates = self.inner.candidates(ids, most, target, next)?;
        self.drafts.lock().unwrap().push(candidates.clone());
        Ok(candidates)
    }

    fn update(&mut self, accepted: usize) {
        self.inner.update(accepted);
    }
}

#[test]
fn a_drafter_that_reads_the_target_drafts_as_the_reference_and_changes_no_token() {
    let (golden, target, drafter) = (golden(), target(), drafter());
    let config = GenerationConfig {
        max_new_tokens: Some(golden.new_tokens),
        num_assistant_tokens: Some(golden.drafted),
        eos_token_id: Some(vec![]),
        ..Default::default()
    };
    for case in &golden.cases {
        let prompt = Prompt::new(std::slice::from_ref(&case.prompt), None).unwrap();
        let alone = Generation::new(&prompt, &config).run(&mut ModelDecoder::new(&target).unwrap()).unwrap();
        assert_eq!(alone.sequences[0], case.sequence);

        let drafts = Arc::new(Mutex::new(vec![]));
        let inner = MultiTokenAssistant::new(&drafter, &target, &config).unwrap();
        let generator = Noting { inner, drafts: Arc::clone(&drafts) };
        let assisted = Generation::new(&prompt, &config)
            .candidates(Box::new(generator))
            .run(&mut ModelDecoder::new(&target).unwrap())
            .unwrap();
        assert_eq!(assisted.sequences[0], case.sequence);
        assert_eq!(drafts.lock().unwrap()[0], case.first_draft);
        let drafted: usize = drafts.lock().unwrap().iter().map(Vec::len).sum();
        assert_eq!(assisted.acceptance.unwrap().drafted, drafted);
    }
}

#[test]
fn a_smaller_model_changes_no_token_drawn_or_not() {
    let (golden, target, itself) = (golden(), target(), target());
    let greedy = GenerationConfig {
        max_new_tokens: Some(golden.new_tokens),
        assistant_confidence_threshold: Some(0.0),
        num_assistant_tokens: Some(5),
        eos_token_id: Some(vec![]),
        ..Default::default()
    };
    let drawn =
        GenerationConfig { do_sample: Some(true), temperature: Some(3.0), top_k: Some(0), ..greedy.clone() };
    for (config, case) in
        [&greedy, &drawn].into_iter().flat_map(|c| golden.cases.iter().map(move |case| (c, case)))
    {
        let prompt = Prompt::new(std::slice::from_ref(&case.prompt), None).unwrap();
        let run = |assistant: Option<&dyn AnyModel>| {
            let mut generation = Generation::new(&prompt, config).seed(Some(11));
            if let Some(assistant) = assistant {
                let decoder = ModelDecoder::new(assistant).unwrap();
                generation = generation.candidates(Box::new(AssistantModel::new(decoder, config)));
            }
            generation.run(&mut ModelDecoder::new(&target).unwrap()).unwrap()
        };
        let alone = run(None);
        // The model itself is the best of assistants: all that it drafts is taken.
        let assisted = run(Some(&itself));
        assert_eq!(assisted.sequences, alone.sequences);
        let acceptance = assisted.acceptance.unwrap();
        assert_eq!(acceptance.accepted, acceptance.drafted);
        assert!(acceptance.runs <= golden.new_tokens / 5 + 1, "{acceptance:?}");
    }
}
