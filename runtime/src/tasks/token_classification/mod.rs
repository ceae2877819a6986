//! Token classification: labels for tokens, or for words and names put together from them.
//!
//! Reference: `TokenClassificationPipeline`.

mod aggregate;

use ndarray::{ArrayD, Axis};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use self::aggregate::Piece;
use super::batches::{Per, TextModel};
use super::builder::opened;
use super::characters::Characters;
use super::labels::Labels;
use super::scores::softmax;
use super::{Pipeline, Task, TextOptions};
use crate::any_model::AnyModel;
use crate::text::{EncodeOptions, Encoding, Text};
use crate::{Error, Result};

/// Labels the tokens of a text, such as the names of persons and places in it.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::tasks::{Aggregation, TokenClassification, TokenOptions};
///
/// let tagger = TokenClassification::<A>::open("org/checkpoint")?.load()?;
/// let options = TokenOptions { aggregation: Aggregation::Simple, ..TokenOptions::default() };
/// for entity in &tagger.run_with(&["Ada lives in London.".into()], &options)?[0] {
///     println!("{} {} {}..{}", entity.label, entity.word, entity.start, entity.end);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TokenClassification<A> {
    text: TextModel<A>,
    labels: Labels,
}

/// How tokens are put together to entities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Aggregation {
    /// Not at all: one entity for each token.
    #[default]
    None,
    /// Neighbours of one label, by the `B-` and `I-` of its name.
    Simple,
    /// As simple, but words are whole and have their first token's label.
    First,
    /// As simple, but words are whole and have the label that is best on average over their tokens.
    Average,
    /// As simple, but words are whole and have the label of their surest token.
    Max,
}

/// How entities are made and chosen.
#[derive(Clone, Debug)]
pub struct TokenOptions {
    /// How tokens are put together.
    pub aggregation: Aggregation,
    /// Labels to leave out.
    pub ignore_labels: Vec<String>,
    /// Cuts long texts into windows of the tokenizer's `model_max_length` that overlap by this many tokens,
    /// instead of losing what is beyond the first.
    pub stride: Option<usize>,
    /// What stands between the words of [`Text::Words`] in the text that offsets refer to.
    pub delimiter: String,
    /// Long, many and empty texts. Long texts are always cut to the tokenizer's limit, as in the reference.
    pub text: TextOptions,
}

impl Default for TokenOptions {
    fn default() -> Self {
        Self {
            aggregation: Aggregation::None,
            ignore_labels: vec!["O".into()],
            stride: None,
            delimiter: " ".into(),
            text: TextOptions::default(),
        }
    }
}

/// A labelled part of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Entity {
    /// The label; of a group, without `B-` or `I-`.
    pub label: String,
    /// Its probability; of a group, the mean.
    pub score: f32,
    /// The token's number in its row; none for a group.
    pub index: Option<usize>,
    /// The token or tokens as the tokenizer writes them.
    pub word: String,
    /// The first character.
    pub start: usize,
    /// The character after the last.
    pub end: usize,
}

/// As the reference has it: `entity` and `index` for a token, `entity_group` for a group.
impl Serialize for Entity {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(if self.index.is_some() { "entity" } else { "entity_group" }, &self.label)?;
        map.serialize_entry("score", &self.score)?;
        if let Some(index) = self.index {
            map.serialize_entry("index", &index)?;
        }
        map.serialize_entry("word", &self.word)?;
        map.serialize_entry("start", &self.start)?;
        map.serialize_entry("end", &self.end)?;
        map.end()
    }
}

impl<A: AnyModel> Pipeline<A> for TokenClassification<A> {
    const TASK: Task = Task::TokenClassification;

    fn from_model(model: A) -> Result<Self> {
        let labels = Labels::read(model.raw_config());
        Ok(Self { text: TextModel::new(model)?, labels })
    }
}

opened!(TokenClassification: text.model);

impl<A: AnyModel> TokenClassification<A> {
    /// The labelled tokens of a text, without those labelled `O`.
    ///
    /// # Errors
    /// When the text is empty or longer than the model's positions, or the model fails.
    pub fn run(&self, text: &str) -> Result<Vec<Entity>> {
        Ok(self.run_batch(&[text])?.into_iter().next().unwrap_or_default())
    }

    /// The same for many texts at once.
    ///
    /// # Errors
    /// As [`TokenClassification::run`].
    pub fn run_batch(&self, texts: &[&str]) -> Result<Vec<Vec<Entity>>> {
        let texts: Vec<Text<'_>> = texts.iter().map(|text| Text::from(*text)).collect();
        self.run_with(&texts, &TokenOptions::default())
    }

