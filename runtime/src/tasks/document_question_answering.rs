//! Document question answering: the words of a page that answer a question, by their places on it.
//!
//! Reference: `DocumentQuestionAnsweringPipeline`.

use ndarray::Array3;
use serde::Serialize;
use serde_json::Value as Json;

use super::batches::TextModel;
use super::builder::opened;
use super::inputs::model_inputs;
use super::outputs::output;
use super::question_answering::Span;
use super::{Pipeline, Task};
use crate::any_model::AnyModel;
use crate::text::{EncodeOptions, Encoding, Padding, Side, Text, Truncation};
use crate::{Error, Result, Values};

/// The reference's overlap of windows.
const DOC_STRIDE: usize = 256;

/// The box of separators where the tokenizer has none of its own (`LayoutLMForQuestionAnswering`).
const SEPARATOR: [i64; 4] = [1000; 4];

/// Finds the answer to a question among the words of a page (`LayoutLMForQuestionAnswering`,
/// `LayoutLMv3ForQuestionAnswering`).
///
/// Words and their boxes come from the caller: no text is recognised here. As by the reference's pipeline, pages are read by
/// their words alone, without pixels.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::tasks::{DocumentQuestionAnswering, WordBox};
///
/// let reader = DocumentQuestionAnswering::<A>::open("impira/layoutlm-document-qa")?.load()?;
/// let words = [WordBox::new("Total:", [80, 700, 190, 720]), WordBox::new("12.50", [200, 700, 280, 720])];
/// for answer in reader.run("What is the total?", &words)? {
///     println!("{} {:.3} {}..={}", answer.answer, answer.score, answer.start, answer.end);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct DocumentQuestionAnswering<A> {
    text: TextModel<A>,
    /// The box of separators.
    separator: [i64; 4],
}

/// A word of a page and its bounding box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordBox {
    /// The word.
    pub word: String,
    /// Left, upper, right and lower edge on a page of 1000 by 1000.
    pub bounds: [i64; 4],
}

impl WordBox {
    /// A word with its left, upper, right and lower edge.
    pub fn new(word: &str, bounds: [i64; 4]) -> Self {
        Self { word: word.to_owned(), bounds }
    }
}

/// How answers are found and chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentQuestionOptions {
    /// The most answers, best first.
    pub top_k: usize,
    /// How many tokens of the page two windows share; by default 256, or half a window.
    pub doc_stride: Option<usize>,
    /// The most tokens of an answer.
    pub max_answer_len: usize,
    /// The tokens of a window, question included; by default what tokenizer and model allow.
    pub max_seq_len: Option<usize>,
    /// Whether "no answer" is an answer: an empty one.
    pub handle_impossible_answer: bool,
}

impl Default for DocumentQuestionOptions {
    fn default() -> Self {
        Self {
            top_k: 1,
            doc_stride: None,
            max_answer_len: 15,
            max_seq_len: None,
            handle_impossible_answer: false,
        }
    }
}

/// Words of a page that follow each other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DocumentAnswer {
    /// Its probability.
    pub score: f32,
    /// The words.
    pub answer: String,
    /// The index of the first word.
    pub start: usize,
    /// The index of the last word.
    pub end: usize,
}

impl<A: AnyModel> Pipeline<A> for DocumentQuestionAnswering<A> {
    const TASK: Task = Task::DocumentQuestionAnswering;

    fn from_model(model: A) -> Result<Self> {
        let text = TextModel::new(model)?;
        let settings = text.model.checkpoint().json("tokenizer_config.json")?.unwrap_or_default();
        let separator = separator(&settings);
        if text.tokenizer.settings().padding_side == Side::Left {
            let problem = "`padding_side`: is left, but pages are the second of two texts";
            let file = text.model.checkpoint().dir().join("tokenizer_config.json");
            return Err(Error::config(file, problem, "set it to right"));
        }
        Ok(Self { text, separator })
    }
}

opened!(DocumentQuestionAnswering: text.model);

