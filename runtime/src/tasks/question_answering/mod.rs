//! Question answering: the part of a context that answers a question.
//!
//! Reference: `QuestionAnsweringPipeline` of transformers 4, which the fifth release has no longer.

mod spans;

use ndarray::ArrayD;
use serde::Serialize;

pub(super) use self::spans::Span;
use super::batches::{Per, TextModel, numbered};
use super::builder::opened;
use super::characters::Characters;
use super::{Pipeline, Task};
use crate::any_model::AnyModel;
use crate::text::{EncodeOptions, Encoding, Side, Text, Truncation};
use crate::{Error, Result};

/// The reference's longest window.
const MAX_SEQ_LEN: usize = 384;
/// The reference's overlap of windows.
const DOC_STRIDE: usize = 128;

/// Finds the answer to a question in a context, of any length.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// let reader = weft::tasks::QuestionAnswering::<A>::open("org/checkpoint")?.load()?;
/// let answer = reader.run("Where do I live?", "My name is Ada and I live in London.")?;
/// println!("{} {:.3} {}..{}", answer.answer, answer.score, answer.start, answer.end);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct QuestionAnswering<A> {
    text: TextModel<A>,
}

/// A question and the text to find its answer in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question<'a> {
    /// What is asked.
    pub question: &'a str,
    /// Where the answer is.
    pub context: &'a str,
}

/// How answers are found and chosen.
#[derive(Clone, Debug)]
pub struct QuestionOptions {
    /// The most answers, best first.
    pub top_k: usize,
    /// How many tokens of the context two windows share; by default 128, or half a window.
    pub doc_stride: Option<usize>,
    /// The most tokens of an answer.
    pub max_answer_len: usize,
    /// The tokens of a window, question included; by default 384, or what the model has positions for.
    pub max_seq_len: Option<usize>,
    /// Whether "no answer" is an answer: an empty one.
    pub handle_impossible_answer: bool,
    /// Whether answers begin and end where words do.
    pub align_to_words: bool,
    /// The most windows that run through the model at once.
    pub batch_size: usize,
}

impl Default for QuestionOptions {
    fn default() -> Self {
        Self {
            top_k: 1,
            doc_stride: None,
            max_answer_len: 15,
            max_seq_len: None,
            handle_impossible_answer: false,
            align_to_words: true,
            batch_size: 32,
        }
    }
}

/// A part of the context.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Answer {
    /// Its probability, summed over the ways in which it was found.
    pub score: f32,
    /// The first character in the context.
    pub start: usize,
    /// The character after the last.
    pub end: usize,
    /// The text.
    pub answer: String,
}

impl<A: AnyModel> Pipeline<A> for QuestionAnswering<A> {
    const TASK: Task = Task::QuestionAnswering;

    fn from_model(model: A) -> Result<Self> {
        Ok(Self { text: TextModel::new(model)? })
    }
}

opened!(QuestionAnswering: text.model);

impl<A: AnyModel> QuestionAnswering<A> {
    /// The best answer to a question; an empty one with a score of 0 when there is none.
    ///
    /// # Errors
    /// When question or context is empty, the question leaves no room for the context, or the model fails.
    pub fn run(&self, question: &str, context: &str) -> Result<Answer> {
        let answers = self.run_batch(&[Question { question, context }])?;
        Ok(answers.into_iter().next().unwrap_or_default())
    }

