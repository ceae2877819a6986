//! The text that tells a model which kind of segments is looked for (OneFormer, arXiv:2211.06220).

use crate::any_model::AnyModel;
use crate::graph::Dim;
use crate::text::{EncodeOptions, Padding, Text, Tokenizer};
use crate::{Result, Values};

use super::Subtask;

/// The input of models that take such a text.
const INPUT: &str = "task_inputs";

/// A checkpoint's tokenizer, and how many tokens its model takes.
#[derive(Debug)]
pub(super) struct TaskText {
    tokenizer: Tokenizer,
    length: Option<usize>,
}

impl TaskText {
    /// That of a model which takes such a text; none of another one.
    pub(super) fn of<A: AnyModel>(model: &A) -> Result<Option<Self>> {
        let Some(input) = model.inputs().iter().find(|input| input.name == INPUT) else { return Ok(None) };
        let length = input.shape.last().and_then(Dim::fixed);
        Ok(Some(Self { tokenizer: Tokenizer::from_checkpoint(model.checkpoint())?, length }))
    }

    /// The text as ids `[1, task_seq_len]`, 0 where padding is (`OneFormerProcessor`); panoptic where nothing is asked for.
    pub(super) fn inputs(&self, subtask: Option<Subtask>) -> Result<Values> {
        let text = sentence(subtask.unwrap_or(Subtask::Panoptic));
        let rows = self.tokenizer.encode(&[Text::from(text)], &EncodeOptions::truncated(self.length))?;
        let batch = self.tokenizer.pad(&rows, &Padding { length: self.length, ..Padding::default() })?;
        let ids = batch.input_ids * batch.attention_mask;
        Ok(Values::from([(INPUT.to_owned(), ids.into_dyn().into())]))
    }
}

/// What the model was trained on.
fn sentence(subtask: Subtask) -> &'static str {
    match subtask {
        Subtask::Panoptic => "the task is panoptic",
        Subtask::Instance => "the task is instance",
        Subtask::Semantic => "the task is semantic",
    }
}