impl<A: AnyModel> DocumentQuestionAnswering<A> {
    /// The best answer to a question about a page, if there is one.
    ///
    /// # Errors
    /// When the question or the page is empty, the question leaves no room for the page, a box is off the page, or the model
    /// fails.
    pub fn run(&self, question: &str, page: &[WordBox]) -> Result<Vec<DocumentAnswer>> {
        self.run_with(question, page, &DocumentQuestionOptions::default())
    }

    /// The same with other than the default options.
    ///
    /// # Errors
    /// As [`DocumentQuestionAnswering::run`], and when an option is out of range.
    pub fn run_with(
        &self,
        question: &str,
        page: &[WordBox],
        options: &DocumentQuestionOptions,
    ) -> Result<Vec<DocumentAnswer>> {
        check(question, page, options)?;
        let words: Vec<&str> = page.iter().map(|word| word.word.as_str()).collect();
        let encode = self.encode_options(options)?;
        let rows = self.text.encode(&[Text::PairedWords(question, &words)], &encode, true)?;
        let mut answers = vec![];
        // What the reference begins with where windows say how probable no answer is.
        let mut null = 1_000_000.0_f32;
        for row in &rows {
            let window = self.window(row, page)?;
            null = null.min(window.null());
            for (first, last, score) in window.candidates(options.top_k, options.max_answer_len) {
                let word = |token: usize| row.words[token].map(|word| word as usize);
                if let (Some(start), Some(end)) = (word(first), word(last)) {
                    let answer = words.get(start..=end).unwrap_or_default().join(" ");
                    answers.push(DocumentAnswer { score, answer, start, end });
                }
            }
        }
        if options.handle_impossible_answer {
            answers.push(DocumentAnswer { score: null, answer: String::new(), start: 0, end: 0 });
        }
        answers.sort_by(|a, b| b.score.total_cmp(&a.score));
        answers.truncate(options.top_k);
        Ok(answers)
    }

    /// The probabilities of beginnings and ends in one window of the page.
    fn window<'a>(&self, row: &'a Encoding, page: &[WordBox]) -> Result<Span<'a>> {
        let model = &self.text.model;
        let batch = self.text.tokenizer.pad(std::slice::from_ref(row), &Padding::default())?;
        let mut values: Values = model_inputs(model, batch.into_values());
        let bounds = self.bounds(row, page);
        let boxes = Array3::from_shape_fn((1, row.len(), 4), |(_, token, edge)| bounds[token][edge]);
        values.insert("bbox".to_owned(), boxes.into_dyn().into());
        let outputs = model.run(values)?;
        let [start, end] = ["start_logits", "end_logits"].map(|name| output(&outputs, name));
        let cls = self.text.tokenizer.cls_token().map(|(_, id)| id);
        // The first token stays in the sum: models use it to say that there is no answer.
        let allowed =
            (0..row.len()).map(|i| row.sequences[i] == Some(1) || Some(row.ids[i]) == cls).collect();
        Ok(Span::new(row, 1, allowed, start?.iter().copied(), end?.iter().copied()))
    }

    /// The box of each token: its word's, or that of separators, or nothing.
    fn bounds(&self, row: &Encoding, page: &[WordBox]) -> Vec<[i64; 4]> {
        let ends = self.text.tokenizer.sep_token().map(|(_, id)| id);
        let of = |token: usize| match (row.sequences[token], row.words[token]) {
            (Some(1), Some(word)) => page.get(word as usize).map_or([0; 4], |word| word.bounds),
            _ if Some(row.ids[token]) == ends => self.separator,
            _ => [0; 4],
        };
        (0..row.len()).map(of).collect()
    }

    fn encode_options(&self, options: &DocumentQuestionOptions) -> Result<EncodeOptions> {
        let length = options.max_seq_len.or(self.text.longest());
        Ok(EncodeOptions {
            truncation: Truncation::OnlySecond,
            max_length: length,
            stride: stride(options.doc_stride, length)?,
            overflow: true,
            add_special_tokens: true,
        })
    }
}

