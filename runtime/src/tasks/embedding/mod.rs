//! Sentence embeddings (`SentenceTransformer.encode`): one vector per text.
//!
//! Reference: `SentenceTransformer` of `sentence-transformers`.

mod dense;
mod modules;
mod pooling;
mod similarity;

use ndarray::{Array1, Array2, Axis, Ix2};

use self::modules::{Modules, Step};
pub use self::pooling::{Pooling, PoolingMode};
pub use self::similarity::Similarity;
use super::batches::{Per, TextModel};
use super::builder::opened;
use super::{Pipeline, Task, TextOptions};
use crate::any_model::AnyModel;
use crate::text::{EncodeOptions, Text};
use crate::{Error, Result};

/// Turns texts into vectors whose directions tell how close their meanings are.
///
/// What follows the model is read from the checkpoint: `modules.json`, the pooling in `1_Pooling`, dense
/// layers and normalization, `sentence_bert_config.json` and `config_sentence_transformers.json`. A
/// checkpoint without them gets the mean of its tokens. Long texts are cut, as in the reference.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::tasks::SentenceEmbedding;
///
/// let embedding = SentenceEmbedding::<A>::open("sentence-transformers/all-MiniLM-L6-v2")?.load()?;
/// let vectors = embedding.run_batch(&["A cat sleeps.", "A kitten naps.", "Rain is expected."])?;
/// let similarities = embedding.similarity().between(&vectors, &vectors); // [3, 3]
/// assert!(similarities[[0, 1]] > similarities[[0, 2]]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SentenceEmbedding<A> {
    text: TextModel<A>,
    modules: Modules,
}

/// How texts become vectors.
#[derive(Clone, Debug, Default)]
pub struct EmbeddingOptions {
    /// Written before each text.
    pub prompt: Option<String>,
    /// The name of a prompt of the checkpoint; it stands back behind `prompt`.
    pub prompt_name: Option<String>,
    /// Brings vectors to length 1, if the checkpoint's modules do not.
    pub normalize: bool,
    /// Keeps only this many numbers of each vector.
    pub truncate_dim: Option<usize>,
    /// Many and empty texts; and where to cut, if not at the checkpoint's `max_seq_length`.
    pub text: TextOptions,
}

impl<A: AnyModel> Pipeline<A> for SentenceEmbedding<A> {
    const TASK: Task = Task::SentenceEmbedding;

    fn from_model(model: A) -> Result<Self> {
        let modules = Modules::read(model.checkpoint())?;
        let mut text = TextModel::new(model)?;
        if modules.do_lower_case {
            text.tokenizer = text.tokenizer.lowercased()?;
        }
        Ok(Self { text, modules })
    }
}

opened!(SentenceEmbedding: text.model);

impl<A: AnyModel> SentenceEmbedding<A> {
    /// How the checkpoint compares vectors.
    pub fn similarity(&self) -> Similarity {
        self.modules.similarity
    }

    /// How tokens become one vector.
    pub fn pooling(&self) -> &Pooling {
        &self.modules.pooling
    }

    /// The names of the checkpoint's prompts (`query`, `document`, …).
    pub fn prompt_names(&self) -> impl Iterator<Item = &str> {
        self.modules.prompts.keys().map(String::as_str)
    }

    /// The most tokens of a text that are looked at: the checkpoint's `max_seq_length`, the tokenizer's
    /// limit or the model's positions.
    pub fn max_seq_length(&self) -> Option<usize> {
        let positions = self.text.model.limit("sequence");
        let tokenizer = self.text.tokenizer.settings().model_max_length;
        self.modules.max_seq_length.or(tokenizer).into_iter().chain(positions).min()
    }

    /// The vector of a text.
    ///
    /// # Errors
    /// When the text is empty, or the model fails.
    pub fn run(&self, text: &str) -> Result<Array1<f32>> {
        Ok(self.run_batch(&[text])?.index_axis_move(Axis(0), 0))
    }

