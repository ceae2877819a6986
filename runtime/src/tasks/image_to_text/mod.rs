//! Image-to-text: a caption of an image, or the text in it.
//!
//! Reference: `ImageToTextPipeline`, as of release 4.57; release 5 has none.

mod writer;

use serde::Serialize;

pub(super) use writer::ImageWriter;

use super::builder::opened;
use super::{GenerationOptions, Pipeline, Task};
use crate::any_model::AnyModel;
use crate::image::Image;
use crate::{Error, Result};

/// Writes the text of an image: its caption, or what can be read in it.
///
/// As the reference's pipeline, it gives 256 tokens at most where neither the caller nor the checkpoint says otherwise.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::image::Image;
///
/// let captioner = weft::tasks::ImageToText::<A>::open("Salesforce/blip-image-captioning-base")?.load()?;
/// println!("{}", captioner.run(&Image::open("cat.jpg")?)?[0].generated_text);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ImageToText<A> {
    writer: ImageWriter<A>,
}

/// The text of an image.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Caption {
    /// The text, with the prompt that it continues.
    pub generated_text: String,
}

impl<A: AnyModel> Pipeline<A> for ImageToText<A> {
    const TASK: Task = Task::ImageToText;

    fn from_model(model: A) -> Result<Self> {
        Ok(Self { writer: ImageWriter::new(model)? })
    }
}

opened!(ImageToText: writer.text.model);

impl<A: AnyModel> ImageToText<A> {
    /// The text of an image.
    ///
    /// # Errors
    /// When the image does not become what the model takes, or the model fails.
    pub fn run(&self, image: &Image) -> Result<Vec<Caption>> {
        self.run_with(image, None, &GenerationOptions::default())
    }

    /// The same with other than the default options, as often as `num_return_sequences` says; `prompt` is how the text
    /// begins, which a decoder of captions takes (BLIP) and one that reads images alone does not (TrOCR).
    ///
    /// # Errors
    /// As [`ImageToText::run`], when the model takes no prompt, or it is longer than the model's positions.
    pub fn run_with(
        &self,
        image: &Image,
        prompt: Option<&str>,
        options: &GenerationOptions,
    ) -> Result<Vec<Caption>> {
        let begun = match prompt {
            None => self.writer.start(options)?,
            Some(_) if self.writer.reads_images_alone() => {
                let help = "leave it out; models that begin a text with a prompt, such as BLIP, take one";
                return Err(Error::input(
                    "prompt",
                    "the model reads images alone, and begins every text alike",
                    help,
                ));
            }
            Some(prompt) => self.writer.prompt(prompt, options)?,
        };
        let values = self.writer.processor.process(std::slice::from_ref(image))?;
        let texts = self.writer.write(values, begun, options)?;
        Ok(texts.into_iter().map(|generated_text| Caption { generated_text }).collect())
    }
}
