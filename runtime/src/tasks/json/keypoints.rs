//! The pipelines of keypoints: those of an image, and those of two images that match.

use serde_json::Value as Json;

use super::JsonPipeline;
use super::images::{drawn, images};
use super::parameters::Parameters;
use super::shapes::{shaped, start_of};
use crate::any_model::DynModel;
use crate::image::Image;
use crate::tasks::{KeypointDetection, KeypointMatching, draw_keypoints, draw_matches};
use crate::{Error, Result};

impl JsonPipeline for KeypointDetection<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let out: Option<String> = parameters.get("out")?;
        parameters.finish()?;
        let images = images(inputs)?;
        let found = images.iter().map(|image| self.run(image)).collect::<Result<Vec<_>>>()?;
        drawn(out, &images, &found, |image, found| Ok(draw_keypoints(image, found)))?;
        shaped(inputs, found)
    }
}

impl JsonPipeline for KeypointMatching<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let threshold: Option<f32> = parameters.get("threshold")?;
        let out: Option<String> = parameters.get("out")?;
        parameters.finish()?;
        let single = inputs.as_array().is_some_and(|all| all.iter().all(Json::is_string));
        let pairs = if single { vec![inputs] } else { inputs.as_array().into_iter().flatten().collect() };
        let pairs = pairs.into_iter().map(pair).collect::<Result<Vec<_>>>()?;
        if pairs.is_empty() {
            return Err(no_pair(inputs));
        }
        let threshold = threshold.unwrap_or_default();
        let mut found = pairs.iter().map(|pair| self.run(pair, threshold)).collect::<Result<Vec<_>>>()?;
        match (out, &pairs[..]) {
            (None, _) => {}
            (Some(out), [pair]) => draw_matches(pair, &found[0])?.save(out)?,
            (Some(_), all) => {
                let problem = format!("is one file for {} pairs of images", all.len());
                return Err(Error::input("out", problem, "give one pair, or leave it out"));
            }
        }
        match (single, found.pop()) {
            (true, Some(found)) => Ok(serde_json::json!(found)),
            (_, last) => Ok(found.into_iter().chain(last).map(|found| serde_json::json!(found)).collect()),
        }
    }
}

/// The two images of a pair.
fn pair(input: &Json) -> Result<[Image; 2]> {
    match input.as_array().map(Vec::as_slice) {
        Some([Json::String(first), Json::String(second)]) => Ok([Image::open(first)?, Image::open(second)?]),
        _ => Err(no_pair(input)),
    }
}

fn no_pair(input: &Json) -> Error {
    let problem = format!("{} is no pair of images", start_of(input));
    Error::input(
        "inputs",
        problem,
        "give the paths of two images, [\"a.png\", \"b.png\"], or a list of those",
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pair_is_two_paths() {
        for wrong in [json!(["a.png"]), json!("a.png"), json!(["a.png", 1])] {
            let said = pair(&wrong).unwrap_err().to_string();
            assert!(
                said.contains("is no pair of images") && said.contains("[\"a.png\", \"b.png\"]"),
                "{said}"
            );
        }
    }
}