    /// The best answer to each question.
    ///
    /// # Errors
    /// As [`QuestionAnswering::run`].
    pub fn run_batch(&self, questions: &[Question<'_>]) -> Result<Vec<Answer>> {
        let answers = self.run_with(questions, &QuestionOptions::default())?;
        Ok(answers.into_iter().map(|answers| answers.into_iter().next().unwrap_or_default()).collect())
    }

    /// The answers to each question, best first, with other than the default options.
    ///
    /// # Errors
    /// As [`QuestionAnswering::run`], and when an option is out of range.
    pub fn run_with(
        &self,
        questions: &[Question<'_>],
        options: &QuestionOptions,
    ) -> Result<Vec<Vec<Answer>>> {
        let encode = self.encode_options(options)?;
        let question_first = self.text.tokenizer.settings().padding_side == Side::Right;
        let context = usize::from(question_first);
        let mut rows = Vec::new();
        for (sample, question) in questions.iter().enumerate() {
            let pair = match question_first {
                true => Text::Pair(question.question, question.context),
                false => Text::Pair(question.context, question.question),
            };
            let name = |name: &str| numbered(name, sample, questions.len());
            self.check_question(question.question, encode.max_length, &name)?;
            for window in self.text.encode(&[pair], &encode, true)? {
                if !window.sequences.contains(&Some(context)) {
                    return Err(empty(name("context")));
                }
                rows.push(Encoding { sample, ..window });
            }
        }
        let names = [("start_logits", Per::Token), ("end_logits", Per::Token)];
        let outputs = self.text.run(&rows, options.batch_size, &names)?;
        let answer = |(sample, question): (usize, &Question<'_>)| {
            let of = |i: &usize| rows[*i].sample == sample;
            let windows = (0..rows.len())
                .filter(of)
                .map(|i| self.window(&rows[i], &outputs[0][i], &outputs[1][i], context));
            spans::answers(windows, &Characters::new(question.context), options)
        };
        Ok(questions.iter().enumerate().map(answer).collect())
    }

    /// The probabilities of beginnings and ends in one window.
    fn window<'a>(
        &self,
        row: &'a Encoding,
        start: &ArrayD<f32>,
        end: &ArrayD<f32>,
        context: usize,
    ) -> Span<'a> {
        let cls = self.text.tokenizer.cls_token().map(|(_, id)| id);
        // The first token stays in the sum: models use it to say that there is no answer.
        let allowed: Vec<bool> =
            (0..row.len()).map(|i| row.sequences[i] == Some(context) || Some(row.ids[i]) == cls).collect();
        Span::new(row, context, allowed, start.iter().copied(), end.iter().copied())
    }

    fn encode_options(&self, options: &QuestionOptions) -> Result<EncodeOptions> {
        for (name, value) in [("top_k", options.top_k), ("max_answer_len", options.max_answer_len)] {
            if value == 0 {
                return Err(Error::input(name, "is 0", "give 1 or more"));
            }
        }
        let longest = self.text.longest().unwrap_or(MAX_SEQ_LEN);
        let length = options.max_seq_len.unwrap_or(longest.min(MAX_SEQ_LEN));
        let stride = options.doc_stride.unwrap_or((length / 2).min(DOC_STRIDE));
        if stride > length {
            let problem = format!("{stride} is larger than max_seq_len, {length}");
            return Err(Error::input("doc_stride", problem, "give a smaller overlap or larger windows"));
        }
        let truncation = match self.text.tokenizer.settings().padding_side {
            Side::Right => Truncation::OnlySecond,
            Side::Left => Truncation::OnlyFirst,
        };
        Ok(EncodeOptions {
            truncation,
            max_length: Some(length),
            stride,
            overflow: true,
            add_special_tokens: true,
        })
    }

    /// A question must have tokens, and leave room for the context.
    fn check_question(
        &self,
        question: &str,
        length: Option<usize>,
        name: &dyn Fn(&str) -> String,
    ) -> Result<()> {
        let tokenizer = &self.text.tokenizer;
        let plain = EncodeOptions { add_special_tokens: false, ..EncodeOptions::default() };
        let tokens = tokenizer.encode(&[question.into()], &plain)?.first().map_or(0, Encoding::len);
        if tokens == 0 {
            return Err(empty(name("question")));
        }
        let length = length.unwrap_or(usize::MAX);
        if tokens + tokenizer.added_tokens(true) >= length {
            let problem =
                format!("has {tokens} tokens, which leaves no room for the context in windows of {length}");
            return Err(Error::input(
                name("question"),
                problem,
                "shorten it, or give a larger `max_seq_len`",
            ));
        }
        Ok(())
    }
}

fn empty(name: String) -> Error {
    Error::input(
        name,
        "is empty: the tokenizer finds nothing in it",
        "give a question and a text to find its answer in",
    )
}
