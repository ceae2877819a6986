//! How well texts and images go together: `{"image": …, "text": …}`, and `{"queries": …, "images": …}`.

use serde_json::{Value as Json, json};

use super::JsonPipeline;
use super::images::images;
use super::parameters::Parameters;
use super::shapes::{start_of, texts, to_json};
use crate::any_model::AnyModel;
use crate::image::Image;
use crate::tasks::{ImageTextMatching, VisualDocumentRetrieval};
use crate::{Error, Result};

impl<A: AnyModel> JsonPipeline for ImageTextMatching<A> {
    /// A list of scores for a text or a list of texts with their image; a list of those for a list of inputs.
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let mut options = parameters.text(&parameters.tokenizer()?)?;
        // No pipeline of the reference's answers empty texts.
        options.allow_empty = parameters.get("allow_empty")?.unwrap_or(false);
        parameters.finish()?;
        let scores = |input: &Json| {
            let (Some(path), Ok(texts)) = (input["image"].as_str(), texts(&input["text"])) else {
                let help = "give {\"image\": \"path\", \"text\": \"…\"}, with one text or a list of them";
                return Err(Error::input(
                    "inputs",
                    format!("{} is no image with texts", start_of(input)),
                    help,
                ));
            };
            to_json(&self.run_with(&Image::open(path)?, &texts, &options)?)
        };
        match inputs {
            Json::Array(list) => list.iter().map(scores).collect(),
            input => scores(input),
        }
    }
}

impl<A: AnyModel> JsonPipeline for VisualDocumentRetrieval<A> {
    /// Rows of scores, `[queries, images]`.
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        parameters.finish()?;
        let (Ok(queries), Json::String(_) | Json::Array(_)) = (texts(&inputs["queries"]), &inputs["images"])
        else {
            let help = "give {\"queries\": [\"…\"], \"images\": [\"page.png\"]}";
            let problem = format!("{} is no queries with images", start_of(inputs));
            return Err(Error::input("inputs", problem, help));
        };
        let scores = self.run(&queries, &images(&inputs["images"])?)?;
        Ok(scores.outer_iter().map(|row| json!(row.to_vec())).collect())
    }
}