    /// The entities of texts, or of words given apart, with other than the default options.
    ///
    /// # Errors
    /// As [`TokenClassification::run`], and when `stride` does not fit.
    pub fn run_with(&self, texts: &[Text<'_>], options: &TokenOptions) -> Result<Vec<Vec<Entity>>> {
        let rows = self.text.encode(texts, &self.encode_options(options)?, options.text.allow_empty)?;
        let outputs = self.text.run(&rows, options.text.batch_size, &[("logits", Per::Token)])?;
        let mut results = Vec::with_capacity(texts.len());
        let mut windows = rows.iter().zip(&outputs[0]).peekable();
        for (sample, text) in texts.iter().enumerate() {
            let (sentence, word_starts) = sentence(*text, &options.delimiter)?;
            let characters = Characters::new(&sentence);
            let mut entities = Vec::new();
            let mut count = 0;
            while let Some((row, logits)) = windows.next_if(|(row, _)| row.sample == sample) {
                let pieces = self.pieces(row, logits, &characters, word_starts.as_deref());
                let join = |tokens: &[String]| self.text.tokenizer.tokens_to_string(tokens);
                entities.extend(aggregate::entities(&pieces, options.aggregation, &self.labels, &join)?);
                count += 1;
            }
            entities.retain(|entity: &Entity| !options.ignore_labels.contains(&entity.label));
            if count > 1 {
                entities = aggregate::without_overlaps(entities);
            }
            results.push(entities);
        }
        Ok(results)
    }

    fn encode_options(&self, options: &TokenOptions) -> Result<EncodeOptions> {
        let limit = self.text.tokenizer.settings().model_max_length;
        let encode = EncodeOptions::truncated(options.text.max_length.or(limit));
        let Some(stride) = options.stride else { return Ok(encode) };
        if options.aggregation == Aggregation::None {
            let problem = "windows of a long text cannot be joined without aggregation";
            return Err(Error::input(
                "stride",
                problem,
                "choose simple, first, average or max, or leave out the stride",
            ));
        }
        let Some(limit) = limit.or(self.text.longest()).filter(|limit| stride < *limit) else {
            let problem = format!("{stride} is not less than the windows' length");
            return Err(Error::input("stride", problem, "give less than the tokenizer's model_max_length"));
        };
        Ok(EncodeOptions { stride, overflow: true, max_length: Some(limit), ..encode })
    }

    /// The tokens of a row that are part of the text, with the scores of all labels.
    fn pieces(
        &self,
        row: &Encoding,
        logits: &ArrayD<f32>,
        sentence: &Characters<'_>,
        word_starts: Option<&[usize]>,
    ) -> Vec<Piece> {
        let tokenizer = &self.text.tokenizer;
        let unknown = tokenizer.unk_token().map(|(_, id)| id);
        let marks_subwords = tokenizer.marks_subwords();
        let mut pieces = Vec::new();
        for index in (0..row.len()).filter(|index| !row.special[*index]) {
            let (mut start, mut end) = row.offsets[index];
            if let (Some(starts), Some(word)) = (word_starts, row.words[index]) {
                let shift = starts.get(word as usize).copied().unwrap_or(0);
                (start, end) = (start + shift, end + shift);
            }
            let mut word = tokenizer.token(row.ids[index]).unwrap_or_default();
            let in_text = sentence.slice(start, end);
            let mut is_subword = if marks_subwords {
                word.chars().count() != in_text.chars().count()
            } else {
                start > 0 && !sentence.slice(start - 1, start + 1).contains(' ')
            };
            if Some(row.ids[index]) == unknown {
                word = in_text.to_string();
                is_subword = false;
            }
            let scores = softmax(&logits.index_axis(Axis(0), index).iter().copied().collect::<Vec<_>>());
            pieces.push(Piece { word, scores, start, end, index, is_subword });
        }
        pieces
    }
}

/// The text that offsets refer to; of words given apart, where each begins in it.
fn sentence(text: Text<'_>, delimiter: &str) -> Result<(String, Option<Vec<usize>>)> {
    match text {
        Text::Single(text) => Ok((text.to_string(), None)),
        Text::Words(words) => {
            let gap = delimiter.chars().count();
            let starts = words.iter().scan(0, |next, word| {
                let start = *next;
                *next += word.chars().count() + gap;
                Some(start)
            });
            Ok((words.join(delimiter), Some(starts.collect())))
        }
        Text::Pair(..) | Text::PairedWords(..) => Err(Error::input(
            "text",
            "is a pair, but tokens of one text are labelled",
            "give one text after the other",
        )),
    }
}