    /// The vectors of many texts, `[texts, dimension]`.
    ///
    /// # Errors
    /// As [`SentenceEmbedding::run`].
    pub fn run_batch(&self, texts: &[&str]) -> Result<Array2<f32>> {
        self.run_with(texts, &EmbeddingOptions::default())
    }

    /// The same with other than the default options.
    ///
    /// # Errors
    /// As [`SentenceEmbedding::run`], and when the checkpoint has no prompt of that name.
    pub fn run_with(&self, texts: &[&str], options: &EmbeddingOptions) -> Result<Array2<f32>> {
        let prompt = self.prompt(options)?;
        let limit = options.text.max_length.or(self.max_seq_length());
        let encode = EncodeOptions::truncated(limit);
        let prompted: Vec<String> = texts.iter().map(|text| format!("{prompt}{text}")).collect();
        let prompted: Vec<Text<'_>> = prompted.iter().map(Text::from).collect();
        let rows = self.text.encode(&prompted, &encode, options.text.allow_empty)?;
        let skip = if self.modules.pooling.include_prompt { 0 } else { self.prompt_length(prompt, &encode)? };
        let outputs = self.text.run(&rows, options.text.batch_size, &[("last_hidden_state", Per::Token)])?;
        let mut vectors = Array2::zeros((0, 0));
        for (i, states) in outputs[0].iter().enumerate() {
            let states = states.view().into_dimensionality::<Ix2>().map_err(|e| {
                Error::input(
                    "last_hidden_state",
                    format!("is not [tokens, hidden_size]: {e}"),
                    "open a text model",
                )
            })?;
            let vector = self.finish(self.modules.pooling.pool(&states, skip), options)?;
            if i == 0 {
                vectors = Array2::zeros((outputs[0].len(), vector.len()));
            }
            vectors.row_mut(i).assign(&vector);
        }
        Ok(vectors)
    }

    /// What follows the pooling.
    fn finish(&self, mut vector: Array1<f32>, options: &EmbeddingOptions) -> Result<Array1<f32>> {
        for step in &self.modules.steps {
            vector = match step {
                Step::Normalize => similarity::normalized(vector),
                Step::Dense(dense) => dense.apply(&vector)?,
            };
        }
        if let Some(dim) = options.truncate_dim.filter(|dim| *dim < vector.len()) {
            vector = vector.slice(ndarray::s![..dim]).to_owned();
        }
        Ok(if options.normalize { similarity::normalized(vector) } else { vector })
    }

    fn prompt<'a>(&'a self, options: &'a EmbeddingOptions) -> Result<&'a str> {
        let prompts = &self.modules.prompts;
        match (&options.prompt, &options.prompt_name) {
            (Some(prompt), _) => Ok(prompt),
            (None, Some(name)) => prompts.get(name).map(String::as_str).ok_or_else(|| {
                let names: Vec<_> = prompts.keys().map(String::as_str).collect();
                let help = match names.as_slice() {
                    [] => "it names none: write the prompt itself with `prompt`".to_string(),
                    names => format!("it names {}", names.join(", ")),
                };
                Error::input("prompt_name", format!("the checkpoint has no prompt `{name}`"), help)
            }),
            (None, None) => Ok(self
                .modules
                .default_prompt
                .as_ref()
                .and_then(|name| prompts.get(name))
                .map_or("", String::as_str)),
        }
    }

    /// The tokens that the prompt takes, without the one that ends a text.
    fn prompt_length(&self, prompt: &str, encode: &EncodeOptions) -> Result<usize> {
        if prompt.is_empty() {
            return Ok(0);
        }
        let rows = self.text.tokenizer.encode(&[prompt.into()], encode)?;
        let ended = |row: &crate::text::Encoding| row.special.last().copied().unwrap_or(false);
        Ok(rows.first().map_or(0, |row| row.len() - usize::from(ended(row))))
    }
}
