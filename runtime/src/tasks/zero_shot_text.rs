//! Zero-shot classification of texts: labels that are given with the call, scored by whether a text entails a sentence
//! about each.
//!
//! Reference: `ZeroShotClassificationPipeline`.

use super::batches::{Per, TextModel};
use super::builder::opened;
use super::hypotheses::hypotheses;
use super::labels::Labels;
use super::scores::{softmax, top};
use super::{Label, Pipeline, Task, TextOptions};
use crate::any_model::AnyModel;
use crate::text::{EncodeOptions, Text, Truncation};
use crate::{Error, Result};

/// Labels a text with labels of one's own; for checkpoints that were trained on natural language inference.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// let classifier = weft::tasks::ZeroShotClassification::<A>::open("org/model-mnli")?.load()?;
/// for label in classifier.run("My phone fell into the river.", &["accident", "holiday"])? {
///     println!("{} {:.3}", label.label, label.score);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ZeroShotClassification<A> {
    text: TextModel<A>,
    /// The logit that says that the text entails the sentence.
    entailment: usize,
}

/// How labels become sentences, and their logits scores.
#[derive(Clone, Debug)]
pub struct ZeroShotOptions {
    /// The sentence; `{}` stands for the label.
    pub hypothesis_template: String,
    /// Whether labels stand each for itself, its entailment against its contradiction; otherwise scores sum to 1.
    pub multi_label: bool,
    /// Many and empty texts. Long ones are always cut, and their sentences are not.
    pub text: TextOptions,
}

impl Default for ZeroShotOptions {
    fn default() -> Self {
        Self {
            hypothesis_template: "This example is {}.".to_owned(),
            multi_label: false,
            text: TextOptions { truncation: true, ..TextOptions::default() },
        }
    }
}

impl<A: AnyModel> Pipeline<A> for ZeroShotClassification<A> {
    const TASK: Task = Task::ZeroShotClassification;

    fn from_model(model: A) -> Result<Self> {
        let labels = Labels::read(model.raw_config());
        let entailment = labels.starting_with("entail").ok_or_else(|| {
            let config = model.checkpoint().dir().join("config.json");
            let help = "open a checkpoint that was trained on natural language inference, such as MNLI, and names its \
                        labels";
            Error::config(config, "`id2label` has no label that begins with `entail`", help)
        })?;
        Ok(Self { text: TextModel::new(model)?, entailment })
    }
}

opened!(ZeroShotClassification: text.model);

impl<A: AnyModel> ZeroShotClassification<A> {
    /// All labels, best first; their scores sum to 1.
    ///
    /// # Errors
    /// When there are no labels, the text is empty, or the model fails.
    pub fn run(&self, text: &str, candidate_labels: &[&str]) -> Result<Vec<Label>> {
        let labels = self.run_with(&[text], candidate_labels, &ZeroShotOptions::default())?;
        Ok(labels.into_iter().next().unwrap_or_default())
    }

    /// All labels of each text with other than the default options.
    ///
    /// # Errors
    /// As [`ZeroShotClassification::run`].
    pub fn run_with(
        &self,
        texts: &[&str],
        candidate_labels: &[&str],
        options: &ZeroShotOptions,
    ) -> Result<Vec<Vec<Label>>> {
        let sentences = hypotheses(candidate_labels, &options.hypothesis_template)?;
        if !options.text.allow_empty {
            self.text.refuse_blank(texts)?;
        }
        let pairs: Vec<Text<'_>> = texts
            .iter()
            .flat_map(|text| sentences.iter().map(|sentence| (*text, sentence.as_str()).into()))
            .collect();
        let asked = options.text.max_length.into_iter().chain(self.text.longest()).min();
        let encode = EncodeOptions {
            // Without a limit there is nothing to cut to.
            truncation: if asked.is_some() { Truncation::OnlyFirst } else { Truncation::No },
            max_length: asked,
            ..EncodeOptions::default()
        };
        let rows = self.text.encode(&pairs, &encode, options.text.allow_empty)?;
        let outputs = self.text.run(&rows, options.text.batch_size, &[("logits", Per::Row)])?;
        let logits: Vec<Vec<f32>> = outputs[0].iter().map(|row| row.iter().copied().collect()).collect();
        let labelled = |logits: &[Vec<f32>]| {
            let scores = self.scores(logits, options.multi_label);
            let label = |i: usize| Label { label: candidate_labels[i].to_owned(), score: scores[i] };
            top(&scores, scores.len()).into_iter().map(label).collect()
        };
        Ok(logits.chunks(candidate_labels.len()).map(labelled).collect())
    }

    /// The scores of a text's labels, from the logits `[labels, classes]`.
    fn scores(&self, logits: &[Vec<f32>], multi_label: bool) -> Vec<f32> {
        if !multi_label && logits.len() > 1 {
            return softmax(&logits.iter().map(|row| row[self.entailment]).collect::<Vec<_>>());
        }
        // As the reference has it: what entailment is weighed against stands at the other end.
        let against = |row: &[f32]| if self.entailment == 0 { row.len() - 1 } else { 0 };
        logits.iter().map(|row| softmax(&[row[against(row)], row[self.entailment]])[1]).collect()
    }
}
