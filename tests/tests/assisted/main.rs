//! Assisted decoding by two models in one run, against the reference's tokens and first drafts: Gemma 4 and Muse Glimmer with drafters
//! that read their hidden states, keys and values; and Gemma 4 with a smaller model of the same tokens.

use std::path::Path;
use std::sync::{Arc, Mutex};

use serde::Deserialize;
use weft::generation::{
    Acceptance, AssistantModel, CandidateGenerator, DFlashAssistant, Decoder, Generation, GenerationConfig,
    ModelDecoder, MultiTokenAssistant, NextToken, Prompt,
};
use weft::{AnyModel, Architecture, Hardware, Loader, Result};
use weft_gemma4_text::Head as Gemma4;
use weft_muse_glimmer::Head as MuseGlimmer;

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

fn golden(family: &str) -> Golden {
    serde_json::from_slice(&std::fs::read(folder(&format!("{family}/cases.json"))).expect(THERE))
        .expect(THERE)
}

impl Golden {
    fn config(&self) -> GenerationConfig {
        GenerationConfig {
            max_new_tokens: Some(self.new_tokens),
            num_assistant_tokens: Some(self.drafted),
            assistant_confidence_threshold: Some(0.0),
            eos_token_id: Some(vec![]),
            ..Default::default()
        }
    }
}

fn loaded<A: Architecture>(loader: Loader<A>) -> impl AnyModel {
    loader.hardware(Hardware::Cpu).threads(1).load().expect(THERE)
}

fn gemma4() -> impl AnyModel {
    loaded(weft_gemma4_text::Model::open(&folder("gemma4/target")).expect(THERE).head(Gemma4::ForCausalLM))
}

const THERE: &str = "the goldens are there, and run";
const ALONE: &str = "one thread";

/// Notes what another proposes.
struct Noting<'a> {
    inner: Box<dyn CandidateGenerator + 'a>,
    drafts: Arc<Mutex<Vec<Vec<i64>>>>,
}

impl CandidateGenerator for Noting<'_> {
    fn candidates(
        &mut self,
        ids: &[i64],
        most: usize,
        target: &mut dyn Decoder,
        next: &NextToken<'_>,
    ) -> Result<Vec<i64>> {
        let candidates = self.inner.candidates(ids, most, target, next)?;
        self.drafts.lock().expect(ALONE).push(candidates.clone());
        Ok(candidates)
    }

    fn update(&mut self, accepted: usize) {
        self.inner.update(accepted);
    }
}

/// Runs all cases with what drafts for a target, anew for each.
fn check<'a>(golden: &Golden, target: &dyn AnyModel, drafter: impl Fn() -> Box<dyn CandidateGenerator + 'a>) {
    let config = golden.config();
    for case in &golden.cases {
        let prompt = Prompt::new(std::slice::from_ref(&case.prompt), None).expect(THERE);
        let alone =
            Generation::new(&prompt, &config).run(&mut ModelDecoder::new(target).expect(THERE)).expect(THERE);
        assert_eq!(alone.sequences[0], case.sequence);

        let drafts = Arc::new(Mutex::new(vec![]));
        let generator = Noting { inner: drafter(), drafts: Arc::clone(&drafts) };
        let generation = Generation::new(&prompt, &config).candidates(Box::new(generator));
        let assisted = generation.run(&mut ModelDecoder::new(target).expect(THERE)).expect(THERE);
        assert_eq!(assisted.sequences[0], case.sequence);
        let drafts = drafts.lock().expect(ALONE);
        assert_eq!(drafts[0], case.first_draft);
        let Acceptance { drafted, runs, .. } = assisted.acceptance.expect(THERE);
        assert_eq!((drafted, runs > 0), (drafts.iter().map(Vec::len).sum(), true));
    }
}

#[test]
fn multi_token_drafts_are_the_references_and_change_no_token() {
    let (golden, target) = (golden("gemma4"), gemma4());
    let drafter = loaded(weft_gemma4_assistant::Model::open(&folder("gemma4/assistant")).unwrap());
    let config = golden.config();
    check(&golden, &target, || Box::new(MultiTokenAssistant::new(&drafter, &target, &config).unwrap()));
}

#[test]
fn block_diffusion_drafts_are_the_references_and_change_no_token() {
    let golden = golden("muse_glimmer");
    let target = weft_muse_glimmer::Model::open(&folder("muse_glimmer/target")).unwrap();
    let target = loaded(target.head(MuseGlimmer::ForConditionalGeneration));
    let drafter =
        loaded(weft_muse_glimmer_assistant::Model::open(&folder("muse_glimmer/assistant")).unwrap());
    check(&golden, &target, || Box::new(DFlashAssistant::new(&drafter, &target).unwrap()));
}

#[test]
fn a_drafter_of_another_model_is_refused() {
    let target = gemma4();
    let drafter =
        loaded(weft_muse_glimmer_assistant::Model::open(&folder("muse_glimmer/assistant")).unwrap());
    // The widths agree here; this model does not name its hidden states of layers.
    let problem = DFlashAssistant::new(&drafter, &target).err().unwrap().to_string();
    assert!(problem.contains("`hidden_states.1`"), "{problem}");
}

#[test]
fn a_model_that_drafts_for_itself_is_always_right_drawn_or_not() {
    let (golden, target, itself) = (golden("gemma4"), gemma4(), gemma4());
    let greedy = golden.config();
    let drawn =
        GenerationConfig { do_sample: Some(true), temperature: Some(3.0), top_k: Some(0), ..greedy.clone() };
    for config in [&greedy, &drawn] {
        for case in &golden.cases {
            let prompt = Prompt::new(std::slice::from_ref(&case.prompt), None).unwrap();
            let generation = || Generation::new(&prompt, config).seed(Some(11));
            let alone = generation().run(&mut ModelDecoder::new(&target).unwrap()).unwrap();
            let assistant = AssistantModel::new(ModelDecoder::new(&itself).unwrap(), config);
            let assisted = generation().candidates(Box::new(assistant));
            let assisted = assisted.run(&mut ModelDecoder::new(&target).unwrap()).unwrap();
            assert_eq!(assisted.sequences, alone.sequences);
            let acceptance = assisted.acceptance.unwrap();
            assert_eq!(acceptance.accepted, acceptance.drafted);
            assert!(acceptance.runs <= golden.new_tokens / golden.drafted, "{acceptance:?}");
        }
    }
}
