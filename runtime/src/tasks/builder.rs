//! A checkpoint opened for a task, and the pipeline made of it.

use std::marker::PhantomData;
use std::path::Path;

use super::Task;
use crate::Architecture;
use crate::any_model::AnyModel;
use crate::hub::Checkpoint;
use crate::quantization::Quantization;
use crate::{Hardware, Loader, Precision, Result};

/// A pipeline: a model with what stands before and after it.
pub trait Pipeline<M: AnyModel>: Sized {
    /// What it does.
    const TASK: Task;

    /// Joins a loaded model with the processing files of its checkpoint.
    ///
    /// # Errors
    /// When the checkpoint lacks such a file, or it does not fit.
    fn from_model(model: M) -> Result<Self>;
}

/// How every pipeline is opened, and the model within; that is at these of its fields.
#[cfg(any(feature = "audio", feature = "image", feature = "text"))]
macro_rules! opened {
    ($pipeline:ident: $($field:ident).+) => {
        impl<A: $crate::AnyModel> $pipeline<A> {
            /// Finds a checkpoint: a folder or a hub id.
            ///
            /// # Errors
            /// When there is none.
            pub fn open(checkpoint: &str) -> $crate::Result<$crate::tasks::PipelineBuilder<A, Self>>
            where
                A: $crate::Architecture,
            {
                $crate::tasks::PipelineBuilder::open(checkpoint)
            }

            /// The model within.
            pub fn model(&self) -> &A {
                &self.$($field).+
            }
        }
    };
}
#[cfg(any(feature = "audio", feature = "image", feature = "text"))]
pub(super) use opened;

/// A checkpoint that was found for a task, before it is loaded.
#[derive(Debug)]
pub struct PipelineBuilder<A: Architecture, P> {
    loader: Loader<A>,
    pipeline: PhantomData<fn() -> P>,
}

impl<A: Architecture, P: Pipeline<A>> PipelineBuilder<A, P> {
    pub(super) fn open(checkpoint: &str) -> Result<Self> {
        Ok(Self::from(Loader::open(checkpoint)?))
    }

    /// Where to run; [`Hardware::Auto`] follows the model's fallback route.
    #[must_use]
    pub fn hardware(mut self, hardware: Hardware) -> Self {
        self.loader = self.loader.hardware(hardware);
        self
    }

    /// What to compute in.
    #[must_use]
    pub fn precision(mut self, precision: Precision) -> Self {
        self.loader = self.loader.precision(precision);
        self
    }

    /// How weights are quantized; see [`Loader::quantization`].
    #[must_use]
    pub fn quantization(mut self, quantization: Quantization) -> Self {
        self.loader = self.loader.quantization(quantization);
        self
    }

    /// Keeps quantized weights for the next time; see [`Loader::cache_quantized`].
    #[must_use]
    pub fn cache_quantized(mut self, cache: bool) -> Self {
        self.loader = self.loader.cache_quantized(cache);
        self
    }

    /// What cached keys and values are kept in; see [`Loader::kv_cache`].
    #[must_use]
    pub fn kv_cache(mut self, precision: Precision) -> Self {
        self.loader = self.loader.kv_cache(precision);
        self
    }

    /// The precision of a module's weights; see [`Loader::precision_of`].
    #[must_use]
    pub fn precision_of(mut self, module: &str, precision: Precision) -> Self {
        self.loader = self.loader.precision_of(module, precision);
        self
    }

    /// Adds the low-rank updates of a file to the weights; see [`Loader::lora`].
    #[must_use]
    pub fn lora(mut self, path: impl AsRef<Path>, scale: f32) -> Self {
        self.loader = self.loader.lora(path, scale);
        self
    }

    /// Threads within an operation.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.loader = self.loader.threads(threads);
        self
    }

    /// Takes images of other sizes than the configuration's; see [`Loader::interpolate_pos_encoding`].
    #[must_use]
    pub fn interpolate_pos_encoding(mut self, interpolate: bool) -> Self {
        self.loader = self.loader.interpolate_pos_encoding(interpolate);
        self
    }

    /// Which class to load; the one that the checkpoint was saved from where not given.
    #[must_use]
    pub fn head(mut self, head: A::Head) -> Self {
        self.loader = self.loader.head(head);
        self
    }

    /// The checkpoint that was found.
    pub fn checkpoint(&self) -> &Checkpoint {
        self.loader.checkpoint()
    }

    /// Loads the model and its processing files.
    ///
    /// # Errors
    /// When the checkpoint's class does not fit the task, a file is missing or does not fit, or the backend
    /// is not available.
    pub fn load(self) -> Result<P> {
        let head = P::TASK.head::<A>(self.loader.checkpoint(), self.loader.requested_head())?;
        P::from_model(self.loader.head(head).ready(P::TASK.first_graphs()).load()?)
    }
}

impl<A: Architecture, P: Pipeline<A>> From<Loader<A>> for PipelineBuilder<A, P> {
    fn from(loader: Loader<A>) -> Self {
        Self { loader, pipeline: PhantomData }
    }
}
