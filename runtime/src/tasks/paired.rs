//! Labels of the caller's own, scored by how well a sentence about each fits an image, a video or audio.

use super::batches::TextModel;
use super::hypotheses::hypotheses;
use super::inputs::model_inputs;
use super::outputs::output;
use super::scores::top;
use super::{Label, ScoreFunction, TextOptions};
use crate::any_model::AnyModel;
use crate::text::{Padding, Text};
use crate::{Result, Values};

/// How labels become sentences.
#[derive(Clone, Debug)]
pub struct HypothesisOptions {
    /// The sentence; `{}` stands for the label.
    pub hypothesis_template: String,
    /// Long, many and empty labels.
    pub text: TextOptions,
}

impl Default for HypothesisOptions {
    fn default() -> Self {
        Self { hypothesis_template: "This is a photo of {}.".to_owned(), text: TextOptions::default() }
    }
}

/// A dual encoder with its tokenizer and the processor of its images, videos or audio.
#[derive(Debug)]
pub(super) struct PairedModel<A, P> {
    pub(super) text: TextModel<A>,
    pub(super) processor: P,
}

impl<A: AnyModel, P> PairedModel<A, P> {
    /// Scores labels against what the processor made of one image, video or audio clip; `logits` names the output
    /// `[1, labels]`. Texts are as long as the model was trained on, and scores what its logits stand for.
    pub(super) fn scored(
        &self,
        processed: Values,
        labels: &[&str],
        options: &HypothesisOptions,
        logits: &str,
    ) -> Result<Vec<Label>> {
        let TextModel { model, tokenizer } = &self.text;
        let mut sentences = hypotheses(labels, &options.hypothesis_template)?;
        let processing = model.processing();
        if processing.do_lower_case {
            // Letter by letter, as normalizers do it.
            sentences =
                sentences.iter().map(|text| text.chars().flat_map(char::to_lowercase).collect()).collect();
        }
        let texts: Vec<Text<'_>> = sentences.iter().map(|sentence| Text::from(sentence.as_str())).collect();
        let length = processing.max_length;
        let rows = match length {
            // A text of another length than all that the model was trained on means nothing to it.
            Some(_) => {
                let max_length = options.text.max_length.into_iter().chain(length).min();
                self.text
                    .rows(&texts, &TextOptions { truncation: true, max_length, ..options.text.clone() })?
            }
            None => self.text.rows(&texts, &options.text)?,
        };
        let batch = tokenizer.pad(&rows, &Padding { length, ..Padding::default() })?;
        let mut values = self.text.inputs(batch);
        values.extend(processed);
        let outputs = model.run(model_inputs(model, values))?;
        let function = processing.function_to_apply.unwrap_or(ScoreFunction::Softmax);
        let scores = function.apply(&output(&outputs, logits)?.iter().copied().collect::<Vec<_>>());
        let label = |i: usize| Some(Label { label: (*labels.get(i)?).to_owned(), score: scores[i] });
        Ok(top(&scores, scores.len()).into_iter().filter_map(label).collect())
    }
}
