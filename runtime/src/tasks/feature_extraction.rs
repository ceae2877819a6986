//! Feature extraction: the hidden states of each token.
//!
//! Reference: `FeatureExtractionPipeline`.

use ndarray::{Array2, Ix2};

use super::batches::{Per, TextModel};
use super::builder::opened;
use super::outputs::output;
use super::{Pipeline, Task, TextOptions};
use crate::any_model::AnyModel;
use crate::text::{Padding, Text};
use crate::{Error, Result};

/// Gives the last hidden state of each token of a text, special tokens included.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// let extractor = weft::tasks::FeatureExtraction::<A>::open("google-bert/bert-base-uncased")?.load()?;
/// let features = extractor.run("This is a simple test.")?; // [tokens, hidden_size]
/// println!("{:?}", features.shape());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct FeatureExtraction<A> {
    text: TextModel<A>,
}

/// How texts become rows of tokens.
#[derive(Clone, Debug, Default)]
pub struct FeatureOptions {
    /// Fills rows up to this many tokens, for which there are features too.
    pub pad_to: Option<usize>,
    /// Long, many and empty texts.
    pub text: TextOptions,
}

impl<A: AnyModel> Pipeline<A> for FeatureExtraction<A> {
    const TASK: Task = Task::FeatureExtraction;

    fn from_model(model: A) -> Result<Self> {
        Ok(Self { text: TextModel::new(model)? })
    }
}

opened!(FeatureExtraction: text.model);

impl<A: AnyModel> FeatureExtraction<A> {
    /// The most tokens a text may have: the tokenizer's limit, or the model's positions.
    pub fn longest(&self) -> Option<usize> {
        self.text.longest()
    }

    /// The features of a text, `[tokens, hidden_size]`.
    ///
    /// # Errors
    /// When the text is empty or longer than the model's positions, or the model fails.
    pub fn run(&self, text: &str) -> Result<Array2<f32>> {
        let features = self.run_batch(&[text])?;
        Ok(features.into_iter().next().unwrap_or_default())
    }

    /// The features of many texts, each `[tokens, hidden_size]`.
    ///
    /// # Errors
    /// As [`FeatureExtraction::run`].
    pub fn run_batch(&self, texts: &[&str]) -> Result<Vec<Array2<f32>>> {
        self.run_with(texts, &FeatureOptions::default())
    }

    /// The same with other than the default options.
    ///
    /// # Errors
    /// As [`FeatureExtraction::run`].
    pub fn run_with(&self, texts: &[&str], options: &FeatureOptions) -> Result<Vec<Array2<f32>>> {
        let texts: Vec<Text<'_>> = texts.iter().map(|text| Text::from(*text)).collect();
        let rows = self.text.rows(&texts, &options.text)?;
        const NAME: &str = "last_hidden_state";
        let Some(length) = options.pad_to else {
            let outputs = self.text.run(&rows, options.text.batch_size, &[(NAME, Per::Token)])?;
            return outputs.into_iter().flatten().map(two_axes).collect();
        };
        let padding = Padding { length: Some(length), ..Padding::default() };
        let mut features = Vec::with_capacity(rows.len());
        for row in &rows {
            let batch = self.text.tokenizer.pad(std::slice::from_ref(row), &padding)?;
            let values = self.text.model.run(self.text.inputs(batch))?;
            features.push(two_axes(output(&values, NAME)?.index_axis(ndarray::Axis(0), 0).to_owned())?);
        }
        Ok(features)
    }

    /// The number of tokens of each text.
    pub(super) fn lengths(&self, texts: &[&str], options: &TextOptions) -> Result<Vec<usize>> {
        let texts: Vec<Text<'_>> = texts.iter().map(|text| Text::from(*text)).collect();
        Ok(self.text.rows(&texts, options)?.iter().map(crate::text::Encoding::len).collect())
    }
}

fn two_axes(features: ndarray::ArrayD<f32>) -> Result<Array2<f32>> {
    let shape = features.shape().to_vec();
    features.into_dimensionality::<Ix2>().map_err(|_| {
        let problem =
            format!("has {} axes for each text, {shape:?}, instead of [tokens, hidden_size]", shape.len());
        Error::input("last_hidden_state", problem, "open a text model for this task")
    })
}
