//! Questions with passages: `{"question": …, "passages": [{"title": …, "text": …, "score": …}, …]}`.

use serde_json::Value as Json;

use super::JsonPipeline;
use super::generation::options;
use super::parameters::Parameters;
use super::shapes::{start_of, to_json};
use crate::any_model::AnyModel;
use crate::tasks::{GenerativeQuestionAnswering, RetrievedPassage};
use crate::{Error, Result};

impl<A: AnyModel> JsonPipeline for GenerativeQuestionAnswering<A> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let options = options(&parameters)?;
        parameters.finish()?;
        let answers = |input: &Json| {
            let (question, passages) = asked(input)?;
            to_json(&self.run_with(question, &passages, &options)?)
        };
        match inputs {
            Json::Array(list) => list.iter().map(answers).collect(),
            input => answers(input),
        }
    }
}

/// The question of one input, and the passages that were found for it.
fn asked(input: &Json) -> Result<(&str, Vec<RetrievedPassage<'_>>)> {
    let help =
        "give {\"question\": \"…\", \"passages\": [{\"title\": \"…\", \"text\": \"…\", \"score\": 71.5}, …]}";
    let Some(question) = input["question"].as_str() else {
        return Err(Error::input(
            "inputs",
            format!("{} is no question with passages", start_of(input)),
            help,
        ));
    };
    let given = input["passages"].as_array().map_or(&[][..], Vec::as_slice);
    let passages = given.iter().enumerate().map(|(at, passage)| {
        serde::Deserialize::deserialize(passage).map_err(|e: serde_json::Error| {
            Error::input("passages", format!("number {}, {}: {e}", at + 1, start_of(passage)), help)
        })
    });
    Ok((question, passages.collect::<Result<_>>()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn passages_have_scores_and_may_have_titles() {
        let input = json!({"question": "Who?", "passages": [{"text": "Anni.", "score": 1.5}]});
        let (question, passages) = asked(&input).unwrap();
        assert_eq!(
            (question, passages),
            ("Who?", vec![RetrievedPassage { title: "", text: "Anni.", score: 1.5 }])
        );
        let problem = |input: &Json| asked(input).unwrap_err().to_string();
        assert!(problem(&json!({"passages": []})).contains("is no question with passages"));
        let text = problem(&json!({"question": "Who?", "passages": [{"text": "Anni."}]}));
        assert!(text.contains("number 1") && text.contains("score"), "{text}");
    }
}
