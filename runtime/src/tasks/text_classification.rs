//! Text classification: labels for a text or a pair of texts.
//!
//! Reference: `TextClassificationPipeline`.

use super::batches::{Per, TextModel};
use super::builder::opened;
use super::labels::Labels;
use super::{Label, Pipeline, ScoreFunction, Task, TextOptions};
use crate::Result;
use crate::any_model::AnyModel;
use crate::text::Text;

/// Labels a text, or a pair such as a premise and a hypothesis.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// let classifier = weft::tasks::TextClassification::<A>::open("org/checkpoint")?.load()?;
/// let labels = classifier.run("A fine film.")?;
/// println!("{} {:.3}", labels[0].label, labels[0].score);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TextClassification<A> {
    text: TextModel<A>,
    labels: Labels,
}

/// How labels are scored and chosen.
#[derive(Clone, Debug)]
pub struct ClassificationOptions {
    /// The number of labels, best first; `None` for all of them.
    pub top_k: Option<usize>,
    /// How logits become scores. By default none for regression, sigmoid for several labels at a time or a
    /// single one, softmax otherwise, as `problem_type` and the number of labels say.
    pub function_to_apply: Option<ScoreFunction>,
    /// Long, many and empty texts.
    pub text: TextOptions,
}

impl Default for ClassificationOptions {
    fn default() -> Self {
        Self { top_k: Some(1), function_to_apply: None, text: TextOptions::default() }
    }
}

impl<A: AnyModel> Pipeline<A> for TextClassification<A> {
    const TASK: Task = Task::TextClassification;

    fn from_model(model: A) -> Result<Self> {
        let labels = Labels::read(model.raw_config());
        Ok(Self { text: TextModel::new(model)?, labels })
    }
}

opened!(TextClassification: text.model);

impl<A: AnyModel> TextClassification<A> {
    /// The best label of a text.
    ///
    /// # Errors
    /// When the text is empty or longer than the model's positions, or the model fails.
    pub fn run(&self, text: &str) -> Result<Vec<Label>> {
        self.one(text.into())
    }

    /// The best label of a pair of texts.
    ///
    /// # Errors
    /// As [`TextClassification::run`].
    pub fn run_pair(&self, text: &str, text_pair: &str) -> Result<Vec<Label>> {
        self.one((text, text_pair).into())
    }

    /// The best label of each text.
    ///
    /// # Errors
    /// As [`TextClassification::run`].
    pub fn run_batch(&self, texts: &[&str]) -> Result<Vec<Vec<Label>>> {
        let texts: Vec<Text<'_>> = texts.iter().map(|text| Text::from(*text)).collect();
        self.run_with(&texts, &ClassificationOptions::default())
    }

    /// The labels of texts or pairs with other than the default options.
    ///
    /// # Errors
    /// As [`TextClassification::run`].
    pub fn run_with(&self, texts: &[Text<'_>], options: &ClassificationOptions) -> Result<Vec<Vec<Label>>> {
        let rows = self.text.rows(texts, &options.text)?;
        let outputs = self.text.run(&rows, options.text.batch_size, &[("logits", Per::Row)])?;
        let best = |logits| self.labels.best(logits, options.function_to_apply, options.top_k);
        Ok(outputs[0].iter().map(best).collect())
    }

    fn one(&self, text: Text<'_>) -> Result<Vec<Label>> {
        let labels = self.run_with(&[text], &ClassificationOptions::default())?;
        Ok(labels.into_iter().next().unwrap_or_default())
    }
}