/// How many tokens windows of a length share, which must be fewer than they have.
fn stride(doc_stride: Option<usize>, length: Option<usize>) -> Result<usize> {
    let half = length.map_or(DOC_STRIDE, |length| length / 2);
    let stride = doc_stride.unwrap_or(half.min(DOC_STRIDE));
    match length.filter(|length| stride >= *length) {
        None => Ok(stride),
        Some(length) => {
            let problem = format!("{stride} is not less than the {length} tokens of a window");
            Err(Error::input("doc_stride", problem, "give a smaller overlap, or a larger `max_seq_len`"))
        }
    }
}

/// The box of separators: `sep_token_box` of tokenizers that place boxes themselves.
fn separator(settings: &Json) -> [i64; 4] {
    let own = serde_json::from_value(settings["sep_token_box"].clone()).ok();
    let third = settings["tokenizer_class"].as_str().is_some_and(|class| class.starts_with("LayoutLMv3"));
    own.unwrap_or(if third { [0; 4] } else { SEPARATOR })
}

/// Refuses questions and pages without words, and options out of range.
fn check(question: &str, page: &[WordBox], options: &DocumentQuestionOptions) -> Result<()> {
    if question.trim().is_empty() {
        return Err(Error::input("question", "is empty", "give a question about the page"));
    }
    if page.iter().all(|word| word.word.trim().is_empty()) {
        let help = "give the words of the page, each with its box; text is not recognised here";
        return Err(Error::input("word_boxes", "has no words: the page is empty", help));
    }
    let off = |word: &&WordBox| word.bounds.iter().any(|edge| !(0..=1000).contains(edge));
    if let Some(word) = page.iter().find(off) {
        let problem =
            format!("`{}` has the box {:?}, which is off a page of 1000 by 1000", word.word, word.bounds);
        let help = "give left, upper, right and lower edge times 1000, over the page's width and height";
        return Err(Error::input("word_boxes", problem, help));
    }
    for (name, value) in [("top_k", options.top_k), ("max_answer_len", options.max_answer_len)] {
        if value == 0 {
            return Err(Error::input(name, "is 0", "give 1 or more"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn windows_share_fewer_tokens_than_they_have() {
        assert_eq!(stride(None, Some(300)).unwrap(), 150);
        assert_eq!(stride(None, Some(1000)).unwrap(), 256);
        assert_eq!(stride(Some(7), Some(8)).unwrap(), 7);
        assert_eq!(stride(Some(700), None).unwrap(), 700);
        let problem = stride(Some(8), Some(8)).unwrap_err().to_string();
        assert!(problem.contains("doc_stride") && problem.contains("8 tokens of a window"), "{problem}");
    }

    #[test]
    fn separators_have_the_box_of_their_tokenizer() {
        assert_eq!(separator(&json!({"tokenizer_class": "BertTokenizer"})), [1000; 4]);
        assert_eq!(separator(&json!({"tokenizer_class": "LayoutLMv3TokenizerFast"})), [0; 4]);
        assert_eq!(separator(&json!({"sep_token_box": [1, 2, 3, 4]})), [1, 2, 3, 4]);
    }

    #[test]
    fn pages_without_words_and_boxes_off_the_page_are_refused() {
        let options = DocumentQuestionOptions::default();
        let problem = |question: &str, page: &[WordBox]| {
            check(question, page, &options).map_or_else(|error| error.to_string(), |()| String::new())
        };
        let word = WordBox::new("12.50", [0, 0, 1000, 9]);
        assert_eq!(problem("What?", std::slice::from_ref(&word)), "");
        assert!(problem(" ", &[word]).contains("question"), "the question is empty");
        assert!(problem("What?", &[WordBox::new(" ", [0; 4])]).contains("has no words"));
        let text = problem("What?", &[WordBox::new("a", [0, 0, 1001, 9])]);
        assert!(text.contains("`a`") && text.contains("1001"), "{text}");
    }
}
