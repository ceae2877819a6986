//! Questions about pages: `{"question": …, "word_boxes": [["word", [left, upper, right, lower]], …]}`.

use serde_json::Value as Json;

use super::JsonPipeline;
use super::parameters::Parameters;
use super::shapes::{start_of, to_json};
use crate::any_model::AnyModel;
use crate::tasks::{DocumentQuestionAnswering, DocumentQuestionOptions, WordBox};
use crate::{Error, Result};

impl<A: AnyModel> JsonPipeline for DocumentQuestionAnswering<A> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let defaults = DocumentQuestionOptions::default();
        let options = DocumentQuestionOptions {
            top_k: parameters.get("top_k")?.unwrap_or(defaults.top_k),
            doc_stride: parameters.get("doc_stride")?,
            max_answer_len: parameters.get("max_answer_len")?.unwrap_or(defaults.max_answer_len),
            max_seq_len: parameters.get("max_seq_len")?,
            handle_impossible_answer: parameters.get("handle_impossible_answer")?.unwrap_or(false),
        };
        parameters.finish()?;
        let answers = |input: &Json| {
            let (question, page) = asked(input)?;
            to_json(&self.run_with(question, &page, &options)?)
        };
        match inputs {
            Json::Array(list) => list.iter().map(answers).collect(),
            input => answers(input),
        }
    }
}

/// The question of one input, and the words of its page. An image may be named beside them: its pixels are not read.
fn asked(input: &Json) -> Result<(&str, Vec<WordBox>)> {
    let Some(question) = input["question"].as_str() else {
        let help = "give {\"question\": \"…\", \"word_boxes\": [[\"word\", [left, upper, right, lower]], …]}";
        return Err(Error::input("inputs", format!("{} is no question about a page", start_of(input)), help));
    };
    let boxes: Vec<(String, [i64; 4])> = serde_json::from_value(input["word_boxes"].clone()).map_err(|e| {
        let help = "give the words of the page, [[\"word\", [left, upper, right, lower]], …] on a page of 1000 by 1000: \
                    text is not recognised here";
        Error::input("word_boxes", format!("{}: {e}", start_of(&input["word_boxes"])), help)
    })?;
    Ok((question, boxes.into_iter().map(|(word, bounds)| WordBox { word, bounds }).collect()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pages_are_words_with_boxes() {
        let input =
            json!({"image": "page.png", "question": "What?", "word_boxes": [["12.50", [1, 2, 3, 4]]]});
        let (question, page) = asked(&input).unwrap();
        assert_eq!((question, page.as_slice()), ("What?", &[WordBox::new("12.50", [1, 2, 3, 4])][..]));
        let problem = |input: &Json| asked(input).unwrap_err().to_string();
        let text = problem(&json!({"question": "What?", "image": "page.png"}));
        assert!(text.contains("word_boxes") && text.contains("not recognised"), "{text}");
        assert!(problem(&json!({"word_boxes": []})).contains("is no question about a page"));
        assert!(
            problem(&json!({"question": "What?", "word_boxes": [["a", [1, 2, 3]]]})).contains("word_boxes")
        );
    }
}
