//! Text recognition: the text of an image of a line, or of a word in a scene.
//!
//! Reference: `post_process_text_recognition` of PP-OCR's image processors, and `MgpstrProcessor.batch_decode`.

mod characters;

use ndarray::{ArrayView2, Axis, Ix2, Ix3};
use serde::Serialize;

use self::characters::Characters;
use super::builder::opened;
use super::images::ImageModel;
use super::outputs::output;
use super::{Pipeline, Task};
use crate::any_model::AnyModel;
use crate::image::Image;
use crate::{Error, Result, ScoreFunction};

/// Reads the text of an image of one line.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::image::Image;
///
/// let reader = weft::tasks::TextRecognition::<A>::open("PaddlePaddle/PP-OCRv5_mobile_rec_safetensors")?.load()?;
/// let read = reader.run(&Image::open("line.png")?)?;
/// println!("{:.3} {}", read.score, read.text);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TextRecognition<A> {
    images: ImageModel<A>,
    characters: Characters,
}

/// The text of an image.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecognizedText {
    /// The text; empty where there is none.
    pub text: String,
    /// How sure it is: of CTC's characters the mean of their probabilities, of others their product with that of the end.
    pub score: f32,
}

impl<A: AnyModel> Pipeline<A> for TextRecognition<A> {
    const TASK: Task = Task::TextRecognition;

    fn from_model(model: A) -> Result<Self> {
        let images = ImageModel::new(model)?;
        let characters = Characters::of(&images.processor, images.model.checkpoint())?;
        Ok(Self { images, characters })
    }
}

opened!(TextRecognition: images.model);

impl<A: AnyModel> TextRecognition<A> {
    /// The text of an image.
    ///
    /// # Errors
    /// When the image does not become what the model takes, the model fails, or gives characters that the checkpoint does not name.
    pub fn run(&self, image: &Image) -> Result<RecognizedText> {
        let values = self.images.processor.process(std::slice::from_ref(image))?;
        let outputs = self.images.model.run(self.images.inputs(values))?;
        let (name, logits) = match &self.characters {
            Characters::Ctc { .. } => ("last_hidden_state", false),
            // Those of pieces of bytes and of words need vocabularies that checkpoints do not hold.
            Characters::Listed { .. } => ("logits.0", true),
        };
        let scores = output(&outputs, name)?;
        let shape = scores.shape().to_vec();
        let rows = scores.view().into_dimensionality::<Ix3>().ok().filter(|scores| scores.dim().0 == 1);
        let Some(rows) = rows.map(|scores| scores.index_axis_move(Axis(0), 0)) else {
            let problem = format!("has shape {shape:?}, instead of [1, columns, characters]");
            return Err(Error::input(name, problem, "open a model that is made for this task"));
        };
        let best = if logits { best(&probabilities(&rows).view()) } else { best(&rows) };
        let (text, score) = self.characters.text(&best)?;
        Ok(RecognizedText { text, score })
    }

    /// The text of each image, one after the other.
    ///
    /// # Errors
    /// As [`TextRecognition::run`].
    pub fn run_batch(&self, images: &[Image]) -> Result<Vec<RecognizedText>> {
        images.iter().map(|image| self.run(image)).collect()
    }
}

fn probabilities(logits: &ArrayView2<'_, f32>) -> ndarray::Array2<f32> {
    let rows = logits.outer_iter().flat_map(|row| ScoreFunction::Softmax.apply(&row.to_vec())).collect();
    ndarray::Array2::from_shape_vec(logits.raw_dim(), rows)
        .unwrap_or_else(|_| ndarray::Array2::zeros(Ix2(0, 0)))
}

/// The most probable index of each row, and its probability.
fn best(rows: &ArrayView2<'_, f32>) -> Vec<(usize, f32)> {
    let first = |best: (usize, f32), (index, score): (usize, &f32)| {
        if *score > best.1 { (index, *score) } else { best }
    };
    rows.outer_iter().map(|row| row.iter().enumerate().fold((0, f32::NEG_INFINITY), first)).collect()
}
