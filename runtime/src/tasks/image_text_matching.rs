//! Image-text matching: how well texts and an image go together, each pair read by one model at once.
//!
//! Reference: `BlipForImageTextRetrieval`, `BridgeTowerForImageAndTextRetrieval`, `ViltForImageAndTextRetrieval`, of which no
//! pipeline is made.

use serde::Serialize;

use super::batches::TextModel;
use super::builder::opened;
use super::inputs::model_inputs;
use super::scores::softmax;
use super::{Pipeline, Task, TextOptions};
use crate::any_model::AnyModel;
use crate::image::{Image, ImageProcessor};
use crate::text::{Padding, Text};
use crate::{Error, Result, Values};

/// The outputs of the classes that match: two logits, of which the second says that a text describes the image, or one.
const SCORES: [&str; 2] = ["itm_score", "logits"];

/// Scores pairs of an image and a text.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::image::Image;
///
/// let matching = weft::tasks::ImageTextMatching::<A>::open("Salesforce/blip-itm-base-coco")?.load()?;
/// for found in matching.run(&Image::open("cat.jpg")?, &["a cat on a couch", "a dog"])? {
///     println!("{:.3} {}", found.score, found.text);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ImageTextMatching<A> {
    text: TextModel<A>,
    processor: ImageProcessor,
}

/// A text, and how well it goes with an image.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TextMatch {
    /// The text.
    pub text: String,
    /// The probability that the text describes the image; of a model that ranks pairs by one number (ViLT) that number, a logit.
    pub score: f32,
}

impl<A: AnyModel> Pipeline<A> for ImageTextMatching<A> {
    const TASK: Task = Task::ImageTextMatching;

    fn from_model(model: A) -> Result<Self> {
        let text = TextModel::new(model)?;
        let processor = ImageProcessor::from_checkpoint(text.model.checkpoint())?;
        Ok(Self { text, processor })
    }
}

opened!(ImageTextMatching: text.model);

impl<A: AnyModel> ImageTextMatching<A> {
    /// The score of each text with the image, in their order.
    ///
    /// # Errors
    /// When a text is empty or longer than the model's positions, or the model fails.
    pub fn run(&self, image: &Image, texts: &[&str]) -> Result<Vec<TextMatch>> {
        self.run_with(image, texts, &TextOptions::default())
    }

    /// The same with other than the default options.
    ///
    /// # Errors
    /// As [`ImageTextMatching::run`].
    pub fn run_with(&self, image: &Image, texts: &[&str], options: &TextOptions) -> Result<Vec<TextMatch>> {
        let given: Vec<Text<'_>> = texts.iter().map(|text| Text::from(*text)).collect();
        let rows = self.text.rows(&given, options)?;
        let processed = self.processor.process(std::slice::from_ref(image))?;
        let score = |(text, row): (&&str, &crate::text::Encoding)| {
            let batch = self.text.tokenizer.pad(std::slice::from_ref(row), &Padding::default())?;
            let mut values = self.text.inputs(batch);
            values.extend(processed.clone());
            let model = &self.text.model;
            let score = matched(&model.run(model_inputs(model, values))?)?;
            Ok(TextMatch { text: (*text).to_owned(), score })
        };
        texts.iter().zip(&rows).map(score).collect()
    }
}

/// The probability of the second of two classes, or the only logit.
fn matched(outputs: &Values) -> Result<f32> {
    let found = SCORES.iter().find_map(|name| Some((name, outputs.get(*name)?)));
    let Some((name, value)) = found else {
        let help = "choose a class that matches images and texts, such as BlipForImageTextRetrieval";
        return Err(Error::input("head", "gives no score of an image and a text", help));
    };
    let logits: Vec<f32> = value.f32(name)?.iter().copied().collect();
    match logits.as_slice() {
        [logit] => Ok(*logit),
        [_, _] => Ok(softmax(&logits)[1]),
        _ => {
            let problem = format!("has {} numbers, and not one or two", logits.len());
            Err(Error::input(*name, problem, "choose a class that matches images and texts"))
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array;

    use super::*;

    fn outputs(name: &str, logits: &[f32]) -> Values {
        let logits = Array::from(logits.to_vec()).into_dyn();
        Values::from([(name.to_owned(), logits.into())])
    }

    #[test]
    fn two_logits_are_a_probability_and_one_stays_as_it_is() {
        let probability = matched(&outputs("itm_score", &[1.0, 1.0 + 3.0_f32.ln()])).unwrap();
        assert!((probability - 0.75).abs() < 1e-6);
        assert!((matched(&outputs("logits", &[-2.5])).unwrap() + 2.5).abs() < 1e-9);
        assert!(matched(&outputs("logits", &[0.0; 3])).unwrap_err().to_string().contains("3 numbers"));
        assert!(matched(&outputs("other", &[0.0])).unwrap_err().to_string().contains("no score"));
    }
}
