//! What all audio pipelines share: audio to tensors, tensors through the model.

use std::borrow::Cow;

use ndarray::ArrayD;

use super::outputs::output;
use crate::any_model::AnyModel;
use crate::audio::{Audio, ExtractOptions, FeatureExtractor};
use crate::{Result, Values};

/// A model with its feature extractor.
#[derive(Debug)]
pub(super) struct AudioModel<A> {
    pub(super) model: A,
    pub(super) extractor: FeatureExtractor,
}

impl<A: AnyModel> AudioModel<A> {
    pub(super) fn new(model: A) -> Result<Self> {
        let extractor = FeatureExtractor::read(model.checkpoint())?;
        Ok(Self { model, extractor })
    }

    /// The samples at the rate that the model was trained with.
    pub(super) fn samples<'a>(&self, audio: &'a Audio) -> Result<Cow<'a, [f32]>> {
        audio.samples_at(self.extractor.sampling_rate())
    }

    /// One of the model's outputs for one audio clip.
    pub(super) fn run(&self, samples: &[f32], options: &ExtractOptions, name: &str) -> Result<ArrayD<f32>> {
        let values = self.model.run(self.inputs(samples, options)?)?;
        Ok(output(&values, name)?.clone())
    }

    /// The tensors that the model takes of one audio clip.
    pub(super) fn inputs(&self, samples: &[f32], options: &ExtractOptions) -> Result<Values> {
        let mut values = self.extractor.extract(&[samples], options)?;
        let inputs = self.model.inputs();
        values.retain(|name, _| inputs.iter().any(|input| input.name == *name));
        Ok(values)
    }
}
