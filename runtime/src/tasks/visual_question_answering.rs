//! Visual question answering: an answer to a question about an image, chosen among a classifier's labels or generated.
//!
//! Reference: `VisualQuestionAnsweringPipeline`, as of release 4.57; release 5 has none.

use serde::Serialize;

use super::builder::opened;
use super::image_to_text::ImageWriter;
use super::inputs::model_inputs;
use super::labels::Labels;
use super::outputs::output;
use super::{GenerationOptions, Pipeline, ScoreFunction, Task};
use crate::GraphKind;
use crate::any_model::AnyModel;
use crate::image::Image;
use crate::text::{Padding, Text};
use crate::{Result, Values};

/// Answers questions about images.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::image::Image;
///
/// let answering = weft::tasks::VisualQuestionAnswering::<A>::open("dandelin/vilt-b32-finetuned-vqa")?.load()?;
/// for answer in answering.run(&Image::open("cat.jpg")?, "How many cats are there?")? {
///     println!("{} {:?}", answer.answer, answer.score);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct VisualQuestionAnswering<A> {
    writer: ImageWriter<A>,
    labels: Labels,
}

/// An answer to a question about an image.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VisualAnswer {
    /// The score of a label, each judged for itself; none of an answer that was generated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f32>,
    /// The answer.
    pub answer: String,
}

/// How answers are chosen or generated.
#[derive(Clone, Debug, PartialEq)]
pub struct VisualQuestionOptions {
    /// The number of a classifier's labels, best first.
    pub top_k: usize,
    /// How the question is encoded, and an answer generated.
    pub generation: GenerationOptions,
}

impl Default for VisualQuestionOptions {
    fn default() -> Self {
        Self { top_k: 5, generation: GenerationOptions::default() }
    }
}

impl<A: AnyModel> Pipeline<A> for VisualQuestionAnswering<A> {
    const TASK: Task = Task::VisualQuestionAnswering;

    fn from_model(model: A) -> Result<Self> {
        let labels = Labels::read(model.raw_config());
        Ok(Self { writer: ImageWriter::new(model)?, labels })
    }
}

opened!(VisualQuestionAnswering: writer.text.model);

impl<A: AnyModel> VisualQuestionAnswering<A> {
    /// The five best answers of a classifier, or the one that is generated.
    ///
    /// # Errors
    /// When the question is empty or longer than the model's positions, or the model fails.
    pub fn run(&self, image: &Image, question: &str) -> Result<Vec<VisualAnswer>> {
        self.run_with(image, question, &VisualQuestionOptions::default())
    }

    /// The same with other than the default options.
    ///
    /// # Errors
    /// As [`VisualQuestionAnswering::run`].
    pub fn run_with(
        &self,
        image: &Image,
        question: &str,
        options: &VisualQuestionOptions,
    ) -> Result<Vec<VisualAnswer>> {
        let mut values = self.writer.processor.process(std::slice::from_ref(image))?;
        values.extend(self.question(question, &options.generation)?);
        if self.generates() {
            let start = self.writer.start(&options.generation)?;
            let texts = self.writer.write(values, start, &options.generation)?;
            let answer = |text: String| VisualAnswer { score: None, answer: text.trim().to_owned() };
            return Ok(texts.into_iter().map(answer).collect());
        }
        let model = &self.writer.text.model;
        let outputs = model.run(model_inputs(model, values))?;
        let logits = output(&outputs, "logits")?;
        let best = self.labels.best(logits, Some(ScoreFunction::Sigmoid), Some(options.top_k));
        let answer = |label: super::Label| VisualAnswer { score: Some(label.score), answer: label.label };
        Ok(best.into_iter().map(answer).collect())
    }

    /// Whether answers are generated.
    fn generates(&self) -> bool {
        self.writer.text.model.graph_kinds().contains(&GraphKind::Encoder)
    }

    /// The tensors of a question.
    fn question(&self, question: &str, options: &GenerationOptions) -> Result<Values> {
        let text = &self.writer.text;
        let rows = text.encode(
            &[Text::from(question)],
            &text.encoding(options, options.add_special_tokens),
            options.allow_empty,
        )?;
        Ok(text.inputs(text.tokenizer.pad(&rows, &Padding::default())?))
    }
}
