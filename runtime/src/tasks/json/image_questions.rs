//! Captions of images, and answers to questions about them: `{"image": …, "question": …}`.

use serde_json::Value as Json;

use super::JsonPipeline;
use super::generation::options;
use super::images::images;
use super::parameters::Parameters;
use super::shapes::{start_of, to_json};
use crate::any_model::AnyModel;
use crate::image::Image;
use crate::tasks::{GenerationOptions, ImageToText, VisualQuestionAnswering, VisualQuestionOptions};
use crate::{Error, Result};

/// What generates, beside a call's other parameters and under `generate_kwargs`.
fn generation(parameters: &Parameters<'_>) -> Result<GenerationOptions> {
    let mut options = options(parameters)?;
    let inner = parameters.inner("generate_kwargs")?;
    options.generation = options.generation.or(inner.generation()?);
    inner.finish()?;
    Ok(options)
}

impl<A: AnyModel> JsonPipeline for ImageToText<A> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let options = generation(&parameters)?;
        let prompt: Option<String> = parameters.get("prompt")?;
        parameters.finish()?;
        let images = images(inputs)?;
        let each = images.iter().map(|image| self.run_with(image, prompt.as_deref(), &options));
        listed(inputs.is_array(), each.collect::<Result<_>>()?)
    }
}

impl<A: AnyModel> JsonPipeline for VisualQuestionAnswering<A> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let defaults = VisualQuestionOptions::default();
        let options = VisualQuestionOptions {
            top_k: parameters.get("top_k")?.unwrap_or(defaults.top_k),
            generation: generation(&parameters)?,
        };
        parameters.finish()?;
        let all = match inputs {
            Json::Array(list) => list.as_slice(),
            one => std::slice::from_ref(one),
        };
        let answers = all.iter().map(|input| {
            let (image, question) = asked(input)?;
            self.run_with(&image, question, &options)
        });
        listed(inputs.is_array(), answers.collect::<Result<_>>()?)
    }
}

/// A list of lists for a list of inputs, the only list for one.
fn listed<T: serde::Serialize>(many: bool, mut all: Vec<Vec<T>>) -> Result<Json> {
    if many { to_json(&all) } else { to_json(&all.pop().unwrap_or_default()) }
}

/// The image and the question of one input.
fn asked(input: &Json) -> Result<(Image, &str)> {
    match (input["image"].as_str(), input["question"].as_str()) {
        (Some(image), Some(question)) => Ok((Image::open(image)?, question)),
        _ => Err(Error::input(
            "inputs",
            format!("{} is no question about an image", start_of(input)),
            "give {\"image\": \"path\", \"question\": \"…\"}, or a list of those",
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_question_has_an_image() {
        let text = asked(&json!({"question": "What?"})).unwrap_err().to_string();
        assert!(
            text.contains("is no question about an image") && text.contains("\"image\": \"path\""),
            "{text}"
        );
        let text = asked(&json!({"image": "no/such.png", "question": "What?"})).unwrap_err().to_string();
        assert!(text.contains("no/such.png"), "{text}");
    }
}
