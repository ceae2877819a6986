//! Generative question answering: an answer written from passages that a retriever found, each weighed by its score.
//!
//! Reference: `RagTokenForGeneration.generate` and `RagSequenceForGeneration.generate`, with `RagRetriever.postprocess_docs` in
//! front of them.

mod sequence;

use ndarray::{Array1, Array2, Axis};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::builder::opened;
use super::text_generation::{GenerationOptions, resolve};
use super::{Pipeline, Task};
use crate::any_model::AnyModel;
use crate::generation::{Decoder, Generated, Generation, GenerationConfig, ModelDecoder, Prompt};
use crate::text::{EncodeOptions, Encoding, Padding, Text, Tokenizer};
use crate::{Error, GraphKind, Result, Value, Values};

/// Generative question answering (`RagTokenForGeneration.generate`, `RagSequenceForGeneration.generate`): an answer written from
/// passages, each weighed by how near it is to the question.
///
/// RAG-Token's tokens are those that are likeliest over all passages. RAG-Sequence writes answers from each passage alone, as many
/// as there are beams, and takes the one that is likeliest over all.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::tasks::{GenerativeQuestionAnswering, RetrievedPassage};
///
/// let answering = GenerativeQuestionAnswering::<A>::open("facebook/rag-token-nq")?.load()?;
/// let embedding = answering.embed("Who wove the cloth?")?; // what a retriever looks passages up by
/// let passages = [RetrievedPassage { title: "Cloth", text: "It was woven by Anni.", score: 71.5 }];
/// println!("{}", answering.run("Who wove the cloth?", &passages)?.answer);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct GenerativeQuestionAnswering<A> {
    model: A,
    question: Tokenizer,
    generator: Tokenizer,
    config: GenerationConfig,
    layout: Layout,
}

/// The reference's longest answer where nothing says another; of RAG-Token with the token that begins it.
const MAX_LENGTH: usize = 20;

/// A passage as a retriever found it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RetrievedPassage<'a> {
    /// The title of its document; may be empty.
    #[serde(default)]
    pub title: &'a str,
    /// The passage.
    pub text: &'a str,
    /// How near it is to the question: the inner product of their embeddings (`doc_scores`).
    pub score: f32,
}

/// An answer that was written.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GeneratedAnswer {
    /// The text.
    pub answer: String,
}

/// How passages and questions are joined, and how many there are: of `config.json`.
#[derive(Debug)]
struct Layout {
    n_docs: usize,
    title_sep: String,
    doc_sep: String,
    prefix: String,
    max_combined_length: usize,
    /// Whether the same answer of several passages is one (`do_deduplication`).
    deduplicate: bool,
    /// The token that answers may begin with and whose score then does not count.
    bos_token_id: Option<i64>,
}

impl Layout {
    fn of(config: &Json) -> Self {
        let text = |value: &Json, default: &str| value.as_str().unwrap_or(default).to_owned();
        let count = |value: &Json, default: usize| value.as_u64().map_or(default, |count| count as usize);
        Self {
            n_docs: count(&config["n_docs"], 5),
            title_sep: text(&config["title_sep"], " / "),
            doc_sep: text(&config["doc_sep"], " // "),
            prefix: text(&config["generator"]["prefix"], ""),
            max_combined_length: count(&config["max_combined_length"], 300),
            deduplicate: config["do_deduplication"].as_bool().unwrap_or(true),
            // As the reference: its 0 is none.
            bos_token_id: config["bos_token_id"]
                .as_i64()
                .filter(|id| *id != 0)
                .or(config["generator"]["bos_token_id"].as_i64()),
        }
    }

    /// What the generator reads of a passage (`cat_input_and_doc`).
    fn joined(&self, passage: &RetrievedPassage<'_>, question: &str) -> String {
        let title = passage.title.strip_prefix('"').unwrap_or(passage.title);
        let title = title.strip_suffix('"').unwrap_or(title);
        let Self { prefix, title_sep, doc_sep, .. } = self;
        format!("{prefix}{title}{title_sep}{}{doc_sep}{question}", passage.text).replace("  ", " ")
    }
}

impl<A: AnyModel> Pipeline<A> for GenerativeQuestionAnswering<A> {
    const TASK: Task = Task::GenerativeQuestionAnswering;

    fn from_model(model: A) -> Result<Self> {
        let checkpoint = model.checkpoint();
        let question = Tokenizer::from_checkpoint(&checkpoint.component("question_encoder_tokenizer"))?;
        let generator = Tokenizer::from_checkpoint(&checkpoint.component("generator_tokenizer"))?;
        let own = GenerationConfig::from_checkpoint(checkpoint)?;
        let raw = model.raw_config();
        let config = own.or(GenerationConfig::from_json(&raw["generator"])?);
        let layout = Layout::of(raw);
        Ok(Self { model, question, generator, config, layout })
    }
}

opened!(GenerativeQuestionAnswering: model);

impl<A: AnyModel> GenerativeQuestionAnswering<A> {
    /// How many passages each question takes (`n_docs`).
    pub fn passages(&self) -> usize {
        self.layout.n_docs
    }

    /// The embedding of a question (`question_encoder`), whose inner product with those of passages is their score.
    ///
    /// # Errors
    /// When the question is empty or longer than the question encoder's positions, or the model fails.
    pub fn embed(&self, question: &str) -> Result<Array1<f32>> {
        let rows = self.encoded(question)?;
        let batch = self.question.pad(&rows, &Padding::default())?.into_values();
        let taken = self.model.inputs_of(GraphKind::TextOnly)?;
        let given =
            batch.into_iter().filter(|(name, _)| taken.iter().any(|input| input.name == *name)).collect();
        const EMBEDDING: &str = "question_encoder_last_hidden_state";
        let outputs = self.model.run_graph(GraphKind::TextOnly, given)?;
        let embedding = super::outputs::output(&outputs, EMBEDDING)?;
        Ok(Array1::from_iter(embedding.iter().copied()))
    }

    /// The answer to a question from its passages, [`Self::passages`] of them.
    ///
    /// # Errors
    /// As [`Self::run_with`].
    pub fn run(&self, question: &str, passages: &[RetrievedPassage<'_>]) -> Result<GeneratedAnswer> {
        let mut answers = self.run_with(question, passages, &GenerationOptions::default())?;
        Ok(answers.pop().unwrap_or_default())
    }

    /// The same with other than the default options; as many answers as `num_return_sequences` says. A passage with its
    /// question is cut off behind `max_combined_length` tokens, as the reference does.
    ///
    /// # Errors
    /// When there are more or fewer passages than the checkpoint takes, a score is no number, options contradict each other,
    /// or the model fails.
    pub fn run_with(
        &self,
        question: &str,
        passages: &[RetrievedPassage<'_>],
        options: &GenerationOptions,
    ) -> Result<Vec<GeneratedAnswer>> {
        let count = self.layout.n_docs;
        if passages.len() != count {
            let problem =
                format!("{} were given, and the checkpoint weighs {count} (`n_docs`)", passages.len());
            return Err(Error::input("passages", problem, format!("give the {count} nearest")));
        }
        if let Some(passage) = passages.iter().find(|passage| !passage.score.is_finite()) {
            let problem = format!("{} is no score", passage.score);
            let help = "give the inner product of the embeddings of question and passage";
            return Err(Error::input("passages", problem, help));
        }
        let default = match self.writes_sequences() {
            true => GenerationConfig { max_new_tokens: Some(MAX_LENGTH), ..Default::default() },
            false => GenerationConfig { max_length: Some(MAX_LENGTH), ..Default::default() },
        };
        let config = resolve(&options.generation, &self.config, &default, &self.generator);
        let Some(start) = config.decoder_start_token_id.or(config.bos_token_id) else {
            return Err(Error::config(
                self.model.checkpoint().dir().join("config.json"),
                "names no `decoder_start_token_id` of the generator: no token begins an answer",
                "take the token from the published configuration",
            ));
        };
        let inputs = self.inputs(question, passages)?;
        let answers = match self.writes_sequences() {
            true => self.sequences(start, &inputs, &config, options)?,
            false => self.tokens(start, inputs, passages, &config, options)?,
        };
        let answer = |ids: &Vec<i64>| {
            let clean = options.clean_up_tokenization_spaces;
            let answer = self.generator.decode_as(ids, options.skip_special_tokens, clean)?;
            Ok(GeneratedAnswer { answer })
        };
        answers.iter().map(answer).collect()
    }

    /// Whether the loaded class writes answers from each passage alone.
    fn writes_sequences(&self) -> bool {
        self.model.class().ends_with("SequenceForGeneration")
    }

    /// The tokens of answers that all passages give together (`RagTokenForGeneration.generate`).
    fn tokens(
        &self,
        start: i64,
        inputs: Values,
        passages: &[RetrievedPassage<'_>],
        config: &GenerationConfig,
        options: &GenerationOptions,
    ) -> Result<Vec<Vec<i64>>> {
        let read = match inputs.get("context_input_ids") {
            Some(Value::I64(ids)) => Array1::from_iter(ids.iter().copied()).insert_axis(Axis(0)),
            _ => Array2::zeros((1, 1)),
        };
        let prompt = Prompt::decoder(start, read);
        let scores = passages.iter().map(|passage| passage.score).collect();
        let step = self.model.inputs_of(GraphKind::Decode)?;
        let by_model = step.iter().any(|input| input.name == "doc_scores");
        let inner = ModelDecoder::encoder_decoder(&self.model, inputs)?;
        let mut decoder = Marginalized::new(inner, scores, by_model);
        let generated = self.generated(&prompt, config, options, &mut decoder)?;
        Ok((0..generated.sequences.len()).map(|index| generated.new_tokens(index).to_vec()).collect())
    }

    /// What a decoder writes behind prompts.
    fn generated(
        &self,
        prompt: &Prompt,
        config: &GenerationConfig,
        options: &GenerationOptions,
        decoder: &mut dyn Decoder,
    ) -> Result<Generated> {
        Generation::new(prompt, config)
            .tokenizer(&self.generator)
            .positions(self.model.limit("sequence"))
            .seed(options.seed)
            .run(decoder)
    }

    /// The tokens of a question, for the question encoder.
    fn encoded(&self, question: &str) -> Result<Vec<Encoding>> {
        let rows = self.question.encode(&[Text::from(question)], &EncodeOptions::default())?;
        if rows.iter().all(Encoding::is_blank) {
            let problem = "is empty: the tokenizer finds nothing in it";
            return Err(Error::input("question", problem, "ask something"));
        }
        Ok(rows)
    }

    /// Passages with the question, as the question's tokenizer gives it back (`postprocess_docs`), and their scores `[1, n_docs]`.
    fn inputs(&self, question: &str, passages: &[RetrievedPassage<'_>]) -> Result<Values> {
        let asked = match self.encoded(question)?.as_slice() {
            [row, ..] => self.question.decode(&row.ids, true)?,
            [] => String::new(),
        };
        let joined: Vec<String> =
            passages.iter().map(|passage| self.layout.joined(passage, &asked)).collect();
        let joined: Vec<Text<'_>> = joined.iter().map(Text::from).collect();
        let encode = EncodeOptions::truncated(Some(self.layout.max_combined_length));
        let batch = self.generator.pad(&self.generator.encode(&joined, &encode)?, &Padding::default())?;
        let scores = Array1::from_iter(passages.iter().map(|passage| passage.score));
        Ok(Values::from([
            ("context_input_ids".to_owned(), Value::I64(batch.input_ids.into_dyn())),
            ("context_attention_mask".to_owned(), Value::I64(batch.attention_mask.into_dyn())),
            ("doc_scores".to_owned(), Value::F32(scores.insert_axis(Axis(0)).into_dyn())),
        ]))
    }
}

/// A decoder that gives the logits of each passage, marginalised over these (`marginalize`).
struct Marginalized<'a> {
    inner: ModelDecoder<'a>,
    /// The logarithm of each passage's probability.
    passages: Vec<f32>,
    /// Whether the model marginalises itself (`do_marginalize`).
    by_model: bool,
}

impl<'a> Marginalized<'a> {
    fn new(inner: ModelDecoder<'a>, mut scores: Vec<f32>, by_model: bool) -> Self {
        let sum = log_sum_exp(scores.iter().copied());
        scores.iter_mut().for_each(|score| *score -= sum);
        Self { inner, passages: scores, by_model }
    }

    /// Logits `[rows · n_docs, vocab_size]` to log-probabilities `[rows, vocab_size]`.
    fn marginalize(&self, mut logits: Array2<f32>, rows: usize) -> Result<Array2<f32>> {
        let (count, width) = (self.passages.len(), logits.ncols());
        if self.by_model {
            return Ok(logits);
        }
        for mut row in logits.rows_mut() {
            let sum = log_sum_exp(row.iter().copied());
            row -= sum;
        }
        let shape = (rows, count, width);
        let apart = logits.into_shape_with_order(shape).map_err(|e| {
            let help = "load the class `RagTokenForGeneration`";
            Error::input("logits", format!("they are not those of {count} passages a row: {e}"), help)
        })?;
        Ok(apart.map_axis(Axis(1), |tokens| {
            log_sum_exp(tokens.iter().zip(&self.passages).map(|(token, passage)| token + passage))
        }))
    }
}

impl Decoder for Marginalized<'_> {
    fn prefill(&mut self, prompt: &Prompt) -> Result<Array2<f32>> {
        let logits = self.inner.prefill(prompt)?;
        self.marginalize(logits, prompt.len())
    }

    fn decode(&mut self, ids: &[i64], beam_idx: Option<&[usize]>) -> Result<Array2<f32>> {
        let logits = self.inner.decode(ids, beam_idx)?;
        self.marginalize(logits, ids.len())
    }
}

/// The logarithm of a sum of exponentials (`torch.logsumexp`).
fn log_sum_exp(values: impl Iterator<Item = f32> + Clone) -> f32 {
    let most = values.clone().fold(f32::NEG_INFINITY, f32::max);
    if most.is_infinite() {
        return most;
    }
    most + values.map(|value| (value - most).exp()).sum::<f32>().ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_exponentials_do_not_overflow() {
        assert!((log_sum_exp([1000.0, 1000.0].into_iter()) - 1000.0 - 2f32.ln()).abs() < 1e-3);
        assert_eq!(log_sum_exp([f32::NEG_INFINITY].into_iter()), f32::NEG_INFINITY);
    }

    #[test]
    fn quotes_around_titles_and_double_spaces_go() {
        let layout = Layout::of(&serde_json::json!({"title_sep": " / ", "generator": {"prefix": "ask: "}}));
        let passage = RetrievedPassage { title: "\"Cloth\"", text: "Woven  by Anni.", score: 1.0 };
        assert_eq!(layout.joined(&passage, "who?"), "ask: Cloth / Woven by Anni. // who?");
        assert_eq!((layout.n_docs, layout.max_combined_length), (5, 300));
    }
}
